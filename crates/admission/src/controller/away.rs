//! Who was told to come back, and has not.
//!
//! Theory. Who comes back as told stands by the time at which it first asked
//! ([`crate::Appointment`]), so a line goes on behind those who stand in it: whoever comes new is
//! served behind them all, and a line that looks short to it may be long. So those who are away are
//! counted, with what their statements cost and when they first asked: by lane and by app, for an
//! app's turns go from lane to lane, and where each identity comes once a lane knows nothing.
//! Nobody waits for them: a turn that comes up while they are away is the next one's in line. What
//! they count for is what others are told, and room in the queue of their rule.
//!
//! A claim ends when its session comes back, in time or too soon; else [`LATE_MAX`] behind the time
//! that was told. So a client that never comes is in nobody's way for longer than it was told.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Controller;
use crate::request::Lane;
use crate::ring::{Absent, BySince, Standing};
use crate::{AppKey, Appointment, IdentityKey, MonoTime, Request, RuleKey};

/// Who is later than that does not count any more; its place is kept for longer.
const LATE_MAX: Duration = Duration::from_secs(1);

/// Those who are due within the same such time are counted together.
const GRAIN: Duration = Duration::from_millis(250);

/// For those who come back within this time a queue keeps room.
const SOON: Duration = Duration::from_secs(1);

/// In a queue of so many places or more.
const ROOM_FROM: u32 = 16;

/// Claims that are kept apart; clients choose identities. Who is beyond is not counted. Some 16 MiB
/// if each of them is of another lane.
const CLAIMS_MAX: usize = 32_768;

/// So many are forgotten at once: it is done under a lock, each time somebody is told.
const EXPIRED_MAX: usize = 64;

/// Those who are away.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// In the order in which they are due.
    claims: BTreeMap<Claim, (AppKey, Standing)>,
    lanes: BTreeMap<(RuleKey, IdentityKey), BySince>,
    apps: BTreeMap<(RuleKey, AppKey), OfApp>,
    rules: BTreeMap<RuleKey, OfRule>,
    /// Parts of these rules.
    parts: u64,
    /// How many of each rule are due, and of all, by grains.
    due: BTreeMap<(Option<RuleKey>, u64), u32>,
}

/// Those who are due at the same time, of the same lane, and first asked at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    /// In grains.
    due: u64,
    rule: RuleKey,
    identity: IdentityKey,
    /// In grains.
    since: u64,
}

#[derive(Debug, Default)]
struct OfRule {
    /// Its part of what is admitted.
    part: u64,
    /// Apps with somebody away.
    apps: usize,
}

#[derive(Debug, Default)]
struct OfApp {
    all: BySince,
    /// Lanes with somebody away.
    lanes: usize,
}

impl Away {
    /// Who is away and stands before a place of this lane that goes by `since`.
    pub(super) fn before(&mut self, now: MonoTime, lane: Lane, since: MonoTime) -> Absent {
        self.expire(now);
        // Of those who first asked at the same time, whoever was refused first stands before.
        let since = since.saturating_add(GRAIN);
        let of_rule = self.rules.get(&lane.rule);
        let of_app = self.apps.get(&(lane.rule, lane.app));
        let of_lane = self.lanes.get(&(lane.rule, lane.identity));
        let lanes = of_app.map_or(0, |of_app| of_app.lanes);
        let apps = of_rule.map_or(0, |of_rule| of_rule.apps);
        Absent {
            lane: of_lane.map_or(Standing::default(), |of_lane| of_lane.before(since)),
            app: of_app.map_or(Standing::default(), |of_app| of_app.all.before(since)),
            lanes: lanes.saturating_sub(usize::from(of_lane.is_some())),
            apps: apps.saturating_sub(usize::from(of_app.is_some())),
            parts: self.parts.saturating_sub(of_rule.map_or(0, |of_rule| of_rule.part)),
        }
    }

    /// How many of a rule are to come back within [`SOON`], or are late by no more than is waited
    /// for; `None`: of all rules.
    fn due_soon(&self, now: MonoTime, rule: Option<RuleKey>) -> u32 {
        let from = (rule, grain(now.saturating_sub(LATE_MAX)));
        let due = self.due.range(from..=(rule, grain(now.saturating_add(SOON))));
        due.map(|(_, count)| *count).fold(0, u32::saturating_add)
    }

