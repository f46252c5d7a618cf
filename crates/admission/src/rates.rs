//! What a rule limits by itself, whatever the signals say: rows a second, at least and at most, and
//! statements in flight.
//!
//! Theory. Each rule that says so has two token buckets, in rows, filled at its rates. The *cap*
//! comes before the gate: a statement without tokens, or without a place in flight, waits in a line
//! of the rule's own, in fair turns like everywhere, so that it never stands in the way of other
//! rules in the gate's line. Into the gate's line come only as many of a rule as its tokens and
//! places cover. The *floor* comes at the gate: while it is open, a statement that the pace has no
//! room for passes if the floor has tokens. Every admission spends from both, so the floor only adds
//! what is missing. What is missing is missing now: that the rule had fifty times its floor for a
//! second is no reason to have nothing for a minute. So at the floor no more is owed than one
//! statement, or a second of the rate.
//!
//! The dice of a rule with a floor are thrown for the floor as well, see `floor`.
//!
//! Tokens are spent at what a statement is expected to write, and settled at what it wrote: beyond
//! a burst it is a debt of up to [`DEBT`]. No more than that is spent on an expectation either: what
//! was let off is not given back when the statement turns out to be small. So over any time t a rule
//! has at most `max_rate × (t + BURST)` rows, two statements, and what these wrote beyond their
//! expectation.
//!
//! Bounds: an entry for each rule that has such terms and was asked for.

mod floor;
mod turnover;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;

use self::floor::Floor;
pub(crate) use self::floor::Thrown;
use self::turnover::Turnover;
use crate::request::Lane;
use crate::ring::{Head, Joining, Place, Ring, Stands};
use crate::{MonoTime, Ratio, RuleKey, RuleLimit, Terms, Ticket};

/// Tokens collected at most, as time at the rate.
const BURST: Duration = Duration::from_millis(20);

/// Debt at most, as time at the rate: a statement of a million rows is not paid for by hours.
const DEBT: Duration = Duration::from_secs(60);

/// Debt at most at a floor, unless one statement is more.
const FLOOR_DEBT: Duration = Duration::from_secs(1);

/// No two looks at a bucket are closer: at most 1,000 wake-ups a second.
const TICK: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Rates {
    rules: BTreeMap<RuleKey, RuleRates>,
    /// There is more to do at once.
    unfinished: bool,
}

/// What is left of the lines of before: only to be dropped, which takes its time.
#[derive(Debug)]
pub(crate) struct OldLines {
    _lines: Vec<(Ring, BTreeMap<Place, f64>)>,
}

#[derive(Debug, Default)]
struct RuleRates {
    cap: Option<Bucket>,
    /// Also of rules without a floor: it has those who wait at the gate.
    floor: Floor,
    in_flight_max: Option<u32>,
    in_flight: u32,
    /// Who waits for the cap or a place.
    line: Ring,
    /// How fast places become free while somebody waits.
    turnover: Turnover,
}

/// Rows, filled at a rate.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    per_s: f64,
    tokens: f64,
    at: MonoTime,
    /// Collected beside the burst.
    kept: f64,
}

impl Rates {
    /// Whether a rule with such terms is one of ours.
    const fn limits(terms: &Terms) -> bool {
        terms.min_rate.is_some() || terms.max_rate.is_some() || terms.max_in_flight.is_some()
    }

    /// Takes the terms in.
    fn rule(&mut self, now: MonoTime, rule: RuleKey, terms: &Terms) -> Option<&mut RuleRates> {
        if !Self::limits(terms) {
            let known = self.rules.get_mut(&rule)?;
            known.tell(now, terms);
            return Some(known);
        }
        let known = self.rules.entry(rule).or_default();
        known.tell(now, terms);
        Some(known)
    }

    /// Whether one more statement of the rule may go to the gate. Who has waited goes before who
    /// comes.
    pub(crate) fn lets_through(
        &mut self,
        now: MonoTime,
        rule: RuleKey,
        terms: &Terms,
        from: From,
    ) -> bool {
        let Some(rule) = self.rule(now, rule, terms) else { return true };
        let waits = match from {
            From::Arrival => !rule.line.is_empty(),
            From::Line => false,
        };
        !waits && rule.has_room(now)
    }

