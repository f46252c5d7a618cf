//! Whether there is room for a large statement that has its turn beside other controllers.
//!
//! In its turn the whole of the replica is its own. It goes when what will be ahead of it, and itself, make a
//! lag of 0.9 of the threshold at most, as one that is alone. What will be ahead is told by the clock: since
//! the newest heartbeat that the replica shows, our own work has come, what the others go round with, and
//! what they have besides. All of that it has applied at what all deliver together. And it leaves the next
//! one as much room, or little more: that one has the same reckoning.

use super::room::LARGE_HARD;
use super::{Aim, Flow, acknowledging, counts_for, later, seconds};
use crate::MonoTime;
use crate::pace::ledger::Ledger;
use crate::pace::rota::Turn;

/// Of a statement that leaves no room for anything ahead of it, so little of itself is nothing.
const AHEAD: f64 = 0.05;

/// What a statement may leave over for the next turn beside what there is room for ahead of the next, as
/// part of itself: that one waits for it in its own turn.
const OVER: f64 = 0.2;

/// At the beginning of a turn, this part of it, also one goes that is larger than the turn is long.
const BEGINNING: f64 = 0.1;

/// A large statement that has its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::pace) struct InTurn {
    pub(in crate::pace) rows: f64,
    /// What was given in this turn before, in rows.
    pub(in crate::pace) given: f64,
    /// When it will have committed.
    pub(in crate::pace) commits_at: MonoTime,
    /// Seconds of the turn that will be over by then, and that will be left.
    pub(in crate::pace) since: f64,
    pub(in crate::pace) left: f64,
}

/// When a statement is looked at, when it will have committed, and the way in seconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    now: MonoTime,
    commits_at: MonoTime,
    base: f64,
}

impl Flow {
    /// In how many seconds there is room for it; `None`: not in this turn.
    pub(in crate::pace) fn room_in_turn(
        &self,
        (ledger, turn): (&Ledger, &Turn),
        aim: &Aim,
        in_turn: &InTurn,
        now: MonoTime,
    ) -> Option<f64> {
        let aim = &self.own(aim);
        let Some(shown) = self.shown else { return Some(0.0) };
        let InTurn { rows, given, since, left, .. } = *in_turn;
        let others = aim.others.unwrap_or(0.0) + turn.used_per_s();
        let whole = (self.rate + others).max(1.0);
        // A rate that has just grown may be more than there is.
        let whole = whole.min(turn.round.per_s.max(1.0));
        let base = self.base.seconds(acknowledging(aim));
        let times = Times { now, commits_at: in_turn.commits_at, base };
        let ahead = self.ahead((ledger, turn), aim, (shown, whole), &times);
        let most = whole * (LARGE_HARD * aim.threshold - base);
        let most_ahead = (most - rows).max(AHEAD * rows);
        let most_over = (most - turn.next_rows()).max(0.0) + OVER * rows;
        // The others take it that statements go one after the other from the beginning on.
        let follows_in = (given / whole - since).max(0.0);
        let is_last = given > 0.0 && left - follows_in < rows / (2.0 * whole);
        let begins = since <= BEGINNING * (since + left);
        let leaves = ahead + rows - whole * left <= most_over || begins;
        let room_in = ((ahead - most_ahead) / whole).max(follows_in);
        (leaves && !is_last).then_some(room_in)
    }

    /// What will be ahead of a statement when it commits, in rows: what came behind the newest heartbeat
    /// that the replica shows, of our own and, as turns go, of others, and is not applied by then.
    fn ahead(
        &self,
        (ledger, turn): (&Ledger, &Turn),
        aim: &Aim,
        (shown, whole): (u64, f64),
        times: &Times,
    ) -> f64 {
        let Times { now, commits_at: at, base } = *times;
        let shown_at = ledger.mark(shown).map_or(now, |mark| later(mark.begun_at, self.commit));
        let others = turn.others(at, seconds(shown_at, at), whole);
        let completed = ledger.unacknowledged(self.acked);
        let running = ledger.outstanding(self.acked, now, counts_for(aim)) - completed;
        let arrived = ledger.completed_after(shown).map(|first| seconds(first, at));
        let arrived = arrived.unwrap_or(0.0).max(others.since);
        let applied = self.busy.applied_for(at, base).min(arrived) * whole;
        running + (completed + others.rows - applied).max(0.0)
    }
}
