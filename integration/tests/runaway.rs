//! Statements that run away: killed within their limit, the session alive, their like in quarantine,
//! and never another statement in place of the one that was meant.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::scenario::{Refused, Shared, connect_as, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use mysql_async::prelude::Queryable as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

/// Held by tests that lock a whole server or change its accounts, and by those that would wait behind
/// that: a login waits for a GRANT, and a GRANT for a global read lock.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Some seconds of work that a KILL QUERY ends with its error.
const SLOW: &str = "SELECT SLEEP(3) FROM ran_away";

#[tokio::test]
async fn a_statement_over_its_limit_is_killed_and_its_like_is_in_quarantine() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let rules = "\
- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 500ms, action: kill, watch: { by: digest, for: 1m } } }
- { name: told, match: { app: told }, gate: none, permanent: true, runaway: { elapsed: 200ms } }";
        let sluice = started(servers, rules).await;
        let mut conn = connect_as(&sluice, "slow").await.unwrap();
        conn.query("SET @kept = 'yes'").await.unwrap().accepted().unwrap();
        let began = Instant::now();
        let answer = conn.query(SLOW).await.unwrap();
        assert_eq!(
            answer.err().map(|(errno, _)| errno),
            Some(1317),
            "the server's own: {answer:?}"
        );
        assert!(began.elapsed() >= Duration::from_millis(500));
        assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
        let kept = conn.query("SELECT @kept").await.unwrap();
        assert_eq!(kept.first_text().as_deref(), Some("yes"));

        // A SLEEP that is ended is no error: the procedure goes on behind it, and is killed again.
        let began = Instant::now();
        conn.query("CALL goes_on()").await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();

        let mut other = connect_as(&sluice, "slow").await.unwrap();
        for conn in [&mut conn, &mut other] {
            let refused = Refused::of(&conn.query(SLOW.replace('3', "2")).await.unwrap()).unwrap();
            assert_eq!((refused.errno, refused.reason()), (1226, Some("quarantined")));
            assert_eq!(refused.part("rule"), Some("slow"));
            conn.query("SELECT 1").await.unwrap().accepted().unwrap();
        }
        let mut elsewhere = connect_as(&sluice, "told").await.unwrap();
        elsewhere.query("SELECT SLEEP(0.4) FROM ran_away").await.unwrap().accepted().unwrap();
        let counted =
            |rule: &'static str, action: &'static str| [("rule", rule), ("action", action)];
        wait_for_sum(&sluice, "sluice_runaway_total", &counted("slow", "kill"), 2.0).await.unwrap();
        wait_for_sum(&sluice, "sluice_runaway_total", &counted("told", "log"), 1.0).await.unwrap();

        let status = sluice.http_get("/api/v1/status").await.unwrap().body;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["clusters"][0]["quarantine"][0]["id"], "main:1", "{status}");
        assert_eq!(
            status["clusters"][0]["quarantine"][1]["id"], "main:2",
            "once for each: {status}"
        );
        assert_eq!(status["clusters"][0]["quarantine"][2], serde_json::Value::Null);
        let listed = sluice.http_get("/api/v1/quarantine").await.unwrap().body;
        assert!(
            listed.contains("\"id\":\"main:1\"") && listed.contains("\"rule\":\"slow\""),
            "{listed}"
        );
        let freed = delete(&sluice, "/api/v1/quarantine/main:1").await;
        assert!(freed.starts_with("HTTP/1.1 200"), "{freed}");
        assert!(delete(&sluice, "/api/v1/quarantine/main:1").await.starts_with("HTTP/1.1 404"));
        let again = conn.query(SLOW).await.unwrap();
        assert_eq!(again.err().map(|(errno, _)| errno), Some(1317), "it may try again: {again:?}");
    }
}

/// The KILL is sent at the instant at which the statement ends: what follows it must never be hit.
#[tokio::test]
async fn a_kill_that_meets_the_end_of_its_statement_never_meets_the_next_one() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let rules = "- { name: edge, match: { app: edge }, gate: none, permanent: true, runaway: { elapsed: 20ms, action: kill } }";
        let sluice = started(servers, rules).await;
        let mut racers = JoinSet::new();
        for racer in 0..8_u32 {
            let mut conn = connect_as(&sluice, "edge").await.unwrap();
            racers.spawn(async move { race(&mut conn, racer).await });
        }
        let crossed = racers.join_all().await;
        let crossed: u32 = crossed.into_iter().sum();
        assert!((1..480).contains(&crossed), "some ended, some were killed: {crossed}");
        let rows: Option<i64> =
            servers.primary.query_first("SELECT COUNT(*) FROM test.ran_to").await.unwrap();
        assert_eq!(rows, Some(960));
    }
}

