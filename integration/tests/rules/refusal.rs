//! What a refused client sees, and what it can still do: errno, SQLSTATE, message, sequence id; the
//! connection, its transaction and the table afterwards. And other ends of a wait: KILL, a full queue,
//! mode `observe`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::time::{Duration, Instant};

use integration::raw::response::SERVER_STATUS_IN_TRANS;
use integration::raw::{MAX_PAYLOAD, Param, Response, Shape, framed};
use integration::scenario::{
    Pending, Refused, Shared, Switch, connect, connect_as, is, numbers, wait_for_depth,
    wait_for_sum,
};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn a_refusal_says_what_refused_it_and_that_nothing_was_executed() {
    let servers = MYSQL.get().await.unwrap();
    let table = made(servers, "r_message").await;
    let switch = Switch::new(&servers.primary, "r_message").await.unwrap();
    let rules = "- { name: backfill, match: { app: online-ddl }, gate: [r_message], max_delay: 700ms, permanent: true }";
    let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    switch.shut(&sluice).await.unwrap();
    let mut conn = connect_as(&sluice, "job:7:online-ddl").await.unwrap();
    let response = conn.query(format!("INSERT INTO {table} VALUES (1)")).await.unwrap();
    let refused = refusal(&response);
    assert_eq!((refused.errno, refused.sqlstate.as_str(), refused.sequence), (1205, "HY000", 1));
    let start = "Lock wait timeout exceeded; try restarting transaction [sluice id=";
    assert!(refused.message.starts_with(start), "{refused:?}");
    assert!(refused.message.ends_with(" executed=no]"), "{refused:?}");
    assert!(!refused.message.contains("INSERT") && !refused.message.contains('\n'));
    assert!(refused.message.len() <= 512);
    let expected = [
        ("rule", "backfill"),
        ("identity", "job:7:online-ddl"),
        ("reason", "gate_closed"),
        ("signal", "r_message"),
        ("value", "100"),
        ("threshold", "50"),
    ];
    for (key, value) in expected {
        assert_eq!(refused.part(key), Some(value), "{refused:?}");
    }
    let waited_ms: u64 = refused.part("waited_ms").unwrap().parse().unwrap();
    assert!((700..5_000).contains(&waited_ms), "{refused:?}");
    assert!(refused.part("retry_after_ms").unwrap().parse::<u64>().unwrap() > 0, "{refused:?}");
    assert!(sluice.log().unwrap().contains(refused.part("id").unwrap()), "the log has it too");
    assert!(rows(servers, table).await.is_empty());
}

