use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::*;

fn at(ms: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
}

fn bid(cost: f64, weight: u32) -> Bid {
    Bid { cost, weight, ratio: Ratio::ZERO }
}

impl<K: Copy + Ord> Turns<K> {
    fn join(&mut self, now: MonoTime, who: K, bid: &Bid, dice: &mut StdRng) {
        self.join_as_of((now, now), who, bid, dice);
    }
}

fn dice() -> StdRng {
    StdRng::seed_from_u64(1)
}

fn turns(of: &mut Turns<char>, costs: &[(char, f64, u32)], count: usize) -> String {
    (0..count)
        .map(|_| {
            let who = of.first().unwrap();
            let &(_, cost, weight) = costs.iter().find(|(name, ..)| *name == who).unwrap();
            of.take(who, &bid(cost, weight), &mut dice());
            who
        })
        .collect()
}

fn joined(names: &str) -> Turns<char> {
    let mut turns = Turns::default();
    names.chars().for_each(|name| turns.join(at(0), name, &bid(1.0, 1), &mut dice()));
    turns
}

#[test]
fn equals_take_turns_in_the_order_they_came() {
    let mut all = joined("abc");
    let costs = [('a', 1.0, 1), ('b', 1.0, 1), ('c', 1.0, 1)];
    assert_eq!(turns(&mut all, &costs, 7), "abcabca");
}

#[test]
fn weights_share_turns_and_costs_share_charges() {
    let mut all = joined("ab");
    let taken = turns(&mut all, &[('a', 1.0, 3), ('b', 1.0, 1)], 400);
    assert_eq!(taken.matches('a').count(), 300);
    let mut all = joined("ab");
    let taken = turns(&mut all, &[('a', 500.0, 1), ('b', 1.0, 1)], 5_010);
    assert_eq!(taken.matches('a').count(), 10);
}

#[test]
fn leaving_and_coming_back_loses_neither_charge_nor_claim() {
    let mut all = joined("ab");
    let mut taken = String::new();
    for n in 0..100 {
        let who = all.first().unwrap();
        all.take(who, &bid(1.0, 1), &mut dice());
        // Both leave after each of their turns, as a single client does, and are back soon.
        all.leave(at(n), who);
        if who == 'a' {
            // Nobody else waits: `b` has a turn that is none of its share.
            all.charge('b', 1.0, 1);
        }
        all.join(at(n + 1), who, &bid(1.0, 1), &mut dice());
        taken.push(who);
    }
    // The claim of `a` never grows beyond what `b` had: in all they had the same.
    let of_a = taken.matches('a').count();
    assert!(of_a >= 99, "b has had as many while a was away: {taken}");
}

#[test]
fn who_left_a_moment_ago_is_a_rival_still() {
    let mut all = joined("ab");
    assert!(all.has_rival(at(0), 'a'));
    all.leave(at(0), 'b');
    assert!(all.has_rival(at(1_000), 'a'));
    assert!(!all.has_rival(at(1_001), 'a'));
    for n in 0..10 {
        all.leave(at(n), 'a');
        all.join(at(n), 'a', &bid(1.0, 1), &mut dice());
    }
    assert!(all.has_rival(at(900), 'a') && !all.has_rival(at(2_000), 'a'));
    assert!(all.has_rival(at(900), 'b'));
}

#[test]
fn whoever_was_away_for_long_starts_with_the_others() {
    let mut all = joined("ab");
    turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 2);
    all.leave(at(0), 'a');
    turns(&mut all, &[('b', 1.0, 1)], 50);
    all.join(at(1_001), 'a', &bid(1.0, 1), &mut dice());
    let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 10);
    assert!(taken.matches('a').count() <= 6, "no turns are saved up: {taken}");
}

#[test]
fn a_charge_is_not_lost_by_staying_away_for_a_while() {
    let mut all = joined("ab");
    all.take('a', &bid(1_000.0, 1), &mut dice());
    all.leave(at(0), 'a');
    all.join(at(30_000), 'a', &bid(1.0, 1), &mut dice());
    let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 500);
    assert_eq!(taken.matches('a').count(), 0);
}

#[test]
fn what_was_had_alone_is_owed_to_nobody() {
    let mut all = joined("a");
    all.take('a', &bid(1.0, 1), &mut dice());
    all.leave(at(0), 'a');
    for _ in 0..10_000 {
        all.charge('a', 1.0, 1);
    }
    // Now both want more than there is.
    all.join(at(20_000), 'b', &bid(1.0, 1), &mut dice());
    all.join(at(20_000), 'a', &bid(1.0, 1), &mut dice());
    let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 20);
    assert_eq!(taken.matches('a').count(), 10, "{taken}");
}

#[test]
fn what_was_charged_beside_somebody_who_waits_is_owed() {
    let mut all = joined("ab");
    all.leave(at(0), 'a');
    all.charge('a', 30.0, 1);
    all.join(at(2_000), 'a', &bid(1.0, 1), &mut dice());
    let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 30);
    assert!(taken.matches('a').count() <= 1, "{taken}");
}

