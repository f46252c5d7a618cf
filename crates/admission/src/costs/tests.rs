//! What is expected of digests and apps, known and new.

use std::time::Duration;

use super::*;
use crate::request::Lane;
use crate::row_work::Price;
use crate::{GateKey, IdentityKey, RuleKey};

const APP: AppKey = AppKey(1);
const COPY: Option<DigestKey> = Some(DigestKey(1));

#[test]
fn what_a_digest_wrote_is_expected_again_and_a_change_is_followed() {
    let mut costs = Costs::default();
    assert_eq!(costs.expected(COPY, APP, 0.0), COST_MIN);
    costs.learn(COPY, APP, 10_000.0);
    assert_eq!(costs.expected(COPY, APP, 0.0), 10_000.0);
    for _ in 0..20 {
        costs.learn(COPY, APP, 100.0);
    }
    assert!((100.0..150.0).contains(&costs.expected(COPY, APP, 0.0)));
    assert_eq!(costs.expected(Some(DigestKey(2)), AppKey(2), 0.0), COST_MIN);
}

#[test]
fn a_digest_that_is_not_known_costs_what_its_app_costs() {
    let mut costs = Costs::default();
    costs.learn(COPY, APP, 500.0);
    assert_eq!(costs.expected(Some(DigestKey(2)), APP, 0.0), 500.0);
    assert_eq!(costs.expected(None, APP, 0.0), 500.0);
}

#[test]
fn a_digest_that_nobody_knows_may_be_a_large_one() {
    let mut costs = Costs::default();
    assert_eq!(costs.expected(COPY, APP, 600.0), 600.0);
    costs.learn(COPY, APP, 1.0);
    assert_eq!(costs.expected(COPY, APP, 600.0), 1.0);
    let next = costs.expected(Some(DigestKey(2)), APP, 600.0);
    assert!(next > 500.0, "another digest of the same app: {next}");
    assert_eq!(costs.expected(None, APP, 600.0), 1.0, "without digests the app is what counts");
}

#[test]
fn an_app_whose_statements_are_all_new_is_known_by_its_mean() {
    let mut costs = Costs::default();
    for n in 0..300 {
        costs.learn(Some(DigestKey(n)), APP, 2.0);
    }
    let next = costs.expected(Some(DigestKey(999)), APP, 600.0);
    assert!(next < 3.0, "{next}");
}

#[test]
fn a_statement_without_rows_costs_its_time() {
    let hour = Outcome { server_time: Duration::from_secs(3_600), ..Outcome::default() };
    assert_eq!(cost_of(&hour), 360_000.0);
    assert_eq!(cost_of(&Outcome { affected_rows: 7, ..hour }), 7.0);
    assert_eq!(rows_cost(u64::MAX), COST_MAX);
    let read = Outcome { reading: hour.server_time, ..hour };
    assert_eq!(cost_of(&read), 0.0, "a replica has nothing of it");
    let both = Outcome { reading: Duration::from_secs(3_599), ..hour };
    assert_eq!(cost_of(&both), 100.0, "a CALL behind it in one transaction");
}

#[test]
fn what_was_known_is_known_again_the_dearest_first_and_what_is_learned_stays() {
    let mut costs = Costs::default();
    for (n, cost) in [(1, 10.0), (2, 500.0), (3, 70.0)] {
        costs.learn(Some(DigestKey(n)), APP, cost);
    }
    let (digests, apps) = costs.known(2);
    assert_eq!(digests, [(DigestKey(2), 500.0), (DigestKey(3), 70.0)]);
    let mut next = Costs::default();
    next.learn(Some(DigestKey(3)), AppKey(9), 1.0);
    next.begin_with(&digests, &apps);
    assert_eq!(next.expected(Some(DigestKey(2)), APP, 9_000.0), 500.0);
    assert_eq!(next.expected(Some(DigestKey(3)), APP, 9_000.0), 1.0, "learned here");
    assert_eq!(next.expected(None, APP, 9_000.0), costs.expected(None, APP, 9_000.0));
    next.begin_with(&[(DigestKey(7), f64::NAN), (DigestKey(8), -1.0)], &[]);
    assert_eq!(next.expected(Some(DigestKey(8)), AppKey(5), 600.0), 600.0);
}