    /// Which of the rule's own limits those wait for who wait in its line; `None`: what it leaves is
    /// for those of the rule who wait at a gate.
    pub(crate) fn short_of(&self, now: MonoTime, rule: RuleKey) -> Option<RuleLimit> {
        let rule = self.rules.get(&rule)?;
        let is_full = rule.in_flight_max.is_some_and(|most| rule.in_flight >= most);
        let is_empty = rule.cap.is_some_and(|cap| cap.covers_in(now, 0.0).is_some());
        match rule.cap {
            _ if is_full => Some(RuleLimit::MaxInFlight),
            _ if !is_empty && rule.floor.waiting() > 0 => None,
            Some(_) => Some(RuleLimit::MaxRate),
            None => Some(RuleLimit::MaxInFlight),
        }
    }

    /// Starts to wait for the rule's own limits.
    pub(crate) fn join(&mut self, now: MonoTime, joining: &Joining, dice: &mut StdRng) {
        if let Some(rule) = self.rules.get_mut(&joining.lane.rule) {
            rule.turnover.begin(now);
            rule.line.join(now, joining, dice);
        }
    }

    pub(crate) fn leave(&mut self, now: MonoTime, lane: Lane, place: Place, dice: &mut StdRng) {
        if let Some(rule) = self.rules.get_mut(&lane.rule) {
            rule.line.leave(now, lane, place, dice);
            rule.look(now);
        }
    }

    /// A statement of the rule stands in line at a gate.
    pub(crate) fn join_gate(&mut self, now: MonoTime, rule: RuleKey, place: Place, cost: f64) {
        if let Some(rule) = self.rules.get_mut(&rule) {
            rule.floor.join(place, cost);
            rule.keep(now);
        }
    }

    /// It does not any more.
    pub(crate) fn leave_gate(&mut self, now: MonoTime, rule: RuleKey, place: Place) {
        if let Some(rule) = self.rules.get_mut(&rule) {
            rule.floor.leave(place);
            rule.keep(now);
        }
    }

    /// The rules in whose own line somebody waits, from behind `after` on.
    pub(crate) fn with_line(&self, after: Option<RuleKey>) -> Option<RuleKey> {
        self.next(after, |rule| !rule.line.is_empty())
    }

    /// The rules with a floor of which somebody waits at a gate.
    pub(crate) fn with_floor(&self, after: Option<RuleKey>) -> Option<RuleKey> {
        self.next(after, |rule| rule.floor.bucket.is_some() && rule.floor.waiting() > 0)
    }

