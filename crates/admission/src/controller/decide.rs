//! One statement: its check, its place, its refusal.

use std::time::Duration;

use rand::RngExt as _;

use super::{Controller, Life};
use crate::checks::Check;
use crate::claims::weight_of;
use crate::decision::{Decision, Permit, Refusal, Resolved};
use crate::gate::Obstacle;
use crate::queue::Spot;
use crate::rates::From;
use crate::ring::Joining;
use crate::{MonoTime, OnRefusedCheck, OnTimeout, Ratio, Reason, Request, Terms};

/// What a check gives.
pub(super) enum Checked {
    /// The statement may run.
    Passed,
    /// It may not: where it waits, if it can, and why.
    Stopped(Spot, Obstacle),
}

impl Controller {
    pub(super) fn decide(&mut self, now: MonoTime, request: &Request) -> Decision {
        match self.life {
            Life::Serving => {}
            Life::ShuttingDown => {
                let refusal = self.refuse(now, request, Obstacle::plain(Reason::Shutdown));
                return Decision::Reject(refusal);
            }
        }
        match (self.check(now, request, From::Arrival), request.terms.on_refused_check) {
            (Checked::Passed, OnRefusedCheck::Delay | OnRefusedCheck::Reject) => {
                Decision::Admit(self.admit(now, request, None))
            }
            // There has been no check yet that could be lost.
            (Checked::Stopped(Spot::InLine { .. }, obstacle), OnRefusedCheck::Reject)
                if self.awaits(now, request.gate) =>
            {
                let retry_at = now.saturating_add(AWAITED_LOOK);
                self.enqueue(now, request, Spot::Unplaced { retry_at }, obstacle)
            }
            (Checked::Stopped(_, obstacle), OnRefusedCheck::Reject) => {
                Decision::Reject(self.refuse(now, request, obstacle))
            }
            (Checked::Stopped(spot, obstacle), OnRefusedCheck::Delay) => {
                self.enqueue(now, request, spot, obstacle)
            }
        }
    }

    /// Checks the statement if it is its turn, else says what is in its way.
    pub(super) fn check(&mut self, now: MonoTime, request: &Request, from: From) -> Checked {
        let terms = &request.terms;
        if terms.hold {
            return Checked::Stopped(Spot::Held, Obstacle::plain(Reason::Hold));
        }
        let certain = terms.ratio.is_certain();
        if !certain && !self.rates.lets_through(now, request.rule, terms, from) {
            return Checked::Stopped(Spot::Limited, self.by_own_limit(now, request.rule));
        }
        self.need(now, request.gate);
        let Some(gate) = self.gates.get_mut(&request.gate) else {
            let retry_at = self.next_check(now);
            let obstacle = Obstacle::plain(Reason::NoData);
            return Checked::Stopped(Spot::Unplaced { retry_at }, obstacle);
        };
        let contention = match terms.on_refused_check {
            OnRefusedCheck::Delay => gate.contention(now),
            OnRefusedCheck::Reject => gate.contention_now(),
        };
        // In line dice are drawn ahead, and nobody goes back to the check interval.
        let may_pass =
            terms.ratio == Ratio::ZERO || terms.on_refused_check == OnRefusedCheck::Reject;
        let contention = match contention {
            Some(obstacle) if !may_pass || !self.only_limits_keep(now, request) => Some(obstacle),
            Some(_) | None => self.take_turn(now, request).err(),
        };
        if let Some(obstacle) = contention {
            return if certain {
                Checked::Stopped(Spot::Held, Obstacle::plain(Reason::Ratio))
            } else {
                Checked::Stopped(Spot::InLine { last_loss: None }, obstacle)
            };
        }
        if !terms.ratio.loses(&mut self.dice) {
            self.checks.count(request.rule, request.app, Check::Passed);
            return Checked::Passed;
        }
        self.checks.count(request.rule, request.app, Check::Lost);
        let spot =
            if certain { Spot::Held } else { Spot::BackOff { retry_at: self.next_check(now) } };
        Checked::Stopped(spot, Obstacle::plain(Reason::Ratio))
    }

