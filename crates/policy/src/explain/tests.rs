use std::sync::Arc;

use super::*;
use crate::load;

const FILE: &str = "
version: 1
clusters: { main: { listen: 127.0.0.1:1, primary: db:3306 } }
rules:
  - { name: etl, match: { app: etl }, ratio: 0.9, permanent: true, reason: morning reports }
  - { name: archive, match: { schema: archive }, deny: true, permanent: true, mode: observe }
  - { name: gh, match: { app: gh-ost }, permanent: true }
  - { name: readers, match: { app: reader }, statements: [read], ratio: 0.5, permanent: true }
  - { name: slow, match: { app: slow }, speed: 0.25, permanent: true }
  - { name: payroll, match: { table: hr.payroll }, deny: true, permanent: true }
";

fn cluster() -> Arc<ClusterPolicy> {
    load(FILE).unwrap().clusters[0].clone()
}

fn explained(sql: &str, schema: &str) -> Explanation {
    explain(
        &cluster(),
        &Question {
            user: b"bob",
            client: None,
            schema: schema.as_bytes(),
            attributes: &[(b"_os", b"Linux")],
            sql: sql.as_bytes(),
            mode: LexMode::default(),
            now: UnixTime(0),
        },
    )
}

#[test]
fn an_explanation_names_app_class_tags_rule_and_outcome() {
    let explanation = explained("insert into t values (1) /*app='etl',controller='x'*/", "shop");
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "app": "etl",
            "source": "comment",
            "refused_claims": 0, "refused_claim": null,
            "class": "write", "calls_functions": false,
            "tags": { "controller": "x", "_os": "Linux" },
            "rule": "etl",
            "reason": "morning reports",
            "does": "delays locking_read, write, load, call, unknown: a check is lost with a \
                     probability of 0.9 (ratio) and repeated after 100ms, and the gate must be open \
                     (lag, which is open: there are no replicas); after 5s (max_delay) it is \
                     refused",
            "until": null,
            "speed": null,
            "mode": "enforce",
            "not_in_force": [],
            "priority": null,
            "digest": "10a0100b02458f6d",
            "digest_text": "INSERT INTO t VALUES (...)",
            "tables": ["shop.t"],
            "tables_known": true,
            "admission_point": true,
            "guards": [],
            "budgets": [],
            "outcome": "ask",
            "why": "dice, gate and queue decide",
        })
    );
}

#[test]
fn the_outcome_is_that_of_the_rule_that_decides() {
    let outcome = |sql: &str, schema: &str| {
        let found = explained(sql, schema);
        (found.rule.unwrap_or_default(), found.outcome, found.admission_point)
    };
    let etl = |text: &str| format!("{text} /* app=etl */");
    assert_eq!(outcome(&etl("delete from t"), ""), ("etl".into(), "ask", true));
    assert_eq!(outcome(&etl("select 1 from t"), ""), ("etl".into(), "pass", false));
    assert_eq!(outcome(&etl("commit"), ""), ("etl".into(), "pass", false));
    assert_eq!(outcome("delete from t", "archive"), ("archive".into(), "deny", true));
    assert_eq!(outcome("delete from t", "shop"), (String::new(), "pass", true));
    assert_eq!(outcome("select 1", "shop"), (String::new(), "pass", false));
    let both = "select 1; delete from t /* app=reader */";
    assert_eq!(outcome(both, ""), ("readers".into(), "ask", true));
    let system = etl("update performance_schema.setup_actors set enabled = 'YES'");
    assert_eq!(outcome(&system, ""), ("etl".into(), "pass", false));
    assert_eq!(explained("delete from t", "archive").mode, "observe");
}

#[test]
fn guards_come_before_the_rules_and_budgets_beside_them() {
    let limits = "
guards:
  - { name: where, where_required: deny, match: { app: etl } }
  - { name: lists, max_in_list: 2, mode: warn }
  - { name: plans, max_rows_expected: 100 }
budgets:
  - { name: reports, match: { app: etl }, max_concurrency: 4, rate: 10, max_delay: 3s }
  - { name: each, per: user, share: 0.25, on_exceeded: refuse }
";
    let probed = FILE.replace("db:3306 }", "db:3306, probe: { user: sluice } }");
    let cluster = load(&format!("{probed}{limits}")).unwrap().clusters[0].clone();
    let asked = |sql: &str| {
        let sql = sql.as_bytes();
        let question = Question {
            user: b"bob",
            client: None,
            schema: b"shop",
            attributes: &[],
            sql,
            mode: LexMode::default(),
            now: UnixTime(0),
        };
        explain(&cluster, &question)
    };
    let found = asked("delete from t /* app=etl */");
    assert_eq!((found.outcome, found.rule.as_deref()), ("deny", Some("etl")));
    assert!(found.why.starts_with("guard where (where_required): this DELETE has no"), "{found:?}");
    assert_eq!(found.guards[0].offset, Some(0));

    let found = asked("delete from t where id in (1, 2, 3) /* app=etl */");
    assert_eq!(found.outcome, "ask");
    let said: Vec<(&str, &str)> =
        found.guards.iter().map(|said| (&*said.guard, said.says)).collect();
    assert_eq!(said, [("lists", "warn"), ("plans", "unknown")]);
    let budgets: Vec<(&str, &str, &str)> =
        found.budgets.iter().map(|met| (&*met.budget, &*met.allows, &*met.else_it)).collect();
    assert_eq!(
        budgets,
        [
            ("reports", "4 at once, 10 statements/s", "waits for 3s at most, and is refused then"),
            ("each", "0.25 of the server, 0.25 s at once, per user", "is refused at once"),
        ]
    );
    assert!(asked("commit").budgets.is_empty(), "what nothing holds no budget holds");
}

