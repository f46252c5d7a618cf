//! The controller of one cluster: commands and time in, decisions and resolutions out.
//!
//! A shell calls a command or a `handle_*`, then polls [`Controller::poll_resolution`] until
//! `None`, then arms one timer for [`Controller::poll_timeout`]. Calling too often, twice with the
//! same time, with a time that has gone back (it is taken as the latest seen) or hours late is
//! harmless. While [`Controller::changes`] says the same as before a call, there is nothing to poll
//! that there was not before it: most statements that only budgets meet pass like that.
//!
//! What a statement meets, in order (`decide` holds it):
//!
//! | gate | `on_refused_check: delay` | `reject` |
//! |---|---|---|
//! | any, rule on hold | waits for deadline or reload | refused: `hold` |
//! | open, nobody waits | checked; lost: checked again after `check_interval` ±25 % | checked; lost: refused: `ratio` |
//! | open, others wait | queues behind them | refused: `paced` (it may not overtake, and cannot wait) |
//! | shut | queues | refused: `gate_closed` or `no_data`, without a throw |
//!
//! A ratio of 1 never wins, so its statements do not stand in line: after the check on arrival they
//! wait like a hold, with reason `ratio`. Hold is stronger than `on_timeout: admit`: nothing
//! passes.

mod advance;
mod advice;
mod away;
mod budgeted;
mod decide;
mod governing;
mod hibernation;
mod inquire;
mod memory;
mod reload;
mod room;
mod shared;
mod shown;
mod through;
mod timeout;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use self::advice::Advices;
pub use self::budgeted::BudgetAsk;
pub use self::reload::Remains;
pub use self::watch::FormerWatch;
use crate::budget::{BudgetLines, Budgets};
use crate::checks::{Check, CheckCount, CheckCounts};
use crate::claims::Claims;
use crate::costs::{Costs, rows_cost};
use crate::decision::{Decision, Outcome, Permit, Resolution, Resolved, Ticket, Work};
use crate::gate::{Gate, Obstacle, Signals};
use crate::in_flight::InFlight;
use crate::lag::LagReading;
use crate::pace::{Pace, Wishes};
use crate::pacing::release_per_s;
use crate::promises::Promises;
use crate::queue::{Queue, Spot, Waiter};
use crate::rates::Rates;
use crate::row_work::RowWork;
use crate::signal::{Sample, SignalView};
use crate::slow_start::{SlowStart, Whose};
use crate::starvation::Starvation;
use crate::{ControllerConfig, GateKey, Mode, MonoTime, Pacing, Reason, Request, SignalKey};

/// Shortest and longest check interval: wake-ups, and what still is a check.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(1);
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(3_600);

/// Apps that wait whose lost checks are counted at once.
const COUNTED_MAX: usize = 1_000;

/// Admission of one cluster. See the crate's and the module's documentation.
#[derive(Debug)]
pub struct Controller {
    /// The latest time seen. Time never goes back.
    clock: MonoTime,
    /// Counts the calls that may have changed what polling says.
    changes: u64,
    check_interval: Duration,
    pacing: Pacing,
    queue_len_max: u32,
    signals: Signals,
    gates: BTreeMap<GateKey, Gate>,
    queue: Queue,
    checks: CheckCounts,
    work: Work,
    costs: Costs,
    /// What their rows cost the replicas.
    row_work: RowWork,
    /// Under adaptive pacing.
    pace: Option<Pace>,
    /// The limits on statements in flight, of the other signals.
    in_flight: InFlight,
    /// Which signal's pace last had no room for somebody.
    governing: Option<(SignalKey, MonoTime)>,
    /// What is wanted of the pace, by rule.
    wishes: Wishes,
    /// What every app is sure of at the pace.
    claims: Claims,
    /// How much of every app may be on its way.
    slow_start: SlowStart,
    /// Allowed to those who write around Sluice.
    promises: Promises,
    /// So many lines that have just begun are looked at until then.
    looks: usize,
    looks_until: MonoTime,
    /// When somebody who waits may be covered by a claim.
    claimed_at: Option<MonoTime>,
    /// What those were told who were refused.
    advices: Advices,
    /// What rules limit by themselves.
    rates: Rates,
    /// What statements may use together.
    budgets: Budgets,
    budget_lines: BudgetLines,
    /// Nobody is let through at the pace before this time.
    pause_until: Option<MonoTime>,
    /// Thrown for checks and for nothing else.
    dice: StdRng,
    jitter: StdRng,
    starvation: Option<Starvation>,
    life: Life,
    last_gated: Option<MonoTime>,
    hibernates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Serving,
    ShuttingDown,
}