#[tokio::test]
async fn each_profile_has_its_errno_and_sqlstate() {
    let servers = MYSQL.get().await.unwrap();
    let table = made(servers, "r_profiles").await;
    let rules = "\
- { name: retry, match: { app: retry }, ratio: 1, on_refused_check: reject, permanent: true }
- { name: spring, match: { app: spring }, ratio: 1, on_refused_check: reject, error: retryable_40001, permanent: true }
- { name: vitess, match: { app: vitess }, ratio: 1, on_refused_check: reject, error: vitess, permanent: true }
- { name: quota, match: { app: quota }, ratio: 1, on_refused_check: reject, error: quota, permanent: true }
- { name: deny, match: { app: deny }, deny: true, permanent: true }
- name: custom
  match: { app: custom }
  deny: true
  error: { errno: 30001, sqlstate: \"45000\", message: Come back tonight }
  permanent: true";
    let sluice = start(servers, rules).await;
    let expected = [
        ("retry", 1205, "HY000", "ratio"),
        ("spring", 1205, "40001", "ratio"),
        ("vitess", 1041, "HY000", "ratio"),
        ("quota", 1226, "42000", "ratio"),
        ("deny", 1226, "42000", "deny"),
        ("custom", 30_001, "45000", "deny"),
    ];
    for (app, errno, sqlstate, reason) in expected {
        let mut conn = connect_as(&sluice, app).await.unwrap();
        let response = conn.query(format!("INSERT INTO {table} VALUES (1)")).await.unwrap();
        let refused = refusal(&response);
        assert_eq!((refused.errno, refused.sqlstate.as_str()), (errno, sqlstate), "{refused:?}");
        assert_eq!((refused.part("rule"), refused.reason()), (Some(app), Some(reason)));
        assert_eq!(refused.message.starts_with("Come back tonight [sluice "), app == "custom");
        // A rule holds back what it names, which is writes.
        accepted(&conn.query(format!("SELECT * FROM {table}")).await.unwrap());
        let labels = [("rule", app), ("decision", "rejected"), ("reason", reason)];
        wait_for_sum(&sluice, "sluice_statements_total", &labels, 1.0).await.unwrap();
    }
    assert!(rows(servers, table).await.is_empty());
}

#[tokio::test]
async fn the_connection_and_its_open_transaction_work_after_a_refusal() {
    for servers in both().await {
        let table = made(servers, "r_open").await;
        let switch = Switch::new(&servers.primary, "r_open").await.unwrap();
        let rules = "- { name: r, match: { app: etl }, gate: [r_open], on_refused_check: reject, permanent: true }";
        let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(rules);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut conn = connect(&sluice, "etl").await.unwrap();
        for sql in [
            "SET @kept = 'yes'",
            "CREATE TEMPORARY TABLE kept (n INT)",
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        ] {
            accepted(&conn.query(sql).await.unwrap());
        }
        servers.primary.run_sql(&["INSERT INTO r_open VALUES (100)"]).await.unwrap();
        switch.shut(&sluice).await.unwrap();
        for n in 1..=3 {
            let response = conn.query(format!("INSERT INTO {table} VALUES ({n})")).await.unwrap();
            assert_eq!(refusal(&response).errno, 1205);
        }
        let kept = conn.query("SELECT @kept").await.unwrap();
        assert_eq!(kept.first_text().as_deref(), Some("yes"));
        let seen = conn.query(format!("SELECT COUNT(*) FROM {table}")).await.unwrap();
        assert_eq!(seen.first_text().as_deref(), Some("0"), "the snapshot is the old one");
        assert_eq!(seen.status().unwrap() & SERVER_STATUS_IN_TRANS, SERVER_STATUS_IN_TRANS);
        switch.open(&sluice).await.unwrap();
        accepted(&conn.query(format!("INSERT INTO {table} VALUES (1)")).await.unwrap());
        accepted(&conn.query("INSERT INTO kept VALUES (1)").await.unwrap());
        assert_eq!(rows(servers, table).await, [100], "still one transaction");
        accepted(&conn.query("COMMIT").await.unwrap());
        assert_eq!(rows(servers, table).await, [1, 100]);
        conn.quit().await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_command_of_any_length_is_answered_once_with_the_next_sequence_id() {
    for servers in both().await {
        let table = made(servers, "r_long").await;
        let rules = "- { name: r, match: { app: etl }, deny: true, permanent: true }";
        let sluice = start(servers, rules).await;
        let mut conn = connect(&sluice, "etl").await.unwrap();
        // Lengths of the payload, and in how many packets each travels.
        let lengths = [
            (100, 1),
            (70_000, 1),
            (3 << 20, 1),
            (MAX_PAYLOAD - 1, 1),
            (MAX_PAYLOAD, 2),
            (MAX_PAYLOAD + 1, 2),
            (2 * MAX_PAYLOAD, 3),
        ];
        for (len, packets) in lengths {
            let mut sql = format!("INSERT INTO {table} VALUES (1) -- ").into_bytes();
            sql.resize(len - 1, b'x');
            let response = conn.query(&sql).await.unwrap();
            assert_eq!(response.packets.len(), 1, "{len}");
            assert_eq!(refusal(&response).sequence, packets, "{len}");
            let next = conn.query("SELECT 'next'").await.unwrap();
            assert_eq!(next.first_text().as_deref(), Some("next"), "after {len}");
        }
        let insert = format!("INSERT INTO {table} VALUES (LENGTH(?))");
        let statement = conn.prepare(&insert).await.unwrap();
        let long = "x".repeat(MAX_PAYLOAD);
        let response = conn.execute(&statement, &[Param::text(&long)]).await.unwrap();
        assert_eq!(refusal(&response).sequence, 2);
        let multi = format!("INSERT INTO {table} VALUES (1); INSERT INTO {table} VALUES (2)");
        let response = conn.query(&multi).await.unwrap();
        assert_eq!((response.packets.len(), refusal(&response).sequence), (1, 1));
        assert!(rows(servers, table).await.is_empty());
        conn.quit().await.unwrap();
    }
}

#[tokio::test]
async fn a_delayed_command_of_many_packets_arrives_whole() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "r_whole").await;
    let switch = Switch::new(&servers.primary, "r_whole").await.unwrap();
    let rules =
        "- { name: r, match: { app: etl }, gate: [r_whole], max_delay: 60s, permanent: true }";
    let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    switch.shut(&sluice).await.unwrap();
    let etl = connect(&sluice, "etl").await.unwrap();
    let mut sql = b"INSERT INTO r_whole VALUES (LENGTH('".to_vec();
    let value_len = MAX_PAYLOAD + 1_000;
    sql.resize(sql.len() + value_len, b'x');
    sql.extend_from_slice(b"'))");
    let waiting = Pending::query(etl, &sql);
    wait_for_depth(&sluice, "r", 1).await.unwrap();
    switch.open(&sluice).await.unwrap();
    accepted(&waiting.answered(SOON).await.unwrap().response);
    assert_eq!(rows(servers, "r_whole").await, [i64::try_from(value_len).unwrap()]);
}

#[tokio::test]
async fn load_data_from_the_client_is_refused_before_the_file_is_asked_for() {
    for servers in both().await {
        let table = made(servers, "r_load").await;
        let sluice =
            start(servers, "- { name: r, match: { app: etl }, deny: true, permanent: true }").await;
        let mut conn = connect(&sluice, "etl").await.unwrap();
        conn.queue_infile(b"1\n2\n".to_vec());
        let load = format!("LOAD DATA LOCAL INFILE 'x' INTO TABLE {table}");
        let response = conn.query(&load).await.unwrap();
        assert_eq!((response.packets.len(), refusal(&response).sequence), (1, 1));
        accepted(&conn.query("SELECT 1").await.unwrap());
        let mut web = connect(&sluice, "web").await.unwrap();
        web.queue_infile(b"1\n2\n".to_vec());
        accepted(&web.query(&load).await.unwrap());
        assert_eq!(rows(servers, table).await, [1, 2]);
    }
}

#[tokio::test]
async fn mode_observe_changes_nothing_and_counts_what_it_would_have_done() {
    let servers = MYSQL.get().await.unwrap();
    let table = made(servers, "r_observe").await;
    let rules = "\
- { name: denied, match: { app: etl }, deny: true, mode: observe, permanent: true }
- { name: held, match: { app: ddl }, hold: true, mode: observe, permanent: true }
- { name: diced, match: { app: web }, ratio: 1, mode: observe, permanent: true }";
    let sluice = start(servers, rules).await;
    let expected = [("etl", "denied", "deny"), ("ddl", "held", "hold"), ("web", "diced", "ratio")];
    for (n, (user, rule, reason)) in (0..).zip(expected) {
        let mut conn = connect(&sluice, user).await.unwrap();
        for m in 0..5 {
            let insert = format!("INSERT INTO {table} VALUES ({n} * 10 + {m})");
            accepted(&conn.query(&insert).await.unwrap());
        }
        let labels =
            [("rule", rule), ("decision", "rejected"), ("reason", reason), ("mode", "observe")];
        wait_for_sum(&sluice, "sluice_statements_total", &labels, 5.0).await.unwrap();
        let metrics = sluice.metrics().await.unwrap();
        assert!(is(metrics.sum("sluice_queue_delay_seconds_count", &[("rule", rule)]), 0.0));
    }
    assert_eq!(rows(servers, table).await.len(), 15);
}

#[tokio::test]
async fn kill_query_ends_the_wait_and_the_connection_lives_on() {
    for servers in both().await {
        let table = made(servers, "r_kill_query").await;
        let sluice = start(servers, HELD).await;
        let etl = connect(&sluice, "etl").await.unwrap();
        let id = etl.connection_id();
        let waiting = Pending::query(etl, format!("INSERT INTO {table} VALUES (1)"));
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        // The server says who may kill whom: one who may not changes nothing.
        let mut web = connect(&sluice, "web").await.unwrap();
        assert!(web.query(format!("KILL QUERY {id}")).await.unwrap().err().is_some());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_answered());
        let mut admin = connect(&sluice, "admin").await.unwrap();
        accepted(&admin.query(format!("KILL QUERY {id}")).await.unwrap());
        let mut answered = waiting.answered(SOON).await.unwrap();
        let killed = Refused::of(&answered.response).unwrap();
        assert_eq!((killed.errno, killed.sqlstate.as_str(), killed.sequence), (1317, "70100", 1));
        wait_for_depth(&sluice, "held", 0).await.unwrap();
        let alive = answered.conn.query("SELECT 'alive'").await.unwrap();
        assert_eq!(alive.first_text().as_deref(), Some("alive"));
        assert!(rows(servers, table).await.is_empty());
        has_left_the_queue(&sluice).await;
    }
}

