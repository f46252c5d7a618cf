//! Percona's tools.

use std::process::Command;
use std::time::Duration;

use integration::client::PROBE_PASSWORD;
use integration::scenario::{numbers, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Metrics, binary};
use integration::tools::{ToolProcess, program};

use super::doors::change_by_asking;
use super::lab::{Lab, Shut, Traffic};

#[tokio::test]
async fn pt_online_schema_change_waits_while_a_replica_is_stopped_and_changes_the_table() {
    let mut lab = Lab::start(Flavour::MySql).await;
    let traffic = Traffic::start(&lab).await;
    let dsn = format!("h=127.0.0.1,P={},u=ddl,p=ddl,D=test,t=t", lab.port());
    let mut tool = change(&dsn, &["--recursion-method=none", EXPLAIN]);
    let said = lab.run(&mut tool, "pt-online-schema-change", 10.0, Shut::ByLag).await;
    let (transactions, slowest) = traffic.stop().await;
    assert!(said.contains("Successfully altered `test`.`t`"), "{said}");
    assert!(transactions > 50, "{transactions} transactions, of at most {slowest:?}");
    lab.is_altered().await;
    lab.same_rows("t", "shadow", "TRUE").await;
    lab.replica_agrees(&["t", "shadow"]).await;
    a_rule_that_is_warned_of_ends_it(&lab).await;
}

/// Ten tries of 200 ms and the pauses between them, as `sluice check` says; what the tool has made
/// is gone then.
async fn a_rule_that_is_warned_of_ends_it(lab: &Lab) {
    let rule = "- { name: hold, match: { app: pt-online-schema-change }, hold: true, \
                max_delay: 200ms, permanent: true }\n";
    let impatient = lab.config.clone().rules(&(rule.to_owned() + &lab.config.rules));
    let before = lab.sluice.metrics().await.unwrap().sum(RELOADED, &[]);
    lab.sluice.write_config(&impatient.render()).unwrap();
    let mut check = Command::new(binary().unwrap());
    check.args(["check", "--config"]).arg(lab.sluice.config_path());
    check.env("SLUICE_PROBE_PASSWORD", PROBE_PASSWORD);
    let warned = ToolProcess::spawn(&mut check).unwrap().succeeded(SYNC_LIMIT).await.unwrap();
    let warning = "`pt-online-schema-change` tries 10 times: a hold for 4 s ends it with an error";
    assert!(warned.contains(warning), "{warned}");

    let is_newer = |seen: &Metrics| seen.sum(RELOADED, &[]) > before;
    lab.sluice.wait_for_metrics("the rule is in force", SYNC_LIMIT, is_newer).await.unwrap();
    let dsn = format!("h=127.0.0.1,P={},u=ddl,p=ddl,D=test,t=t", lab.port());
    let mut tool =
        change(&dsn, &["--recursion-method=none", EXPLAIN, "--alter=ADD COLUMN never INT"]);
    let ended = tool.ended(SYNC_LIMIT).await.unwrap();
    let said = tool.output();
    assert!(!ended.success() && said.contains("`test`.`t` was not altered"), "{said}");
    let refused = [("rule", "hold"), ("reason", "hold"), ("decision", "rejected")];
    wait_for_sum(&lab.sluice, "sluice_statements_total", &refused, 10.0).await.unwrap();
    let left = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = '_t_new'";
    assert_eq!(numbers(&lab.servers.primary, left).await.unwrap(), [0]);
}

#[tokio::test]
async fn pt_archiver_and_pt_table_checksum_wait_for_a_replica_and_for_a_hold() {
    let mut lab = Lab::start(Flavour::MySql).await;
    lab.servers.primary.run_sql(&["CREATE TABLE archive LIKE t"]).await.unwrap();
    let traffic = Traffic::start(&lab).await;
    let at = |table: &str| format!("h=127.0.0.1,P={},u=etl,p=etl,D=test,t={table}", lab.port());
    let (source, dest) = (at("t"), at("archive"));
    let arguments = [
        "--no-version-check",
        "--source",
        &source,
        "--dest",
        &dest,
        "--where=id <= 3000",
        "--limit=200",
        "--commit-each",
        "--statistics",
    ];
    let mut tool = ToolProcess::start(&program("pt-archiver").unwrap(), &arguments).unwrap();
    let said = lab.run(&mut tool, "pt-archiver", 500.0, Shut::ByLag).await;
    assert!(said.contains("INSERT 3000\nDELETE 3000\n"), "{said}");
    lab.same_rows("archive", "shadow", "id <= 3000").await;

    checksum(&mut lab, &["--recursion-method=none", EXPLAIN]).await;
    let (transactions, slowest) = traffic.stop().await;
    assert!(transactions > 50, "{transactions} transactions, of at most {slowest:?}");
    lab.same_rows("t", "shadow", "id > 3000").await;
    lab.replica_agrees(&["t", "shadow", "archive"]).await;
}

