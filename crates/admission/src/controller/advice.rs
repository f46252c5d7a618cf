//! What a refused statement is told.
//!
//! Theory. A statement waits for what is ahead of it in its own lane, and for what the others are
//! given meanwhile, at the rate of the replicas: not at the pace of the moment, which is a tenth of
//! the rate while the lag is braked. Where less has come through of late than that, because large
//! statements leave gaps, that counts. What a statement is charged for fear that it is a large one
//! counts for nothing here.
//!
//! Who is refused and told to come back keeps its place ([`crate::Appointment`]), so its line goes
//! on behind those who are away ([`super::away`]): that is what it is told, and it is told to come a
//! little before its turn, for it can wait for that in line. So whoever is in line has mostly asked
//! first, and who comes new is not served because the others have been told to come later.
//!
//! Nobody who can wait is refused for the length of the line. Whoever is ahead in a lane has the
//! earlier deadline, and leaves it one way or the other: who comes last into a line that is twice
//! as long as its wait may be, is next shortly before its deadline, like everybody in front of it.

use std::time::Duration;

use rand::RngExt as _;

use super::Controller;
use super::away::Away;
use super::through::Through;
use crate::gate::{Gate, Obstacle};
use crate::pacing::release_per_s;
use crate::ring::{Absent, Part, Stands, part_of};
use crate::{Appointment, BudgetUse, MonoTime, Pacing, Ratio, Reason, Refusal, Request, Terms};

/// A retry is not advised to be later than this: an estimate beyond it is a guess.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// But for a line in which somebody has stood for a time that makes a longer one likely
/// ([`SEEN_TIMES`]).
const LINE_MAX: Duration = Duration::from_secs(600);

/// The least that is told, if somebody may wait for no longer.
const TOLD_MIN: Duration = Duration::from_millis(10);

/// Advised when nothing is known about when things will change.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);

/// A wait is not told to be more than so many times what is seen in the lane, once that is a
/// second.
const SEEN_TIMES: u32 = 4;
const SEEN_MIN: Duration = Duration::from_secs(1);

/// Who is told when its turn comes is to come back so much of that time before it, and by half of
/// its longest wait at most: late is worse than early, and twice as much would be told wrong.
const EARLY_PART: f64 = 0.2;

/// How long those were told to stay away who were refused, and what is known of rates for it.
#[derive(Debug, Default)]
pub(super) struct Advices {
    pub(super) away: Away,
    pub(super) through: Through,
    /// The same of gates that limit the statements in flight, each of them counted as one.
    pub(super) through_places: Through,
}

impl Controller {
    /// Refuses a statement that can wait. If it is told when its turn comes, it counts as away
    /// until it is back.
    pub(super) fn turn_away(
        &mut self,
        now: MonoTime,
        request: &Request,
        obstacle: Obstacle,
    ) -> Refusal {
        if !Appointment::is_made(obstacle.reason, &request.terms) {
            return self.refuse(now, request, obstacle);
        }
        // Whoever was refused at once has never stood in line, unless it has come back.
        let stood = request.deadline() <= now || request.since < request.arrived;
        let since = if stood { request.since } else { MonoTime::MAX };
        self.advices.through.note(now, request.lane());
        if self.gates.get(&request.gate).is_some_and(|gate| gate.by_room) {
            self.advices.through_places.note(now, request.lane());
        }
        let turn = self.turn_in(now, request, (obstacle.reason, since));
        let retry_after = if turn >= LINE_MAX {
            // It comes later than is told.
            self.spread(turn)
        } else {
            let early = turn.mul_f64(EARLY_PART).min(request.terms.max_delay.mul_f64(0.5));
            let wait = turn.saturating_sub(early).max(self.told_min(&request.terms).min(turn));
            wait.mul_f64(self.jitter.random_range(0.95..1.05))
        };
        let cost = self.known(request);
        let times = (request.since, now.saturating_add(retry_after));
        let part = part_of(request.terms.weight, request.terms.ratio);
        self.advices.away.go((request.lane(), part), times, cost);
        let waited = now.saturating_since(request.arrived);
        let Obstacle { reason, cause, limit, .. } = self.with_pace(request, obstacle);
        Refusal { reason, cause, budget: None, limit, waited, retry_after }
    }

    /// When a statement may ask again that keeps no place.
    pub(super) fn retry_after(
        &mut self,
        now: MonoTime,
        request: &Request,
        reason: Reason,
    ) -> Duration {
        let turn = self.turn_in(now, request, (reason, MonoTime::MAX));
        self.spread(turn)
    }

    /// An honest estimate: the time the present line takes before a place that goes by `since`.
    /// While the gate is shut nobody knows when it opens; lag over its threshold takes about its
    /// excess.
    fn turn_in(
        &mut self,
        now: MonoTime,
        request: &Request,
        (reason, since): (Reason, MonoTime),
    ) -> Duration {
        let unknown = RETRY_AFTER_UNKNOWN.max(self.check_interval);
        let wait = match reason {
            // As long as dice are thrown until one wins; the rule's end is the policy's to tell.
            Reason::Ratio => {
                let wins = 1.0 - request.terms.ratio.as_f64();
                let throws = self.check_interval.as_secs_f64() / wins.max(f64::MIN_POSITIVE);
                seconds(throws).min(RETRY_AFTER_MAX)
            }
            Reason::GateClosed | Reason::NoData => {
                let opens = self.jitter.random_range(self.check_interval..=unknown);
                let opens = opens.max(self.opens_in(request).min(RETRY_AFTER_MAX));
                opens.saturating_add(self.line(now, request, since).unwrap_or_default())
            }
            Reason::Paced | Reason::QueueFull | Reason::Timeout => {
                self.line_time(now, request, since).max(self.told_min(&request.terms))
            }
            // Told by the budget, if it is known.
            Reason::BudgetConcurrency
            | Reason::BudgetRate
            | Reason::BudgetShare
            | Reason::BudgetQuery
            | Reason::Hold
            | Reason::Deny
            | Reason::Guard
            | Reason::Quarantined
            | Reason::Shutdown => unknown,
        };
        wait.min(LINE_MAX)
    }