/// Whoever is killed as it waits is not refused for any reason of Sluice's.
async fn has_left_the_queue(sluice: &SluiceProcess) {
    let (statements, gone) =
        ("sluice_statements_total", [("rule", "held"), ("decision", "client_gone")]);
    wait_for_sum(sluice, statements, &gone, 1.0).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    let refused = metrics.sum(statements, &[("rule", "held"), ("decision", "rejected")]);
    assert!(is(refused, 0.0), "{refused}");
}

#[tokio::test]
async fn kill_ends_the_wait_and_the_connection() {
    for servers in both().await {
        let table = made(servers, "r_kill").await;
        let sluice = start(servers, HELD).await;
        let etl = connect(&sluice, "etl").await.unwrap();
        let id = etl.connection_id();
        let waiting = Pending::query(etl, format!("INSERT INTO {table} VALUES (1)"));
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        let mut admin = connect(&sluice, "admin").await.unwrap();
        accepted(&admin.query(format!("KILL {id}")).await.unwrap());
        let mut answered = waiting.answered(SOON).await.unwrap();
        let killed = Refused::of(&answered.response).unwrap();
        assert_eq!((killed.errno, killed.sequence), (1317, 1), "{killed:?}");
        assert!(answered.conn.read_to_end().await.unwrap().is_empty(), "then it is closed");
        wait_for_depth(&sluice, "held", 0).await.unwrap();
        assert!(rows(servers, table).await.is_empty());
        has_left_the_queue(&sluice).await;
    }
}