/// These versions look at replicas themselves only where `SHOW SLAVE STATUS` is one of the server's
/// statements.
#[tokio::test]
async fn on_mariadb_the_tools_watch_the_replica_as_well_and_wait_for_a_hold() {
    let mut lab = Lab::start(Flavour::MariaDb).await;
    let replica = lab.servers.replicas.first().unwrap().addr().port();
    let replicas = format!("INSERT INTO dsns (dsn) VALUES ('h=127.0.0.1,P={replica}')");
    let table =
        "CREATE TABLE dsns (id INT AUTO_INCREMENT PRIMARY KEY, parent_id INT, dsn VARCHAR(255))";
    lab.servers.primary.run_sql(&[table, &replicas]).await.unwrap();
    let recursion = format!("--recursion-method=dsn=h=127.0.0.1,P={},D=test,t=dsns", lab.port());
    let traffic = Traffic::start(&lab).await;
    let dsn = format!("h=127.0.0.1,P={},u=admin,p=admin,D=test,t=t", lab.port());
    let mut tool = change(&dsn, &[&recursion]);
    let said = lab.run(&mut tool, "pt-online-schema-change", 10.0, Shut::ByHold).await;
    assert!(said.contains("Successfully altered `test`.`t`"), "{said}");
    lab.is_altered().await;

    checksum(&mut lab, &[&recursion]).await;
    change_by_asking(&lab).await;
    let (transactions, slowest) = traffic.stop().await;
    assert!(transactions > 50, "{transactions} transactions, of at most {slowest:?}");
    lab.same_rows("t", "shadow", "TRUE").await;
    lab.replica_agrees(&["t", "shadow"]).await;
}

/// Compares `t` on the primary and its replica, chunk by chunk, and is held meanwhile.
async fn checksum(lab: &mut Lab, more: &[&str]) {
    let dsn = format!("h=127.0.0.1,P={},u=admin,p=admin", lab.port());
    let mut arguments = vec![
        "--no-version-check",
        "--no-check-binlog-format",
        "--databases=test",
        "--tables=t",
        "--chunk-time=0",
        "--chunk-size=2000",
    ];
    arguments.extend(more);
    arguments.push(&dsn);
    let mut tool = ToolProcess::start(&program("pt-table-checksum").unwrap(), &arguments).unwrap();
    lab.run(&mut tool, "pt-table-checksum", 5.0, Shut::ByHold).await;
    lab.servers.wait_in_sync(SYNC_LIMIT).await.unwrap();
    let question = "SELECT COUNT(*), SUM(this_crc <> master_crc OR this_cnt <> master_cnt) \
                    FROM percona.checksums WHERE tbl = 't'";
    let replica = lab.replica().server();
    let (chunks, different): (u32, u32) = replica.query_first(question).await.unwrap().unwrap();
    assert!(chunks >= 45 && different == 0, "{chunks} chunks, {different} differ");
}

/// Adds a column by copying in a hundred chunks.
fn change(dsn: &str, more: &[&str]) -> ToolProcess {
    let mut arguments = vec![
        "--no-version-check",
        "--execute",
        "--chunk-time=0",
        "--chunk-size=1000",
        "--alter=ADD COLUMN extra INT NOT NULL DEFAULT 0",
    ];
    arguments.extend(more);
    arguments.push(dsn);
    ToolProcess::start(&program("pt-online-schema-change").unwrap(), &arguments).unwrap()
}

const RELOADED: &str = "sluice_config_last_reload_timestamp_seconds";
const SYNC_LIMIT: Duration = Duration::from_secs(60);

/// MySQL 9.7 explains as a tree, of which these versions of the tools read no number of rows: they
/// would take a table of any size for one chunk.
const EXPLAIN: &str = "--set-vars=explain_format=TRADITIONAL";
