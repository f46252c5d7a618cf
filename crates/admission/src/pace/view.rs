//! What the pace tells: people, and who else goes by it.

use std::time::Duration;

use super::Pace;
use super::flow::Flow;
use crate::MonoTime;
use crate::lag::ReplicaKey;

/// What the adaptive pace goes by.
#[derive(Debug, Clone, PartialEq)]
pub struct PaceView {
    /// How long work runs on the primary before it is committed: the mean over rows.
    pub service: Duration,
    /// How much of what was completed was larger than a window, each by itself.
    pub oversize: u64,
    /// Apps that were held back within the last second until more of what they write is seen at the
    /// replicas.
    pub slow_starts: usize,
    /// The flows to the replicas that count.
    pub flows: Vec<FlowView>,
}

/// The flow to one replica.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowView {
    /// Which.
    pub replica: ReplicaKey,
    /// What it applies when it is busy, as far as that is known: rows a second.
    pub rate: f64,
    /// What is on its way, as part of the window; above 1 nothing more is let in. `None`: the
    /// replica tells only its lag, and there is no window.
    pub window_fill: Option<f64>,
    /// Seconds that replication takes without a queue.
    pub base: f64,
    /// What a usual large statement takes by itself where several are applied at once, in seconds;
    /// 0 where that is not told from a queue.
    pub alone: f64,
}

impl Pace {
    pub(crate) fn view(&self, now: MonoTime) -> PaceView {
        let aim = self.aim();
        let flows = self.governing.iter().filter_map(|replica| {
            let flow = self.flows.get(replica)?;
            Some(flow.view(*replica, (&self.ledger, &aim, now)))
        });
        let (service, oversize) = (self.service(), self.oversize);
        PaceView { service, oversize, slow_starts: 0, flows: flows.collect() }
    }

    /// The newest heartbeat that all replicas that count show, but for those that may lag for longer
    /// than the others; `None` where one tells its lag itself, or none counts.
    pub(crate) fn shown(&self) -> Option<u64> {
        let mut shown = self.flows_that_tell().map(Flow::shown);
        let first = shown.next()??;
        shown.try_fold(first, |least, shown| shown.map(|shown| shown.min(least)))
    }

    /// How long it takes without any queue until they show what has completed, in seconds.
    pub(crate) fn way(&self) -> f64 {
        let aim = self.aim();
        self.flows_that_tell().map(|flow| flow.way_at_least(&aim)).fold(0.0, f64::max)
    }

    /// Nobody is to wait for a replica that may lag for longer than another: what it shows may be
    /// minutes old.
    fn flows_that_tell(&self) -> impl Iterator<Item = &Flow> {
        let aim = self.aim();
        let all_are_lenient = self.flows_that_count().all(|flow| flow.is_lenient(&aim));
        self.flows_that_count().filter(move |flow| all_are_lenient || !flow.is_lenient(&aim))
    }

    /// Whether a longer queue is braked for than is let in on purpose.
    pub(crate) fn is_braked(&self) -> bool {
        let aim = self.aim();
        self.flows_that_count().any(|flow| flow.is_braked(&aim))
    }

    /// How long the lag takes to fall by so many seconds, where it is highest.
    pub(crate) fn falls_in(&self, excess: f64) -> Duration {
        let falls = self.flows_that_count().map(|flow| flow.falls_in(&self.ledger, excess));
        let longest = falls.max_by(f64::total_cmp).unwrap_or(excess);
        Duration::try_from_secs_f64(longest).unwrap_or_default()
    }

    /// How long what has completed and is not applied takes, where that is longest.
    pub(crate) fn applies_for(&self) -> Duration {
        let applies = self.flows_that_count().map(|flow| flow.applies_for(&self.ledger));
        let longest = applies.max_by(f64::total_cmp).unwrap_or(0.0);
        Duration::try_from_secs_f64(longest).unwrap_or_default()
    }

    /// Counts work that no window holds.
    pub(super) fn count_oversize(&mut self, cost: f64) {
        let aim = self.aim();
        if self.flows_that_count().any(|flow| flow.is_oversize(cost, &aim)) {
            self.oversize = self.oversize.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lag::{LagReading, Progress};
    use crate::pace::Cost;
    use crate::{AdaptivePacing, BinaryPacing, SignalKey};

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// With a threshold of a second.
    fn pace() -> Pace {
        let config = AdaptivePacing {
            lag: SignalKey(1),
            heartbeat_interval: Duration::from_millis(250),
            probe_interval: Duration::from_millis(100),
            learns_row_costs: false,
            otherwise: BinaryPacing::default(),
        };
        Pace::new(config, Duration::from_secs(1), at(0))
    }

    #[test]
    fn what_is_on_its_way_fills_the_window_until_it_is_acknowledged() {
        let mut pace = pace();
        let shows = |now, shown| LagReading {
            value: Some(0.0),
            at: now,
            slowest: Some(ReplicaKey(1)),
            threshold: None,
            governing: vec![Progress {
                replica: ReplicaKey(1),
                lag: Duration::ZERO,
                threshold: None,
                shown: Some(shown),
                committed_at: Some(now),
                answered_at: now,
                asked_at: now,
                appliers: 1,
            }],
        };
        pace.heartbeat_begun(at(0), 1);
        pace.handle_progress(at(10), &shows(at(10), 1));
        let fill = |pace: &Pace, now| pace.view(now).flows.first().and_then(|it| it.window_fill);
        assert_eq!(fill(&pace, at(10)), Some(0.0));
        let small = pace.admit(at(20), Cost::known(1.0));
        let large = pace.admit(at(20), Cost::known(1e6));
        assert!(fill(&pace, at(20)) > Some(1.0), "{:?}", pace.view(at(20)));
        pace.complete(at(120), small, 1.0);
        assert_eq!(pace.view(at(120)).oversize, 0);
        pace.complete(at(120), large, 1e6);
        assert_eq!(pace.view(at(120)).oversize, 1);
        assert!(pace.view(at(120)).service > Duration::ZERO);
        pace.heartbeat_begun(at(130), 2);
        pace.handle_progress(at(140), &shows(at(140), 2));
        assert_eq!(fill(&pace, at(140)), Some(0.0));
    }

    #[test]
    fn nobody_waits_until_a_replica_shows_that_may_lag_for_longer() {
        let mut pace = pace();
        for (now, seq) in [(0, 1), (250, 2), (500, 3)] {
            pace.heartbeat_begun(at(now), seq);
        }
        let progress = |replica, shown, threshold: Option<u64>| Progress {
            replica: ReplicaKey(replica),
            lag: Duration::ZERO,
            threshold: threshold.map(Duration::from_secs),
            shown: Some(shown),
            committed_at: None,
            answered_at: at(600),
            asked_at: at(600),
            appliers: 1,
        };
        let mut shown = |governing: &[Progress]| {
            pace.handle_progress(
                at(600),
                &LagReading {
                    value: Some(0.0),
                    at: at(600),
                    slowest: Some(ReplicaKey(1)),
                    threshold: None,
                    governing: governing.to_vec(),
                },
            );
            pace.shown()
        };
        let (near, far) = (progress(1, 3, None), progress(2, 1, Some(60)));
        assert_eq!(shown(&[near, far]), Some(3));
        assert_eq!(shown(&[far]), Some(1), "there is no other");
        assert_eq!(shown(&[near, progress(2, 2, None)]), Some(2));
        assert!((0.35..0.6).contains(&pace.way()), "{}", pace.way());
    }
}