#[tokio::test]
async fn a_kill_query_that_came_before_does_not_end_a_later_wait() {
    for servers in both().await {
        let table = made(servers, "r_kill_before").await;
        let sluice = start(servers, HELD).await;
        let mut etl = connect(&sluice, "etl").await.unwrap();
        let mut admin = connect(&sluice, "admin").await.unwrap();
        let kill = format!("KILL QUERY {}", etl.connection_id());
        // While it is idle, and while it runs something at the server.
        accepted(&admin.query(&kill).await.unwrap());
        accepted(&etl.query("SELECT 1").await.unwrap());
        let running = Pending::query(etl, "SELECT SLEEP(8)");
        tokio::time::sleep(Duration::from_millis(300)).await;
        accepted(&admin.query(&kill).await.unwrap());
        let etl = running.answered(Duration::from_secs(5)).await.unwrap().conn;
        accepted(&admin.query(&kill).await.unwrap());
        let waiting = Pending::query(etl, format!("INSERT INTO {table} VALUES (1)"));
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waiting.is_answered());
    }
}

#[tokio::test]
async fn refusals_of_pipelined_commands_keep_their_places() {
    for servers in both().await {
        let table = made(servers, "r_pipelined").await;
        let sluice =
            start(servers, "- { name: r, match: { app: etl }, deny: true, permanent: true }").await;
        let mut etl = connect(&sluice, "etl").await.unwrap();
        let insert = format!("INSERT INTO {table} VALUES (1)");
        let mut bytes = Vec::new();
        for n in 0..50 {
            let select = format!("SELECT {n}");
            for sql in [&insert, &select] {
                bytes.extend_from_slice(&framed(0, &etl.query_payload(sql.as_bytes(), &[])));
            }
        }
        etl.send_bytes(&bytes).await.unwrap();
        for n in 0..50 {
            assert_eq!(refusal(&etl.read_response(Shape::Query).await.unwrap()).sequence, 1);
            let answer = etl.read_response(Shape::Query).await.unwrap();
            assert_eq!(answer.first_text(), Some(n.to_string()));
        }
        assert!(rows(servers, table).await.is_empty());
    }
}

