//! Statements that run away: killed within their limit, the session alive, their like in quarantine,
//! and never another statement in place of the one that was meant.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::scenario::{Refused, Shared, connect_as, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;
use mysql_async::prelude::Queryable as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

mod another_server;
mod cursors;
mod edits;
mod gone;
mod kept;
mod lanes;
mod throttled;
mod told;
mod uploads;
mod without_tls;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

/// Held by tests that lock a whole server or change its accounts, and by those that would wait behind
/// that: a login waits for a GRANT, and a GRANT for a global read lock.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// More work than anybody waits for, which a KILL QUERY ends with its error.
const SLOW: &str = "SELECT SLEEP(30) FROM ran_away";

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
        assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "its own: {answer:?}");
        assert!(began.elapsed() >= Duration::from_millis(500));
        assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
        let kept = conn.query("SELECT @kept").await.unwrap();
        assert_eq!(kept.first_text().as_deref(), Some("yes"));

        // A SLEEP that is ended is no error: the procedure goes on behind it, and is killed again.
        let began = Instant::now();
        conn.query("CALL goes_on()").await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();

        let mut other = connect_as(&sluice, "slow").await.unwrap();
        for conn in [&mut conn, &mut other] {
            let refused = Refused::of(&conn.query(SLOW.replace('3', "2")).await.unwrap()).unwrap();
            assert_eq!((refused.errno, refused.reason()), (1226, Some("quarantined")));
            assert_eq!(refused.part("rule"), Some("slow"));
            conn.query("SELECT 1").await.unwrap().accepted().unwrap();
        }
        let mut elsewhere = connect_as(&sluice, "told").await.unwrap();
        elsewhere.query("SELECT SLEEP(1) FROM ran_away").await.unwrap().accepted().unwrap();
        let counted =
            |rule: &'static str, action: &'static str| [("rule", rule), ("action", action)];
        wait_for_sum(&sluice, "sluice_runaway_total", &counted("slow", "kill"), 2.0).await.unwrap();
        wait_for_sum(&sluice, "sluice_runaway_total", &counted("told", "log"), 1.0).await.unwrap();

        let status = sluice.http_get("/api/v1/status").await.unwrap().body;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let status = &status["clusters"][0];
        let all = listed(&sluice).await;
        assert_eq!(all.len(), 2, "once for each: {all:?}");
        assert_eq!(status["quarantine"], serde_json::Value::from(all.clone()));
        let (first, id) = (&all[0], all[0]["id"].as_str().unwrap());
        assert_eq!(first["rule"], "slow");
        let refused = &status["refused"];
        let by =
            |row: &serde_json::Value| row["quarantine"] == id && row["reason"] == "quarantined";
        assert!(refused.as_array().unwrap().iter().any(by), "{refused}");
        let path = format!("/api/v1/quarantine/{id}");
        let freed = delete(&sluice, &path).await;
        assert!(freed.starts_with("HTTP/1.1 200"), "{freed}");
        assert!(delete(&sluice, &path).await.starts_with("HTTP/1.1 404"));
        let again = conn.query(SLOW).await.unwrap();
        assert_eq!(again.err().map(|(errno, _)| errno), Some(1317), "it may try again: {again:?}");
    }
}

/// What is listed is what is held: with the rule's `watch` gone, nothing is. And the log says which
/// statement it was, as insights do.
#[tokio::test]
async fn a_quarantine_ends_with_the_watch_of_its_rule() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let watching = "- { name: slow, match: { app: slow }, gate: none, permanent: true, \
                    runaway: { elapsed: 300ms, action: kill, watch: { by: digest, for: 1m } } }";
    let config = configured(servers, watching).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect_as(&sluice, "slow").await.unwrap();
    let errno = conn.query(SLOW).await.unwrap().err().map(|(errno, _)| errno);
    assert_eq!(errno, Some(1317));
    let entries = listed(&sluice).await;
    let digest = format!("digest={}", entries[0]["hash"].as_str().unwrap());
    let log = sluice.log().unwrap();
    let mut lines = log.lines().filter(|line| line.contains("a statement runs away"));
    assert!(lines.any(|line| line.contains(&digest)), "{digest}: {log}");
    let at = |told: &Metrics| told.sum("sluice_config_last_reload_timestamp_seconds", &[]);
    let saved = async |rules: &str| {
        let before = at(&sluice.metrics().await.unwrap());
        sluice.write_config(&config.clone().rules(rules).render()).unwrap();
        let again = |told: &Metrics| at(told) > before;
        sluice.wait_for_metrics("it is applied", Duration::from_secs(10), again).await.unwrap();
    };
    let without = watching.replace(", watch: { by: digest, for: 1m }", "");
    // What the first has freed stays free behind the second.
    for rules in [&*without, watching] {
        saved(rules).await;
        assert_eq!(listed(&sluice).await, Vec::<serde_json::Value>::new());
        let again = conn.query(SLOW).await.unwrap().err().map(|(errno, _)| errno);
        assert_eq!(again, Some(1317), "it is killed, and not refused");
    }
    saved(&watching.replace("for: 1m", "for: 10m")).await;
    assert!(listed(&sluice).await[0]["left_s"].as_i64() > Some(500));
}

