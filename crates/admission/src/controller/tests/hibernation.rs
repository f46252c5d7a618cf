//! Who comes after an hour in which nobody needed a signal.

use super::*;
use crate::OnNoData;
use crate::lag::{LagConfig, LagTracker, ReplicaKey};

const SECOND: Duration = Duration::from_secs(1);
const REPLICA: ReplicaKey = ReplicaKey(1);

/// Lag and threads are healthy, and have hibernated ever since.
fn hibernating(on_no_data: OnNoData) -> Lab {
    let mut config = config();
    config.signals[0] = SignalConfig { on_no_data, ..SignalConfig::at_threshold(LAG, 1.0) };
    let mut lab = Lab::new(config);
    lab.lag(0.0);
    lab.sample(THREADS, 5.0);
    lab.controller.hibernate([LAG, THREADS].into_iter());
    lab
}

impl Lab {
    /// A value that was asked for so long ago.
    fn answer(&mut self, key: SignalKey, value: f64, asked_ago: Duration) {
        let asked_at = self.now.saturating_sub(asked_ago);
        self.controller.handle_answer(self.now, asked_at, key, Sample::Value(value));
        self.collect();
    }
}

#[test]
fn the_first_who_comes_waits_for_a_value_that_was_asked_for_since() {
    let mut lab = hibernating(OnNoData::Closed);
    lab.run(SECOND);
    lab.answer(LAG, 0.0, ms(1));
    assert!(lab.controller.hibernates());
    lab.admitted(FREE, ETL, Terms::default());
    assert!(lab.controller.hibernates());
    let first = lab.queued(GATED, ETL, Terms::default());
    assert!(!lab.controller.hibernates());
    assert_eq!(lab.controller.waiting().next().unwrap().reason, Reason::NoData);
    assert!(lab.controller.signal(LAG, lab.now).unwrap().awaited);
    lab.run(ms(50));
    lab.answer(LAG, 0.0, ms(51));
    assert!(lab.ends().is_empty());
    lab.answer(LAG, 0.0, ms(50));
    assert_eq!(lab.winners(), [first]);
    lab.admitted(GATED, ETL, Terms::default());
    // The threads are awaited yet.
    let double = lab.queued(DOUBLE, ETL, Terms::default());
    lab.answer(THREADS, 5.0, ms(0));
    assert_eq!(lab.winners(), [double]);
}

#[test]
fn a_value_that_shuts_counts_whenever_it_was_asked_for() {
    let mut lab = hibernating(OnNoData::Closed);
    lab.queued(GATED, ETL, Terms::default());
    lab.run(ms(10));
    lab.answer(LAG, 7.0, ms(20));
    assert_eq!(lab.controller.waiting().next().unwrap().reason, Reason::GateClosed);
    assert_eq!(lab.refused(GATED, DDL, rejecting(0.0)).reason, Reason::GateClosed);
    lab.answer(LAG, 0.0, ms(20));
    assert!(lab.ends().is_empty());
    lab.answer(LAG, 0.0, ms(0));
    assert_eq!(lab.winners().len(), 1);
}

#[test]
fn without_an_answer_the_last_value_becomes_stale_and_on_no_data_speaks() {
    for (on_no_data, admits) in [(OnNoData::Open, true), (OnNoData::Closed, false)] {
        let mut lab = hibernating(on_no_data);
        let waits = lab.queued(GATED, ETL, Terms { max_delay: SECOND * 9, ..Terms::default() });
        lab.run(SECOND * 3);
        assert!(lab.ends().is_empty());
        lab.run(ms(1));
        assert_eq!(lab.winners(), if admits { vec![waits] } else { vec![] });
    }
}

