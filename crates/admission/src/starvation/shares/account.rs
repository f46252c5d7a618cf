//! One identity's account, in its app's and its rule's.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clocks::OfLate;
use super::levels::{Level, Member};
use super::{Claimant, GRACE};
use crate::{AppKey, IdentityKey, MonoTime};

#[derive(Debug, Default)]
pub(super) struct RuleAccount {
    pub(super) epoch: u32,
    pub(super) member: Member,
    pub(super) level: Level,
    pub(super) apps: BTreeMap<AppKey, AppAccount>,
}

#[derive(Debug, Default)]
pub(super) struct AppAccount {
    pub(super) epoch: u32,
    pub(super) member: Member,
    pub(super) level: Level,
    pub(super) of_late: OfLate,
    pub(super) identities: BTreeMap<IdentityKey, Account>,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) epoch: u32,
    pub(super) member: Member,
    pub(super) waiters: u32,
    /// After a refusal.
    pub(super) lingers_until: MonoTime,
    pub(super) is_lingering: bool,
    pub(super) left_at: MonoTime,
    /// Up to when its time has been counted.
    pub(super) time_at: Duration,
    pub(super) span: Span,
}

/// What is judged together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) began: MonoTime,
    /// The time in which it contended and somebody was admitted.
    pub(super) time: Duration,
    pub(super) entitled: f64,
    pub(super) received: f64,
    /// How often it came from somewhere else than its last turn.
    pub(super) comings: f64,
    /// Its largest statement.
    pub(super) largest: f64,
}

/// The weights of one identity, its app and its rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    pub(super) rule: f64,
    pub(super) app: f64,
    pub(super) identity: f64,
}

/// A rule or an app: what it is to its level, and the level of its own members.
pub(super) struct Rung<'a> {
    pub(super) member: &'a mut Member,
    pub(super) level: &'a mut Level,
}

/// An identity's account, and all that its share comes from.
pub(super) struct Path<'a> {
    pub(super) time: Duration,
    pub(super) contending: &'a mut usize,
    pub(super) root: &'a mut Level,
    pub(super) rule: Rung<'a>,
    pub(super) app: Rung<'a>,
    pub(super) of_late: &'a mut OfLate,
    pub(super) account: &'a mut Account,
}

impl Path<'_> {
    /// Gives everybody on the way what it is entitled to by now.
    pub(super) fn accrue(&mut self) {
        let due = self.root.due(self.rule.member);
        self.rule.level.advance(due);
        let due = self.rule.level.due(self.app.member);
        self.app.level.advance(due);
        self.of_late.add(self.time, (due, 0.0));
        let account = &mut *self.account;
        account.span.entitled += self.app.level.due(&mut account.member);
        if account.member.contends() {
            let passed = self.time.saturating_sub(account.time_at);
            account.span.time = account.span.time.saturating_add(passed);
        }
        account.time_at = self.time;
    }

    /// It asks.
    pub(super) fn comes(&mut self, now: MonoTime) {
        let account = &mut *self.account;
        let was_away = now.saturating_since(account.left_at) > GRACE;
        let is_new = account.span.comings == 0.0;
        if is_new || (was_away && !account.member.contends()) {
            account.span.comings += 1.0;
        }
    }

    pub(super) fn join(&mut self, weights: Weights) {
        if !self.account.member.contends() {
            *self.contending = self.contending.saturating_add(1);
        }
        self.app.level.join(&mut self.account.member, weights.identity);
        self.rule.level.join(self.app.member, weights.app);
        self.root.join(self.rule.member, weights.rule);
    }

    pub(super) fn leave(&mut self) {
        if self.account.member.contends() {
            *self.contending = self.contending.saturating_sub(1);
        }
        self.app.level.leave(&mut self.account.member);
        if self.app.level.is_idle() {
            self.rule.level.leave(self.app.member);
        }
        if self.rule.level.is_idle() {
            self.root.leave(self.rule.member);
        }
    }

    pub(super) fn leave_if_gone(&mut self, at: MonoTime) {
        if self.account.waiters == 0 && !self.account.is_lingering {
            self.account.left_at = self.account.left_at.max(at);
            self.leave();
        }
    }

    /// It receives so many rows of what all who contend share, itself among them.
    pub(super) fn receive(&mut self, rows: f64, weights: Weights) {
        let contends = self.account.member.contends();
        self.join(weights);
        self.root.advance(rows);
        self.accrue();
        if !contends {
            self.leave();
        }
        self.account.span.received += rows;
        self.of_late.add(self.time, (0.0, rows));
    }

    /// As they were when it last contended.
    pub(super) fn weights(&self) -> Weights {
        Weights {
            rule: self.rule.member.weight(),
            app: self.app.member.weight(),
            identity: self.account.member.weight(),
        }
    }
}

impl Weights {
    pub(super) fn of(who: &Claimant) -> Self {
        let won = who.won();
        Self { rule: who.weight * won, app: won, identity: won }
    }
}

impl RuleAccount {
    pub(super) fn refresh(&mut self, epoch: u32) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.level = Level::default();
            self.member.forget();
        }
    }
}

impl AppAccount {
    pub(super) fn refresh(&mut self, epoch: u32) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.level = Level::default();
            self.member.forget();
        }
    }
}

impl Account {
    pub(super) fn refresh(&mut self, epoch: u32) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.member.forget();
            self.waiters = 0;
        }
    }
}

impl Span {
    pub(super) fn new(began: MonoTime) -> Self {
        Self { began, ..Self::default() }
    }
}
