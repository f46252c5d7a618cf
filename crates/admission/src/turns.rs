//! Fair turns between those who wait: start-time fair queueing.
//!
//! Theory. Everybody who waits has a *tag*, its virtual time: the cost it has been charged, divided
//! by its weight. The lowest tag has its turn; whoever ties goes by who came first. So over any
//! time in which they wait together, charges are shared in proportion to the weights, whatever a
//! single turn costs, and nobody is ahead of its share by more than one turn. The virtual time of
//! the whole is the tag of the last turn. Who joins starts one charge of its own behind it, as if
//! it had just had a turn: a crowd of newcomers does not push those who wait back.
//!
//! Clients wait for their answers, so a lane is often empty for the moment that takes. Who comes
//! back within [`GRACE`] never left: it keeps its tag, and so its claim on what others were given
//! meanwhile. For [`KEPT_FOR`] a tag ahead of the others' is kept, so that leaving is no way to
//! lose a charge.
//!
//! Source: Goyal, Vin and Cheng, Start-Time Fair Queueing (1996).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::MonoTime;

/// An absence that is none: a statement and its answer, over a wide network.
const GRACE: Duration = Duration::from_secs(1);

/// For how long a charge is remembered.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Of so many who have left; beyond, whoever left first is forgotten.
const ABSENT_MAX: usize = 4_096;

/// Virtual time: micro-rows per weight.
type Tag = u64;

#[derive(Debug)]
pub(crate) struct Turns<K> {
    waiting: BTreeMap<K, Place>,
    /// Whose turn comes when; an entry for each that waits.
    order: BTreeSet<(Place, K)>,
    absent: BTreeMap<K, Absence>,
    /// In the order they left; those who came back since are still in it.
    left: VecDeque<(MonoTime, K)>,
    /// Who left last, and the last to leave that was somebody else.
    last_left: [Option<(MonoTime, K)>; 2],
    now: Tag,
    next_arrival: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    tag: Tag,
    /// Who had its last turn, or came, first goes first.
    arrival: u64,
}

#[derive(Debug, Clone, Copy)]
struct Absence {
    tag: Tag,
    since: MonoTime,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            order: BTreeSet::new(),
            absent: BTreeMap::new(),
            left: VecDeque::new(),
            last_left: [None, None],
            now: 0,
            next_arrival: 0,
        }
    }
}

impl<K: Copy + Ord> Turns<K> {
    /// Starts waiting with a statement of this cost; nothing happens if it waits already.
    pub(crate) fn join(&mut self, now: MonoTime, who: K, cost: f64, weight: u32) {
        if self.waiting.contains_key(&who) {
            return;
        }
        let new = self.now.saturating_add(charge_of(cost, weight));
        let tag = match self.absent.remove(&who) {
            Some(absence) if now.saturating_since(absence.since) <= GRACE => absence.tag,
            Some(absence) => absence.tag.max(new),
            None => new,
        };
        self.place(who, tag);
    }

    pub(crate) fn leave(&mut self, now: MonoTime, who: K) {
        let Some(place) = self.waiting.remove(&who) else { return };
        self.order.remove(&(place, who));
        self.absent.insert(who, Absence { tag: place.tag, since: now });
        self.left.push_back((now, who));
        match &mut self.last_left {
            [Some((at, last)), _] if *last == who => *at = now,
            [last, before] => *before = last.replace((now, who)),
        }
        self.forget(now);
    }

    /// Whose turn it is.
    pub(crate) fn first(&self) -> Option<K> {
        self.order.first().map(|&(_, who)| who)
    }

    /// Whether anybody else waits, or is absent for a moment only.
    pub(crate) fn has_rival(&self, now: MonoTime, who: K) -> bool {
        let waits = self.waiting.len() > usize::from(self.waiting.contains_key(&who));
        let others = self.last_left.iter().flatten().filter(|(_, other)| *other != who);
        waits || others.into_iter().any(|(at, _)| now.saturating_since(*at) <= GRACE)
    }

    /// Somebody used its turn.
    pub(crate) fn charge(&mut self, who: K, cost: f64, weight: u32) {
        let charge = charge_of(cost, weight);
        if let Some(place) = self.waiting.get(&who).copied() {
            self.order.remove(&(place, who));
            let first = self.order.first().map_or(place.tag, |(place, _)| place.tag);
            self.now = self.now.max(place.tag.min(first));
            self.place(who, place.tag.saturating_add(charge));
        } else if let Some(absence) = self.absent.get_mut(&who) {
            absence.tag = absence.tag.saturating_add(charge);
        }
    }