#[test]
fn rules_that_are_not_in_force_are_named_with_the_reason() {
    let rules = "
  - { name: gone, expires_at: 1969-12-31T00:00:00Z }
  - { name: others, match: { user: eve }, expires_at: 1969-12-31T00:00:00Z }
  - { name: mondays, schedule: { days: mon }, permanent: true }
  - { name: thursdays, schedule: { days: thu }, permanent: true, ratio: 0.5, honour_priority: true }
  - { name: later, schedule: { days: fri }, permanent: true }
";
    let head = FILE.split_once("rules:").unwrap().0;
    let cluster = load(&format!("{head}rules:{rules}")).unwrap().clusters[0].clone();
    let question = Question {
        user: b"bob",
        client: None,
        schema: b"",
        attributes: &[],
        sql: b"delete /*vt+ PRIORITY=30 */ from t",
        mode: LexMode::default(),
        now: UnixTime(0),
    };
    let found = explain(&cluster, &question);
    let skipped: Vec<(&str, &str)> =
        found.not_in_force.iter().map(|skipped| (&*skipped.rule, skipped.why)).collect();
    assert_eq!(skipped, [("gone", "expired"), ("mondays", "not in force (schedule)")]);
    assert_eq!((found.rule.as_deref(), found.priority), (Some("thursdays"), Some(30)));
}

#[test]
fn the_changelog_of_gh_ost_passes_for_gh_ost_only() {
    let beat = "insert /* gh-ost */ into db._t_ghc (id) values (1)";
    assert_eq!(explained(beat, "").outcome, "pass");
    let other = "insert /* app=gh-ost */ into db._t_ghc (id) values (1)";
    assert_eq!(
        (explained(other, "").outcome, explained(other, "").app.as_str()),
        ("ask", "gh-ost")
    );
}

#[test]
fn a_call_that_the_servers_list_may_excuse_is_told_from_one_that_it_cannot() {
    for (sql, calls_functions) in [
        ("SELECT f()", true),
        ("INSERT INTO t VALUES (f())", true),
        ("CALL p()", false),
        ("SELECT 1; SELECT f()", false),
        ("SELECT 1", false),
    ] {
        assert_eq!(explained(sql, "shop").calls_functions, calls_functions, "{sql}");
    }
}

/// What is said at this time to a write, with these rules.
fn asked(rules: &str, at: &str) -> Explanation {
    let head = FILE.split_once("rules:").unwrap().0;
    asked_of(&format!("{head}rules:\n{rules}"), at)
}

fn asked_of(file: &str, at: &str) -> Explanation {
    let cluster = load(file).unwrap().clusters[0].clone();
    let question = Question {
        user: b"bob",
        client: None,
        schema: b"",
        attributes: &[],
        sql: b"delete from t",
        mode: LexMode::default(),
        now: at.parse().unwrap(),
    };
    explain(&cluster, &question)
}

#[test]
fn a_hold_says_until_when_it_holds_and_what_becomes_of_who_waits() {
    let held = asked(
        "  - { name: h, hold: true, max_delay: 30s, expires_at: 2027-01-01T00:00:00Z }\n",
        "2026-12-01T00:00:00Z",
    );
    assert_eq!(held.outcome, "ask");
    assert_eq!(held.until.as_deref(), Some("2027-01-01T00:00:00Z"));
    let why = "held until 2027-01-01T00:00:00Z, or the rule is lifted; from then on ratio 0 and gate \
               lag decide. A statement waits for max_delay 30s at most: after 30s (max_delay) it is \
               refused";
    assert_eq!(held.why, why);
    let held = asked(
        "  - { name: h, hold: true, permanent: true, on_timeout: admit }\n",
        "2026-12-01T00:00:00Z",
    );
    assert!(held.why.starts_with("held until the rule is lifted; "), "{}", held.why);
    assert!(held.why.ends_with("after 5s (max_delay) it is admitted"), "{}", held.why);
    assert!(held.does.unwrap().starts_with("holds locking_read, write, "));
}

