//! Nobody waits, the gate is healthy: statements are checked on arrival. Holds. Observing.

use super::*;

#[test]
fn a_healthy_gate_admits_on_arrival() {
    let mut lab = Lab::healthy();
    lab.admitted(GATED, ETL, Terms::default());
    lab.admitted(DOUBLE, ETL, rejecting(0.0));
    assert_eq!(lab.controller.waiting_len(), 0);
}

#[test]
fn a_gate_without_signals_is_open_although_all_signals_are_not() {
    let mut lab = Lab::lagging();
    lab.admitted(FREE, ETL, Terms::default());
    assert_eq!(lab.controller.last_gated_request(), None);
    lab.queued(GATED, ETL, Terms::default());
    assert_eq!(lab.controller.last_gated_request(), Some(lab.now));
}

#[test]
fn a_lost_check_refuses_a_statement_that_may_not_wait() {
    let mut lab = Lab::healthy();
    let refusal = lab.refused(GATED, ETL, rejecting(1.0));
    assert_eq!((refusal.reason, refusal.cause), (Reason::Ratio, None));
    assert_eq!(refusal.waited, Duration::ZERO);
    let told = |lab: &mut Lab, ratio| loop {
        match lab.ask(GATED, ETL, rejecting(ratio)) {
            Decision::Reject(refusal) => break refusal.retry_after,
            Decision::Admit(permit) => {
                lab.controller.complete(lab.now, permit, Outcome::default());
            }
            other => panic!("{other:?}"),
        }
    };
    assert!((ms(150)..=ms(250)).contains(&told(&mut lab, 0.5)), "one check in two wins");
    assert!((ms(7_500)..=ms(12_500)).contains(&told(&mut lab, 0.99)));
    assert!((ms(45_000)..=ms(75_000)).contains(&told(&mut lab, 1.0)), "none wins");
}

#[test]
fn refusals_on_a_healthy_gate_meet_the_ratio() {
    let mut lab = Lab::healthy();
    for (identity, ratio) in [(ETL, 0.9), (DDL, 0.1)] {
        let mut refused = 0_u32;
        for _ in 0..20_000 {
            match lab.ask(GATED, identity, rejecting(ratio)) {
                Decision::Reject(_) => refused += 1,
                Decision::Admit(permit) => {
                    lab.controller.complete(lab.now, permit, Outcome::default());
                }
                other => panic!("{other:?}"),
            }
        }
        // Four standard deviations: 4 * sqrt(0.09 / 2e4) = 0.0085.
        let share = f64::from(refused) / 20_000.0;
        assert!((share - ratio).abs() < 0.0085, "{ratio} gave {share}");
        assert_eq!(lab.checks(identity), (20_000 - u64::from(refused), refused.into()));
    }
}

#[test]
fn delayed_statements_are_checked_until_they_win_and_meet_the_ratio_too() {
    let mut lab = Lab::healthy();
    let terms =
        Terms { max_delay: Duration::from_secs(600), queue_len_max: 5_000, ..with_ratio(0.9) };
    let mut admitted = 0;
    for _ in 0..2_000 {
        match lab.ask(GATED, ETL, terms) {
            Decision::Admit(permit) => {
                admitted += 1;
                lab.controller.complete(lab.now, permit, Outcome::default());
            }
            Decision::Queue(_) => {}
            other => panic!("{other:?}"),
        }
        lab.run(ms(1));
    }
    lab.run(Duration::from_secs(60));
    assert_eq!(admitted + lab.winners().len(), 2_000);
    let (passed, lost) = lab.checks(ETL);
    assert_eq!(passed, 2_000);
    // 2,000 wins at 0.1 take 20,000 checks, with a standard deviation of sqrt(2e3 * 0.9) / 0.1 =
    // 424.
    assert!((16_300..=19_700).contains(&lost), "{lost}");
}

#[test]
fn a_lost_check_is_repeated_after_the_interval_give_or_take_a_quarter() {
    let mut lab = Lab::healthy();
    let terms = Terms { max_delay: Duration::from_secs(3_000), ..with_ratio(0.999_999) };
    lab.queued(GATED, ETL, terms);
    assert_eq!(lab.checks(ETL), (0, 1));
    let mut shortest = Duration::MAX;
    let mut longest = Duration::ZERO;
    for _ in 0..1_000 {
        let next = lab.controller.poll_timeout().unwrap();
        let wait = next.saturating_since(lab.now);
        shortest = shortest.min(wait);
        longest = longest.max(wait);
        lab.run(wait);
        assert_eq!(lab.checks(ETL), (0, 1), "one check at each wake-up");
    }
    assert!(shortest >= ms(75) && shortest < ms(80), "{shortest:?}");
    assert!(longest <= ms(125) && longest > ms(120), "{longest:?}");
}

