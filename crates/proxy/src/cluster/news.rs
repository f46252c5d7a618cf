//! Lines of the log for what shuts and opens a gate, and for replicas that change their state.
//!
//! It is looked at a few times a second, never on the way of a statement. What comes and goes
//! between two looks has no line; the metrics have it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use admission::lag::ReplicaState;
use admission::{MonoTime, SignalKey, SignalState, SignalView};
use policy::{Action, ClusterPolicy, Signal, SignalKind};
use tokio::time::MissedTickBehavior;

use super::Cluster;
use super::telling::{News, Telling};
use crate::board::ReplicaReading;
use crate::printable::Printable;
use crate::telemetry::state_label;

/// How often it is looked.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// What has no data when it is first seen gets this long before that is news: a probe must log in.
const FIRST_DATA_WITHIN: Duration = Duration::from_secs(5);

/// What a signal does to the gates that look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Open,
    Shut,
    /// Nothing is known, and the gate is shut for that.
    Blind,
    /// Nothing is known, and the gate is open all the same.
    BlindOpen,
}

/// What a replica is, as far as the log tells it. Which of them is the slowest changes all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    state: ReplicaState,
    counts: bool,
    /// The error that stopped its replication: another one is news.
    code: Option<u32>,
    /// Heartbeats pass it by.
    passed_by: bool,
}

/// What was told.
#[derive(Default)]
struct Newsroom {
    signals: BTreeMap<SignalKey, Topic<Says>>,
    replicas: BTreeMap<Arc<str>, Topic<Standing>>,
    /// The signals that gates look at, of this policy.
    gating: Option<(Arc<ClusterPolicy>, BTreeSet<SignalKey>)>,
}

/// One thing that there may be news of.
enum Topic<S> {
    /// First seen at this time, without data.
    Begins(MonoTime),
    Told(Telling<S>),
}

/// Whether the state in which something is first seen is news.
#[derive(Clone, Copy, Debug)]
enum First<S> {
    IsNoNews,
    /// It is, at once, but for the one that is expected.
    IsNewsUnless(S),
    /// It gets some time to come to the one that is expected.
    WaitsFor(S),
}

impl Cluster {
    /// Tells of gates and replicas. Runs until it is dropped.
    pub(super) async fn tell_news(&self) {
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut newsroom = Newsroom::default();
        loop {
            ticks.tick().await;
            let policy = self.policy();
            let (views, now) = self.signal_views();
            self.tell_signals(&mut newsroom, &policy, &views, now);
            self.tell_replicas(&mut newsroom, now);
        }
    }

    fn signal_views(&self) -> (Vec<SignalView>, MonoTime) {
        let gatekeeper = self.gatekeeper.lock();
        let now = self.clock.now();
        (gatekeeper.controller.signals(now).collect(), now)
    }

    fn tell_signals(
        &self,
        newsroom: &mut Newsroom,
        policy: &Arc<ClusterPolicy>,
        views: &[SignalView],
        now: MonoTime,
    ) {
        let gating = newsroom.gating(policy);
        newsroom.signals.retain(|key, _| gating.contains(key));
        // What is awaited says in a moment what it has to say.
        let told = |view: &&SignalView| gating.contains(&view.key) && !view.awaited;
        for view in views.iter().filter(told) {
            let Some(signal) = policy.signal(view.key) else { continue };
            let says = Says::of(signal, view);
            let topic = newsroom.signals.entry(view.key).or_insert(Topic::Begins(now));
            let first = match says {
                Says::Blind | Says::BlindOpen => First::WaitsFor(Says::Open),
                Says::Open | Says::Shut => First::IsNoNews,
            };
            if let Some(news) = topic.look(says, first, now) {
                self.tell_signal(signal, view, says, &news);
            }
        }
    }

