use std::time::{Duration, Instant};

use admission::RuleKey;
use policy::Config;
use sql::Class;

use super::*;
use crate::clock::Clock;
use crate::cluster::{Cluster, Judgement, ask};

fn config(rules: &str) -> Config {
    let text = format!(
        "version: 1\nclusters:\n  main:\n    listen: 127.0.0.1:0\n    primary: 127.0.0.1:3306\n\
         rules:\n{rules}"
    );
    policy::load(&text).expect("the file is good")
}

fn telemetry(max_apps: usize) -> Arc<Telemetry> {
    Telemetry::new(TelemetryConfig { max_apps })
}

fn admitted<'a>(cluster: &'a Arc<str>, app: &'a [u8]) -> StatementEvent<'a> {
    StatementEvent {
        cluster,
        rule: "etl",
        rule_key: RuleKey(1),
        app,
        user: b"etl",
        naming: app.iter().map(|byte| u64::from(*byte)).sum(),
        class: Class::Write,
        decision: StatementDecision::Admitted,
        reason: None,
        mode: Mode::Enforce,
        queued: None,
        backend: Some(Duration::from_millis(3)),
        rows: 1,
        overhead: Duration::from_micros(30),
    }
}

/// The value of the one series whose text begins with `series`.
fn value(text: &str, series: &str) -> f64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(series));
    let line = lines.next().unwrap_or_else(|| panic!("no {series} in\n{text}"));
    assert_eq!(lines.next(), None, "{series} is not unique");
    line.trim().parse().expect("a number")
}

#[test]
fn what_became_of_an_apps_statements_is_summed_by_rule_and_mode() {
    let telemetry = telemetry(200);
    let main: Arc<str> = "main".into();
    let mut cache = LabelCache::default();
    let event = admitted(&main, b"etl");
    telemetry.statement(&mut cache, &event);
    telemetry.statement(&mut cache, &StatementEvent { class: Class::Read, ..event });
    let queued = Some(Duration::from_millis(70));
    telemetry.statement(&mut cache, &StatementEvent { queued, ..event });
    let rejected = StatementEvent { decision: StatementDecision::Rejected, ..event };
    telemetry.statement(&mut cache, &StatementEvent { queued, ..rejected });
    telemetry.statement(&mut cache, &StatementEvent { mode: Mode::Observe, ..rejected });
    let count = |mode: &str, admitted, rejected, delayed| AppCount {
        cluster: "main".to_owned(),
        app: "etl".to_owned(),
        rule: "etl".to_owned(),
        mode: mode.to_owned(),
        admitted,
        rejected,
        client_gone: 0,
        delayed,
    };
    assert_eq!(telemetry.app_counts(), [count("enforce", 3, 1, 2), count("observe", 0, 1, 0)]);
}

