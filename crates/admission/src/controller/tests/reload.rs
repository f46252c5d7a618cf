//! The policy changes while statements wait.

use super::*;

#[test]
fn everybody_is_decided_again_in_order_of_arrival() {
    let mut lab = Lab::lagging();
    let first = lab.queued(GATED, ETL, Terms::default());
    let second = lab.queued(FREE, DDL, Terms { hold: true, ..Terms::default() });
    lab.run(ms(5));
    let third = lab.queued(FREE, ETL, with_ratio(1.0));
    lab.controller.reconfigure(config(), lab.now);
    lab.collect();
    let again = [first, second, third].map(|ticket| (ticket, End::DecideAgain));
    assert_eq!(lab.ends(), again);
    assert_eq!(lab.controller.waiting_len(), 0);
}

#[test]
fn a_statement_decided_again_keeps_its_arrival_its_place_and_its_deadline() {
    let mut lab = Lab::lagging();
    let request = lab.request(GATED, ETL, Terms::default());
    lab.queued(GATED, ETL, Terms::default());
    lab.run(ms(2_000));
    lab.controller.reconfigure(config(), lab.now);
    lab.collect();
    lab.ends();
    let late = lab.queued(GATED, ETL, Terms::default());
    let Decision::Queue(again) = lab.controller.request(lab.now, &request) else {
        panic!("still shut")
    };
    assert!(again > late);
    lab.run(ms(10));
    lab.lag(0.0);
    let end = End::Admitted { waited: ms(2_010), reason: None };
    assert_eq!(lab.ends(), [(again, end)], "ahead of the one that asked before it");
    lab.controller.reconfigure(config(), lab.now);
    lab.run(ms(4_000));
    match lab.controller.request(lab.now, &Request { gate: DOUBLE, ..request }) {
        Decision::Reject(refusal) => assert_eq!(refusal.reason, Reason::NoData),
        other => panic!("its deadline has passed: {other:?}"),
    }
}

#[test]
fn values_survive_a_reload_and_are_held_against_the_new_limits() {
    let mut lab = Lab::healthy();
    lab.lag(3.0);
    let mut higher = config();
    higher.signals[0] =
        SignalConfig { stale_after: ms(60_000), ..SignalConfig::at_threshold(LAG, 5.0) };
    lab.controller.reconfigure(higher, lab.now);
    lab.admitted(GATED, ETL, Terms::default());
    lab.controller.reconfigure(config(), lab.now);
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::GateClosed);
    // A signal that was away has nothing to say when it comes back.
    lab.controller.reconfigure(ControllerConfig { signals: vec![], ..config() }, lab.now);
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
    lab.controller.reconfigure(config(), lab.now);
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
}

#[test]
fn a_reload_does_not_let_the_crowd_through_at_once() {
    let mut lab = Lab::lagging();
    for _ in 0..500 {
        lab.queued(GATED, ETL, Terms::default());
    }
    lab.lag(0.0);
    lab.run(ms(100));
    assert!((100..=102).contains(&lab.winners().len()));
    lab.controller.reconfigure(config(), lab.now);
    lab.collect();
    for _ in lab.ends() {
        lab.queued(GATED, ETL, Terms::default());
    }
    lab.run(ms(100));
    let released = lab.winners().len();
    assert!((100..=115).contains(&released), "{released}");
    // The ramp goes on: the gate has been open all the time.
    lab.run(ms(800));
    assert_eq!(lab.controller.release_per_s(GATED, lab.now), Some(2_000.0));
}

#[test]
fn a_reload_without_waiters_delays_nobody() {
    let mut lab = Lab::healthy();
    lab.controller.reconfigure(config(), lab.now);
    lab.admitted(GATED, ETL, Terms::default());
    lab.admitted(GATED, ETL, rejecting(0.0));
}

#[test]
fn a_lifted_hold_runs_at_once() {
    let mut lab = Lab::healthy();
    lab.queued(GATED, ETL, Terms { hold: true, ..Terms::default() });
    lab.run(ms(1_500));
    lab.controller.reconfigure(config(), lab.now);
    lab.collect();
    lab.ends();
    // Who cannot wait is not refused for a line that is not there.
    lab.admitted(GATED, DDL, rejecting(0.0));
    lab.admitted(FREE, ETL, Terms::default());
    // Nobody is in line, but more may come back: it queues, and is released at the next check.
    let again = lab.queued(GATED, ETL, Terms::default());
    lab.run(ms(1));
    assert_eq!(lab.winners(), [again]);
}

#[test]
fn a_statement_of_an_older_policy_at_a_gate_that_is_gone_is_decided_again() {
    let mut lab = Lab::healthy();
    let ticket = lab.queued(GateKey(77), ETL, Terms::default());
    assert_eq!(lab.refused(GateKey(77), ETL, rejecting(0.0)).reason, Reason::NoData);
    lab.run(ms(70));
    assert!(lab.ends().is_empty(), "not in a busy loop");
    lab.run(ms(60));
    assert_eq!(lab.ends(), [(ticket, End::DecideAgain)]);
}