    fn tell_signal(
        &self,
        signal: &Signal,
        view: &SignalView,
        says: Says,
        news: &News<Option<Says>>,
    ) {
        let cluster = &self.name;
        let signal_name = &signal.name;
        let News { before: _, untold } = *news;
        // A gate that opens without data is that of an app that is idle: its last value is no reason.
        let is_reason = says != Says::Open || !matches!(view.state, SignalState::NoData { .. });
        let value = view.value.filter(|_| is_reason).map(|value| format!("{value:.3}"));
        let value = value.as_deref().unwrap_or("none");
        let threshold = view.threshold;
        let (slowest, hindrance) = match signal.kind {
            SignalKind::Lag { .. } => {
                let now = self.clock.now();
                (self.probes.slowest(now), self.probes.lag_hindrance(now))
            }
            SignalKind::ThreadsRunning
            | SignalKind::HistoryListLength
            | SignalKind::Query(_)
            | SignalKind::Status(_)
            | SignalKind::Latency(_) => (None, None),
        };
        let server = slowest.as_deref().unwrap_or("-");
        let advice = hindrance.as_ref().map_or("", |hindrance| hindrance.advice);
        let cause = hindrance.as_ref().map_or("-", |hindrance| &hindrance.why);
        match says {
            Says::Open => tracing::info!(
                %cluster, signal = %signal_name, %value, %threshold, untold, "a gate opens"
            ),
            Says::Shut => tracing::warn!(
                %cluster, signal = %signal_name, %value, %threshold, %server, untold,
                "a gate shuts: the signal is at or over its threshold"
            ),
            Says::Blind => tracing::warn!(
                %cluster, signal = %signal_name, last_value = %value, %threshold, untold, cause,
                advice, "a gate shuts: the signal has no data (on_no_data)"
            ),
            Says::BlindOpen => tracing::warn!(
                %cluster, signal = %signal_name, last_value = %value, %threshold, untold, cause,
                advice, "a signal has no data, and its gate stays open (on_no_data)"
            ),
        }
    }

    fn tell_replicas(&self, newsroom: &mut Newsroom, now: MonoTime) {
        let replicas = self.probes.replicas(now);
        newsroom.replicas.retain(|server, _| replicas.iter().any(|now| now.server == *server));
        for replica in &replicas {
            let standing = Standing::of(replica);
            let topic =
                newsroom.replicas.entry(replica.server.clone()).or_insert(Topic::Begins(now));
            let counted = Standing::COUNTED;
            let first = match standing.state {
                ReplicaState::NoData | ReplicaState::NeverCaughtUp => First::WaitsFor(counted),
                ReplicaState::Counted
                | ReplicaState::Unreachable
                | ReplicaState::DelayedOnPurpose
                | ReplicaState::IgnoredSlowest
                | ReplicaState::ApplierStopped
                | ReplicaState::ReceiverStopped => First::IsNewsUnless(counted),
            };
            if let Some(news) = topic.look(standing, first, now) {
                self.tell_replica(replica, standing, &news, now);
            }
        }
    }

    fn tell_replica(
        &self,
        replica: &ReplicaReading,
        Standing { state, counts, code: _, passed_by }: Standing,
        News { before, untold }: &News<Option<Standing>>,
        now: MonoTime,
    ) {
        let (cluster, server) = (&self.name, &replica.server);
        let before = before.map_or("none", |before| state_label(before.state));
        let lag = replica.view.lag.map(|lag| format!("{:.3}", lag.as_secs_f64()));
        let lag_s = lag.as_deref().unwrap_or("none");
        let trouble = replica.trouble().unwrap_or_else(|| "none".to_owned());
        let error = Printable(trouble.as_bytes());
        let advice = replica.advice();
        let left_for_s = now.saturating_since(replica.view.since).as_secs();
        match state {
            ReplicaState::Counted if passed_by => tracing::warn!(
                %cluster, %server, state = %state_label(state), %before, %lag_s, %error, untold,
                advice, "heartbeats pass a replica by; its lag grows and counts"
            ),
            ReplicaState::Counted | ReplicaState::IgnoredSlowest => tracing::info!(
                %cluster, %server, state = %state_label(state), %before, %lag_s, untold,
                "a replica's lag counts again"
            ),
            ReplicaState::ApplierStopped | ReplicaState::ReceiverStopped => tracing::warn!(
                %cluster, %server, state = %state_label(state), %before, %lag_s, counts, %error,
                untold, advice,
                "a replica's replication is stopped{}",
                if counts { "; its lag grows and counts" } else { "; it is left out" },
            ),
            ReplicaState::Unreachable
            | ReplicaState::NeverCaughtUp
            | ReplicaState::DelayedOnPurpose
            | ReplicaState::NoData => tracing::warn!(
                %cluster, %server, state = %state_label(state), %before, %lag_s, %error, untold,
                advice, for_s = left_for_s,
                "a replica is left out: its lag does not count"
            ),
        }
    }
}

impl Says {
    fn of(signal: &Signal, view: &SignalView) -> Self {
        let of_traffic = matches!(signal.kind, SignalKind::Latency(_));
        match (view.state, view.lets_through) {
            // Its app is idle: nothing is amiss.
            (SignalState::NoData { .. }, true) if of_traffic => Self::Open,
            (SignalState::NoData { .. }, true) => Self::BlindOpen,
            (SignalState::NoData { .. }, false) => Self::Blind,
            (SignalState::Open | SignalState::Closed, true) => Self::Open,
            (SignalState::Open | SignalState::Closed, false) => Self::Shut,
        }
    }
}

impl Standing {
    const COUNTED: Self =
        Self { state: ReplicaState::Counted, counts: true, code: None, passed_by: false };

