//! The file is edited while traffic flows: holds, mistakes, 10,000 rules, rules that expire; and the
//! process is told to reload and to leave.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::os::unix::fs::symlink;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use integration::raw::{Login, RawConn, Response};
use integration::scenario::{
    Pending, Refused, Shared, connect, is, numbers, wait_for_depth, wait_for_sum, wait_until,
};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;

mod what_stays;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn a_hold_stops_an_identity_within_a_second_and_lifting_it_runs_what_waits_within_one() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "l_hold").await;
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let held = config.clone().rules(HELD).render();
    let free = config.render();
    let write = |how: How, yaml: &str| match how {
        How::Renamed => sluice.write_config(yaml).unwrap(),
        How::InPlace => sluice.write_config_in_place(yaml).unwrap(),
        How::Swapped => swap_link(&sluice, yaml),
    };
    for (n, how) in
        (0..).zip([How::Renamed, How::InPlace, How::Renamed, How::Swapped, How::Swapped])
    {
        let mut etl = connect(&sluice, "etl").await.unwrap();
        accepted(&etl.query(format!("INSERT INTO l_hold VALUES ({n} * 10)")).await.unwrap());
        write(how, &held);
        let edited = Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let waiting = Pending::query(etl, format!("INSERT INTO l_hold VALUES ({n} * 10 + 1)"));
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        assert!(!waiting.is_answered(), "{how:?}: not held {:?} after the edit", edited.elapsed());
        let mut web = connect(&sluice, "web").await.unwrap();
        accepted(&web.query("SELECT COUNT(*) FROM l_hold").await.unwrap());
        assert!(!rows(servers, "l_hold").await.contains(&(n * 10 + 1)));
        write(how, &free);
        let lifted = Instant::now();
        accepted(&waiting.answered(SOON).await.unwrap().response);
        let took = lifted.elapsed();
        assert!(took < Duration::from_secs(1), "{how:?}: {took:?}");
    }
    let expected: Vec<i64> = (0..5).flat_map(|n| [n * 10, n * 10 + 1]).collect();
    assert_eq!(rows(servers, "l_hold").await, expected);
}

#[tokio::test]
async fn a_broken_edit_changes_nothing_and_is_reported_with_its_lines() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "l_broken").await;
    let config = Config::new(servers).unwrap().rules(HELD);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_sum(&sluice, SUCCESSFUL, &[], 1.0).await.unwrap();
    let etl = connect(&sluice, "etl").await.unwrap();
    let waiting = Pending::query(etl, "INSERT INTO l_broken VALUES (1)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();

    let faults = "\
- { name: held, match: { app: nobody }, permanent: true }
- name: first
  match: { app: etl }
  ratoi: 0.5
  permanent: true
- { name: second, match: { app: etl }, ratio: 7, permanent: true }
- { name: third, match: { app: etl } }";
    let broken = config.clone().rules(faults).render();
    let lines: Vec<usize> = (1..)
        .zip(broken.lines())
        .filter(|(_, text)| ["ratoi", "second", "third"].iter().any(|word| text.contains(word)))
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines.len(), 3);
    sluice.write_config(&broken).unwrap();
    wait_for_sum(&sluice, SUCCESSFUL, &[], 0.0).await.unwrap();
    let reported = || async {
        let log = sluice.log()?;
        let forms =
            |line| [format!("line {line}:"), format!("yaml:{line}:"), format!("line={line} ")];
        Ok(lines.iter().all(|line| forms(line).iter().any(|form| log.contains(form))))
    };
    wait_until(&format!("lines {lines:?} in the log"), SOON, reported).await.unwrap();
    for also_broken in ["", "\t", "version: 1", "rules: [", "\u{0}", "version: 99\nclusters: {}"] {
        sluice.write_config(also_broken).unwrap();
        tokio::time::sleep(Duration::from_millis(400)).await;
        wait_for_sum(&sluice, SUCCESSFUL, &[], 0.0).await.unwrap();
    }
    std::fs::remove_file(sluice.config_path()).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The rules of before still hold, the one that waits included.
    assert!(!waiting.is_answered());
    let metrics = sluice.metrics().await.unwrap();
    assert!(is(metrics.sum("sluice_queue_depth", &[("rule", "held")]), 1.0));
    assert!(is(metrics.sum(SUCCESSFUL, &[]), 0.0));

    sluice.write_config(&config.clone().rules(FREE).render()).unwrap();
    accepted(&waiting.answered(SOON).await.unwrap().response);
    wait_for_sum(&sluice, SUCCESSFUL, &[], 1.0).await.unwrap();
    assert_eq!(rows(servers, "l_broken").await, [1]);
}

