//! The runtime rules of one cluster, as this process knows them: a pure state, to which makings,
//! liftings, readings of the table and the passing of time are given.
//!
//! Each rule has its key, the name made of its app and user, so a later one for the same target
//! replaces the former. A rule that was lifted stays as a *lifted* entry until it would have ended,
//! so that neither a primary that was behind nor an old journal brings it back.
//!
//! Order. A change made here has no version until the primary has given it one; until then it
//! counts as the last. A row with a higher version than the entry's replaces the entry. A row with
//! a lower one, or none in a reading of everything, says that the primary has lost what it had
//! confirmed (a replica that was behind has taken over): the entry is written again, but only over
//! what was seen, so that it replaces nothing newer.
//!
//! Time. While the process runs, a rule ends by the monotonic clock; how long it has left the
//! primary's clock says whenever the row is read. The wall clock only names the second, and
//! carries the rest of it over a restart.

mod entry;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use policy::RuntimeChange;
use proxy::rule_table::{ReadRow, Reading, VERSION_MAX, WriteRow, Written};

use crate::body::RuleBody;
use crate::draft::{LASTS_MAX, Lift, MakeError, RULES_MAX, author_name};
use crate::receipt::StandingRule;

use self::entry::is_later_than;
pub(crate) use self::entry::{About, Entry, Kept, Now};

/// Most entries, standing and lifted.
const ENTRIES_MAX: usize = RULES_MAX * 2;

/// The wall clock has jumped if it is this far from where it should be.
const JUMP_MS: u64 = 1_500;

/// The rules of one cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<Arc<str>, Entry>,
    /// The table was read up to this version.
    read_to: u64,
    /// The highest version that was ever seen.
    highest: u64,
    changes: u64,
    offset_ms: Option<i64>,
    /// Names whose entries have changed since they were taken to be kept.
    unsaved: HashSet<Arc<str>>,
    /// Names whose entries stand otherwise than when they were put in force.
    unapplied: HashSet<Arc<str>>,
    /// Rows of the table that are no rule, which the log has already: the versions by their names.
    told: BTreeMap<String, u64>,
}

/// Rules that come at once and are told of; of more their number.
const LOGGED_MAX: usize = 20;

/// Rows that are no rule and are told of.
const TOLD_MAX: usize = 100;

/// A row whose end is further away has not been written by a Sluice. A clock of the primary that was
/// set back leaves rules a day more.
const ROW_LASTS_MAX: Duration = LASTS_MAX.saturating_add(Duration::from_secs(24 * 3_600));

/// A version that is so near to the last one was written by hand, and is not taken over from a former
/// process: it would leave no room for others, and the table may have been made anew.
const VERSION_KEPT_MAX: u64 = VERSION_MAX - (1 << 32);

/// What a call has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Other rules stand.
    Yes,
    No,
}

impl Ledger {
    /// Makes a rule, or replaces the one of its target. Its name and which change that is.
    pub(crate) fn make(
        &mut self,
        body: RuleBody,
        author: &str,
        lasts: Duration,
        now: Now,
    ) -> Result<(Arc<str>, u64), MakeError> {
        let author = author_name(author);
        let rule = body.compile(&author, now.after(lasts)).map_err(MakeError::Faults)?;
        let ends = now.mono.saturating_add(lasts);
        Ok(self.put(Entry {
            body,
            author,
            lifted: false,
            ends,
            version: None,
            lost: None,
            change: 0,
            rule,
        }))
    }

    /// Whether one more rule may stand, of this name.
    pub(crate) fn has_room_for(&self, name: &str) -> bool {
        let standing = || self.entries.values().filter(|entry| !entry.lifted).count();
        self.entries.get(name).is_some_and(|entry| !entry.lifted)
            || self.entries.len() < RULES_MAX
            || standing() < RULES_MAX
    }

    /// Lifts the rules that are meant, and gives them as they stood, with which change that is.
    pub(crate) fn lift(
        &mut self,
        what: &Lift,
        author: &str,
        about: About<'_>,
    ) -> Vec<(StandingRule, u64)> {
        let mut lifted = Vec::new();
        for (name, entry) in &mut self.entries {
            if entry.lifted || entry.ends <= about.now.mono || !entry.is_meant(name, what) {
                continue;
            }
            let stood = entry.show(name, about);
            self.changes = self.changes.saturating_add(1);
            entry.lifted = true;
            entry.author = author_name(author);
            (entry.version, entry.lost, entry.change) = (None, None, self.changes);
            self.unsaved.insert(name.clone());
            self.unapplied.insert(name.clone());
            lifted.push((stood, self.changes));
        }
        lifted
    }

