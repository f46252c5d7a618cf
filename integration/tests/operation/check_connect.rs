//! `sluice check --connect`: what servers and accounts lack is named, with the statements that give it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use integration::client::PROBE_PASSWORD;
use integration::replica::Lag;
use integration::scenario::wait_until;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess, binary};
use integration::topology::Topology;

const SYNC: Duration = Duration::from_secs(20);

/// Needs every right that there is a use for.
const RULES: &str =
    "- { name: dashboards, match: { app: d }, gate: none, on_client_gone: kill, permanent: true }
- { name: long, match: { app: l }, gate: none, runaway: { elapsed: 1m, action: kill }, permanent: true }
- { name: rest, permanent: true }";
const BUDGETS: &str = "budgets: [{ name: reports, match: { app: r }, max_concurrency: 4 }]";
const SIGNALS: &str = "lag: { threshold: 1s }
history_list_length: { threshold: 1000000 }
shard/history_list_length: { threshold: 1000000 }
threads_running: { threshold: 500 }";

#[tokio::test]
async fn what_mysql_lacks_is_named_with_the_statements_that_give_it() {
    let mut servers = Topology::mysql(2).await.unwrap();
    let config = config(&servers);
    all_rights_are_found_missing_and_given(&servers, &config).await;
    rights_may_come_by_a_role(&servers, &config).await;
    replicas_that_are_of_no_use_are_named(&mut servers, &config).await;
    servers_that_do_not_answer_are_waited_for_no_longer_than_said(&servers, &config);
}

#[tokio::test]
async fn what_mariadb_lacks_is_named_with_the_statements_that_give_it() {
    let mut servers = Topology::mariadb(2).await.unwrap();
    let config = config(&servers);
    all_rights_are_found_missing_and_given(&servers, &config).await;
    replicas_that_are_of_no_use_are_named(&mut servers, &config).await;
}

fn config(servers: &Topology) -> Config {
    let keys = "connect_timeout: 2s";
    let config = Config::new(servers).unwrap().rules(RULES).signals(SIGNALS).cluster(keys);
    Config { top: BUDGETS.to_owned(), ..config }
}

async fn all_rights_are_found_missing_and_given(servers: &Topology, config: &Config) {
    let sluice = ["CREATE USER 'bare'@'%' IDENTIFIED BY 'sluice-probe'"];
    servers.primary.run_sql(&sluice).await.unwrap();
    servers.wait_in_sync(SYNC).await.unwrap();
    let yaml = config.render().replace("user: sluice", "user: bare");
    let bare = check(&yaml, &[]);
    assert_eq!(bare.code, 1, "{}", bare.text);
    assert!(bare.text.contains("logged in as 'bare'@'%'"), "{}", bare.text);
    let is_mysql = servers.primary.flavour() == Flavour::MySql;
    let (status, kill) = if is_mysql {
        ("REPLICATION CLIENT", "CONNECTION_ADMIN")
    } else {
        ("SLAVE MONITOR", "CONNECTION ADMIN")
    };
    for rights in [
        "CREATE, SELECT, INSERT, UPDATE, DELETE ON sluice.*",
        "PROCESS ON *.*",
        &format!("{status} ON *.*"),
        &format!("{kill} ON *.*"),
        "SELECT ON sluice.*",
    ] {
        let statement = format!("    GRANT {rights} TO 'bare'@'%';\n");
        assert!(bare.text.contains(&statement), "{statement}{}", bare.text);
    }
    let sees = "is not known for all; `runaway` leaves DDL, CALL and what cannot be read alone; a \
                budget's place is free half a minute after its connection has ended, whatever still \
                runs, unless\n    GRANT PROCESS";
    assert!(bare.text.contains(sees), "{}", bare.text);
    let learned = "begins with a guess: CREATE, SELECT, INSERT, DELETE on sluice.learned";
    assert!(bare.text.contains(learned), "{}", bare.text);
    // What it says is enough, statement for statement, though the table is not there yet.
    for statement in bare.statements("fault") {
        servers.primary.run_sql(&[&statement]).await.unwrap();
    }
    servers.wait_in_sync(SYNC).await.unwrap();
    let good = check(&yaml, &[]);
    assert_eq!(good.code, 0, "{}", good.text);
    assert!(good.text.contains("all that the file needs of it works"), "{}", good.text);
    let why = if is_mysql { "performance_schema is off" } else { "MariaDB does not tell" };
    assert!(
        good.text.contains("a row counts as a row") && good.text.contains(why),
        "{}",
        good.text
    );
    // What nothing needs is no fault.
    assert!(!good.statements("note").is_empty(), "{}", good.text);
    for statement in good.statements("note") {
        servers.primary.run_sql(&[&statement]).await.unwrap();
    }
    servers.wait_in_sync(SYNC).await.unwrap();
    assert_eq!(check(&yaml, &["--strict"]).statements("note"), [""; 0]);
    let made: Vec<String> = servers.primary.query("SHOW TABLES IN sluice").await.unwrap();
    assert_eq!(made, [""; 0], "a check changes nothing");
    one_right_less(servers, &yaml).await;
}