#[tokio::test]
async fn ten_thousand_rules_reload_without_a_visible_pause_for_others() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    let quiet = slowest(&mut web, Duration::from_secs(2)).await;
    let many = config.clone().rules(&ten_thousand_rules()).render();
    let before = sluice.metrics().await.unwrap().sum(RELOADED, &[]);
    let during = tokio::spawn(async move {
        let slowest = slowest(&mut web, Duration::from_secs(6)).await;
        (web, slowest)
    });
    for edit in 0..3 {
        sluice.write_config(&format!("{many}# {edit}\n")).unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    let (_web, busy) = during.await.unwrap();
    let bound = Duration::from_millis(250).max(quiet * 3);
    assert!(busy <= bound, "slowest statement {busy:?}, {quiet:?} before");
    let is_newer = |metrics: &Metrics| metrics.sum(RELOADED, &[]) > before;
    sluice.wait_for_metrics("the rules are in force", SOON, is_newer).await.unwrap();
    // The last of them holds.
    let login = Login::new("app").attribute("sluice_app", "app-9999");
    let mut last = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let refused = last.query("DELETE FROM nowhere").await.unwrap();
    assert_eq!(Refused::of(&refused).unwrap().part("rule"), Some("rule-9999"));
}

#[tokio::test]
async fn a_rule_stops_at_its_second_and_what_it_held_runs() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "l_expiry").await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let expires_at = now.as_secs() + 6;
    let rules = format!(
        "- {{ name: held, match: {{ app: etl }}, hold: true, max_delay: 60s, expires_at: {time} }}\n\
         - {{ name: denied, match: {{ app: ddl }}, deny: true, expires_at: {time} }}",
        time = rfc3339(expires_at)
    );
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap().rules(&rules)).await.unwrap();
    let etl = connect(&sluice, "etl").await.unwrap();
    let mut ddl = connect(&sluice, "ddl").await.unwrap();
    let waiting = Pending::query(etl, "INSERT INTO l_expiry VALUES (1)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    let exported = metrics.value("sluice_rule_expires_timestamp_seconds", &[("rule", "held")]);
    assert_eq!(exported.map(|time| format!("{time}")), Some(expires_at.to_string()));
    // Asked all the time, on one connection: refused before that second, let through after it.
    let left = |at: u64| Duration::from_secs(at).saturating_sub(since_epoch());
    let mut refusals = 0;
    let let_through = loop {
        let sent = since_epoch();
        let response = ddl.query("INSERT INTO l_expiry VALUES (2)").await.unwrap();
        match Refused::of(&response) {
            None => break sent,
            Some(_) => {
                refusals += 1;
                assert!(sent < Duration::from_secs(expires_at), "refused after it has expired");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(refusals > 0);
    assert!(let_through.as_secs() >= expires_at - 1, "{let_through:?}");
    assert_eq!(left(expires_at), Duration::ZERO, "let through before its second");
    // The one that waits is judged anew.
    let answered = waiting.answered(Duration::from_secs(2)).await.unwrap();
    accepted(&answered.response);
    assert!(since_epoch() < Duration::from_secs(expires_at + 2));
    assert_eq!(rows(servers, "l_expiry").await, [1, 2]);
    let log = sluice.log().unwrap();
    let expired: Vec<&str> =
        log.lines().filter(|line| line.contains("a rule has expired")).collect();
    assert_eq!(expired.len(), 2, "one line for each: {log}");
    for rule in ["rule=held", "rule=denied"] {
        assert!(expired.iter().any(|line| line.contains(rule)), "{rule}: {expired:?}");
    }
}

#[tokio::test]
async fn two_clusters_with_two_listeners_run_in_one_process() {
    let (mysql, mariadb) = (MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap());
    made(mysql, "l_two").await;
    made(mariadb, "l_two").await;
    let (main, other) = (Config::new(mysql).unwrap(), Config::new(mariadb).unwrap());
    let yaml = two_clusters(
        &main,
        &other,
        "- { name: r, match: { app: etl }, deny: true, permanent: true }",
    );
    let mut sluice = SluiceProcess::spawn(&yaml, main.listen, main.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    let mut to_main = RawConn::open(main.listen, &Login::new("etl")).await.unwrap();
    let mut to_other = RawConn::open(other.listen, &Login::new("etl")).await.unwrap();
    assert!(!to_main.server_version().contains("MariaDB"));
    assert!(to_other.server_version().contains("MariaDB"));
    // `main` enforces, `other` only observes.
    let refused = to_main.query("INSERT INTO l_two VALUES (1)").await.unwrap();
    assert_eq!(Refused::of(&refused).unwrap().reason(), Some("deny"));
    accepted(&to_other.query("INSERT INTO l_two VALUES (2)").await.unwrap());
    assert!(rows(mysql, "l_two").await.is_empty());
    assert_eq!(rows(mariadb, "l_two").await, [2]);
    for (cluster, mode) in [("main", "enforce"), ("other", "observe")] {
        let labels = [("cluster", cluster), ("mode", mode), ("reason", "deny")];
        wait_for_sum(&sluice, "sluice_statements_total", &labels, 1.0).await.unwrap();
        wait_for_sum(&sluice, "sluice_client_connections", &[("cluster", cluster)], 1.0)
            .await
            .unwrap();
    }
    // An edit reaches both.
    sluice.write_config(&two_clusters(&main, &other, FREE)).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    accepted(&to_main.query("INSERT INTO l_two VALUES (1)").await.unwrap());
    assert_eq!(rows(mysql, "l_two").await, [1]);
}

#[tokio::test]
async fn sighup_reads_the_file_again() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap();
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    let before = sluice.metrics().await.unwrap().sum(RELOADED, &[]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    sluice.signal("HUP").unwrap();
    let is_newer = |metrics: &Metrics| metrics.sum(RELOADED, &[]) > before;
    sluice.wait_for_metrics("the file is read again", SOON, is_newer).await.unwrap();
    accepted(&web.query("SELECT 1").await.unwrap());
    assert!(sluice.exited().is_none());
}

#[tokio::test]
async fn sigterm_lets_open_transactions_finish_and_closes_the_rest() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "l_drain").await;
    let mut config = Config::new(servers).unwrap().rules(HELD);
    config.top = "drain_timeout: 30s".into();
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let mut idle = connect(&sluice, "web").await.unwrap();
    let mut open = connect(&sluice, "web").await.unwrap();
    accepted(&idle.query("SELECT 1").await.unwrap());
    accepted(&open.query("BEGIN").await.unwrap());
    accepted(&open.query("INSERT INTO l_drain VALUES (1)").await.unwrap());
    let etl = connect(&sluice, "etl").await.unwrap();
    let waiting = Pending::query(etl, "INSERT INTO l_drain VALUES (2)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();

    sluice.signal("TERM").unwrap();
    let told = waiting.answered(SOON).await.unwrap();
    let refused = Refused::of(&told.response).unwrap();
    assert_eq!(refused.errno, 1205, "{:?}", told.response);
    assert_eq!((refused.reason(), refused.part("executed")), (Some("shutdown"), Some("no")));
    idle.set_read_limit(SOON);
    idle.read_to_end().await.unwrap();
    let no_listener = || async { Ok(RawConn::connect(config.listen).await.is_err()) };
    wait_until("the listener is closed", SOON, no_listener).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(sluice.exited().is_none(), "a transaction is open");
    accepted(&open.query("INSERT INTO l_drain VALUES (3)").await.unwrap());
    accepted(&open.query("COMMIT").await.unwrap());
    open.read_to_end().await.unwrap();
    assert_eq!(ended(&mut sluice).await.code(), Some(0));
    assert_eq!(rows(servers, "l_drain").await, [1, 3]);
}

#[tokio::test]
async fn a_transaction_that_outlasts_the_drain_is_closed_with_1053_and_rolled_back() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "l_late").await;
    let mut config = Config::new(servers).unwrap();
    config.top = "drain_timeout: 1s".into();
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let mut open = connect(&sluice, "web").await.unwrap();
    accepted(&open.query("BEGIN").await.unwrap());
    accepted(&open.query("INSERT INTO l_late VALUES (1)").await.unwrap());
    let sent = Instant::now();
    sluice.signal("TERM").unwrap();
    let last = open.read_packet().await.unwrap();
    assert_eq!(last.err().map(|(errno, _)| errno), Some(1053), "{last:?}");
    assert!(sent.elapsed() >= Duration::from_millis(900));
    open.read_to_end().await.unwrap();
    assert_eq!(ended(&mut sluice).await.code(), Some(0));
    assert!(rows(servers, "l_late").await.is_empty());
}

/// How the file is replaced.
#[derive(Debug, Clone, Copy)]
enum How {
    Renamed,
    InPlace,
    /// As Kubernetes does with a ConfigMap: the file is a link through a directory that is a link.
    Swapped,
}

fn swap_link(sluice: &SluiceProcess, yaml: &str) {
    let file = sluice.config_path();
    let dir = file.parent().unwrap();
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let version = dir.join(format!("..{nanos}"));
    std::fs::create_dir(&version).unwrap();
    std::fs::write(version.join("sluice.yaml"), yaml).unwrap();
    let (data, beside) = (dir.join("..data"), dir.join("..data_tmp"));
    symlink(&version, &beside).unwrap();
    std::fs::rename(&beside, &data).unwrap();
    if !file.is_symlink() {
        let link = dir.join("link");
        symlink("..data/sluice.yaml", &link).unwrap();
        std::fs::rename(&link, &file).unwrap();
    }
}

/// The slowest of the statements that one client runs one after the other.
async fn slowest(conn: &mut RawConn, lasting: Duration) -> Duration {
    let started = Instant::now();
    let mut slowest = Duration::ZERO;
    while started.elapsed() < lasting {
        let sent = Instant::now();
        accepted(&conn.query("SELECT 1").await.unwrap());
        slowest = slowest.max(sent.elapsed());
    }
    slowest
}

fn ten_thousand_rules() -> String {
    let rule = |n| {
        format!("- {{ name: rule-{n}, match: {{ app: app-{n} }}, deny: true, permanent: true }}\n")
    };
    (0..10_000).map(rule).collect()
}

fn two_clusters(main: &Config, other: &Config, rules: &str) -> String {
    let cluster = |name: &str, config: &Config, mode: &str| {
        format!(
            "  {name}:\n    listen: \"{}\"\n    primary: \"{}\"\n    mode: {mode}\n    \
             probe: {{ user: sluice, password_env: SLUICE_PROBE_PASSWORD }}\n",
            config.listen, config.primary
        )
    };
    let clusters = cluster("main", main, "enforce") + &cluster("other", other, "observe");
    let rules: String = rules.lines().map(|line| format!("  {line}\n")).collect();
    let claims = "identity: { claims: [{ user: \"*\", apps: [\"*\"] }] }";
    format!(
        "version: 1\nadmin: {{ listen: \"{}\" }}\nclusters:\n{clusters}{claims}\nrules:\n{rules}",
        main.admin
    )
}

async fn ended(sluice: &mut SluiceProcess) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = sluice.exited() {
            return status;
        }
        assert!(started.elapsed() < SOON, "it has not ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn rfc3339(seconds: u64) -> String {
    let date = Command::new("date").args(["-u", "-d", &format!("@{seconds}"), "+%FT%TZ"]).output();
    String::from_utf8(date.unwrap().stdout).unwrap().trim().to_owned()
}

async fn made(servers: &Topology, table: &str) {
    let create = format!("CREATE TABLE {table} (n INT PRIMARY KEY)");
    servers.primary.run_sql(&[&create]).await.unwrap();
}

async fn rows(servers: &Topology, table: &str) -> Vec<i64> {
    numbers(&servers.primary, &format!("SELECT n FROM {table} ORDER BY n")).await.unwrap()
}

fn accepted(response: &Response) {
    if let Some(refused) = Refused::of(response) {
        panic!("{refused:?}");
    }
}

const HELD: &str = "\
- { name: held, match: { app: etl }, hold: true, max_delay: 60s, permanent: true }
- { name: everything, gate: none, permanent: true }";
const FREE: &str = "- { name: everything, gate: none, permanent: true }";
const SUCCESSFUL: &str = "sluice_config_last_reload_successful";
const RELOADED: &str = "sluice_config_last_reload_timestamp_seconds";
const SOON: Duration = Duration::from_secs(15);
