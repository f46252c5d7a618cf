//! Which rules are in force changes with the wall clock: one expires, a schedule begins or ends.
//!
//! Rules that were made at runtime stand by the clock that does not jump, and their ends are only
//! named by the wall clock. So all rules are judged by a time that goes on steadily, and follows a
//! jump when those ends have been named anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use admission::MonoTime;
use policy::{ClusterPolicy, Rule, Standing, UnixTime};

use super::Cluster;
use crate::clock::Clock;

/// Rules that are told of at once; of more their number.
const LOGGED_MAX: usize = 20;

/// The time by which rules are judged.
#[derive(Debug)]
pub(super) struct RuleTime {
    /// What the wall clock is ahead of the cluster's by, as it was followed last.
    offset_ms: AtomicI64,
}

impl RuleTime {
    pub(super) fn new(clock: &Clock) -> Self {
        let time = Self { offset_ms: AtomicI64::new(0) };
        time.follow(clock.now(), clock.unix_ms());
        time
    }

    fn at(&self, now: MonoTime) -> UnixTime {
        let unix_ms = milliseconds(now).saturating_add(self.offset_ms.load(Ordering::Relaxed));
        UnixTime(unix_ms.div_euclid(1_000))
    }

    fn follow(&self, now: MonoTime, unix_ms: i64) {
        self.offset_ms.store(unix_ms.saturating_sub(milliseconds(now)), Ordering::Relaxed);
    }

    fn follow_back(&self, now: MonoTime, unix_ms: i64) {
        self.offset_ms.fetch_min(unix_ms.saturating_sub(milliseconds(now)), Ordering::Relaxed);
    }
}