/// With the table there, each right is told by itself.
async fn one_right_less(servers: &Topology, yaml: &str) {
    let make = "CREATE TABLE sluice.heartbeat (instance CHAR(32) PRIMARY KEY, seq BIGINT UNSIGNED, \
                written_at TIMESTAMP(6))";
    let less = "REVOKE UPDATE ON sluice.* FROM 'bare'@'%'";
    servers.primary.run_sql(&[make, less]).await.unwrap();
    servers.wait_in_sync(SYNC).await.unwrap();
    let found = check(yaml, &[]);
    assert_eq!(found.statements("fault"), ["GRANT UPDATE ON sluice.heartbeat TO 'bare'@'%';"]);
    let note = found.statements("note");
    assert_eq!(note, ["GRANT UPDATE ON sluice.* TO 'bare'@'%';"], "for runtime rules");
    a_running_sluice_names_it_too(yaml).await;
    let other = "DROP TABLE sluice.heartbeat";
    let wrong = "CREATE TABLE sluice.heartbeat (instance CHAR(32) PRIMARY KEY)";
    servers.primary.run_sql(&[other, wrong]).await.unwrap();
    servers.wait_in_sync(SYNC).await.unwrap();
    let found = check(yaml, &[]);
    assert_eq!(found.code, 1, "{}", found.text);
    assert!(found.text.contains("is not as Sluice makes it"), "{}", found.text);
    servers.primary.run_sql(&[other]).await.unwrap();
    servers.wait_in_sync(SYNC).await.unwrap();
}

/// In its log, with the account that the server has chosen.
async fn a_running_sluice_names_it_too(yaml: &str) {
    let nowhere = "127.0.0.1:0".parse().unwrap();
    let sluice = SluiceProcess::spawn(yaml, nowhere, nowhere, &[]).unwrap();
    let told = "to be run there: GRANT UPDATE ON sluice.heartbeat TO 'bare'@'%';";
    let is_told = || async { sluice.log().map(|log| log.contains(told)) };
    wait_until("the missing right is in the log", SYNC, is_told).await.unwrap();
}

async fn rights_may_come_by_a_role(servers: &Topology, config: &Config) {
    servers
        .primary
        .run_sql(&[
            "CREATE ROLE 'prober'",
            "GRANT CREATE, INSERT, UPDATE, DELETE, SELECT ON sluice.* TO 'prober'",
            "GRANT REPLICATION CLIENT, PROCESS, CONNECTION_ADMIN ON *.* TO 'prober'",
            "CREATE USER 'actor'@'127.0.0.%' IDENTIFIED BY 'sluice-probe' DEFAULT ROLE 'prober'",
            "GRANT 'prober' TO 'actor'@'127.0.0.%'",
            "ALTER USER 'actor'@'127.0.0.%' DEFAULT ROLE 'prober'",
        ])
        .await
        .unwrap();
    servers.wait_in_sync(SYNC).await.unwrap();
    let found = check(&config.render().replace("user: sluice", "user: actor"), &[]);
    assert!(found.text.contains("logged in as 'actor'@'127.0.0.%'"), "{}", found.text);
    assert_eq!((found.code, found.statements("fault")), (0, vec![]), "{}", found.text);
}