/// Sixty statements about as long as their limit, two more behind each; how many ended by themselves.
async fn race(conn: &mut RawConn, racer: u32) -> u32 {
    let mut crossed = 0;
    for round in 0..60_u32 {
        // From a little less than the limit to what leaves a busy machine time for the KILL.
        let ms = 18 + 6 * ((round + racer) % 14);
        let sql = format!("SELECT SLEEP({}) FROM ran_away", f64::from(ms) / 1_000.0);
        let answer = conn.query(sql).await.unwrap();
        let was_killed = answer.err().is_some_and(|(errno, _)| errno == 1317);
        crossed += u32::from(!was_killed);
        for _ in 0..2 {
            // Under no rule: on a busy machine it may take as long as the limit itself.
            let next = conn.query("INSERT /* app=next */ INTO ran_to VALUES (1)").await.unwrap();
            assert_eq!(next.err(), None, "hit by the KILL of the one before");
        }
    }
    crossed
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_ended_and_what_ends_a_transaction_never() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "\
- { name: wide, match: { app: wide }, gate: none, permanent: true, runaway: { bytes_sent: 200000, action: kill } }
- { name: many, match: { app: many }, gate: none, permanent: true, runaway: { rows_sent: 40, action: kill, watch: { for: 1m } } }
- { name: commit, match: { app: commit }, gate: none, permanent: true, runaway: { elapsed: 10ms, action: kill } }";
    let sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "wide").await.unwrap();
    let long = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                SELECT REPEAT('x', 2000), SLEEP(0.005) FROM n";
    let answer = conn.query(long).await.unwrap();
    assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317));
    conn.query("SELECT REPEAT('x', 1000)").await.unwrap().accepted().unwrap();

    let mut conn = connect_as(&sluice, "many").await.unwrap();
    let rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) SELECT i FROM n";
    conn.query(rows).await.unwrap().accepted().unwrap();
    let answer = conn.query(long).await.unwrap();
    assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "more than 40 rows");
    let refused = Refused::of(&conn.query(long).await.unwrap()).unwrap();
    assert_eq!(refused.reason(), Some("quarantined"));
    conn.query(rows).await.unwrap().accepted().unwrap();

    // A COMMIT waits for whoever has everything locked.
    let mut commits = connect_as(&sluice, "commit").await.unwrap();
    commits.query("BEGIN").await.unwrap().accepted().unwrap();
    commits.query("INSERT INTO ran_on VALUES (2)").await.unwrap().accepted().unwrap();
    let mut locker = servers.primary.admin().await.unwrap();
    locker.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
    let committing = tokio::spawn(async move { commits.query("COMMIT").await.unwrap().err() });
    let left = [("rule", "commit"), ("action", "left")];
    wait_for_sum(&sluice, "sluice_runaway_total", &left, 1.0).await.unwrap();
    locker.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(committing.await.unwrap(), None, "a COMMIT is never killed");
}

/// Of a text of several statements the server shows the one that runs. MariaDB does not say of a COMMIT
/// that waits that it commits.
#[tokio::test]
async fn a_commit_within_a_text_is_left_alone_however_it_is_written() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let rules = "- { name: text, match: { app: text }, gate: none, permanent: true, runaway: { elapsed: 10ms, action: kill } }";
        let sluice = started(servers, rules).await;
        for ends in ["/* trace='x' */ COMMIT", "-- it is time\n COMMIT", "/*!50000 COMMIT */"] {
            let mut conn = connect_as(&sluice, "text").await.unwrap();
            conn.query("BEGIN").await.unwrap().accepted().unwrap();
            conn.query("INSERT INTO ran_on VALUES (3)").await.unwrap().accepted().unwrap();
            let mut locker = servers.primary.admin().await.unwrap();
            locker.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
            let left = [("rule", "text"), ("action", "left")];
            let before = sluice.metrics().await.unwrap().sum("sluice_runaway_total", &left);
            let text = format!("SELECT 1; {ends}");
            let committing = tokio::spawn(async move { conn.query(text).await.unwrap().err() });
            wait_for_sum(&sluice, "sluice_runaway_total", &left, before + 1.0).await.unwrap();
            locker.query_drop("UNLOCK TABLES").await.unwrap();
            assert_eq!(committing.await.unwrap(), None, "{ends}: a COMMIT is never killed");
        }
    }
}

/// A server in trouble may have no connection left for the KILL, or its account too few rights.
#[tokio::test]
async fn a_statement_that_could_not_be_killed_is_killed_later() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: own, match: { app: own }, gate: none, permanent: true, runaway: { elapsed: 100ms, action: kill, watch: { by: digest, for: 1m } } }";
    let sluice = started(servers, rules).await;
    // The statements of who has SYSTEM_USER are killed by who has it too.
    let login = Login::new("admin").attribute("sluice_app", "own");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let long = "SELECT SLEEP(20) FROM test.ran_away";
    let killed = tokio::spawn(async move { conn.query(long).await.unwrap().err() });
    let failed = [("rule", "own"), ("action", "failed")];
    wait_for_sum(&sluice, "sluice_runaway_total", &failed, 1.0).await.unwrap();
    let mut other = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let (_, refused) = other.query(long).await.unwrap().err().unwrap();
    assert!(refused.contains("reason=quarantined"), "{refused}");
    servers.primary.run_sql(&["GRANT SYSTEM_USER ON *.* TO 'sluice'@'%'"]).await.unwrap();
    assert_eq!(killed.await.unwrap().map(|(errno, _)| errno), Some(1317));
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.sum("sluice_runaway_total", &failed), 1.0, "told once");
}

