//! Which rules are in force changes with the wall clock: one expires, a schedule begins or ends.

use policy::{ClusterPolicy, UnixTime};

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

    /// Whether other rules are in force now. The clock may jump, in both directions.
    pub(super) fn look(&mut self, policy: &ClusterPolicy, now: UnixTime) -> bool {
        let due = self.next.is_some_and(|next| next <= now) || now < self.looked_at;
        self.next = policy.rules.next_change_after(now);
        if !due {
            return false;
        }
        policy.rules.changes_between(std::mem::replace(&mut self.looked_at, now), now)
    }

    /// Whether time alone can change anything.
    pub(super) fn can_change(&self) -> bool {
        self.next.is_some()
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
        times.filter(|time| rule_clock.look(&policy, UnixTime(*time))).collect()
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
