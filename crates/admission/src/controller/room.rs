//! Whether there is room for a statement at a gate that is paced by the lag, or that limits the
//! statements in flight, and what it is charged for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Controller;
use crate::claims::{SPARSE_FOR, Speeds, weight_of};
use crate::costs::{COST_MIN, Costs, cost_of, rows_cost};
use crate::decision::{Account, Outcome};
use crate::gate::Gate;
use crate::pace::{Cost, Pace};
use crate::patience::Size;
use crate::queue::Queue;
use crate::request::Lane;
use crate::ring::Head;
use crate::row_work::RowWork;
use crate::slow_start::{SlowStart, Whose};
use crate::{
    AppKey, GateKey, InFlightView, LatencyRecent, Mode, MonoTime, Pacing, Ratio, Request, RuleKey,
    SignalKey, Terms, Ticket,
};

/// No two looks at a claim are closer: at most 1,000 wake-ups a second.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Who passes by its claim is ahead of its turns by this part of the threshold's work at most:
/// turns stand still while a large statement is on its way.
const AHEAD: f64 = 0.05;

/// And by this time's work.
const AHEAD_MAX: Duration = Duration::from_secs(1);

impl Controller {
    /// What a statement is expected to cost, in rows of the mean. One that nobody knows may be a
    /// large one.
    pub(super) fn expected(&self, request: &Request) -> f64 {
        self.row_work.price(request.written).of_a_turn(self.average_rows(request))
    }

    /// What it is expected to write, in rows.
    pub(super) fn expected_rows(&self, request: &Request) -> f64 {
        self.average_rows(request).max(COST_MIN)
    }

    fn average_rows(&self, request: &Request) -> f64 {
        let prudent = self.pace.as_ref().map_or(0.0, Pace::prudent_cost);
        let prudent = self.row_work.price(request.written).rows_for(prudent);
        self.costs.average(request.digest, request.app, prudent)
    }

    /// What such statements are known to cost, in rows of the mean, without prudence.
    pub(super) fn known(&self, request: &Request) -> f64 {
        known(&self.costs, &self.row_work, request)
    }

    /// Whether a statement of this cost may pass: the signals leave room, or the floor of its rule
    /// covers it.
    pub(super) fn has_room(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        self.fits(now, request, cost) || self.rates.floor_covers(now, request.rule)
    }

    /// Whether the signals leave room for a statement of this cost: none limits those in flight to
    /// less, and the pace has room or the app's claim covers it. If it will by the passing of time,
    /// that is looked at again then.
    pub(super) fn fits(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        let Some(gate) = self.gates.get(&request.gate) else { return true };
        if let Some(signal) = self.in_flight.in_the_way(now, gate.signals()) {
            self.note_governing(now, request.gate, signal);
            return false;
        }
        if !gate.paced || self.has_room_at_the_pace(now, request, cost) {
            return true;
        }
        if let Pacing::Adaptive(adaptive) = self.pacing {
            self.note_governing(now, request.gate, adaptive.lag);
        }
        false
    }

    fn has_room_at_the_pace(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        let lasts = self.costs.lasts(request.digest, request.app);
        let known = self.known(request);
        let asked = Cost::of(cost, known).lasting(lasts);
        let Some(pace) = &mut self.pace else { return true };
        let full_for = pace.full_for(0.0);
        self.claims.note(now, request, waits_in(&self.gates, full_for));
        self.wishes.note(now, request.rule, weight_of(request));
        if !self.slow_start.allows(now, request.into(), at_most(&self.costs, request, known)) {
            return false;
        }
        let speeds = pace.speeds();
        let covered_in = self.claims.covers_in(now, request.app, speeds.pace, cost);
        let kept = self.claims.kept_from(now, request.app, speeds.rate);
        pace.keep(kept.map_or(0.0, |kept| kept.cost));
        if pace.has_room(now, asked) && kept.is_none() {
            return true;
        }
        self.slow_start.refused(now, request.into(), known);
        if let Some(at) = pace.look_at() {
            self.look_again_at(at);
        }
        if let Some(kept) = kept {
            // Who is about to ask comes first, for a while.
            self.look_again_at(kept.until);
        }
        let gate = self.gates.get(&request.gate);
        let line_since = gate.and_then(|gate| gate.ring.line_since(request.lane()));
        if line_since.is_some_and(|since| now.saturating_since(since) >= self.sparse_for(cost)) {
            return false;
        }
        match covered_in {
            Some(Duration::ZERO) => true,
            Some(wait) => {
                self.look_again_at(now.saturating_add(wait.max(TICK)));
                false
            }
            None => false,
        }
    }

