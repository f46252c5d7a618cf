//! Time passes: looks, deadlines, checks after back-off, releases. In this order: a statement whose
//! deadline has come is not admitted by a check that comes with it, and one whose back-off ends at
//! a contended gate stands in line before the line moves.

use super::Controller;
use super::decide::Checked;
use super::room::TICK;
use crate::checks::Check;
use crate::decision::Resolved;
use crate::gate::Gate;
use crate::pacing::release_per_s;
use crate::queue::{Spot, Waiter};
use crate::rates::{From, Thrown};
use crate::ring::{Head, Place, is_news};
use crate::{GateKey, MonoTime, Ratio, Request, RuleKey, Ticket};

impl Controller {
    pub(super) fn advance(&mut self, now: MonoTime) {
        self.look_at_gates(now);
        // Who is not looked at now comes before anything else when time is told again, at once.
        if self.expire_overdue(now) == Batch::Done
            && self.check_after_back_off(now) == Batch::Done
            && self.release_limited(now) == Batch::Done
            && self.release_budgeted(now) == Batch::Done
            && self.release_floors(now) == Batch::Done
        {
            self.release(now);
        }
    }

    pub(super) fn look_at_gates(&mut self, now: MonoTime) {
        for gate in self.gates.values_mut() {
            gate.look(&self.signals, now);
            if !gate.ring.is_empty() {
                self.last_gated = Some(now);
            }
        }
    }

    fn expire_overdue(&mut self, now: MonoTime) -> Batch {
        for _ in 0..BATCH_LEN {
            let Some(ticket) = self.queue.overdue(now) else { return Batch::Done };
            if self.shelve_overdue(now, ticket) {
                continue;
            }
            let sought = self.budget_lines.get(ticket).copied();
            let Some(waiter) = self.take_out(ticket) else { return Batch::Done };
            let obstacle = self.obstacle_of(ticket, &waiter);
            let outcome = self.expire(now, &waiter.request, obstacle);
            let outcome = outcome.map(|permit| match &sought {
                Some(sought) => self.with_budgets(now, permit, (&waiter.request, sought)),
                None => permit,
            });
            if let Err(refusal) = &outcome {
                self.watch_refused(now, &waiter.request, refusal.reason);
            }
            self.queue.resolve(ticket, outcome.into());
        }
        self.queue.overdue(now).map_or(Batch::Done, |_| Batch::MoreIsDue)
    }

    fn check_after_back_off(&mut self, now: MonoTime) -> Batch {
        for _ in 0..BATCH_LEN {
            let Some(ticket) = self.queue.retrying(now) else { return Batch::Done };
            let Some(waiter) = self.queue.get(ticket).copied() else { return Batch::Done };
            match waiter.spot {
                Spot::Unplaced { .. } => {
                    self.take_out(ticket);
                    self.queue.resolve(ticket, Resolved::DecideAgain);
                }
                Spot::BackOff { .. }
                | Spot::InLine { .. }
                | Spot::Limited
                | Spot::Budgeted { .. }
                | Spot::Held => {
                    self.check_again(now, ticket, From::Arrival);
                }
            }
        }
        self.queue.retrying(now).map_or(Batch::Done, |_| Batch::MoreIsDue)
    }

