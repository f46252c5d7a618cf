//! The sessions: they ask, wait, write, think.

use std::time::Duration;

use admission::{
    AppKey, Appointment, Decision, DigestKey, IdentityKey, Mode, MonoTime, Outcome, Permit,
    Refusal, Request, Resolved, Return, RuleKey, TableKey, WriteKind, Written,
};
use rand::RngExt as _;

use super::World;
use super::agenda::Event;
use super::rules::{gate_key, rule_key};
use super::told::LineKey;
use crate::report::RefusedStatement;
use crate::{App, Effect, Scenario};

/// A session with its statement.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) app: usize,
    /// The Sluice that it is connected to.
    proxy: usize,
    rule: RuleKey,
    identity: IdentityKey,
    /// Whether other sessions have it, too.
    is_shared: bool,
    /// Which of the texts of its app its statement has.
    digest: u32,
    rows: u32,
    /// When its statement was issued.
    issued: MonoTime,
    /// The same of the first try, if it was refused.
    first_tried: Option<MonoTime>,
    /// When it asked for the first time: after the pause that its rule's `speed` made of the last.
    arrived: MonoTime,
    begun: MonoTime,
    /// No statement of it is admitted before.
    pauses_until: MonoTime,
    /// By what its place in line goes.
    since: MonoTime,
    /// When it was told to come back.
    told: Option<Appointment>,
    /// Its refusals since it was admitted, by their places in the list of all.
    refused: Vec<usize>,
    pub(super) running: Running,
}

/// What a session has at the server.
#[derive(Debug)]
pub(super) enum Running {
    Nothing,
    Admitted(Box<Permit>),
    /// Nobody was asked.
    Passed,
}

impl Session {
    pub(super) fn all_of(scenario: &Scenario) -> Vec<Self> {
        let apps = scenario.apps.iter().enumerate();
        let mut next_key = 0_u64;
        let sessions = apps.flat_map(|(app, plan)| {
            let first_key = next_key;
            next_key = next_key.saturating_add(u64::from(plan.identities));
            let of_app = (first_key..next_key).cycle().map(IdentityKey);
            let rule = rule_key(scenario, app);
            let everywhere: Vec<usize> = (0..scenario.proxies).collect();
            let places = if plan.proxies.is_empty() { everywhere } else { plan.proxies.clone() };
            let places = places.into_iter().cycle();
            let sessions = (0..plan.sessions).zip(of_app).zip(places);
            sessions.map(move |((_, identity), proxy)| Self {
                app,
                proxy,
                rule,
                identity,
                is_shared: plan.identities < plan.sessions,
                digest: 0,
                rows: 0,
                issued: MonoTime::ZERO,
                first_tried: None,
                arrived: MonoTime::ZERO,
                begun: MonoTime::ZERO,
                pauses_until: MonoTime::ZERO,
                since: MonoTime::ZERO,
                told: None,
                refused: Vec::new(),
                running: Running::Nothing,
            })
        });
        sessions.collect()
    }
}

impl Session {
    fn line(&self) -> LineKey {
        (self.proxy, self.app, self.is_shared.then_some(self.identity))
    }
}

impl<'s> World<'s> {
    pub(super) fn session(&mut self, session: usize) -> Option<(&mut Session, &'s App, u64)> {
        let session = self.sessions.get_mut(session)?;
        let app = self.scenario.apps.get(session.app)?;
        let key = u64::try_from(session.app).ok()?;
        Some((session, app, key))
    }

    /// Has a session issue a statement at this time, or as soon as its app is active again.
    pub(super) fn plan_issue(&mut self, session: usize, at: MonoTime) {
        let Some((_, app, _)) = self.session(session) else { return };
        let window = app.active.iter().find(|window| at < window.to);
        if let Some(window) = window {
            self.agenda.add(at.max(window.from), Event::Issue { session });
        }
    }

    pub(super) fn issue(&mut self, index: usize) {
        let now = self.now;
        let Some((_, app, _)) = self.session(index) else { return };
        let statements = usize::try_from(app.transactions).unwrap_or(usize::MAX);
        self.spent.work(statements.checked_div(STATEMENTS_PER_STEP).unwrap_or_default());
        let mut rows = 0_u32;
        for _ in 0..app.transactions {
            rows = rows.saturating_add(self.clients.random_range(app.rows.min..=app.rows.max));
        }
        let digest = if app.digests > 1 { self.texts.random_range(0..app.digests) } else { 0 };
        let Some((session, app, _)) = self.session(index) else { return };
        let (line, former) = (session.line(), session.since);
        session.digest = digest;
        session.rows = rows;
        session.issued = now;
        // The pause is no wait in the queue: the longest wait begins when it is over.
        session.arrived = match app.rule.mode() {
            Mode::Enforce => session.pauses_until.max(now),
            Mode::Observe => now,
        };
        session.since = session.arrived;
        self.keep_appointment(index);
        self.lines.leave(line, former, index);
        let Some((session, ..)) = self.session(index) else { return };
        let arrived = session.arrived;
        if arrived > now {
            self.agenda.add(arrived, Event::Ask { session: index });
        } else {
            self.ask(index);
        }
    }