    /// Somebody whose place goes by `since` is told to come back at this time, with a statement
    /// that costs so much.
    pub(super) fn go(
        &mut self,
        (lane, part): (Lane, u64),
        (since, at): (MonoTime, MonoTime),
        cost: f64,
    ) {
        let Lane { rule, app, identity } = lane;
        let claim = Claim { due: grain(at), rule, identity, since: grain(since) };
        let is_known = self.claims.contains_key(&claim);
        if !is_known && self.claims.len() >= CLAIMS_MAX {
            return;
        }
        let one = Standing { statements: 1, cost };
        self.claims.entry(claim).or_insert((app, Standing::default())).1.add(one);
        let of_rule = self.rules.entry(rule).or_default();
        if of_rule.apps == 0 {
            of_rule.part = part;
            self.parts = self.parts.saturating_add(part);
        }
        let of_app = self.apps.entry((rule, app)).or_default();
        of_rule.apps = of_rule.apps.saturating_add(usize::from(of_app.all.is_empty()));
        of_app.all.add(since, cost);
        let of_lane = self.lanes.entry((rule, identity)).or_default();
        of_app.lanes = of_app.lanes.saturating_add(usize::from(of_lane.is_empty()));
        of_lane.add(since, cost);
        for of in [Some(rule), None] {
            let due = self.due.entry((of, claim.due)).or_default();
            *due = due.saturating_add(1);
        }
    }

    /// One of those is not away any more who were told to come back at this time.
    fn come(&mut self, (rule, identity): (RuleKey, IdentityKey), since: MonoTime, at: MonoTime) {
        let at = grain(at);
        // The session has read its clock a moment later than the controller did.
        let grains = [Some(at), at.checked_sub(1)].into_iter().flatten();
        let claims = grains.map(|due| Claim { due, rule, identity, since: grain(since) });
        let known = claims.into_iter().find_map(|claim| {
            let (_, some) = self.claims.get(&claim)?;
            let count = u32::try_from(some.statements).unwrap_or(u32::MAX).max(1);
            Some((claim, Standing { statements: 1, cost: some.cost / f64::from(count) }))
        });
        if let Some((claim, one)) = known {
            self.end(claim, one);
        }
    }

    /// Forgets some of those who are too late.
    fn expire(&mut self, now: MonoTime) {
        let latest = grain(now.saturating_sub(LATE_MAX));
        for _ in 0..EXPIRED_MAX {
            let first = self.claims.first_key_value();
            let Some((&claim, &(_, some))) = first.filter(|(claim, _)| claim.due < latest) else {
                return;
            };
            self.end(claim, some);
        }
    }

    /// So many of a claim are away no more.
    fn end(&mut self, claim: Claim, some: Standing) {
        let Claim { due, rule, identity, .. } = claim;
        let Some((app, left)) = self.claims.get_mut(&claim) else { return };
        let app = *app;
        left.take(some);
        if left.statements == 0 {
            self.claims.remove(&claim);
        }
        let since = claim.since();
        let lane = (rule, identity);
        let mut is_last = false;
        if let Some(of_lane) = self.lanes.get_mut(&lane) {
            of_lane.take_many(since, some);
            is_last = of_lane.is_empty();
        }
        if is_last {
            self.lanes.remove(&lane);
        }
        if let Some(of_app) = self.apps.get_mut(&(rule, app)) {
            of_app.all.take_many(since, some);
            of_app.lanes = of_app.lanes.saturating_sub(usize::from(is_last));
            if of_app.all.is_empty() {
                self.apps.remove(&(rule, app));
                self.end_app(rule);
            }
        }
        let ended = u32::try_from(some.statements).unwrap_or(u32::MAX);
        for of in [Some(rule), None] {
            let Some(count) = self.due.get_mut(&(of, due)) else { continue };
            *count = count.saturating_sub(ended);
            if *count == 0 {
                self.due.remove(&(of, due));
            }
        }
    }
}

impl Away {
    /// Nobody of an app of this rule is away any more.
    fn end_app(&mut self, rule: RuleKey) {
        let Some(of_rule) = self.rules.get_mut(&rule) else { return };
        of_rule.apps = of_rule.apps.saturating_sub(1);
        if of_rule.apps == 0 {
            self.parts = self.parts.saturating_sub(of_rule.part);
            self.rules.remove(&rule);
        }
    }
}

impl Claim {
    fn since(&self) -> MonoTime {
        let nanos = u64::try_from(GRAIN.as_nanos()).unwrap_or(u64::MAX);
        MonoTime::from_nanos(self.since.saturating_mul(nanos))
    }
}

fn grain(at: MonoTime) -> u64 {
    let nanos = u128::from(at.as_nanos()).checked_div(GRAIN.as_nanos());
    nanos.and_then(|grain| u64::try_from(grain).ok()).unwrap_or(0)
}

