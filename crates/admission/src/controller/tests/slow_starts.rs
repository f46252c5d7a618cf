//! Apps at the limits of what may be on their way.

use super::asking::Path;
use super::*;
use crate::{Answer, DigestKey, Inquiry, Learned, Permit, Purpose};

#[test]
fn who_waits_at_its_own_limit_is_in_nobody_elses_way() {
    let mut path = Path::new();
    while path.now_ms < 1_000 {
        path.step(100.0);
    }
    let lab = &mut path.lab;
    let rate = Learned { rows_per_s: Some(20_000.0), ..Learned::default() };
    lab.controller.begin_with(&rate, Duration::ZERO);
    lab.run(ms(10));
    let first = loop {
        match lab.ask(GATED, ETL, Terms::default()) {
            Decision::Admit(permit) => {
                let outcome = Outcome { affected_rows: 40, ..Outcome::default() };
                lab.controller.complete(lab.now, permit, outcome);
            }
            Decision::Queue(ticket) => break ticket,
            other => panic!("{other:?}"),
        }
    };
    let view = lab.controller.pace_view(lab.now).map(|view| view.slow_starts);
    assert_eq!(view, Some(1), "it is no pace that it waits for");
    lab.run(ms(10));
    assert!(lab.winners().is_empty(), "nothing is shown: {first:?}");
    lab.admitted(GATED, DDL, rejecting(0.0));
    lab.admitted(GATED, DDL, Terms::default());
    let request = lab.request(GATED, IdentityKey(5), Terms::default());
    let inquiry = Inquiry { request, purpose: Purpose::Write { rows: Some(1) } };
    assert_eq!(lab.controller.inquire(lab.now, &inquiry), Answer::Allowed);
    let own = lab.ask(GATED, ETL, rejecting(0.0));
    assert!(matches!(own, Decision::Reject(_)), "nobody passes its own: {own:?}");
}

/// A path on which a statement that nobody knows has been admitted, and runs for so long.
fn with_a_first_that_runs(for_ms: u64) -> (Path, Permit) {
    let mut path = Path::new();
    while path.now_ms < 1_000 {
        path.step(1_000.0);
    }
    let Decision::Admit(first) = ask_new(&mut path.lab, ETL) else {
        panic!("the first of its kind")
    };
    while path.now_ms < 1_000 + for_ms {
        path.step(1_000.0);
    }
    (path, first)
}

fn ask_new(lab: &mut Lab, identity: IdentityKey) -> Decision {
    let digest = Some(DigestKey(77));
    let request = Request { digest, ..lab.request(GATED, identity, rejecting(0.0)) };
    lab.controller.request(lab.now, &request)
}

#[test]
fn until_the_first_of_its_kind_has_completed_no_other_goes() {
    let (mut path, first) = with_a_first_that_runs(700);
    let next = ask_new(&mut path.lab, ETL);
    assert!(matches!(next, Decision::Reject(_)), "it may be as large: {next:?}");
    path.lab.admitted(GATED, DDL, rejecting(0.0));
    let outcome = Outcome { affected_rows: 1, ..Outcome::default() };
    path.lab.controller.complete(path.lab.now, first, outcome);
    let next = ask_new(&mut path.lab, ETL);
    assert!(matches!(next, Decision::Admit(_)), "it is known: {next:?}");
}

#[test]
fn one_that_waits_for_a_lock_holds_its_kind_for_two_seconds() {
    let (mut path, _first) = with_a_first_that_runs(2_010);
    let next = ask_new(&mut path.lab, ETL);
    assert!(matches!(next, Decision::Admit(_)), "{next:?}");
}
