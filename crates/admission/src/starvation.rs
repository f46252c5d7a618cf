//! Starvation: who is kept from working for too much of the time, or gets too little of what others
//! get, and who worked meanwhile.
//!
//! Theory. An identity is *blocked* from when it asks in vain (it queues, or is refused) until
//! something of its is admitted, as long as it goes on asking: somebody of it waits, or the next
//! statement comes within [`ASKS_WITHIN`] of the last that was refused. Each admission begins a new
//! spell for those who still wait. A spell counts when it has lasted [`SPELL_MIN`], and then from
//! its beginning: an identity at a contended gate nearly always has somebody in line, but while
//! something of it gets through every few seconds it is paced, not starved. Where the limit itself
//! is shorter (a small window), that is the shortest spell. An identity is *starved* while its
//! spells make up more than `share` of the window that ends now. Of a process younger than its
//! window the time before counts as not blocked.
//!
//! Who gets something through every few seconds is never blocked for long, and may yet get far less
//! than the others who wait beside it. So an identity is starved too while the times in which it
//! received less than half of its fair share make up more than `share` of the window. What
//! its share is, and when it was below it, [`shares`] tells.
//!
//! What passed meanwhile is counted per app, while anybody is blocked, in the same parts of the
//! window: an app is named for a starved identity with what it was admitted in those parts in which
//! the identity was blocked. Statements that nobody asks for (an exempt rule's, an ungated one's,
//! no rule's) are only known if the shell tells of them.
//!
//! Cost: one look into a map for a statement that is admitted, queued or refused; some more for those
//! that wait, or are admitted while others do. Admitted at once, an identity leaves nothing behind.

mod buckets;
mod census;
mod shares;
mod told;
mod watched;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::time::Duration;

use self::buckets::{BUCKETS_MAX, Buckets, Mask};
pub use self::census::Census;
use self::census::Stage;
pub(crate) use self::shares::Pool;
pub use self::shares::{AppShare, AppShareKey, BELOW};
use self::shares::{Below, Shares};
pub use self::told::{Admitted, Blocked, Passage, StarvationConfig, Starved, StarvedKind};
use self::watched::{Scale, Watched, bucket_of};
use crate::request::Lane;
use crate::{AppKey, GateKey, IdentityKey, MonoTime, Reason, Request, RuleKey};

/// Identities watched at once: those that are blocked, or were for a time that counts, or below
/// their share, within the window. Clients choose identities, so there is a bound (4 MiB); when it is
/// reached, those that have not asked for a while and those that suffered least are forgotten.
pub const IDENTITIES_MAX: usize = 4_096;

/// Apps whose admissions are counted apart, over all rules; the rest is counted together.
pub const APPS_MAX: usize = 256;

/// Identities that are named at once, those that were blocked longest: more is not for reading.
pub const STARVED_MAX: usize = 200;

/// Apps that are named for each.
pub const MEANWHILE_MAX: usize = 10;

/// A spell that is shorter does not count: it is a wait at the pace.
const SPELL_MIN: Duration = Duration::from_secs(5);

/// A refused identity that has not asked again for so long does not want to any more. The longest
/// advice of `retry_after_ms` is 60 s ± 25 %.
const ASKS_WITHIN: Duration = Duration::from_secs(90);

/// Identities looked at in one piece: some tens of microseconds.
const LOOKED_AT_MAX: usize = 256;

/// How often room is made when there is none.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Watches one cluster.
#[derive(Debug)]
pub(crate) struct Starvation {
    config: StarvationConfig,
    /// Nanoseconds in a bucket.
    bucket_ns: u64,
    spell_min: Duration,
    identities: BTreeMap<(RuleKey, IdentityKey), Watched>,
    apps: BTreeMap<Passed, Buckets>,
    shares: Shares,
    /// Of all identities, also of those that are not watched.
    waiters: u64,
    refused_at: Option<MonoTime>,
    swept_at: MonoTime,
}

type Passed = (Passage, Option<RuleKey>, Option<AppKey>);

/// How somebody suffers, for which share of the window, since when, and in which of its parts.
type Found = (StarvedKind, f64, MonoTime, Mask);

/// Whether whoever was refused for this contends for what its gate lets through: it is not its own
/// rule that refuses it.
fn contends(request: &Request, reason: Reason) -> bool {
    let has_cap = request.terms.max_rate.is_some() || request.terms.max_in_flight.is_some();
    match reason {
        Reason::Paced
        | Reason::GateClosed
        | Reason::NoData
        | Reason::QueueFull
        | Reason::Timeout => !has_cap,
        Reason::Ratio
        | Reason::Hold
        | Reason::Deny
        | Reason::BudgetConcurrency
        | Reason::BudgetRate
        | Reason::BudgetShare
        | Reason::BudgetQuery
        | Reason::Guard
        | Reason::Quarantined
        | Reason::Shutdown => false,
    }
}

