//! Large statements in turns, beside other controllers that have some. [`super::rota`] has the law.

use std::time::Duration;

use super::flow::InTurn;
use super::rota::Whose;
use super::{Cost, Pace, TICK};
use crate::MonoTime;

/// Statements of this part of a threshold's work go by turns, and down to the other as long as they do.
const LARGE: f64 = 0.05;
const LARGE_STILL: f64 = 0.03;

/// Nobody waits for a turn where all that could come at once is less than this part of a threshold's work.
const TOGETHER: f64 = 0.9;

/// Who has its turn may be short of this part of a large statement: what it has for it is about what it
/// takes, more or less by chance, and a turn that is not taken is lost to all.
const SHORT: f64 = 0.7;

/// How a statement of such a cost goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goes {
    /// Whenever there is room.
    Anytime,
    InTurn(InTurn),
    /// Not now: its turn begins then.
    Later(MonoTime),
}

impl Pace {
    /// The usual size of those that go by turns if others have such, in rows; 0: none do.
    pub(super) fn turn_rows(&self) -> f64 {
        let least = if self.turn.is_some() { LARGE_STILL } else { LARGE };
        let goes = self.sizes.usual() >= least * self.threshold_rows();
        if goes { self.large_sizes.usual() } else { 0.0 }
    }

    /// What all deliver together within the threshold, in rows.
    fn threshold_rows(&self) -> f64 {
        let others = self.share.map_or(0.0, |(_, share)| share.others_per_s.max(0.0));
        let others = others + self.turn.as_ref().map_or(0.0, |(_, turn)| turn.used_per_s());
        (self.rate().unwrap_or(0.0) + others) * self.threshold.as_secs_f64()
    }

    /// How a statement of this cost goes.
    pub(super) fn goes(&mut self, now: MonoTime, cost: Cost) -> Goes {
        let Some((_, turn)) = &self.turn else { return Goes::Anytime };
        if self.governing.is_empty() {
            return Goes::Anytime;
        }
        let threshold_rows = self.threshold_rows();
        // What is charged for fear makes nothing large.
        let rows = cost.rows - cost.feared;
        if rows < LARGE_STILL * threshold_rows || turn.all_rows() < TOGETHER * threshold_rows {
            return Goes::Anytime;
        }
        let commits_at = now.saturating_add(self.service());
        match turn.whose(commits_at) {
            Whose::Own { since, left } => {
                let apart = turn.round.period - since - left;
                let given = self.held.has_turn(commits_at, since + apart / 2.0);
                Goes::InTurn(InTurn { rows, given, commits_at, since, left })
            }
            Whose::Others { begins_in } => {
                if !self.held.holds(now, turn) {
                    return Goes::Anytime;
                }
                let wait = Duration::try_from_secs_f64(begins_in).unwrap_or_default();
                Goes::Later(now.saturating_add(wait.max(TICK)))
            }
        }
    }

    /// A statement of this cost is admitted.
    pub(super) fn note_in_turn(&mut self, now: MonoTime, cost: Cost) {
        let rows = cost.rows - cost.feared;
        let is_large = rows >= LARGE_STILL * self.threshold_rows();
        if is_large {
            self.large_sizes.remember(rows, 0.0);
        }
        match self.goes(now, cost) {
            Goes::InTurn(in_turn) => self.held.gave(in_turn.commits_at, in_turn.rows),
            Goes::Anytime if self.turn.is_some() && !is_large => self.small.gave(now, rows),
            Goes::Anytime | Goes::Later(_) => {}
        }
    }

    /// Whether a large statement may go that has its turn.
    pub(super) fn has_room_in_turn(&mut self, now: MonoTime, in_turn: &InTurn) -> bool {
        let Some((_, turn)) = &self.turn else { return false };
        let aim = self.aim();
        let short = SHORT * in_turn.rows;
        let per_s = self.per_s().unwrap_or(0.0);
        let mut wait = if self.tokens > -short {
            Some(0.0)
        } else {
            for replica in &self.governing {
                if let Some(flow) = self.flows.get_mut(replica) {
                    flow.limit(now, self.threshold);
                }
            }
            (per_s > 0.0).then(|| (-short - self.tokens) / per_s)
        };
        for replica in &self.governing {
            let Some(flow) = self.flows.get(replica) else { continue };
            let room_in = flow.room_in_turn((&self.ledger, turn), &aim, in_turn, now);
            wait = wait.zip(room_in).map(|(wait, room)| wait.max(room));
        }
        if let Some(wait) = wait.filter(|wait| *wait > 0.0) {
            let wait = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
            self.look_at = Some(now.saturating_add(wait.max(TICK)));
        }
        wait == Some(0.0)
    }