/// Commands.
impl Controller {
    /// A controller that nobody has asked yet. The same seed and calls give the same decisions.
    #[must_use]
    pub fn new(config: ControllerConfig, seed: u64, now: MonoTime) -> Self {
        let mut controller = Self {
            clock: now,
            changes: 0,
            check_interval: Duration::ZERO,
            pacing: config.pacing,
            queue_len_max: 0,
            signals: Signals::new(),
            gates: BTreeMap::new(),
            queue: Queue::default(),
            checks: CheckCounts::default(),
            work: Work::default(),
            costs: Costs::default(),
            row_work: RowWork::default(),
            pace: None,
            in_flight: InFlight::default(),
            governing: None,
            wishes: Wishes::default(),
            claims: Claims::default(),
            slow_start: SlowStart::default(),
            promises: Promises::default(),
            looks: 0,
            looks_until: now,
            claimed_at: None,
            advices: Advices::default(),
            rates: Rates::default(),
            budgets: Budgets::default(),
            budget_lines: BudgetLines::default(),
            pause_until: None,
            dice: StdRng::seed_from_u64(seed),
            jitter: StdRng::seed_from_u64(!seed),
            starvation: None,
            life: Life::Serving,
            last_gated: None,
            hibernates: false,
        };
        controller.configure(&config, now);
        controller
    }

    /// May this statement run now?
    pub fn request(&mut self, now: MonoTime, request: &Request) -> Decision {
        let now = self.tick(now);
        match request.terms.mode {
            Mode::Enforce => {
                self.redeem(request);
                let decision = self.decide(now, request);
                self.watch_decision(now, request, &decision);
                decision
            }
            Mode::Observe => {
                let obstacle = self.observe(now, request);
                let refusal = obstacle.map(|obstacle| self.refuse(now, request, obstacle));
                Decision::Observed(self.admit(now, request, None), refusal)
            }
        }
    }

    /// The waiter's client has gone, or it was killed: its place is free at once, and the ticket is
    /// not resolved any more. An unknown ticket is ignored.
    pub fn cancel(&mut self, now: MonoTime, ticket: Ticket) {
        self.tick(now);
        if self.take_out(ticket).is_some() {
            return;
        }
        if let Some(waiter) = self.queue.forget_leaving(ticket) {
            self.watch_left(self.clock, &waiter.request);
            return;
        }
        match self.queue.take_back(ticket) {
            Some(Resolved::Admit(mut permit)) => {
                self.give_back(self.clock, permit.take_hold());
                let Some(account) = permit.account else { return };
                self.work.in_flight = self.work.in_flight.saturating_sub(1);
                self.watch_settled(self.clock, &account, 0.0);
                self.costs.end(&account);
                if account.counted {
                    self.rates.complete(self.clock, account.lane.rule, account.expected);
                    self.rates.settle(self.clock, account.lane.rule, -account.expected, 0.0);
                }
                if let Some(place) = account.place {
                    self.in_flight.take_back(place);
                }
                self.take_back(&account);
            }
            Some(Resolved::Reject(_) | Resolved::DecideAgain) | None => {}
        }
    }

    /// An admitted statement has ended: the server has really finished it, also when its client has
    /// gone.
    pub fn complete(&mut self, now: MonoTime, mut permit: Permit, outcome: Outcome) {
        let now = self.tick(now);
        self.give_back(now, permit.take_hold());
        let Some(account) = permit.account.take() else { return };
        self.book(now, &account, &outcome);
        let makes_room = account.place.is_some()
            || self.rates.has_line(account.lane.rule)
            || self.held_back(&account);
        let work = &mut self.work;
        work.in_flight = work.in_flight.saturating_sub(1);
        work.completed = work.completed.saturating_add(1);
        work.errors = work.errors.saturating_add(u64::from(outcome.error));
        work.affected_rows = work.affected_rows.saturating_add(outcome.affected_rows);
        work.server_time = work.server_time.saturating_add(outcome.server_time);
        if makes_room && self.queue.len() > 0 {
            self.advance(now);
        }
    }

    /// The work under a permit has changed so many rows until now: a transaction of many statements
    /// is charged while it writes, not when it ends. Less than was expected changes nothing.
    pub fn charge(&mut self, now: MonoTime, permit: &mut Permit, affected_rows: u64) {
        let now = self.tick(now);
        let Some(account) = &mut permit.account else { return };
        let rows = rows_cost(affected_rows);
        let (cost, whose) = (account.price.of(rows), Whose::from(&*account));
        self.watch_charged(now, account, cost);
        let more = rows - account.expected;
        if account.counted && more > account.charged_more {
            self.rates.settle(now, account.lane.rule, more - account.charged_more, rows);
            account.charged_more = more;
        }
        if let (Some(pace), Some(charge)) = (&mut self.pace, &mut account.charge) {
            let before = *charge;
            pace.charge(charge, cost);
            self.slow_start.charge(now, whose, before, *charge);
        }
    }
}

