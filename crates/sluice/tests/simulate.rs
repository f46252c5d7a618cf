//! `sluice simulate`: what it prints, and how it exits.

use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_sluice");

#[expect(clippy::expect_used, reason = "a binary that cannot be started fails the test")]
fn sluice(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(BINARY).current_dir(root).arg("simulate").args(arguments).output();
    output.expect("the binary starts")
}

#[test]
fn figures_as_the_file_expects_are_status_0_and_json_is_the_same_every_time() {
    let arguments = ["scenarios/steady-binary.yaml", "--format", "json"];
    let (first, second) = (sluice(&arguments), sluice(&arguments));
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
    let json: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(json["name"], "steady-binary");
    assert_eq!(json["pacing"], "binary");
    let other = sluice(&[&arguments[..], &["--seed", "8"]].concat());
    assert_ne!(first.stdout, other.stdout);
}

#[test]
fn a_figure_that_is_not_as_expected_is_status_1_and_named() {
    let output = sluice(&["scenarios/steady.yaml", "--pacing", "binary"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("over_threshold is expected in [0, 0.001], and it is 0."), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("steady: pacing binary") && text.contains("online-ddl"), "{text}");
}

#[test]
fn a_file_that_is_missing_or_has_faults_is_status_2() {
    for file in ["scenarios/none.yaml", "proxy-config.yaml"] {
        let output = sluice(&[file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with(file));
    }
}

#[test]
fn a_run_that_would_not_end_is_status_2_and_says_what_to_make_smaller() {
    let path = std::env::temp_dir().join(format!("sluice-crowd-{}.yaml", std::process::id()));
    let text = "{ name: crowd, duration: 24h, primary: { writes_per_s: 1e9 }, replicas: \
                [{ apply_per_s: 1 }], apps: [{ app: x, sessions: 100000, exempt: true }] }";
    std::fs::write(&path, text).unwrap();
    let output = sluice(&[&path.display().to_string()]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    let named = errors.contains("crowd-") && errors.contains("make `duration` shorter");
    assert!(named && errors.contains("app \"x\""), "{errors}");
}

// Rules of a configuration file, under a load.

#[expect(clippy::expect_used, reason = "a binary that cannot be started fails the test")]
fn under_load(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sluice = Command::new(BINARY);
    sluice.current_dir(root).env("SLUICE_PROBE_PASSWORD", "secret").arg("simulate");
    // A Friday afternoon: at five in Berlin there is a rush hour of the shipped file.
    sluice
        .args(["--at", "2026-11-20T16:00:00Z", "--duration", "30s"])
        .args(arguments)
        .output()
        .expect("the binary starts")
}

const SHIPPED: [&str; 2] = ["--config", "proxy-config.yaml"];

#[track_caller]
#[expect(clippy::unwrap_used, reason = "an answer that is no text fails the test")]
fn answered(arguments: &[&str]) -> String {
    let output = under_load(&[&SHIPPED, arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_app_meets_the_rule_that_the_shipped_file_has_for_it() {
    let apps = [
        ("etl:sessions=8,rows=100,think=5ms", "nightly-etl", "ask"),
        ("online-ddl:sessions=2,class=ddl", "schema-changes", "ask"),
        ("reports:class=read,schema=shop,tag.controller=reports", "heavy-reports", "ask"),
        ("carts:sql=DELETE FROM carts WHERE updated < 5 LIMIT 9", "cart-cleanup", "ask"),
        ("import:priority=20", "imports-in-rush-hours", "ask"),
        ("orders:sql=UPDATE shop.orders SET a = 1 WHERE b = 2", "busy-tables", "ask"),
        ("haproxy:client=10.0.0.7", "health-checks", "pass"),
        ("web:sessions=20,think=100ms", "everything-else", "pass"),
        ("mallory:user=web", "everything-else", "pass"),
    ];
    let loads = apps.iter().flat_map(|(load, ..)| ["--app", load]);
    let arguments: Vec<&str> = ["--format", "json"].into_iter().chain(loads).collect();
    let json: serde_json::Value = serde_json::from_str(&answered(&arguments)).unwrap();
    for (load, rule, outcome) in apps {
        let name = load.split(':').next().unwrap();
        let met = &json["config"]["apps"][name];
        assert_eq!((&met["rule"], &met["outcome"]), (&rule.into(), &outcome.into()), "{met}");
        assert_eq!(json["apps"][name]["rule"], rule);
    }
    let does = |app: &str| json["config"]["apps"][app]["simulated"].as_str().unwrap().to_owned();
    assert!(does("etl").ends_with("gate lag, max_delay 30s"), "{}", does("etl"));
    assert!(does("import").starts_with("ask: ratio 0.16"), "{}", does("import"));
    let said = json["config"]["not_modelled"].to_string();
    for part in [
        "threads_running: taken as healthy for online-ddl (rule schema-changes)",
        "threads_running and shard/threads_running: taken as healthy for reports",
        "the schedule of imports-in-rush-hours",
        "does not let mallory be called so: it is web",
        "DDL of online-ddl",
        "budget reports (4 at once; without room a statement waits for 1m at most, and is refused \
         then): reports is simulated without it",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn an_answer_says_what_the_rules_do_to_the_job_and_to_the_lag() {
    let text = answered(&["--app", "etl:sessions=8,rows=100,think=5ms", "--app", "web"]);
    for part in [
        "rules of cluster main of proxy-config.yaml, at 2026-11-20T16:00:00Z",
        "etl  meets nightly-etl      ask: ",
        "gate lag, max_delay 30s",
        "its reason: keep the morning reports fast",
        "against replicas that apply 1000, 1000 rows/s",
        "without rules       with them",
        "lag p99",
        "rules look at tables or digests: without sql= nothing that etl, web sends",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = answered(&["--app", "etl:sessions=8,rows=100,think=5ms", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lag = |report: &serde_json::Value| report["lag_s"]["p99"].as_f64().unwrap();
    assert!(lag(&json) < 1.0 && lag(&json["without_rules"]) > 5.0, "{json}");
}

#[test]
fn a_rule_can_be_tried_that_the_file_does_not_have() {
    let denied = "{ match: { app: web }, deny: true }";
    let text = answered(&["--app", "web", "--rule", denied]);
    assert!(text.contains("web  meets tried  deny: the rule denies it"), "{text}");
    assert!(text.contains("web: refused for deny 1.0"), "{text}");
    let capped = "{ max_rate: 5, max_in_flight: 2, runaway: { elapsed: 1s } }";
    let text = answered(&["--app", "web", "--rule", capped]);
    for part in
        ["at most 5 rows/s, at most 2 at once, max_delay 5s", "runaway of tried: nothing of"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = under_load(&[&SHIPPED[..], &["--app", "web", "--rule", "{ ratio: 2 }"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("--rule: ratio: "), "{errors}");
}

#[test]
fn what_a_guard_refuses_is_refused_in_the_simulation() {
    let text = answered(&["--app", "web:sql=DELETE FROM shop.orders"]);
    for part in ["deny: guard whole-tables (where_required): ", "web: refused for deny 1.0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_load_is_written_as_a_scenario_and_simulated_from_it_alike() {
    let file = std::env::temp_dir().join(format!("sluice-simulate-{}.yaml", std::process::id()));
    let path = file.to_str().unwrap();
    let load = ["--app", "etl:sessions=8,rows=1-50,think=5ms", "--app", "web", "--seed", "7"];
    let write = [&load[..], &["--write-scenario", path]].concat();
    assert_eq!(answered(&write), "");
    let again = under_load(&[&SHIPPED[..], &write].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8(again.stderr).unwrap().contains("is not overwritten"));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("# etl meets nightly-etl: ask: "), "{written}");
    let read = sluice(&[path, "--format", "json"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read.status.code(), Some(0), "{read:?}");
    let read: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let direct: serde_json::Value =
        serde_json::from_str(&answered(&[&load[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!((&read["apps"], &read["lag_s"]), (&direct["apps"], &direct["lag_s"]));
}

#[test]
fn a_fault_of_the_configuration_file_is_reported_as_check_does() {
    let file = std::env::temp_dir().join(format!("sluice-faults-{}.yaml", std::process::id()));
    std::fs::write(&file, "version: 1\nrules:\n  - { name: a, ratio: 2, permanent: true }\n")
        .unwrap();
    let path = file.to_str().unwrap();
    let check = Command::new(BINARY).args(["check", "--config", path]).output().unwrap();
    let output = under_load(&["--config", path, "--app", "etl"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let (ours, theirs) = (String::from_utf8(output.stderr), String::from_utf8(check.stderr));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    assert!(ours.contains(&format!("{path}:3: rules[0].ratio: ")), "{ours}");
    assert!(ours.lines().all(|line| theirs.contains(line)), "{ours}{theirs}");
}

#[test]
fn a_load_that_makes_no_sense_is_status_2_and_named() {
    for (arguments, named) in [
        (&["--app", "etl:session=8"][..], "there is no key session"),
        (&["--app", "etl:class=read,rows=5"], "writes no rows"),
        (&["--app", "etl", "--app", "etl:rows=2"], "etl: it is there already"),
        (&["--app", "etl:sessions=100000"], "shorten --duration"),
        (&["--app", "etl", "--replica-rows-per-second", "1,2,3,4,5,6,7"], "7 numbers"),
        (&["--app", "etl:server=2h"], "the load: apps[0].latency: "),
        (&[], "--app"),
        (&["--app", "etl:rows=900000000,statements=9"], "the load: apps[0].rows_per_statement: "),
    ] {
        let output = under_load(&[&SHIPPED[..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(named), "{named}: {errors}");
    }
}
