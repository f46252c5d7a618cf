//! The fair queue of one gate: lanes by identity, turns between them.
//!
//! Theory. Every identity that waits has one lane; within a lane the first to have arrived is at the head.
//! Checks are handed out to heads, lane after lane; a lane with weight w gets w checks in its turn. A head
//! that loses stays the head. So in the long run every waiting identity gets the same number of checks
//! (times its weight), and since a check of ratio r wins with probability 1 − r, admissions are shared in
//! proportion to 1 − r: 0.9 and 0.1 give 1 : 9. The turn is kept while the gate is shut and goes on from
//! where it stopped: starting over at every opening would favour whoever is first.
//!
//! A lane that empties leaves the ring; when it comes back it queues up behind everybody's turn.
//! All operations are O(log waiters).

use std::collections::BTreeMap;

use crate::{IdentityKey, MonoTime, Terms, Ticket};

/// A place in a lane: first arrival, then the order of asking.
pub(crate) type Place = (MonoTime, Ticket);

#[derive(Debug, Default)]
pub(crate) struct Ring {
    lanes: BTreeMap<IdentityKey, Lane>,
    /// The order of turns; the first entry has its turn now. As many entries as lanes.
    turns: BTreeMap<u64, IdentityKey>,
    next_turn: u64,
    /// Checks left in the present turn; `None` before its first.
    checks_left: Option<u32>,
    len: usize,
}

#[derive(Debug)]
struct Lane {
    turn: u64,
    /// Never empty: places in order, each with its weight.
    line: BTreeMap<Place, u32>,
}

impl Ring {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn join(&mut self, identity: IdentityKey, place: Place, weight: u32) {
        let lane = self.lanes.entry(identity).or_insert_with(|| {
            let turn = self.next_turn;
            self.next_turn = turn.saturating_add(1);
            self.turns.insert(turn, identity);
            Lane { turn, line: BTreeMap::new() }
        });
        if lane.line.insert(place, weight.clamp(1, Terms::WEIGHT_MAX)).is_none() {
            self.len = self.len.saturating_add(1);
        }
    }

    pub(crate) fn leave(&mut self, identity: IdentityKey, place: Place) {
        let Some(lane) = self.lanes.get_mut(&identity) else { return };
        if lane.line.remove(&place).is_none() {
            return;
        }
        self.len = self.len.saturating_sub(1);
        if lane.line.is_empty() {
            let turn = lane.turn;
            self.lanes.remove(&identity);
            if self.turns.first_key_value().is_some_and(|(&first, _)| first == turn) {
                self.checks_left = None;
            }
            self.turns.remove(&turn);
        }
    }

    /// Who gets the next check.
    pub(crate) fn head(&self) -> Option<Ticket> {
        let identity = self.turns.first_key_value()?.1;
        let ((_, ticket), _) = self.lanes.get(identity)?.line.first_key_value()?;
        Some(*ticket)
    }

    /// The head has used one check; the turn passes on when it was its lane's last.
    pub(crate) fn spend_check(&mut self) {
        let Some((_, &identity)) = self.turns.first_key_value() else { return };
        let Some(lane) = self.lanes.get_mut(&identity) else { return };
        let of_head = lane.line.first_key_value().map_or(1, |(_, &weight)| weight);
        let left = self.checks_left.unwrap_or(of_head).saturating_sub(1);
        if left > 0 {
            self.checks_left = Some(left);
            return;
        }
        self.checks_left = None;
        self.turns.remove(&lane.turn);
        lane.turn = self.next_turn;
        self.turns.insert(lane.turn, identity);
        self.next_turn = self.next_turn.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IdentityKey = IdentityKey(1);
    const B: IdentityKey = IdentityKey(2);
    const C: IdentityKey = IdentityKey(3);

    fn place(n: u64) -> Place {
        (MonoTime::from_nanos(n), Ticket(n))
    }

    fn next_checks(ring: &mut Ring, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let head = ring.head().unwrap().as_u64();
                ring.spend_check();
                head
            })
            .collect()
    }

    #[test]
    fn turns_go_round_and_losers_keep_the_head() {
        let mut ring = Ring::default();
        ring.join(A, place(1), 1);
        ring.join(A, place(2), 1);
        ring.join(B, place(3), 1);
        assert_eq!(next_checks(&mut ring, 5), [1, 3, 1, 3, 1]);
    }

    #[test]
    fn the_turn_goes_on_from_where_it_stopped() {
        let mut ring = Ring::default();
        for (identity, n) in [(A, 1), (B, 2), (C, 3)] {
            ring.join(identity, place(n), 1);
        }
        assert_eq!(next_checks(&mut ring, 2), [1, 2]);
        ring.leave(B, place(2));
        ring.join(B, place(4), 1);
        assert_eq!(next_checks(&mut ring, 4), [3, 1, 4, 3]);
    }

    #[test]
    fn a_weight_is_that_many_checks_in_a_turn() {
        let mut ring = Ring::default();
        ring.join(A, place(1), 3);
        ring.join(B, place(2), 0);
        assert_eq!(next_checks(&mut ring, 8), [1, 1, 1, 2, 1, 1, 1, 2]);
    }

    #[test]
    fn an_unfinished_turn_is_not_inherited_by_the_next_lane() {
        let mut ring = Ring::default();
        ring.join(A, place(1), 3);
        ring.join(B, place(2), 1);
        ring.join(C, place(3), 1);
        assert_eq!(next_checks(&mut ring, 1), [1]);
        ring.leave(A, place(1));
        assert_eq!(next_checks(&mut ring, 3), [2, 3, 2]);
    }

    #[test]
    fn whoever_arrived_first_is_ahead_although_it_asked_later() {
        let mut ring = Ring::default();
        ring.join(A, (MonoTime::from_nanos(20), Ticket(1)), 1);
        ring.join(A, (MonoTime::from_nanos(10), Ticket(2)), 1);
        assert_eq!(ring.head(), Some(Ticket(2)));
        assert_eq!(ring.len(), 2);
    }

    #[test]
    fn leaving_twice_is_leaving_once() {
        let mut ring = Ring::default();
        ring.join(A, place(1), 1);
        ring.leave(A, place(1));
        ring.leave(A, place(1));
        ring.leave(B, place(9));
        assert!(ring.is_empty());
        assert_eq!((ring.head(), ring.turns.len(), ring.lanes.len()), (None, 0, 0));
    }
}
