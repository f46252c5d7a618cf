//! Freshness: what the gate does without data.

use super::*;
use crate::OnNoData;
use crate::lag::{LagConfig, LagTracker};

const SECOND: Duration = Duration::from_secs(1);

fn lab_with(on_no_data: OnNoData) -> Lab {
    let mut config = config();
    config.signals[0] = SignalConfig { on_no_data, ..SignalConfig::at_threshold(LAG, 1.0) };
    Lab::new(config)
}

#[test]
fn closed_without_data_means_waiting_for_the_first_value() {
    let mut lab = lab_with(OnNoData::Closed);
    let ticket = lab.queued(GATED, ETL, Terms::default());
    assert_eq!(lab.controller.waiting().next().unwrap().reason, Reason::NoData);
    lab.run(SECOND);
    lab.lag(0.2);
    assert_eq!(lab.winners(), [ticket]);
    lab.run(SECOND * 3);
    lab.admitted(GATED, ETL, Terms::default());
    lab.run(Duration::from_nanos(1));
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
}

#[test]
fn open_without_data_lets_through_and_a_value_that_turns_stale_opens_by_itself() {
    let mut lab = lab_with(OnNoData::Open);
    lab.admitted(GATED, ETL, Terms::default());
    lab.lag(9.0);
    let ticket = lab.queued(GATED, ETL, Terms::default());
    lab.run(SECOND * 3);
    assert!(lab.ends().is_empty());
    lab.run(ms(1));
    assert_eq!(lab.winners(), [ticket]);
}

#[test]
fn hold_last_keeps_either_word_for_a_while_and_then_closes() {
    for (value, before) in [(0.0, true), (9.0, false)] {
        let mut lab = lab_with(OnNoData::HoldLast(SECOND * 10));
        assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
        lab.lag(value);
        for (wait, open) in [(SECOND * 12, before), (SECOND * 2, false)] {
            lab.run(wait);
            let decision = lab.ask(GATED, ETL, rejecting(0.0));
            assert_eq!(matches!(decision, Decision::Admit(_)), open, "{decision:?}");
            assert!(matches!(
                lab.controller.signal(LAG, lab.now).unwrap().state,
                crate::SignalState::NoData { policy: OnNoData::HoldLast(_) }
            ));
        }
    }
}

#[test]
fn a_gap_in_the_data_starts_the_ramp_over_even_when_nobody_looked() {
    let mut lab = lab_with(OnNoData::Closed);
    lab.lag(0.0);
    for _ in 0..6 {
        lab.now = lab.now.saturating_add(SECOND);
        lab.lag(0.0);
    }
    assert_eq!(lab.controller.release_per_s(GATED, lab.now), Some(64_000.0));
    lab.now = lab.now.saturating_add(SECOND * 4);
    lab.lag(0.0);
    assert_eq!(lab.controller.release_per_s(GATED, lab.now), Some(1_000.0));
}

#[test]
fn failed_samples_leave_the_value_until_it_is_stale() {
    let mut lab = lab_with(OnNoData::Closed);
    lab.lag(0.5);
    for _ in 0..3 {
        lab.run(SECOND);
        lab.controller.handle_sample(lab.now, LAG, Sample::Failed);
        lab.admitted(GATED, ETL, Terms::default());
    }
    lab.run(ms(1));
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
    let view = lab.controller.signals(lab.now).next().unwrap();
    assert_eq!((view.value, view.age), (Some(0.5), Some(ms(3_001))));
}

#[test]
fn a_band_keeps_the_gate_as_it_is() {
    let mut config = config();
    config.signals[0] =
        SignalConfig { open_at: 0.5, close_at: 2.0, ..SignalConfig::at_threshold(LAG, 1.0) };
    let mut lab = Lab::new(config);
    for (value, open) in
        [(1.0, false), (0.5, false), (0.49, true), (1.99, true), (2.0, false), (1.0, false)]
    {
        lab.lag(value);
        let decision = lab.ask(GATED, ETL, rejecting(0.0));
        assert_eq!(matches!(decision, Decision::Admit(_)), open, "at {value}: {decision:?}");
    }
}

#[test]
fn a_lag_tracker_feeds_the_gate_and_its_silence_closes_it() {
    let mut lab = lab_with(OnNoData::Closed);
    let mut tracker = LagTracker::new(
        LagConfig {
            replicas: vec![],
            thresholds: std::collections::BTreeMap::new(),
            ignore_slowest: 0,
            min_replicas: 1,
            stale_after: SECOND * 3,
            caught_up_below: SECOND,
            writer_stale_after: SECOND * 2,
        },
        lab.now,
    );
    lab.controller.handle_lag(lab.now, LAG, &tracker.reading(lab.now));
    lab.admitted(GATED, ETL, Terms::default());
    let one = LagConfig { replicas: vec![crate::lag::ReplicaKey(1)], ..tracker.config().clone() };
    tracker.reconfigure(one, lab.now);
    lab.run(SECOND * 4);
    lab.controller.handle_lag(lab.now, LAG, &tracker.reading(lab.now));
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
}
