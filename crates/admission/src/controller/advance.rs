//! Time passes: looks, deadlines, checks after back-off, releases. In this order: a statement whose
//! deadline has come is not admitted by a check that comes with it, and one whose back-off ends at a
//! contended gate stands in line before the line moves.

use super::Controller;
use super::judge::Verdict;
use crate::checks::Check;
use crate::decision::Resolved;
use crate::pacing::release_per_s;
use crate::queue::Spot;
use crate::{GateKey, MonoTime, Ticket};

impl Controller {
    pub(super) fn advance(&mut self, now: MonoTime) {
        self.look_at_gates(now);
        self.expire_overdue(now);
        self.check_after_back_off(now);
        self.release(now);
    }

    pub(super) fn look_at_gates(&mut self, now: MonoTime) {
        for gate in self.gates.values_mut() {
            gate.look(&self.signals, now);
            if !gate.ring.is_empty() {
                self.last_gated = Some(now);
            }
        }
    }

    fn expire_overdue(&mut self, now: MonoTime) {
        while let Some(ticket) = self.queue.overdue(now) {
            let Some(waiter) = self.take_out(ticket) else { return };
            let obstacle = self.obstacle_of(&waiter);
            let outcome = self.expire(now, &waiter.request, obstacle);
            self.queue.resolve(ticket, outcome.into());
        }
    }

    fn check_after_back_off(&mut self, now: MonoTime) {
        while let Some(ticket) = self.queue.retrying(now) {
            let Some(waiter) = self.queue.get(ticket).copied() else { return };
            match waiter.spot {
                Spot::Unplaced { .. } => {
                    self.queue.remove(ticket);
                    self.queue.resolve(ticket, Resolved::JudgeAgain);
                }
                Spot::BackOff { .. } | Spot::InLine { .. } | Spot::Held => {
                    match self.verdict(now, &waiter.request) {
                        Verdict::Go => self.let_through(now, ticket),
                        Verdict::Wait(spot, _) => {
                            self.queue.place(ticket, spot);
                            self.stand_in_line(ticket, &waiter.request, spot);
                        }
                    }
                }
            }
        }
    }

    /// Hands out the checks that are due at every open gate with a line. A release is a run of checks up to
    /// one that wins; under binary pacing every check of it is paced, so releases need no other mark.
    fn release(&mut self, now: MonoTime) {
        let mut from = None;
        while let Some(key) = self.next_gate_with_line(from) {
            from = Some(key);
            if let Some(gate) = self.gates.get_mut(&key) {
                gate.pacer.begin_run(now);
            }
            while let Some(ticket) = self.next_due_check(now, key) {
                self.hand_out_check(now, ticket);
            }
        }
    }

    fn next_gate_with_line(&self, after: Option<GateKey>) -> Option<GateKey> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let mut gates = self.gates.range((from, Unbounded));
        gates.find(|(_, gate)| gate.next_run().is_some()).map(|(key, _)| *key)
    }

    /// Spends one check of the pace, if one is due, and says whose it is.
    fn next_due_check(&mut self, now: MonoTime, key: GateKey) -> Option<Ticket> {
        let gate = self.gates.get_mut(&key)?;
        let since = gate.open_since()?;
        if !gate.pacer.is_due(now) {
            return None;
        }
        let ticket = gate.ring.head()?;
        gate.ring.spend_check();
        gate.pacer.spend(release_per_s(self.pacing, since, now));
        Some(ticket)
    }

    /// One check of a waiter in line. The gate has been looked at, and is open.
    fn hand_out_check(&mut self, now: MonoTime, ticket: Ticket) {
        let Some(waiter) = self.queue.get(ticket).copied() else { return };
        let request = waiter.request;
        if request.terms.ratio.loses(&mut self.dice) {
            self.checks.count(request.rule, request.app, Check::Lost);
            self.queue.place(ticket, Spot::InLine { last_loss: Some(now) });
        } else {
            self.checks.count(request.rule, request.app, Check::Passed);
            self.let_through(now, ticket);
        }
    }

    fn let_through(&mut self, now: MonoTime, ticket: Ticket) {
        if let Some(waiter) = self.take_out(ticket) {
            let permit = self.admit(now, &waiter.request, None);
            self.queue.resolve(ticket, Resolved::Admit(permit));
        }
    }
}
