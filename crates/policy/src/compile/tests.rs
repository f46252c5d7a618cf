use std::time::Duration;

use admission::{Mode, OnNoData, OnRefusedCheck, OnTimeout, Pacing, Ratio};
use proptest::prelude::*;
use sql::Class;

use super::*;
use crate::cluster::{LagSource, Scope, SignalKind};
use crate::rule::{Action, Gated, OnClientGone};
use crate::secret::Secret;
use crate::time::UnixTime;

mod admin;
mod clusters;
mod error_profiles;
mod following;
mod guards;
mod history;
mod network;
mod replicas;
mod runtime;
mod statements;

/// The example of the manual, word for word.
const MANUAL: &str = "\
version: 1
admin: { listen: 127.0.0.1:9307 }
clusters:
  main:
    listen: 127.0.0.1:3307
    primary: 127.0.0.1:3306
    replicas: [127.0.0.1:3316, 127.0.0.1:3326]
    probe: { user: sluice, password_env: SLUICE_PROBE_PASSWORD }
    signals:
      lag: { threshold: 1s }
      threads_running: { threshold: 100 }
    default_gate: [lag]
identity:
  claims:
    - { user: etl, apps: [etl] }
    - { user: \"*\", apps: [\"*\"] }
rules:
  - name: nightly-etl
    match: { app: etl }
    ratio: 0.9
    expires_at: 2026-12-01T07:00:00Z
    reason: keep the morning reports fast
  - name: schema-changes
    match: { app: [online-ddl, gh-ost, pt-online-schema-change] }
    permanent: true
  - name: everything-else
    gate: none
    permanent: true
budgets: []
";

/// A file around `rules`, which begin on line 6.
fn with_rules(rules: &str) -> String {
    format!(
        "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306, \
         probe: {{user: p}}, signals: {{q: {{query: select 1, threshold: 5}}}}}}\nrules:\n{rules}"
    )
}

/// A file with `cluster` as the keys of its only cluster, which begin on line 4.
fn with_cluster(cluster: &str) -> String {
    format!("version: 1\nclusters:\n  main:\n{cluster}")
}

fn faults(text: &str) -> Vec<String> {
    match load(text) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn assert_fault(text: &str, part: &str) {
    let faults = faults(text);
    assert!(faults.iter().any(|fault| fault.contains(part)), "{part:?} in {faults:#?} of\n{text}");
    assert_eq!(faults.len(), 1, "one fault and no more: {faults:#?}");
}

#[track_caller]
fn assert_rule_fault(keys: &str, part: &str) {
    assert_fault(&with_rules(&format!("- {{name: r, permanent: true, {keys}}}\n")), part);
}

#[test]
fn the_example_of_the_manual_loads() {
    let config = load(MANUAL).unwrap();
    assert_eq!(config.admin.listen, "127.0.0.1:9307".parse().unwrap());
    assert_eq!((config.metrics.max_apps, config.drain_timeout.as_secs()), (200, 30));
    let cluster = config.cluster("main").unwrap();
    assert_eq!(cluster.listen.to_string(), "127.0.0.1:3307");
    assert_eq!((&*cluster.primary, cluster.replicas.len()), ("127.0.0.1:3306", 2));
    let probe = cluster.probe.as_ref().unwrap();
    assert_eq!(probe.password, Some(Secret::Env("SLUICE_PROBE_PASSWORD".into())));
    assert_eq!(probe.heartbeat_interval, Duration::from_millis(250));
    assert_eq!(probe.probe_interval, Duration::from_millis(100));
    assert_eq!(probe.source, LagSource::Heartbeat);
    assert_eq!(
        (&*probe.heartbeat_table.schema, &*probe.heartbeat_table.table),
        ("sluice", "heartbeat")
    );
    let names: Vec<&str> = cluster.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["nightly-etl", "schema-changes", "everything-else"]);
}

#[test]
fn rules_have_the_defaults_of_the_manual() {
    let config = load(MANUAL).unwrap();
    let cluster = config.cluster("main").unwrap();
    let [etl, ddl, rest] = cluster.rules.of_file() else { panic!("three rules") };
    let Action::Throttle { terms, gate, gated } = etl.action else { panic!("{etl:?}") };
    assert_eq!(terms.ratio, Ratio::new(0.9).unwrap());
    assert_eq!((terms.max_delay, terms.queue_len_max), (Duration::from_secs(5), 1_000));
    assert_eq!(terms.on_refused_check, OnRefusedCheck::Delay);
    assert_eq!((terms.on_timeout, terms.weight), (OnTimeout::Reject, 1));
    assert_eq!((terms.hold, terms.mode, gated), (false, Mode::Enforce, Gated::Yes));
    assert_eq!(gate, cluster.default_gate);
    assert_eq!(etl.expires_at, Some(UnixTime(1_796_108_400)));
    assert_eq!((etl.error.errno, etl.error.sqlstate), (1205, *b"HY000"));
    assert_eq!(etl.reason, "keep the morning reports fast");
    let covered: Vec<Class> =
        Class::ALL.into_iter().filter(|class| etl.statements.contains(*class)).collect();
    let family = [Class::LockingRead, Class::Write, Class::Load, Class::Call, Class::Unknown];
    assert_eq!(covered, family);
    assert_eq!(ddl.expires_at, None);
    assert!(matches!(rest.action, Action::Throttle { gated: Gated::No, .. }));
    assert_eq!((etl.index, ddl.index, rest.index), (0, 1, 2));
    assert_eq!(cluster.rules.next_change_after(UnixTime(0)), etl.expires_at);
    assert_eq!(cluster.rules.next_change_after(UnixTime(1_796_108_400)), None);
}

#[test]
fn admission_is_told_about_signals_and_distinct_gates() {
    let config = load(MANUAL).unwrap();
    let cluster = config.cluster("main").unwrap();
    let controller = cluster.controller_config();
    assert_eq!(controller.signals.len(), 2);
    let lag = cluster.signal(controller.signals[0].key).unwrap();
    assert_eq!((&*lag.name, lag.threshold, lag.scope), ("lag", 1.0, Scope::Replicas));
    assert_eq!(lag.on_no_data, OnNoData::Closed);
    assert_eq!((lag.open_at, lag.close_at), (1.0, 1.0));
    // `[lag]` for two rules and the default, `none` for one.
    assert_eq!(controller.gates.len(), 2);
    let Pacing::Adaptive(pacing) = controller.pacing else { panic!("adaptive") };
    assert_eq!(pacing.lag, lag.key);
    assert_eq!(pacing.heartbeat_interval, Duration::from_millis(250));
    assert_eq!(pacing.probe_interval, Duration::from_millis(100));
    assert_eq!((pacing.otherwise.release_per_s, controller.queue_len_max), (1_000, 10_000));
    assert_eq!(controller.check_interval, Duration::from_millis(100));
}

#[test]
fn keys_stay_the_same_over_reloads() {
    let before = load(MANUAL).unwrap();
    let other = MANUAL.replace(
        "  - name: nightly-etl",
        "  - {name: first, permanent: true}\n  - name: nightly-etl",
    );
    let after = load(&other.replace("threshold: 1s", "threshold: 2s")).unwrap();
    let (before, after) = (before.cluster("main").unwrap(), after.cluster("main").unwrap());
    assert_eq!(before.rules.of_file()[0].key, after.rules.of_file()[1].key);
    assert_eq!(before.signals[0].key, after.signals[0].key);
    assert_eq!(before.default_gate, after.default_gate);
    assert_ne!(before.signals[0].key, before.signals[1].key);
}

#[test]
fn another_query_under_the_same_name_is_another_signal() {
    let file = |query: &str| with_rules("- {name: r, permanent: true}").replace("select 1", query);
    let key = |text: &str| load(text).unwrap().clusters[0].signals[0].key;
    assert_ne!(key(&file("select 1")), key(&file("select 2")));
}

#[test]
fn all_faults_are_reported_at_once_with_path_and_line() {
    let text = "\
version: 2
clusters:
  main:
    listen: localhost:3307
    primary: 127.0.0.1
    replicas: [a:1, a:1]
    probe: { user: sluice, password: hunter2, heartbeat_interval: 0s }
    signals:
      lag: { threshold: 5 }
      cpu: { threshold: 80 }
    default_gate: [lag, load]
    pacing: fast
    tls: required
rules:
  - name: a
    ratio: 1.5
    match: { app: [x, \"*x\"], digest: abc }
    permanent: true
  - name: a
    expires_at: tomorrow
    statements: [write, session, selects]
    max_delay: 5
  - match: {}
    exempt: true
    permanent: true
    unknown: 1
budgets: [{ name: b }]
";
    let expected = [
        "line 1: version: this version of Sluice reads version 1",
        "line 4: clusters.main.listen: must be an IP address and a port",
        "line 5: clusters.main.primary: must be a host and a port",
        "line 6: clusters.main.replicas[1]: the replica is there twice",
        "line 7: clusters.main.probe.password: secrets are not written in this file",
        "line 7: clusters.main.probe.heartbeat_interval: must be from 10ms to 1m",
        "line 9: clusters.main.signals.lag.threshold: must be a duration with its unit",
        "line 10: clusters.main.signals.cpu: not a built-in signal",
        "line 11: clusters.main.default_gate[1]: cluster `main` has no signal `load`",
        "line 12: clusters.main.pacing: `fast` is not one of `adaptive`, `binary`",
        "line 13: clusters.main.tls: unknown key; known here: backend_compression, ",
        "line 16: rules[0].ratio: 1.5 is not a probability",
        "line 17: rules[0].match.app[1]: `*` stands alone or at the end of a prefix",
        "line 17: rules[0].match.digest: must be a digest as `sluice explain` prints it",
        "line 19: rules[1].name: the rule on line 15 has the same name, `a`",
        "line 20: rules[1].expires_at: must be an RFC 3339 time",
        "line 21: rules[1].statements[1]: statements of class `session` are never delayed",
        "line 21: rules[1].statements[2]: `selects` is not one of `read`, `locking_read`",
        "line 22: rules[1].max_delay: expected a duration with its unit",
        "line 23: rules[2]: `name` is missing",
        "line 23: rules[2]: an exempt rule may be permanent only if it also says `essential",
        "line 26: rules[2].unknown: unknown key",
        "line 27: budgets[0]: limits nothing: one of `max_concurrency`, ",
    ];
    let mut found = faults(text);
    for part in expected {
        let at = found.iter().position(|fault| fault.starts_with(part));
        let at = at.unwrap_or_else(|| panic!("{part:?} in {found:#?}"));
        found.remove(at);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_file_that_says_nothing_is_a_fault() {
    for text in ["", "\n\n", "# nothing\n", "~", "---\n"] {
        assert_fault(text, "the file is empty");
    }
    assert_fault("- a\n- b\n", "expected a mapping");
    assert_fault("just text", "expected a mapping");
    let faults = faults("rules: []\n");
    assert_eq!(faults, ["line 1: `version` is missing", "line 1: `clusters` is missing"]);
    assert_fault("version: 1\nclusters: {}\n", "line 2: clusters: at least one cluster is needed");
}

#[test]
fn a_key_that_is_there_twice_is_a_fault() {
    assert_fault(
        &with_rules("- name: r\n  permanent: true\n  ratio: 0.1\n  ratio: 0.9\n"),
        "line 8: rules[0].ratio: the key is there twice",
    );
    assert_fault(
        &with_rules("- {name: r, permanent: true, match: {tag: {a: b, a: c}}}"),
        "rules[0].match.tag.a: the key is there twice",
    );
}

#[test]
fn a_rule_ends_or_says_that_it_does_not() {
    assert_fault(&with_rules("- {name: r}"), "`expires_at` or `permanent: true` is missing");
    assert_fault(&with_rules("- {name: r, permanent: false}"), "every rule ends");
    assert_rule_fault("expires_at: 2030-01-01T00:00:00Z", "a permanent rule does not expire");
    assert_rule_fault("exempt: true", "also says `essential: true`");
    for good in [
        "exempt: true, permanent: true, essential: true",
        "exempt: true, expires_at: 2030-01-01T00:00:00+02:00",
        "expires_at: 2001-01-01T00:00:00Z",
    ] {
        assert_eq!(faults(&with_rules(&format!("- {{name: r, {good}}}"))), [""; 0], "{good}");
    }
}

#[test]
fn every_profile_has_the_code_and_state_of_the_manual() {
    let profiles = [
        ("retryable", 1205, *b"HY000"),
        ("retryable_40001", 1205, *b"40001"),
        ("quota", 1226, *b"42000"),
        ("vitess", 1041, *b"HY000"),
        ("{errno: 32767, sqlstate: \"45000\", message: no}", 32_767, *b"45000"),
        ("{errno: 1000}", 1_000, *b"HY000"),
    ];
    for (profile, errno, sqlstate) in profiles {
        let text = with_rules(&format!("- {{name: r, permanent: true, error: {profile}}}"));
        let config = load(&text).unwrap();
        let error = &config.clusters[0].rules.of_file()[0].error;
        assert_eq!((error.errno, error.sqlstate), (errno, sqlstate), "{profile}");
    }
    let deny = load(&with_rules("- {name: r, permanent: true, deny: true}")).unwrap();
    assert_eq!(deny.clusters[0].rules.of_file()[0].error.errno, 1226);
}

#[test]
fn rules_that_cannot_do_what_they_say_are_refused() {
    for class in ["transaction", "session", "admin"] {
        assert_rule_fault(&format!("statements: [{class}]"), "are never delayed");
    }
    assert_rule_fault("deny: true, hold: true", "contradict each other");
    assert_rule_fault("exempt: true, essential: true, deny: true", "contradict each other");
    assert_rule_fault("deny: true, ratio: 0.5", "ratio: has no effect together with `deny`");
    assert_rule_fault("exempt: true, essential: true, gate: none", "gate: has no effect");
    assert_rule_fault("exempt: true, essential: true, error: quota", "error: has no effect");
    assert_rule_fault("match: {app: []}", "an empty list matches nothing");
    assert_rule_fault("match: {tag: {}}", "names no key");
    assert_rule_fault("match: {tag: {application: x}}", "`application` names the app");
    assert_rule_fault("match: {app: 12}", "put it in quotes");
    assert_rule_fault("match: {client: localhost}", "must be an address or a network");
    assert_rule_fault("match: {client: 10.0.0.0/33}", "must be an address or a network");
    assert_rule_fault("match: {cluster: other}", "there is no cluster `other`");
    assert_rule_fault("match: ~", "match: has no value");
    assert_rule_fault("gate: []", "write `none` if that is meant");
    assert_rule_fault("gate: [none, q]", "has no signal");
    assert_rule_fault("gate: [q, q]", "there twice");
    assert_rule_fault("weight: 0", "must be from 1 to 1000");
    assert_rule_fault("max_queue: -1", "must be from 0 to 1000000");
    assert_rule_fault("max_delay: 25h", "must be from 0s to 1d");
    assert_rule_fault("on_timeout: wait", "`wait` is not one of `reject`, `admit`");
    assert_rule_fault("mode: dry", "`dry` is not one of `enforce`, `observe`");
    assert_rule_fault("hold: yes", "expected `true` or `false`, found the text \"yes\"");
    assert_rule_fault("ratio: -0.1", "not a probability");
    assert_rule_fault("ratio: .nan", "not a probability");
    assert_rule_fault("match: {digest: []}", "an empty list matches nothing");
    assert_rule_fault("match: {digest: 0123456789abcde}", "16 hexadecimal digits");
    assert_rule_fault("match: {digest: 1234567890123456}", "put it in quotes");
    for table in ["a.b.c", ".b", "a.", "\"*.b\"", "\"a*b\"", "''", "[]"] {
        let part = match table {
            "\"*.b\"" | "\"a*b\"" => "`*` stands alone or at the end of a prefix",
            "''" => "an empty value matches nothing",
            "[]" => "an empty list matches nothing",
            _ => "must be a table, or a schema and a table",
        };
        assert_rule_fault(&format!("match: {{table: {table}}}"), part);
    }
    assert_rule_fault("honour_priority: 1", "expected `true` or `false`");
    assert_rule_fault("deny: true, honour_priority: true", "has no effect together with `deny`");
    for (schedule, part) in [
        ("[]", "must be from 1 to 32 windows"),
        ("{}", "`days` or `hours` is missing"),
        ("{time_zone: UTC}", "`days` or `hours` is missing"),
        ("{days: []}", "an empty list is never"),
        ("{days: [mon, Monday]}", "schedule.days[1]: `Monday` is not one of `mon`"),
        ("{days: mon-}", "`mon-` is not one of"),
        ("{hours: []}", "must be from 1 to 32 spans"),
        ("{hours: 7-19}", "must be a span like 07:00-19:30"),
        ("{hours: \"07:00-24:01\"}", "must be a span like"),
        ("{hours: \"07:60-08:00\"}", "must be a span like"),
        ("{hours: \"24:00-08:00\"}", "begins when it ends"),
        ("{hours: \"07:00-07:00\"}", "begins when it ends"),
        (
            "{days: mon, time_zone: Europe/Bonn}",
            "schedule.time_zone: `Europe/Bonn` is no time zone",
        ),
        ("{days: mon, zone: UTC}", "unknown key; known here: days, hours, time_zone"),
    ] {
        assert_rule_fault(&format!("schedule: {schedule}"), part);
    }
    assert_fault(&with_rules("- {name: a b, permanent: true}"), "a name has 1 to 64 letters");
}

#[test]
fn a_gate_that_is_none_stands_alone() {
    let text = with_rules("- {name: r, permanent: true, gate: none}");
    assert_eq!(faults(&text), [""; 0]);
}

#[test]
fn the_rest_of_what_a_rule_can_say_is_read() {
    let config = load(&with_rules(
        "- name: r
  match:
    app: [a, \"b-*\"]
    tag: { controller: [x, y] }
    attribute: { _client_name: \"*\" }
    user: u
    schema: s
    client: [10.0.0.0/8, \"::1\"]
    statements: [read, ddl]
    cluster: main
  ratio: 1
  gate: [q]
  statements: [ddl, read]
  max_delay: 0s
  on_refused_check: reject
  on_timeout: admit
  max_queue: 7
  hold: true
  mode: observe
  weight: 3
  permanent: true
",
    ))
    .unwrap();
    let rule = &config.clusters[0].rules.of_file()[0];
    let Action::Throttle { terms, .. } = rule.action else { panic!("{rule:?}") };
    assert_eq!((terms.ratio, terms.weight, terms.queue_len_max), (Ratio::ONE, 3, 7));
    assert_eq!(terms.on_refused_check, OnRefusedCheck::Reject);
    assert_eq!((terms.on_timeout, terms.max_delay), (OnTimeout::Admit, Duration::ZERO));
    assert_eq!((terms.hold, terms.mode, rule.mode), (true, Mode::Observe, Mode::Observe));
    assert!(rule.statements.contains(Class::Ddl) && !rule.statements.contains(Class::Write));
    assert_eq!(rule.condition.tags.len(), 1);
}

#[test]
fn what_becomes_of_a_statement_whose_client_has_left_is_close_kill_or_finish() {
    let said = |word: &str| {
        let rule = format!("- {{name: r, permanent: true, on_client_gone: {word}}}\n");
        load(&with_rules(&rule)).map(|config| config.clusters[0].rules.of_file()[0].on_client_gone)
    };
    assert_eq!(said("close").unwrap(), OnClientGone::Close);
    assert_eq!(said("kill").unwrap(), OnClientGone::Kill);
    assert_eq!(said("finish").unwrap(), OnClientGone::Finish);
    let unsaid = load(&with_rules("- {name: r, permanent: true}\n")).unwrap();
    assert_eq!(unsaid.clusters[0].rules.of_file()[0].on_client_gone, OnClientGone::Close);
    assert!(said("wait").is_err());
}

#[test]
fn a_query_is_killed_only_where_there_is_an_account_to_kill_it() {
    let rules = "rules: [{name: r, permanent: true, on_client_gone: kill}]\n";
    let keys = "    listen: 127.0.0.1:1\n    primary: db:3306\n";
    assert_fault(&format!("{}{rules}", with_cluster(keys)), "`main` has no `probe`");
    let probed = format!("{keys}    probe: {{user: p}}\n");
    assert_eq!(faults(&format!("{}{rules}", with_cluster(&probed))), [""; 0]);
}

#[test]
fn of_very_many_faults_the_rest_is_counted() {
    let rules: String =
        (0..1_200).map(|at| format!("- {{name: r{at}, permanent: true, ratio: 2}}\n")).collect();
    let faults = faults(&with_rules(&rules));
    assert_eq!(faults.len(), 1_001);
    assert_eq!(faults.last().unwrap(), "line 1004: and 200 more");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "(?s)[ -~\\n\\t:{}\\[\\]&*!|>'\"-]{0,200}") {
        if let Err(faults) = load(&text) {
            prop_assert!(!faults.is_empty());
            prop_assert!(faults.iter().all(|fault| fault.line >= 1));
        }
    }

    #[test]
    fn a_mangled_file_is_read_or_refused_without_a_panic(
        at in 0..MANUAL.len(), len in 0..40_usize, with in "[ -~\\n]{0,20}",
    ) {
        let mut text = MANUAL.to_owned();
        text.replace_range(at..at.saturating_add(len).min(MANUAL.len()), &with);
        if let Err(faults) = load(&text) {
            // The end of a text may be reported behind its last line.
            let lines = u32::try_from(text.lines().count()).unwrap().saturating_add(1);
            prop_assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)));
        }
    }
}
