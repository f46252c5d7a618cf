//! Who was told to come back, and has not.
//!
//! Theory. Who comes back as told stands by the time at which it first asked
//! ([`crate::Appointment`]), so a line goes on behind those who stand in it: whoever comes new is
//! served behind them all, and a line that looks short to it may be long. So those who are away are
//! counted, by lane, with what their statements cost. Nobody waits for them: a turn that comes up
//! while they are away is the next one's in line. What they count for is what others are told.
//!
//! A claim ends when its session comes back, in time or too soon; else [`LATE_MAX`] behind the time
//! that was told. So a client that never comes is in nobody's way for longer than it was told.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Controller;
use crate::request::Lane;
use crate::{Appointment, IdentityKey, MonoTime, Request, RuleKey};

/// Who is later than that does not count any more; its place is kept for longer.
const LATE_MAX: Duration = Duration::from_secs(1);

/// Those who are due within the same such time are counted together.
const GRAIN: Duration = Duration::from_millis(250);

/// For those who come back within this time a queue keeps room.
const SOON: Duration = Duration::from_secs(1);

/// In a queue of so many places or more.
const ROOM_FROM: u32 = 16;

/// Lanes with somebody away; clients choose identities. Who is beyond is told the line alone.
const LANES_MAX: usize = 4_096;

/// Counts of all lanes: some 4 MiB.
const COUNTS_MAX: usize = 65_536;

/// How often lanes are forgotten of which nobody is away.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// So many statements, and what they are expected to cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Claims {
    pub(crate) statements: u32,
    /// In rows.
    pub(crate) cost: f64,
}

/// Those who are away, by lanes.
#[derive(Debug, Default)]
pub(super) struct Away {
    lanes: BTreeMap<(RuleKey, IdentityKey), Absent>,
    /// Entries of all lanes.
    counts: usize,
    swept_at: MonoTime,
}

/// The claims of one lane by when they are due, in grains.
#[derive(Debug, Default)]
struct Absent {
    due: BTreeMap<u64, Claims>,
    sum: Claims,
}

impl Away {
    /// Who is away of a lane.
    pub(super) fn of(&mut self, now: MonoTime, lane: Lane) -> Claims {
        if now.saturating_since(self.swept_at) >= SWEEP_INTERVAL {
            self.sweep(now);
        }
        let key = (lane.rule, lane.identity);
        let Some(of_lane) = self.lanes.get_mut(&key) else { return Claims::default() };
        self.counts = self.counts.saturating_sub(of_lane.expire(now));
        let sum = of_lane.sum;
        if of_lane.due.is_empty() {
            self.lanes.remove(&key);
        }
        sum
    }

    /// How many of a lane are to come back within [`SOON`], or are late by no more than is waited
    /// for.
    fn due_soon(&self, now: MonoTime, (rule, identity): (RuleKey, IdentityKey)) -> u32 {
        let Some(of_lane) = self.lanes.get(&(rule, identity)) else { return 0 };
        let from = grain(now.saturating_sub(LATE_MAX));
        let due = of_lane.due.range(from..=grain(now.saturating_add(SOON)));
        due.map(|(_, claims)| claims.statements).fold(0, u32::saturating_add)
    }

    /// Somebody is told to come back at this time, with a statement that costs so much.
    pub(super) fn go(&mut self, lane: Lane, at: MonoTime, cost: f64) {
        let key = (lane.rule, lane.identity);
        let is_known = self.lanes.contains_key(&key);
        if self.counts >= COUNTS_MAX || (!is_known && self.lanes.len() >= LANES_MAX) {
            return;
        }
        let of_lane = self.lanes.entry(key).or_default();
        let due = of_lane.due.entry(grain(at)).or_insert_with(|| {
            self.counts = self.counts.saturating_add(1);
            Claims::default()
        });
        let one = Claims { statements: 1, cost };
        due.add(one);
        of_lane.sum.add(one);
    }

    /// One of those who were told to come back at this time is not away any more.
    fn come(&mut self, rule: RuleKey, identity: IdentityKey, at: MonoTime) {
        let Some(of_lane) = self.lanes.get_mut(&(rule, identity)) else { return };
        let at = grain(at);
        // The session has read its clock a moment later than the controller did.
        let grains = [Some(at), at.checked_sub(1)].into_iter().flatten();
        let Some(key) = grains.into_iter().find(|key| of_lane.due.contains_key(key)) else {
            return;
        };
        let Some(due) = of_lane.due.get_mut(&key) else { return };
        let one = Claims { statements: 1, cost: due.cost / f64::from(due.statements.max(1)) };
        due.take(one);
        if due.statements == 0 {
            of_lane.due.remove(&key);
            self.counts = self.counts.saturating_sub(1);
        }
        of_lane.sum.take(one);
    }

