//! The gate is shut, or others wait: lines, turns, releases, the ramp.

use super::*;

#[test]
fn a_shut_gate_makes_statements_wait_and_refuses_those_that_cannot() {
    let mut lab = Lab::lagging();
    lab.queued(GATED, ETL, Terms::default());
    let refusal = lab.refused(GATED, ETL, rejecting(0.0));
    let cause = crate::Cause { signal: LAG, value: Some(7.0), threshold: 1.0 };
    assert_eq!((refusal.reason, refusal.cause), (Reason::GateClosed, Some(cause)));
    let range = ms(75)..=ms(1_250);
    assert!(range.contains(&refusal.retry_after), "{:?}", refusal.retry_after);
    // No throw without a turn.
    assert_eq!(lab.checks(ETL), (0, 0));
}

#[test]
fn the_first_unhealthy_signal_in_the_gates_order_is_the_cause() {
    let mut lab = Lab::healthy();
    lab.sample(THREADS, 200.0);
    let cause_of = |lab: &mut Lab| lab.refused(DOUBLE, ETL, rejecting(0.0)).cause.unwrap().signal;
    assert_eq!(cause_of(&mut lab), THREADS);
    lab.lag(3.0);
    assert_eq!(cause_of(&mut lab), LAG);
}

#[test]
fn waiters_of_one_identity_run_in_order_of_arrival() {
    let mut lab = Lab::lagging();
    let asked: Vec<Ticket> = (0..50)
        .map(|_| {
            lab.run(ms(3));
            lab.queued(GATED, ETL, with_ratio(0.5))
        })
        .collect();
    lab.lag(0.0);
    lab.run(ms(500));
    assert_eq!(lab.winners(), asked);
}

#[test]
fn nobody_overtakes_the_line_at_an_open_gate() {
    let mut lab = Lab::lagging();
    let first = lab.queued(GATED, ETL, Terms::default());
    let second = lab.queued(GATED, ETL, Terms::default());
    lab.lag(0.0);
    assert_eq!(lab.winners(), [first]);
    let third = lab.queued(GATED, DDL, Terms::default());
    assert_eq!(lab.refused(GATED, DDL, rejecting(0.0)).reason, Reason::Paced);
    lab.run(ms(10));
    assert_eq!(lab.winners(), [second, third]);
    lab.admitted(GATED, DDL, rejecting(0.0));
}

#[test]
fn identities_take_turns_and_the_turn_survives_a_shut_gate() {
    let mut lab = Lab::lagging();
    let keys = [IdentityKey(3), IdentityKey(1), IdentityKey(2)];
    let mut owner = BTreeMap::new();
    for _ in 0..4 {
        for key in keys {
            owner.insert(lab.queued(GATED, key, Terms::default()), key);
        }
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        // Open for two checks, then shut again: 2 does not divide the ring of 3.
        lab.lag(0.0);
        lab.run(ms(1));
        lab.lag(5.0);
        lab.run(ms(20));
        order.extend(lab.winners().into_iter().map(|ticket| owner[&ticket]));
    }
    assert_eq!(order, keys.repeat(4));
}

#[test]
fn a_gate_that_opens_releases_at_a_rate_that_doubles_every_second_until_it_shuts() {
    let pacing = Pacing::Binary(BinaryPacing { release_per_s: 100 });
    let mut lab = Lab::new(ControllerConfig { pacing, ..config() });
    let terms =
        Terms { max_delay: Duration::from_secs(60), queue_len_max: 5_000, ..Terms::default() };
    for _ in 0..3_000 {
        lab.queued(GATED, ETL, terms);
    }
    assert_eq!(lab.controller.release_per_s(GATED, lab.now), None);
    lab.lag(0.0);
    let mut released = lab.winners().len();
    assert_eq!(released, 1, "the first check is due at once");
    for (expected, total) in [(100_u32, 101_usize), (200, 301), (400, 701)] {
        assert_eq!(lab.controller.release_per_s(GATED, lab.now), Some(f64::from(expected)));
        lab.run(Duration::from_secs(1));
        released += lab.winners().len();
        assert!(released.abs_diff(total) <= 2, "{released} of {total}");
    }
    lab.lag(5.0);
    lab.run(ms(300));
    assert_eq!(lab.winners().len(), 0);
    lab.lag(0.0);
    assert_eq!(lab.controller.release_per_s(GATED, lab.now), Some(100.0));
    assert_eq!(lab.controller.release_per_s(FREE, lab.now), None);
}

