//! The worked example of the pattern: two identities, ratios 0.90 and 0.10. With a healthy replica 90 % and
//! 10 % of their checks are refused; with the lag pinned around its threshold by their own writes, the
//! gate's releases are shared 1 : 9.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::replica::Lag;
use integration::scenario::{Refused, connect_as, is, numbers, wait_for_depth, wait_for_signal};
use integration::server::Server;
use integration::sluice::{Checker, Config, Metrics, SluiceProcess};
use integration::topology::Topology;

#[tokio::test]
async fn at_a_saturated_replica_ratios_of_090_and_010_are_admitted_1_to_9() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let config = Config::new(&servers).unwrap().signals("lag: { threshold: 400ms }").rules(DELAYED);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let replica = servers.replicas.first_mut().unwrap();
    // Everybody is in line before it begins …
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let crowd = Crowd::start(&sluice).await;
    for rule in ["heavy", "light"] {
        wait_for_depth(&sluice, rule, SESSIONS).await.unwrap();
    }
    // … and then the replica applies some 400 transactions a second, and the pace lets no more through.
    replica.lag_start(Lag::SlowCommits(Duration::from_millis(1))).await.unwrap();
    let is_enough = |seen: &Seen| seen.heavy.passed >= ENOUGH;
    let mut seen = run_until(&sluice, &["heavy", "light"], is_enough).await;
    // Chance and busy cores together exceed a tenth now and then; a fault does it each time.
    if !is_within(seen.light.passed / seen.heavy.passed, 9.0, 0.10) {
        seen = run_until(&sluice, &["heavy", "light"], is_enough).await;
    }
    let written = crowd.stop().await;

    assert!(seen.contended > 20, "the lines were hardly ever full: {seen:?}");
    assert!(seen.heavy.passed >= 600.0, "too few admissions to tell: {seen:?}");
    // Every identity gets the same number of checks, whatever its ratio: of one that wins a tenth of
    // them their number has a standard deviation of 2.8 % at 1,200 wins …
    assert_within(seen.heavy.checks / seen.light.checks, 1.0, 0.125, &format!("{seen:?}"));
    // … and so admissions are shared in proportion to 1 − ratio.
    assert_within(seen.light.passed / seen.heavy.passed, 9.0, 0.10, &format!("{seen:?}"));
    let there = rows(&servers.primary).await;
    assert_eq!(there, [i64::try_from(written).unwrap()], "each admission wrote one row");
}

/// The same with two doors: the ETL writes through Sluice and waits there; the schema change asks over
/// HTTP before each of its writes, and writes around Sluice.
#[tokio::test]
async fn one_who_waits_and_one_who_asks_over_http_share_one_gate_1_to_9() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let config = Config::new(&servers).unwrap().signals("lag: { threshold: 400ms }").rules(DELAYED);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let replica = servers.replicas.first_mut().unwrap();
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let mut crowd = Crowd::of(&sluice, &["heavy"]).await;
    for n in 0..ASKERS {
        // Both dialects, for it is one brain.
        let path = match n % 2 {
            0 => "/throttler/check?app=light&rows=1",
            _ => "/check/light/mysql/main?rows=1",
        };
        let checker = Checker::connect(sluice.admin_addr(), path).await.unwrap();
        let direct = RawConn::open(servers.primary.addr(), &Login::new("app")).await.unwrap();
        crowd.ask(checker, direct);
    }
    wait_for_depth(&sluice, "heavy", SESSIONS).await.unwrap();
    let replica = servers.replicas.first_mut().unwrap();
    replica.lag_start(Lag::SlowCommits(Duration::from_millis(1))).await.unwrap();
    // Where others keep the cores busy, who asks may not come for longer than it is known: then the
    // middle one of three is judged.
    let mut runs = vec![two_doors(&sluice).await];
    if !runs.iter().all(|(share, _)| is_within(*share, 9.0, SHARE_OF_ASKERS)) {
        runs.push(two_doors(&sluice).await);
        runs.push(two_doors(&sluice).await);
    }
    let written = crowd.stop().await;
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{runs:?}");
    assert!(is_within(runs[runs.len() / 2].0, 9.0, SHARE_OF_ASKERS), "{runs:?}");
    let there = rows(&servers.primary).await;
    assert_eq!(there, [i64::try_from(written).unwrap()], "each admission wrote one row");
}