#[test]
fn a_statement_is_counted_under_its_labels() {
    let telemetry = telemetry(200);
    let main: Arc<str> = "main".into();
    let mut cache = LabelCache::default();
    let event = admitted(&main, b"d666bbfc_169e_11ef_b0b3_0a43f95f28a3:vcopier:online-ddl");
    telemetry.statement(&mut cache, &event);
    let queued = Some(Duration::from_millis(70));
    let refused = StatementEvent {
        decision: StatementDecision::Rejected,
        reason: Some(Reason::GateClosed),
        queued,
        backend: None,
        ..event
    };
    telemetry.statement(&mut cache, &refused);
    telemetry.statement(&mut cache, &refused);
    let text = telemetry.gather(&[]);
    let name = "sluice_statements_total";
    let labels = r#"app="vcopier:online-ddl",class="write",cluster="main""#;
    let counted =
        format!(r#"{name}{{{labels},decision="admitted",mode="enforce",reason="",rule="etl"}}"#);
    assert_eq!(value(&text, &counted), 1.0);
    let counted = format!(
        r#"{name}{{{labels},decision="rejected",mode="enforce",reason="gate_closed",rule="etl"}}"#
    );
    assert_eq!(value(&text, &counted), 2.0);
    let delay = r#"{app="vcopier:online-ddl",cluster="main",decision="rejected",rule="etl""#;
    assert_eq!(value(&text, &format!("sluice_queue_delay_seconds_count{delay}}}")), 2.0);
    assert_eq!(
        value(&text, &format!("sluice_queue_delay_seconds_bucket{delay},le=\"0.05\"}}")),
        0.0
    );
    assert_eq!(
        value(&text, &format!("sluice_queue_delay_seconds_bucket{delay},le=\"0.1\"}}")),
        2.0
    );
    assert_eq!(value(&text, r#"sluice_rule_hits_total{rule="etl"}"#), 3.0);
    assert_eq!(value(&text, r#"sluice_backend_seconds_count{class="write",cluster="main"}"#), 1.0);
    assert_eq!(value(&text, "sluice_proxy_overhead_seconds_count"), 3.0);
    assert!(!text.contains(r#"decision="admitted",rule="etl",le="#), "nobody admitted waited");
}

#[test]
fn a_connection_with_more_label_sets_than_it_remembers_counts_each_right() {
    let telemetry = telemetry(200);
    let main: Arc<str> = "main".into();
    let mut cache = LabelCache::default();
    for _ in 0..3 {
        for class in Class::ALL {
            for app in [&b"a"[..], b"b"] {
                telemetry.statement(&mut cache, &StatementEvent { class, ..admitted(&main, app) });
            }
        }
    }
    let text = telemetry.gather(&[]);
    let counts = text.lines().filter(|line| line.starts_with("sluice_statements_total{"));
    let counts: Vec<&str> = counts.filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(counts, ["3"; 20]);
}

#[test]
fn apps_and_users_beyond_the_bound_are_other() {
    let telemetry = telemetry(2);
    let main: Arc<str> = "main".into();
    let mut cache = LabelCache::default();
    for app in 0..50_u8 {
        let name = format!("app-{app}");
        telemetry.statement(&mut cache, &admitted(&main, name.as_bytes()));
        telemetry.claim_refused(name.as_bytes());
    }
    let text = telemetry.gather(&[]);
    let series = text.lines().filter(|line| line.starts_with("sluice_statements_total{"));
    assert_eq!(series.count(), 3);
    assert_eq!(value(&text, r#"sluice_identity_claims_refused_total{user="other"}"#), 48.0);
    assert_eq!(value(&text, r#"sluice_identity_claims_refused_total{user="app-0"}"#), 1.0);
}

#[test]
fn connections_are_counted_while_they_last() {
    let telemetry = telemetry(200);
    let series = r#"sluice_client_connections{cluster="main"}"#;
    let first = telemetry.client_connected("main");
    let second = telemetry.client_connected("main");
    assert_eq!(value(&telemetry.gather(&[]), series), 2.0);
    drop(first);
    drop(second);
    assert_eq!(value(&telemetry.gather(&[]), series), 0.0);
}

#[test]
fn a_failed_reload_keeps_the_time_of_the_last_good_one() {
    let telemetry = telemetry(200);
    telemetry.reload(Reload::Applied, 1_000.5);
    telemetry.reload(Reload::Failed, 2_000.5);
    assert!(!telemetry.config_is_valid());
    let text = telemetry.gather(&[]);
    assert_eq!(value(&text, "sluice_config_last_reload_successful"), 0.0);
    assert_eq!(value(&text, "sluice_config_last_reload_timestamp_seconds"), 1_000.5);
}

#[test]
fn rules_show_when_they_expire_and_their_series_go_some_time_after_them() {
    let telemetry = telemetry(200);
    let main: Arc<str> = "main".into();
    let mut cache = LabelCache::default();
    telemetry.handle_config(&config(
        "  - { name: etl, ratio: 0.5, expires_at: 2099-01-01T00:00:00Z }\n",
    ));
    telemetry.statement(&mut cache, &admitted(&main, b"etl"));
    let expiry = r#"sluice_rule_expires_timestamp_seconds{rule="etl"}"#;
    assert_eq!(value(&telemetry.gather(&[]), expiry), 4_070_908_800.0);

    telemetry.handle_config(&config("  - { name: other-rule, permanent: true }\n"));
    let text = telemetry.gather(&[]);
    assert!(!text.contains("sluice_rule_expires_timestamp_seconds{"), "a rule that is gone");
    assert!(text.contains(r#"rule="etl""#), "its last counts are still to be scraped");

    telemetry.retire_rules(Instant::now() + Duration::from_secs(3_600));
    assert!(!telemetry.gather(&[]).contains(r#"rule="etl""#));
    telemetry.statement(&mut cache, &admitted(&main, b"etl"));
    let hits = r#"sluice_rule_hits_total{rule="etl"}"#;
    assert_eq!(value(&telemetry.gather(&[]), hits), 1.0);
    // It was over long after its rule: that series goes as well.
    telemetry.retire_rules(Instant::now() + Duration::from_secs(3_600));
    assert!(!telemetry.gather(&[]).contains(r#"rule="etl""#));
}

/// Only a scrape let go of them: rules that a program names anew in each file left their series for ever.
#[test]
fn series_of_the_files_rules_go_also_where_nobody_scrapes() {
    let telemetry = telemetry(200);
    let begun = Instant::now();
    for minute in 0..100 {
        let file = config(&format!("  - {{ name: job-{minute}, permanent: true }}\n"));
        telemetry.follow_config(&file, begun + Duration::from_secs(60 * minute));
    }
    assert_eq!(telemetry.rule_hits().len(), 16, "its own, and those of a quarter of an hour");
}

/// Only a scrape let go of them: a throttle for each migration, named by its UUID, left a series for ever.
#[test]
fn series_of_runtime_rules_go_also_where_nobody_scrapes() {
    let telemetry = telemetry(200);
    let config = config("  - { name: held, permanent: true }\n");
    let cluster = Cluster::new(config.clusters[0].clone(), Clock::start(), 7);
    let begun = Instant::now();
    for minute in 0..100 {
        let spec = policy::RuntimeSpec {
            name: format!("runtime:job-{minute}"),
            app: Some(format!("job-{minute}")),
            user: None,
            classes: Vec::new(),
            effect: policy::RuntimeEffect::Hold,
            reason: String::new(),
            made_at_ms: 0,
        };
        let ends = policy::UnixTime(4_070_908_800);
        let rule = policy::RuntimeRule::new(spec, "ann".into(), ends).unwrap();
        let gone = policy::RuntimeChange::Gone(rule.name().clone());
        let at = begun + Duration::from_secs(60 * minute);
        for change in [policy::RuntimeChange::Stands(rule), gone] {
            telemetry.follow_runtime_changes(&cluster, &[change], at);
        }
    }
    assert_eq!(telemetry.rule_hits().len(), 15, "those of a quarter of an hour");
}

#[test]
fn a_scrape_tells_signals_queue_pace_and_checks_of_a_cluster() {
    let telemetry = telemetry(200);
    let config = config("  - { name: held, hold: true, permanent: true }\n");
    let policy = config.clusters[0].clone();
    let cluster = Cluster::new(policy.clone(), Clock::start(), 7);
    let rule = &policy.rules.of_file()[0];
    let policy::Action::Throttle { terms, gate, .. } = rule.action else { panic!("it throttles") };
    let request = |terms| admission::Request {
        rule: rule.key,
        identity: policy::identity_key(rule, b"etl:42"),
        app: policy::app_key(rule, b"etl:42"),
        digest: None,
        written: None,
        gate,
        terms,
        arrived: cluster.now(),
        since: cluster.now(),
    };
    let judgement = ask(&cluster, &request(terms), b"etl:42");
    let Judgement::Queued(waiter) = judgement else { panic!("it is held") };
    let main = cluster.name.clone();
    let held = StatementEvent { rule: "held", rule_key: RuleKey(2), ..admitted(&main, b"etl:42") };
    telemetry.statement(&mut LabelCache::default(), &held);

    let clusters = [cluster.clone()];
    let text = telemetry.gather(&clusters);
    assert_eq!(value(&text, r#"sluice_queue_depth{cluster="main",rule="held"}"#), 1.0);
    assert!(value(&text, r#"sluice_queue_oldest_seconds{app="etl",cluster="main"}"#) > 0.0);
    assert_eq!(value(&text, r#"sluice_gate_open{cluster="main",signal="lag"}"#), 0.0);
    assert_eq!(value(&text, r#"sluice_pace_per_second{cluster="main"}"#), 0.0);
    assert!(value(&text, r#"sluice_signal_age_seconds{cluster="main",signal="lag"}"#) > 0.0);

    drop(waiter);
    let lag = policy.signals[0].key;
    cluster.control(|controller, now| {
        controller.handle_sample(now, lag, admission::Sample::Value(0.25));
    });
    let free = admission::Terms { hold: false, ..terms };
    let Judgement::Admitted(permit) = ask(&cluster, &request(free), b"etl:42") else {
        panic!("the gate is open")
    };
    let text = telemetry.gather(&clusters);
    assert_eq!(value(&text, r#"sluice_queue_depth{cluster="main",rule="held"}"#), 0.0);
    assert!(!text.contains("sluice_queue_oldest_seconds{"));
    assert_eq!(value(&text, r#"sluice_gate_open{cluster="main",signal="lag"}"#), 1.0);
    let lag = r#"sluice_signal_value{cluster="main",scope="shard",server="",signal="lag"}"#;
    assert_eq!(value(&text, lag), 0.25);
    assert_eq!(value(&text, r#"sluice_pace_per_second{cluster="main"}"#), 1_000.0);
    let passed = r#"sluice_checks_total{app="etl",cluster="main",result="passed",rule="held"}"#;
    assert_eq!(value(&text, passed), 1.0);
    assert_eq!(value(&telemetry.gather(&clusters), passed), 1.0, "each check counts once");
    drop(permit);
}

#[test]
fn a_scrape_tells_of_the_certificates_of_a_cluster() {
    let telemetry = telemetry(200);
    let config = config("  - { name: held, permanent: true }\n");
    let cluster = Cluster::new(config.clusters[0].clone(), Clock::start(), 7);
    let text = telemetry.gather(&[cluster]);
    let usable = |leg| format!(r#"sluice_certificates_usable{{cluster="main",leg="{leg}"}}"#);
    assert_eq!(value(&text, &usable("client")), 1.0);
    assert_eq!(value(&text, &usable("backend")), 1.0);
    let ends = r#"sluice_certificate_not_after_seconds{cluster="main",leg="client"}"#;
    assert_eq!(value(&text, ends), 67_090_118_400.0, "the self-signed one's");
}

#[test]
fn a_check_waits_for_the_statement_that_tells_whose_it_was() {
    let telemetry = telemetry(200);
    let config = config("  - { name: etl, ratio: 0.5, permanent: true }\n");
    let policy = config.clusters[0].clone();
    let cluster = Cluster::new(policy.clone(), Clock::start(), 7);
    let rule = &policy.rules.of_file()[0];
    let policy::Action::Throttle { terms, gate, .. } = rule.action else { panic!("it throttles") };
    let lag = policy.signals[0].key;
    cluster.control(|controller, now| {
        controller.handle_sample(now, lag, admission::Sample::Value(0.0));
    });
    let terms = admission::Terms { ratio: admission::Ratio::ZERO, ..terms };
    let identity = policy::identity_key(rule, b"loader");
    let request = admission::Request {
        rule: rule.key,
        identity,
        app: policy::app_key(rule, b"loader"),
        digest: None,
        written: None,
        gate,
        terms,
        arrived: cluster.now(),
        since: cluster.now(),
    };
    drop(ask(&cluster, &request, b"loader"));
    let clusters = [cluster.clone()];
    assert!(!telemetry.gather(&clusters).contains("sluice_checks_total{"));
    let main = cluster.name.clone();
    telemetry.statement(&mut LabelCache::default(), &admitted(&main, b"loader"));
    let passed = r#"sluice_checks_total{app="loader",cluster="main",result="passed",rule="etl"}"#;
    assert_eq!(value(&telemetry.gather(&clusters), passed), 1.0);
}
