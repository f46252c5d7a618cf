//! Budgets on a real server: what is at the server at once is judged by the server itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn, Shape};
use integration::scenario::{Held, wait_for_sum};
use integration::server::{Flavour, PerformanceSchema, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

mod edits;
mod places;
mod rates;
mod restarted;
mod storm;
mod users;

#[tokio::test]
async fn what_budgets_allow_is_what_the_server_sees() {
    let mut options = ServerOptions::new(Flavour::MySql);
    options.performance_schema = PerformanceSchema::On;
    let server = Server::start(options).await.unwrap();
    server.run_sql(&[TABLE, ROWS, HISTORY]).await.unwrap();
    let mut config = Config::in_front_of(server.addr(), Vec::new()).unwrap();
    config.rules = RULES.to_owned();
    config.top = BUDGETS.to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();

    forty_reports(&server, &sluice).await;
    two_budgets(&server, &sluice).await;
    a_rate(&sluice).await;
    a_share(&server, &sluice).await;
    whoever_holds_locks_passes_and_counts(&server, &sluice).await;
    whoever_leaves_gives_back(&server, &sluice).await;
    refused_and_warned(&server, &sluice).await;
    one_after_the_other(&sluice).await;
    edited(&server, &sluice, &config).await;
}

/// A report run forty times at once is four at a time, and all finish.
async fn forty_reports(server: &Server, sluice: &SluiceProcess) {
    // All are there before the first asks: on a busy machine a login takes longer than a report.
    let mut sessions = Vec::new();
    for _ in 0..40 {
        sessions.push(session(sluice.listen_addr(), "report").await);
    }
    let began = Instant::now();
    let mut reports = JoinSet::new();
    for (n, mut conn) in sessions.into_iter().enumerate() {
        reports.spawn(async move {
            conn.query(format!("SELECT SLEEP(0.1), 'report {n}'"))
                .await
                .unwrap()
                .accepted()
                .unwrap();
        });
    }
    wait_for_sum(sluice, "sluice_budget_in_use", &[("budget", "reports")], 4.0).await.unwrap();
    while let Some(report) = reports.join_next().await {
        report.unwrap();
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1), "40 of 0.1 s, four at a time: {took:?}");
    let seen = at_once(server, "report%").await;
    assert_eq!((seen.statements, seen.most), (40, 4));
    let metrics = sluice.metrics().await.unwrap();
    let of = |name| metrics.sum(name, &[("budget", "reports")]);
    assert_eq!(of("sluice_budget_in_use"), 0.0);
    assert!(of("sluice_budget_exceeded_total") >= 30.0);
}

/// A statement that two budgets meet needs room in both.
async fn two_budgets(server: &Server, sluice: &SluiceProcess) {
    let mut all = JoinSet::new();
    for (n, app) in (0..36).zip(["both:left", "both:right", "left"].into_iter().cycle()) {
        let addr = sluice.listen_addr();
        all.spawn(async move {
            let mut conn = session(addr, app).await;
            let text = format!("SELECT SLEEP(0.05), '{app} {n}'");
            conn.query(text).await.unwrap().accepted().unwrap();
        });
    }
    while let Some(one) = all.join_next().await {
        one.unwrap();
    }
    let (both, left) = (at_once(server, "both%").await, at_once(server, "%left%").await);
    assert_eq!((both.statements, left.statements), (24, 24));
    assert!(both.most <= 3 && left.most <= 2, "{both:?} {left:?}");
    assert_eq!(left.most, 2, "none is left idle");
}

/// Statements a second, of one session and of several.
async fn a_rate(sluice: &SluiceProcess) {
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(session(sluice.listen_addr(), "paced").await);
    }
    let began = Instant::now();
    let mut all = JoinSet::new();
    for mut conn in sessions {
        all.spawn(async move {
            for _ in 0..10 {
                conn.query("SELECT 1").await.unwrap().accepted().unwrap();
            }
        });
    }
    while let Some(one) = all.join_next().await {
        one.unwrap();
    }
    let took = began.elapsed().as_secs_f64();
    assert!((0.9..2.0).contains(&took), "40 at 40 a second: {took}");
}

