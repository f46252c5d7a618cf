//! `speed` of a rule: the pauses that keep a session at a part of its own speed.
//!
//! Theory. What took the server `t` is followed by a pause of `t × (1/speed − 1)` before the next
//! admission of the session. The pause counts from the end of the work, so that a client that does
//! something else meanwhile has paid by that. It is a wait like the one in the queue, and before it:
//! nothing holds a place then, whatever ends a wait ends it, and when it is over the statement is
//! judged again. It is never an error: the queue's deadline begins behind it, and it lasts no longer
//! than `max_delay`; what is owed beyond that is forgiven.
//!
//! `t` is the time for which Sluice waited for the server's answer: not that in which a client took
//! its time to read it. Of an admitted transaction all of its statements count, and it is not paused
//! inside; else those that a rule with `speed` is about, reads too. The debt is the session's,
//! whichever of such rules it is to: who takes turns between two names does not get rid of it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use admission::{Appointment, Mode, RuleKey, RuleLimit, Speed};
use policy::{Action as RuleAction, Rule, identity_key};
use session::{Ask, Finished};
use tokio::time::Instant;

use super::Connection;
use crate::cluster::{PauseListed, Pausing, Settled, Waiter};

/// What a session owes to rules with `speed`.
#[derive(Debug, Default)]
pub(super) struct Debt {
    /// What is under way was asked for by such a rule.
    admitted: Option<Slow>,
    /// The time at the server of the transaction under way.
    worked: Duration,
    owed: Option<Owed>,
    /// By how much pauses were too long: timers are as coarse as a millisecond, and machines busy.
    credit: Duration,
    /// When it was told to come back, if it was refused.
    pub(super) told: Option<Appointment>,
}

/// Whoever was kept longer than that is not let off for all of it: it would come as a burst.
const CREDIT_MAX: Duration = Duration::from_millis(100);

/// A rule with `speed`.
#[derive(Clone, Copy, Debug)]
struct Slow {
    rule: RuleKey,
    speed: Speed,
    pause_max: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Owed {
    rule: RuleKey,
    speed: Speed,
    /// The end of the pause.
    until: Instant,
}

impl Slow {
    fn of(rule: &Rule) -> Option<Self> {
        if rule.speed.is_full() {
            return None;
        }
        match &rule.action {
            RuleAction::Throttle { terms, .. } => {
                Some(Self { rule: rule.key, speed: rule.speed, pause_max: terms.max_delay })
            }
            RuleAction::Exempt | RuleAction::Deny => None,
        }
    }
}

impl Debt {
    /// A statement is asked for: until its admission is over, its rule counts what is worked.
    pub(super) fn note_asked(&mut self, rule: &Rule) {
        self.admitted = Slow::of(rule);
    }

    /// A statement is over that took the server so long. `rule` is the one that was about it.
    /// Nothing is owed for a transaction before its end: what it has read and locked must not
    /// wait for that, whether the rest of it is asked for again or not.
    fn note_worked(&mut self, took: Duration, rule: Option<&Rule>, is_over: bool) {
        let Some(slow) = self.admitted.or_else(|| rule.and_then(Slow::of)) else { return };
        self.worked = self.worked.saturating_add(took);
        if !is_over {
            return;
        }
        self.admitted = None;
        let worked = std::mem::take(&mut self.worked);
        self.owe(slow, worked, Instant::now());
    }

    fn owe(&mut self, slow: Slow, worked: Duration, now: Instant) {
        let Slow { rule, speed, pause_max } = slow;
        // Time at the server pays nothing of what was owed when it began.
        let began = now.checked_sub(worked).unwrap_or(now);
        let owed = self.owed.map(|owed| owed.until.saturating_duration_since(began));
        let unpaid = owed.unwrap_or_default();
        let wanted = unpaid.saturating_add(speed.pause_after(worked));
        let pause = wanted.saturating_sub(self.credit).min(pause_max);
        self.credit = self.credit.saturating_sub(wanted);
        self.owed = now.checked_add(pause).map(|until| Owed { rule, speed, until });
    }

