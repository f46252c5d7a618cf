//! What rules limit by themselves.

use super::*;
use crate::RuleLimit;

const OTHER: IdentityKey = IdentityKey(4);

fn capped(rows_per_s: u32) -> Terms {
    Terms {
        max_rate: Some(rows_per_s),
        max_delay: Duration::from_secs(60),
        queue_len_max: 10_000,
        ..Terms::default()
    }
}

#[test]
fn a_cap_holds_at_an_open_gate_and_at_none_and_in_fair_turns() {
    for gate in [FREE, GATED] {
        let mut lab = Lab::healthy();
        let rule = RuleKey(77);
        let mut tickets = Vec::new();
        for n in 0..1_000_u64 {
            let identity = if n < 900 { ETL } else { DDL };
            let request = Request { rule, ..lab.request(gate, identity, capped(100)) };
            match lab.controller.request(lab.now, &request) {
                Decision::Queue(ticket) => tickets.push((ticket, identity)),
                Decision::Admit(permit) => {
                    lab.controller.complete(
                        lab.now,
                        permit,
                        Outcome { affected_rows: 1, ..Outcome::default() },
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        lab.run(Duration::from_secs(1));
        let winners = lab.winners();
        assert!((95..=105).contains(&winners.len()), "{} in a second", winners.len());
        let ddl = |ticket: &&Ticket| tickets.contains(&(**ticket, DDL));
        let of_ddl = winners.iter().filter(ddl).count();
        assert!((45..=55).contains(&of_ddl), "{of_ddl} of {}", winners.len());
    }
}

#[test]
fn a_first_statement_that_was_taken_for_dear_is_paid_for_at_what_it_wrote() {
    let mut lab = Lab::healthy();
    let rule = RuleKey(77);
    // Far more is expected of it than a cap of one row a second lets anybody owe.
    let request = Request { rule, ..lab.request(FREE, ETL, capped(1)) };
    lab.controller.costs.learn(request.digest, request.app, 18_000.0);
    let outcome = |affected_rows: u64| Outcome { affected_rows, ..Outcome::default() };
    let Decision::Admit(permit) = lab.controller.request(lab.now, &request) else {
        panic!("nothing is owed yet");
    };
    assert_eq!(lab.controller.rates.short_of(lab.now, rule), Some(RuleLimit::MaxRate));
    // Somebody looks at the bucket while it runs.
    let Decision::Queue(ticket) = lab.controller.request(lab.now, &request) else {
        panic!("there is no room beside it");
    };
    lab.controller.complete(lab.now, permit, outcome(5));
    lab.run(Duration::from_millis(3_500));
    assert_eq!(lab.winners(), [], "five rows, of which one was there, take four seconds");
    lab.run(Duration::from_secs(1));
    assert_eq!(lab.winners(), [ticket]);
}

#[test]
fn who_cannot_wait_for_the_cap_is_refused_as_paced() {
    let mut lab = Lab::healthy();
    lab.admitted(FREE, ETL, capped(1));
    lab.now = lab.now.saturating_add(ms(10));
    lab.admitted(FREE, ETL, capped(1));
    let refusal =
        lab.refused(FREE, ETL, Terms { on_refused_check: OnRefusedCheck::Reject, ..capped(1) });
    assert_eq!((refusal.reason, refusal.cause), (Reason::Paced, None));
    lab.queued(FREE, ETL, Terms { max_delay: ms(300), ..capped(1) });
    lab.run(ms(400));
    assert_eq!(lab.only_refusal().reason, Reason::Paced);
    assert!(lab.observed(FREE, ETL, capped(1)).is_some(), "and would be");
}

#[test]
fn a_rule_at_its_cap_stands_in_nobodys_way() {
    let mut lab = Lab::lagging();
    for _ in 0..50 {
        lab.queued(GATED, ETL, capped(10));
    }
    let others: Vec<Ticket> = (0..50).map(|_| lab.queued(GATED, OTHER, Terms::default())).collect();
    lab.lag(0.0);
    lab.run(ms(200));
    let winners = lab.winners();
    assert!(others.iter().all(|ticket| winners.contains(ticket)), "{winners:?}");
    assert!(winners.len() <= 54, "{}", winners.len());
}

#[test]
fn statements_in_flight_are_counted_until_they_have_really_ended() {
    let mut lab = Lab::healthy();
    let terms = Terms { max_in_flight: Some(2), ..Terms::default() };
    let mut running = Vec::new();
    for _ in 0..2 {
        let Decision::Admit(permit) = lab.ask(FREE, ETL, terms) else { panic!("there is room") };
        running.push(permit);
    }
    let third = lab.queued(FREE, ETL, terms);
    let fourth = lab.queued(FREE, ETL, terms);
    lab.admitted(FREE, DDL, Terms::default());
    let limits = |lab: &Lab| -> Vec<Option<RuleLimit>> {
        lab.controller.waiters_after(None).map(|waits| waits.limit).collect()
    };
    assert_eq!(limits(&lab), [Some(RuleLimit::MaxInFlight); 2]);
    let at_once = Terms { on_refused_check: OnRefusedCheck::Reject, ..terms };
    assert_eq!(lab.refused(FREE, ETL, at_once).limit, Some(RuleLimit::MaxInFlight));
    lab.controller.cancel(lab.now, third);
    lab.run(ms(3_000));
    assert_eq!(lab.winners(), []);
    lab.controller.complete(lab.now, running.pop().unwrap(), Outcome::default());
    lab.collect();
    assert_eq!(lab.winners(), [fourth]);
}

#[test]
fn places_of_a_shut_gate_are_not_taken_twice_and_a_reload_starts_over() {
    let mut lab = Lab::lagging();
    let terms =
        Terms { max_in_flight: Some(2), max_delay: Duration::from_secs(60), ..Terms::default() };
    for _ in 0..5 {
        lab.queued(GATED, ETL, terms);
    }
    // Two wait at the gate, and the others for these; nothing is at the server.
    let waiters = lab.controller.waiters_after(None);
    let behind: Vec<_> = waiters.map(|it| (it.limit, it.cause.map(|it| it.signal))).collect();
    assert_eq!(behind, [(None, Some(LAG)); 5]);
    lab.controller.reconfigure(config(), lab.now);
    lab.collect();
    assert!(lab.ends().iter().all(|(_, end)| *end == End::DecideAgain));
    for _ in 0..5 {
        lab.queued(GATED, ETL, terms);
    }
    lab.lag(0.0);
    lab.run(Duration::from_secs(2));
    assert_eq!(lab.winners().len(), 5, "each ends as soon as it is admitted");
}

#[test]
fn what_was_admitted_before_its_rule_had_places_frees_none() {
    let mut lab = Lab::healthy();
    let ask = |lab: &mut Lab, terms| match lab.ask(FREE, ETL, terms) {
        Decision::Admit(permit) => permit,
        other => panic!("{other:?}"),
    };
    let before: Vec<Permit> = (0..100).map(|_| ask(&mut lab, Terms::default())).collect();
    lab.controller.reconfigure(config(), lab.now);
    let terms = Terms { max_in_flight: Some(2), ..Terms::default() };
    let _running = [ask(&mut lab, terms), ask(&mut lab, terms)];
    lab.queued(FREE, ETL, terms);
    for permit in before {
        lab.controller.complete(lab.now, permit, Outcome::default());
        lab.collect();
    }
    lab.run(ms(1_000));
    assert_eq!(lab.winners(), [], "both places are taken");
}

#[test]
fn a_cap_counts_what_was_written_not_what_was_expected() {
    let mut lab = Lab::healthy();
    let Decision::Admit(permit) = lab.ask(FREE, ETL, capped(100)) else { panic!("there is room") };
    lab.controller.complete(lab.now, permit, Outcome { affected_rows: 501, ..Outcome::default() });
    let next = lab.queued(FREE, ETL, capped(100));
    lab.run(ms(4_900));
    assert_eq!(lab.winners(), [], "five hundred rows are five seconds");
    lab.run(ms(300));
    assert_eq!(lab.winners(), [next]);
}

#[test]
fn a_floor_passes_what_the_pace_has_no_room_for_but_no_shut_gate() {
    let mut config = config();
    config.signals[1].in_flight = Some(crate::InFlightPacing::default());
    let mut lab = Lab::new(config);
    lab.lag(0.0);
    lab.sample(THREADS, 5.0);
    let wait = Terms { max_delay: Duration::from_secs(60), ..Terms::default() };
    let mut running = Vec::new();
    for _ in 0..4 {
        let Decision::Admit(permit) = lab.ask(DOUBLE, OTHER, wait) else { panic!("room for four") };
        running.push(permit);
    }
    let others: Vec<Ticket> = (0..100).map(|_| lab.queued(DOUBLE, OTHER, wait)).collect();
    let floored = Terms { min_rate: Some(10), ..wait };
    for _ in 0..100 {
        lab.queued(DOUBLE, ETL, floored);
    }
    lab.run(Duration::from_secs(2));
    let passed = lab.winners();
    assert!((18..=22).contains(&passed.len()), "{} in two seconds", passed.len());
    assert!(passed.iter().all(|ticket| !others.contains(ticket)), "nobody else's");
    lab.sample(THREADS, 200.0);
    lab.run(Duration::from_secs(2));
    assert_eq!(lab.winners(), [], "the gate is shut");
}

#[test]
fn what_a_rule_had_beyond_its_floor_a_second_ago_does_not_count_against_it() {
    let mut config = config();
    config.signals[1].in_flight = Some(crate::InFlightPacing::default());
    let mut lab = Lab::new(config);
    lab.lag(0.0);
    lab.sample(THREADS, 5.0);
    let wait = Terms { max_delay: Duration::from_secs(60), ..Terms::default() };
    let floored = Terms { min_rate: Some(10), ..wait };
    for _ in 0..500 {
        let Decision::Admit(permit) = lab.ask(DOUBLE, ETL, floored) else { panic!("room for it") };
        let outcome = Outcome { affected_rows: 1, ..Outcome::default() };
        lab.controller.complete(lab.now, permit, outcome);
    }
    let running: Vec<Decision> = (0..4).map(|_| lab.ask(DOUBLE, OTHER, wait)).collect();
    assert!(running.iter().all(|decision| matches!(decision, Decision::Admit(_))));
    for _ in 0..100 {
        lab.queued(DOUBLE, ETL, floored);
    }
    lab.run(Duration::from_secs(3));
    let passed = lab.winners().len();
    assert!((18..=22).contains(&passed), "a second's debt, then ten a second: {passed}");
}

/// Four of another run, and so no place is left; these wait under a floor of ten rows a second.
fn at_a_floor(ratio: f64, waiters: usize) -> (Lab, Vec<Permit>) {
    let mut config = config();
    config.signals[1].in_flight = Some(crate::InFlightPacing::default());
    let mut lab = Lab::new(config);
    lab.lag(0.0);
    lab.sample(THREADS, 5.0);
    let wait = Terms { max_delay: Duration::from_secs(60), ..Terms::default() };
    let running = (0..4).map(|_| match lab.ask(DOUBLE, OTHER, wait) {
        Decision::Admit(permit) => permit,
        other => panic!("room for four, and it is {other:?}"),
    });
    let running = running.collect();
    lab.queued(DOUBLE, OTHER, wait);
    let ratio = with_ratio(ratio).ratio;
    for _ in 0..waiters {
        lab.queued(DOUBLE, ETL, Terms { min_rate: Some(10), ratio, ..wait });
    }
    (lab, running)
}

#[test]
fn the_dice_are_thrown_for_a_floor_too_and_whoever_loses_keeps_its_place() {
    let (mut lab, _running) = at_a_floor(0.9, 200);
    lab.run(Duration::from_secs(10));
    let winners = lab.winners();
    assert!((90..=110).contains(&winners.len()), "{} in ten seconds", winners.len());
    assert!(winners.is_sorted(), "by who came first");
    let (passed, lost) = lab.checks(ETL);
    assert_eq!(passed, u64::try_from(winners.len()).unwrap());
    assert!((600..=1_300).contains(&lost), "nine to each, and it is {lost}");
}

#[test]
fn everybody_at_a_floor_has_one_check_in_a_check_interval() {
    let (mut lab, _running) = at_a_floor(0.99, 20);
    lab.run(Duration::from_secs(20));
    let (passed, lost) = lab.checks(ETL);
    // As many as wait, ten times a second, for twenty seconds; they become fewer.
    let interval = config().check_interval.as_secs_f64();
    let most = 20.0 * (20.0 / (interval * 0.75) + 1.0);
    assert!(lost > 100 && f64::from(u32::try_from(lost).unwrap()) <= most, "{lost} of {most}");
    assert!(passed <= 20 && lab.winners().len() < 200);
}

#[test]
fn who_comes_from_the_line_of_a_rule_comes_in_batches() {
    let mut lab = Lab::healthy();
    let terms = Terms { ratio: with_ratio(0.999_999).ratio, ..capped(1_000) };
    let Decision::Admit(permit) = lab.ask(FREE, ETL, capped(1_000)) else {
        panic!("there is room")
    };
    lab.controller.complete(lab.now, permit, Outcome { affected_rows: 901, ..Outcome::default() });
    for _ in 0..1_000 {
        lab.queued(FREE, ETL, terms);
    }
    lab.now = lab.now.saturating_add(Duration::from_secs(1));
    for batch in 1..=8_u64 {
        lab.controller.handle_time(lab.now);
        assert_eq!(lab.checks(ETL).1, if batch < 8 { 128 } else { 1_000 - 7 * 128 });
        let more = lab.controller.poll_timeout().is_some_and(|at| at <= lab.now);
        assert_eq!(more, batch < 8, "the timer is due while there is more");
    }
}

#[test]
fn who_is_refused_at_a_cap_is_told_how_long_its_line_is() {
    let mut lab = Lab::healthy();
    lab.admitted(FREE, ETL, capped(10));
    lab.now = lab.now.saturating_add(ms(1));
    while let Decision::Admit(permit) = lab.ask(FREE, ETL, capped(10)) {
        lab.controller.complete(lab.now, permit, Outcome::default());
    }
    for _ in 0..19 {
        lab.queued(FREE, ETL, capped(10));
    }
    let refusal =
        lab.refused(FREE, ETL, Terms { on_refused_check: OnRefusedCheck::Reject, ..capped(10) });
    let range = ms(1_500)..=ms(2_750);
    assert!(range.contains(&refusal.retry_after), "{:?}", refusal.retry_after);
}

#[test]
fn whoever_asks_without_waiting_is_held_to_the_cap_of_its_rule_too() {
    let mut lab = Lab::healthy();
    let mut allowed = 0;
    for _ in 0..2_000 {
        lab.now = lab.now.saturating_add(ms(1));
        let request = lab.request(FREE, ETL, capped(10));
        let purpose = crate::Purpose::Write { rows: None };
        match lab.controller.inquire(lab.now, &crate::Inquiry { request, purpose }) {
            crate::Answer::Allowed => allowed += 1,
            crate::Answer::Refused(refusal) => assert_eq!(refusal.reason, Reason::Paced),
            crate::Answer::Observed(_) => panic!("observed"),
        }
    }
    assert!((19..=23).contains(&allowed), "{allowed} in two seconds");
}

#[test]
fn who_is_refused_before_full_places_is_told_how_long_its_line_is() {
    let mut lab = Lab::healthy();
    let max_delay = Duration::from_secs(60);
    let terms = Terms { max_in_flight: Some(1), max_delay, ..Terms::default() };
    let Decision::Admit(mut running) = lab.ask(FREE, ETL, terms) else { panic!("it is free") };
    for _ in 0..30 {
        lab.queued(FREE, ETL, terms);
    }
    for _ in 0..10 {
        lab.now = lab.now.saturating_add(ms(200));
        lab.controller.complete(lab.now, running, Outcome::default());
        let next = lab.controller.poll_resolution(lab.now).map(|next| next.outcome);
        let Some(Resolved::Admit(next)) = next else { panic!("its place is free") };
        running = next;
    }
    let at_once = Terms { on_refused_check: OnRefusedCheck::Reject, ..terms };
    let refusal = lab.refused(FREE, ETL, at_once);
    let range = ms(3_150)..=ms(5_500);
    assert!(range.contains(&refusal.retry_after), "{:?}, and it is 4.2 s", refusal.retry_after);
}

#[test]
fn while_one_waits_at_a_shut_gate_the_cap_collects_for_one_more_and_no_other() {
    let mut lab = Lab::lagging();
    lab.rows_each = 100;
    let request = lab.request(GATED, ETL, capped(100));
    lab.controller.costs.learn(request.digest, request.app, 100.0);
    for _ in 0..5 {
        lab.queued(GATED, ETL, capped(100));
    }
    lab.run(Duration::from_secs(20));
    lab.lag(0.0);
    lab.run(ms(500));
    assert_eq!(lab.winners().len(), 2);
    lab.run(ms(1_000));
    assert_eq!(lab.winners().len(), 1, "a hundred rows are a second");
}