    fn of(replica: &ReplicaReading) -> Self {
        let counts = replica.view.counts;
        let of = |state| Self { state, counts, ..Self::COUNTED };
        match replica.view.state {
            // They take turns at being the slowest.
            ReplicaState::IgnoredSlowest => Self::COUNTED,
            state @ (ReplicaState::ApplierStopped | ReplicaState::ReceiverStopped) => {
                Self { code: replica.replication.code(), ..of(state) }
            }
            state @ ReplicaState::Counted => {
                Self { passed_by: replica.is_passed_by(), ..of(state) }
            }
            state @ (ReplicaState::Unreachable
            | ReplicaState::NeverCaughtUp
            | ReplicaState::DelayedOnPurpose
            | ReplicaState::NoData) => of(state),
        }
    }
}

impl Newsroom {
    /// The signals that some gate of this policy looks at.
    fn gating(&mut self, policy: &Arc<ClusterPolicy>) -> BTreeSet<SignalKey> {
        if let Some((known, gating)) = &self.gating
            && Arc::ptr_eq(known, policy)
        {
            return gating.clone();
        }
        // Those made at runtime have the default gate.
        let gates = policy.rules.of_file().iter().filter_map(|rule| match rule.action {
            Action::Throttle { gate, .. } => Some(gate),
            Action::Exempt | Action::Deny => None,
        });
        let gates: BTreeSet<_> = gates.chain([policy.default_gate]).collect();
        let signals = gates.into_iter().flat_map(|gate| policy.gate_signals(gate));
        let gating: BTreeSet<SignalKey> = signals.map(|signal| signal.key).collect();
        self.gating = Some((policy.clone(), gating.clone()));
        gating
    }
}

impl<S: Copy + PartialEq> Topic<S> {
    /// The news of being in this state, and what was told before, if anything was.
    fn look(&mut self, state: S, first: First<S>, now: MonoTime) -> Option<News<Option<S>>> {
        let expected = match (&mut *self, first) {
            (Self::Told(telling), _) => {
                let News { before, untold } = telling.look(state, now)?;
                return Some(News { before: Some(before), untold });
            }
            (Self::Begins(at), First::WaitsFor(_))
                if now.saturating_since(*at) < FIRST_DATA_WITHIN =>
            {
                return None;
            }
            (Self::Begins(_), First::WaitsFor(expected) | First::IsNewsUnless(expected)) => {
                expected
            }
            (Self::Begins(_), First::IsNoNews) => state,
        };
        let mut telling = Telling::new(expected, now);
        let news = telling.look(state, now);
        *self = Self::Told(telling);
        news.map(|News { before: _, untold }| News { before: None, untold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn a_start_is_no_news_unless_data_never_comes() {
        let waits = First::WaitsFor(Says::Open);
        let mut healthy = Topic::Begins(at(0));
        assert_eq!(healthy.look(Says::Blind, waits, at(1)), None);
        assert_eq!(healthy.look(Says::Open, First::IsNoNews, at(2)), None);
        let shut = healthy.look(Says::Shut, First::IsNoNews, at(3));
        assert_eq!(shut, Some(News { before: Some(Says::Open), untold: 0 }));
        let mut blind = Topic::Begins(at(0));
        assert_eq!(blind.look(Says::Blind, waits, at(4)), None);
        assert_eq!(blind.look(Says::Blind, waits, at(5)), Some(News { before: None, untold: 0 }));
        assert_eq!(blind.look(Says::Blind, waits, at(6)), None);
    }

    #[test]
    fn what_is_wrong_from_the_begin_is_news_and_nothing_was_told_before() {
        let mut stopped = Topic::Begins(at(0));
        let first = First::IsNewsUnless("counted");
        assert_eq!(stopped.look("stopped", first, at(0)), Some(News { before: None, untold: 0 }));
        let mended = Some(News { before: Some("stopped"), untold: 0 });
        assert_eq!(stopped.look("counted", first, at(9)), mended);
        assert_eq!(Topic::Begins(at(0)).look("counted", first, at(0)), None);
    }

    #[test]
    fn every_signal_of_a_gate_is_told_of_and_no_other() {
        let text = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1, \
            probe: { user: u }, signals: { threads_running: { threshold: 9 }, \
            history_list_length: { threshold: 9 } } } }\nrules:\n  \
            - { name: r, gate: [threads_running], permanent: true }\n";
        let policy = policy::load(text).unwrap().clusters[0].clone();
        let mut newsroom = Newsroom::default();
        let gating = newsroom.gating(&policy);
        let names = gating.iter().filter_map(|key| policy.signal(*key));
        let mut names: Vec<&str> = names.map(|signal| &*signal.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["lag", "threads_running"]);
    }
}