/// How many of those who ask pass for one who waits, and what was seen; 0 where it says nothing: hardly
/// ever was more wanted than there was, or who waits is starved.
async fn two_doors(sluice: &SluiceProcess) -> (f64, String) {
    let seen = run_for(sluice).await;
    let says = seen.contended > 20 && seen.heavy.passed >= ENOUGH_OF_ASKERS;
    let share = if says { seen.light.passed / seen.heavy.passed } else { 0.0 };
    (share, format!("{seen:?}"))
}

async fn rows(server: &Server) -> Vec<i64> {
    numbers(server, "SELECT COUNT(*) FROM t").await.unwrap()
}

#[tokio::test]
async fn with_a_healthy_replica_90_and_10_percent_of_the_checks_are_refused() {
    let servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let config = Config::new(&servers)
        .unwrap()
        .signals("lag: { threshold: 30s }")
        .cluster("check_interval: 2ms\npacing: binary")
        .rules(HEALTHY);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    for (app, expected) in [("heavy", 0.9), ("light", 0.1)] {
        let refused = refusals(&sluice, app).await;
        assert_share(f64::from(refused), f64::from(STATEMENTS), expected);
    }
    // Every statement that was refused is absent, and every other one is there.
    let written = rows(&servers.primary).await;
    let metrics = sluice.metrics().await.unwrap();
    let lost: f64 =
        ["heavy", "light"].iter().map(|rule| checks(&metrics, rule, Some("ratio"))).sum();
    let counted = f64::from(2 * STATEMENTS) - lost;
    assert_eq!(written.first().map(|n| i32::try_from(*n).unwrap()).map(f64::from), Some(counted));

    // The same when they are delayed: each waits until it wins, and all run.
    for (app, expected) in [("heavy-delayed", 0.9), ("light-delayed", 0.1)] {
        let mut conn = connect_as(&sluice, app).await.unwrap();
        for _ in 0..DELAYED_STATEMENTS {
            assert_eq!(conn.query(INSERT).await.unwrap().err(), None);
        }
        let metrics = sluice.metrics().await.unwrap();
        let lost = checks(&metrics, app, Some("ratio"));
        let all = checks(&metrics, app, None);
        assert!(
            is(all - lost, f64::from(DELAYED_STATEMENTS)),
            "each wins once: {lost} of {all} lost"
        );
        assert_share(lost, all, expected);
    }
}

/// Closed-loop writers of two identities: as soon as one write is done, the next asks.
struct Crowd {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Crowd {
    async fn start(sluice: &SluiceProcess) -> Self {
        Self::of(sluice, &["heavy", "light"]).await
    }

    async fn of(sluice: &SluiceProcess, apps: &[&str]) -> Self {
        let mut crowd = Self { stop: Arc::default(), written: Arc::default(), tasks: Vec::new() };
        for _ in 0..SESSIONS {
            for app in apps {
                let conn = connect_as(sluice, app).await.unwrap();
                let (written, stop) = (crowd.written.clone(), crowd.stop.clone());
                crowd.tasks.push(tokio::spawn(write(conn, written, stop)));
            }
        }
        crowd
    }

    /// One more, who asks before each write and writes directly.
    fn ask(&mut self, checker: Checker, direct: RawConn) {
        let (written, stop) = (self.written.clone(), self.stop.clone());
        self.tasks.push(tokio::spawn(ask_and_write(checker, direct, written, stop)));
    }