#[test]
fn whoever_asks_for_little_saves_up_no_claim() {
    let mut all = joined("ab");
    for n in 0..600 {
        // `b` is back each time before its absence counts, and wants one turn of ten.
        all.join(at(n * 100), 'b', &bid(1.0, 1), &mut dice());
        while all.first() != Some('b') {
            all.take('a', &bid(1.0, 1), &mut dice());
        }
        all.take('b', &bid(1.0, 1), &mut dice());
        all.leave(at(n * 100), 'b');
        turns(&mut all, &[('a', 1.0, 1)], 9);
    }
    all.join(at(60_000), 'b', &bid(1.0, 1), &mut dice());
    let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 400);
    let of_b = taken.matches('b').count();
    assert!((200..=255).contains(&of_b), "what it missed in a second at most: {taken}");
}

#[test]
fn a_claim_lasts_until_it_is_had_also_by_one_turn_at_a_time() {
    let mut all = joined("ab");
    all.take('b', &bid(1.0, 1), &mut dice());
    all.leave(at(0), 'b');
    turns(&mut all, &[('a', 1.0, 1)], 20);
    // All of its clients come back, each when the one before it has been served.
    for n in 0..15 {
        all.join(at(100 + n), 'b', &bid(1.0, 1), &mut dice());
        assert_eq!(all.first(), Some('b'), "turn {n}");
        all.take('b', &bid(1.0, 1), &mut dice());
        all.leave(at(100 + n), 'b');
    }
}

#[test]
fn those_who_left_are_remembered_up_to_a_bound_and_every_index_agrees() {
    let mut all: Turns<u32> = Turns::default();
    all.join(at(0), 0, &bid(1.0, 1), &mut dice());
    for who in 1..20_000 {
        all.join(at(0), who, &bid(1.0, 1), &mut dice());
        all.take(who, &bid(5.0, 1), &mut dice());
        all.leave(at(0), who);
    }
    assert!(all.absent.len() <= ABSENT_MAX && all.left.len() <= ABSENT_MAX);
    assert_eq!((all.waiting.len(), all.order.len()), (1, 1));
    for _ in 0..300 {
        all.leave(at(60_000), 0);
        all.join(at(60_000), 0, &bid(1.0, 1), &mut dice());
    }
    all.leave(at(60_000), 0);
    all.leave(at(60_001), 0);
    assert_eq!((all.first(), all.waiting.len()), (None, 0));
    assert_eq!((all.absent.len(), all.left.len()), (1, 301), "the others left a minute ago");
}

#[test]
fn who_comes_back_has_the_turn_of_when_it_first_asked_and_once() {
    let mut all = Turns::default();
    // Each asks when the other is served, so the virtual time goes on, with twenty in line.
    for n in 0..20_u64 {
        all.join(at(0), n, &bid(1.0, 1), &mut dice());
    }
    let serve = |all: &mut Turns<u64>, ms: u64, new: u64| {
        let first = all.first().unwrap();
        all.take(first, &bid(1.0, 1), &mut dice());
        all.leave(at(ms), first);
        all.join(at(ms), new, &bid(1.0, 1), &mut dice());
        first
    };
    for n in 20..60_u64 {
        assert_eq!(serve(&mut all, 100 * n, n), n - 20, "first come first served");
    }
    // 1,000 asked when 45 did, was refused, and comes back: before 46, once.
    all.join_as_of((at(4_550), at(6_000)), 1_000, &bid(1.0, 1), &mut dice());
    let order: Vec<u64> = (60..90).map(|n| serve(&mut all, 100 * n, n)).collect();
    let place = order.iter().position(|who| *who == 1_000).unwrap();
    assert!((4..=7).contains(&place), "{order:?}");
    all.join(at(9_000), 1_000, &bid(1.0, 1), &mut dice());
    let order: Vec<u64> = (90..120).map(|n| serve(&mut all, 100 * n, n)).collect();
    let place = order.iter().position(|who| *who == 1_000).unwrap();
    assert!(place >= 19, "behind all who wait: {order:?}");
}

#[test]
fn who_is_away_for_a_moment_is_ahead_of_whoever_has_a_later_turn() {
    let mut all = joined("ab");
    let large = (1_000.0, 1);
    assert_eq!(turns(&mut all, &[('a', 1_000.0, 1)], 1), "a");
    assert!(!all.rival_is_ahead(at(0), 'a', large), "b waits, which is no absence");
    all.leave(at(10), 'b');
    assert!(all.rival_is_ahead(at(10), 'a', large));
    assert!(all.rival_is_ahead(at(1_010), 'a', large));
    assert!(!all.rival_is_ahead(at(1_011), 'a', large), "that is no moment");
    assert!(!all.rival_is_ahead(at(10), 'b', (1.0, 1)), "nobody is a rival of itself");
    assert!(all.rival_is_ahead(at(10), 'c', large), "who comes with so much comes later");
    all.charge('b', 1_000.0, 1);
    assert!(!all.rival_is_ahead(at(10), 'a', large), "it has had as much");
}
