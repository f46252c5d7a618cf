//! The longest wait, and what a statement is told after it.

use super::*;

const WAIT: Duration = Duration::from_secs(5);

#[test]
fn a_deadline_is_kept_to_the_nanosecond_and_says_what_kept_the_statement() {
    let mut lab = Lab::lagging();
    lab.queued(GATED, ETL, Terms::default());
    assert_eq!(lab.controller.poll_timeout(), Some(lab.now.saturating_add(WAIT)));
    lab.run(WAIT.saturating_sub(Duration::from_nanos(1)));
    assert!(lab.ends().is_empty());
    lab.run(Duration::from_nanos(1));
    let refusal = lab.only_refusal();
    assert_eq!((refusal.reason, refusal.waited), (Reason::GateClosed, WAIT));
    assert_eq!(refusal.cause.unwrap().value, Some(7.0));
}

#[test]
fn without_data_the_reason_is_no_data() {
    let mut lab = Lab::new(config());
    lab.queued(GATED, ETL, Terms::default());
    lab.run(WAIT);
    let refusal = lab.only_refusal();
    let cause = crate::Cause { signal: LAG, value: None, threshold: 1.0 };
    assert_eq!((refusal.reason, refusal.cause), (Reason::NoData, Some(cause)));
}

#[test]
fn a_statement_that_kept_losing_is_told_ratio() {
    let mut lab = Lab::healthy();
    lab.queued(GATED, ETL, with_ratio(0.999_999));
    lab.run(WAIT);
    assert_eq!(lab.only_refusal().reason, Reason::Ratio);
}

#[test]
fn a_statement_in_line_at_an_open_gate_is_told_paced_until_it_has_lost() {
    let pacing = Pacing::Binary(BinaryPacing { release_per_s: 1 });
    let mut lab = Lab::new(ControllerConfig { pacing, ..config() });
    let head = Terms { max_delay: Duration::from_secs(60), ..with_ratio(0.999_999) };
    lab.queued(GATED, ETL, head);
    let short = Terms { max_delay: ms(500), ..head };
    lab.queued(GATED, DDL, short);
    lab.lag(0.0);
    lab.run(ms(500));
    assert_eq!(lab.only_refusal().reason, Reason::Paced);
    lab.queued(GATED, DDL, Terms { max_delay: ms(4_000), ..head });
    lab.run(ms(4_000));
    assert_eq!(lab.only_refusal().reason, Reason::Ratio);
    // Lost before the gate shut and opened again: not what keeps it now.
    lab.run(ms(1));
    lab.lag(5.0);
    lab.lag(0.0);
    assert_eq!(lab.controller.waiting().next().unwrap().reason, Reason::Paced);
}

#[test]
fn on_timeout_admit_lets_it_run_and_says_so() {
    let mut lab = Lab::lagging();
    let terms = Terms { on_timeout: OnTimeout::Admit, ..Terms::default() };
    let ticket = lab.queued(GATED, ETL, terms);
    lab.run(WAIT);
    let end = End::Admitted { waited: WAIT, reason: Some(Reason::Timeout) };
    assert_eq!(lab.ends(), [(ticket, end)]);
}

#[test]
fn a_statement_without_patience_never_queues() {
    let mut lab = Lab::lagging();
    let terms = Terms { max_delay: Duration::ZERO, ..Terms::default() };
    assert_eq!(lab.refused(GATED, ETL, terms).reason, Reason::GateClosed);
    let admits = Terms { on_timeout: OnTimeout::Admit, ..terms };
    match lab.ask(GATED, ETL, admits) {
        Decision::Admit(permit) => assert_eq!(permit.reason(), Some(Reason::Timeout)),
        other => panic!("{other:?}"),
    }
    assert_eq!(lab.controller.in_flight(), 1);
}

#[test]
fn a_deadline_that_comes_with_the_opening_wins() {
    let mut lab = Lab::lagging();
    lab.queued(GATED, ETL, Terms::default());
    lab.now = lab.now.saturating_add(WAIT);
    lab.lag(0.0);
    assert_eq!(lab.only_refusal().reason, Reason::Paced);
}

#[test]
fn hours_without_a_call_and_calls_in_the_past_are_harmless() {
    let mut lab = Lab::lagging();
    let start = lab.now;
    lab.queued(GATED, ETL, Terms::default());
    lab.now = lab.now.saturating_add(Duration::from_secs(50_000));
    lab.controller.handle_time(lab.now);
    lab.collect();
    let refusal = lab.only_refusal();
    assert_eq!((refusal.reason, refusal.waited), (Reason::NoData, Duration::from_secs(50_000)));
    lab.controller.handle_time(start);
    lab.controller.handle_sample(start, LAG, Sample::Value(0.0));
    lab.collect();
    assert!(lab.ends().is_empty());
    // The sample is as old as it is: it opens nothing 14 hours later.
    assert_eq!(lab.refused(GATED, ETL, rejecting(0.0)).reason, Reason::NoData);
}

#[test]
fn patience_without_end_is_no_timer() {
    let mut lab = Lab::healthy();
    let terms = Terms { max_delay: Duration::MAX, hold: true, ..Terms::default() };
    lab.queued(FREE, ETL, terms);
    lab.run(Duration::from_secs(3_601));
    assert_eq!(
        lab.controller.poll_timeout(),
        None,
        "the values are stale, nothing else is to come"
    );
    lab.now = MonoTime::MAX;
    lab.controller.handle_time(lab.now);
    lab.collect();
    assert_eq!(lab.only_refusal().reason, Reason::Hold);
}
