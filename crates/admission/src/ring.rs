//! The fair queue of one gate: lanes by identity, turns between apps and between the identities of
//! one.
//!
//! Theory. Every identity that waits has one lane; within a lane the first to have arrived is at
//! the head. Checks are handed out to heads. An app has its turn, and within it one of its
//! identities ([`Turns`]): so a thousand identities of one app get together what one identity of
//! another gets. A check is charged at what the statement is expected to write, whether it wins or
//! loses: so in the long run apps get checks in proportion to weight / cost, and since a check of
//! ratio r wins with probability 1 − r, what they write is shared in proportion to weight × (1 −
//! r). With equal costs that is the same number of checks for everybody, and 0.9 and 0.1 give 1 :
//! 9. The turn is kept while the gate is shut and goes on from where it stopped: starting over at
//!    every opening would favour whoever is first.
//!
//! A lane that empties leaves the ring; when it comes back it queues up behind everybody's turn.
//! All operations are O(log waiters).

use std::collections::BTreeMap;

use crate::request::Lane;
use crate::turns::Turns;
use crate::{AppKey, IdentityKey, MonoTime, Terms, Ticket};

/// A place in a lane: first arrival, then the order of asking.
pub(crate) type Place = (MonoTime, Ticket);

#[derive(Debug, Default)]
pub(crate) struct Ring {
    apps: BTreeMap<AppKey, App>,
    turns: Turns<AppKey>,
    len: usize,
    lanes: usize,
    /// Expected cost of all who wait.
    cost: f64,
    /// Weights of the apps that wait.
    weight: u64,
}

#[derive(Debug, Default)]
struct App {
    weight: u32,
    line_since: MonoTime,
    identities: Turns<IdentityKey>,
    /// None is empty.
    lanes: BTreeMap<IdentityKey, Line>,
}

#[derive(Debug, Default)]
struct Line {
    /// Places in order, each with its expected cost.
    places: BTreeMap<Place, f64>,
    cost: f64,
}

/// What a waiter brings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    pub(crate) lane: Lane,
    pub(crate) place: Place,
    pub(crate) weight: u32,
    pub(crate) cost: f64,
}

/// Who gets the next check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) ticket: Ticket,
    pub(crate) lane: Lane,
    pub(crate) cost: f64,
}

impl Ring {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(crate) fn join(&mut self, now: MonoTime, joining: &Joining) {
        let (app_key, identity) = joining.lane;
        let weight = joining.weight.clamp(1, Terms::WEIGHT_MAX);
        let app = self.apps.entry(app_key).or_default();
        if app.lanes.is_empty() {
            self.turns.join(now, app_key, joining.cost, weight);
            self.weight = self.weight.saturating_add(u64::from(weight));
            app.weight = weight;
            app.line_since = now;
        }
        if !app.lanes.contains_key(&identity) {
            app.identities.join(now, identity, joining.cost, 1);
            self.lanes = self.lanes.saturating_add(1);
        }
        let line = app.lanes.entry(identity).or_default();
        if line.places.insert(joining.place, joining.cost).is_none() {
            line.cost += joining.cost;
            self.cost += joining.cost;
            self.len = self.len.saturating_add(1);
        }
    }

    pub(crate) fn leave(&mut self, now: MonoTime, (app_key, identity): Lane, place: Place) {
        let Some(app) = self.apps.get_mut(&app_key) else { return };
        let Some(line) = app.lanes.get_mut(&identity) else { return };
        let Some(cost) = line.places.remove(&place) else { return };
        line.cost -= cost;
        self.cost -= cost;
        self.len = self.len.saturating_sub(1);
        if !line.places.is_empty() {
            return;
        }
        app.lanes.remove(&identity);
        app.identities.leave(now, identity);
        self.lanes = self.lanes.saturating_sub(1);
        if app.lanes.is_empty() {
            self.turns.leave(now, app_key);
            self.weight = self.weight.saturating_sub(u64::from(app.weight));
            self.apps.remove(&app_key);
        }
        if self.is_empty() {
            // Sums of floats drift; nothing is left to be summed.
            self.cost = 0.0;
        }
    }

    /// Whether other apps share this line, also those that are absent for a moment.
    pub(crate) fn has_rival(&self, now: MonoTime, (app, _): Lane) -> bool {
        self.turns.has_rival(now, app)
    }

    /// Who gets the next check.
    pub(crate) fn head(&self) -> Option<Head> {
        let app_key = self.turns.first()?;
        let app = self.apps.get(&app_key)?;
        let identity = app.identities.first()?;
        let ((_, ticket), cost) = app.lanes.get(&identity)?.places.first_key_value()?;
        Some(Head { ticket: *ticket, lane: (app_key, identity), cost: *cost })
    }