impl Starvation {
    pub(crate) fn new(config: StarvationConfig, now: MonoTime) -> Self {
        let window = config.window.max(Duration::from_nanos(1));
        let config = StarvationConfig { window, ..config };
        let window_ns = u64::try_from(config.window.as_nanos()).unwrap_or(u64::MAX);
        let spell_min = SPELL_MIN.min(config.window.mul_f64(config.share.clamp(0.0, 1.0)));
        Self {
            config,
            bucket_ns: window_ns.checked_div(BUCKETS_MAX).unwrap_or(0).max(1),
            spell_min,
            identities: BTreeMap::new(),
            apps: BTreeMap::new(),
            shares: Shares::new(spell_min),
            waiters: 0,
            refused_at: None,
            swept_at: now,
        }
    }

    pub(crate) fn config(&self) -> StarvationConfig {
        self.config
    }

    /// A statement queues.
    pub(crate) fn queued(&mut self, now: MonoTime, request: &Request) {
        self.waiters = self.waiters.saturating_add(1);
        if let Some(watched) = self.asked(now, request) {
            watched.waiters = watched.waiters.saturating_add(1);
        }
    }

    /// A statement is refused, at once or after it waited.
    pub(crate) fn refused(&mut self, now: MonoTime, request: &Request, reason: Reason) {
        self.refused_at = Some(now);
        self.asked(now, request);
        if contends(request, reason) {
            let below = self.shares.refused(now, request);
            self.note_below(now, below);
        }
    }

    /// A waiter leaves the queue, whatever becomes of it.
    pub(crate) fn left(&mut self, now: MonoTime, request: &Request) {
        self.waiters = self.waiters.saturating_sub(1);
        if let Some(watched) = self.identities.get_mut(&(request.rule, request.identity)) {
            watched.waiters = watched.waiters.saturating_sub(1);
            watched.asked_at = now;
        }
    }

    /// Whether [`Self::admitted`] would change anything.
    pub(crate) fn heeds_admitted(&self, now: MonoTime, who: (RuleKey, IdentityKey)) -> bool {
        self.is_anybody_blocked(now) || self.identities.contains_key(&who)
    }

    /// A statement that asked may run.
    pub(crate) fn admitted(&mut self, now: MonoTime, request: &Request) {
        if let Entry::Occupied(mut entry) = self.identities.entry((request.rule, request.identity))
        {
            let scale = Scale { bucket_ns: self.bucket_ns, spell_min: self.spell_min };
            let watched = entry.get_mut();
            watched.end_spell(now, scale);
            watched.blocked_since = (watched.waiters > 0).then_some(now);
            if watched.is_idle(bucket_of(now, self.bucket_ns)) {
                entry.remove();
            }
        }
        if self.is_anybody_blocked(now) {
            self.passed(now, (Passage::Asked, Some(request.rule), Some(request.app)));
        }
    }

    /// A statement stands in the line of its gate now.
    pub(crate) fn stands_in_line(&mut self, now: MonoTime, request: &Request) {
        let below = self.shares.joins(now, request);
        self.note_below(now, below);
    }

    /// It does not any more.
    pub(crate) fn leaves_line(&mut self, now: MonoTime, request: &Request) {
        self.shares.leaves(now, request);
    }

    /// Whether what is admitted of this request's identity takes part in a contention.
    pub(crate) fn is_shared(&self, now: MonoTime, request: &Request) -> bool {
        self.shares.counts(now, request)
    }

    /// Then it is admitted, with so many rows as far as is known.
    pub(crate) fn shared(&mut self, now: MonoTime, request: &Request, rows: f64) {
        let below = self.shares.admitted(now, request, rows);
        self.note_below(now, below);
    }

    /// And has turned out to be so many rows more, or fewer.
    pub(crate) fn settled(&mut self, now: MonoTime, at: (GateKey, Lane), more: f64) {
        let below = self.shares.settled(now, at, more);
        self.note_below(now, below);
    }

    /// All lines are gone. What is left of gates that are not kept is to be dropped.
    pub(crate) fn forget_lines(&mut self, kept: impl Fn(GateKey) -> bool) -> Vec<Pool> {
        self.shares.forget_lines(kept)
    }

    /// What the identities of apps received of late, from behind `after` on: so many apps at most.
    pub(crate) fn app_shares(
        &mut self,
        now: MonoTime,
        after: Option<AppShareKey>,
        most: usize,
    ) -> Vec<AppShare> {
        self.shares.apps_after(now, after, most)
    }

