use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
}

fn signal(on_no_data: OnNoData) -> Signal {
    let config = SignalConfig { on_no_data, ..SignalConfig::at_threshold(SignalKey(1), 10.0) };
    Signal::new(config, at(100))
}

#[test]
fn it_opens_below_the_threshold_and_closes_at_it() {
    let mut signal = signal(OnNoData::Closed);
    for (value, state) in [
        (9.99, SignalState::Open),
        (10.0, SignalState::Closed),
        (-1.0, SignalState::Open),
        (11.0, SignalState::Closed),
    ] {
        signal.record(at(101), value, None);
        assert_eq!(signal.state(at(101)), state, "at {value}");
    }
}

#[test]
fn inside_the_band_it_says_what_it_said_also_after_a_gap() {
    let mut signal = signal(OnNoData::Closed);
    signal.config.open_at = 5.0;
    signal.record(at(101), 7.0, None);
    assert_eq!(signal.state(at(101)), SignalState::Closed, "never been healthy");
    signal.record(at(102), 4.0, None);
    signal.record(at(103), 9.0, None);
    assert_eq!((signal.state(at(103)), signal.since), (SignalState::Open, at(102)));
    signal.record(at(200), 9.0, None);
    assert_eq!((signal.state(at(200)), signal.since), (SignalState::Open, at(200)));
}

#[test]
fn values_are_stale_after_their_time_and_not_at_it() {
    let mut signal = signal(OnNoData::Closed);
    assert_eq!(signal.view(at(101)).since, at(100));
    signal.record(at(101), 1.0, None);
    assert_eq!(signal.state(at(104)), SignalState::Open);
    let stale_at = at(104).saturating_add(Duration::from_nanos(1));
    assert_eq!(signal.next_change(at(104)), Some(stale_at));
    let no_data = SignalState::NoData { policy: OnNoData::Closed };
    let view = signal.view(stale_at);
    assert_eq!((view.state, view.since, view.lets_through), (no_data, stale_at, false));
    assert_eq!(signal.view(at(500)).since, stale_at);
    assert_eq!(signal.next_change(stale_at), None);
}

#[test]
fn a_held_word_changes_when_the_value_turns_stale_and_when_the_hold_ends() {
    let mut signal = signal(OnNoData::HoldLast(30 * SECOND));
    assert!(!signal.lets_through(at(101)), "nothing to hold");
    signal.record(at(101), 1.0, None);
    let stale_at = signal.next_change(at(101)).unwrap();
    let over_at = signal.next_change(stale_at).unwrap();
    assert_eq!(over_at.saturating_since(stale_at), 30 * SECOND);
    assert!(signal.lets_through(stale_at));
    assert!(!signal.lets_through(over_at));
    assert_eq!(signal.next_change(over_at), None);
}

#[test]
fn late_and_impossible_values_are_dropped() {
    let mut signal = signal(OnNoData::Closed);
    signal.record(at(105), 1.0, None);
    signal.record(at(104), 50.0, None);
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        signal.record(at(106), value, None);
    }
    let view = signal.view(at(106));
    assert_eq!((view.value, view.age), (Some(1.0), Some(SECOND)));
    assert_eq!(view.state, SignalState::Open);
}

#[test]
fn a_signal_that_never_ages_has_no_timer() {
    let mut signal = signal(OnNoData::Closed);
    signal.config.stale_after = Duration::MAX;
    signal.record(at(101), 1.0, None);
    assert_eq!(signal.next_change(at(101)), None);
    assert_eq!(signal.state(at(1_000_000)), SignalState::Open);
}

#[test]
fn a_value_with_a_threshold_of_its_own_is_held_against_that_and_the_band_goes_with_it() {
    let banded = SignalConfig { open_at: 0.5, ..SignalConfig::at_threshold(SignalKey(1), 1.0) };
    let mut signal = Signal::new(banded, at(0));
    for (value, own, open) in [
        (0.4, None, true),
        (29.0, Some(30.0), true),
        (30.0, Some(30.0), false),
        (16.0, Some(30.0), false),
        (14.0, Some(30.0), true),
        (0.3, Some(0.25), false),
    ] {
        signal.record(at(1), value, own);
        assert_eq!(signal.lets_through(at(1)), open, "{value} of {own:?}");
        assert_eq!(signal.cause().threshold, own.unwrap_or(1.0));
        assert_eq!(signal.view(at(1)).threshold, own.unwrap_or(1.0));
    }
}