fn milliseconds(at: MonoTime) -> i64 {
    i64::try_from(at.as_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

impl Cluster {
    /// Has who waits judged again where time has put other rules in force. An edit does not come in
    /// between: the controller would be given the policy of before behind it, and keep that.
    pub(super) fn follow_rule_clock(self: &Arc<Self>, rule_clock: &mut RuleClock, wall: UnixTime) {
        let Some(before) = rule_clock.look(&self.policy(), wall) else { return };
        let changing = self.changing.lock();
        let policy = self.policy();
        log(&policy, before, wall);
        self.cut_overs.tell_of_rules((&policy, before), (&policy, wall));
        let config = policy.controller_config();
        drop(self.control(|controller, now| controller.reconfigure(config, now)));
        drop(changing);
        self.rule_changes.send_replace(());
    }

    /// The time by which its rules are judged now.
    pub fn rule_time(&self) -> UnixTime {
        self.rule_time_at(self.clock.now())
    }

    pub(crate) fn rule_time_at(&self, now: MonoTime) -> UnixTime {
        self.rule_time.at(now)
    }

    /// Judges rules by the wall clock as it is at `now`. For whoever keeps its runtime rules, when
    /// their ends are named by that.
    pub fn follow_wall_clock(&self, now: MonoTime, unix_ms: i64) {
        self.rule_time.follow(now, unix_ms);
    }

    /// The same if it was set back: before ends are named by it, which have passed by the one before.
    pub fn follow_wall_clock_back(&self, now: MonoTime, unix_ms: i64) {
        self.rule_time.follow_back(now, unix_ms);
    }

    /// The time of its rules, which follow the wall clock as it is where nobody keeps runtime rules.
    pub(super) fn pass_rule_time(&self) -> UnixTime {
        if self.rule_keeper.get().is_none() {
            self.follow_wall_clock(self.clock.now(), self.clock.unix_ms());
        }
        self.rule_time()
    }
}

/// Notices that other rules are in force than when it last looked.
#[derive(Debug)]
pub(super) struct RuleClock {
    looked_at: UnixTime,
    /// Nothing can have changed before. `None`: nothing can change at all.
    next: Option<UnixTime>,
}

impl RuleClock {
    pub(super) fn new(policy: &ClusterPolicy, now: UnixTime) -> Self {
        Self { looked_at: now, next: policy.rules.next_change_after(now) }
    }

    /// Whether other rules are in force now than at the time that it gives. The clock may jump, in
    /// both directions.
    pub(super) fn look(&mut self, policy: &ClusterPolicy, now: UnixTime) -> Option<UnixTime> {
        let due = self.next.is_some_and(|next| next <= now) || now < self.looked_at;
        self.next = policy.rules.next_change_after(now);
        if !due {
            return None;
        }
        let before = std::mem::replace(&mut self.looked_at, now);
        policy.rules.changes_between(before, now).then_some(before)
    }

    /// Whether time alone can change anything.
    pub(super) fn can_change(&self) -> bool {
        self.next.is_some()
    }
}

/// The rules that stand otherwise now than before, with how.
fn changed(
    policy: &ClusterPolicy,
    before: UnixTime,
    now: UnixTime,
) -> impl Iterator<Item = (&Rule, Standing)> {
    policy.rules.changed_between(before, now).map(move |rule| (rule, rule.standing(now)))
}

/// Those that people are told of. A rule that was made at runtime is in force from then on: where the
/// clock was set back its end has another name.
fn told(
    policy: &ClusterPolicy,
    before: UnixTime,
    now: UnixTime,
) -> impl Iterator<Item = (&Rule, Standing)> {
    let is_told = |(rule, standing): &(&Rule, Standing)| {
        rule.author.is_none() || *standing != Standing::InForce
    };
    changed(policy, before, now).filter(is_told)
}

/// A line for each rule that time has put in force or out of it.
pub(super) fn log(policy: &ClusterPolicy, before: UnixTime, now: UnixTime) {
    let cluster = &policy.name;
    let mut count = 0_usize;
    for (rule, standing) in told(policy, before, now) {
        count = count.saturating_add(1);
        if count > LOGGED_MAX {
            continue;
        }
        let Rule { name, reason, .. } = rule;
        match standing {
            Standing::Expired => tracing::info!(
                %cluster, rule = %name, ?reason, "a rule has expired; it decides nothing any more"
            ),
            Standing::InForce => {
                tracing::info!(%cluster, rule = %name, ?reason, "a rule is in force from now on");
            }
            Standing::OffSchedule => {
                tracing::info!(%cluster, rule = %name, ?reason, "a rule's schedule has ended");
            }
        }
    }
    let further = count.saturating_sub(LOGGED_MAX);
    if further > 0 {
        tracing::info!(%cluster, further, "and more rules");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const NOON: i64 = 12 * 3_600;

    fn policy(rules: &str) -> Arc<ClusterPolicy> {
        let text = format!(
            "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} \
             }}\nrules:\n{rules}"
        );
        policy::load(&text).unwrap().clusters[0].clone()
    }

    /// The times of `times` at which other rules are in force.
    fn changes(rules: &str, times: &[i64]) -> Vec<i64> {
        let policy = policy(rules);
        let mut rule_clock = RuleClock::new(&policy, UnixTime(times[0]));
        let times = times.iter().copied();
        times.filter(|time| rule_clock.look(&policy, UnixTime(*time)).is_some()).collect()
    }

    #[test]
    fn a_schedule_that_begins_or_ends_is_noticed_once() {
        let rules = "  - { name: r, permanent: true, schedule: { hours: \"12:00-12:02\" } }\n";
        let every_half_minute: Vec<i64> = (0..12).map(|n| NOON - 120 + 30 * n).collect();
        assert_eq!(changes(rules, &every_half_minute), [NOON, NOON + 120]);
        assert_eq!(
            changes(rules, &[NOON - 1, NOON + 7_200]),
            [0; 0],
            "it was asleep for all of it"
        );
    }

    #[test]
    fn a_rule_that_expires_is_noticed_at_its_second() {
        let rules = "  - { name: r, expires_at: 1970-01-01T12:00:01Z }\n";
        assert_eq!(changes(rules, &[NOON - 1, NOON, NOON + 1, NOON + 2]), [NOON + 1]);
    }

    #[test]
    fn what_is_told_is_what_time_has_changed() {
        let rules = "  - { name: a, expires_at: 1970-01-01T12:00:01Z }\n  \
            - { name: b, permanent: true, schedule: { hours: \"12:00-12:02\" } }\n  \
            - { name: c, permanent: true }\n";
        let policy = policy(rules);
        let told = |before, now| -> Vec<String> {
            let told = changed(&policy, UnixTime(before), UnixTime(now));
            told.map(|(rule, standing)| format!("{} {}", rule.name, standing.as_str())).collect()
        };
        assert_eq!(told(NOON - 1, NOON), ["b in force"]);
        assert_eq!(told(NOON, NOON + 1), ["a expired"]);
        assert_eq!(told(NOON, NOON + 120), ["a expired", "b not in force (schedule)"]);
        assert_eq!(told(NOON + 5, NOON - 5), ["a in force", "b not in force (schedule)"]);
    }

    /// Each of them was said to be in force from then on.
    #[test]
    fn of_rules_made_at_runtime_a_clock_that_jumps_back_tells_nothing() {
        let spec = policy::RuntimeSpec {
            name: "runtime:etl".to_owned(),
            app: Some("etl".to_owned()),
            user: None,
            classes: Vec::new(),
            effect: policy::RuntimeEffect::Hold,
            reason: String::new(),
            made_at_ms: 0,
        };
        let rule = policy::RuntimeRule::new(spec, "ann".into(), UnixTime(NOON)).unwrap();
        let stands = policy::RuntimeChange::Stands(rule);
        let policy = policy("  - { name: r, permanent: true }\n").with_runtime_changes([stands]);
        let told = |before, now| -> Vec<String> {
            let told = told(&policy, UnixTime(before), UnixTime(now));
            told.map(|(rule, standing)| format!("{} {}", rule.name, standing.as_str())).collect()
        };
        assert_eq!(told(NOON + 3_600, NOON - 60), [""; 0]);
        assert_eq!(told(NOON - 60, NOON), ["runtime:etl expired"]);
    }

    #[test]
    fn a_clock_that_jumps_back_is_noticed() {
        let rules = "  - { name: r, permanent: true, schedule: { hours: \"12:00-13:00\" } }\n";
        assert_eq!(changes(rules, &[NOON + 90, NOON - 600, NOON - 500]), [NOON - 600]);
    }

    #[test]
    fn without_expiry_and_schedule_nothing_is_waited_for() {
        let policy = policy("  - { name: r, permanent: true }\n");
        assert!(!RuleClock::new(&policy, UnixTime(0)).can_change());
    }
}