#[test]
fn another_time_than_now_can_be_asked_about() {
    let rules = "  - name: rush
    schedule: { days: mon-fri, hours: \"07:00-10:00\", time_zone: Europe/Berlin }
    ratio: 0.5
    permanent: true
  - { name: short, deny: true, expires_at: 2026-12-01T12:00:00Z }
";
    let at = |time: &str| {
        let found = asked(rules, time);
        (found.rule.unwrap_or_default(), found.until.unwrap_or_default())
    };
    let of = |rule: &str, until: &str| (rule.to_owned(), until.to_owned());
    // A Tuesday, in winter.
    assert_eq!(at("2026-12-01T07:00:00+01:00"), of("rush", "2026-12-01T09:00:00Z"));
    assert_eq!(at("2026-12-01T08:59:59Z"), of("rush", "2026-12-01T09:00:00Z"));
    assert_eq!(at("2026-12-01T09:00:00Z"), of("short", "2026-12-01T12:00:00Z"));
    assert_eq!(at("2026-12-01T12:00:00Z"), of("", ""));
    assert_eq!(at("2026-12-05T08:00:00+01:00"), of("", ""));
}

#[test]
fn what_a_rule_does_is_said_in_words() {
    let does = |keys: &str| {
        let rules = format!("  - {{ name: r, expires_at: 2027-01-01T00:00:00Z, {keys} }}\n");
        asked(&rules, "2026-12-01T00:00:00Z").does.unwrap()
    };
    for (keys, part) in [
        ("exempt: true", "lets everything pass, and counts it"),
        ("deny: true", ", unknown always, with errno 1226"),
        ("gate: none", "lets everything pass: it has no gate, no ratio, no speed and no hold"),
        (
            "gate: none, ratio: 0.5",
            "delays locking_read, write, load, call, unknown: a check is lost",
        ),
        ("gate: none, speed: 0.1", "a session runs at 10 % of its own speed, by pauses"),
        (
            "gate: none, max_rate: 10, max_in_flight: 2",
            "its own limits must have room (at most 10 rows/s, at most 2 at once); after 5s",
        ),
        ("ratio: 0.5, min_rate: 50", "there are no replicas) and then lets at least 50 rows/s thr"),
        ("gate: none, runaway: { elapsed: 2s }", " and no hold; runaway after 2s: log"),
        ("ratio: 0.5, on_refused_check: reject", "the statement is then refused at once"),
        ("ratio: 0.5, on_timeout: admit", "after 5s (max_delay) it is admitted"),
        ("ratio: 0.5, max_delay: 0s", "what would have to wait is refused at once (max_delay 0s)"),
        ("ratio: 0.5, mode: observe", "only counts what it would do: delays "),
    ] {
        let does = does(keys);
        assert!(does.contains(part), "{keys}: {does}");
    }
}

#[test]
fn an_explanation_says_which_speed_to_expect_and_what_could_not_be_told() {
    let slow = explained("DELETE /*app='slow'*/ FROM t", "shop");
    assert_eq!(slow.speed.as_deref(), Some("runs at 25 % of its own speed"));
    let why = |sql: &str| {
        let explanation = explained(sql, "shop");
        assert_eq!(explanation.rule.as_deref(), Some("payroll"), "{sql}");
        explanation.why
    };
    assert_eq!(why("RENAME TABLE hr.payroll TO x"), "the rule denies it");
    assert!(why("CALL p()").contains("not all that it is about can be told"));
    assert_eq!(explained("DROP DATABASE hr", "shop").tables, ["hr.*"]);
}

#[test]
fn each_signal_of_a_gate_has_its_limit_in_words() {
    let does = |cluster: &str| {
        let file = format!(
            "
version: 1
clusters:
  main:
    listen: 127.0.0.1:1
    primary: db:3306
    probe: {{ user: sluice }}
    {cluster}
rules: [{{ name: r, statements: [read, write], gate: [lag, web], permanent: true }}]
"
        );
        asked_of(&file, "2026-12-01T00:00:00Z").does.unwrap()
    };
    let web = "signals: { web: { latency: { app: web }, threshold: 20ms } }";
    // A latency is Sluice's own measurement: it needs no replicas.
    let without = does(web);
    let part = "(web below 20ms, lag, which is open: there are no replicas)";
    assert!(without.contains(part), "{without}");
    let of_one = does(&format!("{web}\n    replicas: [r1:3306, {{ host: r2, threshold: 30s }}]"));
    assert!(of_one.contains("(web below 20ms, lag below 5s, 30s at r2:3306)"), "{of_one}");
}