    /// Checks a waiter that stands in no line, and gives it its next spot.
    pub(super) fn check_again(&mut self, now: MonoTime, ticket: Ticket, from: From) {
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
    fn release_limited(&mut self, now: MonoTime) -> Batch {
        self.rates.set_unfinished(false);
        let mut left = BATCH_LEN;
        let mut from = None;
        while let Some(rule) = self.rates.with_line(from) {
            from = Some(rule);
            while let Some(head) = self.rates.next_turn(now, rule, &mut self.dice) {
                let Some(waiter) = self.queue.get(head.ticket).copied() else { break };
                self.leave_line(head.ticket, &waiter);
                self.queue.place(head.ticket, Spot::Held);
                self.check_again(now, head.ticket, From::Line);
                left = left.saturating_sub(1);
                if left == 0 {
                    self.rates.set_unfinished(true);
                    return Batch::MoreIsDue;
                }
            }
        }
        Batch::Done
    }

    /// Lets through whom the floor of their rule covers, at open gates, wherever they stand in
    /// line.
    fn release_floors(&mut self, now: MonoTime) -> Batch {
        let mut left = BATCH_LEN;
        let mut from = None;
        while let Some(rule) = self.rates.with_floor(from) {
            from = Some(rule);
            while self.release_by_floor(now, rule) == Release::Moved {
                left = left.saturating_sub(1);
                if left == 0 {
                    self.rates.set_unfinished(true);
                    return Batch::MoreIsDue;
                }
            }
        }
        Batch::Done
    }

    fn release_by_floor(&mut self, now: MonoTime, rule: RuleKey) -> Release {
        let Some(ticket) = self.rates.floor_turn(now, rule) else { return Release::Stays };
        let Some(Waiter { request, .. }) = self.queue.get(ticket).copied() else {
            return Release::Stays;
        };
        let gate = self.gates.get(&request.gate);
        if gate.is_none_or(|gate| gate.open_since().is_none()) {
            return Release::Stays;
        }
        let next_check = self.next_check(now);
        let who = (rule, request.terms.ratio);
        let thrown = self.rates.throw_for_floor(now, who, next_check, &mut self.dice);
        let (Thrown::Won { lost } | Thrown::Lost { lost }) = thrown;
        self.checks.add(rule, request.app, Check::Lost, lost);
        match thrown {
            Thrown::Lost { .. } => Release::Stays,
            Thrown::Won { .. } => {
                self.checks.count(rule, request.app, Check::Passed);
                // It counts as one of its turns: what it is charged too much is given back.
                let cost = self.expected(&request);
                if let Some(gate) = self.gates.get_mut(&request.gate) {
                    gate.ring.charge(request.lane(), cost, request.terms.weight);
                }
                self.let_through(now, ticket);
                Release::Moved
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
            for _ in 0..BATCH_LEN {
                let Some(head) = self.next_due_check(now, key) else { break };
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
        for gate in self.gates.values_mut() {
            gate.rounds.begin_run(now);
        }
        self.release_the_covered(now);
        let mut left = BATCH_LEN;
        loop {
            let mut moved = false;
            let mut from = None;
            while let Some(key) = self.next_gate_with_line(from, Paced::ByRoom) {
                from = Some(key);
                moved |= self.release_one(now, key) == Release::Moved;
                left = left.saturating_sub(1);
            }
            if !moved {
                return;
            }
            if left == 0 {
                self.pause_until = Some(now);
                return;
            }
        }
    }

    /// Lets through whom the claims of their apps cover, wherever those stand: the head may be
    /// waiting for far more room than there is for a while.
    fn release_the_covered(&mut self, now: MonoTime) {
        if now >= self.looks_until {
            self.looks_until = now.saturating_add(TICK);
            self.looks = LOOKS;
        }
        let mut from = None;
        while let Some(key) = self.next_gate_with_line(from, Paced::ByRoom) {
            from = Some(key);
            let gate = self.gates.get(&key);
            let young = gate.filter(|gate| gate.heeds_claims()).map_or(0, |gate| gate.ring.young());
            for _ in 0..young.min(self.looks) {
                self.looks = self.looks.saturating_sub(1);
                self.look_at_young(now, key);
            }
            if young > 0 && self.looks == 0 {
                self.look_again_at(self.looks_until);
            }
        }
    }

    /// Looks at the next line that has just begun.
    fn look_at_young(&mut self, now: MonoTime, key: GateKey) {
        let sparse_for = self.sparse_for(0.0);
        let Some(gate) = self.gates.get_mut(&key) else { return };
        let Some(head) = gate.ring.next_young(now, sparse_for) else { return };
        if gate.ring.is_head(head.ticket) || head.ratio > Ratio::ZERO {
            return;
        }
        let waiter = self.queue.get(head.ticket);
        let Some(request) = waiter.map(|waiter| waiter.request) else { return };
        let cost = self.expected(&request);
        if !self.claim_covers(now, &request, cost) {
            return;
        }
        self.checks.count(request.rule, request.app, Check::Passed);
        if let Some(gate) = self.gates.get_mut(&key) {
            gate.ring.charge(head.lane, cost, request.terms.weight);
            gate.patience.gave(cost);
        }
        self.let_through(now, head.ticket);
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
        gate.ring.take(&head, head.cost, &mut self.dice);
        gate.askers_turn = true;
        gate.pacer.spend(release_per_s(self.pacing, since, now));
        Some(head)
    }

    /// One release: whoever wins the next check that is won, if there is room for it. If many are
    /// lost before, the pace has room and only the dice are in the way. Then an app that is alone
    /// checks again after the check interval, as it would if nobody waited; with rivals in line all
    /// keep their places.
    fn release_one(&mut self, now: MonoTime, key: GateKey) -> Release {
        let Some(gate) = self.gates.get(&key) else { return Release::Stays };
        let Some(mut head) = gate.head() else { return Release::Stays };
        if gate.paced {
            let (gates, mut limits) = self.limits(now);
            if !limits.allow(&head) {
                // Its limit is its own.
                let ring = gates.get(&key).map(|gate| &gate.ring);
                let next = ring.and_then(|ring| ring.head_where(|head| limits.allow(head)));
                let Some(next) = next else { return Release::Stays };
                self.bring_along(key, next.lane);
                head = next;
            }
        }
        // What such statements cost may have been learned since it joined.
        let Some(request) = self.queue.get(head.ticket).map(|waiter| waiter.request) else {
            return Release::Stays;
        };
        if self.learn_line(&head, &request) {
            return Release::Moved;
        }
        let cost = self.expected(&request);
        if !self.has_room(now, &request, cost) {
            self.wait_for_room(now, &head, &request, cost);
            return Release::Stays;
        }
        if self.is_patient(now, &request, cost, Some(head.ticket)) {
            return Release::Stays;
        }
        let Some(gate) = self.gates.get_mut(&key) else { return Release::Stays };
        if !gate.has_rival(now, head.lane) {
            let lanes = u64::try_from(gate.ring.lanes()).unwrap_or(u64::MAX);
            if gate.ring.losses_before_win() >= lanes {
                gate.ring.lose(&head);
                self.checks.count(request.rule, request.app, Check::Lost);
                self.back_off(now, head.ticket);
                return Release::Moved;
            }
        } else {
            let rounds = gate.ring.rounds_before_win();
            if !gate.rounds.are_lost(now, rounds) {
                return Release::Stays;
            }
            gate.rounds.spend(rounds);
        }
        let lost = gate.ring.take(&head, cost, &mut self.dice);
        gate.askers_turn = true;
        gate.patience.gave(cost);
        self.checks.add(request.rule, request.app, Check::Lost, lost);
        self.checks.count(request.rule, request.app, Check::Passed);
        self.let_through(now, head.ticket);
        Release::Moved
    }

    /// Whether more is known of what this head costs than was when it joined. Then that goes for its
    /// line, and another may be at the head.
    fn learn_line(&mut self, head: &Head, request: &Request) -> bool {
        if !is_news(self.known(request), head.known) {
            return false;
        }
        let Some(gate) = self.gates.get(&request.gate) else { return false };
        let front = gate.ring.front_of(head.lane);
        let costs: Vec<(Place, f64)> = front
            .filter_map(|(place, before)| {
                let known = self.known(&self.queue.get(place.1)?.request);
                is_news(known, before).then_some((place, known))
            })
            .collect();
        let Some(gate) = self.gates.get_mut(&request.gate) else { return false };
        let lost = gate.ring.learn(head.lane, &costs, &mut self.dice);
        self.checks.add(request.rule, request.app, Check::Lost, lost);
        !costs.is_empty()
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

    pub(super) fn let_through(&mut self, now: MonoTime, ticket: Ticket) {
        if self.shelve(now, ticket) {
            return;
        }
        let sought = self.budget_lines.get(ticket).copied();
        if let Some(waiter) = self.take_out(ticket) {
            let permit = self.admit_waiter(now, &waiter.request, sought.as_ref());
            self.queue.resolve(ticket, Resolved::Admit(permit));
        }
    }
}

/// Statements that one call handles of each kind: half a millisecond, where each is of an app of
/// its own. If more is due, the timer is as well, and whoever waits for the lock comes first.
pub(super) const BATCH_LEN: usize = 128;

/// Lines that have just begun, of which so many are looked at in a [`TICK`].
const LOOKS: usize = 16;

/// Whether all is done that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    Done,
    MoreIsDue,
}

/// What has come of one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    /// There is no line, no room for its head, or checks are to be lost yet.
    Stays,
    /// Somebody left the line.
    Moved,
}

/// What limits a gate's releases.
#[derive(Debug, Clone, Copy)]
enum Paced {
    /// The ramp of the plain gate.
    ByRamp,
    /// The room that its signals leave.
    ByRoom,
}