    /// Takes a turn at an open gate without a line, and charges it, as far as there is room.
    /// Without room nothing is charged.
    fn take_turn(&mut self, now: MonoTime, request: &Request) -> Result<(), Obstacle> {
        if !self.gates.get(&request.gate).is_some_and(|gate| gate.by_room) {
            return Ok(());
        }
        let cost = self.expected(request);
        if !self.has_room(now, request, cost) {
            return Err(Obstacle::plain(Reason::Paced));
        }
        // Who cannot wait in line never comes to its head, where patience ends.
        let may_wait = request.terms.on_refused_check == OnRefusedCheck::Delay;
        if may_wait && request.deadline() > now && self.is_patient(now, request, cost, None) {
            return Err(Obstacle::plain(Reason::Paced));
        }
        self.bring_along(request.gate, request.lane());
        if let Some(gate) = self.gates.get_mut(&request.gate) {
            gate.ring.charge(request.lane(), cost, request.terms.weight);
        }
        Ok(())
    }

    /// `mode: observe`: one check, nothing else. What would have stood in the way.
    pub(super) fn observe(&mut self, now: MonoTime, request: &Request) -> Option<Obstacle> {
        match self.life {
            Life::Serving => {}
            Life::ShuttingDown => return Some(Obstacle::plain(Reason::Shutdown)),
        }
        if request.terms.hold {
            return Some(Obstacle::plain(Reason::Hold));
        }
        let awaited = self.need(now, request.gate);
        let Some(gate) = self.gates.get(&request.gate) else {
            return Some(Obstacle::plain(Reason::NoData));
        };
        let terms = &request.terms;
        let limited = !self.rates.lets_through(now, request.rule, terms, From::Arrival);
        let (check, obstacle) = if terms.ratio.loses(&mut self.dice) {
            (Check::Lost, Some(Obstacle::plain(Reason::Ratio)))
        } else if limited {
            (Check::Stopped, Some(self.by_own_limit(now, request.rule)))
        } else if let Some(obstacle) = gate.contention_now().filter(|_| !awaited) {
            (Check::Stopped, Some(obstacle))
        } else {
            (Check::Passed, None)
        };
        self.checks.count(request.rule, request.app, check);
        obstacle
    }

    pub(super) fn enqueue(
        &mut self,
        now: MonoTime,
        request: &Request,
        spot: Spot,
        obstacle: Obstacle,
    ) -> Decision {
        if request.deadline() <= now {
            return match self.expire(now, request, obstacle) {
                Ok(permit) => Decision::Admit(permit),
                Err(refusal) => Decision::Reject(refusal),
            };
        }
        if !self.has_place_in_queue(now, request) {
            return Decision::Reject(self.turn_away(
                now,
                request,
                Obstacle::plain(Reason::QueueFull),
            ));
        }
        let ticket = self.queue.insert(*request, spot);
        self.stand_in_line(ticket, request, spot);
        Decision::Queue(ticket)
    }