    /// A statement passed, at a time at which others were held back.
    pub(crate) fn passed(&mut self, now: MonoTime, mut by: Passed) {
        if self.apps.len() >= APPS_MAX && !self.apps.contains_key(&by) {
            self.sweep(now);
            if self.apps.len() >= APPS_MAX {
                by = (by.0, None, None);
            }
        }
        let bucket = self.bucket(now);
        self.apps.entry(by).or_default().add(bucket, 1);
    }

    /// Takes the next piece of a census. Whether there is more to be taken.
    pub(crate) fn look(&self, now: MonoTime, census: &mut Census) -> bool {
        match &mut census.stage {
            Stage::Identities { after } => {
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                let identities = self.identities.range((from, Bound::Unbounded));
                *after = None;
                for (key, watched) in identities.take(LOOKED_AT_MAX) {
                    *after = Some(*key);
                    census.found.extend(self.assess(now, *key, watched));
                }
                if after.is_none() {
                    census.rank();
                }
                true
            }
            Stage::Causes { named } => {
                let next = census.found.iter().skip(*named).map(|(_, mask)| *mask);
                // Whoever stood before the same gate was blocked at the same time.
                let mut next = next.filter(|mask| !census.causes.contains_key(mask));
                let Some(mask) = next.next() else { return false };
                *named = census.found.iter().position(|(_, of)| *of == mask).unwrap_or(*named);
                census.causes.insert(mask, self.meanwhile(now, mask));
                true
            }
        }
    }