    fn next(&self, after: Option<RuleKey>, wanted: impl Fn(&RuleRates) -> bool) -> Option<RuleKey> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.rules.range((from, Unbounded)).find(|(_, rule)| wanted(rule)).map(|(key, _)| *key)
    }

    /// Whose turn it is in the rule's own line, if there is room; the turn is charged.
    pub(crate) fn next_turn(
        &mut self,
        now: MonoTime,
        rule: RuleKey,
        dice: &mut StdRng,
    ) -> Option<Head> {
        let rule = self.rules.get_mut(&rule)?;
        if !rule.has_room(now) {
            return None;
        }
        let head = rule.line.head()?;
        rule.line.take(&head, head.cost, dice);
        Some(head)
    }

    /// Who came first of those that wait at a gate, if the rule's floor has tokens and not all of
    /// their checks are lost for now.
    pub(crate) fn floor_turn(&mut self, now: MonoTime, rule: RuleKey) -> Option<Ticket> {
        self.rules.get_mut(&rule)?.floor.first(now)
    }

    /// Has those of the rule checked who wait at an open gate, until one wins; those who lose have
    /// their next check at `next_check`.
    pub(crate) fn throw_for_floor(
        &mut self,
        now: MonoTime,
        (rule, ratio): (RuleKey, Ratio),
        next_check: MonoTime,
        dice: &mut StdRng,
    ) -> Thrown {
        match self.rules.get_mut(&rule) {
            Some(rule) => rule.floor.throw(now, ratio, next_check, dice),
            None => Thrown::Lost { lost: 0 },
        }
    }

    /// Whether the rule's floor lets a statement through that the pace has no room for.
    pub(crate) fn floor_covers(&mut self, now: MonoTime, rule: RuleKey) -> bool {
        let floor = self.rules.get_mut(&rule).and_then(|rule| rule.floor.bucket.as_mut());
        floor.is_some_and(|floor| floor.collect(now) > 0.0)
    }

    /// A statement is admitted. Whether it is counted, and so is to be settled and completed: under
    /// a rule that has had no limits it is not, also if it has some by then. Else each that ends
    /// would free a place that it never took, and where places are always taken, for good.
    #[must_use]
    pub(crate) fn admit(&mut self, now: MonoTime, rule: RuleKey, terms: &Terms, cost: f64) -> bool {
        let Some(rule) = self.rule(now, rule, terms) else { return false };
        rule.in_flight = rule.in_flight.saturating_add(1);
        if let Some(cap) = &mut rule.cap {
            cap.spend(now, cap.charged(cost));
        }
        if let Some(floor) = &mut rule.floor.bucket {
            floor.owe(now, 0.0, cost);
        }
        true
    }

    /// A statement turns out to be one of `cost`, so much more than was thought, or less.
    pub(crate) fn settle(&mut self, now: MonoTime, rule: RuleKey, more: f64, cost: f64) {
        let Some(rule) = self.rules.get_mut(&rule) else { return };
        if let Some(cap) = &mut rule.cap {
            cap.spend(now, more);
        }
        if let Some(floor) = &mut rule.floor.bucket {
            floor.owe(now, cost - more, cost);
        }
    }

    /// The server has finished it, of which so much was expected; it is settled now, by the whole of
    /// that.
    pub(crate) fn complete(&mut self, now: MonoTime, rule: RuleKey, expected: f64) {
        let Some(rule) = self.rules.get_mut(&rule) else { return };
        rule.in_flight = rule.in_flight.saturating_sub(1);
        rule.turnover.ended(now);
        if let Some(cap) = &mut rule.cap {
            cap.tokens -= expected - cap.charged(expected);
        }
    }

    /// Whether somebody may wait for what an end of a statement of this rule gives.
    pub(crate) fn has_line(&self, rule: RuleKey) -> bool {
        self.rules.get(&rule).is_some_and(|rule| !rule.line.is_empty())
    }

    /// How long whoever stands there waits for what its rule limits, about; `None`: it has neither
    /// a cap nor places, or how long places are taken is not known.
    pub(crate) fn line(&self, now: MonoTime, stands: &Stands) -> Option<Duration> {
        let rule = self.rules.get(&stands.lane.rule)?;
        let ahead = rule.line.ahead(&Stands { ratio: Ratio::ZERO, ..*stands });
        let (line, absent) = ahead.rows(None);
        let at_the_cap = rule.cap.map(|cap| {
            let rows = rule.floor.cost() + line + absent;
            cap.covers_in(now, rows).unwrap_or_default()
        });
        let for_places = rule.in_flight_max.and_then(|_| {
            let others = rule.line.len().saturating_sub(rule.line.len_of(stands.lane));
            // The apps of a rule have turns like its statements have.
            let [apps, _] = ahead.times;
            let own = number(ahead.statements.saturating_add(1));
            rule.turnover.frees_in(now, (own * apps).min(own + number(others)))
        });
        [at_the_cap, for_places].into_iter().flatten().max()
    }

    /// Whether there is more to do at once.
    pub(crate) fn set_unfinished(&mut self, unfinished: bool) {
        self.unfinished = unfinished;
    }

    /// When there is room by the passing of time alone.
    pub(crate) fn next_room(&self, now: MonoTime) -> Option<MonoTime> {
        if self.unfinished {
            return Some(now);
        }
        let waits = self.rules.values().filter_map(|rule| {
            let cap = rule.cap.filter(|_| !rule.line.is_empty() && rule.has_place());
            let cap = cap.and_then(|cap| cap.covers_in(now, rule.floor.cost()));
            let cap = cap.map(|wait| now.saturating_add(wait));
            [cap, rule.floor.next_change(now)].into_iter().flatten().min()
        });
        waits.min().map(|at| at.max(now.saturating_add(TICK)))
    }

    /// Live reload: everybody who waited is asked again. Rules that nobody asked under for so long
    /// that no debt can be left are forgotten. Takes no longer for many waiters than for none.
    pub(crate) fn reset_lines(&mut self, now: MonoTime) -> OldLines {
        self.unfinished = false;
        let lines = self.rules.values_mut().map(|rule| {
            rule.turnover.end(now);
            (std::mem::take(&mut rule.line), rule.floor.reset())
        });
        let lines = lines.collect();
        self.rules.retain(|_, rule| {
            let buckets = [rule.cap, rule.floor.bucket];
            let in_use = |bucket: &Bucket| now.saturating_since(bucket.at) < DEBT;
            rule.in_flight > 0 || buckets.iter().flatten().any(in_use)
        });
        OldLines { _lines: lines }
    }
}

