//! What is known of one replica.

use std::time::Duration;

use super::config::{ASKED_WITHIN, LagConfig, RETURNS_WITHIN, SHOWN_AGAIN_WITHIN};
use super::heartbeats::{Heartbeats, Missing};
use crate::MonoTime;

/// One replica, as metrics and status show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaView {
    /// Its lag, also while it is not counted; `None` if it is not known.
    pub lag: Option<Duration>,
    /// What its lag must stay below: its own threshold, or the signal's.
    pub threshold: Duration,
    /// Since the last good probe, or since it appeared.
    pub age: Duration,
    /// What there is to say of it: whether it counts, and if not, why; that its replication is
    /// stopped comes before that.
    pub state: ReplicaState,
    /// Whether its lag counts for the cluster's. One that was counted when its replication stopped
    /// still does: it lags in truth.
    pub counts: bool,
    /// Since when it is counted or left out for this reason. An ignored one: since when it is
    /// counted.
    pub since: MonoTime,
    /// Measured by heartbeats, and has shown none of this process since it appeared.
    pub shows_none: bool,
}

/// Whether a replica counts, and if not, why. The first of these that applies, from the top:
///
/// ```text
///   DelayedOnPurpose   its delay is configured
///   Unreachable        its server is silent for stale_after, has only refused, or is no replica
///   ApplierStopped, ReceiverStopped
///                      its server says so; whether it counts is what the rest says
///   NoData             it answers, but there is no lag to be told
///   NeverCaughtUp ──lag < its threshold──▶ Counted ◀──▶ IgnoredSlowest
///         ▲                                     │
///         └── gone too long, further behind than its absence, or the delay was lifted
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaState {
    /// Its lag counts.
    Counted,
    /// Its server is silent for `stale_after`, or it has never answered a probe but with errors, or
    /// its server is no replica.
    Unreachable,
    /// Has not been below its threshold since it appeared.
    NeverCaughtUp,
    /// A delay is configured on it.
    DelayedOnPurpose,
    /// One of the `ignore_slowest`.
    IgnoredSlowest,
    /// Reachable, but there is no lag to be told: no heartbeat yet, or the writer has stopped.
    NoData,
    /// Nothing is applied: its applier (the SQL thread) is stopped.
    ApplierStopped,
    /// Nothing arrives: its receiver (the I/O thread) is stopped, or cannot connect.
    ReceiverStopped,
}

/// The part of a replica's replication that is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoppedThread {
    /// The SQL thread.
    Applier,
    /// The I/O thread.
    Receiver,
}

#[derive(Debug)]
pub(super) struct Replica {
    /// What its lag must stay below.
    threshold: Duration,
    appeared_at: MonoTime,
    probed_at: Option<MonoTime>,
    /// Its server's last word, whatever that was; none before the first good answer.
    heard_at: Option<MonoTime>,
    /// Its longest silence since its last good answer, but for the one that lasts.
    silence: Duration,
    /// Its last answer was an error, and no probe has been in vain since.
    refuses: bool,
    /// When it was asked for its last good answer, and when it was asked that has not answered yet.
    asked_at: Option<MonoTime>,
    asking_since: Option<MonoTime>,
    delayed_since: Option<MonoTime>,
    belief: Belief,
    measure: Measure,
    /// The first failed probe since the last good one.
    failed_since: Option<MonoTime>,
    /// It was found to be no replica then, and has not answered as one since.
    no_replica_since: Option<MonoTime>,
    /// What its server says is stopped, and since when it is known.
    stopped: Option<(StoppedThread, MonoTime)>,
    /// When its replication ran again, or its lag was known again.
    recovered_at: MonoTime,
    /// How many its server says it has.
    appliers: u32,
}

/// Whether its lag is believed.
#[derive(Debug, Clone, Copy)]
enum Belief {
    /// Appeared at this time and has not caught up since: it must show a heartbeat of since then. The
    /// first of these.
    CatchingUp { since: MonoTime, first: Option<u64> },
    /// Caught up at this time.
    Counted { since: MonoTime },
}

