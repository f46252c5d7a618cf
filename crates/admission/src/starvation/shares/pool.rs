//! The accounts of one gate.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use super::account::{Account, Path, RuleAccount, Rung, Span, Weights};
use super::clocks::{Clock, Largest};
use super::levels::Level;
use super::{
    AppShare, BELOW, Below, Claimant, LINGERS, REMEMBERED_FOR, REMEMBERED_MAX, STATEMENTS,
    STATEMENTS_DICED,
};
use crate::costs::COST_MIN;
use crate::request::Lane;
use crate::{AppKey, GateKey, MonoTime, RuleKey};

/// Accounts that are looked at, with each that asks, whether they may be forgotten.
const TIDIED_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Pool {
    /// Whatever was noted in an earlier one about who contends is not so any more.
    epoch: u32,
    clock: Clock,
    level: Level,
    rules: BTreeMap<RuleKey, RuleAccount>,
    /// Accounts that contend; those in line are bounded by the queue.
    pub(super) contending: usize,
    /// One entry for each account: when it is looked at next whether it may go.
    pub(super) remembered: VecDeque<(MonoTime, Lane)>,
    /// One entry for each that was refused: until when it contends, unless it was so again.
    lingering: VecDeque<(MonoTime, Lane)>,
    last_left: Option<(MonoTime, Lane)>,
    /// More were refused than are known.
    blind_until: MonoTime,
    largest: Largest,
    /// Nobody is judged by less.
    spell_min: Duration,
}

impl Pool {
    pub(super) fn new(now: MonoTime, spell_min: Duration) -> Self {
        Self {
            epoch: 0,
            clock: Clock::new(now),
            level: Level::default(),
            rules: BTreeMap::new(),
            contending: 0,
            remembered: VecDeque::new(),
            lingering: VecDeque::new(),
            last_left: None,
            blind_until: MonoTime::ZERO,
            largest: Largest::default(),
            spell_min,
        }
    }

    pub(super) fn joins(&mut self, now: MonoTime, who: &Claimant) -> Option<Below> {
        self.begin(now);
        self.open(now, who.lane);
        let mut path = self.path(who.lane)?;
        path.comes(now);
        path.join(Weights::of(who));
        path.account.waiters = path.account.waiters.saturating_add(1);
        self.judge(now, who.lane)
    }

    pub(super) fn leaves(&mut self, now: MonoTime, lane: Lane) {
        self.begin(now);
        let Some(mut path) = self.path(lane) else { return };
        path.account.waiters = path.account.waiters.saturating_sub(1);
        path.leave_if_gone(now);
        self.last_left = Some((now, lane));
    }

    pub(super) fn refused(&mut self, now: MonoTime, who: &Claimant) -> Option<Below> {
        self.begin(now);
        if self.lingering.len() >= REMEMBERED_MAX {
            self.blind_until = now.saturating_add(LINGERS);
            return None;
        }
        self.open(now, who.lane);
        let until = now.saturating_add(LINGERS);
        let mut path = self.path(who.lane)?;
        path.comes(now);
        path.join(Weights::of(who));
        path.account.lingers_until = until;
        if !std::mem::replace(&mut path.account.is_lingering, true) {
            self.lingering.push_back((until, who.lane));
        }
        self.judge(now, who.lane)
    }

    pub(super) fn counts(&self, now: MonoTime, lane: Lane) -> bool {
        (!self.level.is_idle() || self.last_left == Some((now, lane))) && now >= self.blind_until
    }

    pub(super) fn admitted(&mut self, now: MonoTime, who: &Claimant, rows: f64) -> Option<Below> {
        self.begin(now);
        self.clock.moves(now);
        self.largest.note(now, rows, who.weight);
        let Some(mut path) = self.path(who.lane) else {
            self.advance_beside(who, rows);
            return None;
        };
        path.receive(rows, Weights::of(who));
        path.account.span.largest = path.account.span.largest.max(rows);
        self.judge(now, who.lane)
    }

    pub(super) fn settled(&mut self, now: MonoTime, lane: Lane, more: f64) -> Option<Below> {
        if more == 0.0 {
            return None;
        }
        self.begin(now);
        let Some(mut path) = self.path(lane) else {
            self.level.advance(more);
            return None;
        };
        let weights = path.weights();
        path.receive(more, weights);
        path.account.span.largest = path.account.span.largest.max(more);
        self.largest.note(now, more, weights.rule / weights.identity);
        self.judge(now, lane)
    }

    /// Nobody contends any more, at once for any number of them.
    pub(super) fn forget_line(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.level = Level::default();
        self.contending = 0;
        self.last_left = None;
    }

    /// What the next apps received, from behind `after` on, until so many are found.
    pub(super) fn apps_after(
        &mut self,
        now: MonoTime,
        (gate, after): (GateKey, Option<(RuleKey, AppKey)>),
        (most, found): (usize, &mut Vec<AppShare>),
    ) {
        self.begin(now);
        let from = after.map_or(RuleKey(0), |(rule, _)| rule);
        for (&rule, account) in self.rules.range_mut(from..) {
            account.refresh(self.epoch);
            let due = self.level.due(&mut account.member);
            account.level.advance(due);
            let from = after.filter(|(of, _)| *of == rule);
            let from = from.map_or(Bound::Unbounded, |(_, app)| Bound::Excluded(app));
            for (&app, of_app) in account.apps.range_mut((from, Bound::Unbounded)) {
                if found.len() >= most {
                    return;
                }
                of_app.refresh(self.epoch);
                let due = account.level.due(&mut of_app.member);
                of_app.level.advance(due);
                of_app.of_late.add(self.clock.time(), (due, 0.0));
                let (entitled, received) = of_app.of_late.sums();
                found.push(AppShare { gate, rule, app, entitled, received });
            }
        }
    }

