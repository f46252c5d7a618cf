//! How much of an app may be on its way before more of it has been seen at the replicas.
//!
//! Theory. The rate is what replicas have delivered of the rows of whoever was there. What it is worth
//! in rows of somebody else nobody knows: a rate found with rows that are hardly replicated
//! (temporary tables, a schema that a filter leaves out) is many times what the replicas bear of
//! others, and whoever begins has been let in at it for half a second before any lag tells. So
//! what an app has on its way has a *limit* of its own: at first what the first rate of all lets in
//! within the way, and more by what is shown of it, so that it doubles with the way at most. It is
//! the congestion window of TCP, of an app.
//!
//! - On its way is what is admitted and not completed, of late, and what has completed behind the
//!   newest heartbeat that all replicas show, but for those that may lag for longer than the others.
//!   With nothing on its way a statement passes whatever it costs.
//! - The limit grows by what is shown if the app had no room since: at the limit, or at the pace with
//!   more than half of its limit on its way. An app that needs no more proves no more. Of what was on
//!   its way while a long queue was braked for ([`crate::pace`]) a tenth is added: it may have been
//!   this app's.
//! - What a row takes of the replicas is its table's doing and that of how it is written, whoever writes
//!   it. So these have limits too, where they are told: an app at its own passes while what it writes has
//!   been seen, and has room. A job that has a new name each day writes what it wrote yesterday.
//! - Of statements that nobody knows one runs at a time, while it counts as running: the next may be as large.
//! - Who is at its limit is passed over in line, keeps its turn, and is in nobody else's way.
//! - After a minute without use half of what is beyond the first limit is forgotten, and so on.
//!
//! Costs are in rows of the mean, as in the window.
//!
//! Sources: Jacobson, Congestion Avoidance and Control (1988), for slow start; RFC 7661 (2015), for
//! what is not in use.

mod window;

use std::time::Duration;

use self::window::{Window, Windows};
use crate::aged::RATE_FIRST;
use crate::decision::Account;
use crate::pace::Charge;
use crate::{AppKey, MonoTime, Request, Written};

/// The way with the usual heartbeats, in seconds: the least that a first limit is for.
const WAY_MIN: f64 = 0.35;

#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    apps: Windows<AppKey>,
    written: Windows<Written>,
    /// Heartbeats: the newest that was begun, and the newest that all replicas that count show.
    begun: u64,
    shown: Option<Shown>,
    /// In seconds, without any queue.
    way: f64,
}

/// Heartbeats that all replicas that count show.
#[derive(Debug, Clone, Copy)]
struct Shown {
    newest: u64,
    /// The newest that was begun while a lag was braked for: what was on its way then, before it, may
    /// have made that.
    braked: Option<u64>,
}

/// Whose rows they are, and which, if that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) app: AppKey,
    pub(crate) written: Option<Written>,
}

impl From<&Request> for Whose {
    fn from(request: &Request) -> Self {
        Self { app: request.app, written: request.written }
    }
}

impl From<&Account> for Whose {
    fn from(account: &Account) -> Self {
        Self { app: account.lane.app, written: account.written }
    }
}

impl SlowStart {
    pub(crate) fn heartbeat_begun(&mut self, seq: u64) {
        self.begun = self.begun.max(seq);
    }

    /// The newest heartbeat that all replicas that count show, whether a lag is braked for, and how
    /// many seconds it takes without any queue until they show what has completed.
    pub(crate) fn shown(&mut self, shown: Option<u64>, is_braked: bool, way: f64) {
        self.way = way;
        self.shown = shown.map(|newest| {
            let before = self.shown.and_then(|shown| shown.braked);
            Shown { newest, braked: if is_braked { Some(self.begun) } else { before } }
        });
    }

    /// A rate was found with these apps by another process: their limits begin there, if nothing
    /// is known of them.
    pub(crate) fn begin_with(
        &mut self,
        now: MonoTime,
        apps: impl Iterator<Item = AppKey>,
        limit: f64,
    ) {
        let limit = limit.max(self.first());
        apps.for_each(|app| self.apps.begin(now, app, limit));
    }

    /// Whether the limits leave room for such work. A no is remembered.
    pub(crate) fn allows(&mut self, now: MonoTime, whose: Whose, cost: f64) -> bool {
        let (Some(shown), first) = (self.shown, self.first()) else { return true };
        self.each(whose, |window| window.settle(now, shown));
        let Some(app) = self.apps.get(whose.app) else { return true };
        let written = whose.written.and_then(|written| self.written.get(written));
        let allows = app.allows(now, cost)
            || written.is_some_and(|of| of.allows(now, cost) && of.is_beyond(first));
        if !allows {
            app.hold(now);
        }
        allows
    }

    /// What an app may have on its way.
    pub(crate) fn limit(&mut self, app: AppKey) -> f64 {
        let first = self.first();
        self.apps.get(app).map_or(first, |window| window.limit())
    }

    /// There was no room at the pace for such work.
    pub(crate) fn refused(&mut self, now: MonoTime, whose: Whose, cost: f64) {
        self.each(whose, |window| window.refused(now, cost));
    }

    pub(crate) fn admit(&mut self, now: MonoTime, whose: Whose, charge: Charge) {
        let first = self.first();
        self.apps.enter(now, whose.app, first).admit(now, first, charge);
        if let Some(written) = whose.written {
            self.written.enter(now, written, first).admit(now, first, charge);
        }
    }

    /// Work that runs costs more than it did.
    pub(crate) fn charge(&mut self, now: MonoTime, whose: Whose, before: Charge, charge: Charge) {
        self.each(whose, |window| window.charge(now, before, charge));
    }

    /// It was taken back before it ran.
    pub(crate) fn take_back(&mut self, whose: Whose, charge: Charge) {
        self.each(whose, |window| window.take_back(charge));
    }

    /// It has completed, at this cost.
    pub(crate) fn complete(&mut self, now: MonoTime, whose: Whose, charge: Charge, cost: f64) {
        let heartbeats = (self.begun, self.shown);
        self.each(whose, |window| window.complete(now, heartbeats, charge, cost));
    }

    /// How many apps were held back by their limits within a second.
    pub(crate) fn held_back(&self, now: MonoTime) -> usize {
        self.apps.all().filter(|window| window.has_held(now, Duration::from_secs(1))).count()
    }

    /// What the first rate of all lets in within the way.
    fn first(&self) -> f64 {
        RATE_FIRST * self.way.max(WAY_MIN)
    }

    fn each(&mut self, whose: Whose, mut work: impl FnMut(&mut Window)) {
        if let Some(window) = self.apps.get(whose.app) {
            work(window);
        }
        if let Some(window) = whose.written.and_then(|written| self.written.get(written)) {
            work(window);
        }
    }
}

#[cfg(test)]
mod tests;