    /// Takes back what was kept, unless something newer is known.
    pub(crate) fn restore(&mut self, kept: Kept, now: Now) -> Changed {
        let Kept { body, author, lifted, left, version } = kept;
        let left = left.min(LASTS_MAX);
        let version = version.filter(|version| *version <= VERSION_KEPT_MAX);
        let name = body.name();
        self.highest = self.highest.max(version.unwrap_or(0));
        let is_newer = match self.entries.get(&*name) {
            None => true,
            Some(known) => match (known.version, version) {
                (None, _) => is_later_than(&body, lifted, self.entries.get(&*name)),
                (Some(known), Some(kept)) => kept > known,
                (Some(_), None) => true,
            },
        };
        if left.is_zero() || !is_newer {
            return Changed::No;
        }
        let Ok(rule) = body.compile(&author, now.after(left)) else { return Changed::No };
        let ends = now.mono.saturating_add(left);
        self.put(Entry { body, author, lifted, ends, version, lost: None, change: 0, rule });
        Changed::Yes
    }

    fn put(&mut self, entry: Entry) -> (Arc<str>, u64) {
        self.changes = self.changes.saturating_add(1);
        let name = entry.rule.name().clone();
        self.unsaved.insert(name.clone());
        self.unapplied.insert(name.clone());
        self.entries.insert(name.clone(), Entry { change: self.changes, ..entry });
        self.bound();
        (name, self.changes)
    }

    /// Lifted entries only guard against old readings; the one that ends first guards the shortest.
    fn bound(&mut self) {
        if self.entries.len() > ENTRIES_MAX {
            let lifted = self.entries.iter().filter(|(_, entry)| entry.lifted);
            let first = lifted.min_by_key(|(_, entry)| entry.ends).map(|(name, _)| name.clone());
            if let Some(name) = first {
                self.entries.remove(&name);
            }
        }
    }

    /// Takes out what has ended, and names the ends anew when the wall clock has jumped.
    pub(crate) fn pass_time(&mut self, now: Now) -> Changed {
        let before = self.entries.len();
        let Self { entries, unsaved, unapplied, .. } = self;
        entries.retain(|name, entry| {
            let stays = entry.ends > now.mono;
            if !stays {
                unsaved.remove(name);
                unapplied.insert(name.clone());
            }
            stays
        });
        let jumped = self.has_jumped(now);
        if jumped || self.offset_ms.is_none() {
            self.offset_ms = Some(now.offset_ms());
        }
        if jumped {
            for (name, entry) in &mut self.entries {
                entry.rule = entry.rule.ending(now.after(entry.left(now)));
                self.unsaved.insert(name.clone());
                self.unapplied.insert(name.clone());
            }
        }
        if jumped || self.entries.len() != before { Changed::Yes } else { Changed::No }
    }

    /// Whether the wall clock is another one than that by which the ends are named.
    pub(crate) fn has_jumped(&self, now: Now) -> bool {
        self.offset_ms.is_some_and(|known| known.abs_diff(now.offset_ms()) > JUMP_MS)
    }