    /// Lets what is under way end, and gives the rows that were acknowledged to all of them.
    async fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
        self.written.load(Ordering::Relaxed)
    }
}

/// What was counted while both identities had enough work.
#[derive(Debug, Default)]
struct Seen {
    heavy: Checks,
    light: Checks,
    /// How often all lines were seen full.
    contended: u32,
}

/// Checks of one identity, and those of them that won: its admissions.
#[derive(Debug, Default)]
struct Checks {
    checks: f64,
    passed: f64,
}

impl Checks {
    fn add(&mut self, rule: &str, before: &Metrics, after: &Metrics) {
        self.checks += checks(after, rule, None) - checks(before, rule, None);
        let passed = Some("passed");
        self.passed += checks(after, rule, passed) - checks(before, rule, passed);
    }
}

/// Until the rarer identity was admitted often enough to tell 10 % from chance, for a minute at most. Time in
/// which the machine was too slow to keep the lines filled does not count.
async fn run_until(
    sluice: &SluiceProcess,
    in_line: &[&str],
    is_enough: impl Fn(&Seen) -> bool,
) -> Seen {
    let started = Instant::now();
    let mut seen = Seen::default();
    let mut before = sluice.metrics().await.unwrap();
    while started.elapsed() < RUN_LIMIT && !is_enough(&seen) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let after = sluice.metrics().await.unwrap();
        let wanted_more =
            in_line.contains(&"light") || in_vain(&after) - in_vain(&before) >= IN_VAIN;
        if wanted_more && [&before, &after].iter().all(|metrics| has_work(metrics, in_line)) {
            seen.heavy.add("heavy", &before, &after);
            seen.light.add("light", &before, &after);
            seen.contended += 1;
        }
        before = after;
    }
    seen
}

/// A while from when both want more than there is. What is counted goes on without a break: an asker that
/// came late has its part later.
async fn run_for(sluice: &SluiceProcess) -> Seen {
    let mut seen = Seen::default();
    let mut before = sluice.metrics().await.unwrap();
    let mut began = None;
    let limit = Instant::now() + RUN_LIMIT;
    while Instant::now() < limit && began.is_none_or(|at: Instant| at.elapsed() < RUN_OF_ASKERS) {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let after = sluice.metrics().await.unwrap();
        let wanted_more = in_vain(&after) - in_vain(&before) >= IN_VAIN;
        let contended = wanted_more && has_work(&after, &["heavy"]);
        if contended && began.is_none() {
            began = Some(Instant::now());
        } else if began.is_some() {
            seen.heavy.add("heavy", &before, &after);
            seen.light.add("light", &before, &after);
            seen.contended += u32::from(contended);
        }
        before = after;
    }
    seen
}

/// Checks that found the pace taken: who asks so wants more than it gets.
fn in_vain(metrics: &Metrics) -> f64 {
    metrics.sum("sluice_cooperative_checks_total", &[("app", "light"), ("reason", "paced")])
}

fn has_work(metrics: &Metrics, rules: &[&str]) -> bool {
    let waiting = |rule: &&str| metrics.sum("sluice_queue_depth", &[("rule", rule)]);
    rules.iter().map(waiting).all(|depth| depth >= f64::from(SESSIONS / 2))
}

async fn write(mut conn: RawConn, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    conn.set_read_limit(Duration::from_secs(60));
    while !stop.load(Ordering::Relaxed) {
        let response = conn.query(INSERT).await.unwrap();
        match Refused::of(&response) {
            None => drop(count.fetch_add(1, Ordering::Relaxed)),
            Some(refused) => assert_eq!(refused.errno, 1205, "{refused:?}"),
        }
    }
}

/// As a tool does that asks before each of its writes: it comes again after a while when it may not.
async fn ask_and_write(
    mut checker: Checker,
    mut direct: RawConn,
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        match checker.ask().await.unwrap() {
            200 => {
                assert_eq!(direct.query(INSERT).await.unwrap().err(), None);
                count.fetch_add(1, Ordering::Relaxed);
            }
            417 | 429 => tokio::time::sleep(ASK_AGAIN).await,
            // No lag has been measured yet.
            500 => tokio::time::sleep(ASK_AGAIN * 4).await,
            other => assert_eq!(other, 200, "the answers to a check"),
        }
    }
}

