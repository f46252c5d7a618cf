//! Whether there is room for a statement at a gate that is paced by the lag, and what it is charged
//! for.

use std::time::Duration;

use super::Controller;
use crate::claims::SPARSE_FOR;
use crate::costs::{COST_MIN, cost_of};
use crate::decision::{Account, Outcome, Permit};
use crate::pace::Pace;
use crate::{Mode, MonoTime, Request, Terms};

/// No two looks at a claim are closer: at most 1,000 wake-ups a second.
const TICK: Duration = Duration::from_millis(1);

impl Controller {
    /// What a statement is expected to write, in rows. One that nobody knows may be a large one.
    pub(super) fn expected(&self, request: &Request) -> f64 {
        let prudent = self.pace.as_ref().map_or(0.0, Pace::prudent_cost);
        self.costs.expected(request.digest, request.app, prudent)
    }

    /// Whether a statement of this cost may pass: the pace has room, or its app's claim covers it.
    /// If it will by the passing of time, that is looked at again then.
    pub(super) fn has_room(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        let Some(pace) = &mut self.pace else { return true };
        self.claims.note(now, request);
        let per_s = pace.per_s().unwrap_or(0.0);
        let covered_in = self.claims.covers_in(now, request.app, per_s, cost);
        if pace.has_room(now, cost) {
            return true;
        }
        let gate = self.gates.get(&request.gate);
        let line_since = gate.and_then(|gate| gate.ring.line_since(request.lane()));
        if line_since.is_some_and(|since| now.saturating_since(since) >= SPARSE_FOR) {
            return false;
        }
        match covered_in {
            Some(Duration::ZERO) => true,
            Some(wait) => {
                let at = now.saturating_add(wait.max(TICK));
                self.claimed_at = Some(self.claimed_at.map_or(at, |earlier| earlier.min(at)));
                false
            }
            None => false,
        }
    }

    /// The account of a statement that is admitted now.
    pub(super) fn account(&mut self, now: MonoTime, request: &Request) -> Account {
        let expected = self.expected(request);
        let paced = self.gates.get(&request.gate).is_some_and(|gate| gate.paced);
        let charge = match (self.pace.as_mut().filter(|_| paced), request.terms.mode) {
            (Some(pace), Mode::Enforce) => {
                self.claims.spend(request.app, expected);
                self.promises.note_through(now, request.app);
                Some(pace.admit(now, expected))
            }
            (Some(pace), Mode::Observe) => Some(pace.note(now, expected)),
            (None, Mode::Enforce | Mode::Observe) => None,
        };
        Account {
            gate: request.gate,
            lane: request.lane(),
            weight: request.terms.weight.clamp(1, Terms::WEIGHT_MAX),
            digest: request.digest,
            expected,
            charge,
        }
    }

    /// What a permit has cost in truth: learned, and the difference put on the accounts of whoever
    /// was charged.
    pub(super) fn book(&mut self, now: MonoTime, permit: &Permit, outcome: &Outcome) {
        let Account { gate, lane, weight, digest, expected, charge } = permit.account;
        let cost = cost_of(outcome);
        // Whoever has had a turn has had one, also if nothing came of it.
        let more = cost.max(COST_MIN) - expected;
        if !outcome.error || outcome.affected_rows > 0 {
            self.costs.learn(digest, lane.app, cost);
        }
        if let (Some(pace), Some(charge)) = (&mut self.pace, charge) {
            pace.complete(now, charge, cost);
            self.claims.spend(lane.app, more);
        }
        if let Some(gate) = self.gates.get_mut(&gate) {
            gate.ring.settle(lane, more, weight);
        }
    }
}
