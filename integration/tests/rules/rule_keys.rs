//! What rules can say beyond who asks: digest, table, schedule, priority, speed; and the two ways to prioritise, which
//! do the same.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

mod speed;
mod tables;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use integration::raw::capability::FOUND_ROWS;
use integration::raw::{Login, Param, RawConn, Response};
use integration::scenario::{
    Refused, Shared, Switch, connect, connect_as, numbers, wait_for_depth,
};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess, binary};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

/// What makes a rule refuse at once whatever it matches.
const REFUSES: &str = "ratio: 1, on_refused_check: reject, gate: none, permanent: true";

#[tokio::test]
async fn a_rule_on_a_digest_refuses_that_statement_in_all_its_forms_and_no_other() {
    for servers in both().await {
        let table = made(servers, "k_digest").await;
        let config = Config::new(servers).unwrap();
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let statement = format!("DELETE FROM {table} WHERE n = 1");
        let (hash, text) = explained(&sluice, &statement);
        assert_eq!(text, format!("DELETE FROM {table} WHERE n = ?"));
        for digest in [hash, text] {
            let rules =
                format!("- {{ name: one, match: {{ digest: [\"{digest}\"] }}, {REFUSES} }}");
            let config = Config::new(servers).unwrap().rules(&rules);
            let sluice = SluiceProcess::start(&config).await.unwrap();
            let mut conn = connect(&sluice, "etl").await.unwrap();
            for sql in [
                statement.clone(),
                format!("delete from `{table}` where n=-77 /* app=x */"),
                format!("/* x */ DELETE FROM {table} WHERE n = 'a'"),
            ] {
                assert_eq!(rule_of(&conn.query(&sql).await.unwrap()), "one", "{sql}");
            }
            for sql in
                [format!("DELETE FROM {table} WHERE n > 1"), format!("SELECT * FROM {table}")]
            {
                assert_eq!(rule_of(&conn.query(&sql).await.unwrap()), "", "{sql}");
            }
            let sql = format!("DELETE FROM {table} WHERE n = ?");
            let prepared = conn.prepare(&sql).await.unwrap();
            let execution = conn.execute(&prepared, &[Param::int(1)]).await.unwrap();
            assert_eq!(rule_of(&execution), "one");
            conn.query(format!("PREPARE p FROM 'DELETE FROM {table} WHERE n = 2'")).await.unwrap();
            assert_eq!(rule_of(&conn.query("EXECUTE p").await.unwrap()), "one");
        }
        let there = numbers(&servers.primary, &format!("SELECT COUNT(*) FROM {table}")).await;
        assert_eq!(there.unwrap(), [1], "what was refused did nothing");
    }
}

