//! What guards have said.

use policy::{Config, Guard, GuardMode, RunawayAction};

use super::Telemetry;

impl Telemetry {
    /// A guard objects to a statement.
    pub fn guard_hit(&self, guard: &str, check: &str, mode: GuardMode) {
        self.families.guard_hits.with_label_values(&[guard, check, mode.as_str()]).inc();
    }

    /// A guard could not judge a statement.
    pub fn guard_unjudged(&self, guard: &str, check: &str) {
        self.families.guard_unjudged.with_label_values(&[guard, check]).inc();
    }

    /// How many statements this check has objected to, and how many it could not judge, since the
    /// process started: of all clusters that have the guard.
    pub fn guard_counts(&self, guard: &str, check: &str, mode: GuardMode) -> (u64, u64) {
        let hits = self.families.guard_hits.with_label_values(&[guard, check, mode.as_str()]);
        let unjudged = self.families.guard_unjudged.with_label_values(&[guard, check]);
        (hits.get(), unjudged.get())
    }

    /// What became of the question how many rows the server expects to read.
    pub(crate) fn guard_explain(&self, cluster: &str, result: &str) {
        self.families.guard_explains.with_label_values(&[cluster, result]).inc();
    }

    /// A statement has run away from this rule: `log`, `kill`, `deprioritise`, `left` where it commits,
    /// `failed`.
    pub fn runaway(&self, rule: &str, action: &str) {
        self.families.runaway.with_label_values(&[rule, action]).inc();
    }

    /// Makes the series of the guards of a configuration. Their names are the file's, and their
    /// number is bounded there.
    pub(super) fn begin_guards_at_zero(&self, config: &Config) {
        let guards = config.clusters.iter().flat_map(|cluster| cluster.guards.iter());
        let checks = guards.flat_map(|guard: &Guard| {
            guard.checks().map(|(check, mode)| (&*guard.name, check, mode))
        });
        for (guard, check, mode) in checks {
            self.families.guard_hits.with_label_values(&[guard, check, mode.as_str()]);
            self.families.guard_unjudged.with_label_values(&[guard, check]);
        }
        for rule in config.clusters.iter().flat_map(|cluster| cluster.rules.iter()) {
            let action = match rule.runaway.map(|runaway| runaway.action) {
                Some(action) => RunawayAction::as_str(action),
                None => continue,
            };
            self.families.runaway.with_label_values(&[&*rule.name, action]);
        }
    }
}
