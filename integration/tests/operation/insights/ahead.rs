//! What `check --against` says of a file, beside what a Sluice counts that runs with that file.

use std::time::{Duration, Instant};

use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use serde_json::Value;

use super::storm::{SCHEMA, storm};
use super::{against, ask};

const RULES: &str = "\
- { name: by-digest, match: { digest: 'SELECT c FROM t WHERE id = ?' }, statements: [read], deny: true, mode: observe, permanent: true }
- { name: by-table, match: { table: own, app: etl }, statements: [write], ratio: 1, mode: observe, permanent: true }
- { name: by-tag, match: { tag: { trace: '7*' } }, statements: [read], deny: true, mode: observe, permanent: true }
- { name: by-schema, match: { schema: i_two }, statements: [write, call, unknown], deny: true, mode: observe, permanent: true }
- { name: calls, match: { statements: [call] }, statements: [call], deny: true, mode: observe, permanent: true }
- { name: writes, match: { statements: [write] }, permanent: true, mode: observe }
- { name: session, match: { statements: [session] }, gate: none, permanent: true }
- { name: rest, gate: none, permanent: true }";

const TOP: &str = "\
insights: { tags: [trace] }
guards:
  - { name: where, mode: warn, where_required: warn, no_cross_join: warn }
  - { name: tags, mode: warn, match: { app: web }, require_tag: [trace] }
  - { name: long, mode: warn, max_statement_bytes: 60 }
  - { name: lists, mode: warn, max_in_list: 2 }
budgets:
  - { name: rate, match: { app: etl }, rate: 5, mode: warn }
  - { name: each, match: { table: own }, per: digest, max_concurrency: 100, mode: warn }
  - { name: web, match: { app: web }, share: 100, mode: warn }";

/// Beside those of the storm, with which guards have nothing to do.
const OBJECTED_TO: [&str; 5] = [
    "UPDATE own SET c = 'a'",
    "DELETE FROM own LIMIT 1",
    "SELECT t.c FROM t, own LIMIT 1",
    "SELECT /* trace=77 */ 1 FROM t",
    "UPDATE own SET c = 1 WHERE 1 = 1",
];

#[tokio::test]
async fn a_file_that_observes_finds_in_mysqls_load_what_it_is_said_to_find() {
    found_as_said(Flavour::MySql).await;
}

#[tokio::test]
async fn a_file_that_observes_finds_in_mariadbs_load_what_it_is_said_to_find() {
    found_as_said(Flavour::MariaDb).await;
}

async fn found_as_said(flavour: Flavour) {
    let servers = Topology::start(TopologyOptions::new(flavour, 0)).await.unwrap();
    servers.primary.run_sql(SCHEMA).await.unwrap();
    let mut config = Config::new(&servers).unwrap().rules(RULES);
    config.top = TOP.to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    storm(&sluice, SESSIONS, until, &OBJECTED_TO).join_all().await;
    let insights = ask(&sluice, "by=digest&window=10m&limit=1000").await;
    let told = against(&config.render(), &insights);
    let told = &told["clusters"][0];
    assert_eq!(told["unknown"], 0, "{told}");
    let metrics = sluice.metrics().await.unwrap();
    for rule in told["rules"].as_array().unwrap() {
        of_a_rule(rule, &metrics);
    }
    for guard in told["guards"].as_array().unwrap() {
        of_a_guard(guard, &metrics);
    }
    of_a_rate(&told["budgets"][0]);
}

/// All but five of each second came above it, as far as levels tell, which are a fifth wide.
fn of_a_rate(told: &Value) {
    let peaks = &told["limits"][0]["peaks"];
    let statements = told["statements"].as_f64().unwrap();
    let of = |key: &str| peaks[key].as_f64().unwrap_or_else(|| panic!("{key}: {told}"));
    let least = statements - 5.0 * of("seconds");
    assert_eq!(peaks["app"], "etl");
    assert!(statements > 100.0 && (2.0..=9.0).contains(&of("seconds_above")), "{told}");
    assert!((least..=statements * 1.2).contains(&of("above")), "{least}: {told}");
    assert!((of("p99")..statements).contains(&of("max")), "{told}");
}

fn of_a_rule(told: &Value, metrics: &Metrics) {
    let live = |labels: &[(&str, &str)]| {
        let rule = [("rule", told["rule"].as_str().unwrap())];
        metrics.sum("sluice_statements_total", &[&rule[..], labels].concat())
    };
    let said = |key: &str| told[key].as_f64().unwrap_or_default();
    assert_eq!(live(&[]), said("statements"), "{told}");
    assert_eq!(live(&[("reason", "deny")]), said("denied"), "{told}");
    assert_eq!(live(&[("reason", "ratio")]), said("lost_to_dice"), "{told}");
    assert!(said("statements") > 10.0, "{told}");
}

/// What is said for certain was found, and no more than what is perhaps.
fn of_a_guard(told: &Value, metrics: &Metrics) {
    let of = |key: &str| told[key].as_str().unwrap();
    let labels = [("guard", of("guard")), ("check", of("check"))];
    let live = metrics.sum("sluice_guard_hits_total", &labels);
    let said = |key: &str| told[key].as_f64().unwrap();
    let (least, perhaps) = (said("statements"), said("unknown"));
    assert!((least..=least + perhaps).contains(&live), "{live}: {told}");
    let is_known = matches!(of("check"), "where_required" | "no_cross_join" | "require_tag");
    assert!(!is_known || least > 100.0, "{told}");
}

const SESSIONS: u64 = 8;
