//! What the controller tells the watch for starvation, and what that says. See
//! [`crate::starvation`].

use super::Controller;
use crate::decision::{Account, Decision};
use crate::gate::Gate;
use crate::starvation::{
    AppShare, AppShareKey, Blocked, Census, Passage, Starvation, StarvationConfig, Starved,
};
use crate::{AppKey, IdentityKey, Mode, MonoTime, Reason, Request, RuleKey};

/// What a watch had seen that is over: only to be dropped, which takes its time.
#[derive(Debug)]
pub struct FormerWatch {
    _watch: Option<Starvation>,
}

impl Controller {
    /// Watches for starvation by these limits from now on; `None`: not at all. Told the same again,
    /// it goes on with what it has seen; else it begins anew, and gives what it had seen to be
    /// dropped, as [`Controller::reconfigure`] does.
    pub fn watch_starvation(
        &mut self,
        now: MonoTime,
        config: Option<StarvationConfig>,
    ) -> FormerWatch {
        let now = self.tick(now);
        if self.starvation.as_ref().map(Starvation::config) == config {
            return FormerWatch { _watch: None };
        }
        let mut watch = config.map(|config| Starvation::new(config, now));
        std::mem::swap(&mut self.starvation, &mut watch);
        FormerWatch { _watch: watch }
    }

    /// Who is starved, those first that were blocked longest; at most [`crate::STARVED_MAX`]. It
    /// looks at everybody who is watched: under a lock, take it in pieces.
    #[must_use]
    pub fn starved(&self, now: MonoTime) -> Vec<Starved> {
        let mut census = Census::default();
        while self.look_for_starved(now, &mut census) {}
        census.into_starved()
    }

    /// Looks at the next few hundred of those who are watched, with the census that holds what was
    /// found before. Whether there are more.
    pub fn look_for_starved(&self, now: MonoTime, census: &mut Census) -> bool {
        let now = self.clock.max(now);
        self.starvation.as_ref().is_some_and(|watch| watch.look(now, census))
    }

    /// Who asks in vain now, starved or not, in order of rule and identity, from behind `after` on.
    /// Nobody while starvation is not watched for.
    pub fn blocked_after(
        &self,
        now: MonoTime,
        after: Option<(RuleKey, IdentityKey)>,
    ) -> impl Iterator<Item = Blocked> + '_ {
        let now = self.clock.max(now);
        self.starvation.iter().flat_map(move |watch| watch.blocked_after(now, after))
    }

    /// A statement passed that never asks, while [`Controller::is_contended`].
    pub fn handle_passed(
        &mut self,
        now: MonoTime,
        passage: Passage,
        rule: Option<RuleKey>,
        app: AppKey,
    ) {
        let now = self.tick(now);
        if let Some(watch) = &mut self.starvation {
            watch.passed(now, (passage, rule, Some(app)));
        }
    }

    /// Whether statements are held back: somebody waits, or would have to.
    #[must_use]
    pub fn is_contended(&self) -> bool {
        let shut = |gate: &Gate| gate.has_signals() && gate.open_since().is_none();
        self.queue.len() > 0 || self.gates.values().any(shut)
    }

    /// Whether starvation is watched for.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.starvation.is_some()
    }

    /// Whether what is admitted now is counted, because somebody is blocked meanwhile.
    #[must_use]
    pub fn is_anybody_blocked(&self, now: MonoTime) -> bool {
        self.starvation.as_ref().is_some_and(|watch| watch.is_anybody_blocked(self.clock.max(now)))
    }

    /// The identities and the apps that [`Controller::starved`] may name yet: their names are to be
    /// kept.
    #[must_use]
    pub fn watched(&self) -> (Vec<IdentityKey>, Vec<AppKey>) {
        let Some(watch) = &self.starvation else { return (Vec::new(), Vec::new()) };
        let (identities, apps) = watch.known();
        (identities.collect(), apps.collect())
    }

    pub(super) fn watch_decision(&mut self, now: MonoTime, request: &Request, made: &Decision) {
        let Some(watch) = &mut self.starvation else { return };
        match made {
            Decision::Queue(_) => watch.queued(now, request),
            Decision::Reject(refusal) => watch.refused(now, request, refusal.reason),
            // Whoever gives a permit has said so.
            Decision::Admit(_) | Decision::Observed(..) => {}
        }
    }

    pub(super) fn watch_admitted(&mut self, now: MonoTime, request: &Request) {
        if let Some(watch) = &mut self.starvation {
            watch.admitted(now, request);
        }
    }

    pub(super) fn watch_refused(&mut self, now: MonoTime, request: &Request, reason: Reason) {
        if let Some(watch) = &mut self.starvation {
            watch.refused(now, request, reason);
        }
    }

    /// A statement is admitted that asked. What it is put down for, if others contended with it:
    /// what such statements are known to write, without prudence; else 0.
    pub(super) fn watch_shared(&mut self, now: MonoTime, request: &Request) -> f64 {
        if self.starvation.is_none() {
            return 0.0;
        }
        let known = self.known(request);
        let Some(watch) = &mut self.starvation else { return 0.0 };
        match request.terms.mode {
            Mode::Enforce if watch.is_shared(now, request) => {}
            Mode::Enforce | Mode::Observe => return 0.0,
        }
        watch.shared(now, request, known);
        known
    }

    /// A check was won of a client that writes around Sluice. Of an app that passes here too, its
    /// statements count.
    pub(super) fn watch_promised(&mut self, now: MonoTime, request: &Request, cost: Option<f64>) {
        let Some(cost) = cost.filter(|_| !self.promises.comes_through(now, request.app)) else {
            return;
        };
        if let Some(watch) = &mut self.starvation
            && watch.is_shared(now, request)
        {
            watch.shared(now, request, cost);
        }
    }

    /// A statement that runs has written so many rows by now: never fewer than it was put down for.
    pub(super) fn watch_charged(&mut self, now: MonoTime, account: &mut Account, rows: f64) {
        if account.shared > 0.0 && rows > account.shared {
            self.watch_settled(now, account, rows);
            account.shared = rows;
        }
    }

    /// A statement has written so many rows in all.
    pub(super) fn watch_settled(&mut self, now: MonoTime, account: &Account, rows: f64) {
        if let Some(watch) = self.starvation.as_mut().filter(|_| account.shared > 0.0) {
            watch.settled(now, (account.gate, account.lane), rows - account.shared);
        }
    }

    /// The next apps that contend, or did within the last minute, and what they received of their
    /// fair share of late, from behind `after` on: so many at most.
    pub fn app_shares_after(
        &mut self,
        now: MonoTime,
        after: Option<AppShareKey>,
        most: usize,
    ) -> Vec<AppShare> {
        let now = self.tick(now);
        let watch = self.starvation.as_mut();
        watch.map_or_else(Vec::new, |watch| watch.app_shares(now, after, most))
    }

    pub(super) fn watch_left(&mut self, now: MonoTime, request: &Request) {
        if let Some(watch) = &mut self.starvation {
            watch.left(now, request);
        }
    }
}
