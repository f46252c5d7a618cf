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

fn join(ring: &mut Ring, lane: Lane, n: u64, weight: u32) {
    let ratio = Ratio::ZERO;
    ring.join(
        MonoTime::ZERO,
        &Joining { lane, place: place(n), weight, cost: 1.0, known: 1.0, ratio },
        &mut dice(),
    );
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
        let joining =
            Joining { lane: A, place, weight: 1, cost: 1.0, known: 1.0, ratio: Ratio::ZERO };
        ring.join(MonoTime::ZERO, &joining, &mut dice());
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
    let of_a = Ahead { about: 41.0, turn: 4.0, since: since(0) };
    assert_eq!(ring.ahead(A, (1, Ratio::ZERO), 1.0), of_a);
    let of_b = ring.ahead(B, (3, Ratio::ZERO), 1.0);
    assert_eq!((of_b.about, of_b.since), (41.0, since(10)));
    assert_eq!(ring.ahead(C, (1, Ratio::ZERO), 1.0), Ahead { about: 5.0, turn: 5.0, since: None });
}

#[test]
fn whoever_mostly_loses_its_checks_has_more_ahead() {
    let mut ring = Ring::default();
    for n in 0..10 {
        join(&mut ring, A, n, 1);
    }
    let even = ring.ahead(B, (1, Ratio::ZERO), 1.0);
    let diced = ring.ahead(B, (1, Ratio::new(0.9).unwrap()), 1.0);
    assert_eq!((even.turn, diced.turn), (2.0, 11.0), "a half of it, and a tenth beside all of it");
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