    /// An earlier turn has cost so much more than was charged, or so much less. Nobody is charged
    /// less than nothing: what is given back was charged before.
    pub(crate) fn settle(&mut self, who: K, more: f64, weight: u32) {
        if more == 0.0 {
            return;
        }
        let difference = charge_of(more.abs(), weight);
        let settled = |tag: Tag| {
            if more > 0.0 { tag.saturating_add(difference) } else { tag.saturating_sub(difference) }
        };
        if let Some(place) = self.waiting.get(&who).copied() {
            self.order.remove(&(place, who));
            let place = Place { tag: settled(place.tag), ..place };
            self.waiting.insert(who, place);
            self.order.insert((place, who));
        } else if let Some(absence) = self.absent.get_mut(&who) {
            absence.tag = settled(absence.tag);
        }
    }

    fn place(&mut self, who: K, tag: Tag) {
        let place = Place { tag, arrival: self.next_arrival };
        self.next_arrival = self.next_arrival.saturating_add(1);
        self.waiting.insert(who, place);
        self.order.insert((place, who));
    }

    /// Forgets who left long ago, and who left first if there are too many.
    fn forget(&mut self, now: MonoTime) {
        while let Some(&(at, who)) = self.left.front() {
            if self.left.len() <= ABSENT_MAX && now.saturating_since(at) < KEPT_FOR {
                return;
            }
            self.left.pop_front();
            // Who has come back and left again since has a later entry.
            if self.absent.get(&who).is_some_and(|absence| absence.since == at) {
                self.absent.remove(&who);
            }
        }
    }
}

/// A charge in micro-rows per weight, at least one.
fn charge_of(cost: f64, weight: u32) -> u64 {
    // A duration is the one safe way from a float to whole millionths.
    let cost = Duration::try_from_secs_f64(cost.max(0.0) / f64::from(weight.max(1)));
    let micros = cost.map_or(u128::from(CHARGE_MAX), |cost| cost.as_micros());
    u64::try_from(micros).unwrap_or(CHARGE_MAX).clamp(1, CHARGE_MAX)
}

/// The largest single charge: a million million rows.
const CHARGE_MAX: u64 = 1_000_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn turns(of: &mut Turns<char>, costs: &[(char, f64, u32)], count: usize) -> String {
        (0..count)
            .map(|_| {
                let who = of.first().unwrap();
                let &(_, cost, weight) = costs.iter().find(|(name, ..)| *name == who).unwrap();
                of.charge(who, cost, weight);
                who
            })
            .collect()
    }

    fn joined(names: &str) -> Turns<char> {
        let mut turns = Turns::default();
        names.chars().for_each(|name| turns.join(at(0), name, 1.0, 1));
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
            all.charge(who, 1.0, 1);
            // Both leave after each of their turns, as a single client does, and are back soon.
            all.leave(at(n), who);
            if who == 'a' {
                // Nobody else waits: `b` has a turn that is none of its share.
                all.charge('b', 1.0, 1);
            }
            all.join(at(n + 1), who, 1.0, 1);
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
            all.join(at(n), 'a', 1.0, 1);
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
        all.join(at(1_001), 'a', 1.0, 1);
        let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 10);
        assert!(taken.matches('a').count() <= 6, "no turns are saved up: {taken}");
    }

    #[test]
    fn a_charge_is_not_lost_by_staying_away_for_a_while() {
        let mut all = joined("ab");
        all.charge('a', 1_000.0, 1);
        all.leave(at(0), 'a');
        all.join(at(30_000), 'a', 1.0, 1);
        let taken = turns(&mut all, &[('a', 1.0, 1), ('b', 1.0, 1)], 500);
        assert_eq!(taken.matches('a').count(), 0);
    }

    #[test]
    fn those_who_left_are_remembered_up_to_a_bound_and_every_index_agrees() {
        let mut all: Turns<u32> = Turns::default();
        all.join(at(0), 0, 1.0, 1);
        for who in 1..20_000 {
            all.join(at(0), who, 1.0, 1);
            all.charge(who, 5.0, 1);
            all.leave(at(0), who);
        }
        assert!(all.absent.len() <= ABSENT_MAX && all.left.len() <= ABSENT_MAX);
        assert_eq!((all.waiting.len(), all.order.len()), (1, 1));
        all.leave(at(60_000), 0);
        all.leave(at(60_000), 0);
        assert_eq!((all.first(), all.waiting.len()), (None, 0));
        assert_eq!((all.absent.len(), all.left.len()), (1, 1), "the others left a minute ago");
    }
}
