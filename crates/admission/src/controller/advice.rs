//! What a refused statement is told.
//!
//! Theory. A statement waits for what is ahead of it in its own lane, and for what the others are
//! given meanwhile, at the rate of the replicas: not at the pace of the moment, which is a tenth of
//! the rate while the lag is braked, but at the best rate of late. What a statement is charged for
//! fear that it is a large one counts for nothing here.
//!
//! All who are refused are told when their turn comes, one behind the other: those who were told to
//! come back are in no line, and all of them must not come back to the same place in it. Who comes
//! as told stands before those who were not refused ([`crate::Appointment`]), so that the turn it
//! was told is there.
//!
//! Nobody who can wait is refused for the length of the line. Whoever is ahead in a lane has the
//! earlier deadline, and leaves it one way or the other: who comes last into a line that is twice
//! as long as its wait may be, is next shortly before its deadline, like everybody in front of it.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt as _;

use super::Controller;
use crate::gate::Gate;
use crate::pacing::release_per_s;
use crate::request::Lane;
use crate::{BudgetUse, IdentityKey, MonoTime, Pacing, Ratio, Reason, Request, RuleKey};

/// A retry is never advised to be later than this: an estimate beyond it is a guess.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Advised when nothing is known about when things will change.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);

/// A wait is not told to be more than so many times what is seen in the lane, once that is a
/// second.
const SEEN_TIMES: u32 = 4;
const SEEN_MIN: Duration = Duration::from_secs(1);

/// The best rate of the last five to ten seconds counts.
const RATE_KEPT_FOR: Duration = Duration::from_secs(5);

/// Those who were refused come back so many turns apart: half of the turns are theirs, and half are
/// for those who have not been refused.
const TURNS_APART: u32 = 2;

/// Lanes whose refused statements have a time to come back; clients choose identities. Beyond, the
/// line alone is told.
const ADVISED_MAX: usize = 4_096;

/// How often room is made when there is none.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// What was told to whom.
#[derive(Debug, Default)]
pub(super) struct Advices {
    /// When the last of those may come back who were refused.
    lanes: BTreeMap<(RuleKey, IdentityKey), MonoTime>,
    swept_at: MonoTime,
    rates: BestOfLate,
}

/// The highest of what was seen lately.
#[derive(Debug, Clone, Copy, Default)]
struct BestOfLate {
    since: MonoTime,
    best: f64,
    before: f64,
}

impl Advices {
    /// A rate, in rows a second, that the replicas were found to have.
    pub(super) fn note_rate(&mut self, now: MonoTime, rate: f64) {
        let rates = &mut self.rates;
        if now.saturating_since(rates.since) >= RATE_KEPT_FOR {
            *rates = BestOfLate { since: now, best: rate, before: rates.best };
        }
        rates.best = rates.best.max(rate);
    }

    fn rate(&self) -> f64 {
        self.rates.best.max(self.rates.before)
    }

    /// One more is refused that would wait for `line`. When it may come back: behind the others.
    fn appoint(&mut self, now: MonoTime, lane: Lane, line: Duration, turn: Duration) -> Duration {
        let key = (lane.rule, lane.identity);
        if self.lanes.len() >= ADVISED_MAX && !self.lanes.contains_key(&key) {
            if now.saturating_since(self.swept_at) >= SWEEP_INTERVAL {
                self.swept_at = now;
                self.lanes.retain(|_, until| *until > now);
            }
            if self.lanes.len() >= ADVISED_MAX {
                return line;
            }
        }
        let latest = now.saturating_add(RETRY_AFTER_MAX);
        let until = self.lanes.entry(key).or_insert(now);
        let behind = until.saturating_add(turn.saturating_mul(TURNS_APART));
        *until = now.saturating_add(line).max(behind).min(latest);
        until.saturating_since(now)
    }
}

/// How long a line is, in time.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// All that is waited for.
    wait: Duration,
    /// Of that, for the statement itself.
    turn: Duration,
}

impl Controller {
    /// An honest estimate: the time the present line takes. While the gate is shut nobody knows
    /// when it opens; lag over its threshold takes about its excess.
    pub(super) fn retry_after(
        &mut self,
        now: MonoTime,
        request: &Request,
        reason: Reason,
    ) -> Duration {
        let unknown = RETRY_AFTER_UNKNOWN.max(self.check_interval);
        let wait = match reason {
            Reason::Ratio => self.check_interval,
            Reason::GateClosed | Reason::NoData => {
                let opens = self.jitter.random_range(self.check_interval..=unknown);
                let opens = opens.max(self.opens_in(request).min(RETRY_AFTER_MAX));
                self.behind_opening(now, request, opens)
            }
            Reason::Paced | Reason::QueueFull | Reason::Timeout => self.line_time(now, request),
            // Told by the budget, if it is known.
            Reason::BudgetConcurrency | Reason::BudgetRate | Reason::BudgetShare => unknown,
            Reason::BudgetQuery => RETRY_AFTER_MAX,
            Reason::Hold
            | Reason::Deny
            | Reason::Guard
            | Reason::Quarantined
            | Reason::Shutdown => unknown,
        };
        self.spread(wait.min(RETRY_AFTER_MAX))
    }