#[tokio::test]
async fn a_rule_on_a_table_finds_it_wherever_a_statement_names_it() {
    for servers in both().await {
        for table in ["k_orders", "k_other", "k_tmp_1"] {
            made(servers, table).await;
        }
        let procedure = "CREATE PROCEDURE k_calls() INSERT INTO k_orders VALUES (5)";
        servers.primary.run_sql(&[procedure]).await.unwrap();
        let rules = format!(
            "- {{ name: temporary, match: {{ table: \"test.k_tmp_*\" }}, exempt: true, permanent: true, \
             essential: true }}\n\
             - {{ name: orders, match: {{ table: test.k_orders }}, {REFUSES} }}\n\
             - {{ name: rest, gate: none, permanent: true }}"
        );
        let config = Config::new(servers).unwrap().rules(&rules);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut conn = connect(&sluice, "etl").await.unwrap();
        for (sql, rule) in [
            ("INSERT INTO k_orders VALUES (2)", "orders"),
            ("INSERT INTO `test`.`k_orders` VALUES (2)", "orders"),
            ("INSERT INTO k_other SELECT n + 1 FROM k_orders", "orders"),
            ("INSERT INTO k_other VALUES (2)", ""),
            (
                "UPDATE k_other SET n = 3 WHERE n = 2 AND n NOT IN (SELECT n FROM k_orders)",
                "orders",
            ),
            ("INSERT INTO k_tmp_1 VALUES (2)", ""),
            // Exempt is only what touches nothing but those tables …
            ("INSERT INTO k_tmp_1 SELECT n + 10 FROM k_orders", "orders"),
            // … and what cannot be told is not let past.
            ("CALL k_calls()", "orders"),
            ("SELECT COUNT(*) FROM k_orders", ""),
        ] {
            assert_eq!(rule_of(&conn.query(sql).await.unwrap()), rule, "{sql}");
        }
        let prepared = conn.prepare("INSERT INTO k_orders VALUES (?)").await.unwrap();
        assert_eq!(rule_of(&conn.execute(&prepared, &[Param::int(7)]).await.unwrap()), "orders");
        assert_eq!(Refused::of(&conn.query("USE information_schema").await.unwrap()), None);
        let elsewhere = conn.query("INSERT INTO k_orders VALUES (8)").await.unwrap();
        assert!(Refused::of(&elsewhere).is_some(), "the server has no such table");
        assert_eq!(rule_of(&elsewhere), "");
        let there = numbers(&servers.primary, "SELECT n FROM k_orders").await.unwrap();
        assert_eq!(there, [1]);
    }
}

#[tokio::test]
async fn a_rule_is_in_force_within_its_schedule_only() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "k_schedule").await;
    // Half an hour away from both ends of a span, wherever the clock stands: over midnight too.
    let (now, later) = (clock_span(-30, 30), clock_span(30, 90));
    let rules = format!(
        "- {{ name: later, match: {{ app: etl }}, schedule: {{ hours: \"{later}\" }}, {REFUSES} }}\n\
         - {{ name: now, match: {{ app: [etl, web] }}, schedule: {{ hours: \"{now}\" }}, {REFUSES} }}\n\
         - {{ name: rest, gate: none, permanent: true }}"
    );
    let config = Config::new(servers).unwrap().rules(&rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    for (user, rule) in [("etl", "now"), ("web", "now"), ("ddl", "")] {
        let mut conn = connect(&sluice, user).await.unwrap();
        let answer = conn.query("INSERT INTO k_schedule VALUES (2)").await.unwrap();
        assert_eq!(rule_of(&answer), rule, "{user}");
    }
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert_eq!(page.matches("not in force (schedule)").count(), 1, "{page}");
    let told = explain(&sluice, "INSERT INTO k_schedule VALUES (2)");
    assert!(told.contains("later: not in force (schedule)"), "{told}");
}

#[tokio::test]
async fn a_priority_scales_the_dice_of_rules_that_honour_it() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "k_priority").await;
    let rules = format!(
        "- {{ name: honours, match: {{ app: etl }}, honour_priority: true, {REFUSES} }}\n\
         - {{ name: ignores, {REFUSES} }}"
    );
    let config = Config::new(servers).unwrap().rules(&rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut etl = connect(&sluice, "etl").await.unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    let sql = |priority: &str| format!("UPDATE /*vt+ {priority} */ k_priority SET n = 1");
    let mut refusals = 0;
    for _ in 0..STATEMENTS {
        assert_eq!(rule_of(&etl.query(sql("PRIORITY=0")).await.unwrap()), "", "no dice at all");
        refusals += i32::from(!rule_of(&etl.query(sql("PRIORITY=30")).await.unwrap()).is_empty());
    }
    // 4.5 standard deviations of the binomial distribution.
    let (of, share) = (f64::from(STATEMENTS), 0.3);
    let off = (f64::from(refusals) - of * share).abs() / (of * share * (1.0 - share)).sqrt();
    assert!(off < 4.5, "{refusals} of {of} refused at priority 30");
    for priority in ["PRIORITY=100", "PRIORITY=101", "PRIORITY=high", "WORKLOAD=x"] {
        let answer = etl.query(sql(priority)).await.unwrap();
        assert_eq!(rule_of(&answer), "honours", "{priority}");
    }
    assert_eq!(rule_of(&web.query(sql("PRIORITY=0")).await.unwrap()), "ignores");
}