fn number(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

/// Where a statement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// It has just arrived.
    Arrival,
    /// It has waited in the rule's own line.
    Line,
}

impl RuleRates {
    fn tell(&mut self, now: MonoTime, terms: &Terms) {
        self.cap = Bucket::told(self.cap, now, terms.max_rate);
        self.floor.bucket = Bucket::told(self.floor.bucket, now, terms.min_rate);
        self.in_flight_max = terms.max_in_flight;
    }

    /// What waits for others at the gate has its tokens there: meanwhile as many more are collected
    /// as the first of them takes.
    fn keep(&mut self, now: MonoTime) {
        let kept = self.floor.first_cost();
        if let Some(cap) = &mut self.cap {
            cap.fill(now);
            cap.kept = cap.charged(kept);
        }
    }

    /// Perhaps nobody waits for a place any more.
    fn look(&mut self, now: MonoTime) {
        if self.line.is_empty() {
            self.turnover.end(now);
        }
    }

    fn has_place(&self) -> bool {
        let at_gate = u32::try_from(self.floor.waiting()).unwrap_or(u32::MAX);
        self.in_flight_max.is_none_or(|most| self.in_flight.saturating_add(at_gate) < most)
    }

    fn has_room(&mut self, now: MonoTime) -> bool {
        let at_gate = self.floor.cost();
        let has_tokens = self.cap.as_mut().is_none_or(|cap| cap.collect(now) > at_gate);
        has_tokens && self.has_place()
    }
}

impl Bucket {
    /// The bucket of a rate; what is in it is kept.
    fn told(before: Option<Self>, now: MonoTime, per_s: Option<u32>) -> Option<Self> {
        let per_s = f64::from(per_s?.max(1));
        let mut bucket = before.unwrap_or(Self { per_s, tokens: 1.0, at: now, kept: 0.0 });
        bucket.per_s = per_s;
        Some(bucket)
    }

    fn collect(&mut self, now: MonoTime) -> f64 {
        self.fill(now);
        self.tokens = self.tokens.max(-self.most_owed());
        self.tokens
    }

    fn fill(&mut self, now: MonoTime) {
        let passed = now.saturating_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        let most = self.per_s * BURST.as_secs_f64() + 1.0 + self.kept;
        // Who has just left the gate pays with what was kept for it.
        self.tokens = (self.tokens + self.per_s * passed).min(most.max(self.tokens));
    }

    fn most_owed(&self) -> f64 {
        self.per_s * DEBT.as_secs_f64()
    }

    /// What is spent on a statement of which so much is expected.
    fn charged(&self, expected: f64) -> f64 {
        expected.min(self.most_owed())
    }

    fn spend(&mut self, now: MonoTime, cost: f64) {
        self.fill(now);
        self.tokens -= cost;
    }

    /// A statement that was charged `before` is one of `cost`. No more is owed than that or
    /// [`FLOOR_DEBT`].
    fn owe(&mut self, now: MonoTime, before: f64, cost: f64) {
        let had = self.collect(now);
        let most = self.charged(cost).max(self.per_s * FLOOR_DEBT.as_secs_f64());
        let left = had + self.charged(before) - self.charged(cost);
        self.tokens = left.max((-most).min(had));
    }

    /// How long until there is more than so much in it; `None`: there is.
    fn covers_in(mut self, now: MonoTime, more_than: f64) -> Option<Duration> {
        let missing = more_than - self.collect(now);
        if missing < 0.0 {
            return None;
        }
        Some(Duration::try_from_secs_f64(missing / self.per_s).unwrap_or(DEBT))
    }
}