async fn replicas_that_are_of_no_use_are_named(servers: &mut Topology, config: &Config) {
    // Nobody may be killed by the ordinary account.
    let yaml = config.render().replace("on_client_gone: kill", "on_client_gone: close");
    let yaml = yaml.replace("action: kill", "action: log");
    let good = check(&yaml, &["--strict"]);
    assert_eq!(good.code, 0, "{}", good.text);

    let first = servers.replicas.first_mut().unwrap();
    let address = first.addr();
    first.lag_start(Lag::StoppedApplier).await.unwrap();
    let stopped = check(&yaml, &[]);
    assert_eq!(stopped.code, 1, "{}", stopped.text);
    let server = format!("clusters.main.replicas[0]: {address}: ");
    assert!(stopped.below(&server).contains("fault: it applies nothing"), "{}", stopped.text);
    first.lag_stop().await.unwrap();

    first.lag_start(Lag::Delayed(30)).await.unwrap();
    let delayed = check(&yaml, &[]);
    assert_eq!(delayed.code, 0, "the other one is measured: {}", delayed.text);
    assert!(delayed.below(&server).contains("warning: it stays 30 s behind"), "{}", delayed.text);
    assert_eq!(check(&yaml, &["--strict"]).code, 1);
    let both = check(&yaml.replace("threshold: 1s", "threshold: 1s, min_replicas: 2"), &[]);
    assert_eq!(both.code, 1, "{}", both.text);
    assert!(both.text.contains("fault: of 2 replicas 1 can be measured"), "{}", both.text);
    first.lag_stop().await.unwrap();

    let admin = first.server();
    admin.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
    let writable = check(&yaml, &[]);
    assert_eq!(writable.code, 0, "{}", writable.text);
    assert!(writable.below(&server).contains("warning: read_only is off"), "{}", writable.text);

    // The other way round: a replica for a primary, and the primary as its own replica.
    let (primary, replica) = (servers.primary.addr().to_string(), address.to_string());
    let swapped =
        yaml.replace(&primary, "SWAP").replace(&replica, &primary).replace("SWAP", &replica);
    let found = check(&swapped, &[]);
    assert!(found.text.contains("warning: it is no replica of anybody"), "{}", found.text);
    servers
        .replicas
        .first()
        .unwrap()
        .server()
        .run_sql(&["SET GLOBAL read_only = 1"])
        .await
        .unwrap();
    let found = check(&swapped, &[]);
    assert!(found.text.contains("fault: read_only is on"), "{}", found.text);
    assert_eq!(found.code, 1);
    let same = yaml.replace(&replica, &primary.replace("127.0.0.1", "127.0.0.01"));
    let same = same.replace("127.0.0.01", "localhost");
    let found = check(&same, &[]);
    assert!(found.text.contains("fault: it is the primary itself"), "{}", found.text);
}

fn servers_that_do_not_answer_are_waited_for_no_longer_than_said(
    servers: &Topology,
    config: &Config,
) {
    let yaml = config.render();
    let wrong = check_as(&yaml, &[], "another password");
    assert_eq!(wrong.code, 1);
    assert!(wrong.text.contains("`probe`'s password"), "{}", wrong.text);

    let frozen = servers.replicas.last().unwrap().server();
    frozen.freeze().unwrap();
    let begun = Instant::now();
    let found = check(&yaml, &[]);
    let took = begun.elapsed();
    frozen.thaw().unwrap();
    assert_eq!(found.code, 1, "{}", found.text);
    assert!(found.text.contains("fault: no answer in time"), "{}", found.text);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// What a check ended with, and all that it wrote.
struct Found {
    code: i32,
    text: String,
}

impl Found {
    /// The statements that findings of this weight come with.
    fn statements(&self, weight: &str) -> Vec<String> {
        let lines: Vec<&str> = self.text.lines().collect();
        let of_weight = format!("  {weight}: ");
        let pairs = lines.iter().zip(lines.iter().skip(1));
        let pairs = pairs.filter(|(line, _)| line.starts_with(&of_weight));
        let statements = pairs.filter_map(|(_, below)| below.strip_prefix("    "));
        statements.map(str::to_owned).collect()
    }

    /// What is said of one server.
    fn below(&self, server: &str) -> &str {
        let (_, rest) = self.text.split_once(server).unwrap();
        rest.split("\n\n").next().unwrap_or_default()
    }
}

fn check(yaml: &str, arguments: &[&str]) -> Found {
    check_as(yaml, arguments, PROBE_PASSWORD)
}

fn check_as(yaml: &str, arguments: &[&str], password: &str) -> Found {
    let file = File::with(yaml);
    let mut sluice = Command::new(binary().unwrap());
    sluice.args(["check", "--connect", "--config"]).arg(&file.0).args(arguments);
    let output = sluice.env("SLUICE_PROBE_PASSWORD", password).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    Found { code: output.status.code().unwrap_or(-1), text }
}

/// A file that is gone with the check.
struct File(PathBuf);

impl File {
    fn with(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluice-it-check-{}-{count}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}