/// How many of so many statements are refused by the dice.
async fn refusals(sluice: &SluiceProcess, app: &str) -> u32 {
    let mut conn = connect_as(sluice, app).await.unwrap();
    let mut count = 0;
    for _ in 0..STATEMENTS {
        if let Some(refused) = Refused::of(&conn.query(INSERT).await.unwrap()) {
            assert_eq!((refused.errno, refused.reason()), (1205, Some("ratio")), "{refused:?}");
            count += 1;
        }
    }
    count
}

/// Checks of a rule, with one result or all of them.
fn checks(metrics: &Metrics, rule: &str, result: Option<&str>) -> f64 {
    let mut labels = vec![("rule", rule)];
    labels.extend(result.map(|result| ("result", result)));
    metrics.sum("sluice_checks_total", &labels)
}

fn assert_within(value: f64, expected: f64, share: f64, what: &str) {
    let off = (value / expected - 1.0).abs() * 100.0;
    assert!(is_within(value, expected, share), "{what}: {value:.3} is {off:.1} % from {expected}");
}

fn is_within(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// Within 4.5 standard deviations of a binomial distribution: chance exceeds it once in 150,000 runs.
fn assert_share(count: f64, of: f64, expected: f64) {
    let deviation = (of * expected * (1.0 - expected)).sqrt();
    let off = (count - of * expected).abs() / deviation;
    assert!(off < 4.5, "{count} of {of} is {off:.1} deviations from {expected}");
}

const DELAYED: &str = "\
- { name: heavy, match: { app: heavy }, ratio: 0.9, max_delay: 30s, permanent: true }
- { name: light, match: { app: light }, ratio: 0.1, max_delay: 30s, permanent: true }";

const HEALTHY: &str = "\
- { name: heavy, match: { app: heavy }, ratio: 0.9, on_refused_check: reject, permanent: true }
- { name: light, match: { app: light }, ratio: 0.1, on_refused_check: reject, permanent: true }
- { name: heavy-delayed, match: { app: heavy-delayed }, ratio: 0.9, max_delay: 30s, permanent: true }
- { name: light-delayed, match: { app: light-delayed }, ratio: 0.1, max_delay: 30s, permanent: true }";

const TABLE: &str = "CREATE TABLE t (n INT AUTO_INCREMENT PRIMARY KEY)";
const INSERT: &str = "INSERT INTO t () VALUES ()";

/// Of each identity: more than are ever at the server at once, so that the line is never empty.
const SESSIONS: u32 = 100;
/// Admissions of the rarer identity: their standard deviation is 2.7 %.
const ENOUGH: f64 = 1_200.0;
/// Who ask over HTTP, and how often: in all more than the pace allows.
const ASKERS: u32 = 100;
const ASK_AGAIN: Duration = Duration::from_millis(80);
/// Of them are refused within a quarter of a second, at least, while they want more than their share.
const IN_VAIN: f64 = 20.0;
const RUN_OF_ASKERS: Duration = Duration::from_secs(16);
const ENOUGH_OF_ASKERS: f64 = 100.0;
/// A part of 9 : 1. The law holds it within 3 % on the virtual clock, also where those who ask get no time for
/// more than a second in ten. Here it came within 7 % in 13 of 15 runs beside compilers, six of which met half
/// the load of the others and were within 3 %; once the machine kept those who ask away for longer, and the
/// others took 16 % more than their part.
const SHARE_OF_ASKERS: f64 = 0.10;
const RUN_LIMIT: Duration = Duration::from_secs(60);
const STATEMENTS: u32 = 2_000;
const DELAYED_STATEMENTS: u32 = 250;