#[test]
fn one_check_is_one_throw_however_many_signals_there_are() {
    let decide = |gate| {
        let mut lab = Lab::healthy();
        let lost =
            |lab: &mut Lab| matches!(lab.ask(gate, ETL, rejecting(0.5)), Decision::Reject(_));
        (0..500).map(|_| lost(&mut lab)).collect::<Vec<bool>>()
    };
    assert_eq!(decide(FREE), decide(GATED));
    assert_eq!(decide(GATED), decide(DOUBLE));
}

#[test]
fn the_seed_decides_and_nothing_else_does() {
    let decide = |seed| {
        let mut lab = Lab::seeded(config(), seed);
        lab.lag(0.0);
        let lost =
            |lab: &mut Lab| matches!(lab.ask(GATED, ETL, rejecting(0.5)), Decision::Reject(_));
        (0..200).map(|_| lost(&mut lab)).collect::<Vec<bool>>()
    };
    assert_eq!(decide(1), decide(1));
    assert_ne!(decide(1), decide(2));
}

#[test]
fn a_hold_admits_nobody_even_when_its_timeout_would() {
    let mut lab = Lab::healthy();
    let terms = Terms { hold: true, on_timeout: OnTimeout::Admit, ..Terms::default() };
    lab.queued(GATED, ETL, terms);
    lab.run(Duration::from_secs(10));
    let refusal = lab.only_refusal();
    assert_eq!((refusal.reason, refusal.waited), (Reason::Hold, Duration::from_secs(5)));
    let at_once = lab.refused(FREE, ETL, Terms { hold: true, ..rejecting(0.0) });
    assert_eq!(at_once.reason, Reason::Hold);
}

#[test]
fn waiters_that_cannot_win_stand_in_nobodys_way_and_wake_nobody() {
    let mut lab = Lab::healthy();
    lab.queued(GATED, ETL, Terms { hold: true, ..Terms::default() });
    lab.queued(GATED, ETL, with_ratio(1.0));
    assert_eq!(lab.controller.poll_timeout(), Some(lab.now.saturating_add(Duration::from_secs(5))));
    // The same identity under another rule, and everybody else, flow.
    lab.admitted(GATED, ETL, Terms::default());
    lab.admitted(GATED, DDL, rejecting(0.0));
    lab.lag(9.0);
    lab.queued(GATED, ETL, with_ratio(1.0));
    let waits = lab.queued(GATED, ETL, Terms::default());
    lab.lag(0.0);
    lab.run(ms(1));
    assert_eq!(lab.winners(), [waits]);
    lab.run(Duration::from_secs(5));
    let reasons: Vec<Reason> = lab.ends().iter().map(reason_of).collect();
    assert_eq!(reasons, [Reason::Hold, Reason::Ratio, Reason::Ratio]);
}

#[test]
fn observing_forwards_everything_after_one_check_and_says_what_would_have_been() {
    let mut lab = Lab::healthy();
    let reason = |refusal: Option<Refusal>| refusal.map(|refusal| refusal.reason);
    assert_eq!(reason(lab.observed(GATED, ETL, Terms::default())), None);
    assert_eq!(reason(lab.observed(GATED, ETL, with_ratio(1.0))), Some(Reason::Ratio));
    let hold = Terms { hold: true, ..Terms::default() };
    assert_eq!(reason(lab.observed(GATED, ETL, hold)), Some(Reason::Hold));
    lab.lag(8.0);
    let refusal = lab.observed(GATED, ETL, Terms::default()).unwrap();
    assert_eq!(refusal.reason, Reason::GateClosed);
    assert_eq!(refusal.cause.unwrap().value, Some(8.0));
    lab.queued(GATED, DDL, with_ratio(0.999));
    lab.lag(0.0);
    assert_eq!(reason(lab.observed(GATED, ETL, Terms::default())), Some(Reason::Paced));
    let mut counted = None;
    lab.controller.drain_checks(|count| {
        counted = counted.or((count.app == Some(AppKey(ETL.0))).then_some(count));
    });
    let counted = counted.unwrap();
    assert_eq!((counted.passed, counted.lost, counted.stopped), (1, 1, 2));
    assert_eq!(lab.controller.work().completed, 5);
}

fn reason_of((_, end): &(Ticket, End)) -> Reason {
    match end {
        End::Rejected(refusal) => refusal.reason,
        End::Admitted { .. } | End::DecideAgain => panic!("{end:?}"),
    }
}