#[tokio::test]
async fn rows_that_an_update_only_found_are_not_charged() {
    for servers in both().await {
        made(servers, "k_found").await;
        let doubled = ["INSERT INTO k_found SELECT * FROM k_found"; 12];
        servers.primary.run_sql(&doubled).await.unwrap();
        let rules = "- { name: capped, match: { app: etl }, max_rate: 2000, \
                     on_refused_check: reject, gate: none, permanent: true }";
        let sluice =
            SluiceProcess::start(&Config::new(servers).unwrap().rules(rules)).await.unwrap();
        let login = Login::new("etl").with(FOUND_ROWS);
        let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        for value in [1, 1, 2] {
            let answer = conn.query(format!("UPDATE k_found SET n = {value}")).await.unwrap();
            assert_eq!(answer.affected_rows(), Some(4096), "{value}: {:?}", Refused::of(&answer));
        }
        let answer = conn.query("UPDATE k_found SET n = 2").await.unwrap();
        assert_eq!(rule_of(&answer), "capped", "what was changed is charged");
    }
}

#[tokio::test]
async fn a_rival_with_a_ratio_and_everybody_else_with_one_prioritise_the_same() {
    let servers = MYSQL.get().await.unwrap();
    let rival = include_str!("../../../docs/examples/prioritise-by-its-rival.yaml");
    let everybody = include_str!("../../../docs/examples/prioritise-by-everybody-else.yaml");
    for (example, etl, ddl, [name, again]) in [
        (rival, "the-rival", "everybody-else", ["k_rival", "k_rival_again"]),
        (everybody, "everybody-else", "the-favourite", ["k_everybody", "k_everybody_again"]),
    ] {
        let mut seen = contended(servers, example, [etl, ddl], name).await;
        // Each gets the same number of checks; all of the favourite's win, a tenth of the other's.
        let is_even = |seen: &Seen| (seen.etl_checks / seen.ddl_checks - 1.0).abs() < 0.1;
        if !is_even(&seen) {
            // Where cores are busy, the favourite's sessions are late to come back.
            seen = contended(servers, example, [etl, ddl], again).await;
        }
        assert!(is_even(&seen), "{etl}: {seen:?}");
        let share = seen.etl_passed / seen.ddl_passed;
        assert!((0.07..0.13).contains(&share), "{etl}: {seen:?}");
    }
}

/// What two apps were given while both had more to do than was let through.
#[derive(Debug, Default)]
struct Seen {
    etl_checks: f64,
    etl_passed: f64,
    ddl_checks: f64,
    ddl_passed: f64,
}