#[test]
fn digests_that_clients_make_up_are_forgotten() {
    let mut costs = Costs::default();
    for n in 0..50_000 {
        costs.learn(Some(DigestKey(n)), AppKey(n), 3.0);
    }
    assert_eq!((costs.digests.len(), costs.apps.len()), (DIGESTS_MAX, APPS_MAX));
    assert_eq!(costs.averages.len(), DIGESTS_MAX.saturating_add(APPS_MAX));
    assert!(costs.news.len() <= APPS_MAX);
}

#[test]
fn an_app_is_not_forgotten_for_the_texts_that_it_makes_up() {
    let mut costs = Costs::default();
    for n in 0..50_000 {
        costs.learn(Some(DigestKey(n)), APP, 3.0);
    }
    assert!(costs.expected(Some(DigestKey(99_999)), APP, 600.0) < 4.0);
}

fn account(digest: u64, is_new: bool) -> Account {
    let lane = Lane { rule: RuleKey(1), app: APP, identity: IdentityKey(1) };
    Account {
        gate: GateKey(1),
        lane,
        weight: 1,
        line: None,
        digest: Some(DigestKey(digest)),
        is_new,
        expected: 1.0,
        written: None,
        price: Price::ROW,
        cost: 1.0,
        counted: false,
        charged_more: 0.0,
        shared: 0.0,
        charge: None,
        place: None,
    }
}

#[test]
fn the_more_small_texts_an_app_has_shown_the_less_the_next_is_feared() {
    let mut costs = Costs::default();
    for n in 0..100 {
        costs.learn(Some(DigestKey(n)), APP, 2.0);
        for _ in 0..20 {
            costs.learn(Some(DigestKey(0)), APP, 2.0);
        }
    }
    let next = costs.expected(Some(DigestKey(999)), APP, 600.0);
    assert!((50.0..60.0).contains(&next), "one in eleven: {next}");
}

#[test]
fn beside_others_that_nobody_knows_yet_it_is_feared_more_and_its_like_as_ever() {
    let mut costs = Costs::default();
    for n in 0..100 {
        costs.learn(Some(DigestKey(n)), APP, 2.0);
        costs.learn(COPY, APP, 2.0);
    }
    let next = |costs: &Costs, n| costs.expected(Some(DigestKey(n)), APP, 600.0);
    let alone = next(&costs, 1_000);
    assert!(costs.begin(Some(DigestKey(1_000)), APP));
    assert_eq!(next(&costs, 1_000), 600.0, "the first of its kind runs");
    let beside = next(&costs, 1_001);
    assert!(beside > 3.9 * alone, "{beside}, alone {alone}");
    assert!(!costs.begin(COPY, APP), "it is known");
    assert_eq!(next(&costs, 1), 2.0, "and costs what it costs");
    costs.end(&account(1_000, true));
    assert_eq!(next(&costs, 1_000), alone);
    assert!(costs.running.is_empty());
}

#[test]
fn what_an_apps_new_texts_cost_is_expected_of_the_next() {
    let mut costs = Costs::default();
    for n in 0..100 {
        costs.learn(Some(DigestKey(n)), APP, 500.0);
        for _ in 0..50 {
            costs.learn(Some(DigestKey(0)), APP, 1.0);
        }
    }
    let next = costs.expected(Some(DigestKey(999)), APP, 0.0);
    assert!((499.0..501.0).contains(&next), "{next}");
}

#[test]
fn how_long_a_digest_runs_is_its_own_and_what_is_not_known_runs_like_its_app() {
    let mut costs = Costs::default();
    let next = Some(DigestKey(2));
    costs.ran(COPY, APP, Duration::from_secs(9));
    assert_eq!(costs.lasts(COPY, APP), None, "it has not been learned");
    costs.learn(COPY, APP, 1.0);
    assert_eq!(costs.lasts(COPY, APP), None);
    costs.ran(COPY, APP, Duration::from_secs(4));
    assert_eq!((costs.lasts(COPY, APP), costs.lasts(next, APP)), (Some(4.0), Some(4.0)));
    costs.learn(next, APP, 1.0);
    costs.ran(next, APP, Duration::ZERO);
    assert_eq!((costs.lasts(COPY, APP), costs.lasts(next, APP)), (Some(4.0), Some(0.0)));
    assert_eq!(costs.lasts(None, APP), Some(3.0));
}
