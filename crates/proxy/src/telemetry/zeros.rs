//! Series that are there before their first event: a counter that appears with the value 1 has not
//! increased, says `rate()`, and the first refusal of a night is lost.
//!
//! Of labels that clients choose only those are known ahead that a rule names. Their number is
//! bounded: beyond the bounds, series appear with their first event as before.

use admission::Reason;
use policy::{Action, Config, Gated, Rule};
use sql::Class;

use super::{
    BackendErrorKind, ConnectionRefusal, KillOutcome, StatementDecision, Telemetry, mode_label,
};

/// Rules of one cluster whose statements are counted from 0 on. Each has up to five series for each
/// app that it names.
const RULES_MAX: usize = 200;

/// Apps of one rule that are counted from 0 on.
const APPS_MAX: usize = 8;

/// What a check may come to, as `sluice_checks_total` has it.
const CHECK_RESULTS: [&str; 3] = ["passed", "ratio", "gate"];

impl Telemetry {
    /// Makes the series of a configuration that are known ahead.
    pub(super) fn begin_at_zero(&self, config: &Config) {
        let families = &self.families;
        self.begin_guards_at_zero(config);
        for cluster in &config.clusters {
            let name = &*cluster.name;
            families.client_connections.with_label_values(&[name]);
            families.faults.with_label_values(&[name]);
            for kind in BackendErrorKind::ALL {
                families.backend_errors.with_label_values(&[name, kind.as_str()]);
            }
            for reason in ConnectionRefusal::ALL {
                families.connections_refused.with_label_values(&[name, reason.as_str()]);
            }
            for outcome in KillOutcome::ALL {
                families.kills.with_label_values(&[name, outcome.as_str()]);
            }
            for rule in cluster.rules.iter() {
                families.rule_hits.with_label_values(&[&*rule.name]);
            }
            for rule in cluster.rules.iter().take(RULES_MAX) {
                self.begin_rule_at_zero(name, rule);
            }
        }
    }

    /// What is counted of the apps that a rule names.
    fn begin_rule_at_zero(&self, cluster: &str, rule: &Rule) {
        let class = representative_class(rule).as_str();
        let mode = mode_label(rule.mode);
        for app in rule.condition.apps().take(APPS_MAX) {
            // Half of the labels are for apps that no rule names.
            if self.apps.is_half_full() {
                return;
            }
            let app = self.app_label(app);
            let statements = |decision: StatementDecision, reason: &str| {
                let labels = [cluster, &*rule.name, &*app, class, decision.as_str(), reason, mode];
                self.families.statements.with_label_values(&labels);
            };
            statements(StatementDecision::Admitted, "");
            for reason in usual_reasons(rule) {
                statements(StatementDecision::Rejected, reason.as_str());
            }
            if throws_dice(rule) {
                for result in CHECK_RESULTS {
                    let labels = [cluster, &*rule.name, &*app, result];
                    self.families.checks.with_label_values(&labels);
                }
            }
        }
    }
}

/// The class whose statements a rule meets most: writes, where it can hold them.
fn representative_class(rule: &Rule) -> Class {
    let mut covered = Class::ALL.into_iter().filter(|class| rule.statements.contains(*class));
    if rule.statements.contains(Class::Write) {
        Class::Write
    } else {
        covered.next().unwrap_or(Class::Write)
    }
}

/// Why statements under a rule are refused, as a rule.
fn usual_reasons(rule: &Rule) -> Vec<Reason> {
    match rule.action {
        Action::Exempt | Action::Throttle { gated: Gated::No, .. } => Vec::new(),
        Action::Deny => vec![Reason::Deny],
        Action::Throttle { terms, gated: Gated::Yes, .. } if terms.hold => vec![Reason::Hold],
        Action::Throttle { terms, gated: Gated::Yes, .. } => {
            let mut reasons = vec![Reason::GateClosed, Reason::NoData, Reason::Paced];
            if terms.ratio.as_f64() > 0.0 {
                reasons.push(Reason::Ratio);
            }
            reasons
        }
    }
}

fn throws_dice(rule: &Rule) -> bool {
    match rule.action {
        Action::Throttle { gated: Gated::Yes, .. } => true,
        Action::Exempt | Action::Deny | Action::Throttle { gated: Gated::No, .. } => false,
    }
}