    /// Something happens. Time goes on, and who does not contend any more leaves.
    fn begin(&mut self, now: MonoTime) {
        self.clock.tick(now);
        for _ in 0..TIDIED_MAX {
            let Some(&(until, lane)) = self.lingering.front().filter(|(at, _)| *at <= now) else {
                break;
            };
            self.lingering.pop_front();
            let Some(mut path) = self.path(lane) else { continue };
            path.account.is_lingering = path.account.lingers_until > now;
            path.leave_if_gone(until);
            if path.account.is_lingering {
                let again = path.account.lingers_until;
                self.lingering.push_back((again, lane));
            }
        }
        for _ in 0..TIDIED_MAX {
            let is_full = self.remembered.len() > self.contending.saturating_add(REMEMBERED_MAX);
            let Some(&(_, lane)) = self.remembered.front().filter(|(at, _)| is_full || *at <= now)
            else {
                break;
            };
            self.remembered.pop_front();
            let Some(path) = self.path(lane) else { continue };
            let kept_until = if path.account.member.contends() || path.account.is_lingering {
                now.saturating_add(REMEMBERED_FOR)
            } else {
                path.account.left_at.saturating_add(REMEMBERED_FOR)
            };
            let is_needed = path.account.member.contends() || path.account.is_lingering;
            if is_needed || (!is_full && kept_until > now) {
                self.remembered.push_back((kept_until, lane));
            } else {
                self.close(lane);
            }
        }
    }

    /// Opens an account, if it has none.
    fn open(&mut self, now: MonoTime, Lane { rule, app, identity }: Lane) {
        let epoch = self.epoch;
        let rule_account = self.rules.entry(rule).or_default();
        let app_account = rule_account.apps.entry(app).or_default();
        let remembered = &mut self.remembered;
        app_account.identities.entry(identity).or_insert_with(|| {
            let lane = Lane { rule, app, identity };
            remembered.push_back((now.saturating_add(REMEMBERED_FOR), lane));
            Account { epoch, left_at: now, span: Span::new(now), ..Account::default() }
        });
    }

    fn close(&mut self, Lane { rule, app, identity }: Lane) {
        let Some(rule_account) = self.rules.get_mut(&rule) else { return };
        let Some(app_account) = rule_account.apps.get_mut(&app) else { return };
        app_account.identities.remove(&identity);
        if app_account.identities.is_empty() {
            rule_account.apps.remove(&app);
        }
        if rule_account.apps.is_empty() {
            self.rules.remove(&rule);
        }
    }

    fn path(&mut self, lane: Lane) -> Option<Path<'_>> {
        let rule = self.rules.get_mut(&lane.rule)?;
        rule.refresh(self.epoch);
        let app = rule.apps.get_mut(&lane.app)?;
        app.refresh(self.epoch);
        let account = app.identities.get_mut(&lane.identity)?;
        account.refresh(self.epoch);
        let mut path = Path {
            time: self.clock.time(),
            contending: &mut self.contending,
            root: &mut self.level,
            rule: Rung { member: &mut rule.member, level: &mut rule.level },
            app: Rung { member: &mut app.member, level: &mut app.level },
            of_late: &mut app.of_late,
            account,
        };
        path.accrue();
        Some(path)
    }

    /// Somebody is admitted who has no account: it contends for this moment.
    fn advance_beside(&mut self, who: &Claimant, rows: f64) {
        let rule = self.rules.get_mut(&who.lane.rule);
        let contends = rule.is_some_and(|rule| {
            rule.refresh(self.epoch);
            rule.member.contends()
        });
        let weight = if contends { 0.0 } else { Weights::of(who).rule };
        self.level.advance_beside(rows, weight);
    }

    /// Whether it was below its share, if that can be said by now.
    fn judge(&mut self, now: MonoTime, lane: Lane) -> Option<Below> {
        let (rows, per_weight) = self.largest.get();
        let spell_min = self.spell_min;
        let path = self.path(lane)?;
        let Weights { rule, identity: won, .. } = path.weights();
        let span = &mut path.account.span;
        let own = span.largest.max(COST_MIN);
        let others = rows.max(per_weight * rule / won);
        let diced = if won < 1.0 { STATEMENTS_DICED * own } else { 0.0 };
        let enough = (STATEMENTS * (own + others) * span.comings).max(diced);
        if span.time < spell_min || span.entitled < enough {
            return None;
        }
        let Span { began, time, entitled, received, .. } = *span;
        *span = Span { comings: 1.0, ..Span::new(now) };
        let Lane { rule, app, identity } = lane;
        let is_below = received < BELOW * entitled;
        is_below.then_some(Below {
            rule,
            app,
            identity,
            from: began,
            to: now,
            time,
            entitled,
            received,
        })
    }
}