    /// A large statement waits for its turn. That tells of the rate as much as waiting for tokens does:
    /// if no queue stands meanwhile, rounds are too long.
    pub(super) fn wait_for_turn(&mut self, now: MonoTime, begins_at: MonoTime) {
        self.look_at = Some(begins_at);
        for replica in &self.governing {
            if let Some(flow) = self.flows.get_mut(replica) {
                flow.limit(now, self.threshold);
            }
        }
    }

    /// When whoever had no room last is to be looked at again, beside what [`Pace::next_room`] says.
    pub(crate) fn look_at(&self) -> Option<MonoTime> {
        self.look_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lag::{LagReading, Progress, ReplicaKey};
    use crate::pace::rota::Turn;
    use crate::pace::tests::{at, pace};
    use crate::pace::{Demand, Share};

    /// A heartbeat is begun and shown at once.
    fn look(pace: &mut Pace, now: MonoTime, seq: u64) {
        pace.heartbeat_begun(now, seq);
        let seen = Progress {
            replica: ReplicaKey(1),
            lag: Duration::ZERO,
            threshold: None,
            shown: Some(seq),
            committed_at: Some(now),
            answered_at: now,
            asked_at: now,
            appliers: 1,
        };
        let governing = vec![seen];
        let reading =
            LagReading { value: Some(0.0), at: now, slowest: None, threshold: None, governing };
        pace.handle_progress(now, &reading);
    }

    fn demand(now: MonoTime, pace: &Pace, rows: f64) -> Demand {
        let wishes = crate::pace::Wishes::default();
        let own = pace.demand(now, &wishes).unwrap();
        Demand {
            weight: 1.0,
            rows_per_s: 100.0,
            presses: true,
            turn_rows: rows,
            large_rows: rows,
            ..own
        }
    }

    #[test]
    fn large_statements_go_one_after_the_other_and_small_ones_at_any_time() {
        // Two of 100 rows a second each, and statements of half a threshold's work.
        let mut paces = [pace(), pace()];
        for pace in &mut paces {
            look(pace, at(10), 1);
        }
        let told = [0, 1].map(|n: usize| demand(at(10), &paces[n], 100.0));
        let first = Turn::of(at(10), (0, &told[0]), [(1, &told[1])]).unwrap();
        let told = [Demand { round: Some(first.round), ..told[0] }, told[1]];
        let second = Turn::of(at(10), (1, &told[1]), [(0, &told[0])]).unwrap();
        for (n, turn) in [first, second].into_iter().enumerate() {
            paces[n].take_share(at(10), Share::of(&told[n], [&told[1 - n]]));
            paces[n].take_round(at(10), Some(turn));
        }
        let mut went = Vec::new();
        for ms in 20..1_010 {
            for (n, pace) in paces.iter_mut().enumerate() {
                assert!(went.contains(&n) || pace.has_room(at(ms), Cost::known(1.0)), "{n}: {ms}");
                if pace.has_room(at(ms), Cost::known(100.0)) {
                    let charge = pace.admit(at(ms), Cost::known(100.0));
                    pace.complete(at(ms), charge, 100.0);
                    went.push(n);
                } else if !went.contains(&n) {
                    assert_eq!(pace.look_at(), Some(at(510)), "the turn of {n}");
                }
            }
        }
        assert_eq!(went, [0, 1], "a round takes a second");
    }

    #[test]
    fn what_may_be_large_and_is_not_known_does_not_wait_for_a_turn() {
        let mut pace = pace();
        look(&mut pace, at(10), 1);
        let told = demand(at(10), &pace, 100.0);
        let turn = Turn::of(at(10), (0, &told), [(1, &told)]).unwrap();
        pace.take_share(at(10), Share::of(&told, [&told]));
        pace.take_round(at(10), Some(turn));
        let in_turn_of_other = at(600);
        assert!(pace.has_room(in_turn_of_other, Cost::of(100.0, 1.0)));
        assert!(!pace.has_room(in_turn_of_other, Cost::known(100.0)));
        let news_are_old = at(5_100);
        look(&mut pace, news_are_old, 2);
        assert!(pace.has_room(at(5_600), Cost::known(100.0)));
    }
}
