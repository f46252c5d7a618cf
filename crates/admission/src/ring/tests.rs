#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

mod dice;
mod young;

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
    Stands {
        lane,
        weight,
        ratio: Ratio::ZERO,
        cost: 1.0,
        since: MonoTime::MAX,
        absent: Absent::default(),
    }
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
fn an_identity_gets_back_what_it_paid_and_no_more() {
    let mut ring = Ring::default();
    let (first, second) = (lane(1, 1, 1), lane(1, 1, 2));
    // Nobody knows what it writes, and nobody waits.
    ring.charge(first, 600.0, 1);
    let served_at_once = ring.line_of(first);
    join(&mut ring, first, 1, 1);
    join(&mut ring, second, 2, 1);
    ring.settle(first, -599.0, 1, served_at_once);
    assert_eq!(next_checks(&mut ring, 4), [1, 2, 1, 2]);
    let head = ring.head().unwrap();
    ring.take(&head, 600.0, &mut dice());
    let in_turn = ring.line_of(head.lane);
    assert_eq!(next_checks(&mut ring, 3), [2, 2, 2]);
    ring.settle(head.lane, -598.0, 1, in_turn);
    assert_eq!(next_checks(&mut ring, 3), [1, 1, 2], "level again");
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
    let told = |stands: &Stands| {
        let ahead = ring.ahead(stands);
        (ahead.rows(None), ahead.statements, ahead.since)
    };
    assert_eq!(told(&last(A, 1)), ((41.0, 0.0), 10, since(0)));
    assert_eq!(told(&last(B, 3)), ((41.0, 0.0), 30, since(0)));
    assert_eq!(told(&last(C, 1)), ((5.0, 0.0), 0, None));
    let seen = |part, statements| ring.ahead(&last(A, 1)).rows(Some(Part { part, statements })).0;
    assert_eq!(seen(0.25, 8), 44.0, "its share, whatever the others have left");
    assert_eq!(seen(0.3, 8), 44.0, "by chance");
    assert_eq!(seen(0.5, 100), 22.0, "the others leave some of theirs");
    assert_eq!(seen(0.01, 100), 44.0, "nobody gets less than its share");
}

#[test]
fn who_first_asked_earlier_is_ahead_and_who_is_to_come_back_is_as_well() {
    let mut ring = Ring::default();
    for n in 0..10 {
        join(&mut ring, A, n, 1);
    }
    let some = Standing { statements: 10, cost: 20.0 };
    let absent = Absent { lane: some, app: some, ..Absent::default() };
    let third = Stands { since: place(3).0, absent, ..last(A, 1) };
    let ahead = ring.ahead(&third);
    assert_eq!((ahead.rows(None), ahead.statements), ((4.0, 20.0), 13));
    join(&mut ring, B, 10, 1);
    assert_eq!(ring.ahead(&third).rows(None), (8.0, 40.0), "beside one other");
    let away = Absent { parts: part_of(1, Ratio::ZERO), ..absent };
    let ahead = ring.ahead(&Stands { absent: away, ..third });
    let part = |part| ahead.rows(Some(Part { part, statements: 100 })).0;
    assert_eq!((part(0.1), part(0.5)), (12.0, 8.0), "and beside one that is away");
}

#[test]
fn an_app_s_turns_go_from_lane_to_lane_and_the_lanes_of_those_who_are_away_count() {
    let mut ring = Ring::default();
    for n in 0..30 {
        join(&mut ring, Lane { identity: IdentityKey(100 + n), ..A }, n, 1);
    }
    let some = Standing { statements: 10, cost: 10.0 };
    let absent = Absent { app: some, lanes: 10, ..Absent::default() };
    let new = ring.ahead(&Stands { absent, ..last(A, 1) });
    assert_eq!((new.own, new.statements), (41.0, 40), "all who asked before");
    for n in 30..300 {
        join(&mut ring, Lane { identity: IdentityKey(100), ..A }, n, 1);
    }
    let beside = ring.ahead(&last(A, 1));
    assert_eq!(
        (beside.own, beside.statements),
        (31.0, 30),
        "one of each, however long their lines"
    );
}

#[test]
fn in_a_long_line_those_count_who_first_asked_before() {
    let mut ring = Ring::default();
    let place = |n: u64| (MonoTime::from_nanos(n * 250_000_000), Ticket(n));
    let before =
        |ring: &Ring, n| ring.ahead(&Stands { since: place(n).0, ..last(A, 1) }).statements;
    for n in 0..100 {
        for k in 0..3 {
            let place = (place(n).0, Ticket(1_000 * k + n));
            let joining = Joining { kept: n < 20, ..joining(A, place) };
            ring.join(MonoTime::ZERO, &joining, &mut dice());
        }
    }
    assert_eq!([10, 40, 60, 95].map(|n| before(&ring, n)), [30, 120, 180, 285]);
    // Of one lane of many it is those who have come back, and one of each of the others.
    join(&mut ring, Lane { identity: IdentityKey(77), ..A }, 0, 1);
    assert_eq!([10, 40, 60, 95].map(|n| before(&ring, n)), [31, 121, 121, 286]);
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
    assert_eq!(
        (even.rows(None).0, diced.rows(None).0),
        expected,
        "a half of it, and a tenth beside all of it"
    );
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

/// Whoever came after an app at its limit was charged for seconds, and then had nothing for half a
/// minute.
#[test]
fn who_was_passed_over_is_owed_no_more_than_it_may_have() {
    for b in [B, Lane { rule: A.rule, ..B }] {
        let mut ring = Ring::default();
        join(&mut ring, A, 1, 1);
        for n in 2..200 {
            join(&mut ring, b, n, 1);
        }
        for _ in 0..100 {
            let head = ring.head_where(|head| head.lane.app != A.app).unwrap();
            ring.bring_along(A, head.lane, 5.0);
            ring.take(&head, 1.0, &mut dice());
        }
        let mut owed = 0;
        while let Some(head) = ring.head().filter(|head| head.lane == A) {
            ring.take(&head, 1.0, &mut dice());
            owed += 1;
        }
        assert_eq!(owed, 7, "with the last turn of the other, and its own");
        ring.bring_along(A, C, 0.0);
        assert_eq!(ring.head().unwrap().lane, b, "nobody knows what is not there");
    }
}

#[test]
fn who_may_not_is_passed_over_and_keeps_its_turn() {
    let mut ring = Ring::default();
    for (n, lane) in [(1, A), (2, B), (3, C)] {
        join(&mut ring, lane, n, 1);
    }
    let but = |app: u64| move |head: &Head| head.lane.app != AppKey(app);
    let mut taken = Vec::new();
    for _ in 0..2 {
        let head = ring.head_where(but(1)).unwrap();
        taken.push(head.ticket.as_u64());
        ring.take(&head, 1.0, &mut dice());
    }
    assert_eq!(taken, [2, 3]);
    assert_eq!(ring.head().unwrap().ticket, Ticket(1), "its turn is still to come");
    assert!(ring.head_where(|_| false).is_none());
    let mut of_one_rule = Ring::default();
    for app in 1..=40 {
        join(&mut of_one_rule, Lane { app: AppKey(app), ..A }, app, 1);
    }
    assert_eq!(of_one_rule.head_where(but(1)).unwrap().ticket, Ticket(2), "of the same rule");
    let mut looked = 0;
    let last = of_one_rule.head_where(|head| {
        looked += 1;
        head.lane.app == AppKey(40)
    });
    assert!(last.is_none() && looked == 17, "{looked} were looked at");
}
