//! Time passes: looks, deadlines, checks after back-off, releases. In this order: a statement whose
//! deadline has come is not admitted by a check that comes with it, and one whose back-off ends at
//! a contended gate stands in line before the line moves.

use std::time::Duration;

use super::Controller;
use super::decide::Checked;
use crate::checks::Check;
use crate::decision::Resolved;
use crate::gate::Gate;
use crate::pacing::release_per_s;
use crate::queue::Spot;
use crate::rates::From;
use crate::ring::Head;
use crate::{GateKey, MonoTime, Ticket};

impl Controller {
    pub(super) fn advance(&mut self, now: MonoTime) {
        self.look_at_gates(now);
        self.expire_overdue(now);
        self.check_after_back_off(now);
        self.release_limited(now);
        self.release_floors(now);
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
            if outcome.is_err() {
                self.watch_refused(now, &waiter.request);
            }
            self.queue.resolve(ticket, outcome.into());
        }
    }

    fn check_after_back_off(&mut self, now: MonoTime) {
        while let Some(ticket) = self.queue.retrying(now) {
            let Some(waiter) = self.queue.get(ticket).copied() else { return };
            match waiter.spot {
                Spot::Unplaced { .. } => {
                    self.take_out(ticket);
                    self.queue.resolve(ticket, Resolved::DecideAgain);
                }
                Spot::BackOff { .. } | Spot::InLine { .. } | Spot::Limited | Spot::Held => {
                    self.check_again(now, ticket, From::Arrival);
                }
            }
        }
    }

    /// Checks a waiter that stands in no line, and gives it its next spot.
    fn check_again(&mut self, now: MonoTime, ticket: Ticket, from: From) {
        let Some(waiter) = self.queue.get(ticket).copied() else { return };
        match self.check(now, &waiter.request, from) {
            Checked::Passed => self.let_through(now, ticket),
            Checked::Stopped(spot, _) => {
                self.queue.place(ticket, spot);
                self.stand_in_line(ticket, &waiter.request, spot);
            }
        }
    }

    /// Has those checked who waited for the limits of their rule alone, as far as these reach.
    fn release_limited(&mut self, now: MonoTime) {
        let mut from = None;
        while let Some(rule) = self.rates.with_line(from) {
            from = Some(rule);
            while let Some(head) = self.rates.next_turn(now, rule) {
                let Some(waiter) = self.queue.get(head.ticket).copied() else { break };
                self.leave_line(head.ticket, &waiter);
                self.queue.place(head.ticket, Spot::Held);
                self.check_again(now, head.ticket, From::Line);
            }
        }
    }

    /// Lets through whom the floor of their rule covers, at open gates, wherever they stand in line.
    fn release_floors(&mut self, now: MonoTime) {
        let mut from = None;
        while let Some(rule) = self.rates.with_floor(from) {
            from = Some(rule);
            while let Some(ticket) = self.rates.floor_turn(now, rule) {
                let Some(waiter) = self.queue.get(ticket).copied() else { break };
                let gate = self.gates.get(&waiter.request.gate);
                if gate.is_none_or(|gate| gate.open_since().is_none()) {
                    break;
                }
                if self.throw(ticket) == Check::Passed {
                    self.let_through(now, ticket);
                } else {
                    self.back_off(now, ticket);
                }
            }
        }
    }

    /// Lets through whom pace and dice let through at every open gate with a line. Gates that share
    /// the pace of the lag take turns.
    fn release(&mut self, now: MonoTime) {
        let mut from = None;
        while let Some(key) = self.next_gate_with_line(from, Paced::ByRamp) {
            from = Some(key);
            if let Some(gate) = self.gates.get_mut(&key) {
                gate.pacer.begin_run(now);
            }
            while let Some(head) = self.next_due_check(now, key) {
                if self.throw(head.ticket) == Check::Lost {
                    self.queue.place(head.ticket, Spot::InLine { last_loss: Some(now) });
                } else {
                    self.let_through(now, head.ticket);
                }
            }
        }
        self.release_at_the_pace(now);
    }

    /// Gates that share the pace of the lag take turns.
    fn release_at_the_pace(&mut self, now: MonoTime) {
        if self.pause_until.is_some_and(|until| now < until) {
            self.claimed_at = None;
            return;
        }
        self.pause_until = None;
        self.claimed_at = None;
        let mut lost_rounds = 0_u32;
        loop {
            let mut moved = false;
            let mut from = None;
            while let Some(key) = self.next_gate_with_line(from, Paced::ByRoom) {
                from = Some(key);
                match self.release_one(now, key) {
                    Release::NoRoom => {}
                    Release::Moved => moved = true,
                    Release::Lost => lost_rounds = lost_rounds.saturating_add(1),
                }
            }
            if lost_rounds >= LOST_ROUNDS_MAX {
                self.pause_until = Some(now.saturating_add(PAUSE));
                return;
            }
            if !moved && lost_rounds == 0 {
                return;
            }
            if !moved {
                lost_rounds = lost_rounds.saturating_add(1);
            }
        }
    }

    fn next_gate_with_line(&self, after: Option<GateKey>, paced: Paced) -> Option<GateKey> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let mut gates = self.gates.range((from, Unbounded));
        let wanted = |gate: &Gate| match paced {
            Paced::ByRamp => !gate.by_room,
            Paced::ByRoom => gate.by_room,
        };
        gates.find(|(_, gate)| gate.has_line() && wanted(gate)).map(|(key, _)| *key)
    }

    /// Spends one check of the ramp, if one is due, and says whose it is.
    fn next_due_check(&mut self, now: MonoTime, key: GateKey) -> Option<Head> {
        let gate = self.gates.get_mut(&key)?;
        let since = gate.open_since()?;
        if !gate.pacer.is_due(now) {
            return None;
        }
        let head = gate.ring.head()?;
        gate.ring.charge(head.lane, head.cost, 1);
        gate.pacer.spend(release_per_s(self.pacing, since, now));
        Some(head)
    }

    /// One release: checks in turn, until one wins or each lane has had one. If all have lost, the
    /// pace has room and only the dice are in the way. Then an app that is alone checks again after
    /// the check interval, as it would if nobody waited; with rivals in line all keep their places
    /// for the next round, and what they threw is on their accounts.
    fn release_one(&mut self, now: MonoTime, key: GateKey) -> Release {
        let lanes = self.gates.get(&key).map_or(0, |gate| gate.ring.lanes());
        let mut lost = std::mem::take(&mut self.lost);
        lost.clear();
        let mut won = None;
        for _ in 0..lanes {
            let Some(head) = self.next_paced_check(now, key) else { break };
            if self.throw(head.ticket) == Check::Passed {
                won = Some(head.ticket);
                break;
            }
            lost.push(head);
        }
        let alone = lost.first().is_some_and(|head| {
            self.gates.get(&key).is_some_and(|gate| !gate.ring.has_rival(now, head.lane))
        });
        let release = match won {
            Some(_) => Release::Moved,
            None if lost.is_empty() => Release::NoRoom,
            None if alone => Release::Moved,
            None => Release::Lost,
        };
        for head in lost.drain(..) {
            if alone && won.is_none() {
                self.back_off(now, head.ticket);
            } else {
                self.queue.place(head.ticket, Spot::InLine { last_loss: Some(now) });
            }
        }
        self.lost = lost;
        if let Some(ticket) = won {
            self.let_through(now, ticket);
        }
        release
    }

    /// The next check at a gate that is paced, if there is room for what it may let through.
    fn next_paced_check(&mut self, now: MonoTime, key: GateKey) -> Option<Head> {
        let head = self.gates.get(&key)?.ring.head()?;
        // What such statements cost may have been learned since it joined.
        let request = self.queue.get(head.ticket)?.request;
        let cost = self.expected(&request);
        if !self.has_room(now, &request, cost) {
            return None;
        }
        self.gates.get_mut(&key)?.ring.charge(head.lane, cost, request.terms.weight);
        Some(head)
    }

    /// Leaves the line until the next check.
    fn back_off(&mut self, now: MonoTime, ticket: Ticket) {
        let Some(waiter) = self.queue.get(ticket).copied() else { return };
        self.leave_line(ticket, &waiter);
        let retry_at = self.next_check(now);
        self.queue.place(ticket, Spot::BackOff { retry_at });
    }

    /// One check of a waiter in line. The gate has been looked at, and is open.
    fn throw(&mut self, ticket: Ticket) -> Check {
        let Some(waiter) = self.queue.get(ticket) else { return Check::Lost };
        let request = &waiter.request;
        let check =
            if request.terms.ratio.loses(&mut self.dice) { Check::Lost } else { Check::Passed };
        self.checks.count(request.rule, request.app, check);
        check
    }

    fn let_through(&mut self, now: MonoTime, ticket: Ticket) {
        if let Some(waiter) = self.take_out(ticket) {
            let permit = self.admit(now, &waiter.request, None);
            self.queue.resolve(ticket, Resolved::Admit(permit));
        }
    }
}

/// Rounds that nobody wins before the next is put off: dice that rarely win must not hold a core.
const LOST_ROUNDS_MAX: u32 = 8;

/// For how long it is put off.
const PAUSE: Duration = Duration::from_millis(1);

/// What has come of one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    /// There is no line, or no room for its head.
    NoRoom,
    /// Somebody left the line.
    Moved,
    /// Everybody has thrown and lost, and stays.
    Lost,
}

/// What limits a gate's releases.
#[derive(Debug, Clone, Copy)]
enum Paced {
    /// The ramp of the plain gate.
    ByRamp,
    /// The room that its signals leave.
    ByRoom,
}