    /// A lane used a check of a statement of this cost; the turn passes on. `weight` is that of an
    /// app which does not wait.
    pub(crate) fn charge(&mut self, (app_key, identity): Lane, cost: f64, weight: u32) {
        match self.apps.get_mut(&app_key) {
            Some(app) => {
                self.turns.charge(app_key, cost, app.weight);
                app.identities.charge(identity, cost, 1);
            }
            None => self.turns.charge(app_key, cost, weight),
        }
    }

    /// A statement that was charged has cost so much more, or less.
    pub(crate) fn settle(&mut self, (app_key, identity): Lane, more: f64, weight: u32) {
        self.turns.settle(app_key, more, weight);
        if let Some(app) = self.apps.get_mut(&app_key) {
            app.identities.settle(identity, more, 1);
        }
    }

    /// Since when this app has had somebody in line; `None` while it has nobody.
    pub(crate) fn line_since(&self, app: AppKey) -> Option<MonoTime> {
        self.apps.get(&app).map(|app| app.line_since)
    }

    /// What must be admitted until somebody who joins this lane now has had its turn, at least and
    /// about: what is ahead of it in its own lane, and that with everybody else's share.
    pub(crate) fn ahead(&self, (app_key, identity): Lane, weight: u32) -> Ahead {
        let app = self.apps.get(&app_key);
        let own = app.and_then(|app| app.lanes.get(&identity)).map_or(0.0, |line| line.cost);
        let siblings = app.map_or(1, |app| app.lanes.len().max(1));
        let mine = app.map_or(weight.clamp(1, Terms::WEIGHT_MAX), |app| app.weight);
        let joined = if app.is_some() { 0 } else { u64::from(mine) };
        let all = self.weight.saturating_add(joined);
        let all = u32::try_from(all).map_or(f64::from(u32::MAX), f64::from);
        let siblings = u32::try_from(siblings).map_or(f64::from(u32::MAX), f64::from);
        let turns = own * siblings * all / f64::from(mine.max(1));
        Ahead { at_least: own, about: turns.min(self.cost).max(own) }
    }
}

/// Cost ahead of a waiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ahead {
    pub(crate) at_least: f64,
    pub(crate) about: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Lane = (AppKey(1), IdentityKey(1));
    const B: Lane = (AppKey(2), IdentityKey(2));
    const C: Lane = (AppKey(3), IdentityKey(3));

    fn place(n: u64) -> Place {
        (MonoTime::from_nanos(n), Ticket(n))
    }

    fn join(ring: &mut Ring, lane: Lane, n: u64, weight: u32) {
        ring.join(MonoTime::ZERO, &Joining { lane, place: place(n), weight, cost: 1.0 });
    }

    fn next_checks(ring: &mut Ring, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let head = ring.head().unwrap();
                ring.charge(head.lane, head.cost, 1);
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
        ring.leave(MonoTime::ZERO, B, place(2));
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
            join(&mut ring, (AppKey(2), IdentityKey(n)), n, 1);
        }
        let checks = next_checks(&mut ring, 200);
        assert_eq!(checks.iter().filter(|n| **n == 1).count(), 100);
        let mut others: Vec<u64> = checks.into_iter().filter(|n| *n != 1).collect();
        others.sort_unstable();
        assert_eq!(others, (100..200).collect::<Vec<u64>>(), "each has had one turn");
    }

    #[test]
    fn whoever_arrived_first_is_ahead_although_it_asked_later() {
        let mut ring = Ring::default();
        let places = [(20, 1), (10, 2)];
        for (at, ticket) in places {
            let place = (MonoTime::from_nanos(at), Ticket(ticket));
            ring.join(MonoTime::ZERO, &Joining { lane: A, place, weight: 1, cost: 1.0 });
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
        assert_eq!(ring.ahead(A, 1), Ahead { at_least: 10.0, about: 40.0 });
        assert_eq!(ring.ahead(B, 3), Ahead { at_least: 30.0, about: 40.0 });
        assert_eq!(ring.ahead(C, 1), Ahead { at_least: 0.0, about: 0.0 });
    }

    #[test]
    fn leaving_twice_is_leaving_once() {
        let mut ring = Ring::default();
        join(&mut ring, A, 1, 1);
        ring.leave(MonoTime::ZERO, A, place(1));
        ring.leave(MonoTime::ZERO, A, place(1));
        ring.leave(MonoTime::ZERO, B, place(9));
        assert!(ring.is_empty());
        assert!(ring.head().is_none());
        assert_eq!((ring.turns.first(), ring.apps.len(), ring.weight), (None, 0, 0));
    }
}