#[test]
fn a_wake_up_hours_late_is_no_burst() {
    let mut lab = Lab::lagging();
    let terms = Terms { max_delay: Duration::MAX, ..Terms::default() };
    for _ in 0..1_000 {
        lab.queued(GATED, ETL, terms);
    }
    lab.lag(0.0);
    assert_eq!(lab.winners().len(), 1);
    lab.now = lab.now.saturating_add(ms(900));
    lab.controller.handle_time(lab.now);
    lab.controller.handle_time(lab.now);
    lab.collect();
    // 1,000 a second for the 10 ms that are made up for.
    assert_eq!(lab.winners().len(), 11);
}

#[test]
fn a_crowd_that_hardly_wins_wakes_the_shell_a_thousand_times_a_second_at_most() {
    let mut lab = Lab::lagging();
    let terms = Terms { max_delay: Duration::from_secs(60), ..with_ratio(0.999_999_999) };
    for identity in 0..20 {
        lab.queued(GATED, IdentityKey(identity), terms);
    }
    lab.lag(0.0);
    let mut wakes = 0;
    let end = lab.now.saturating_add(Duration::from_secs(9));
    while let Some(wake) = lab.controller.poll_timeout().filter(|&wake| wake <= end) {
        lab.now = wake;
        lab.controller.handle_time(wake);
        wakes += 1;
    }
    assert!((8_900..=9_001).contains(&wakes), "{wakes}");
    assert!(lab.winners().is_empty());
}

#[test]
fn a_statement_in_back_off_joins_the_line_without_a_throw_when_the_gate_has_shut() {
    let mut lab = Lab::healthy();
    let terms = Terms { max_delay: Duration::from_secs(60), ..with_ratio(0.999_999) };
    let backs_off = lab.queued(GATED, ETL, terms);
    assert_eq!(lab.checks(ETL), (0, 1));
    assert_eq!(lab.reason_of(ETL), Reason::Ratio);
    // In back-off it is in nobody's way.
    lab.admitted(GATED, DDL, Terms::default());
    lab.lag(5.0);
    let behind = lab.queued(GATED, DDL, Terms { max_delay: ms(60_000), ..Terms::default() });
    lab.run(ms(200));
    assert_eq!(lab.checks(ETL), (0, 0));
    assert_eq!(lab.reason_of(ETL), Reason::GateClosed);
    lab.lag(0.0);
    lab.run(ms(20));
    assert_eq!(lab.winners(), [behind]);
    assert_eq!(lab.reason_of(ETL), Reason::Ratio);
    assert!(lab.checks(ETL).1 >= 15, "in line it is checked at the pace");
    lab.controller.cancel(lab.now, backs_off);
    assert_eq!(lab.controller.waiting_len(), 0);
}

#[test]
fn who_comes_back_as_the_gate_opens_stands_in_line_before_the_line_moves() {
    let mut lab = Lab::healthy();
    lab.queued(GATED, ETL, with_ratio(0.999_999));
    lab.lag(5.0);
    let waits = lab.queued(GATED, DDL, Terms::default());
    lab.checks(ETL);
    lab.now = lab.now.saturating_add(ms(125));
    lab.lag(0.0);
    assert_eq!(lab.winners(), [waits]);
    assert_eq!(lab.checks(ETL), (0, 0), "it did not find the line empty");
}

#[test]
fn rules_with_the_same_signals_share_a_line_and_others_do_not() {
    let mut lab = Lab::lagging();
    lab.queued(GATED, ETL, with_ratio(0.999_999));
    lab.queued(DOUBLE, ETL, Terms::default());
    lab.sample(THREADS, 0.0);
    lab.lag(0.0);
    assert_eq!(lab.winners().len(), 1, "the line of the one gate does not hold up the other");
    lab.admitted(DOUBLE, DDL, Terms::default());
    lab.queued(GATED, DDL, Terms::default());
}

#[test]
fn retry_after_grows_with_the_line() {
    let mut lab = Lab::lagging();
    let terms = Terms { queue_len_max: 4_000, ..with_ratio(0.999) };
    for _ in 0..4_000 {
        lab.queued(GATED, ETL, terms);
    }
    lab.lag(0.0);
    let refusal = lab.refused(GATED, ETL, terms);
    assert_eq!(refusal.reason, Reason::QueueFull);
    // 4,001 checks at 1,000 a second, ±25 %.
    let range = Duration::from_secs(3)..=Duration::from_millis(5_002);
    assert!(range.contains(&refusal.retry_after), "{:?}", refusal.retry_after);
}

impl Lab {
    fn reason_of(&self, identity: IdentityKey) -> Reason {
        let mut waiting = self.controller.waiting();
        waiting.find(|waiting| waiting.identity == identity).unwrap().reason
    }
}
