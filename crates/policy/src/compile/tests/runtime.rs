use sql::{Class, ClassSet};

use super::*;
use crate::rule::{Action, Gated};
use crate::{RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec, UnixTime};

fn spec(app: &str, effect: RuntimeEffect) -> RuntimeSpec {
    RuntimeSpec {
        name: format!("runtime:{app}"),
        app: Some(app.to_owned()),
        user: None,
        classes: Vec::new(),
        effect,
        reason: "why".to_owned(),
        made_at_ms: 0,
    }
}

fn made(spec: RuntimeSpec) -> RuntimeRule {
    RuntimeRule::new(spec, "ann".into(), UnixTime(1_000)).unwrap()
}

fn policy(rules: &str) -> crate::ClusterPolicy {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1, mode: observe }} \
         }}\nrules:\n{rules}"
    );
    crate::ClusterPolicy::clone(&load(&text).unwrap().clusters[0])
}

const HOLD: RuntimeEffect = RuntimeEffect::Hold;

#[test]
fn runtime_rules_stand_before_the_files_with_the_clusters_gate_and_mode() {
    let file = policy("  - { name: f, match: { app: etl }, deny: true, permanent: true }\n");
    let rules =
        [made(spec("etl", RuntimeEffect::Throttle { ratio: 0.5 })), made(spec("web", HOLD))];
    let layered = file.with_runtime_changes(rules.map(RuntimeChange::Stands));
    let names: Vec<&str> = layered.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["runtime:etl", "runtime:web", "f"]);
    assert!(layered.rules.iter().all(|rule| layered.rule(rule.index) == Some(rule)));
    let rule = layered.rules.iter().next().unwrap();
    assert_eq!((rule.mode, rule.expires_at), (admission::Mode::Observe, Some(UnixTime(1_000))));
    let Action::Throttle { terms, gate, gated } = rule.action else { panic!("it throttles") };
    assert_eq!((terms.ratio.as_f64(), gate, gated), (0.5, file.default_gate, Gated::Yes));
    assert_eq!(file.rules.len(), 1, "the file's own is as it was");
}

#[test]
fn what_a_runtime_rule_does_not_act_on_goes_on_to_the_files_rules() {
    let statements = |effect, classes: &[&str]| -> Option<ClassSet> {
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        let rule = made(RuntimeSpec { classes, ..spec("etl", effect) });
        let file = policy("  - { name: f, permanent: true }\n");
        let layered = file.with_runtime_changes([RuntimeChange::Stands(rule)]);
        layered.rules.iter().next().unwrap().condition.statements
    };
    let has = |set: Option<ClassSet>, class| set.is_some_and(|set| set.contains(class));
    assert!(has(statements(HOLD, &[]), Class::Write) && !has(statements(HOLD, &[]), Class::Ddl));
    assert!(has(statements(RuntimeEffect::Deny, &[]), Class::Ddl));
    assert!(has(statements(HOLD, &["read"]), Class::Read));
    assert!(!has(statements(HOLD, &["read"]), Class::Write));
    assert_eq!(statements(RuntimeEffect::Exempt, &[]), None, "an exemption is of everything");
    assert!(has(statements(RuntimeEffect::Exempt, &["ddl"]), Class::Ddl));
}

#[test]
fn what_a_file_would_be_told_is_told_with_the_field() {
    let faults = RuntimeRule::new(
        RuntimeSpec { app: None, ..spec("etl", RuntimeEffect::Throttle { ratio: 2.0 }) },
        "ann".into(),
        UnixTime(0),
    );
    let told: Vec<(String, String)> =
        faults.unwrap_err().into_iter().map(|fault| (fault.path, fault.message)).collect();
    assert_eq!(told[0].0, "");
    assert_eq!(told[1].0, "ratio");
    assert_eq!(told[1].1, "2 is not a probability: must be from 0 to 1");
}

#[test]
fn the_files_rules_and_tables_leave_the_names_of_runtime_rules_alone() {
    let message = "`runtime:` is how rules that are made at runtime begin";
    let named = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\nrules:\n  \
                 - { name: \"runtime:etl\", permanent: true }\n";
    assert!(load(named).unwrap_err().iter().any(|fault| fault.message == message));
    let table = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1, \
                 probe: { user: u, heartbeat_table: s.rules } } }\n";
    assert!(load(table).unwrap_err().iter().any(|fault| fault.message.contains("`rules` is")));
    let state = "version: 1\nstate_dir: var/sluice\nclusters: { a: { listen: 127.0.0.1:1, \
                 primary: db:1 } }\n";
    assert!(load(state).unwrap_err().iter().any(|fault| fault.path == "state_dir"));
}