/// Shuts and opens the gate until the rarer app was admitted often enough to tell; counts while both wait.
async fn contended(
    servers: &Topology,
    example: &str,
    [etl, ddl]: [&str; 2],
    name: &'static str,
) -> Seen {
    made(servers, name).await;
    let switch = Switch::new(&servers.primary, name).await.unwrap();
    let (_, rules) = example.split_once("\nrules:\n").unwrap();
    let config = Config::new(servers)
        .unwrap()
        .signals(&switch.signal())
        .cluster(&format!("default_gate: [{name}]\npacing: binary\nrelease_per_s: 600"))
        .rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    switch.shut(&sluice).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for app in ["etl", "online-ddl"] {
        for _ in 0..SESSIONS {
            let conn = connect_as(&sluice, app).await.unwrap();
            writers.push(tokio::spawn(write(conn, name, stop.clone())));
        }
    }
    let mut seen = Seen::default();
    let started = Instant::now();
    while seen.etl_passed < ENOUGH && started.elapsed() < RUN_LIMIT {
        switch.shut(&sluice).await.unwrap();
        for rule in [etl, ddl] {
            wait_for_depth(&sluice, rule, SESSIONS).await.unwrap();
        }
        let before = sluice.metrics().await.unwrap();
        switch.open(&sluice).await.unwrap();
        let mut last = before.clone();
        let opened = Instant::now();
        while opened.elapsed() < Duration::from_millis(900) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let metrics = sluice.metrics().await.unwrap();
            let depth = |rule| metrics.sum("sluice_queue_depth", &[("rule", rule)]);
            if depth(etl).min(depth(ddl)) < 1.0 {
                break;
            }
            last = metrics;
        }
        let won = |metrics: &Metrics, rule| checks(metrics, rule, Some("passed"));
        seen.etl_checks += checks(&last, etl, None) - checks(&before, etl, None);
        seen.ddl_checks += checks(&last, ddl, None) - checks(&before, ddl, None);
        seen.etl_passed += won(&last, etl) - won(&before, etl);
        seen.ddl_passed += won(&last, ddl) - won(&before, ddl);
    }
    stop.store(true, Ordering::Relaxed);
    switch.open(&sluice).await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    seen
}

async fn write(mut conn: RawConn, table: &'static str, stop: Arc<AtomicBool>) {
    conn.set_read_limit(Duration::from_secs(60));
    while !stop.load(Ordering::Relaxed) {
        let answer = conn.query(format!("UPDATE {table} SET n = 2 WHERE n = 2")).await.unwrap();
        assert_eq!(Refused::of(&answer), None);
    }
}

/// Checks of a rule, with one result or all of them.
fn checks(metrics: &Metrics, rule: &str, result: Option<&str>) -> f64 {
    let mut labels = vec![("rule", rule)];
    labels.extend(result.map(|result| ("result", result)));
    metrics.sum("sluice_checks_total", &labels)
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

/// A table with one row.
async fn made(servers: &Topology, table: &'static str) -> &'static str {
    let create = format!("CREATE TABLE {table} (n INT)");
    let insert = format!("INSERT INTO {table} VALUES (1)");
    servers.primary.run_sql(&[&create, &insert]).await.unwrap();
    table
}

/// The rule that refused a statement; empty if none did.
fn rule_of(answer: &Response) -> String {
    let refused = Refused::of(answer);
    refused.and_then(|refused| refused.part("rule").map(str::to_owned)).unwrap_or_default()
}

/// What `sluice explain` says about a statement of `etl`.
fn explain(sluice: &SluiceProcess, sql: &str) -> String {
    let output = Command::new(binary().unwrap())
        .arg("explain")
        .arg("--config")
        .arg(sluice.config_path())
        .args(["--user", "etl", "--schema", "test", "--sql", sql])
        .env("SLUICE_PROBE_PASSWORD", "x")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The digest that it prints: hash and text.
fn explained(sluice: &SluiceProcess, sql: &str) -> (String, String) {
    let told = explain(sluice, sql);
    let line = told.lines().find_map(|line| line.strip_prefix("digest ")).unwrap();
    let (hash, text) = line.trim().split_once(' ').unwrap();
    (hash.to_owned(), text.to_owned())
}

/// A span of UTC hours that begins and ends so many minutes from now.
fn clock_span(from: i64, to: i64) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let minute = i64::try_from(since.as_secs() / 60).unwrap();
    let [from, to] = [from, to].map(|away| {
        let of_day = (minute + away).rem_euclid(1_440);
        format!("{:02}:{:02}", of_day / 60, of_day % 60)
    });
    format!("{from}-{to}")
}

const STATEMENTS: i32 = 400;
/// Of each app.
const SESSIONS: u32 = 100;
/// Admissions of the rarer app: their standard deviation is 7 %.
const ENOUGH: f64 = 200.0;
const RUN_LIMIT: Duration = Duration::from_secs(12);