    fn sweep(&mut self, now: MonoTime) {
        self.swept_at = now;
        self.lanes.retain(|_, of_lane| {
            of_lane.expire(now);
            !of_lane.due.is_empty()
        });
        let counts = self.lanes.values().map(|of_lane| of_lane.due.len());
        self.counts = counts.fold(0, usize::saturating_add);
    }
}

impl Absent {
    /// Forgets who is too late. How many counts went with that.
    fn expire(&mut self, now: MonoTime) -> usize {
        let latest = grain(now.saturating_sub(LATE_MAX));
        let mut gone = 0_usize;
        while let Some(first) = self.due.first_entry()
            && *first.key() < latest
        {
            let claims = first.remove();
            self.sum.take(claims);
            gone = gone.saturating_add(1);
        }
        gone
    }
}

impl Claims {
    fn add(&mut self, other: Self) {
        self.statements = self.statements.saturating_add(other.statements);
        self.cost += other.cost;
    }

    fn take(&mut self, other: Self) {
        self.statements = self.statements.saturating_sub(other.statements);
        self.cost = if self.statements == 0 { 0.0 } else { (self.cost - other.cost).max(0.0) };
    }
}

fn grain(at: MonoTime) -> u64 {
    let nanos = u128::from(at.as_nanos()).checked_div(GRAIN.as_nanos());
    nanos.and_then(|grain| u64::try_from(grain).ok()).unwrap_or(0)
}

impl Controller {
    /// Whether there is room in the queue of its rule, and in that of all. Who comes new leaves
    /// room for those of its lane who are about to come back, as told, up to half of the queue: else
    /// whoever is served and asks again at once takes the very place that has become free.
    pub(super) fn has_place_in_queue(&self, now: MonoTime, request: &Request) -> bool {
        let lane = (request.rule, request.identity);
        let soon = || self.advices.away.due_soon(now, lane);
        let has_place = |waiters: u32, max: u32| {
            let is_back = request.since < request.arrived;
            let far = max < ROOM_FROM || waiters < max / 2;
            let left = max.saturating_sub(waiters);
            left > 0 && (is_back || far || left > soon().min(max / 2))
        };
        let waiters = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        has_place(self.queue.len_of(request.rule), request.terms.queue_len_max)
            && has_place(waiters, self.queue_len_max)
    }

    /// A session that was told to come back asks again, in time or not: it is not waited for any
    /// more. To be called once, before it asks.
    pub fn come_back(&mut self, told: Appointment) {
        let (rule, identity, at) = told.claim();
        self.advices.away.come(rule, identity, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppKey;

    const LANE: Lane = Lane { rule: RuleKey(1), app: AppKey(2), identity: IdentityKey(3) };

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn claims(statements: u32, cost: f64) -> Claims {
        Claims { statements, cost }
    }

    #[test]
    fn who_comes_back_is_away_no_more_and_who_does_not_is_forgotten_a_second_late() {
        let mut away = Away::default();
        for ms in [2_000, 2_100, 9_000] {
            away.go(LANE, at(ms), 50.0);
        }
        assert_eq!(away.of(at(0), LANE), claims(3, 150.0));
        away.come(RuleKey(1), IdentityKey(3), at(2_100));
        // Its clock was read behind a boundary.
        away.come(RuleKey(1), IdentityKey(3), at(2_251));
        away.come(RuleKey(1), IdentityKey(3), at(2_100));
        assert_eq!(away.of(at(2_000), LANE), claims(1, 50.0));
        assert_eq!(away.of(at(10_000), LANE), claims(1, 50.0), "it may be late");
        assert_eq!(away.of(at(10_300), LANE), Claims::default());
        assert_eq!((away.counts, away.lanes.len()), (0, 0));
    }

    #[test]
    fn others_do_not_count_for_the_lane() {
        let mut away = Away::default();
        away.go(LANE, at(2_000), 50.0);
        away.go(Lane { identity: IdentityKey(4), ..LANE }, at(2_000), 20.0);
        assert_eq!(away.of(at(0), LANE), claims(1, 50.0));
    }

    #[test]
    fn a_crowd_that_never_comes_back_takes_no_more_than_its_room() {
        let mut away = Away::default();
        for n in 0..100_000 {
            let lane = Lane { identity: IdentityKey(n % 10_000), ..LANE };
            away.go(lane, at(n), 1.0);
        }
        assert!(away.lanes.len() <= LANES_MAX && away.counts <= COUNTS_MAX);
        away.of(at(200_000), LANE);
        assert_eq!((away.lanes.len(), away.counts), (0, 0));
    }
}