/// How its lag is known.
#[derive(Debug, Clone, Copy)]
enum Measure {
    None,
    /// By heartbeats: the newest it shows, and the oldest that it does not show.
    Heartbeats {
        shown: Option<u64>,
        missing: Option<Missing>,
    },
    /// By its own report: the last lag it told, when, and whether it has said since that
    /// replication runs.
    Reported {
        lag: Duration,
        at: MonoTime,
        applier: Applier,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applier {
    Running,
    Stopped,
}

impl Replica {
    pub(super) fn appears(now: MonoTime) -> Self {
        Self {
            threshold: Duration::ZERO,
            appeared_at: now,
            probed_at: None,
            heard_at: None,
            silence: Duration::ZERO,
            refuses: false,
            asked_at: None,
            asking_since: None,
            delayed_since: None,
            belief: Belief::CatchingUp { since: now, first: None },
            measure: Measure::None,
            failed_since: None,
            no_replica_since: None,
            stopped: None,
            recovered_at: now,
            appliers: 1,
        }
    }

    /// It has another name, and was this one: it is one that was away, and comes back with its next answer.
    pub(super) fn is_known_as(&mut self, before: Self) {
        match (before.belief, self.belief) {
            (Belief::Counted { .. }, Belief::CatchingUp { .. }) => {
                let Self { threshold, asking_since, .. } = *self;
                *self = Self { threshold, asking_since, ..before };
            }
            (Belief::Counted { .. } | Belief::CatchingUp { .. }, _) => {}
        }
    }

    pub(super) fn must_stay_below(&mut self, threshold: Duration) {
        self.threshold = threshold;
    }

    pub(super) fn probed_at(&self) -> Option<MonoTime> {
        self.probed_at
    }

    /// When it was asked for its last good answer, if that is known.
    pub(super) fn asked_at(&self) -> Option<MonoTime> {
        self.asked_at
    }

    pub(super) fn has_appliers(&mut self, appliers: u32) {
        self.appliers = appliers.max(1);
    }

    pub(super) fn appliers(&self) -> u32 {
        self.appliers
    }

    pub(super) fn is_asked(&mut self, now: MonoTime) {
        self.asking_since = Some(now);
    }

    /// The newest own heartbeat it shows.
    pub(super) fn shown(&self) -> Option<u64> {
        match self.measure {
            Measure::Heartbeats { shown, .. } => shown,
            Measure::None | Measure::Reported { .. } => None,
        }
    }

    pub(super) fn heartbeat_committed(&mut self, seq: u64, committed: Missing) {
        if let Measure::Heartbeats { shown, missing: missing @ None } = &mut self.measure
            && shown.is_none_or(|shown| shown < seq)
        {
            *missing = Some(committed);
            self.recovered_at = committed.resumed_at.unwrap_or(self.recovered_at);
        }
        if let Belief::CatchingUp { first: first @ None, .. } = &mut self.belief {
            *first = Some(seq);
        }
    }

    /// Whether it counts, and may show the first heartbeat behind a gap at any moment.
    pub(super) fn is_awaited(&self, now: MonoTime, config: &LagConfig) -> bool {
        let counts = matches!(self.belief, Belief::Counted { .. })
            && self.delayed_since.is_none()
            && self.unreachable_since(now, config).is_none();
        counts && self.missing().is_some_and(|missing| missing.may_be_on_its_way(now))
    }

    fn missing(&self) -> Option<Missing> {
        match self.measure {
            Measure::Heartbeats { missing, .. } => missing,
            Measure::None | Measure::Reported { .. } => None,
        }
    }

    pub(super) fn shows(
        &mut self,
        now: MonoTime,
        seq: Option<u64>,
        heartbeats: &Heartbeats,
        config: &LagConfig,
    ) {
        let before = self.lag(now, heartbeats, config);
        let seq = seq.or_else(|| self.shown_still(now, config));
        let missing = match self.measure {
            // Nothing moved: the first missing one may be older than what is remembered.
            Measure::Heartbeats { shown, missing: Some(missing) } if shown == seq => Some(missing),
            Measure::Heartbeats { .. } | Measure::None | Measure::Reported { .. } => {
                heartbeats.first_after(seq, config.writer_stale_after)
            }
        };
        self.measure = Measure::Heartbeats { shown: seq, missing };
        let gap = self.answers(now);
        let behind = self.lag(now, heartbeats, config);
        // Its lag at the last probe plus its absence is what `before` has grown to by now.
        let explained = before.unwrap_or(gap).saturating_add(config.stale_after);
        let rebuilt = gap > config.stale_after && behind.is_some_and(|behind| behind > explained);
        self.returns(now, gap, rebuilt, config);
        // A server that was the primary shows what was written to it then.
        if let Belief::CatchingUp { first: Some(first), .. } = self.belief
            && seq.is_some_and(|seq| seq >= first)
        {
            self.catches_up(now, behind);
        }
    }

    /// What it has shown, where it shows nothing and has not been away: somebody has emptied the table, or made it anew,
    /// and what it has applied it has applied. One that was away may be another.
    fn shown_still(&self, now: MonoTime, config: &LagConfig) -> Option<u64> {
        let stayed = now.saturating_since(self.probed_at?) <= config.stale_after;
        self.shown().filter(|_| stayed)
    }

    pub(super) fn reports(
        &mut self,
        now: MonoTime,
        lag: Option<Duration>,
        heartbeats: &Heartbeats,
        config: &LagConfig,
    ) {
        let told = match (lag, self.measure) {
            (Some(lag), _) => Some((lag, now, Applier::Running)),
            (None, Measure::Reported { lag, at, .. }) => Some((lag, at, Applier::Stopped)),
            (None, Measure::None | Measure::Heartbeats { .. }) => None,
        };
        if matches!(self.measure, Measure::None) {
            self.recovered_at = now;
        }
        self.measure =
            told.map_or(Measure::None, |(lag, at, applier)| Measure::Reported { lag, at, applier });
        let gap = self.answers(now);
        self.returns(now, gap, false, config);
        self.catches_up(now, self.lag(now, heartbeats, config));
    }

    pub(super) fn refuses(&mut self, now: MonoTime, config: &LagConfig) {
        if self.no_replica_since.is_some() {
            return;
        }
        if self.heard_at.is_none() {
            return self.probe_failed(now);
        }
        self.is_heard(now, config);
        self.refuses = true;
        self.tells_no_more();
    }

    pub(super) fn probe_failed(&mut self, now: MonoTime) {
        self.refuses = false;
        self.failed_since = self.failed_since.or(Some(now));
        self.tells_no_more();
    }

    /// Its server has said something; that it is silent to the probe says nothing then.
    pub(super) fn is_heard(&mut self, now: MonoTime, config: &LagConfig) {
        let Some(heard_at) = self.heard_at.filter(|_| self.no_replica_since.is_none()) else {
            return;
        };
        let gap = now.saturating_since(heard_at);
        self.returns(now, gap, false, config);
        self.silence = self.silence.max(gap);
        self.heard_at = Some(now.max(heard_at));
    }

    /// The lag that it told last grows.
    fn tells_no_more(&mut self) {
        if let Measure::Reported { applier, .. } = &mut self.measure {
            *applier = Applier::Stopped;
        }
    }

    pub(super) fn is_no_replica(&mut self, now: MonoTime) {
        self.no_replica_since = self.no_replica_since.or(Some(now));
    }

    pub(super) fn delayed_on_purpose(&mut self, now: MonoTime, delayed: bool) {
        match (delayed, self.delayed_since) {
            (true, None) => self.delayed_since = Some(now),
            (false, Some(_)) => {
                self.delayed_since = None;
                self.belief = Belief::CatchingUp { since: now, first: None };
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    pub(super) fn says_stopped(&mut self, now: MonoTime, stopped: Option<StoppedThread>) {
        self.stopped = match (stopped, self.stopped) {
            (Some(thread), Some((known, since))) if thread == known => Some((known, since)),
            (Some(thread), Some(_) | None) => Some((thread, now)),
            (None, Some(_)) => {
                self.recovered_at = now;
                None
            }
            (None, None) => None,
        };
    }

    /// A good probe; for how long it was silent before it.
    fn answers(&mut self, now: MonoTime) -> Duration {
        let before = self.heard_at.unwrap_or(self.appeared_at);
        self.probed_at = Some(now.max(before));
        self.heard_at = self.probed_at;
        self.refuses = false;
        self.asked_at = self.asking_since.take().map(|asked| asked.min(now));
        self.failed_since = None;
        self.no_replica_since = None;
        std::mem::take(&mut self.silence).max(now.saturating_since(before))
    }

    fn returns(&mut self, now: MonoTime, gap: Duration, rebuilt: bool, config: &LagConfig) {
        match self.belief {
            _ if gap > RETURNS_WITHIN || rebuilt => {
                self.belief = Belief::CatchingUp { since: now, first: None };
            }
            Belief::Counted { .. } if gap > config.stale_after => {
                self.belief = Belief::Counted { since: now };
            }
            Belief::Counted { .. } | Belief::CatchingUp { .. } => {}
        }
    }

    fn catches_up(&mut self, now: MonoTime, lag: Option<Duration>) {
        match self.belief {
            Belief::CatchingUp { .. } if lag.is_some_and(|lag| lag < self.threshold) => {
                self.belief = Belief::Counted { since: now };
            }
            Belief::CatchingUp { .. } | Belief::Counted { .. } => {}
        }
    }

    /// Since when it counts as unreachable: silent for long, or never a good probe and a failure; or
    /// no replica is there.
    fn unreachable_since(&self, now: MonoTime, config: &LagConfig) -> Option<MonoTime> {
        if self.no_replica_since.is_some() {
            return self.no_replica_since;
        }
        let heard_at = self.heard_at.unwrap_or(self.appeared_at);
        // The next attempt of one that refuses may take longer than that. And whoever was not asked,
        // for Sluice itself stood still, may answer in a moment.
        let silent = !self.refuses
            && now.saturating_since(heard_at) > config.stale_after
            && self.in_vain_for(now) >= config.stale_after.mul_f64(ASKED_WITHIN);
        match (self.heard_at, self.failed_since) {
            (None, Some(failed_since)) => Some(failed_since),
            (Some(_), Some(_) | None) | (None, None) => {
                silent.then(|| heard_at.saturating_add(config.stale_after))
            }
        }
    }

    /// For how long it has been asked without a good answer.
    fn in_vain_for(&self, now: MonoTime) -> Duration {
        let asked = [self.failed_since, self.asking_since].into_iter().flatten().min();
        asked.map_or(Duration::ZERO, |asked| now.saturating_since(asked))
    }

    fn lag(&self, now: MonoTime, heartbeats: &Heartbeats, config: &LagConfig) -> Option<Duration> {
        match self.measure {
            Measure::None => None,
            Measure::Heartbeats { missing: Some(missing), .. } => {
                let known = !missing.may_be_on_its_way(now);
                known.then(|| now.saturating_since(missing.since))
            }
            Measure::Heartbeats { missing: None, .. } => {
                let silence = now.saturating_since(heartbeats.newest_at()?);
                (silence <= config.writer_stale_after).then_some(Duration::ZERO)
            }
            Measure::Reported { lag, applier: Applier::Running, .. } => Some(lag),
            Measure::Reported { lag, at, applier: Applier::Stopped } => {
                Some(lag.saturating_add(now.saturating_since(at)))
            }
        }
    }

    pub(super) fn view(
        &self,
        now: MonoTime,
        heartbeats: &Heartbeats,
        config: &LagConfig,
    ) -> ReplicaView {
        let lag = self.lag(now, heartbeats, config);
        let heard_at = self.probed_at.unwrap_or(self.appeared_at);
        let age = now.saturating_since(heard_at);
        let threshold = self.threshold;
        let shows_none = matches!(self.measure, Measure::Heartbeats { shown: None, .. });
        let left_out = |state, since| {
            let counts = false;
            ReplicaView { lag, threshold, age, state, counts, since, shows_none }
        };
        if let Some(since) = self.delayed_since {
            return left_out(ReplicaState::DelayedOnPurpose, since);
        }
        if let Some(since) = self.unreachable_since(now, config) {
            return left_out(ReplicaState::Unreachable, since);
        }
        let (state, since) = match (lag, self.belief) {
            (Some(_), Belief::Counted { since }) => {
                (ReplicaState::Counted, since.max(self.recovered_at))
            }
            (Some(_), Belief::CatchingUp { since, .. }) => {
                (ReplicaState::NeverCaughtUp, since.max(self.recovered_at))
            }
            (None, Belief::Counted { .. } | Belief::CatchingUp { .. }) => {
                let behind_a_gap = self.missing().map(|missing| missing.since);
                let last_beat = behind_a_gap.or_else(|| heartbeats.newest_at());
                let since = last_beat.map(|at| at.saturating_add(config.writer_stale_after));
                (ReplicaState::NoData, since.unwrap_or(self.appeared_at).min(now))
            }
        };
        let counts = state == ReplicaState::Counted;
        // That it is stopped explains its lag; it does not excuse it.
        let (state, since) = match self.stopped {
            Some((StoppedThread::Applier, since)) => (ReplicaState::ApplierStopped, since),
            Some((StoppedThread::Receiver, since)) => (ReplicaState::ReceiverStopped, since),
            None => (state, since),
        };
        ReplicaView { lag, threshold, age, state, counts, since, shows_none }
    }
}

impl Missing {
    fn may_be_on_its_way(&self, now: MonoTime) -> bool {
        self.resumed_at.is_some_and(|at| now.saturating_since(at) < SHOWN_AGAIN_WITHIN)
    }
}