    /// Takes in what the table says.
    pub(crate) fn merge(&mut self, reading: Reading, now: Now) -> Changed {
        let (rows, counter) = match reading {
            Reading::Changes(rows) => (rows, None),
            Reading::Everything { rows, counter } => (rows, Some(counter)),
        };
        let last = rows.iter().map(|row| row.version).max().unwrap_or(0);
        self.read_to = match counter {
            Some(counter) => counter.max(last),
            None => self.read_to.max(last),
        };
        self.highest = self.highest.max(self.read_to);
        if counter.is_some() {
            let there: HashSet<&str> = rows.iter().map(|row| &*row.name).collect();
            for (name, entry) in &mut self.entries {
                if entry.version.is_some() && !there.contains(&**name) {
                    entry.lost = Some(0);
                }
            }
            self.told.retain(|name, _| there.contains(&**name));
        }
        let mut changed: usize = 0;
        let mut room = self.room(rows.len());
        let mut left_out: usize = 0;
        for row in &rows {
            let is_new = !self.entries.contains_key(&*row.name);
            if is_new && room == 0 {
                left_out = left_out.saturating_add(1);
                continue;
            }
            if self.merge_row(row, now) == Changed::No {
                continue;
            }
            self.unapplied.insert(row.name.as_str().into());
            room = room.saturating_sub(usize::from(is_new));
            changed = changed.saturating_add(1);
            if changed <= LOGGED_MAX {
                let (rule, author) = (&row.name, row.author.escape_debug());
                let left_s = row.left.as_secs();
                tracing::info!(
                    %rule, %author, lifted = row.lifted, left_s, version = row.version,
                    "a runtime rule has come by the table on the primary"
                );
            }
        }
        if left_out > 0 && counter.is_some() {
            tracing::error!(
                left_out,
                max = ENTRIES_MAX,
                "the table of runtime rules has too many rows; those that came last have no effect \
                 here"
            );
        }
        let further = changed.saturating_sub(LOGGED_MAX);
        if further > 0 {
            tracing::info!(further, "and more runtime rules");
        }
        if changed > 0 { Changed::Yes } else { Changed::No }
    }

    /// How many further rows can be taken in, of so many. Lifted entries make room.
    fn room(&self, rows: usize) -> usize {
        let free = ENTRIES_MAX.saturating_sub(self.entries.len());
        if free >= rows {
            return free;
        }
        let lifted = self.entries.values().filter(|entry| entry.lifted).count();
        ENTRIES_MAX.saturating_add(lifted).saturating_sub(self.entries.len())
    }

    fn merge_row(&mut self, row: &ReadRow, now: Now) -> Changed {
        let Some(entry) = self.entries.get_mut(&*row.name) else {
            return if row.lifted || row.left.is_zero() {
                Changed::No
            } else {
                self.take(row, now)
            };
        };
        match entry.version {
            // Made here, and not known to be written. It may have been, all the same.
            None => {
                let same = RuleBody::parse(&row.body).is_ok_and(|body| body.id == entry.body.id);
                let is_ours = same && (row.lifted || !entry.lifted);
                if !is_ours {
                    return Changed::No;
                }
                entry.version = Some(row.version);
                let is_lifted = row.lifted && !entry.lifted;
                entry.lifted |= row.lifted;
                self.unsaved.insert(row.name.as_str().into());
                if is_lifted { Changed::Yes } else { Changed::No }
            }
            Some(known) if row.version < known => {
                entry.lost = Some(row.version);
                Changed::No
            }
            Some(known) if row.version == known => {
                entry.lost = None;
                if row.left > ROW_LASTS_MAX {
                    return Changed::No;
                }
                let changed = entry.take_end(row.left, now);
                if changed == Changed::Yes {
                    self.unsaved.insert(row.name.as_str().into());
                }
                changed
            }
            // Lifted is lifted, whatever else a later version may say there.
            Some(_) if row.lifted && !row.left.is_zero() => {
                let changed = if entry.lifted { Changed::No } else { Changed::Yes };
                entry.lifted = true;
                entry.author = author_name(&row.author);
                (entry.version, entry.lost) = (Some(row.version), None);
                self.unsaved.insert(row.name.as_str().into());
                changed
            }
            Some(_) => self.take(row, now),
        }
    }

    /// Puts the row in the place of what is known.
    fn take(&mut self, row: &ReadRow, now: Now) -> Changed {
        let left = row.left.min(LASTS_MAX);
        let body = match RuleBody::parse(&row.body) {
            Ok(_) if row.left > ROW_LASTS_MAX => {
                return self.leave(row, "it stands longer than a rule may");
            }
            Ok(body) if body.name() == row.name => body,
            Ok(_) => return self.leave(row, "its name is another's"),
            Err(why) => return self.leave(row, &why),
        };
        if left.is_zero() {
            self.entries.remove(&*row.name);
            return Changed::Yes;
        }
        let author = author_name(&row.author);
        match body.compile(&author, now.after(left)) {
            Ok(rule) => {
                let ends = now.mono.saturating_add(left);
                let (lifted, version) = (row.lifted, Some(row.version));
                self.put(Entry {
                    body,
                    author,
                    lifted,
                    ends,
                    version,
                    lost: None,
                    change: 0,
                    rule,
                });
                Changed::Yes
            }
            Err(faults) => self.leave(row, &MakeError::Faults(faults).to_string()),
        }
    }