    /// Whether all who wait at an open gate are others, each at the limit of its app: those leave the
    /// room to whoever comes.
    pub(super) fn only_limits_keep(&mut self, now: MonoTime, request: &Request) -> bool {
        let (gates, mut limits) = self.limits(now);
        let Some(gate) = gates.get(&request.gate).filter(|gate| gate.has_only_a_line(now)) else {
            return false;
        };
        gate.paced
            && !gate.ring.has_line(request.rule, request.app)
            && gate.ring.none_may(|head| limits.allow(head))
    }

    /// Who is first in line is at the limit of its app, and another has its turn: it is owed no more
    /// of that than it may have on its way.
    pub(super) fn bring_along(&mut self, key: GateKey, other: Lane) {
        let Some(gate) = self.gates.get_mut(&key) else { return };
        if let Some(head) = gate.head().filter(|head| head.lane.app != other.app) {
            let most = self.slow_start.limit(head.lane.app);
            gate.ring.bring_along(head.lane, other, most);
        }
    }

    /// The gates, and the limits of those who wait there.
    pub(super) fn limits(&mut self, now: MonoTime) -> (&BTreeMap<GateKey, Gate>, Limits<'_>) {
        let Self { gates, queue, costs, row_work, slow_start, .. } = self;
        (gates, Limits { now, queue, costs, row_work, slow_start })
    }

    /// Who has had a line for so long asks for more than its share, with such a statement at its head.
    pub(super) fn sparse_for(&self, cost: f64) -> Duration {
        let full_for = self.pace.as_ref().map(|pace| pace.full_for(cost));
        SPARSE_FOR.max(full_for.unwrap_or_default())
    }

    /// Whether the claim of its app covers somebody in line at an open gate who is not at its head:
    /// if the line is young, and the app has not had more than its turns. If it will by the passing
    /// of time, that is looked at again then.
    pub(super) fn claim_covers(&mut self, now: MonoTime, request: &Request, cost: f64) -> bool {
        let (Some(gate), Some(pace)) = (self.gates.get(&request.gate), &self.pace) else {
            return false;
        };
        let speeds = pace.speeds();
        let ahead = pace.threshold().mul_f64(AHEAD).min(AHEAD_MAX).as_secs_f64() * speeds.rate;
        let lane = request.lane();
        let sparse_for = self.sparse_for(cost);
        let is_young = |since: MonoTime| now.saturating_since(since) < sparse_for;
        let may_pass = gate.heeds_claims()
            && gate.owed().is_none()
            && gate.ring.line_since(lane).is_some_and(is_young)
            // A pace that is told too high fills claims too fast, turns it does not.
            && gate.ring.is_due(lane, ahead)
            && self.in_flight.in_the_way(now, gate.signals()).is_none();
        if !may_pass {
            return false;
        }
        let full_for = pace.full_for(0.0);
        let known = self.known(request);
        self.claims.note(now, request, waits_in(&self.gates, full_for));
        if !self.slow_start.allows(now, request.into(), at_most(&self.costs, request, known)) {
            return false;
        }
        let covered_in = self.claims.covers_in(now, request.app, speeds.pace, cost);
        if let Some(wait) = covered_in.filter(|wait| !wait.is_zero()) {
            self.look_again_at(now.saturating_add(wait.max(TICK)));
        }
        covered_in == Some(Duration::ZERO)
    }

    /// Whether a statement that has room leaves it to who is before it and away for a moment. Who
    /// does not wait yet would join the line for that.
    pub(super) fn is_patient(
        &mut self,
        now: MonoTime,
        request: &Request,
        cost: f64,
        ticket: Option<Ticket>,
    ) -> bool {
        let Some(pace) = &self.pace else { return false };
        let rate = pace.rate().unwrap_or(0.0);
        // Who is only feared to be large is held back by that alone.
        let known = self.known(request);
        let size = Size { cost: cost.min(known), rate, threshold: pace.threshold() };
        if !size.is_large() {
            return false;
        }
        let Some(gate) = self.gates.get_mut(&request.gate).filter(|gate| gate.paced) else {
            return false;
        };
        let Some(open_since) = gate.open_since() else { return false };
        let weight = request.terms.weight;
        if !gate.ring.rival_is_ahead(now, request.lane(), known, weight) {
            return false;
        }
        let Some(ticket) = ticket else { return true };
        let until = gate.patience.holds((now, open_since), ticket, &size);
        if let Some(until) = until {
            self.look_again_at(until);
        }
        until.is_some()
    }

