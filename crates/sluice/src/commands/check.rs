//! `sluice check`: is the file good, and what does it say?

use std::io::{self, Write};
use std::process::ExitCode;

use admission::Mode;
use policy::{Action, ClusterPolicy, Config, Rule};
use proxy::reload;

use crate::cli::Check;

/// Rules listed: whoever has more looks for a name, not at a list.
const LISTED_RULES_MAX: usize = 100;

pub(crate) fn run(check: &Check) -> ExitCode {
    match reload::load(&check.config) {
        Ok(loaded) => {
            let summary = summary(&loaded.config);
            // A reader that left early (`| head`) has seen what it wanted.
            drop(io::stdout().write_all(summary.as_bytes()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            let lines = error.lines(&check.config);
            let mut stderr = io::stderr().lock();
            for line in &lines {
                drop(writeln!(stderr, "{line}"));
            }
            drop(writeln!(stderr, "{}", count(lines.len(), "fault")));
            ExitCode::FAILURE
        }
    }
}

/// What is in the file, as it is in force.
fn summary(config: &Config) -> String {
    let mut text = String::from("The file is good.\n");
    text += &format!("admin on {}\n", config.admin.listen);
    for cluster in &config.clusters {
        let ClusterPolicy { name, listen, primary, replicas, .. } = &**cluster;
        let replicas = count(replicas.len(), "replica");
        text += &format!("\ncluster {name}: {listen} -> {primary}, {replicas}\n");
        for signal in &cluster.signals {
            text += &format!("  signal {}: threshold {}\n", signal.name, signal.threshold);
        }
        text +=
            &format!("  {}, the first that matches decides:\n", count(cluster.rules.len(), "rule"));
        for (index, rule) in cluster.rules.iter().take(LISTED_RULES_MAX).enumerate() {
            text += &format!("  {:>4}. {}\n", index.saturating_add(1), line(rule, cluster));
        }
        let further = cluster.rules.len().saturating_sub(LISTED_RULES_MAX);
        if further > 0 {
            text += &format!("        and {further} more\n");
        }
    }
    text
}

/// One rule in a line.
fn line(rule: &Rule, cluster: &ClusterPolicy) -> String {
    let does = match rule.action {
        Action::Exempt => "exempt".to_owned(),
        Action::Deny => "deny".to_owned(),
        Action::Throttle { terms, gate, .. } => {
            let gate: Vec<&str> = cluster.gate_signals(gate).map(|signal| &*signal.name).collect();
            let gate = if gate.is_empty() { "none".to_owned() } else { gate.join(", ") };
            let hold = if terms.hold { "hold, " } else { "" };
            let speed = rule.speed_to_expect().map(|speed| speed + ", ").unwrap_or_default();
            format!(
                "{hold}{speed}ratio {}, gate {gate}, max_delay {:?}",
                terms.ratio.as_f64(),
                terms.max_delay
            )
        }
    };
    let observes = match rule.mode {
        Mode::Enforce => "",
        Mode::Observe => ", observes only",
    };
    let ends = if rule.expires_at.is_some() { ", expires" } else { "" };
    format!("{}: {does}{observes}{ends}", rule.name)
}

/// `1 rule`, `2 rules`.
fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