/// A quarter of a session that works all the time, by the server's own timers, beside somebody else's
/// load and another budget, of two statements at once.
async fn a_share(server: &Server, sluice: &SluiceProcess) {
    const TIME: Duration = Duration::from_secs(8);
    let began = Instant::now();
    let mut all = JoinSet::new();
    for (n, app) in (0..8).zip(["share", "share", "share", "others"].into_iter().cycle()) {
        let addr = sluice.listen_addr();
        all.spawn(async move {
            let mut conn = session(addr, app).await;
            for ms in (0..u32::MAX).map(|at| 10 + 17 * ((at + n) % 4)) {
                if began.elapsed() > TIME {
                    break;
                }
                let text = format!("SELECT SLEEP({}), '{app} {n}'", f64::from(ms) / 1e3);
                conn.query(text).await.unwrap().accepted().unwrap();
            }
        });
    }
    while let Some(one) = all.join_next().await {
        one.unwrap();
    }
    let elapsed = began.elapsed().as_secs_f64();
    let text = "SELECT SUM(TIMER_WAIT) / 1e12 FROM performance_schema.events_statements_history_long \
                WHERE SQL_TEXT LIKE 'SELECT SLEEP(%), ''share%'";
    let seconds: f64 = server.query_first(text).await.unwrap().unwrap();
    // What may be owed at first is a burst besides.
    let share = (seconds - 0.25) / elapsed;
    assert!((0.22..=0.28).contains(&share), "{share} of a second, of {seconds} in {elapsed}");
    assert!(at_once(server, "share%").await.most <= 2);
}

/// In a transaction that has locked rows nothing waits for a budget; it counts.
async fn whoever_holds_locks_passes_and_counts(server: &Server, sluice: &SluiceProcess) {
    let addr = sluice.listen_addr();
    let mut holder = session(addr, "alone").await;
    holder.query("BEGIN").await.unwrap().accepted().unwrap();
    holder.query("UPDATE t SET n = 1 WHERE id = 1").await.unwrap().accepted().unwrap();
    // What the server cannot parse has not ended anything.
    let mistyped = holder.query("UPDTE t SET n = 1 WHERE id = 1").await.unwrap();
    assert_eq!(mistyped.err().map(|(errno, _)| errno), Some(1064));
    let mut other = session(addr, "alone").await;
    let held = Held::take(server).await.unwrap();
    send(&mut other, &Held::statement("other")).await;
    let used = [("budget", "alone")];
    wait_for_sum(sluice, "sluice_budget_in_use", &used, 1.0).await.unwrap();
    let answer = timeout(PATIENCE, holder.query("SELECT SLEEP(0.1)")).await;
    answer.unwrap().unwrap().accepted().unwrap();
    held.release().await.unwrap();
    holder.query("COMMIT").await.unwrap().accepted().unwrap();
    other.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    wait_for_sum(sluice, "sluice_budget_in_use", &used, 0.0).await.unwrap();
}

/// Whoever leaves while it waits leaves nothing behind, and of whoever leaves while the server works
/// the place is free when that is over.
async fn whoever_leaves_gives_back(server: &Server, sluice: &SluiceProcess) {
    let addr = sluice.listen_addr();
    let (used, waiting) = ("sluice_budget_in_use", "sluice_budget_waiting");
    let alone = [("budget", "alone")];
    let mut works = session(addr, "alone").await;
    let held = Held::take(server).await.unwrap();
    send(&mut works, &Held::statement("works")).await;
    wait_for_sum(sluice, used, &alone, 1.0).await.unwrap();
    let mut waits = session(addr, "alone").await;
    send(&mut waits, "SELECT 2").await;
    wait_for_sum(sluice, waiting, &alone, 1.0).await.unwrap();
    drop(waits);
    wait_for_sum(sluice, waiting, &alone, 0.0).await.unwrap();
    drop(works);
    held.release().await.unwrap();
    wait_for_sum(sluice, used, &alone, 0.0).await.unwrap();
    let mut next = session(addr, "alone").await;
    next.query("SELECT 3").await.unwrap().accepted().unwrap();
    wait_for_sum(sluice, used, &alone, 0.0).await.unwrap();
}

