//! What those in line are known to cost, when more is known than was as they joined.
//!
//! Theory. A check that is lost is charged what the statement is known to write, and of a digest
//! that nobody has seen that is a row. Fifty that ask for the first time all join at that, and as
//! long as one of them stood there each lost check was charged a row: fifty statements of 500 rows
//! at a ratio of 0.9 had half of the replica between them, not a tenth. Who stood behind them was
//! told a line of fifty rows. So whoever comes to the head is looked at again, and some behind it.

use rand::rngs::StdRng;

use super::{Place, Ring};
use crate::request::Lane;

/// So many of a lane are looked at together: it is done under a lock.
const FRONT_LEN: usize = 64;

/// What is known is another thing from so many times what it was, or so little of it.
const OTHER: f64 = 2.0;

/// Whether a cost says another thing than what was known before.
pub(crate) fn is_news(known: f64, before: f64) -> bool {
    known >= OTHER * before || before >= OTHER * known
}

impl Ring {
    /// Those at the front of a lane, some of them, and what each was known to cost.
    pub(crate) fn front_of(&self, lane: Lane) -> impl Iterator<Item = (Place, f64)> + '_ {
        let app = self.rules.get(&lane.rule).and_then(|branch| branch.apps.get(&lane.app));
        let line = app.and_then(|app| app.lanes.get(&lane.identity));
        let places = line.into_iter().flat_map(|line| &line.places);
        places.take(FRONT_LEN).map(|(place, stake)| (*place, stake.known))
    }

    /// They are known to cost so much now. Gives how many checks their rule has lost since they
    /// were counted.
    pub(crate) fn learn(&mut self, lane: Lane, costs: &[(Place, f64)], dice: &mut StdRng) -> u64 {
        let branch = self.rules.get_mut(&lane.rule);
        let Some(app) = branch.and_then(|branch| branch.apps.get_mut(&lane.app)) else { return 0 };
        let Some(line) = app.lanes.get_mut(&lane.identity) else { return 0 };
        for &(place, known) in costs {
            let Some(stake) = line.places.get_mut(&place) else { continue };
            let before = *stake;
            stake.known = known;
            line.cost += known - before.known;
            self.cost += known - before.known;
            app.standing.take(place.0, before.known);
            app.standing.add(place.0, known);
            if before.kept {
                line.kept.take(before.standing());
                line.kept.add(stake.standing());
            }
        }
        self.refresh(lane, dice)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::super::{Absent, Joining, Stands};
    use super::*;
    use crate::{AppKey, IdentityKey, MonoTime, Ratio, RuleKey, Ticket};

    const ROWS: f64 = 500.0;

    fn lane(rule: u64) -> Lane {
        Lane { rule: RuleKey(rule), app: AppKey(rule), identity: IdentityKey(rule) }
    }

    fn joining(rule: u64, ticket: u64, ratio: f64) -> Joining {
        let place = (MonoTime::ZERO, Ticket(ticket));
        let ratio = Ratio::new(ratio).unwrap();
        Joining { lane: lane(rule), place, weight: 1, cost: 1.0, known: 1.0, ratio, kept: false }
    }

    #[test]
    fn who_asked_before_anything_was_known_loses_checks_at_what_is_known_now() {
        let (mut ring, mut dice) = (Ring::default(), StdRng::seed_from_u64(7));
        let mut next = 0;
        let mut join = |ring: &mut Ring, dice: &mut StdRng, rule: u64, ratio: f64| {
            next += 1;
            ring.join(MonoTime::ZERO, &joining(rule, next, ratio), dice);
        };
        for _ in 0..400 {
            join(&mut ring, &mut dice, 1, 0.9);
        }
        join(&mut ring, &mut dice, 2, 0.1);
        let mut rows = [0.0; 2];
        while rows[0] < 300.0 * ROWS {
            let head = ring.head().unwrap();
            let (cost, of) = if head.lane == lane(1) { (ROWS, 0) } else { (1.0, 1) };
            if is_news(cost, head.known) {
                let front: Vec<_> = ring.front_of(head.lane).map(|(at, _)| (at, cost)).collect();
                ring.learn(head.lane, &front, &mut dice);
                continue;
            }
            rows[of] += cost;
            ring.take(&head, cost, &mut dice);
            ring.leave(MonoTime::ZERO, head.lane, (MonoTime::ZERO, head.ticket), &mut dice);
            if of == 1 {
                join(&mut ring, &mut dice, 2, 0.1);
            }
        }
        // Three hundred wins of one in ten are off by a sixth at three standard deviations.
        let part = rows[0] / (rows[0] + rows[1]);
        assert!((0.083..=0.117).contains(&part), "{part}");
    }

    #[test]
    fn a_line_is_as_long_as_is_known_now() {
        let (mut ring, mut dice) = (Ring::default(), StdRng::seed_from_u64(7));
        for ticket in 0..40 {
            ring.join(MonoTime::ZERO, &joining(1, ticket, 0.0), &mut dice);
        }
        let front: Vec<_> = ring.front_of(lane(1)).map(|(place, _)| (place, ROWS)).collect();
        ring.learn(lane(1), &front, &mut dice);
        let ahead = ring.ahead(&Stands {
            lane: lane(1),
            weight: 1,
            ratio: Ratio::ZERO,
            cost: ROWS,
            since: MonoTime::MAX,
            absent: Absent::default(),
        });
        assert!((ahead.own - 41.0 * ROWS).abs() < 1e-6, "{ahead:?}");
        for ticket in 0..40 {
            ring.leave(MonoTime::ZERO, lane(1), (MonoTime::ZERO, Ticket(ticket)), &mut dice);
        }
        assert!(ring.is_empty() && ring.cost.abs() < 1e-9, "{ring:?}");
    }
}
