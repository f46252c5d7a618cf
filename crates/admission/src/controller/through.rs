//! What has come through of late, in all and of those apps of which somebody waits.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::request::Lane;
use crate::ring::Part;
use crate::sweep::Sweep;
use crate::{AppKey, MonoTime, RuleKey};

/// So long is counted what comes through, and of an app so many statements at least. Behind the
/// longer time one is enough: of an app that is rarely served that is what there is to know.
const COUNTED_FOR: Duration = Duration::from_secs(5);
const STATEMENTS_MIN: u32 = 8;
const COUNTED_FOR_LONG: Duration = Duration::from_secs(60);

/// What was longer ago says nothing of now.
const COUNTED_FOR_MAX: Duration = Duration::from_secs(120);

/// Apps that are counted. Of others the weights tell.
const APPS_MAX: usize = 1_024;

/// What has come through a gate that the lag paces while somebody waited.
#[derive(Debug, Default)]
pub(super) struct Through {
    /// In rows.
    all: f64,
    /// When there were so many.
    since: MonoTime,
    before: f64,
    /// In the time before that; `None` if nobody waited for too long.
    per_s: Option<f64>,
    apps: BTreeMap<(RuleKey, AppKey), OfApp>,
    sweep: Sweep,
}

#[derive(Debug)]
struct OfApp {
    since: MonoTime,
    /// What has come through of all until then.
    all_before: f64,
    rows: f64,
    statements: u32,
    /// Of what came through before that.
    part: Option<Part>,
}

impl Through {
    /// A statement has run that cost so much.
    pub(super) fn add(&mut self, lane: Lane, rows: f64) {
        self.all += rows;
        if self.apps.is_empty() {
            return;
        }
        if let Some(of_app) = self.apps.get_mut(&(lane.rule, lane.app)) {
            of_app.rows += rows;
            of_app.statements = of_app.statements.saturating_add(1);
        }
    }

    /// Somebody of this app begins to wait, or is refused.
    pub(super) fn note(&mut self, now: MonoTime, lane: Lane) {
        let all = self.all;
        let span = now.saturating_since(self.since);
        if span >= COUNTED_FOR {
            let per_s = (all - self.before) / span.as_secs_f64();
            self.per_s = (span <= COUNTED_FOR.saturating_mul(2)).then_some(per_s);
            (self.since, self.before) = (now, all);
        }
        let key = (lane.rule, lane.app);
        if !self.apps.contains_key(&key) && self.apps.len() >= APPS_MAX {
            if self.sweep.is_due(now) {
                // Who has not waited of late begins anew.
                self.apps.retain(|_, of_app| of_app.span(now) < COUNTED_FOR_MAX);
            }
            if self.apps.len() >= APPS_MAX {
                return;
            }
        }
        let of_app = self.apps.entry(key).or_insert_with(|| OfApp::new(now, all));
        of_app.note(now, all);
    }

    /// Rows a second of all; `None` if that is not known.
    pub(super) fn per_s(&self) -> Option<f64> {
        self.per_s
    }

    /// Of what came through of late, the part that was this app's; `None` if that is not known.
    pub(super) fn part(&self, now: MonoTime, lane: Lane) -> Option<Part> {
        let of_app = self.apps.get(&(lane.rule, lane.app))?;
        of_app.part.filter(|_| of_app.span(now) <= COUNTED_FOR_MAX)
    }
}

impl OfApp {
    fn new(now: MonoTime, all: f64) -> Self {
        Self { since: now, all_before: all, rows: 0.0, statements: 0, part: None }
    }

    fn span(&self, now: MonoTime) -> Duration {
        now.saturating_since(self.since)
    }

    fn note(&mut self, now: MonoTime, all: f64) {
        let span = self.span(now);
        let enough = if span >= COUNTED_FOR_LONG { 1 } else { STATEMENTS_MIN };
        if span > COUNTED_FOR_MAX {
            *self = Self::new(now, all);
        } else if span >= COUNTED_FOR && self.statements >= enough {
            let of_all = (all - self.all_before).max(self.rows);
            let statements = self.statements;
            let part = Part { part: self.rows / of_all, statements };
            let part = (of_all > 0.0).then_some(part);
            *self = Self { part, ..Self::new(now, all) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IdentityKey;

    fn at(s: u64) -> MonoTime {
        MonoTime::from_nanos(s.saturating_mul(1_000_000_000))
    }

    fn lane(app: u64) -> Lane {
        Lane { rule: RuleKey(1), app: AppKey(app), identity: IdentityKey(app) }
    }

    #[test]
    fn the_part_of_an_app_is_known_after_five_seconds_and_eight_statements() {
        let mut through = Through::default();
        through.note(at(100), lane(1));
        for s in 0..8 {
            assert_eq!(through.part(at(100 + s), lane(1)), None);
            through.add(lane(1), 10.0);
            through.add(lane(2), 30.0);
            through.note(at(100 + s), lane(1));
        }
        let part = Part { part: 0.25, statements: 8 };
        assert_eq!(through.part(at(108), lane(1)), Some(part));
        assert_eq!(through.part(at(108), lane(2)), None, "nobody of it waits");
        assert_eq!(through.part(at(229), lane(1)), None, "that was long ago");
    }

    #[test]
    fn of_an_app_that_is_rarely_served_the_part_is_known_after_a_minute() {
        let mut through = Through::default();
        through.note(at(100), lane(1));
        through.add(lane(1), 10.0);
        through.add(lane(2), 90.0);
        through.note(at(159), lane(1));
        assert_eq!(through.part(at(159), lane(1)), None);
        through.note(at(160), lane(1));
        let part = Part { part: 0.1, statements: 1 };
        assert_eq!(through.part(at(160), lane(1)), Some(part));
        through.note(at(221), lane(1));
        assert_eq!(through.part(at(221), lane(1)), Some(part), "none since, which may be chance");
        through.note(at(281), lane(1));
        assert_eq!(through.part(at(281), lane(1)), None);
    }

    #[test]
    fn what_comes_through_in_all_is_known_while_somebody_waits() {
        let mut through = Through::default();
        through.note(at(100), lane(1));
        for _ in 0..30 {
            through.add(lane(1), 20.0);
        }
        through.note(at(106), lane(1));
        assert_eq!(through.per_s(), Some(100.0));
        through.note(at(160), lane(1));
        assert_eq!(through.per_s(), None);
    }

    #[test]
    fn apps_by_the_thousand_take_no_more_than_their_room() {
        let mut through = Through::default();
        for n in 0..5_000 {
            through.note(at(n / 10), lane(n));
        }
        assert!(through.apps.len() <= APPS_MAX);
    }
}