async fn refused_and_warned(server: &Server, sluice: &SluiceProcess) {
    let addr = sluice.listen_addr();
    for (app, refused) in [("impatient", true), ("warned", false)] {
        let mut works = session(addr, app).await;
        let held = Held::take(server).await.unwrap();
        send(&mut works, &Held::statement("works")).await;
        let budget = [("budget", app)];
        wait_for_sum(sluice, "sluice_budget_in_use", &budget, 1.0).await.unwrap();
        let mut next = session(addr, app).await;
        let answer = next.query("SELECT 1").await.unwrap();
        match answer.err() {
            Some((errno, message)) => {
                assert!(refused, "{app}: {message}");
                assert_eq!(errno, 1205);
                assert!(message.contains(" rule=everything "), "{message}");
                assert!(
                    message.contains(" reason=budget_concurrency budget=impatient "),
                    "{message}"
                );
                assert!(message.ends_with(" executed=no]"), "{message}");
            }
            None => assert!(!refused, "{app}"),
        }
        let mode = if refused { "enforce" } else { "warn" };
        let metrics = sluice.metrics().await.unwrap();
        let exceeded = [("budget", app), ("mode", mode)];
        assert_eq!(metrics.sum("sluice_budget_exceeded_total", &exceeded), 1.0, "{app}");
        held.release().await.unwrap();
    }
    let metrics = sluice.metrics().await.unwrap();
    let labels = [("decision", "rejected"), ("reason", "budget_concurrency"), ("app", "impatient")];
    assert_eq!(metrics.sum("sluice_statements_total", &labels), 1.0);
    let status = sluice.http_get("/api/v1/status").await.unwrap().body;
    let status: Value = serde_json::from_str(&status).unwrap();
    let rows = status.pointer("/clusters/0/refused").unwrap();
    let expected = [
        ("app", "impatient"),
        ("user", "web"),
        ("rule", "everything"),
        ("budget", "impatient"),
        ("reason", "budget_concurrency"),
    ];
    for (key, value) in expected {
        assert_eq!(rows.pointer(&format!("/0/{key}")), Some(&value.into()), "{rows}");
    }
    assert_eq!((rows.pointer("/0/count"), rows.get(1)), (Some(&1.into()), None), "{rows}");
}

/// Whoever has an answer may go on with another connection: the place is free by then.
async fn one_after_the_other(sluice: &SluiceProcess) {
    let addr = sluice.listen_addr();
    // Somebody has left while a statement ran.
    let budget = [("budget", "impatient")];
    wait_for_sum(sluice, "sluice_budget_in_use", &budget, 0.0).await.unwrap();
    for app in ["impatient", "single"] {
        let mut conns = [session(addr, app).await, session(addr, app).await];
        for n in 0..500 {
            for conn in &mut conns {
                let answer = conn.query("SELECT 1").await.unwrap();
                assert_eq!(answer.err(), None, "{app}, after {n}");
            }
        }
    }
}

/// The file changes while statements are at the server: they stay counted.
async fn edited(server: &Server, sluice: &SluiceProcess, config: &Config) {
    let addr = sluice.listen_addr();
    let mut works = session(addr, "alone").await;
    let held = Held::take(server).await.unwrap();
    send(&mut works, &Held::statement("works")).await;
    let alone = [("budget", "alone")];
    wait_for_sum(sluice, "sluice_budget_in_use", &alone, 1.0).await.unwrap();
    let mut waits = session(addr, "alone").await;
    send(&mut waits, "SELECT 2").await;
    wait_for_sum(sluice, "sluice_budget_waiting", &alone, 1.0).await.unwrap();
    let mut edited = config.clone();
    edited.top = BUDGETS.replace("max_concurrency: 1 }", "max_concurrency: 2 }");
    edited.rules = RULES.split("\n- { name: everything").next().unwrap_or_default().to_owned();
    sluice.write_config(&edited.render()).unwrap();
    let answer = timeout(PATIENCE, waits.read_response(Shape::Query)).await;
    // There is room for two now.
    answer.unwrap().unwrap().accepted().unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.sum("sluice_budget_in_use", &alone), 1.0, "the first is there yet");

    // Whom no rule matches waits for a budget, and in the metrics of the queue as well.
    let no_rule = [("rule", "none")];
    let mut second = session(addr, "alone").await;
    send(&mut second, &Held::statement("second")).await;
    wait_for_sum(sluice, "sluice_budget_in_use", &alone, 2.0).await.unwrap();
    send(&mut waits, "SELECT 3").await;
    wait_for_sum(sluice, "sluice_queue_depth", &no_rule, 1.0).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert!(metrics.sum("sluice_queue_oldest_seconds", &[("app", "alone")]) > 0.0);
    held.release().await.unwrap();
    for conn in [&mut works, &mut second, &mut waits] {
        conn.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    }
    assert_eq!(sluice.metrics().await.unwrap().sum("sluice_queue_depth", &no_rule), 0.0);
    wait_for_sum(sluice, "sluice_budget_in_use", &alone, 0.0).await.unwrap();
}

