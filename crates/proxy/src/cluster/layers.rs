//! What is in force in a cluster: the file's policy, and the runtime rules that stand before it.
//!
//! Either may change without the other. Statements under way keep what they began with, and who
//! waits is judged again.

use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use policy::{
    ClusterPolicy, Likeness, Quarantine, QuarantineId, Quarantined, Rule, RunawayAction,
    RuntimeChange, UnixTime, limits_otherwise,
};

use super::{Cluster, starvation};
use crate::registry::Control;

/// A statement that has run away from its rule.
#[derive(Debug)]
pub(crate) struct Caught<'c> {
    pub(crate) likeness: Likeness,
    pub(crate) action: RunawayAction,
    pub(crate) app: &'c [u8],
    /// For how long its like is in quarantine.
    pub(crate) lasts: Duration,
}

/// When something is in quarantine, for people: by the wall clock as it goes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineTimes {
    /// When it came there.
    pub since: UnixTime,
    /// When it is free.
    pub until: UnixTime,
    /// How long that is yet.
    pub left: Duration,
}

impl Cluster {
    /// Puts another file's policy in force, behind the runtime rules that stand. Statements under
    /// way keep theirs, but for what they may take; waiters are judged again. What ran away from a rule
    /// that watches no more is free, for good. What its legs show has been put in force ahead of it.
    pub fn apply(self: &Arc<Self>, policy: Arc<ClusterPolicy>) {
        let changing = self.changing.lock();
        let running = self.policy();
        let is_limited_otherwise = limits_otherwise(&running.rules, &policy.rules)
            || policy.budgets.count_otherwise(&running.budgets);
        let quarantine = running.quarantine.under(&policy.rules, self.clock.now());
        let policy = if quarantine == Quarantine::default() {
            policy
        } else {
            Arc::new(policy.with_quarantine(quarantine))
        };
        if running.rules.made_at_runtime() == 0 {
            self.put_in_force(policy);
        } else {
            self.put_in_force(Arc::new(policy.behind_runtime_rules_of(&running)));
        }
        drop(changing);
        // It wakes everybody, so only for that.
        if is_limited_otherwise {
            self.registry.tell_all(Control::NewLimits);
        }
    }

    /// Has these runtime rules stand before the file's, or not any more. It takes as long as there
    /// are changes, however many rules stand.
    pub fn apply_runtime_changes(self: &Arc<Self>, changes: Vec<RuntimeChange>) {
        let changing = self.changing.lock();
        self.put_in_force(Arc::new(self.policy().with_runtime_changes(changes)));
        drop(changing);
    }

    /// Refuses what is like a statement of this rule for so long, from now on, or has it come last.
    /// `None`: that stands already, or must wait for the next that is caught, or its rule watches no
    /// more.
    pub(crate) fn quarantine(
        self: &Arc<Self>,
        rule: &Rule,
        caught: &Caught<'_>,
    ) -> Option<Arc<Quarantined>> {
        let &Caught { likeness, action, app, lasts } = caught;
        let changing = self.changing.lock();
        // Behind the lock, so that the newest stands last.
        let since = self.clock.now();
        let until = since.saturating_add(lasts);
        let running = self.policy();
        let quarantine = &running.quarantine;
        let entry = Quarantined {
            rule: rule.name.clone(),
            key: rule.key,
            likeness,
            action,
            app: app.into(),
            since,
            stood: Duration::ZERO,
            until,
        };
        if !quarantine.is_worth(&entry) {
            return None;
        }
        let quarantine = quarantine.with(entry).under(&running.rules, since);
        let entry = Arc::clone(quarantine.holds(rule.key, likeness, since)?);
        self.put_in_force(Arc::new(running.with_quarantine(quarantine)));
        drop(changing);
        Some(entry)
    }

    /// What is in quarantine.
    pub fn quarantined(&self) -> Vec<Arc<Quarantined>> {
        self.policy.load().quarantine.standing(self.clock.now()).cloned().collect()
    }

    /// When an entry of the quarantine came and ends, for people.
    pub fn times_of(&self, entry: &Quarantined) -> QuarantineTimes {
        let shown = |at: MonoTime| UnixTime(self.clock.unix_seconds_at(at));
        let left = entry.until.saturating_since(self.clock.now());
        let stood = i64::try_from(entry.stood.as_secs()).unwrap_or(i64::MAX);
        let since = UnixTime(shown(entry.since).0.saturating_sub(stood));
        QuarantineTimes { since, until: shown(entry.until), left }
    }

    /// Has stand what stood in the process before, as far as its rules watch for it: to be called before anybody is let in.
    pub fn restore_quarantine(self: &Arc<Self>, quarantine: Quarantine) {
        let changing = self.changing.lock();
        let policy = self.policy();
        let quarantine = quarantine.under(&policy.rules, self.clock.now());
        self.put_in_force(Arc::new(policy.with_quarantine(quarantine)));
        drop(changing);
    }

    /// Frees one entry of the quarantine. False: it is not there.
    pub fn free(self: &Arc<Self>, id: QuarantineId) -> bool {
        let changing = self.changing.lock();
        let running = self.policy();
        let freed = running.quarantine.without(id);
        let is_freed = freed.is_some();
        if let Some(quarantine) = freed {
            self.put_in_force(Arc::new(running.with_quarantine(quarantine)));
        }
        drop(changing);
        is_freed
    }

    /// Waits until something need not come last any more.
    pub(super) async fn lane_ends(&self) {
        let ends = self.policy.load().quarantine.lane_ends();
        match ends {
            Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
            None => std::future::pending().await,
        }
    }

    /// Has who stands in a line that is over judged again: those that come now do not stand in it, and
    /// would go ahead of them.
    pub(super) fn leave_lanes(self: &Arc<Self>) {
        let changing = self.changing.lock();
        let (running, now) = (self.policy(), self.clock.now());
        if running.quarantine.lane_ends().is_some_and(|ends| ends <= now) {
            let quarantine = running.quarantine.at(now);
            self.put_in_force(Arc::new(running.with_quarantine(quarantine)));
        }
        drop(changing);
    }

    fn put_in_force(self: &Arc<Self>, policy: Arc<ClusterPolicy>) {
        let config = policy.controller_config();
        let starvation = starvation::config(&policy);
        self.facts.follow(&self.policy.load(), &policy);
        self.latencies.follow(&policy);
        let before = self.policy.replace(policy.clone());
        let wall = self.rule_time();
        self.cut_overs.tell_of_rules((&before, wall), (&policy, wall));
        // What is left of the lines of before is dropped when the lock is free.
        drop(self.control(|controller, now| {
            let watch = controller.watch_starvation(now, starvation);
            (watch, controller.reconfigure(config, now))
        }));
        self.rule_changes.send_replace(());
        self.driver.notify_one();
    }
}