    /// A row is no rule. It is read again and again, and told of once.
    fn leave(&mut self, row: &ReadRow, why: &str) -> Changed {
        let known = self.told.get(&row.name);
        if known == Some(&row.version) || (known.is_none() && self.told.len() >= TOLD_MAX) {
            return Changed::No;
        }
        self.told.insert(row.name.clone(), row.version);
        let (name, author) = (row.name.escape_debug(), row.author.escape_debug());
        tracing::error!(
            rule = %name, %author, version = row.version, %why,
            "a row of the table of runtime rules is not understood; it has no effect here"
        );
        Changed::No
    }

    /// What waits to be written.
    pub(crate) fn outbox(&self, rows_max: usize, now: Now) -> Vec<WriteRow> {
        let wanted = |(_, entry): &(&Arc<str>, &Entry)| {
            (entry.version.is_none() || entry.lost.is_some()) && entry.ends > now.mono
        };
        let row = |(name, entry): (&Arc<str>, &Entry)| WriteRow {
            name: name.to_string(),
            change: entry.change,
            left: entry.left(now),
            lifted: entry.lifted,
            author: entry.author.clone(),
            body: entry.body.text(),
            over: entry.version.and(entry.lost),
        };
        self.entries.iter().filter(wanted).take(rows_max).map(row).collect()
    }

    /// Notes what was written. What has changed since is written again.
    pub(crate) fn note_written(&mut self, rows: &[Written]) {
        for row in rows {
            self.highest = self.highest.max(row.version);
            let Some(entry) = self.entries.get_mut(&*row.name) else { continue };
            if entry.change != row.change {
                continue;
            }
            // What was written again may have met a newer row: the next reading shows which it is.
            if entry.lost.take().is_none() {
                entry.version = Some(row.version);
                self.unsaved.insert(row.name.as_str().into());
            }
        }
    }

    /// Where the table is to be read on, and the highest version that was seen.
    pub(crate) fn position(&self) -> (u64, u64) {
        (self.read_to, self.highest)
    }

    /// The version of a change. `None`: it is not written yet.
    pub(crate) fn version_of(&self, name: &str, change: u64) -> Option<u64> {
        match self.entries.get(name) {
            Some(entry) if entry.change == change => entry.version,
            // Another one has come after it.
            Some(_) | None => Some(self.highest),
        }
    }

    /// Whether this is the last change of a rule.
    pub(crate) fn is_last(&self, name: &str, change: u64) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.change == change)
    }

    /// What stands otherwise than when this was asked last. Which of them goes first the policy
    /// says.
    pub(crate) fn take_changes(&mut self) -> Vec<RuntimeChange> {
        let names = std::mem::take(&mut self.unapplied);
        let change = |name: Arc<str>| match self.entries.get(&name) {
            Some(entry) if !entry.lifted => RuntimeChange::Stands(entry.rule.clone()),
            Some(_) | None => RuntimeChange::Gone(name),
        };
        names.into_iter().map(change).collect()
    }

    /// One rule that stands.
    pub(crate) fn show(&self, name: &str, about: About<'_>) -> Option<StandingRule> {
        let (name, entry) = self.entries.get_key_value(name)?;
        (!entry.lifted && entry.ends > about.now.mono).then(|| entry.show(name, about))
    }

    /// All rules that stand, by their names.
    pub(crate) fn standing(&self, about: About<'_>) -> Vec<StandingRule> {
        self.entries.keys().filter_map(|name| self.show(name, about)).collect()
    }

    /// What is to be kept: entries that have changed since this was asked last.
    pub(crate) fn take_unsaved(&mut self, now: Now) -> Vec<Kept> {
        let names = std::mem::take(&mut self.unsaved);
        names.iter().filter_map(|name| Some(self.entries.get(name)?.keep(now))).collect()
    }

    /// Whether something is to be kept.
    pub(crate) fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All that is to be kept.
    pub(crate) fn all(&self, now: Now) -> Vec<Kept> {
        let lasting = self.entries.values().filter(|entry| entry.ends > now.mono);
        lasting.map(|entry| entry.keep(now)).collect()
    }
}

#[cfg(test)]
mod tests;