    /// Joins the ring of its gate or of its rule, if that is where the waiter waits.
    pub(super) fn stand_in_line(&mut self, ticket: crate::Ticket, request: &Request, spot: Spot) {
        match spot {
            Spot::InLine { .. } => {
                let (cost, known) = (self.expected(request), self.known(request));
                let rows = self.expected_rows(request);
                let Some(gate) = self.gates.get_mut(&request.gate) else { return };
                if gate.paced {
                    self.wishes.note(self.clock, request.rule, weight_of(request));
                    self.advices.through.note(self.clock, request.lane());
                }
                if gate.by_room {
                    self.advices.through_places.note(self.clock, request.lane());
                }
                let (lane, place) = (request.lane(), (request.since, ticket));
                let Terms { weight, ratio, .. } = request.terms;
                // Where checks are handed out at a rate, each is thrown when it is due.
                let ratio = if gate.by_room { ratio } else { Ratio::ZERO };
                let kept = request.since < request.arrived;
                let joining = Joining { lane, place, weight, cost, known, ratio, kept };
                let lost = gate.ring.join(self.clock, &joining, &mut self.dice);
                self.checks.add(request.rule, request.app, Check::Lost, lost);
                self.rates.join_gate(self.clock, request.rule, place, rows);
                if let Some(watch) = &mut self.starvation {
                    watch.stands_in_line(self.clock, request);
                }
                // The head before it may have been too large for the room there is.
                let is_head = gate.ring.is_head(ticket);
                let floor = request.terms.min_rate.is_some();
                let by_room = gate.by_room && (is_head || floor);
                let goes = by_room && self.has_room(self.clock, request, cost);
                let may_pass = !is_head && ratio == Ratio::ZERO;
                if goes || (may_pass && self.claim_covers(self.clock, request, cost)) {
                    self.pause_until = Some(self.clock);
                }
            }
            Spot::Limited => {
                let (lane, place) = (request.lane(), (request.since, ticket));
                let (cost, weight) = (self.expected_rows(request), request.terms.weight);
                let known = self.costs.expected(request.digest, request.app, 0.0);
                // It is checked when it comes to the gate.
                let ratio = Ratio::ZERO;
                let kept = request.since < request.arrived;
                let joining = Joining { lane, place, weight, cost, known, ratio, kept };
                self.rates.join(self.clock, &joining, &mut self.dice);
            }
            // Who joins says for which bucket.
            Spot::Budgeted { .. } => {}
            Spot::BackOff { .. } | Spot::Held | Spot::Unplaced { .. } => {}
        }
    }

    /// The deadline has passed.
    pub(super) fn expire(
        &mut self,
        now: MonoTime,
        request: &Request,
        obstacle: Obstacle,
    ) -> Result<Permit, Refusal> {
        match request.terms.on_timeout {
            OnTimeout::Admit if !request.terms.hold && !obstacle.reason.is_budget() => {
                Ok(self.admit(now, request, Some(Reason::Timeout)))
            }
            OnTimeout::Admit | OnTimeout::Reject => Err(self.turn_away(now, request, obstacle)),
        }
    }

    pub(super) fn admit(
        &mut self,
        now: MonoTime,
        request: &Request,
        reason: Option<Reason>,
    ) -> Permit {
        self.work.in_flight = self.work.in_flight.saturating_add(1);
        self.watch_admitted(now, request);
        let shared = self.watch_shared(now, request);
        let account = self.account(now, request, shared);
        Permit::new(now.saturating_since(request.arrived), reason, account)
    }

    pub(super) fn refuse(
        &mut self,
        now: MonoTime,
        request: &Request,
        obstacle: Obstacle,
    ) -> Refusal {
        let obstacle = self.with_pace(request, obstacle);
        Refusal {
            limit: obstacle.limit,
            reason: obstacle.reason,
            cause: obstacle.cause,
            budget: obstacle.budget.map(|at| at.budget),
            waited: now.saturating_since(request.arrived),
            retry_after: match obstacle.budget {
                Some(at) => self.retry_after_budget(now, request, (at, obstacle.reason)),
                None => self.retry_after(now, request, obstacle.reason),
            },
        }
    }

    /// When a statement that lost a check is checked again.
    pub(super) fn next_check(&mut self, now: MonoTime) -> MonoTime {
        let wait = self.spread(self.check_interval);
        now.saturating_add(wait)
    }

    /// ±25 %, so that those who were refused together do not come back together.
    pub(super) fn spread(&mut self, wait: Duration) -> Duration {
        wait.mul_f64(self.jitter.random_range(0.75..1.25))
    }
}

/// How often somebody who cannot wait in line asks again whether a value has come that is awaited.
const AWAITED_LOOK: Duration = Duration::from_millis(20);

impl std::convert::From<Result<Permit, Refusal>> for Resolved {
    fn from(outcome: Result<Permit, Refusal>) -> Self {
        match outcome {
            Ok(permit) => Self::Admit(permit),
            Err(refusal) => Self::Reject(refusal),
        }
    }
}
