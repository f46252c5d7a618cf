//! Bounds, leaving, shutdown, and what is in flight.

use super::*;
use crate::Appointment;

#[test]
fn one_more_than_the_rule_allows_is_refused_at_once() {
    let mut lab = Lab::lagging();
    let terms = Terms { queue_len_max: 3, ..Terms::default() };
    let tickets: Vec<Ticket> = (0..3).map(|_| lab.queued(GATED, ETL, terms)).collect();
    assert_eq!(lab.refused(GATED, ETL, terms).reason, Reason::QueueFull);
    lab.queued(GATED, DDL, terms);
    lab.controller.cancel(lab.now, tickets[1]);
    lab.queued(GATED, ETL, terms);
    assert_eq!(lab.refused(GATED, ETL, terms).reason, Reason::QueueFull);
}

#[test]
fn a_full_queue_leaves_room_for_who_was_told_to_come_back_and_for_nobody_new() {
    let mut lab = Lab::lagging();
    let terms = Terms { queue_len_max: 20, ..Terms::default() };
    let mut waiting: Vec<Ticket> = (0..20).map(|_| lab.queued(GATED, ETL, terms)).collect();
    let told = lab.refused(GATED, ETL, terms);
    let since = lab.now;
    let told = Appointment::of(lab.now, (RuleKey(ETL.0), ETL, &terms), since, &told).unwrap();
    lab.controller.cancel(lab.now, waiting.remove(0));
    lab.run(ms(1));
    assert_eq!(lab.refused(GATED, ETL, terms).reason, Reason::QueueFull);
    let request = Request { since, ..lab.request(GATED, ETL, terms) };
    lab.controller.come_back(told);
    let decision = lab.controller.request(lab.now, &request);
    assert!(matches!(decision, Decision::Queue(_)), "{decision:?}");
}

#[test]
fn statements_in_back_off_and_on_hold_count_too() {
    let mut lab = Lab::healthy();
    let terms = Terms { queue_len_max: 2, ..with_ratio(0.999_999) };
    lab.queued(GATED, ETL, terms);
    lab.queued(GATED, ETL, Terms { hold: true, ..terms });
    assert_eq!(lab.refused(GATED, ETL, terms).reason, Reason::QueueFull);
}

#[test]
fn the_cluster_has_a_bound_too() {
    let mut lab = Lab::new(ControllerConfig { queue_len_max: 2, ..config() });
    lab.queued(GATED, ETL, Terms::default());
    lab.queued(GATED, DDL, Terms::default());
    assert_eq!(lab.refused(GATED, IdentityKey(5), Terms::default()).reason, Reason::QueueFull);
}

#[test]
fn who_leaves_frees_the_place_and_is_never_resolved() {
    let mut lab = Lab::lagging();
    let [a, b, c] = [ETL, ETL, DDL].map(|identity| lab.queued(GATED, identity, Terms::default()));
    lab.controller.cancel(lab.now, a);
    lab.controller.cancel(lab.now, a);
    assert_eq!(lab.controller.waiting_len(), 2);
    lab.lag(0.0);
    lab.run(ms(10));
    assert_eq!(lab.winners(), [b, c]);
    lab.controller.cancel(lab.now, c);
    assert_eq!(lab.controller.in_flight(), 0);
}

#[test]
fn a_permit_that_nobody_fetched_goes_back_with_the_ticket() {
    let mut lab = Lab::lagging();
    let ticket = lab.queued(GATED, ETL, Terms::default());
    lab.controller.handle_sample(lab.now, LAG, Sample::Value(0.0));
    assert_eq!((lab.controller.in_flight(), lab.controller.waiting_len()), (1, 0));
    lab.controller.cancel(lab.now, ticket);
    assert_eq!(lab.controller.in_flight(), 0);
    assert!(lab.controller.poll_resolution(lab.now).is_none());
}