    /// It comes back as it was told, or too soon.
    fn keep_appointment(&mut self, index: usize) {
        let Some((session, ..)) = self.session(index) else { return };
        let (place, arrived, rule) = (session.proxy, session.arrived, session.rule);
        let told = session.told.take();
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        if let Some(told) = told {
            proxy.controller.come_back(told);
        }
        let contended = proxy.controller.is_contended();
        let Some((session, ..)) = self.session(index) else { return };
        match told.filter(|_| contended).map(|told| told.comes(arrived, rule)) {
            None | Some(Return::New) => {}
            Some(Return::Kept { since }) => session.since = since,
            Some(Return::Early { until }) => {
                session.arrived = until;
                session.since = until;
            }
        }
    }

    pub(super) fn ask(&mut self, index: usize) {
        let now = self.now;
        let Some((session, app, key)) = self.session(index) else { return };
        let (terms, gate) = match app.rule.effect {
            Effect::Passes => return self.begin_statement(index, Running::Passed),
            Effect::Denies(mode) => return self.denied(index, mode),
            Effect::Asks { terms, gate, speed: _ } => (terms, gate_key(gate)),
        };
        let request = Request {
            rule: session.rule,
            identity: session.identity,
            app: AppKey(key),
            digest: Some(digest_key(key, session.digest)),
            written: Some(written(app, key)),
            gate,
            terms,
            arrived: session.arrived,
            since: session.since,
        };
        let would_pause = session.pauses_until > now;
        let place = session.proxy;
        let (line, since) = (session.line(), session.since);
        self.lines.ask(line, since, index);
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        match proxy.controller.request(now, &request) {
            Decision::Admit(permit) => self.admitted(index, permit),
            Decision::Observed(permit, would_be) => {
                if would_be.is_some() || would_pause {
                    self.would_be_held(index);
                }
                self.admitted(index, permit);
            }
            Decision::Queue(ticket) => {
                proxy.waiting.insert(ticket, index);
            }
            Decision::Reject(refusal) => self.refused(index, refusal),
        }
        self.settle(place);
    }

    pub(super) fn resolved(&mut self, session: usize, outcome: Resolved) {
        match outcome {
            Resolved::Admit(permit) => self.admitted(session, permit),
            Resolved::Reject(refusal) => self.refused(session, refusal),
            Resolved::DecideAgain => self.agenda.add(self.now, Event::Ask { session }),
        }
    }

    fn admitted(&mut self, index: usize, permit: Permit) {
        self.begin_statement(index, Running::Admitted(Box::new(permit)));
    }

    pub(super) fn begin_statement(&mut self, index: usize, running: Running) {
        let now = self.now;
        let scenario = self.scenario;
        let Some((session, app, _)) = self.session(index) else { return };
        session.begun = now;
        session.running = running;
        let refusals = std::mem::take(&mut session.refused);
        let waited = now.saturating_since(session.issued);
        let refused_since = session.first_tried.take();
        let (number, place, rows) = (session.app, session.proxy, f64::from(session.rows));
        let (line, since) = (session.line(), session.since);
        let latency = app.latency.unwrap_or(scenario.latency).saturating_mul(app.transactions);
        let latency = match &scenario.service {
            None => latency,
            Some(service) => {
                let mean = app.latency.unwrap_or(service.per_statement);
                let works = mean.mul_f64(self.service.random_range(0.5..1.5));
                let works = works.saturating_mul(app.transactions);
                self.primary.takes(now, service.slots.at(now), works)
            }
        };
        let commits_at = self.primary.commits_at(now, rows, (&scenario.primary, self.end), latency);
        self.spent.keep(ADMITTED_BYTES);
        for refusal in refusals {
            if let Some(refused) = self.refused.get_mut(refusal) {
                refused.admitted_at = Some(now);
            }
        }
        for refusal in self.lines.admitted(line, since, index) {
            if let Some(refused) = self.refused.get_mut(refusal) {
                refused.turn_at = Some(now);
            }
        }
        self.note_begun(place, number);
        self.agenda.add(commits_at, Event::Commit { session: index });
        let in_all = refused_since.map_or(waited, |since| now.saturating_since(since));
        self.measure.admitted(now, number, rows, (waited, in_all));
    }