/// It goes on, and of its like one at a time is at the server; who holds locks does not wait for that.
#[tokio::test]
async fn what_is_like_a_statement_that_ran_away_comes_last_one_at_a_time() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: late, match: { app: late }, gate: none, permanent: true, runaway: { rows_sent: 2, elapsed: 200ms, action: deprioritise, watch: { for: 1m } } }";
    let sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "late").await.unwrap();
    conn.query("SELECT SLEEP(0.4) FROM ran_away").await.unwrap().accepted().unwrap();
    let counted = [("rule", "late"), ("action", "deprioritise")];
    wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();

    let began = Instant::now();
    let mut alike = JoinSet::new();
    let lane = [("budget", "(deprioritised)")];
    // The first has the line for long enough to look at who stands in it.
    alike.spawn(sleeps(connect_as(&sluice, "late").await.unwrap(), 2.0, true));
    wait_for_sum(&sluice, "sluice_budget_in_use", &lane, 1.0).await.unwrap();
    for _ in 0..3 {
        alike.spawn(sleeps(connect_as(&sluice, "late").await.unwrap(), 0.4, false));
    }
    wait_for_sum(&sluice, "sluice_budget_waiting", &lane, 3.0).await.unwrap();
    assert_eq!(sluice.metrics().await.unwrap().sum("sluice_budget_in_use", &lane), 1.0);
    conn.query("SELECT 1 FROM ran_away").await.unwrap().accepted().unwrap();
    conn.query("BEGIN").await.unwrap().accepted().unwrap();
    conn.query("UPDATE ran_away SET n = 1").await.unwrap().accepted().unwrap();
    conn.query("SELECT SLEEP(0.01) FROM ran_away").await.unwrap().accepted().unwrap();
    conn.query("COMMIT").await.unwrap().accepted().unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert!(metrics.sum("sluice_budget_waiting", &lane) > 0.0, "the others did not wait for them");
    assert!(metrics.sum("sluice_budget_exceeded_total", &lane) == 3.0);
    alike.join_all().await;
    assert!(began.elapsed() >= Duration::from_millis(3_200), "{:?}", began.elapsed());

    let many = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3";
    conn.query(many).await.unwrap().accepted().unwrap();
    let listed = sluice.http_get("/api/v1/quarantine").await.unwrap().body;
    assert_eq!(listed.matches("\"action\":\"deprioritise\"").count(), 2, "{listed}");
    let both =
        [connect_as(&sluice, "late").await.unwrap(), connect_as(&sluice, "late").await.unwrap()];
    assert!(delete(&sluice, "/api/v1/quarantine/main:1").await.starts_with("HTTP/1.1 200"));
    let mut freed = JoinSet::new();
    for conn in both {
        freed.spawn(sleeps(conn, 0.4, false));
    }
    freed.join_all().await;
    let exceeded = sluice.metrics().await.unwrap().sum("sluice_budget_exceeded_total", &lane);
    assert_eq!(exceeded, 3.0, "nobody waits for what is free");
}

async fn sleeps(mut conn: RawConn, seconds: f64, prepared: bool) {
    let text = &format!("SELECT SLEEP({seconds:.1}) FROM ran_away");
    let answer = if prepared {
        let prepared = conn.prepare(text).await.unwrap();
        conn.execute(&prepared, &[]).await.unwrap()
    } else {
        conn.query(text).await.unwrap()
    };
    assert_eq!(answer.err(), None);
}

/// What the door answers to a DELETE.
async fn delete(sluice: &SluiceProcess, path: &str) -> String {
    let mut door = TcpStream::connect(sluice.admin_addr()).await.unwrap();
    let host = sluice.admin_addr();
    let request = format!("DELETE {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    door.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    door.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Sluice with these rules and a probe that may kill, in front of a table of one row.
async fn started(servers: &Topology, rules: &str) -> SluiceProcess {
    let right = match servers.primary.flavour() {
        Flavour::MySql => "GRANT CONNECTION_ADMIN ON *.* TO 'sluice'@'%'",
        Flavour::MariaDb => "GRANT CONNECTION ADMIN ON *.* TO 'sluice'@'%'",
    };
    let statements = [
        right,
        "CREATE TABLE IF NOT EXISTS test.ran_away (n INT PRIMARY KEY)",
        "REPLACE INTO test.ran_away VALUES (1)",
        "CREATE TABLE IF NOT EXISTS test.ran_to (n INT)",
        "CREATE TABLE IF NOT EXISTS test.ran_on (n INT)",
        "DROP PROCEDURE IF EXISTS test.goes_on",
        "CREATE PROCEDURE test.goes_on() BEGIN DO SLEEP(20); DO SLEEP(20); END",
    ];
    servers.primary.run_sql(&statements).await.unwrap();
    let config = Config::new(servers).unwrap().rules(rules).admin_keys("loopback_changes: true");
    SluiceProcess::start(&config).await.unwrap()
}