/// What happens.
impl Controller {
    /// A signal was measured: `now` is when the query was answered. Samples of one signal that come
    /// out of order are dropped, the newest stays.
    pub fn handle_sample(&mut self, now: MonoTime, key: SignalKey, sample: Sample) {
        self.handle_answer(now, now, key, sample);
    }

    /// A heartbeat is about to be written: whatever has completed until now will be applied by a
    /// replica that shows it. Numbers grow; the number is the one that [`LagReading::governing`]
    /// names later.
    pub fn handle_heartbeat_begun(&mut self, now: MonoTime, seq: u64) {
        let now = self.tick(now);
        if let Some(pace) = &mut self.pace {
            self.promises.lapse(now, pace);
            pace.heartbeat_begun(now, seq);
            self.slow_start.heartbeat_begun(seq);
        }
    }

    /// The lag was measured, see [`crate::lag::LagTracker`]. A reading without a value leaves the
    /// last one until it is stale.
    pub fn handle_lag(&mut self, now: MonoTime, key: SignalKey, reading: &LagReading) {
        if let (Some(pace), Pacing::Adaptive(adaptive)) = (&mut self.pace, self.pacing)
            && adaptive.lag == key
        {
            let now = self.clock.max(now);
            pace.handle_progress(now, reading);
            self.slow_start.shown(pace.shown(), pace.is_braked(), pace.way());
            self.lapse_row_costs(now);
        }
        self.look_at_wishes(now);
        let threshold = reading.threshold.map(|own| own.as_secs_f64());
        let value = reading.value.map(|value| (value, threshold));
        let value = self.counted(key, value, |since, limit| reading.is_certain(now, since, limit));
        self.record(now, reading.at, key, value);
    }

    /// Takes in a value, and what it is held against if that is not the signal's threshold.
    fn record(
        &mut self,
        now: MonoTime,
        at: MonoTime,
        key: SignalKey,
        value: Option<(f64, Option<f64>)>,
    ) {
        let now = self.tick(now);
        // A gap in the data must be seen before the new value covers it: the ramp starts over after
        // one.
        self.look_at_gates(now);
        if let (Some((value, threshold)), Some(signal)) = (value, self.signals.get_mut(&key)) {
            signal.record(at.min(now), value, threshold);
            self.in_flight.handle_value(now, key, value);
        }
        self.advance(now);
    }

    /// Time has passed: deadlines, values that became old, checks, releases.
    pub fn handle_time(&mut self, now: MonoTime) {
        let now = self.tick(now);
        self.advance(now);
    }

    /// Takes `now` in, and gives the time that counts.
    fn tick(&mut self, now: MonoTime) -> MonoTime {
        self.changes = self.changes.wrapping_add(1);
        self.tick_quietly(now)
    }

    /// The same for a call that changes nothing of what polling says.
    fn tick_quietly(&mut self, now: MonoTime) -> MonoTime {
        self.clock = self.clock.max(now);
        self.clock
    }
}

/// What has come of it.
impl Controller {
    /// The next waiter whose wait has ended. Poll until `None` after every call.
    pub fn poll_resolution(&mut self, now: MonoTime) -> Option<Resolution> {
        let now = self.tick(now);
        if let Some(resolution) = self.queue.next_resolution() {
            return Some(resolution);
        }
        let (ticket, waiter) = self.queue.next_to_leave()?;
        self.watch_left(now, &waiter.request);
        let outcome = match self.life {
            Life::Serving => self.decide_again(&waiter),
            Life::ShuttingDown => {
                let obstacle = Obstacle::plain(Reason::Shutdown);
                Resolved::Reject(self.refuse(now, &waiter.request, obstacle))
            }
        };
        Some(Resolution { ticket, outcome })
    }
}

/// Getters.
impl Controller {
    /// One signal, as it is at `now`; `None` if it is not configured.
    #[must_use]
    pub fn signal(&self, key: SignalKey, now: MonoTime) -> Option<SignalView> {
        self.signals.get(&key).map(|signal| signal.view(now))
    }

