//! The question of a client that writes around Sluice: a statement's check, without a place in the
//! line.
//!
//! | gate | answer |
//! |---|---|
//! | any, rule on hold or with a ratio of 1 | refused: `hold`, `ratio` |
//! | shut | refused: `gate_closed` or `no_data`, without a throw |
//! | open, not its turn | refused: `paced`, without a throw |
//! | open, its turn | the dice: allowed and charged, or refused: `ratio` |
//!
//! Whose turn it is: at a gate that the lag paces, the pace has room for it and nobody waits in
//! line, or its app's claim covers it ([`crate::claims`]). So apps that ask and apps that wait share
//! the pace in proportion to weight × (1 − ratio), whatever the number of askers, if those that ask
//! do so often enough. At other gates the ramp that follows an opening counts for askers as for
//! waiters, and beside a line they have every second turn at most. Where statements in flight are
//! limited, by a signal or by its rule, an asker takes no place, and is refused while all are taken.
//! What it means to write counts for the cap of its rule; floors are for statements.

use super::room::waits_in;
use super::{Controller, Life};
use crate::checks::Check;
use crate::claims::{AskersTurn, weight_of};
use crate::costs::{COST_MIN, rows_cost};
use crate::gate::Obstacle;
use crate::inquiry::{Answer, Inquiry, Purpose};
use crate::pace::{Cost, Pace};
use crate::pacing::release_per_s;
use crate::rates::From;
use crate::{Mode, MonoTime, Reason, Request};

/// A check is charged at most so many times what a statement is of which nothing is known: 1.2 s of
/// the rate. Whoever says a larger number would only keep everybody else waiting for longer than
/// its own write can take to be seen.
const PRUDENT_MAX: f64 = 2.0;

impl Controller {
    /// May this client write now, directly, so many rows? One throw of the dice at most, and
    /// nothing is kept of the client: it asks again when it was refused.
    ///
    /// What an allowed one means to write counts as on its way until the second heartbeat from now
    /// is acknowledged, so that those who ask together do not write all at once. There is no permit
    /// to be completed.
    pub fn inquire(&mut self, now: MonoTime, inquiry: &Inquiry) -> Answer {
        let now = self.tick(now);
        let request = &inquiry.request;
        let cost = match inquiry.purpose {
            Purpose::Write { rows } => Some(self.intended(now, request, rows)),
            Purpose::Read => None,
        };
        match request.terms.mode {
            Mode::Enforce => match self.check_once(now, request, cost) {
                Ok(()) => {
                    self.promise(now, request, cost);
                    self.watch_admitted(now, request);
                    self.watch_promised(now, request, cost);
                    Answer::Allowed
                }
                Err(obstacle) => {
                    self.watch_refused(now, request, obstacle.reason);
                    Answer::Refused(self.refuse(now, request, obstacle))
                }
            },
            Mode::Observe => {
                let obstacle = match inquiry.purpose {
                    Purpose::Write { .. } => self.observe(now, request),
                    Purpose::Read => self.check_once(now, request, None).err(),
                };
                self.promise(now, request, cost);
                self.watch_admitted(now, request);
                let refusal = obstacle.map(|obstacle| self.refuse(now, request, obstacle));
                Answer::Observed(refusal)
            }
        }
    }

    fn check_once(
        &mut self,
        now: MonoTime,
        request: &Request,
        cost: Option<f64>,
    ) -> Result<(), Obstacle> {
        match self.life {
            Life::Serving => {}
            Life::ShuttingDown => return Err(Obstacle::plain(Reason::Shutdown)),
        }
        if request.terms.hold {
            return Err(Obstacle::plain(Reason::Hold));
        }
        if let Some(cost) = cost.filter(|_| !request.terms.ratio.is_certain()) {
            self.wait_its_turn(now, request, cost)?;
        }
        if request.terms.ratio.loses(&mut self.dice) {
            self.checks.count(request.rule, request.app, Check::Lost);
            return Err(Obstacle::plain(Reason::Ratio));
        }
        self.checks.count(request.rule, request.app, Check::Passed);
        Ok(())
    }

