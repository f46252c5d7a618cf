//! The sessions: they ask, wait, write, think.

use admission::{
    AppKey, Decision, DigestKey, IdentityKey, MonoTime, Outcome, Permit, Refusal, Request,
    Resolved, RuleKey, Terms,
};
use rand::RngExt as _;

use super::agenda::Event;
use super::{GATE, World};
use crate::{App, Scenario};

/// A session with its statement.
#[derive(Debug)]
pub(super) struct Session {
    app: usize,
    identity: IdentityKey,
    rows: u32,
    arrived: MonoTime,
    begun: MonoTime,
    /// While the statement runs.
    permit: Option<Permit>,
}

impl Session {
    pub(super) fn all_of(scenario: &Scenario) -> Vec<Self> {
        let apps = scenario.apps.iter().enumerate();
        let mut next_key = 0_u64;
        let sessions = apps.flat_map(|(app, plan)| {
            let first_key = next_key;
            next_key = next_key.saturating_add(u64::from(plan.identities));
            let of_app = (first_key..next_key).cycle().map(IdentityKey);
            (0..plan.sessions).zip(of_app).map(move |(_, identity)| Self {
                app,
                identity,
                rows: 0,
                arrived: MonoTime::ZERO,
                begun: MonoTime::ZERO,
                permit: None,
            })
        });
        sessions.collect()
    }
}

impl<'s> World<'s> {
    fn session(&mut self, session: usize) -> Option<(&mut Session, &'s App, u64)> {
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
        let mut rows = 0_u32;
        for _ in 0..app.transactions {
            rows = rows.saturating_add(self.clients.random_range(app.rows.min..=app.rows.max));
        }
        if let Some((session, ..)) = self.session(index) {
            session.rows = rows;
            session.arrived = now;
        }
        self.ask(index);
    }

    pub(super) fn ask(&mut self, index: usize) {
        let now = self.now;
        let Some((session, app, key)) = self.session(index) else { return };
        let request = Request {
            rule: RuleKey(key),
            identity: session.identity,
            app: AppKey(key),
            digest: Some(DigestKey(key)),
            gate: GATE,
            terms: Terms {
                ratio: app.ratio,
                weight: app.weight,
                max_delay: app.max_delay,
                ..Terms::default()
            },
            arrived: session.arrived,
        };
        match self.controller.request(now, &request) {
            Decision::Admit(permit) | Decision::Observed(permit, _) => {
                self.begin_statement(index, permit)
            }
            Decision::Queue(ticket) => {
                self.waiting.insert(ticket, index);
            }
            Decision::Reject(refusal) => self.refused(index, refusal),
        }
        self.settle();
    }

    pub(super) fn resolved(&mut self, session: usize, outcome: Resolved) {
        match outcome {
            Resolved::Admit(permit) => self.begin_statement(session, permit),
            Resolved::Reject(refusal) => self.refused(session, refusal),
            Resolved::DecideAgain => self.agenda.add(self.now, Event::Ask { session }),
        }
    }

    fn begin_statement(&mut self, index: usize, permit: Permit) {
        let now = self.now;
        let scenario = self.scenario;
        let waited = permit.waited();
        let Some((session, app, _)) = self.session(index) else { return };
        session.begun = now;
        session.permit = Some(permit);
        let (number, rows) = (session.app, f64::from(session.rows));
        let latency = scenario.latency.saturating_mul(app.transactions);
        let commits_at = self.primary.commits_at(now, rows, &scenario.primary, latency);
        self.agenda.add(commits_at, Event::Commit { session: index });
        self.measure.admitted(now, number, rows, waited);
    }

    fn refused(&mut self, index: usize, refusal: Refusal) {
        let now = self.now;
        let Some((session, ..)) = self.session(index) else { return };
        let app = session.app;
        self.measure.rejected(now, app);
        self.plan_issue(index, now.saturating_add(refusal.retry_after));
    }

    pub(super) fn commit(&mut self, index: usize) {
        let now = self.now;
        let Some((session, app, _)) = self.session(index) else { return };
        let Some(permit) = session.permit.take() else { return };
        let outcome = Outcome {
            affected_rows: u64::from(session.rows),
            server_time: now.saturating_since(session.begun),
            error: false,
        };
        let rows = f64::from(session.rows);
        self.append(rows);
        self.controller.complete(now, permit, outcome);
        self.settle();
        let think = if app.think_time.is_zero() {
            app.think_time
        } else {
            app.think_time.mul_f64(self.clients.random_range(0.5..1.5))
        };
        self.plan_issue(index, now.saturating_add(think));
    }
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