#[tokio::test]
async fn a_hold_and_a_certain_ratio_end_at_max_delay() {
    let servers = MYSQL.get().await.unwrap();
    let table = made(servers, "r_ends").await;
    let rules = "\
- { name: hold, match: { app: hold }, hold: true, max_delay: 300ms, on_timeout: admit, permanent: true }
- { name: ratio, match: { app: ratio }, ratio: 1, max_delay: 300ms, permanent: true }
- { name: admit, match: { app: admit }, ratio: 1, max_delay: 300ms, on_timeout: admit, permanent: true }";
    let sluice = start(servers, rules).await;
    for app in ["hold", "ratio", "admit"] {
        let conn = connect_as(&sluice, app).await.unwrap();
        let answered = Pending::query(conn, format!("INSERT INTO {table} VALUES (1)"));
        let answered = answered.answered(SOON).await.unwrap();
        assert!(answered.after >= Duration::from_millis(300), "{app}");
        // Of a hold nothing passes until it is lifted.
        match app {
            "admit" => accepted(&answered.response),
            _ => assert_eq!(refusal(&answered.response).reason(), Some(app)),
        }
    }
    assert_eq!(rows(servers, table).await, [1]);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let servers = MYSQL.get().await.unwrap();
    let table = made(servers, "r_full").await;
    let rules = "- { name: held, match: { app: etl }, hold: true, max_queue: 2, max_delay: 60s, permanent: true }";
    let mut config = Config::new(servers).unwrap().rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut waiting = Vec::new();
    for n in 1..=2 {
        let etl = connect(&sluice, "etl").await.unwrap();
        let sql = if n == 1 { "INSERT INTO r_full VALUES (1)" } else { "DELETE FROM r_full" };
        waiting.push(Pending::query(etl, sql));
        wait_for_depth(&sluice, "held", n).await.unwrap();
    }
    let mut etl = connect(&sluice, "etl").await.unwrap();
    let refused = refusal(&etl.query(format!("INSERT INTO {table} VALUES (3)")).await.unwrap());
    assert_eq!((refused.errno, refused.reason()), (1205, Some("queue_full")));
    assert_eq!(refused.part("waited_ms"), Some("0"));
    // The others are where they were, and a wait of another rule has room.
    assert!(!waiting[0].is_answered() && !waiting[1].is_answered());
    assert!(rows(servers, table).await.is_empty());
    // Told of a rule and a guard that came meanwhile: that they have waited.
    "guards: [{ name: where, where_required: deny }]".clone_into(&mut config.top);
    let denies = "- { name: held, match: { app: etl }, deny: true, permanent: true }";
    sluice.write_config(&config.rules(denies).render()).unwrap();
    for (waiting, reason) in waiting.into_iter().zip(["deny", "guard"]) {
        let refused = refusal(&waiting.answered(SOON).await.unwrap().response);
        assert_eq!(refused.reason(), Some(reason), "{refused:?}");
        assert_ne!(refused.part("waited_ms"), Some("0"), "{refused:?}");
        let told = sluice.http_get(&format!("/api/v1/why/{}", refused.part("id").unwrap())).await;
        let told = told.unwrap().body;
        assert!(!told.contains("refused at once"), "{told}");
    }
}