    /// Whether a check may be made now; else what is in its way.
    fn wait_its_turn(
        &mut self,
        now: MonoTime,
        request: &Request,
        cost: f64,
    ) -> Result<(), Obstacle> {
        if !self.rates.lets_through(now, request.rule, &request.terms, From::Arrival) {
            return Err(self.by_own_limit(now, request.rule));
        }
        self.need(now, request.gate);
        let Some(gate) = self.gates.get_mut(&request.gate) else {
            return Err(Obstacle::plain(Reason::NoData));
        };
        if !gate.has_signals() {
            return Ok(());
        }
        let Some(open_since) = gate.open_since() else {
            let obstacle = gate.contention_now().unwrap_or(Obstacle::plain(Reason::NoData));
            // Who comes meanwhile is not forgotten.
            if gate.paced && !gate.ring.is_empty() {
                self.claims.note_asker(now, request, waits_in(&self.gates, self.sparse_for(0.0)));
            }
            return Err(obstacle);
        };
        gate.note_asker(now, request.app);
        let has_turn = if gate.paced && self.pace.is_some() {
            self.has_turn_at_the_pace(now, request, cost)
        } else {
            // Nobody can tell when it ends, so it takes no place; but others are to have one left.
            let is_first = gate.ring.is_empty();
            let full = is_first.then(|| self.in_flight.in_the_way(now, gate.signals())).flatten();
            gate.held_by = full.or(gate.held_by);
            full.is_none()
                && gate.take_turn_of_askers(now, release_per_s(self.pacing, open_since, now))
        };
        if has_turn { Ok(()) } else { Err(Obstacle::plain(Reason::Paced)) }
    }

    fn has_turn_at_the_pace(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        let Some(gate) = self.gates.get(&request.gate) else { return false };
        let has_line = gate.ring.line_since(request.lane()).is_some();
        if gate.ring.is_empty() || self.only_limits_keep(now, request) {
            // The floor of its rule is for statements that are admitted.
            return self.fits(now, request, cost);
        }
        // Statements of the same app wait: they have its turns.
        if has_line {
            return false;
        }
        self.claims.note_asker(now, request, waits_in(&self.gates, self.sparse_for(0.0)));
        self.wishes.note(now, request.rule, weight_of(request));
        let Some(pace) = &mut self.pace else { return false };
        let speeds = pace.speeds();
        let has_turn = match self.claims.turn_of_asker(now, request.app, speeds, cost) {
            AskersTurn::NotYet => false,
            AskersTurn::WithRoom => pace.has_room(now, Cost::known(cost)),
            AskersTurn::AnyHow => true,
        };
        if !has_turn {
            self.claims.refuse_asker(now, request.app, cost);
        } else if self.claimed_at.is_some() {
            // The line may have waited for this.
            self.claimed_at = Some(now);
        }
        has_turn
    }

    /// What the client means to write, in rows.
    fn intended(&self, now: MonoTime, request: &Request, rows: Option<u64>) -> f64 {
        let app = request.app;
        let prudent = self.pace.as_ref().map_or(0.0, Pace::prudent_cost);
        let most = (prudent * PRUDENT_MAX).max(COST_MIN);
        match rows {
            Some(rows) => rows_cost(rows).min(most),
            None if self.promises.comes_through(now, app) => 0.0,
            None => self.costs.of_app(app).unwrap_or(COST_MIN).clamp(COST_MIN, most),
        }
    }

    /// Puts what was allowed on the accounts.
    fn promise(&mut self, now: MonoTime, request: &Request, cost: Option<f64>) {
        if let Some(cost) = cost {
            self.rates.settle(now, request.rule, cost, cost);
        }
        let paced = self.gates.get(&request.gate).is_some_and(|gate| gate.paced);
        let cost = cost.filter(|cost| paced && *cost > 0.0);
        let (Some(pace), Some(cost)) = (&mut self.pace, cost) else { return };
        let charge = match request.terms.mode {
            Mode::Enforce => {
                self.claims.spend(request.app, cost);
                self.wishes.spend(request.rule, cost);
                pace.admit(now, Cost::known(cost))
            }
            Mode::Observe => pace.note(now, Cost::known(cost)),
        };
        self.promises.add(request.app, charge);
    }

    /// A statement is about to ask: what its app was allowed by a check is taken over by it.
    pub(super) fn redeem(&mut self, request: &Request) {
        if self.promises.is_empty() {
            return;
        }
        let cost = self.expected(request);
        let paced = self.gates.get(&request.gate).is_some_and(|gate| gate.paced);
        if let Some(pace) = self.pace.as_mut().filter(|_| paced) {
            self.promises.redeem(request.app, cost, pace);
        }
    }
}