/// What is in quarantine.
async fn listed(sluice: &SluiceProcess) -> Vec<serde_json::Value> {
    let body = sluice.http_get("/api/v1/quarantine").await.unwrap().body;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body.get("quarantine").unwrap().as_array().unwrap().clone()
}

/// One that works in small pieces with a pause behind each would be met in a pause time and again.
#[tokio::test]
async fn a_procedure_of_small_pieces_is_killed_between_two_pauses() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let rules = "- { name: pieces, match: { app: pieces }, gate: none, permanent: true, runaway: { elapsed: 500ms, action: kill } }";
        let sluice = started(servers, rules).await;
        let mut conn = connect_as(&sluice, "pieces").await.unwrap();
        let began = Instant::now();
        let answer = conn.query("CALL in_pieces()").await.unwrap();
        let took = began.elapsed();
        assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "{took:?}: {answer:?}");
        assert!(took < Duration::from_secs(8), "{took:?} of fifteen seconds");
        let pieces: i64 =
            servers.primary.query_first("SELECT MAX(n) FROM test.ran_in").await.unwrap().unwrap();
        assert!(pieces < 80, "{pieces}: it is not to be quicker for it");
        let counted = [("rule", "pieces"), ("action", "kill")];
        wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();
    }
}

/// Its answer is always there, for it takes its time: nobody waits for the server.
#[tokio::test]
async fn a_client_that_reads_slowly_holds_its_statement_for_no_longer() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: reads, match: { app: reads }, gate: none, permanent: true, runaway: { elapsed: 300ms, action: kill } }";
    let sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "reads").await.unwrap();
    let payload = conn.query_payload(MANY_ROWS.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
    read_to_the_kill(&mut conn, Duration::from_millis(10)).await;
    let counted = [("rule", "reads"), ("action", "kill")];
    wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();
}

/// Nobody reads what the server says meanwhile, so that it waits, and does not look for a KILL.
#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_statement_first_and_then_its_connection() {
    let _alone = ALONE.lock().await;
    let servers = [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()];
    let mut both = JoinSet::new();
    for servers in servers {
        both.spawn(takes_nothing(servers));
    }
    while let Some(one) = both.join_next().await {
        one.unwrap();
    }
}