    pub(super) fn refused(&mut self, index: usize, refusal: Refusal) {
        let now = self.now;
        let place = self.refused.len();
        let Some((session, app, _)) = self.session(index) else { return };
        let (number, arrived) = (session.app, session.arrived);
        session.refused.push(place);
        session.first_tried.get_or_insert(session.issued);
        session.told = match app.rule.effect {
            Effect::Asks { terms, .. } => {
                let who = (session.rule, session.identity, &terms);
                Appointment::of(now, who, session.since, &refusal)
            }
            Effect::Passes | Effect::Denies(_) => None,
        };
        let (line, since, keeps) = (session.line(), session.since, session.told.is_some());
        if keeps {
            let before = self.lines.refused(line, (since, index), place);
            self.spent.work(before.checked_div(PLACES_PER_STEP).unwrap_or_default());
        } else {
            self.lines.leave(line, since, index);
        }
        let Refusal { reason, waited, retry_after, .. } = refusal;
        self.spent.keep(REFUSED_BYTES);
        self.refused.push(RefusedStatement {
            session: index,
            arrived,
            at: now,
            reason,
            waited,
            retry_after,
            admitted_at: None,
            heeds: app.comes_back_after.is_none(),
            turn_at: None,
        });
        self.measure.rejected(now, number, refusal.reason);
        let wait = app.comes_back_after.unwrap_or(retry_after);
        self.plan_issue(index, now.saturating_add(wait));
    }

    pub(super) fn commit(&mut self, index: usize) {
        let now = self.now;
        let Some((session, app, _)) = self.session(index) else { return };
        let running = std::mem::replace(&mut session.running, Running::Nothing);
        let server_time = now.saturating_since(session.begun);
        session.pauses_until = now.saturating_add(app.rule.pause(server_time));
        let (number, place) = (session.app, session.proxy);
        let phantom = u64::from(app.phantom_rows).saturating_mul(u64::from(app.transactions));
        let affected_rows = u64::from(session.rows).saturating_add(phantom);
        let reading = if affected_rows == 0 { server_time } else { Duration::ZERO };
        let outcome = Outcome { affected_rows, server_time, reading, error: false };
        let rows = f64::from(session.rows) * app.apply_cost;
        self.append(rows, Some(number));
        self.note_ended(place, number, server_time);
        self.measure.ended(now, number, server_time);
        match running {
            Running::Nothing | Running::Passed => {}
            Running::Admitted(permit) => {
                if let Some(proxy) = self.proxies.get_mut(place) {
                    proxy.controller.complete(now, *permit, outcome);
                }
                self.settle(place);
            }
        }
        let think = if app.think_time.is_zero() {
            app.think_time
        } else {
            app.think_time.mul_f64(self.clients.random_range(0.5..1.5))
        };
        self.plan_issue(index, now.saturating_add(think));
    }
}

/// Statements of a permit whose rows are drawn in a step.
const STATEMENTS_PER_STEP: usize = 16;
/// Places in line that are gone through in a step.
const PLACES_PER_STEP: usize = 16;
/// What is kept of an admission: three times, as numbers of seconds.
const ADMITTED_BYTES: usize = 3 * size_of::<f64>();
/// What is kept of a refusal: all of it, its number with its session, and its turn.
const REFUSED_BYTES: usize = size_of::<RefusedStatement>() + 64;

/// What an app writes into: a table of its own, or the one that it shares.
pub(super) fn written(app: &App, key: u64) -> Written {
    let table = app.table.as_ref().map_or(key, |table| table.number);
    Written { table: TableKey(table), kind: WriteKind::Insert }
}

/// Nor does any have the texts of another.
fn digest_key(app: u64, digest: u32) -> DigestKey {
    DigestKey(app | u64::from(digest) << u32::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_spread_over_the_identities_of_their_app_alone() {
        let scenario = Scenario::parse(
            "
name: identities
duration: 1s
primary: { writes_per_s: 1 }
replicas: [{ apply_per_s: 1 }]
apps:
  - { app: one, sessions: 2 }
  - { app: several, sessions: 4, identities: 3 }
  - { app: last, sessions: 1, identities: 5 }
",
        )
        .unwrap();
        let keys: Vec<u64> =
            Session::all_of(&scenario).iter().map(|session| session.identity.0).collect();
        assert_eq!(keys, [0, 0, 1, 2, 3, 1, 4]);
    }
}