async fn session(addr: SocketAddr, app: &str) -> RawConn {
    RawConn::open(addr, &Login::new("web").attribute("sluice_app", app)).await.unwrap()
}

/// Sends a statement without waiting for its answer.
async fn send(conn: &mut RawConn, sql: &str) {
    let payload = conn.query_payload(sql.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
}

/// What the server has seen of statements.
#[derive(Debug)]
struct Seen {
    statements: usize,
    /// At the server at any one instant.
    most: usize,
}

/// By the server's own timers. A statement is under way for as long as it sleeps: behind its answer the server frees what
/// it had, and on a busy machine its thread waits for a core meanwhile.
async fn at_once(server: &Server, which: &str) -> Seen {
    let text = format!(
        "SELECT TIMER_START, LEAST(TIMER_END, TIMER_START + \
             CAST(1e12 * SUBSTRING_INDEX(SUBSTRING(SQL_TEXT, 14), ')', 1) AS UNSIGNED)) \
         FROM performance_schema.events_statements_history_long \
         WHERE SQL_TEXT LIKE 'SELECT SLEEP(%), ''{which}'''"
    );
    let spans: Vec<(u64, u64)> = server.query(&text).await.unwrap();
    let under_way = |at: u64| spans.iter().filter(|(start, end)| *start <= at && at < *end).count();
    let most = spans.iter().map(|(start, _)| under_way(*start)).max().unwrap_or(0);
    Seen { statements: spans.len(), most }
}

/// Whoever waited for a place that is held would wait for longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a server does behind the last byte of an answer: it frees what the statement had, and on a busy
/// machine its thread waits for a core meanwhile. Forty milliseconds: where twice as many want to run as
/// there are cores, thirty were seen.
const TAIL_PS: u64 = 40 * PS_IN_A_MS;
const PS_IN_A_MS: u64 = 1_000_000_000;
const TABLE: &str = "CREATE TABLE test.t (id INT PRIMARY KEY, n INT)";
const ROWS: &str = "INSERT INTO test.t VALUES (1, 0), (2, 0)";
const HISTORY: &str = "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
                       WHERE NAME = 'events_statements_history_long'";
const RULES: &str = "\
- { name: single, match: { app: single }, gate: none, statements: [read], max_in_flight: 1, \
    on_refused_check: reject, permanent: true }
- { name: everything, gate: none, permanent: true }";
const BUDGETS: &str = "\
budgets:
  - { name: reports, match: { app: report }, max_concurrency: 4 }
  - { name: both, match: { app: both }, max_concurrency: 3 }
  - { name: left, match: { app: left }, max_concurrency: 2 }
  - { name: paced, match: { app: paced }, rate: 40 }
  - { name: share, match: { app: share }, share: 0.25, burst: 0.25 }
  - { name: beside, match: { app: share }, max_concurrency: 2 }
  - { name: alone, match: { app: alone }, max_concurrency: 1 }
  - { name: impatient, match: { app: impatient }, max_concurrency: 1, on_exceeded: refuse }
  - { name: warned, match: { app: warned }, max_concurrency: 1, mode: warn }";