async fn takes_nothing(servers: &Topology) {
    let rules = "- { name: stalls, match: { app: stalls }, gate: none, permanent: true, runaway: { elapsed: 300ms, action: kill } }";
    let sluice = started(servers, rules).await;
    let mut gone = connect_as(&sluice, "stalls").await.unwrap();
    let mut pauses = connect_as(&sluice, "stalls").await.unwrap();
    let began = Instant::now();
    for conn in [&mut gone, &mut pauses] {
        let payload = conn.query_payload(MANY_ROWS.as_bytes(), &[]);
        conn.send_command(&payload).await.unwrap();
    }
    let counted = [("rule", "stalls"), ("action", "kill")];
    wait_for_sum(&sluice, "sluice_runaway_total", &counted, 2.0).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    // Who takes it then is told, and goes on.
    tokio::time::sleep(Duration::from_secs(2)).await;
    read_to_the_kill(&mut pauses, Duration::ZERO).await;
    pauses.query("SELECT 1").await.unwrap().accepted().unwrap();
    // Who does not has no statement at the server any more, long before net_write_timeout.
    let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'WITH %'";
    while servers.primary.query_first::<u32>(running).await.unwrap().unwrap() > 0 {
        assert!(began.elapsed() < Duration::from_secs(9), "it is still there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The rest of the answer may fit into the sockets between them: the statement is over then, and
    // only the connection is not. It has five seconds from the KILL on.
    tokio::time::sleep_until((began + Duration::from_secs(7)).into()).await;
    let mut left = Vec::new();
    let rest = gone.stream().read_to_end(&mut left);
    tokio::time::timeout(Duration::from_secs(10), rest).await.unwrap().ok();
    assert!(left.len() < 62_500_000, "the connection has ended");
}

/// More than all buffers between the server and a client hold.
const MANY_ROWS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) \
                         SELECT REPEAT('x', 1000) FROM n, n m";

/// Reads pieces of the answer to [`MANY_ROWS`], with a pause ahead of each, to the server's error.
async fn read_to_the_kill(conn: &mut RawConn, pause: Duration) {
    let (mut piece, mut last, mut read) = (vec![0; 128 * 1024], Vec::new(), 0);
    while read < 62_500_000 && !contains(&last, b"interrupted") {
        tokio::time::sleep(pause).await;
        let len = conn.stream().read(&mut piece).await.unwrap();
        assert!(len > 0, "closed after {read}");
        read += len;
        last.extend_from_slice(piece.get(..len).unwrap());
        last.drain(..last.len().saturating_sub(64));
    }
    assert!(contains(&last, b"interrupted"), "all of it has come: {read}");
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
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
- { name: commit, match: { app: commit }, gate: none, permanent: true, runaway: { elapsed: 300ms, action: kill } }";
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
    // All of it is there at once: nothing is left to kill, and it ran away all the same.
    let at_once = rows.replace("< 30", "< 60").replace("SELECT i FROM", "SELECT i, i FROM");
    conn.query(&at_once).await.unwrap().accepted().unwrap();
    let over = [("rule", "many"), ("action", "over")];
    wait_for_sum(&sluice, "sluice_runaway_total", &over, 1.0).await.unwrap();
    let refused = Refused::of(&conn.query(&at_once).await.unwrap()).unwrap();
    assert_eq!(refused.reason(), Some("quarantined"));

    // A COMMIT waits for whoever has everything locked.
    let mut commits = connect_as(&sluice, "commit").await.unwrap();
    commits.query("BEGIN /* app=next */").await.unwrap().accepted().unwrap();
    commits
        .query("INSERT /* app=next */ INTO ran_on VALUES (2)")
        .await
        .unwrap()
        .accepted()
        .unwrap();
    let mut locker = servers.primary.admin().await.unwrap();
    locker.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
    let committing = tokio::spawn(async move { commits.query("COMMIT").await.unwrap().err() });
    let left = [("rule", "commit"), ("action", "left")];
    wait_for_sum(&sluice, "sluice_runaway_total", &left, 1.0).await.unwrap();
    locker.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(committing.await.unwrap(), None, "a COMMIT is never killed");
}

/// Of a text of several statements the server shows the one that runs. MariaDB does not say of a COMMIT
/// that waits that it commits, and neither of what commits ahead of itself: a KILL there rolled back
/// the transaction, and not the ALTER only.
#[tokio::test]
async fn a_commit_within_a_text_is_left_alone_however_it_is_written() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let rules = "- { name: text, match: { app: text }, gate: none, permanent: true, runaway: { elapsed: 300ms, action: kill } }";
        let sluice = started(servers, rules).await;
        for ends in [
            "/* trace='x' */ COMMIT",
            "-- it is time\n COMMIT",
            "/*!50000 COMMIT */",
            "ALTER TABLE ran_to COMMENT = 'it commits what is open'",
        ] {
            let mut conn = connect_as(&sluice, "text").await.unwrap();
            // Under no rule: on a busy machine it may take as long as the limit itself.
            conn.query("BEGIN /* app=next */").await.unwrap().accepted().unwrap();
            let insert = "INSERT /* app=next */ INTO ran_on VALUES (3)";
            conn.query(insert).await.unwrap().accepted().unwrap();
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
    let rules = "- { name: late, match: { app: late }, gate: none, permanent: true, runaway: { rows_sent: 2, elapsed: 600ms, action: deprioritise, watch: { for: 1m } } }";
    let sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "late").await.unwrap();
    conn.query("SELECT SLEEP(0.9) FROM ran_away").await.unwrap().accepted().unwrap();
    let counted = [("rule", "late"), ("action", "deprioritise")];
    wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();

    let began = Instant::now();
    let mut alike = JoinSet::new();
    let lane = [("budget", "(deprioritised)")];
    // The first has the line for long enough to look at who stands in it.
    alike.spawn(sleeps(connect_as(&sluice, "late").await.unwrap(), 3.0, true));
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
    assert!(began.elapsed() >= Duration::from_millis(4_200), "{:?}", began.elapsed());

    let many = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3";
    conn.query(many).await.unwrap().accepted().unwrap();
    let all = listed(&sluice).await;
    assert!(all.len() == 2 && all.iter().all(|it| it["action"] == "deprioritise"), "{all:?}");
    let both =
        [connect_as(&sluice, "late").await.unwrap(), connect_as(&sluice, "late").await.unwrap()];
    let path = format!("/api/v1/quarantine/{}", all[0]["id"].as_str().unwrap());
    assert!(delete(&sluice, &path).await.starts_with("HTTP/1.1 200"));
    let mut freed = JoinSet::new();
    for conn in both {
        freed.spawn(sleeps(conn, 0.2, false));
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
    let sluice = SluiceProcess::start(&configured(servers, rules).await).await.unwrap();
    // It shows a procedure by the host of its definer: what runs there is killed once Sluice has found
    // the server behind its address three times.
    if servers.primary.flavour() == Flavour::MariaDb {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    sluice
}

/// The file of that.
async fn configured(servers: &Topology, rules: &str) -> Config {
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
        "CREATE TABLE IF NOT EXISTS test.ran_in (n INT)",
        "INSERT INTO test.ran_in WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
         WHERE i < 64) SELECT 0 FROM n, n m",
        "CREATE PROCEDURE IF NOT EXISTS test.in_pieces() BEGIN DECLARE i INT DEFAULT 0; WHILE i < 150 DO \
         SET i = i + 1; UPDATE test.ran_in SET n = i; DO SLEEP(0.1); END WHILE; END",
        "CREATE PROCEDURE IF NOT EXISTS test.goes_on() BEGIN DO SLEEP(20); DO SLEEP(20); END",
    ];
    servers.primary.run_sql(&statements).await.unwrap();
    Config::new(servers).unwrap().rules(rules).admin_keys("loopback_changes: true")
}