    /// Nobody is told less. Who may wait for less than the check interval is away for no longer than
    /// it is there.
    fn told_min(&self, terms: &Terms) -> Duration {
        self.check_interval.min(terms.max_delay.max(TOLD_MIN))
    }

    /// The same for who found a budget without room: behind those who wait for it. When what is owed
    /// has drained is known, however far off it is; what places and those who wait take beyond that
    /// is a guess. What costs too much does so until one like it is tried again: that is known, too.
    pub(super) fn retry_after_budget(
        &mut self,
        now: MonoTime,
        request: &Request,
        (at, reason): (BudgetUse, Reason),
    ) -> Duration {
        if reason == Reason::BudgetQuery {
            let tried_in = self.budgets.tried_in(now, request.digest);
            return tried_in.mul_f64(self.jitter.random_range(1.0..1.25)).max(self.check_interval);
        }
        let waiting = self.budget_lines.len(at);
        let asks = (request.digest, request.app);
        let [owed, all] = self.budgets.room_in(now, at, (asks, waiting));
        let wait = all.min(owed.saturating_add(RETRY_AFTER_MAX));
        self.spread(wait.max(self.check_interval.min(RETRY_AFTER_MAX)))
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

    /// How long a statement waits, about, whose place goes by `since`.
    fn line_time(&mut self, now: MonoTime, request: &Request, since: MonoTime) -> Duration {
        if let Some(wait) = self.line(now, request, since) {
            return wait;
        }
        let unknown = RETRY_AFTER_UNKNOWN.max(self.check_interval);
        let Some(gate) = self.gates.get(&request.gate) else { return unknown };
        let Some(opened) = gate.open_since() else { return unknown };
        let per_s = f64::from(release_per_s(self.pacing, opened, now));
        let stands = Stands {
            lane: request.lane(),
            weight: request.terms.weight,
            ratio: Ratio::ZERO,
            cost: 1.0,
            since,
            absent: Absent::default(),
        };
        seconds(gate.ring.ahead(&stands).rows(None).0 / per_s)
    }

    /// The longest of the lines that a statement stands in: for the pace, for a place in flight,
    /// and for the cap and the places of its rule.
    fn line(&mut self, now: MonoTime, request: &Request, since: MonoTime) -> Option<Duration> {
        let stands = Stands {
            lane: request.lane(),
            weight: request.terms.weight,
            ratio: request.terms.ratio,
            cost: self.known(request),
            since,
            absent: self.advices.away.before(now, request.lane(), since),
        };
        // A cap counts rows as they are told.
        let rows = Stands { cost: self.costs.expected(request.digest, request.app, 0.0), ..stands };
        let lines = [
            self.line_at_the_pace(now, request, &stands),
            self.line_in_flight(now, request, &stands).map(|wait| wait.min(RETRY_AFTER_MAX)),
            self.rates.line(now, &rows),
        ];
        lines.into_iter().flatten().max()
    }

    /// The line at a gate that limits the statements in flight.
    fn line_in_flight(
        &self,
        now: MonoTime,
        request: &Request,
        stands: &Stands,
    ) -> Option<Duration> {
        let gate = self.gates.get(&request.gate).filter(|gate| gate.by_room)?;
        let per_s = self.in_flight.per_s(now, gate.signals())?;
        let others = gate.ring.len().saturating_sub(gate.ring.len_of(stands.lane));
        let ahead = gate.ring.ahead(stands);
        let own = number(ahead.statements) + 1.0;
        let of_all = match self.advices.through_places.part(now, stands.lane) {
            // Who is served asks again, or others do, so what was the part of its app is yet.
            Some(Part { part, .. }) => {
                own * (1.0 / part.max(f64::MIN_POSITIVE)).min(ahead.times[1])
            }
            None => own + number(others),
        };
        Some(seconds(of_all.max(own) / per_s))
    }

    /// The line at a gate that is paced by the lag.
    fn line_at_the_pace(
        &self,
        now: MonoTime,
        request: &Request,
        stands: &Stands,
    ) -> Option<Duration> {
        let gate = self.gates.get(&request.gate).filter(|gate| gate.paced)?;
        let pace = self.pace.as_ref()?;
        pace.per_s()?;
        let rate = pace.rate()?;
        // Half is what may be wrong of it: the rate knows sooner when it changes.
        let through = &self.advices.through;
        let rate = through.per_s().map_or(rate, |seen| seen.clamp(rate / 2.0, rate));
        let ahead = gate.ring.ahead(stands);
        let (line, absent) = ahead.rows(through.part(now, stands.lane));
        let seen = ahead.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        let seen_most = seen.saturating_mul(SEEN_TIMES);
        let line = seconds(line / rate);
        let line = if seen >= SEEN_MIN { line.min(seen_most) } else { line };
        // A large statement that has just been let through is paid for first.
        let room = pace.next_room(now).map_or(Duration::ZERO, |at| at.saturating_since(now));
        let wait = line.saturating_add(seconds(absent / rate)).max(room);
        // A rate that is a first guess says nothing about a long line.
        let most =
            if pace.is_measured() { seen_most.max(RETRY_AFTER_MAX) } else { RETRY_AFTER_UNKNOWN };
        Some(wait.min(most))
    }
}

fn number(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(LINE_MAX).min(LINE_MAX)
}