    /// There is no room for whoever has its turn. If there is some, and it is too large for that,
    /// it lets others pass only until they have left as much as it takes.
    pub(super) fn wait_for_room(
        &mut self,
        now: MonoTime,
        head: &Head,
        request: &Request,
        cost: f64,
    ) {
        let Some(pace) = &self.pace else { return };
        let Speeds { pace: per_s, rate } = pace.speeds();
        let size = Size { cost, rate, threshold: pace.threshold() };
        if !size.is_large() || head.ratio > Ratio::ZERO {
            return;
        }
        let left_per_s = if pace.has_any_room(now) { per_s.min(rate) } else { 0.0 };
        let gate = self.gates.get_mut(&request.gate).filter(|gate| gate.paced);
        let Some(gate) = gate else { return };
        let Some(open_since) = gate.open_since() else { return };
        let (times, who) = ((now, open_since), (head.ticket, head.lane));
        if let Some(until) = gate.patience.waits_for_room(times, who, (cost, left_per_s)) {
            self.look_again_at(until);
        }
    }

    pub(super) fn look_again_at(&mut self, at: MonoTime) {
        self.claimed_at = Some(self.claimed_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// The account of a statement that is admitted now.
    pub(super) fn account(&mut self, now: MonoTime, request: &Request, shared: f64) -> Account {
        let rows = self.average_rows(request);
        let expected = rows.max(COST_MIN);
        let price = self.row_work.price(request.written);
        let cost = price.of_a_turn(rows);
        let charged = Cost::of(cost, self.known(request));
        let is_new = self.costs.begin(request.digest, request.app);
        let paced = self.gates.get(&request.gate).is_some_and(|gate| gate.paced);
        let charge = match (self.pace.as_mut().filter(|_| paced), request.terms.mode) {
            (Some(pace), Mode::Enforce) => {
                self.claims.spend(request.app, cost);
                self.wishes.spend(request.rule, cost);
                self.promises.note_through(now, request.app);
                Some(pace.admit(now, charged))
            }
            (Some(pace), Mode::Observe) => Some(pace.note(now, charged)),
            (None, Mode::Enforce | Mode::Observe) => None,
        };
        if let Some(charge) = charge {
            self.slow_start.admit(now, request.into(), charge);
        }
        let limited = self.gates.get(&request.gate).map(Gate::signals);
        let limited = limited.is_some_and(|signals| self.in_flight.limits_any(signals));
        let place = match request.terms.mode {
            Mode::Enforce if limited => Some(self.in_flight.admit(now, request.gate)),
            Mode::Enforce | Mode::Observe => None,
        };
        let counted = self.rates.admit(now, request.rule, &request.terms, expected);
        let gate = self.gates.get(&request.gate);
        let line = gate.and_then(|gate| gate.ring.line_of(request.lane()));
        Account {
            line,
            counted,
            charged_more: 0.0,
            gate: request.gate,
            lane: request.lane(),
            weight: request.terms.weight.clamp(1, Terms::WEIGHT_MAX),
            digest: request.digest,
            is_new,
            expected,
            written: request.written,
            price,
            cost,
            shared,
            charge,
            place,
        }
    }

    /// What a permit has cost in truth: learned, and the difference put on the accounts of whoever
    /// was charged.
    pub(super) fn book(&mut self, now: MonoTime, account: &Account, outcome: &Outcome) {
        let Account { gate, lane, weight, digest, expected, charged_more, .. } = *account;
        let rule = lane.rule;
        let Account { charge, place, written, price, line, counted, .. } = *account;
        let rows = cost_of(outcome);
        // What told no rows has no price: its time is what it costs.
        let told = outcome.affected_rows > 0;
        let cost = if told { price.of(rows) } else { rows };
        // Whoever has had a turn has had one, also if nothing came of it.
        let rows_at_least = rows.max(COST_MIN);
        let cost_at_least = cost.max(price.turn());
        self.watch_settled(now, account, cost_at_least);
        let more = cost_at_least - account.cost;
        self.costs.end(account);
        if !outcome.error || told {
            self.costs.learn(digest, lane.app, if told { rows } else { price.rows_for(cost) });
            if let Some(charge) = charge {
                self.costs.ran(digest, lane.app, now.saturating_since(charge.admitted_at()));
            }
        }
        if counted {
            self.rates.complete(now, rule, expected);
            let more = rows_at_least - expected - charged_more;
            self.rates.settle(now, rule, more, rows_at_least);
        }
        if let Some(place) = place {
            self.in_flight.complete(now, place);
            self.advices.through_places.add(lane, 1.0);
        }
        if let (Some(pace), Some(charge)) = (&mut self.pace, charge) {
            pace.complete(now, charge, cost);
            self.advices.through.add(lane, cost);
            self.claims.spend(lane.app, more);
            self.slow_start.complete(now, account.into(), charge, cost);
            self.wishes.spend(rule, more);
            self.row_work.told(written, rows_cost(outcome.affected_rows));
        }
        if let Some(gate) = self.gates.get_mut(&gate) {
            gate.ring.settle(lane, more, weight, line);
        }
    }

    /// Puts what a statement was charged back that has never run.
    pub(super) fn take_back(&mut self, account: &Account) {
        let Account { lane, cost, .. } = *account;
        let (Some(pace), Some(charge)) = (&mut self.pace, account.charge) else { return };
        pace.take_back(charge);
        self.claims.spend(lane.app, -cost);
        self.wishes.spend(lane.rule, -cost);
        self.slow_start.take_back(account.into(), charge);
    }

    /// Whether others were held back for fear of a statement that has ended.
    pub(super) fn held_back(&self, account: &Account) -> bool {
        match (&self.pace, account.charge) {
            (Some(pace), Some(charge)) => pace.held_back(charge.feared()),
            (Some(_) | None, _) => false,
        }
    }

    /// What a signal that is a percentile of latencies has been told since its last value. It comes
    /// before the value.
    pub fn handle_latencies(&mut self, now: MonoTime, key: SignalKey, recent: &LatencyRecent) {
        self.in_flight.handle_latencies(self.clock.max(now), key, recent);
    }

    /// The limits on statements in flight, by signal.
    pub fn in_flight_limits(&self, now: MonoTime) -> impl Iterator<Item = InFlightView> + '_ {
        self.in_flight.views(self.clock.max(now))
    }
}

fn known(costs: &Costs, row_work: &RowWork, request: &Request) -> f64 {
    let rows = costs.average(request.digest, request.app, 0.0);
    row_work.price(request.written).of_a_turn(rows)
}

/// What counts of a statement for the limit of its app: what is known, or, while one of its kind runs of
/// which nothing is, anything. So the next waits for what that one turns out to be, for as long as what
/// runs counts.
fn at_most(costs: &Costs, request: &Request, known: f64) -> f64 {
    if costs.will_be_known(request.digest, request.app) { f64::INFINITY } else { known }
}

/// How much of each app may be on its way.
pub(super) struct Limits<'a> {
    now: MonoTime,
    queue: &'a Queue,
    costs: &'a Costs,
    row_work: &'a RowWork,
    slow_start: &'a mut SlowStart,
}

impl Limits<'_> {
    /// Whether there is room for one who waits, with what such statements are known to cost by now.
    pub(super) fn allow(&mut self, head: &Head) -> bool {
        let request = self.queue.get(head.ticket).map(|waiter| &waiter.request);
        let known = request.map_or(head.known, |request| {
            at_most(self.costs, request, known(self.costs, self.row_work, request))
        });
        let whose = Whose { app: head.lane.app, written: request.and_then(|of| of.written) };
        self.slow_start.allows(self.now, whose, known)
    }
}

/// Whether somebody of an app waits for the pace, at any gate. Where nothing fills the window for long
/// nobody waits without a look at it.
pub(super) fn waits_in(
    gates: &BTreeMap<GateKey, Gate>,
    full_for: Duration,
) -> impl Fn(RuleKey, AppKey) -> bool + '_ {
    move |rule, app| {
        full_for > SPARSE_FOR
            && gates.values().any(|gate| gate.paced && gate.ring.has_line(rule, app))
    }
}
