//! Starvation: who is kept from working for too much of the time, and who worked meanwhile.
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
//! What passed meanwhile is counted per app, while anybody is blocked, in the same parts of the
//! window: an app is named for a starved identity with what it was admitted in those parts in which
//! the identity was blocked. Statements that nobody asks for (an exempt rule's, an ungated one's,
//! no rule's) are only known if the shell tells of them.
//!
//! Cost: one look into a map for a statement that is admitted, queued or refused. Admitted at once,
//! an identity leaves nothing behind.

mod buckets;
mod census;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::time::Duration;

use self::buckets::{BUCKETS_MAX, Buckets, Mask};
pub use self::census::Census;
use self::census::Stage;
use crate::{AppKey, IdentityKey, MonoTime, Request, RuleKey};

/// Identities watched at once: those that are blocked, or were for a time that counts, within the
/// window. Clients choose identities, so there is a bound (2 MiB); when it is reached, those that
/// have not asked for a while and those that were blocked least are forgotten.
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

/// When an identity counts as starved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StarvationConfig {
    /// The share of the window that it was blocked for.
    pub share: f64,
    /// The time that is looked back on.
    pub window: Duration,
}

/// An identity that is starved.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// The rule it asks under.
    pub rule: RuleKey,
    /// Its app.
    pub app: AppKey,
    /// Who.
    pub identity: IdentityKey,
    /// The share of the window that it was blocked for, at most 1.
    pub share: f64,
    /// When the first spell began that counts.
    pub since: MonoTime,
    /// Whether it is blocked now.
    pub blocked: bool,
    /// Who was admitted meanwhile, those that did not ask first, then whoever was admitted most.
    pub meanwhile: Vec<Admitted>,
}

/// An identity that asks in vain now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The rule it asks under.
    pub rule: RuleKey,
    /// Who.
    pub identity: IdentityKey,
    /// Since when nothing of its was admitted.
    pub since: MonoTime,
    /// When it last asked, or stopped waiting.
    pub asked_at: MonoTime,
}

/// What was admitted while somebody was blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Whether it had to ask.
    pub passage: Passage,
    /// The rule; `None`: no rule matched, or many did.
    pub rule: Option<RuleKey>,
    /// The app; `None`: those beyond [`APPS_MAX`].
    pub app: Option<AppKey>,
    /// How many statements.
    pub count: u64,
}

/// How a statement passed. In the order in which they are the likely cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Passage {
    /// A rule exempts it.
    Exempt,
    /// No rule matched, or one that gates nothing.
    Ungated,
    /// It asked, and was admitted.
    Asked,
}

impl Passage {
    /// The stable name: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::Ungated => "ungated",
            Self::Asked => "asked",
        }
    }
}

/// Watches one cluster.
#[derive(Debug)]
pub(crate) struct Starvation {
    config: StarvationConfig,
    /// Nanoseconds in a bucket.
    bucket_ns: u64,
    spell_min: Duration,
    identities: BTreeMap<(RuleKey, IdentityKey), Watched>,
    apps: BTreeMap<Passed, Buckets>,
    /// Of all identities, also of those that are not watched.
    waiters: u64,
    refused_at: Option<MonoTime>,
    swept_at: MonoTime,
}

type Passed = (Passage, Option<RuleKey>, Option<AppKey>);

/// One identity.
#[derive(Debug)]
struct Watched {
    app: AppKey,
    waiters: u32,
    /// When the spell under way began.
    blocked_since: Option<MonoTime>,
    /// When it last asked, or stopped waiting.
    asked_at: MonoTime,
    /// When the first spell began that is in `spells`.
    first: Option<MonoTime>,
    /// The spells that are over and count, in nanoseconds.
    spells: Buckets,
}

