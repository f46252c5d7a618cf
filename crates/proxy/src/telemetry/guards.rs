//! What guards have said.

use policy::{Config, GuardMode, RunawayAction};

use super::Telemetry;

impl Telemetry {
    /// A guard objects to a statement of this cluster.
    pub fn guard_hit(&self, cluster: &str, guard: &str, check: &str, mode: GuardMode) {
        self.families.guard_hits.with_label_values(&[cluster, guard, check, mode.as_str()]).inc();
    }

    /// A guard could not judge a statement of this cluster.
    pub fn guard_unjudged(&self, cluster: &str, guard: &str, check: &str) {
        self.families.guard_unjudged.with_label_values(&[cluster, guard, check]).inc();
    }

    /// How many statements of this cluster a check has objected to, and how many it could not judge,
    /// since the process started.
    pub fn guard_counts(
        &self,
        cluster: &str,
        guard: &str,
        (check, mode): (&str, GuardMode),
    ) -> (u64, u64) {
        let of = [cluster, guard, check, mode.as_str()];
        let hits = self.families.guard_hits.with_label_values(&of);
        let unjudged = self.families.guard_unjudged.with_label_values(&[cluster, guard, check]);
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
        for cluster in &config.clusters {
            for guard in cluster.guards.iter() {
                for check in guard.checks() {
                    // A series is there from when it is asked for.
                    self.guard_counts(&cluster.name, &guard.name, check);
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::TelemetryConfig;

    #[test]
    fn what_a_guard_has_met_is_of_the_cluster_in_which_it_was() {
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 1 });
        telemetry.guard_hit("a", "where", "where_required", GuardMode::Deny);
        telemetry.guard_unjudged("b", "where", "where_required");
        let of =
            |cluster| telemetry.guard_counts(cluster, "where", ("where_required", GuardMode::Deny));
        assert_eq!([of("a"), of("b")], [(1, 0), (0, 1)]);
    }
}