#[test]
fn a_shutdown_refuses_everybody_and_keeps_permits() {
    let mut lab = Lab::healthy();
    let Decision::Admit(permit) = lab.ask(GATED, ETL, Terms::default()) else {
        panic!("admitted before")
    };
    lab.lag(4.0);
    lab.queued(GATED, ETL, Terms::default());
    lab.queued(GATED, ETL, Terms { hold: true, ..Terms::default() });
    lab.queued(FREE, ETL, with_ratio(1.0));
    lab.run(ms(100));
    lab.controller.shutdown(lab.now);
    lab.collect();
    let ends = lab.ends();
    assert_eq!(ends.len(), 3);
    for (_, end) in ends {
        let End::Rejected(refusal) = end else { panic!("{end:?}") };
        assert_eq!((refusal.reason, refusal.waited), (Reason::Shutdown, ms(100)));
    }
    assert_eq!(lab.refused(FREE, ETL, Terms::default()).reason, Reason::Shutdown);
    assert_eq!(lab.observed(FREE, ETL, Terms::default()).unwrap().reason, Reason::Shutdown);
    assert_eq!(lab.controller.in_flight(), 1);
    lab.controller.complete(lab.now, permit, Outcome::default());
    assert_eq!(lab.controller.in_flight(), 0);
}

#[test]
fn completed_work_is_added_up() {
    let mut lab = Lab::healthy();
    for error in [false, true] {
        let Decision::Admit(permit) = lab.ask(FREE, ETL, Terms::default()) else {
            panic!("admitted")
        };
        assert_eq!(permit.waited(), Duration::ZERO);
        let outcome =
            Outcome { affected_rows: 3, server_time: ms(20), error, ..Outcome::default() };
        lab.controller.complete(lab.now, permit, outcome);
    }
    let expected =
        Work { in_flight: 0, completed: 2, errors: 1, affected_rows: 6, server_time: ms(40) };
    assert_eq!(lab.controller.work(), expected);
}

#[test]
fn waiters_are_shown_per_rule_and_identity_with_the_oldest_and_its_reason() {
    let mut lab = Lab::lagging();
    lab.queued(GATED, ETL, Terms::default());
    let oldest = lab.now;
    lab.run(ms(10));
    lab.queued(GATED, ETL, Terms::default());
    lab.queued(FREE, DDL, Terms { hold: true, ..Terms::default() });
    let shown: Vec<Waiting> = lab.controller.waiting().collect();
    let [ddl, etl] = shown[..] else { panic!("{shown:?}") };
    assert_eq!((ddl.identity, ddl.depth, ddl.reason), (DDL, 1, Reason::Hold));
    assert_eq!((etl.identity, etl.depth, etl.oldest), (ETL, 2, oldest));
    assert_eq!((etl.reason, etl.cause.unwrap().signal), (Reason::GateClosed, LAG));
}

#[test]
fn waiters_are_shown_one_by_one_and_in_pieces() {
    let mut lab = Lab::lagging();
    for n in 0..10 {
        lab.queued(GATED, IdentityKey(n), Terms::default());
        lab.run(ms(10));
    }
    let all: Vec<_> = lab.controller.waiters_after(None).collect();
    assert_eq!(all.len(), 10);
    assert_eq!(all[9].deadline, all[9].arrived.saturating_add(Duration::from_secs(5)));
    assert_eq!(all[9].cause.unwrap().threshold, all[0].cause.unwrap().threshold);
    let mut pieces = Vec::new();
    for _ in 0..4 {
        let after = pieces.last().and_then(|last: &WaitingStatement| last.ticket);
        pieces.extend(lab.controller.waiters_after(after).take(3));
    }
    assert_eq!(pieces, all);
}

#[test]
fn ten_thousand_waiters_of_as_many_identities_come_and_go() {
    let mut lab = Lab::lagging();
    let terms = Terms { queue_len_max: 10_000, ..with_ratio(0.5) };
    for identity in 0..10_000 {
        lab.ask_as_one_rule(identity, terms);
    }
    lab.lag(0.0);
    lab.run(Duration::from_secs(4));
    let won = lab.winners().len();
    // 1 + 2 + 4 + 8 thousand checks, every other one wins.
    assert!((7_300..=7_700).contains(&won), "{won}");
    lab.run(Duration::from_secs(1));
    assert_eq!(won + lab.winners().len(), 10_000);
    assert_eq!(lab.controller.waiting_len(), 0);
}

impl Lab {
    fn ask_as_one_rule(&mut self, identity: u64, terms: Terms) {
        let request =
            Request { rule: RuleKey(1), ..self.request(GATED, IdentityKey(identity), terms) };
        let decision = self.controller.request(self.now, &request);
        assert!(matches!(decision, Decision::Queue(_)), "{decision:?}");
    }
}