#[tokio::test]
async fn who_comes_back_when_it_was_told_has_its_place_and_who_comes_sooner_waits() {
    let servers = MYSQL.get().await.unwrap();
    let create = "CREATE TABLE r_back (id INT AUTO_INCREMENT PRIMARY KEY, n INT)";
    servers.primary.run_sql(&[create]).await.unwrap();
    let insert = |n: u32| format!("INSERT INTO r_back (n) VALUES ({n})");
    let switch = Switch::new(&servers.primary, "r_back").await.unwrap();
    let rules = "\
- { name: back, match: { app: etl }, gate: [r_back], max_delay: 3s, permanent: true }
- { name: soon, match: { app: soon }, gate: [r_back], max_delay: 300ms, permanent: true }";
    let config = Config::new(servers).unwrap().signals(&switch.signal());
    let config = config.cluster("release_per_s: 1").rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    switch.shut(&sluice).await.unwrap();

    let began = Instant::now();
    let mut soon = connect_as(&sluice, "soon").await.unwrap();
    let told = retry_after(&soon.query(insert(3)).await.unwrap());
    refusal(&soon.query(insert(3)).await.unwrap());
    let paused = told.min(Duration::from_secs(1));
    assert!(began.elapsed() >= Duration::from_millis(600) + paused, "{told:?}");

    let mut first = connect(&sluice, "etl").await.unwrap();
    let told = retry_after(&first.query(insert(1)).await.unwrap());
    let comes = Instant::now() + told;
    let second = Pending::query(connect(&sluice, "etl").await.unwrap(), insert(2));
    wait_for_depth(&sluice, "back", 1).await.unwrap();
    tokio::time::sleep_until(comes.into()).await;
    let first = Pending::query(first, insert(1));
    wait_for_depth(&sluice, "back", 2).await.unwrap();
    switch.open(&sluice).await.unwrap();
    accepted(&first.answered(SOON).await.unwrap().response);
    accepted(&second.answered(SOON).await.unwrap().response);
    let order = numbers(&servers.primary, "SELECT n FROM r_back ORDER BY id").await.unwrap();
    assert_eq!(order, [1, 2]);
}

fn retry_after(refused: &Response) -> Duration {
    let refused = refusal(refused);
    Duration::from_millis(refused.part("retry_after_ms").unwrap().parse().unwrap())
}

/// Sluice with these rules in front of one server.
async fn start(servers: &Topology, rules: &str) -> SluiceProcess {
    let config = Config::new(servers).unwrap().rules(rules);
    SluiceProcess::start(&config).await.unwrap()
}

/// Makes a table of whole numbers.
async fn made(servers: &Topology, table: &'static str) -> &'static str {
    let create = format!("CREATE TABLE {table} (n INT PRIMARY KEY)");
    servers.primary.run_sql(&[&create]).await.unwrap();
    table
}

async fn rows(servers: &Topology, table: &str) -> Vec<i64> {
    numbers(&servers.primary, &format!("SELECT n FROM {table} ORDER BY n")).await.unwrap()
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

fn accepted(response: &Response) {
    assert_eq!(response.err(), None);
}

fn refusal(response: &Response) -> Refused {
    let refused = Refused::of(response).unwrap_or_else(|| panic!("not refused: {response:?}"));
    assert_eq!(refused.part("executed"), Some("no"), "{refused:?}");
    refused
}

const HELD: &str =
    "- { name: held, match: { app: etl }, hold: true, max_delay: 60s, permanent: true }";

const SOON: Duration = Duration::from_secs(10);