impl Controller {
    /// Whether there is room in the queue of its rule, and in that of all. Who comes new leaves
    /// room for those of its rule who are about to come back, as told, up to half of the queue: else
    /// whoever is served and asks again at once takes the very place that has become free.
    pub(super) fn has_place_in_queue(&self, now: MonoTime, request: &Request) -> bool {
        let has_place = |waiters: u32, max: u32, of: Option<RuleKey>| {
            let soon = || self.advices.away.due_soon(now, of);
            let is_back = request.since < request.arrived;
            let far = max < ROOM_FROM || waiters < max / 2;
            let left = max.saturating_sub(waiters);
            left > 0 && (is_back || far || left > soon().min(max / 2))
        };
        let waiters = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        has_place(self.queue.len_of(request.rule), request.terms.queue_len_max, Some(request.rule))
            && has_place(waiters, self.queue_len_max, None)
    }

    /// A session that was told to come back asks again, in time or not: it is not waited for any
    /// more. To be called once, before it asks.
    pub fn come_back(&mut self, told: Appointment) {
        let (lane, since, at) = told.claim();
        self.advices.away.come(lane, since, at);
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

    /// Of all who are away: how many of the lane and of the app, and their costs.
    fn absent(away: &mut Away, now: u64, lane: Lane) -> (usize, f64, usize, f64) {
        let Absent { lane, app, .. } = away.before(at(now), lane, MonoTime::MAX);
        (lane.statements, lane.cost, app.statements, app.cost)
    }

    fn is_empty(away: &Away) -> bool {
        let Away { claims, lanes, apps, rules, parts, due } = away;
        let keyed = claims.is_empty() && lanes.is_empty() && apps.is_empty();
        keyed && rules.is_empty() && due.is_empty() && *parts == 0
    }

    #[test]
    fn who_comes_back_is_away_no_more_and_who_does_not_is_forgotten_a_second_late() {
        let mut away = Away::default();
        for ms in [2_000, 2_100, 9_000] {
            away.go((LANE, 5), (at(100), at(ms)), 50.0);
        }
        assert_eq!(absent(&mut away, 0, LANE), (3, 150.0, 3, 150.0));
        let lane = (LANE.rule, LANE.identity);
        away.come(lane, at(100), at(2_100));
        // Its clock was read behind a boundary.
        away.come(lane, at(100), at(2_251));
        away.come(lane, at(100), at(2_100));
        assert_eq!(absent(&mut away, 2_000, LANE), (1, 50.0, 1, 50.0));
        assert_eq!(absent(&mut away, 10_000, LANE), (1, 50.0, 1, 50.0), "it may be late");
        assert_eq!(absent(&mut away, 10_300, LANE), (0, 0.0, 0, 0.0));
        assert!(is_empty(&away), "{away:?}");
    }

    #[test]
    fn others_of_the_app_count_for_the_app_and_who_asked_later_stands_behind() {
        let mut away = Away::default();
        let other = Lane { identity: IdentityKey(4), ..LANE };
        away.go((LANE, 5), (at(0), at(2_000)), 50.0);
        away.go((other, 5), (at(1_000), at(2_000)), 20.0);
        let app = Lane { app: AppKey(9), identity: IdentityKey(5), ..LANE };
        away.go((app, 5), (at(0), at(2_000)), 7.0);
        let rule = Lane { rule: RuleKey(2), ..app };
        away.go((rule, 8), (at(0), at(2_000)), 7.0);
        assert_eq!(absent(&mut away, 0, LANE), (1, 50.0, 2, 70.0));
        let before = away.before(at(0), other, at(700));
        assert_eq!((before.lane.statements, before.app.cost, before.lanes), (0, 50.0, 1));
        assert_eq!(away.due_soon(at(1_500), Some(LANE.rule)), 3);
        assert_eq!((before.apps, before.parts), (1, 8));
        assert_eq!(away.due_soon(at(1_500), None), 4);
        assert_eq!(away.due_soon(at(1_500), Some(RuleKey(7))), 0);
        assert_eq!(away.due_soon(at(500), None), 0);
    }

    #[test]
    fn a_crowd_that_never_comes_back_takes_no_more_than_its_room() {
        let mut away = Away::default();
        for n in 0..100_000 {
            let lane = Lane { identity: IdentityKey(n), ..LANE };
            away.go((lane, 5), (at(0), at(n)), 1.0);
        }
        assert_eq!((away.claims.len(), away.lanes.len()), (CLAIMS_MAX, CLAIMS_MAX));
        for _ in 0..CLAIMS_MAX / EXPIRED_MAX {
            absent(&mut away, 200_000, LANE);
        }
        assert!(is_empty(&away), "{away:?}");
    }
}
