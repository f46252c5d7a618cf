//! Lines that have just begun.

use super::*;
use crate::ring::young::YOUNG_MAX;

const AGE: Duration = Duration::from_secs(1);

fn at(ms: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
}

fn joins(ring: &mut Ring, lane: Lane, ms: u64, n: u64) {
    let place = (at(ms), Ticket(n));
    ring.join(at(ms), &joining(lane, place), &mut dice());
}

fn young(ring: &mut Ring, ms: u64) -> Option<u64> {
    ring.next_young(at(ms), AGE).map(|head| head.ticket.as_u64())
}

#[test]
fn lines_are_looked_at_in_turns_each_by_whoever_is_next_until_they_are_old_or_end() {
    let mut ring = Ring::default();
    joins(&mut ring, A, 0, 1);
    joins(&mut ring, B, 500, 2);
    joins(&mut ring, B, 600, 3);
    joins(&mut ring, C, 700, 4);
    assert_eq!([0, 1, 2, 3].map(|ms| young(&mut ring, 800 + ms)), [1, 2, 4, 1].map(Some));
    assert_eq!(young(&mut ring, 1_000), Some(2), "the first is old now");
    ring.leave(at(1_000), B, (at(500), Ticket(2)), &mut dice());
    ring.leave(at(1_000), C, (at(700), Ticket(4)), &mut dice());
    assert_eq!([0, 1].map(|ms| young(&mut ring, 1_100 + ms)), [Some(3); 2], "that one has gone");
    joins(&mut ring, C, 1_200, 5);
    assert_eq!([0, 1].map(|ms| young(&mut ring, 1_200 + ms)), [Some(3), Some(5)], "begun anew");
    assert_eq!(young(&mut ring, 1_500), Some(5));
    assert_eq!(young(&mut ring, 2_200), None);
    assert_eq!(ring.young(), 0);
}

#[test]
fn of_however_many_lines_so_many_are_known() {
    let mut ring = Ring::default();
    for n in 0..2_000 {
        joins(&mut ring, lane(n, n, n), 0, n);
    }
    assert_eq!(ring.young(), YOUNG_MAX);
    assert_eq!(young(&mut ring, 1_000), None);
    assert_eq!(ring.young(), 0);
}

#[test]
fn nobody_is_due_who_is_ahead_of_its_turn_by_more_than_it_may_be() {
    let mut ring = Ring::default();
    let heavy = Joining { cost: 100.0, ..joining(A, place(1)) };
    ring.join(MonoTime::ZERO, &heavy, &mut dice());
    join(&mut ring, B, 2, 2);
    join(&mut ring, B, 3, 2);
    assert!(ring.is_due(B, 0.0), "whoever has just come");
    for _ in 0..10 {
        ring.charge(B, 1.0, 2);
    }
    // Ten rows at a weight of two are five of the virtual time at its rule.
    assert!(!ring.is_due(B, 9.0) && !ring.is_due(B, 9.9));
    assert!(ring.is_due(B, 10.0));
    assert!(!ring.is_due(C, 1_000.0), "who does not wait");
}
