//! Work that was allowed to those who write around Sluice, and of which nobody tells when it is
//! done.
//!
//! Theory. A client that asks writes about when it has its answer. So what it was allowed counts as
//! running until the second heartbeat after the answer is begun, and as completed from then on: a
//! replica that shows that heartbeat has applied it. Until then it takes its part of the window and
//! of the tokens, like a statement's; that keeps clients that ask all at once from writing all at
//! once.
//!
//! A client whose statements pass through Sluice as well would be charged twice. So the next
//! statements of its app take over what a check of the app was charged ([`Promises::redeem`]), and
//! a check that does not say what it is for is not charged at all while statements of its app pass
//! here ([`Promises::comes_through`]): they are charged themselves.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::pace::{Charge, Pace};
use crate::sweep::Sweep;
use crate::{AppKey, MonoTime};

/// Apps told apart; clients choose apps. What others are allowed is charged to nobody in
/// particular, so that no statement takes it over.
const APPS_MAX: usize = 4_096;

/// An app of which a statement has passed within this time writes through Sluice.
const THROUGH_FOR: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// Allowed since the last heartbeat was begun.
    fresh: BTreeMap<Option<AppKey>, Charge>,
    /// Allowed in the interval before.
    older: BTreeMap<Option<AppKey>, Charge>,
    /// When a statement of an app was last admitted.
    through: HashMap<AppKey, MonoTime>,
    sweep: Sweep,
}

impl Promises {
    pub(crate) fn add(&mut self, app: AppKey, charge: Charge) {
        let known = self.fresh.contains_key(&Some(app));
        let app = (known || self.fresh.len() < APPS_MAX).then_some(app);
        self.fresh.entry(app).and_modify(|sum| *sum = sum.with(charge)).or_insert(charge);
    }

    /// A heartbeat is about to be begun: what was allowed before the last one has been written.
    pub(crate) fn lapse(&mut self, now: MonoTime, pace: &mut Pace) {
        for charge in self.older.values() {
            pace.complete_bits(now, *charge);
        }
        self.older.clear();
        std::mem::swap(&mut self.older, &mut self.fresh);
    }

    /// A statement of this app asks: it takes over what the app was allowed, up to its own cost.
    pub(crate) fn redeem(&mut self, app: AppKey, cost: f64, pace: &mut Pace) {
        let mut left = cost;
        for promises in [&mut self.older, &mut self.fresh] {
            let Some(charge) = promises.get_mut(&Some(app)) else { continue };
            let part = charge.split(left);
            left -= part.cost();
            pace.take_back(part);
        }
    }

    /// Whether there is anything to redeem.
    pub(crate) fn is_empty(&self) -> bool {
        self.older.is_empty() && self.fresh.is_empty()
    }

    /// A statement of this app was admitted.
    pub(crate) fn note_through(&mut self, now: MonoTime, app: AppKey) {
        if let Some(at) = self.through.get_mut(&app) {
            *at = now;
            return;
        }
        if self.through.len() >= APPS_MAX && self.sweep.is_due(now) {
            self.through.retain(|_, at| now.saturating_since(*at) <= THROUGH_FOR);
        }
        if self.through.len() < APPS_MAX {
            self.through.insert(app, now);
        }
    }

    /// Whether statements of this app pass here.
    pub(crate) fn comes_through(&self, now: MonoTime, app: AppKey) -> bool {
        self.through.get(&app).is_some_and(|at| now.saturating_since(*at) <= THROUGH_FOR)
    }
}