    /// All signals, by key.
    pub fn signals(&self, now: MonoTime) -> impl Iterator<Item = SignalView> + '_ {
        self.signals.values().map(move |signal| signal.view(now))
    }

    /// How many wait in all.
    #[must_use]
    pub fn waiting_len(&self) -> usize {
        self.queue.len()
    }

    /// Gives the results of checks since the last call, per rule and app, and forgets them. What
    /// apps that wait have lost is counted when they win or leave; of a thousand of them also now.
    pub fn drain_checks(&mut self, each: impl FnMut(CheckCount)) {
        self.count_lost();
        self.checks.drain(each);
    }

    /// What an open gate lets through in a second when there is a line: rows under adaptive pacing,
    /// statements where those in flight are limited, else checks. `None` if it is shut, unknown, or
    /// has no signals and so never a line, or if nothing paces it.
    #[must_use]
    pub fn release_per_s(&self, gate: GateKey, now: MonoTime) -> Option<f64> {
        let gate = self.gates.get(&gate).filter(|gate| gate.has_signals())?;
        if let (true, Some(pace)) = (gate.paced, &self.pace) {
            return gate.open_since().and_then(|_| pace.per_s());
        }
        if gate.by_room {
            return gate.open_since().and_then(|_| self.in_flight.per_s(now, gate.signals()));
        }
        Some(f64::from(release_per_s(self.pacing, gate.open_since()?, now)))
    }

    /// What the slowest replica that counts applies when it is busy, in rows a second; `None` where
    /// nobody has measured it.
    #[must_use]
    pub fn applied_per_s(&self) -> Option<f64> {
        self.pace.as_ref().filter(|pace| pace.is_measured()).and_then(Pace::rate)
    }

    /// Permits given and not completed.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.work.in_flight
    }

    /// Permits, and what completed ones did.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// When somebody last needed a signal: asked at a gate that has some, or waited there.
    #[must_use]
    pub fn last_gated_request(&self) -> Option<MonoTime> {
        self.last_gated
    }
}

/// Places.
impl Controller {
    fn count_lost(&mut self) {
        let checks = &mut self.checks;
        for gate in self.gates.values_mut() {
            let count = |rule, app, lost| checks.add(rule, app, Check::Lost, lost);
            gate.ring.count_lost(COUNTED_MAX, count);
        }
    }

    /// Takes a waiter out of everything it is in.
    fn take_out(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.queue.remove(ticket)?;
        self.leave_line(ticket, &waiter);
        self.budget_lines.forget(ticket);
        self.watch_left(self.clock, &waiter.request);
        Some(waiter)
    }

    fn leave_line(&mut self, ticket: Ticket, waiter: &Waiter) {
        let request = &waiter.request;
        let (lane, place) = (request.lane(), (request.since, ticket));
        match waiter.spot {
            Spot::InLine { .. } => {
                if let Some(gate) = self.gates.get_mut(&request.gate) {
                    let lost = gate.ring.leave(self.clock, lane, place, &mut self.dice);
                    self.checks.add(request.rule, request.app, Check::Lost, lost);
                }
                self.rates.leave_gate(self.clock, request.rule, place);
                if let Some(watch) = &mut self.starvation {
                    watch.leaves_line(self.clock, request);
                }
            }
            Spot::Limited => self.rates.leave(self.clock, lane, place, &mut self.dice),
            Spot::Budgeted { .. } => {
                self.budget_lines.leave(self.clock, lane, place, &mut self.dice);
            }
            Spot::BackOff { .. } | Spot::Held | Spot::Unplaced { .. } => {}
        }
    }

    /// Why a waiter waits.
    fn obstacle_of(&self, ticket: Ticket, waiter: &Waiter) -> Obstacle {
        let request = &waiter.request;
        let obstacle = match waiter.spot {
            Spot::InLine { last_loss } => match self.gates.get(&request.gate) {
                Some(gate) => {
                    gate.keeps_waiting(last_loss, request.lane(), (request.since, ticket))
                }
                None => Obstacle::plain(Reason::NoData),
            },
            Spot::Limited => self.by_own_limit(self.clock, request.rule),
            Spot::Budgeted { at, reason } => {
                Obstacle { budget: Some(at), ..Obstacle::plain(reason) }
            }
            Spot::BackOff { .. } => Obstacle::plain(Reason::Ratio),
            Spot::Held if waiter.request.terms.hold => Obstacle::plain(Reason::Hold),
            Spot::Held => Obstacle::plain(Reason::Ratio),
            Spot::Unplaced { .. } => Obstacle::plain(Reason::NoData),
        };
        self.with_pace(request, obstacle)
    }
}

#[cfg(test)]
mod tests;