    /// When a statement may come back to a gate that opens so much later.
    fn behind_opening(&mut self, now: MonoTime, request: &Request, opens: Duration) -> Duration {
        match self.line(now, request) {
            Some(Line { wait, turn }) => {
                self.advices.appoint(now, request.lane(), opens.saturating_add(wait), turn)
            }
            None => opens,
        }
    }

    /// The same for who found a budget without room: behind those who wait for it.
    pub(super) fn retry_after_budget(
        &mut self,
        now: MonoTime,
        request: &Request,
        (at, reason): (BudgetUse, Reason),
    ) -> Duration {
        if reason == Reason::BudgetQuery {
            return RETRY_AFTER_MAX;
        }
        let waiting = self.budget_lines.len(at);
        let asks = (request.digest, request.app);
        let wait = self.budgets.room_in(now, at, (asks, waiting));
        self.spread(wait.clamp(self.check_interval.min(RETRY_AFTER_MAX), RETRY_AFTER_MAX))
    }

    /// How long the lag stays over its threshold, if that shuts the gate: what it takes to fall as
    /// it falls now; else about its excess, or what our own work takes that is not applied.
    fn opens_in(&self, request: &Request) -> Duration {
        let gate = self.gates.get(&request.gate);
        let Some(cause) = gate.filter(|gate| gate.paced).and_then(Gate::cause) else {
            return Duration::ZERO;
        };
        let Pacing::Adaptive(adaptive) = self.pacing else { return Duration::ZERO };
        if cause.signal != adaptive.lag {
            return Duration::ZERO;
        }
        let excess = cause.value.unwrap_or(0.0) - cause.threshold;
        let excess = excess.max(0.0);
        self.pace.as_ref().map_or(Duration::ZERO, |pace| pace.falls_in(excess))
    }

    /// How long a statement that joins the line now waits, about, behind those who were told to
    /// come back.
    fn line_time(&mut self, now: MonoTime, request: &Request) -> Duration {
        if let Some(line) = self.line(now, request) {
            let wait = line.wait.max(self.check_interval);
            return self.advices.appoint(now, request.lane(), wait, line.turn);
        }
        let unknown = RETRY_AFTER_UNKNOWN.max(self.check_interval);
        let Some(gate) = self.gates.get(&request.gate) else { return unknown };
        let Some(since) = gate.open_since() else { return unknown };
        let per_s = f64::from(release_per_s(self.pacing, since, now));
        let ahead = gate.ring.ahead(request.lane(), (request.terms.weight, Ratio::ZERO), 1.0);
        seconds(ahead.about / per_s).max(self.check_interval)
    }

    /// The longest of the lines that a statement stands in: for the pace, for a place in flight,
    /// and for the cap of its rule.
    fn line(&self, now: MonoTime, request: &Request) -> Option<Line> {
        let cost = self.costs.expected(request.digest, request.app, 0.0);
        let who = (request.lane(), request.terms.weight);
        let capped = self.rates.line(now, who, cost);
        let capped = capped.map(|(wait, turn)| Line { wait, turn });
        let lines =
            [self.line_at_the_pace(now, request), self.line_in_flight(now, request), capped];
        lines.into_iter().flatten().max_by_key(|line| line.wait)
    }

    /// The line at a gate that limits the statements in flight.
    fn line_in_flight(&self, now: MonoTime, request: &Request) -> Option<Line> {
        let gate = self.gates.get(&request.gate).filter(|gate| gate.by_room)?;
        let per_s = self.in_flight.per_s(now, gate.signals())?;
        let statements = u32::try_from(gate.ring.len()).unwrap_or(u32::MAX);
        let wait = seconds((f64::from(statements) + 1.0) / per_s);
        Some(Line { wait, turn: seconds(1.0 / per_s) })
    }

    /// The line at a gate that is paced by the lag.
    fn line_at_the_pace(&self, now: MonoTime, request: &Request) -> Option<Line> {
        let gate = self.gates.get(&request.gate).filter(|gate| gate.paced)?;
        let pace = self.pace.as_ref()?;
        pace.per_s()?;
        let rate = self.advices.rate();
        let cost = self.costs.expected(request.digest, request.app, 0.0);
        let ahead =
            gate.ring.ahead(request.lane(), (request.terms.weight, request.terms.ratio), cost);
        let seen = ahead.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        let about = seconds(ahead.about / rate);
        let wait =
            if seen >= SEEN_MIN { about.min(seen.saturating_mul(SEEN_TIMES)) } else { about };
        // A rate that is a first guess says nothing about a long line.
        let wait = if pace.is_measured() { wait } else { wait.min(RETRY_AFTER_UNKNOWN) };
        Some(Line { wait, turn: seconds(ahead.turn / rate) })
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX).min(RETRY_AFTER_MAX)
}
