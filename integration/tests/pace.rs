//! The adaptive pace on real servers: a replica that is slower than its primary, and writers that would drown it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::lag_meter::{LagMeter, LagSeries};
use integration::replica::Lag;
use integration::scenario::wait_for_signal;
use integration::server::{Flavour, Server};
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use integration::writers::Writers;

#[tokio::test]
async fn writers_keep_the_replica_busy_and_its_lag_under_the_threshold() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let slow = Lag::SlowCommits(Duration::from_millis(1));
    servers.replicas.first_mut().unwrap().lag_start(slow).await.unwrap();
    let config = config(&servers);
    let mut sluice = start(&config).await;
    let mut meter = LagMeter::start(&servers.primary, replica(&servers)).await.unwrap();

    let writers = Writers::start(sluice.listen_addr(), "etl", 32, INSERT).await.unwrap();
    tokio::time::sleep(WARM_UP).await;
    drop(meter.take().await.unwrap());
    let before = writers.written().rows;
    // The replica is as fast as what else runs on the machine lets it be: the rate is its mean over
    // the same time.
    let server = replica(&servers).addr().to_string();
    let of = |metrics: &Metrics, name: &str| metrics.sum(name, &[("server", server.as_str())]);
    let mut rates = 0.0;
    for _ in 0..LOOKS {
        tokio::time::sleep(MEASURED / LOOKS).await;
        rates += of(&sluice.metrics().await.unwrap(), "sluice_pace_rate_rows_per_second");
    }
    let lag = meter.take().await.unwrap();
    let rows = writers.written().rows - before;
    let metrics = sluice.metrics().await.unwrap();
    let waiting = metrics.sum("sluice_queue_depth", &[("rule", "writers")]);

    let seen = format!("{rows} rows in {MEASURED:?}, {waiting} wait, {}", told(&lag));
    println!("{seen}");
    assert!(waiting >= 20.0, "the writers could not write more than the replica applies: {seen}");
    assert!(lag.share_from(THRESHOLD) <= 0.1, "{seen}");
    // A replica that had nothing to apply would show every commit.
    assert!(lag.share_from(Duration::from_millis(1)) >= 0.8, "{seen}");
    assert!(rows >= 1_000, "{seen}");
    let (rate, fill) = (rates / f64::from(LOOKS), of(&metrics, "sluice_pace_window_fill"));
    let delivered = f64::from(u32::try_from(rows).unwrap()) / MEASURED.as_secs_f64();
    assert!((0.5..=2.0).contains(&(rate / delivered)), "{rate} of {delivered} rows/s; {seen}");
    assert!((0.01..=2.0).contains(&fill), "the window is in use: {fill}; {seen}");

    hold_a_floor(config.clone(), &sluice, &writers, delivered).await;

    // It is killed without a word, and the next begins with what it had found out.
    drop(writers);
    sluice.kill();
    let next = start(&config).await;
    let kept = "the pace begins with what was found out before";
    let found = |line: &str| line.contains(kept) && line.contains("rows_per_s=");
    let began = Instant::now();
    while !next.log().unwrap().lines().any(found) {
        assert!(began.elapsed() < LIMIT, "{}", next.log().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn statements_of_ten_thousand_rows_and_of_one_get_the_same_rows_a_second() {
    // Statements and not rows are replicated, so that a trigger can give each row its price, on the replica only.
    let servers = Topology::start(TopologyOptions {
        extra_args: vec!["--binlog-format=STATEMENT".into()],
        replica_args: vec!["--replica-parallel-workers=1".into()],
        ..TopologyOptions::new(Flavour::MySql, 1)
    })
    .await
    .unwrap();
    let fill = format!(
        "INSERT INTO source SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n \
         FROM {DIGITS} a (n), {DIGITS} b (n), {DIGITS} c (n), {DIGITS} d (n)"
    );
    servers.primary.run_sql(&[TABLE, SOURCE, &fill]).await.unwrap();
    servers.wait_in_sync(Duration::from_secs(60)).await.unwrap();
    replica(&servers).run_sql(&["SET sql_log_bin = 0", PRICE]).await.unwrap();
    let sluice = start(&config(&servers)).await;
    let mut meter = LagMeter::start(&servers.primary, replica(&servers)).await.unwrap();

    let light = Writers::start(sluice.listen_addr(), "etl", 30, INSERT).await.unwrap();
    let heavy = Writers::start(sluice.listen_addr(), "ddl", 2, COPY).await.unwrap();
    // What a statement costs is known once one has run, and the debt of the first is paid by the next.
    wait_for_statements(&heavy, 2, &light).await;
    let (began, before) = (Instant::now(), light.written().rows);
    wait_for_statements(&heavy, 5, &light).await;
    let of_light = f64::from(u32::try_from(light.written().rows - before).unwrap());
    let of_heavy = f64::from(3 * COPIED);

    let lag = meter.take().await.unwrap();
    let seen = format!(
        "{of_light} rows by ones, {of_heavy} by ten thousands in {:.1?}; {}; {:?} {:?}",
        began.elapsed(),
        told(&lag),
        light.written(),
        heavy.written(),
    );
    println!("{seen}");
    assert!((0.5..=2.0).contains(&(of_light / of_heavy)), "{seen}");
}

#[tokio::test]
async fn rows_count_as_what_they_cost_the_replica_where_that_is_looked_at() {
    let servers = Topology::start(TopologyOptions {
        replica_args: vec!["--replica-parallel-workers=1".into(), "--performance-schema=ON".into()],
        ..TopologyOptions::new(Flavour::MySql, 1)
    })
    .await
    .unwrap();
    let fill = format!(
        "INSERT INTO dear SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n, 0, 'pad' \
         FROM {DIGITS} a (n), {DIGITS} b (n), {DIGITS} c (n), {DIGITS} d (n)"
    );
    servers.primary.run_sql(&[DEAR, CHEAP, &fill]).await.unwrap();
    servers.wait_in_sync(Duration::from_secs(60)).await.unwrap();
    // There each UPDATE of a row looks through all of them.
    replica(&servers).run_sql(&["SET sql_log_bin = 0", NO_KEY]).await.unwrap();
    let (dear, cheap) = (price(&servers, UPDATE_DEAR).await, price(&servers, ADD_CHEAP).await);

    let config = config(&servers);
    let sluice = start(&config).await;
    let of_dear = Writers::start(sluice.listen_addr(), "etl", 12, UPDATE_DEAR).await.unwrap();
    let of_cheap = Writers::start(sluice.listen_addr(), "ddl", 12, ADD_CHEAP).await.unwrap();
    let work =
        |rows: u64, price: Duration| f64::from(u32::try_from(rows).unwrap()) * price.as_secs_f64();
    // How soon it is known depends on what else the machine does. As rows it would be six times the work and more, for
    // good; what a row takes is measured beside whatever else runs.
    let began = Instant::now();
    loop {
        let before = (of_dear.written().rows, of_cheap.written().rows);
        tokio::time::sleep(WEIGHED).await;
        let rows = (of_dear.written().rows - before.0, of_cheap.written().rows - before.1);
        let metrics = sluice.metrics().await.unwrap();
        let factor = |table: &str| metrics.sum("sluice_pace_row_cost", &[("table", table)]);
        let factors = (factor("test.dear"), factor("test.cheap"));
        let share = work(rows.0, dear) / work(rows.1, cheap);
        let seen = format!(
            "a row takes {dear:.2?} and {cheap:.2?}, counts as {factors:.2?}; {rows:?} rows in \
             {WEIGHED:?}, which is {share:.2} times the work, {:.0?} after the start",
            began.elapsed(),
        );
        println!("{seen}");
        if factors.0 > 1.0 && factors.1 < 1.0 && (0.2..=3.0).contains(&share) {
            break;
        }
        assert!(began.elapsed() < LEARNED, "{seen}");
    }
    for writers in [of_dear, of_cheap] {
        writers.stop().await.unwrap();
    }
    drop(sluice);
    where_commits_cost_most_transactions_count(&servers, &config).await;
}

/// One row in a transaction, and fifty: of a replica whose commits take ten milliseconds each has half. As rows the large
/// ones would be one in fifty.
async fn where_commits_cost_most_transactions_count(servers: &Topology, config: &Config) {
    let slow = "SET GLOBAL sync_binlog = 1, binlog_group_commit_sync_delay = 10000";
    replica(servers).run_sql(&[slow]).await.unwrap();
    let row = "(1)";
    let fifty = format!("INSERT INTO test.large (v) VALUES {}", [row; 50].join(", "));
    servers.primary.run_sql(&[LARGE]).await.unwrap();
    servers.wait_in_sync(Duration::from_secs(60)).await.unwrap();
    let sluice = start(config).await;
    let small = Writers::start(sluice.listen_addr(), "etl", 12, ADD_CHEAP).await.unwrap();
    let large = Writers::start(sluice.listen_addr(), "ddl", 12, &fifty).await.unwrap();
    let began = Instant::now();
    loop {
        let before = (small.written().statements, large.written().statements);
        tokio::time::sleep(WEIGHED).await;
        let of = (small.written().statements - before.0, large.written().statements - before.1);
        let cost = sluice.metrics().await.unwrap().sum("sluice_pace_transaction_cost", &[]);
        let seen = format!(
            "{of:?} transactions in {WEIGHED:?} at {cost:.1}, {:.0?} after the start",
            began.elapsed()
        );
        eprintln!("{seen}");
        if cost > 5.0 && of.0.min(of.1) >= 20 && of.0 < 3 * of.1 && of.1 < 3 * of.0 {
            return;
        }
        assert!(began.elapsed() < LEARNED, "{seen}");
    }
}

/// A `min_rate` above an equal share, written into the file while all write, is held, and what it leaves goes to the
/// others.
async fn hold_a_floor(config: Config, sluice: &SluiceProcess, others: &Writers, rows_per_s: f64) {
    let floor = 0.7 * rows_per_s;
    let rules = format!(
        "- {{ name: floored, match: {{ app: ddl }}, min_rate: {floor:.0}, max_delay: 120s, permanent: true }}\n{RULES}"
    );
    sluice.write_config(&config.rules(&rules).render()).unwrap();
    let floored = Writers::start(sluice.listen_addr(), "ddl", 16, INSERT).await.unwrap();
    tokio::time::sleep(SETTLES).await;
    let (began, before) = (Instant::now(), (floored.written().rows, others.written().rows));
    tokio::time::sleep(HELD).await;
    let per_s = |rows: u64| f64::from(u32::try_from(rows).unwrap()) / began.elapsed().as_secs_f64();
    let of_floored = per_s(floored.written().rows - before.0);
    let of_others = per_s(others.written().rows - before.1);
    let seen = format!("{of_floored:.0} rows/s of {floor:.0}, and {of_others:.0} of the others");
    // An equal share would be five of these sevenths. A replica that has become slower has no more than it can.
    let most = 0.8 * (of_floored + of_others);
    assert!(of_floored >= 0.85 * floor.min(most), "{seen}");
    assert!(of_others > 0.0, "{seen}");
}

/// How long the replica is at one of these: the time of some hundred that it has to catch up with.
async fn price(servers: &Topology, sql: &str) -> Duration {
    const STATEMENTS: u32 = 300;
    let server = replica(servers);
    server.run_sql(&["STOP REPLICA SQL_THREAD"]).await.unwrap();
    let statements: Vec<&str> = (0..STATEMENTS).map(|_| sql).collect();
    servers.primary.run_sql(&statements).await.unwrap();
    let began = Instant::now();
    server.run_sql(&["START REPLICA SQL_THREAD"]).await.unwrap();
    servers.wait_in_sync(Duration::from_secs(60)).await.unwrap();
    began.elapsed() / STATEMENTS
}

async fn start(config: &Config) -> SluiceProcess {
    let sluice = SluiceProcess::start(config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    sluice
}

fn config(servers: &Topology) -> Config {
    Config::new(servers).unwrap().cluster("pacing: adaptive").rules(RULES)
}

/// `others` write meanwhile; they are only told of.
async fn wait_for_statements(writers: &Writers, count: u64, others: &Writers) {
    let began = Instant::now();
    while writers.written().statements < count {
        let seen = (writers.written(), others.written());
        assert!(began.elapsed() < LIMIT, "{count} statements awaited, {seen:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn replica(servers: &Topology) -> &Server {
    servers.replicas.first().unwrap().server()
}

fn told(lag: &LagSeries) -> String {
    let over = 100.0 * lag.share_from(THRESHOLD);
    let (p50, p99) = (lag.quantile(0.5), lag.quantile(0.99));
    format!(
        "lag p50 {p50:.0?}, p99 {p99:.0?}, at or over {THRESHOLD:?} for {over:.1} % of the time"
    )
}

const RULES: &str =
    "- { name: writers, match: { app: [etl, ddl] }, max_delay: 120s, permanent: true }";
const TABLE: &str = "CREATE TABLE t (n INT, pad CHAR(40))";
const INSERT: &str = "INSERT INTO t VALUES (1, 'as much as a row often has')";
const SOURCE: &str = "CREATE TABLE source (n INT PRIMARY KEY)";
const DIGITS: &str =
    "(VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9))";
const COPY: &str = "INSERT INTO t SELECT n, 'as much as a row often has' FROM source";
const COPIED: u32 = 10_000;
const PRICE: &str = "CREATE TRIGGER price BEFORE INSERT ON t FOR EACH ROW DO SLEEP(0.0002)";
/// The default of the harness.
const THRESHOLD: Duration = Duration::from_secs(1);
/// From the first guess of twenty rows a second to what the replica takes.
const WARM_UP: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(15);

/// The rate is looked at so often meanwhile.
const LOOKS: u32 = 15;
/// From an edit to what it changes, and for how long that is looked at.
const SETTLES: Duration = Duration::from_secs(4);
const HELD: Duration = Duration::from_secs(6);
/// Three statements of some seconds each, and as many rows by ones: a minute on two quiet cores.
const LIMIT: Duration = Duration::from_secs(180);

const DEAR: &str = "CREATE TABLE dear (id INT PRIMARY KEY, v INT, pad CHAR(40))";
const CHEAP: &str = "CREATE TABLE cheap (id INT PRIMARY KEY AUTO_INCREMENT, v INT)";
const LARGE: &str = "CREATE TABLE large (id INT PRIMARY KEY AUTO_INCREMENT, v INT)";
const NO_KEY: &str = "ALTER TABLE test.dear DROP PRIMARY KEY";
const UPDATE_DEAR: &str = "UPDATE test.dear SET v = v + 1 WHERE id = 10000";
const ADD_CHEAP: &str = "INSERT INTO test.cheap (v) VALUES (1)";
/// Ten blocks of a second in which the replica has enough to do, and a few for the factors to get there.
const LEARNED: Duration = Duration::from_secs(90);
const WEIGHED: Duration = Duration::from_secs(3);
