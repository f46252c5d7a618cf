#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

mod dice;

use rand::SeedableRng as _;

use super::*;

const A: Lane = lane(1, 1, 1);
const B: Lane = lane(2, 2, 2);
const C: Lane = lane(3, 3, 3);

const fn lane(rule: u64, app: u64, identity: u64) -> Lane {
    Lane { rule: RuleKey(rule), app: AppKey(app), identity: IdentityKey(identity) }
}

fn dice() -> StdRng {
    StdRng::seed_from_u64(1)
}

fn place(n: u64) -> Place {
    (MonoTime::from_nanos(n), Ticket(n))
}

fn joining(lane: Lane, place: Place) -> Joining {
    let ratio = Ratio::ZERO;
    Joining { lane, place, weight: 1, cost: 1.0, known: 1.0, ratio, kept: false }
}

fn join(ring: &mut Ring, lane: Lane, n: u64, weight: u32) {
    let joining = Joining { weight, ..joining(lane, place(n)) };
    ring.join(MonoTime::ZERO, &joining, &mut dice());
}

/// The end of a lane.
fn last(lane: Lane, weight: u32) -> Stands {
    Stands { lane, weight, ratio: Ratio::ZERO, cost: 1.0, since: MonoTime::MAX, away: 0.0 }
}

fn next_checks(ring: &mut Ring, count: usize) -> Vec<u64> {
    (0..count)
        .map(|_| {
            let head = ring.head().unwrap();
            ring.take(&head, head.cost, &mut dice());
            head.ticket.as_u64()
        })
        .collect()
}

#[test]
fn turns_go_round_and_losers_keep_the_head() {
    let mut ring = Ring::default();
    join(&mut ring, A, 1, 1);
    join(&mut ring, A, 2, 1);
    join(&mut ring, B, 3, 1);
    assert_eq!(next_checks(&mut ring, 5), [1, 3, 1, 3, 1]);
}

#[test]
fn the_turn_goes_on_from_where_it_stopped() {
    let mut ring = Ring::default();
    for (lane, n) in [(A, 1), (B, 2), (C, 3)] {
        join(&mut ring, lane, n, 1);
    }
    assert_eq!(next_checks(&mut ring, 2), [1, 2]);
    ring.leave(MonoTime::ZERO, B, place(2), &mut dice());
    join(&mut ring, B, 4, 1);
    assert_eq!(next_checks(&mut ring, 4), [3, 1, 4, 3]);
}

#[test]
fn a_weight_is_that_many_checks_for_each_of_the_others() {
    let mut ring = Ring::default();
    join(&mut ring, A, 1, 3);
    join(&mut ring, B, 2, 0);
    let checks = next_checks(&mut ring, 40);
    assert_eq!(checks.iter().filter(|n| **n == 1).count(), 30);
}

#[test]
fn identities_of_one_app_share_its_turn() {
    let mut ring = Ring::default();
    join(&mut ring, A, 1, 1);
    for n in 100..200 {
        join(&mut ring, lane(2, 2, n), n, 1);
    }
    let checks = next_checks(&mut ring, 200);
    assert_eq!(checks.iter().filter(|n| **n == 1).count(), 100);
    let mut others: Vec<u64> = checks.into_iter().filter(|n| *n != 1).collect();
    others.sort_unstable();
    assert_eq!(others, (100..200).collect::<Vec<u64>>(), "each has had one turn");
}

#[test]
fn apps_of_one_rule_share_its_turn_and_identities_that_of_their_app() {
    let mut ring = Ring::default();
    join(&mut ring, A, 1, 1);
    for n in 100..120 {
        join(&mut ring, lane(2, n, n), n, 3);
        join(&mut ring, lane(2, n, n + 1_000), n + 1_000, 3);
    }
    let checks = next_checks(&mut ring, 400);
    assert_eq!(checks.iter().filter(|n| **n == 1).count(), 100, "one of four");
    for n in 100..120 {
        let of_app = checks.iter().filter(|check| **check % 1_000 == n).count();
        assert_eq!(of_app, 15, "a twentieth of three of four");
    }
}

#[test]
fn whoever_arrived_first_is_ahead_although_it_asked_later() {
    let mut ring = Ring::default();
    let places = [(20, 1), (10, 2)];
    for (at, ticket) in places {
        let place = (MonoTime::from_nanos(at), Ticket(ticket));
        ring.join(MonoTime::ZERO, &joining(A, place), &mut dice());
    }
    assert_eq!(ring.head().map(|head| head.ticket), Some(Ticket(2)));
    assert_eq!((ring.len, ring.lanes()), (2, 1));
}

#[test]
fn what_is_ahead_is_the_own_lane_and_the_others_share_of_it() {
    let mut ring = Ring::default();
    for n in 0..10 {
        join(&mut ring, A, n, 1);
    }
    for n in 10..40 {
        join(&mut ring, B, n, 3);
    }
    let since = |n| Some(place(n).0);
    let of_a = Ahead { about: 41.0, away: 0.0, statements: 10, since: since(0) };
    assert_eq!(ring.ahead(&last(A, 1)), of_a);
    let of_b = ring.ahead(&last(B, 3));
    assert_eq!((of_b.about, of_b.since), (41.0, since(10)));
    let of_c = Ahead { about: 5.0, away: 0.0, statements: 0, since: None };
    assert_eq!(ring.ahead(&last(C, 1)), of_c);
}

#[test]
fn who_first_asked_earlier_is_ahead_and_who_is_to_come_back_is_as_well() {
    let mut ring = Ring::default();
    for n in 0..10 {
        join(&mut ring, A, n, 1);
    }
    let third = Stands { since: place(3).0, away: 20.0, ..last(A, 1) };
    let ahead = ring.ahead(&third);
    assert_eq!((ahead.about, ahead.away, ahead.statements), (4.0, 20.0, 3));
    join(&mut ring, B, 10, 1);
    let ahead = ring.ahead(&third);
    assert_eq!((ahead.about, ahead.away), (8.0, 40.0), "beside one other");
}

#[test]
fn in_a_long_line_those_count_for_what_is_ahead_who_have_come_back() {
    let mut ring = Ring::default();
    for n in 0..600 {
        let joining = Joining { kept: n < 200, ..joining(A, place(n)) };
        ring.join(MonoTime::ZERO, &joining, &mut dice());
    }
    let before = |n| ring.ahead(&Stands { since: place(n).0, ..last(A, 1) }).statements;
    assert_eq!([before(250), before(300)], [200, 200]);
    assert_eq!([before(60), before(540)], [60, 540]);
}

#[test]
fn whoever_mostly_loses_its_checks_has_more_ahead() {
    let mut ring = Ring::default();
    for n in 0..10 {
        join(&mut ring, A, n, 1);
    }
    let even = ring.ahead(&last(B, 1));
    let diced = ring.ahead(&Stands { ratio: Ratio::new(0.9).unwrap(), ..last(B, 1) });
    let expected = (2.0, 11.0);
    assert_eq!((even.about, diced.about), expected, "a half of it, and a tenth beside all of it");
}

#[test]
fn leaving_twice_is_leaving_once() {
    let mut ring = Ring::default();
    join(&mut ring, A, 1, 1);
    ring.leave(MonoTime::ZERO, A, place(1), &mut dice());
    ring.leave(MonoTime::ZERO, A, place(1), &mut dice());
    ring.leave(MonoTime::ZERO, B, place(9), &mut dice());
    assert!(ring.is_empty());
    assert!(ring.head().is_none());
    assert_eq!((ring.turns.first(), ring.rules[&A.rule].apps.len(), ring.weight), (None, 0, 0));
}