impl Starvation {
    pub(crate) fn new(config: StarvationConfig, now: MonoTime) -> Self {
        let window = config.window.max(Duration::from_nanos(1));
        let config = StarvationConfig { window, ..config };
        let window_ns = u64::try_from(config.window.as_nanos()).unwrap_or(u64::MAX);
        Self {
            config,
            bucket_ns: window_ns.checked_div(BUCKETS_MAX).unwrap_or(0).max(1),
            spell_min: SPELL_MIN.min(config.window.mul_f64(config.share.clamp(0.0, 1.0))),
            identities: BTreeMap::new(),
            apps: BTreeMap::new(),
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
    pub(crate) fn refused(&mut self, now: MonoTime, request: &Request) {
        self.refused_at = Some(now);
        self.asked(now, request);
    }

    /// A waiter leaves the queue, whatever becomes of it.
    pub(crate) fn left(&mut self, now: MonoTime, request: &Request) {
        self.waiters = self.waiters.saturating_sub(1);
        if let Some(watched) = self.identities.get_mut(&(request.rule, request.identity)) {
            watched.waiters = watched.waiters.saturating_sub(1);
            watched.asked_at = now;
        }
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
        let key = (request.rule, request.identity);
        if self.identities.len() >= IDENTITIES_MAX && !self.identities.contains_key(&key) {
            self.sweep(now);
            if self.identities.len() >= IDENTITIES_MAX {
                return None;
            }
        }
        let scale = Scale { bucket_ns: self.bucket_ns, spell_min: self.spell_min };
        let watched = self.identities.entry(key).or_insert_with(|| Watched {
            app: request.app,
            waiters: 0,
            blocked_since: None,
            asked_at: now,
            first: None,
            spells: Buckets::default(),
        });
        if watched.blocked_since.is_none() || !watched.still_asks(now) {
            watched.end_spell(now, scale);
            watched.blocked_since = Some(now);
        }
        watched.asked_at = now;
        Some(watched)
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
        let share = blocked.saturating_add(spell).div_duration_f64(self.config.window).min(1.0);
        if share < self.config.share || share <= 0.0 {
            return None;
        }
        let mask = present
            .map_or(past, |(since, end)| past.union(self.mask(bucket, since.max(begin), end)));
        let first = watched.first.filter(|_| past != Mask::NONE);
        let starved = Starved {
            rule,
            app: watched.app,
            identity,
            share,
            since: first.or(watched.blocked_since)?,
            blocked: watched.blocked_since.is_some() && watched.still_asks(now),
            meanwhile: Vec::new(),
        };
        Some((starved, mask))
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
            .retain(|_, watched| watched.still_asks(now) || !watched.spells.is_over(bucket));
        if self.identities.len() < IDENTITIES_MAX {
            return;
        }
        let mut least: Vec<(u64, MonoTime, (RuleKey, IdentityKey))> = self
            .identities
            .iter()
            .filter(|(_, watched)| watched.waiters == 0)
            .map(|(key, watched)| (watched.spells.sum(bucket, Mask::ALL), watched.asked_at, *key))
            .collect();
        let quarter = (IDENTITIES_MAX / 4).min(least.len().saturating_sub(1));
        if !least.is_empty() {
            least.select_nth_unstable(quarter);
        }
        for (_, _, key) in least.iter().take(IDENTITIES_MAX / 4) {
            self.identities.remove(key);
        }
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

#[derive(Debug, Clone, Copy)]
struct Scale {
    bucket_ns: u64,
    spell_min: Duration,
}

impl Watched {
    /// Whether it still wants to work, as far as can be told.
    fn still_asks(&self, now: MonoTime) -> bool {
        self.waiters > 0 || now.saturating_since(self.asked_at) <= ASKS_WITHIN
    }

    /// Until when the spell under way is known to have lasted.
    fn spell_end(&self, now: MonoTime) -> MonoTime {
        if self.waiters > 0 { now } else { self.asked_at }
    }

    /// The spell under way is over, and is counted if it was long enough. Whoever is admitted at
    /// its first attempt after a refusal has wanted to work until then.
    fn end_spell(&mut self, now: MonoTime, scale: Scale) {
        let end = if self.still_asks(now) { now } else { self.asked_at };
        let Some(since) = self.blocked_since.take() else { return };
        if end.saturating_since(since) < scale.spell_min {
            return;
        }
        if self.spells.mask(bucket_of(now, scale.bucket_ns)) == Mask::NONE {
            self.first = Some(since);
        }
        let last = bucket_of(end, scale.bucket_ns);
        let first = bucket_of(since, scale.bucket_ns).max(last.saturating_sub(BUCKETS_MAX));
        for bucket in first..=last {
            let begins = bucket.saturating_mul(scale.bucket_ns);
            let ends = begins.saturating_add(scale.bucket_ns).min(end.as_nanos());
            self.spells.add(bucket, ends.saturating_sub(begins.max(since.as_nanos())));
        }
    }

    /// Nothing is to be known about it.
    fn is_idle(&self, bucket: u64) -> bool {
        self.waiters == 0 && self.blocked_since.is_none() && self.spells.is_over(bucket)
    }
}

fn bucket_of(at: MonoTime, bucket_ns: u64) -> u64 {
    at.as_nanos().checked_div(bucket_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests;