    /// Until when a statement of this rule has to wait. The debt to a rule of another speed by now
    /// is forgiven, and so is what is beyond the longest pause.
    fn due(&mut self, slow: Slow, now: Instant) -> Option<Instant> {
        let owed = self.owed?;
        let is_edited = owed.rule == slow.rule && owed.speed != slow.speed;
        if is_edited || owed.until <= now {
            self.owed = None;
            return None;
        }
        let until = owed.until.min(now.checked_add(slow.pause_max)?);
        self.owed = Some(Owed { until, ..owed });
        Some(until)
    }

    /// A pause that was to end then has ended.
    fn credit(&mut self, now: Instant) {
        if let Some(owed) = self.owed {
            let too_long = now.saturating_duration_since(owed.until);
            self.credit = self.credit.saturating_add(too_long).min(CREDIT_MAX);
        }
    }
}

/// Where a statement waits at its admission point.
pub(super) enum Place {
    InQueue(Waiter),
    Pausing(Pause),
}

impl Place {
    /// How the wait ends of itself. A pause ends with the question that it was before.
    ///
    /// # Cancellation
    /// Safe, as for [`Waiter::settled`].
    pub(super) async fn settled(&mut self) -> Settled {
        match self {
            Self::InQueue(waiter) => waiter.settled().await,
            Self::Pausing(pause) => {
                pause.over.as_mut().await;
                Settled::JudgeAgain
            }
        }
    }
}

/// A pause.
pub(super) struct Pause {
    pub(super) since: Instant,
    /// Boxed: nobody else pays for the timer.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// For people.
    _listed: PauseListed,
}

impl Connection {
    /// The pause that stands before this statement, if there is one.
    pub(super) fn pause(&mut self, asked: &Ask) -> Option<Pause> {
        let rule = self.policy.rule(asked.rule?)?;
        let slow = Slow::of(rule)?;
        // Its time in the queue has begun: a pause must not use that up.
        if self.leaving.refuses() || self.admission.has_been_asked_for() {
            return None;
        }
        let now = Instant::now();
        if self.admission.has_paused() {
            self.debt.credit(now);
        }
        let until = self.debt.due(slow, now)?;
        self.admission.note_pause();
        match rule.mode {
            Mode::Observe => None,
            Mode::Enforce => {
                let listed = self.list_pause(asked, rule, Some(RuleLimit::Speed), until);
                Some(self.pause_until(until, now, listed))
            }
        }
    }

    /// Lists a pause before this statement for as long as it lasts.
    pub(super) fn list_pause(
        &self,
        asked: &Ask,
        rule: &Rule,
        limit: Option<RuleLimit>,
        until: Instant,
    ) -> PauseListed {
        let (app, cluster) = (self.session.app(), &self.shared.cluster);
        let since = cluster.now();
        let lasts = until.saturating_duration_since(Instant::now());
        cluster.pauses.list(Pausing {
            rule: rule.key,
            identity: identity_key(rule, app),
            app,
            introduction: self.introduction(asked),
            since,
            until: since.saturating_add(lasts),
            limit,
        })
    }

    pub(super) fn pause_until(&self, until: Instant, since: Instant, listed: PauseListed) -> Pause {
        let mut changes = self.shared.cluster.rule_changes();
        // One that came before is not told of any more.
        let changed = self.shared.cluster.newer_policy(&self.policy).is_some();
        let over = Box::pin(async move {
            if changed {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                _ = changes.changed() => {}
            }
        });
        Pause { since, over, _listed: listed }
    }

    /// Nobody waits any more in a drain: the controller says what becomes of whoever waits.
    pub(super) fn end_pause(&mut self, place: &mut Place) {
        if let Place::Pausing(pause) = place {
            pause.over = Box::pin(std::future::ready(()));
        }
    }

    /// What a command that is over has taken is to be paid for.
    pub(super) fn note_worked(&mut self, finished: &Finished) {
        let rule = finished.statement.and_then(|statement| statement.rule);
        let rule = rule.and_then(|index| self.policy.rule(index));
        let is_over = finished.admission_over && !self.session.in_transaction();
        self.debt.note_worked(self.timing.backend, rule, is_over);
    }
}