    /// Who is blocked now, starved or not, in order of rule and identity, from behind `after` on: at
    /// most [`IDENTITIES_MAX`].
    pub(crate) fn blocked_after(
        &self,
        now: MonoTime,
        after: Option<(RuleKey, IdentityKey)>,
    ) -> impl Iterator<Item = Blocked> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let identities = self.identities.range((from, Bound::Unbounded));
        let asking = identities.filter(move |(_, watched)| watched.still_asks(now));
        asking.filter_map(|(&(rule, identity), watched)| {
            let since = watched.blocked_since?;
            Some(Blocked { rule, identity, since, asked_at: watched.asked_at })
        })
    }

    /// Identities and apps that may still be named.
    pub(crate) fn known(
        &self,
    ) -> (impl Iterator<Item = IdentityKey>, impl Iterator<Item = AppKey>) {
        let identities = self.identities.keys().map(|(_, identity)| *identity);
        let of_identities = self.identities.values().map(|watched| watched.app);
        let apps = self.apps.keys().filter_map(|(_, _, app)| *app).chain(of_identities);
        (identities, apps)
    }

    /// A statement asked in vain.
    fn asked(&mut self, now: MonoTime, request: &Request) -> Option<&mut Watched> {
        let scale = self.scale();
        let watched = self.watch(now, (request.rule, request.identity), request.app)?;
        if watched.blocked_since.is_none() || !watched.still_asks(now) {
            watched.end_spell(now, scale);
            watched.blocked_since = Some(now);
        }
        watched.asked_at = now;
        Some(watched)
    }

    fn note_below(&mut self, now: MonoTime, below: Option<Below>) {
        let Some(below) = below else { return };
        let scale = self.scale();
        let key = (below.rule, below.identity);
        if let Some(watched) = self.watch(now, key, below.app) {
            watched.below.add(&below, scale);
        }
    }

    /// Watches an identity from now on, if there is room.
    fn watch(
        &mut self,
        now: MonoTime,
        key: (RuleKey, IdentityKey),
        app: AppKey,
    ) -> Option<&mut Watched> {
        if self.identities.len() >= IDENTITIES_MAX && !self.identities.contains_key(&key) {
            self.sweep(now);
            if self.identities.len() >= IDENTITIES_MAX {
                return None;
            }
        }
        Some(self.identities.entry(key).or_insert_with(|| Watched::new(now, app)))
    }

    /// Whether somebody waits, or was refused and may ask again.
    pub(crate) fn is_anybody_blocked(&self, now: MonoTime) -> bool {
        let lately = |at: MonoTime| now.saturating_since(at) <= ASKS_WITHIN;
        self.waiters > 0 || self.refused_at.is_some_and(lately)
    }

    fn assess(
        &self,
        now: MonoTime,
        (rule, identity): (RuleKey, IdentityKey),
        watched: &Watched,
    ) -> Option<(Starved, Mask)> {
        let of = |(kind, share, since, mask)| {
            let was_below = !watched.below.times.is_over(self.bucket(now));
            let starved = Starved {
                rule,
                app: watched.app,
                identity,
                kind,
                share,
                since,
                blocked: watched.blocked_since.is_some() && watched.still_asks(now),
                received_of_share: was_below.then(|| watched.below.received_of_share()),
                meanwhile: Vec::new(),
            };
            (starved, mask)
        };
        let found = match (self.blocked(now, watched), self.below(now, watched)) {
            // Who is blocked is below its share for about as long.
            (Some(blocked), Some(below)) if blocked.1 < below.1 / 2.0 => Some(below),
            (Some(blocked), _) => Some(blocked),
            (None, below) => below,
        };
        found.map(of)
    }

    /// If it was blocked for too long: for which share of the window, since when, and when.
    fn blocked(&self, now: MonoTime, watched: &Watched) -> Option<Found> {
        let bucket = self.bucket(now);
        let past = watched.spells.mask(bucket);
        let begin = now.saturating_sub(self.config.window);
        let present = watched
            .blocked_since
            .map(|since| (since, watched.spell_end(now)))
            .filter(|(since, end)| end.saturating_since(*since) >= self.spell_min && *end > begin);
        let spell =
            present.map_or(Duration::ZERO, |(since, end)| end.saturating_since(since.max(begin)));
        let blocked = Duration::from_nanos(watched.spells.sum(bucket, Mask::ALL));
        let share = self.too_much(blocked.saturating_add(spell))?;
        let mask = present
            .map_or(past, |(since, end)| past.union(self.mask(bucket, since.max(begin), end)));
        let first = watched.first.filter(|_| past != Mask::NONE);
        Some((StarvedKind::Blocked, share, first.or(watched.blocked_since)?, mask))
    }

    /// The same if it was below its share.
    fn below(&self, now: MonoTime, watched: &Watched) -> Option<Found> {
        let bucket = self.bucket(now);
        let times = &watched.below.times;
        let share = self.too_much(Duration::from_nanos(times.sum(bucket, Mask::ALL)))?;
        Some((StarvedKind::BelowShare, share, watched.below.first, times.mask(bucket)))
    }

    /// The share of the window that a time is, if that is too large.
    fn too_much(&self, time: Duration) -> Option<f64> {
        let share = time.div_duration_f64(self.config.window).min(1.0);
        (share >= self.config.share && share > 0.0).then_some(share)
    }

    fn meanwhile(&self, now: MonoTime, mask: Mask) -> Vec<Admitted> {
        let bucket = self.bucket(now);
        let mut admitted: Vec<Admitted> = self
            .apps
            .iter()
            .map(|(&(passage, rule, app), counts)| {
                let count = counts.sum(bucket, mask);
                Admitted { passage, rule, app, count }
            })
            .filter(|admitted| admitted.count > 0)
            .collect();
        admitted.sort_by(|a, b| a.passage.cmp(&b.passage).then(b.count.cmp(&a.count)));
        admitted.truncate(MEANWHILE_MAX);
        admitted
    }

    /// Makes room: first those go that say nothing about this window, then, of the identities of
    /// which nobody waits, the quarter that was blocked least.
    fn sweep(&mut self, now: MonoTime) {
        if now.saturating_since(self.swept_at) < SWEEP_INTERVAL {
            return;
        }
        self.swept_at = now;
        let bucket = self.bucket(now);
        self.apps.retain(|_, counts| !counts.is_over(bucket));
        self.identities
            .retain(|_, watched| watched.still_asks(now) || !watched.says_nothing(bucket));
        if self.identities.len() < IDENTITIES_MAX {
            return;
        }
        let mut least: Vec<(u64, MonoTime, (RuleKey, IdentityKey))> = self
            .identities
            .iter()
            .filter(|(_, watched)| watched.waiters == 0)
            .map(|(key, watched)| (watched.suffered(bucket), watched.asked_at, *key))
            .collect();
        let quarter = (IDENTITIES_MAX / 4).min(least.len().saturating_sub(1));
        if !least.is_empty() {
            least.select_nth_unstable(quarter);
        }
        for (_, _, key) in least.iter().take(IDENTITIES_MAX / 4) {
            self.identities.remove(key);
        }
    }

    fn scale(&self) -> Scale {
        Scale { bucket_ns: self.bucket_ns, spell_min: self.spell_min }
    }

    fn bucket(&self, at: MonoTime) -> u64 {
        bucket_of(at, self.bucket_ns)
    }

    fn mask(&self, last: u64, from: MonoTime, to: MonoTime) -> Mask {
        let (from, to) = (self.bucket(from), self.bucket(to));
        let agos = last.saturating_sub(to)..=last.saturating_sub(from).min(BUCKETS_MAX);
        agos.fold(Mask::NONE, Mask::with)
    }
}

#[cfg(test)]
mod tests;
