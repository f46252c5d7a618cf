//! Signals that limit what is in flight.

use super::*;
use crate::{Answer, InFlightPacing, Inquiry, OnNoData, Purpose};

/// Threads over 100 shut the gate, and limit what is in flight.
const PACED: GateKey = GateKey(3);

fn lab() -> Lab {
    let mut config = config();
    config.signals[1].in_flight = Some(InFlightPacing::default());
    config.gates.push(GateConfig { key: PACED, signals: vec![THREADS] });
    let mut lab = Lab::new(config);
    lab.lag(0.0);
    lab.sample(THREADS, 5.0);
    lab
}

impl Lab {
    fn running(&mut self, terms: Terms) -> Permit {
        match self.ask(PACED, ETL, terms) {
            Decision::Admit(permit) => permit,
            other => panic!("expected to be admitted, got {other:?}"),
        }
    }
}

#[test]
fn what_is_beyond_the_limit_waits_until_a_statement_has_really_ended() {
    let mut lab = lab();
    let mut running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    let fifth = lab.queued(PACED, DDL, Terms::default());
    let refused = lab.refused(PACED, ETL, rejecting(0.0));
    assert_eq!((refused.reason, refused.cause.unwrap().signal), (Reason::Paced, THREADS));
    let waits = lab.controller.waiters_after(None).next().unwrap();
    let cause = waits.cause.unwrap();
    assert_eq!((waits.reason, cause.signal), (Reason::Paced, THREADS));
    assert_eq!((cause.value, cause.threshold), (Some(5.0), 100.0), "healthy, and its pace governs");
    assert_eq!(lab.controller.governing(lab.now), Some(THREADS));
    lab.run(ms(900));
    assert_eq!(lab.winners(), []);
    lab.controller.complete(lab.now, running.pop().unwrap(), Outcome::default());
    lab.collect();
    assert_eq!(lab.winners(), [fifth], "at once");
    let view = lab.controller.in_flight_limits(lab.now).next().unwrap();
    assert_eq!((view.signal, view.limit, view.in_flight), (THREADS, Some(4.0), 3));
    lab.run(ms(3_000));
    assert_eq!(lab.controller.governing(lab.now), None);
}

#[test]
fn before_the_first_value_a_few_pass_and_all_once_the_app_is_known_to_be_idle() {
    let mut config = config();
    config.signals[1].in_flight = Some(InFlightPacing::default());
    config.signals[1].on_no_data = OnNoData::Open;
    config.signals[1].stale_after = ms(3_000);
    config.gates.push(GateConfig { key: PACED, signals: vec![THREADS] });
    let mut lab = Lab::new(config);
    let _running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    let fifth = lab.queued(PACED, DDL, Terms::default());
    lab.run(ms(2_900));
    assert_eq!(lab.winners(), []);
    lab.run(ms(200));
    assert_eq!(lab.winners(), [fifth], "without anybody who asks");
    assert_eq!(lab.controller.in_flight_limits(lab.now).next().unwrap().limit, None);
}

#[test]
fn another_gate_is_not_limited_and_a_deadline_says_paced() {
    let mut lab = lab();
    let _running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    lab.admitted(GATED, DDL, Terms::default());
    lab.admitted(FREE, DDL, Terms::default());
    lab.queued(PACED, DDL, Terms { max_delay: ms(500), ..Terms::default() });
    lab.run(ms(600));
    let refused = lab.only_refusal();
    assert_eq!((refused.reason, refused.cause.unwrap().signal), (Reason::Paced, THREADS));
}

#[test]
fn a_shut_gate_opens_at_the_limit_and_who_only_observes_takes_no_place() {
    let mut lab = lab();
    for _ in 0..20 {
        assert_eq!(lab.observed(PACED, ETL, Terms::default()), None);
    }
    lab.sample(THREADS, 200.0);
    let waits: Vec<Ticket> = (0..30).map(|_| lab.queued(PACED, ETL, Terms::default())).collect();
    lab.now = lab.now.saturating_add(ms(250));
    lab.controller.handle_sample(lab.now, THREADS, Sample::Value(1.0));
    let mut admitted = Vec::new();
    while let Some(resolution) = lab.controller.poll_resolution(lab.now) {
        admitted.push(resolution);
    }
    let tickets: Vec<Ticket> = admitted.iter().map(|resolution| resolution.ticket).collect();
    assert!((1..=4).contains(&tickets.len()), "{tickets:?}");
    assert_eq!(tickets, waits[..tickets.len()]);
}

#[test]
fn a_reload_keeps_who_is_in_flight() {
    let mut lab = lab();
    let mut running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    let mut config = config();
    config.signals[1].in_flight = Some(InFlightPacing::default());
    config.gates.push(GateConfig { key: PACED, signals: vec![THREADS] });
    lab.controller.reconfigure(config, lab.now);
    lab.run(ms(200));
    let waits = lab.queued(PACED, ETL, Terms::default());
    lab.run(ms(500));
    assert_eq!(lab.winners(), []);
    lab.controller.complete(lab.now, running.pop().unwrap(), Outcome::default());
    lab.collect();
    assert_eq!(lab.winners(), [waits]);
}

#[test]
fn who_leaves_after_it_was_admitted_gives_its_place_back() {
    let mut lab = lab();
    let mut running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    let fifth = lab.queued(PACED, ETL, Terms::default());
    lab.controller.complete(lab.now, running.pop().unwrap(), Outcome::default());
    lab.controller.cancel(lab.now, fifth);
    lab.admitted(PACED, DDL, Terms::default());
}

#[test]
fn the_dice_share_the_places_as_they_share_the_pace() {
    let mut lab = lab();
    lab.sample(THREADS, 200.0);
    let wait = |ratio| Terms { max_delay: Duration::from_secs(60), ..with_ratio(ratio) };
    let tenth: Vec<Ticket> = (0..300).map(|_| lab.queued(PACED, ETL, wait(0.9))).collect();
    for _ in 0..300 {
        lab.queued(PACED, DDL, wait(0.0));
    }
    lab.sample(THREADS, 1.0);
    while lab.ends.len() < 220 {
        lab.run(ms(1));
        lab.collect();
    }
    let winners = lab.winners();
    let of_tenth = winners.iter().take(220).filter(|ticket| tenth.contains(ticket)).count();
    assert!((8..=32).contains(&of_tenth), "one in eleven, and it is {of_tenth} of 220");
    let (passed, lost) = lab.checks(ETL);
    assert!(lost > 4 * passed, "{lost} lost to {passed}");
}

#[test]
fn whoever_asks_without_waiting_is_refused_while_no_place_is_left_and_has_turns_beside_a_line() {
    let mut lab = lab();
    let asks = |lab: &mut Lab| {
        let request = lab.request(PACED, DDL, Terms::default());
        let purpose = Purpose::Write { rows: None };
        let answer = lab.controller.inquire(lab.now, &Inquiry { request, purpose });
        matches!(answer, Answer::Allowed)
    };
    assert!(asks(&mut lab), "nobody is there");
    let mut running: Vec<Permit> = (0..4).map(|_| lab.running(Terms::default())).collect();
    lab.now = lab.now.saturating_add(ms(100));
    assert!(!asks(&mut lab));
    lab.queued(PACED, ETL, Terms::default());
    lab.queued(PACED, ETL, Terms::default());
    assert!(!asks(&mut lab), "nobody in line has had a turn");
    lab.controller.complete(lab.now, running.pop().unwrap(), Outcome::default());
    assert!(asks(&mut lab), "somebody has");
    assert!(!asks(&mut lab));
}