#[test]
fn who_cannot_wait_in_line_is_refused_for_what_the_new_value_says_and_not_before() {
    let mut lab = hibernating(OnNoData::Closed);
    let waits = lab.queued(GATED, ETL, rejecting(0.0));
    lab.run(ms(50));
    assert_eq!(lab.ends(), [(waits, End::DecideAgain)]);
    let waits = lab.queued(GATED, ETL, rejecting(0.0));
    lab.lag(7.0);
    lab.run(ms(20));
    assert_eq!(lab.ends(), [(waits, End::DecideAgain)]);
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::GateClosed);
    // A check that is lost whatever the gate says needs no value.
    let mut lab = hibernating(OnNoData::Closed);
    assert_eq!(lab.refused(GATED, ETL, rejecting(1.0)).reason, Reason::Ratio);
}

#[test]
fn who_is_only_observed_wakes_it_and_is_not_told_that_it_would_be_refused() {
    let mut lab = hibernating(OnNoData::Closed);
    assert_eq!(lab.observed(GATED, ETL, Terms::default()), None);
    assert!(!lab.controller.hibernates());
    lab.lag(7.0);
    assert_eq!(
        lab.observed(GATED, ETL, Terms::default()).map(|it| it.reason),
        Some(Reason::GateClosed)
    );
}

/// Heartbeats every second, one replica that applies them at once, and somebody comes.
struct Path {
    lab: Lab,
    tracker: LagTracker,
    seq: u64,
}

impl Path {
    fn asked(threshold: f64, replicas: &[ReplicaKey]) -> Self {
        let mut config = config();
        config.signals[0] = SignalConfig::at_threshold(LAG, threshold);
        let lab = Lab::new(config);
        let limits = LagConfig {
            replicas: replicas.to_vec(),
            thresholds: BTreeMap::new(),
            ignore_slowest: 0,
            min_replicas: 1,
            stale_after: SECOND * 3,
            caught_up_below: SECOND,
            writer_stale_after: SECOND * 2,
        };
        let tracker = LagTracker::new(limits, lab.now);
        let mut path = Self { lab, tracker, seq: 0 };
        path.beat();
        path.probe(1);
        path.lab.controller.hibernate([LAG].into_iter());
        path.lab.run(ms(600));
        path
    }

    fn beat(&mut self) {
        self.seq += 1;
        self.tracker.handle_heartbeat_committed(self.seq, self.lab.now);
    }

    fn probe(&mut self, shows: u64) {
        self.tracker.handle_replica_asked(self.lab.now, REPLICA);
        self.tracker.handle_replica_shows(self.lab.now, REPLICA, Some(shows));
        self.publish();
    }

    fn publish(&mut self) {
        let reading = self.tracker.reading(self.lab.now);
        self.lab.controller.handle_lag(self.lab.now, LAG, &reading);
        self.lab.collect();
    }
}

#[test]
fn the_lag_is_known_when_a_heartbeat_of_since_is_shown_or_an_older_one_proves_it_small() {
    // What is shown may hide 600 ms.
    for (threshold, by_the_old) in [(0.5, false), (1.0, true)] {
        let mut path = Path::asked(threshold, &[REPLICA]);
        let waits = path.lab.queued(GATED, ETL, Terms::default());
        path.publish();
        assert_eq!(path.lab.winners(), [], "published, and not asked");
        path.probe(1);
        assert_eq!(path.lab.winners().contains(&waits), by_the_old, "at {threshold}");
        path.beat();
        path.lab.run(ms(100));
        path.publish();
        path.probe(2);
        assert_eq!(path.lab.winners().contains(&waits), !by_the_old, "at {threshold}");
    }
}

#[test]
fn a_replica_that_has_stopped_shuts_the_gate_before_anybody_has_passed() {
    let mut path = Path::asked(0.5, &[REPLICA]);
    path.lab.queued(GATED, ETL, Terms::default());
    for _ in 0..7 {
        path.beat();
        path.probe(1);
        path.lab.run(ms(100));
    }
    assert!(path.lab.ends().is_empty());
    assert_eq!(path.lab.controller.waiting().next().unwrap().reason, Reason::GateClosed);
}

#[test]
fn a_cluster_without_replicas_has_nothing_to_wait_for_but_the_next_word() {
    let mut path = Path::asked(1.0, &[]);
    let waits = path.lab.queued(GATED, ETL, Terms::default());
    path.publish();
    assert_eq!(path.lab.winners(), [waits]);
}
