//! A table of 100,000 rows with writers on it, Sluice with the rules that the repository ships, and
//! a gate that is shut while a tool is at work.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::replica::Lag;
use integration::scenario::wait_for_signal;
use integration::server::{Flavour, PerformanceSchema, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::tools::ToolProcess;
use integration::topology::{Topology, TopologyOptions};
use tokio::task::JoinHandle;

/// Servers with the table `t`, and Sluice in front of them.
pub(crate) struct Lab {
    pub(crate) servers: Topology,
    pub(crate) sluice: SluiceProcess,
    pub(crate) config: Config,
}

/// A tool that runs, or has ended.
pub(crate) trait Tool {
    fn has_ended(&mut self) -> bool;
    fn said(&self) -> String;
    /// Waits for its end, which must be a good one; gives what it has said.
    async fn succeed(&mut self) -> String;
}

impl Tool for ToolProcess {
    fn has_ended(&mut self) -> bool {
        self.exited().is_some()
    }

    fn said(&self) -> String {
        self.output()
    }

    async fn succeed(&mut self) -> String {
        self.succeeded(TOOL_LIMIT).await.unwrap()
    }
}

/// How the gate is shut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shut {
    /// The replica's applier is stopped.
    ByLag,
    /// A rule with `hold: true` is written into the file.
    ByHold,
}

impl Lab {
    pub(crate) async fn start(flavour: Flavour) -> Self {
        let mut options = TopologyOptions::new(flavour, 1);
        // For the triggers of pt-online-schema-change, as accounts without SUPER need it.
        options.extra_args = vec!["--log-bin-trust-function-creators=ON".into()];
        // gh-ost looks there for who waits for which lock.
        if flavour == Flavour::MySql {
            options.performance_schema = PerformanceSchema::On;
        }
        let servers = Topology::start(options).await.unwrap();
        servers.primary.run_sql(&TABLE).await.unwrap();
        let locks = "GRANT SELECT ON performance_schema.* TO 'ddl'@'%'";
        servers.primary.run_sql(&[locks]).await.unwrap();
        // What does not name itself is known by its account.
        for user in ["mydumper", "myloader"] {
            let create = format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{user}'");
            let grant = format!("GRANT ALL ON *.* TO '{user}'@'%'");
            servers.primary.run_sql(&[&create, &grant]).await.unwrap();
        }
        servers.wait_in_sync(SYNC_LIMIT).await.unwrap();
        let config = Config::new(&servers)
            .unwrap()
            .signals("lag: { threshold: 1s }\nthreads_running: { threshold: 100 }")
            .cluster("default_gate: [lag]")
            // For the door by which tools ask.
            .admin_keys("legacy_get: true")
            .rules(&shipped_rules());
        let sluice = SluiceProcess::start(&config).await.unwrap();
        Self { servers, sluice, config }
    }

    /// `127.0.0.1`, and the port on which Sluice listens.
    pub(crate) fn port(&self) -> u16 {
        self.sluice.listen_addr().port()
    }

    /// Statements of an app that were admitted, of one class or of all.
    pub(crate) async fn admitted(&self, app: &str, class: &str) -> f64 {
        let labels = [("app", app), ("class", class), ("decision", "admitted")];
        self.sluice.metrics().await.unwrap().sum(STATEMENTS, &labels)
    }

    /// Lets a tool run until so many of its writes are admitted, shuts the gate for some seconds,
    /// in which nothing of it is admitted, opens it, and lets the tool end. It must succeed, and
    /// nothing of it may have been refused.
    pub(crate) async fn run(
        &mut self,
        tool: &mut impl Tool,
        app: &str,
        after: f64,
        shut: Shut,
    ) -> String {
        self.shut_in_mid_run(tool, app, after, shut).await;
        let said = tool.succeed().await;
        let refused = [("app", app), ("decision", "rejected")];
        let refused = self.sluice.metrics().await.unwrap().sum(STATEMENTS, &refused);
        assert!(refused < 1.0, "{app} had {refused} statements refused:\n{said}");
        said
    }

    async fn shut_in_mid_run(&mut self, tool: &mut impl Tool, app: &str, after: f64, shut: Shut) {
        let what = format!("{after} writes of {app}");
        self.wait_while_it_runs(tool, &what, async || self.written(app).await >= after).await;
        match shut {
            Shut::ByLag => self.replica().lag_start(Lag::StoppedApplier).await.unwrap(),
            Shut::ByHold => {
                let hold = format!(
                    "- {{ name: tonight, match: {{ app: {app} }}, hold: true, max_delay: 2h, \
                     permanent: true }}\n"
                );
                let held = self.config.clone().rules(&(hold + &self.config.rules));
                self.sluice.write_config(&held.render()).unwrap();
            }
        }
        let waits = async || {
            let seen = self.sluice.metrics().await.unwrap();
            let rule: &[(&str, &str)] = match shut {
                Shut::ByLag => &[],
                Shut::ByHold => &[("rule", "tonight")],
            };
            let is_shut = match shut {
                Shut::ByLag => seen.sum("sluice_gate_open", &[("signal", "lag")]) < 1.0,
                Shut::ByHold => true,
            };
            seen.sum("sluice_queue_depth", rule) >= 1.0 && is_shut
        };
        self.wait_while_it_runs(tool, "that the tool waits", waits).await;
        let before = self.written(app).await;
        tokio::time::sleep(SHUT_FOR).await;
        let there = self.written(app).await;
        assert!(there - before < 1.0, "{app} wrote while the gate was shut: {before} and {there}");
        assert!(!tool.has_ended(), "{app} gave up: {}", tool.said());
        match shut {
            Shut::ByLag => {
                self.replica().lag_stop().await.unwrap();
                wait_for_signal(&self.sluice, "lag", 1.0).await.unwrap();
            }
            Shut::ByHold => self.sluice.write_config(&self.config.render()).unwrap(),
        }
    }

    /// Statements of an app that were admitted; of gh-ost, whose heartbeats are never held, the
    /// rows of its table.
    async fn written(&self, app: &str) -> f64 {
        if app != "gh-ost" {
            return self.admitted(app, "write").await;
        }
        let rows = self.servers.primary.query_first::<u32>("SELECT COUNT(*) FROM _t_gho").await;
        rows.ok().flatten().map_or(0.0, f64::from)
    }

    async fn wait_while_it_runs(
        &self,
        tool: &mut impl Tool,
        what: &str,
        is_there: impl AsyncFn() -> bool,
    ) {
        let started = Instant::now();
        while !is_there().await {
            let ended = tool.has_ended() || started.elapsed() > TOOL_LIMIT;
            assert!(!ended, "waited for {what}; the tool says:\n{}", tool.said());
            tokio::time::sleep(POLL).await;
        }
    }

    pub(crate) fn replica(&mut self) -> &mut integration::replica::Replica {
        self.servers.replicas.first_mut().unwrap()
    }

    /// The replica has what the primary has, of these tables.
    pub(crate) async fn replica_agrees(&self, tables: &[&str]) {
        self.servers.wait_in_sync(SYNC_LIMIT).await.unwrap();
        let replica = self.servers.replicas.first().unwrap().server();
        for table in tables {
            let [here, there] =
                [checksum(&self.servers.primary, table).await, checksum(replica, table).await];
            assert_eq!(here, there, "{table} on the replica");
        }
    }

    /// `t` has the column that the schema changes add.
    pub(crate) async fn is_altered(&self) {
        let question = "SELECT COUNT(*) FROM information_schema.columns \
                        WHERE table_schema = 'test' AND table_name = 't' AND column_name = 'extra'";
        let columns: Option<u32> = self.servers.primary.query_first(question).await.unwrap();
        assert_eq!(columns, Some(1), "t was not altered");
    }

    /// Both tables have the same rows, of those that satisfy a condition.
    pub(crate) async fn same_rows(&self, table: &str, other: &str, condition: &str) {
        let rows = |of: &str| {
            format!(
                "SELECT COUNT(*), SUM(CRC32(CONCAT_WS(':', id, k, pad))) FROM {of} \
                 WHERE {condition}"
            )
        };
        let mut seen: Vec<(i64, Option<u64>)> = Vec::new();
        for of in [table, other] {
            seen.push(self.servers.primary.query_first(&rows(of)).await.unwrap().unwrap());
        }
        assert!(seen.first().unwrap().0 > 0, "no rows in {table} where {condition}");
        assert_eq!(seen.first(), seen.last(), "{table} and {other} where {condition}");
    }
}

async fn checksum(server: &Server, table: &str) -> String {
    let row: Option<(String, Option<u64>)> =
        server.query_first(&format!("CHECKSUM TABLE {table}")).await.unwrap();
    format!("{:?}", row.unwrap().1.unwrap())
}

/// A session that changes rows of `t`, and of `shadow` in the same transactions: whatever a tool
/// does to `t`, in the end both must have the same rows. About fifty transactions a second.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    slowest_ms: Arc<AtomicU64>,
    task: JoinHandle<u64>,
}

impl Traffic {
    pub(crate) async fn start(lab: &Lab) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let slowest_ms = Arc::new(AtomicU64::new(0));
        let mut conn = RawConn::open(lab.sluice.listen_addr(), &Login::new("web")).await.unwrap();
        conn.set_read_limit(TOOL_LIMIT);
        let task = tokio::spawn(write(conn, stop.clone(), slowest_ms.clone()));
        Self { stop, slowest_ms, task }
    }

    /// Lets the transaction that runs end; gives how many there were, and how long the longest was.
    pub(crate) async fn stop(self) -> (u64, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        let transactions = self.task.await.unwrap();
        (transactions, Duration::from_millis(self.slowest_ms.load(Ordering::Relaxed)))
    }
}

async fn write(mut conn: RawConn, stop: Arc<AtomicBool>, slowest_ms: Arc<AtomicU64>) -> u64 {
    let mut done = 0;
    // Rows that no archiver takes, and all over the others.
    let mut id = FIRST_BUSY;
    while !stop.load(Ordering::Relaxed) {
        id = FIRST_BUSY + (id * 7919 + 104_729) % (ROWS - FIRST_BUSY);
        let started = Instant::now();
        if transaction(&mut conn, done, id).await {
            done += 1;
        }
        let took = u64::try_from(started.elapsed().as_millis()).unwrap();
        slowest_ms.fetch_max(took, Ordering::Relaxed);
        tokio::time::sleep(BETWEEN).await;
    }
    conn.quit().await.unwrap();
    done
}

/// Whether it was committed: a deadlock with a tool's copy rolls it back, as without Sluice.
async fn transaction(conn: &mut RawConn, n: u64, id: u64) -> bool {
    let change = |table: &str| match n % 3 {
        0 => format!("UPDATE {table} SET k = k + 1 WHERE id = {id}"),
        1 => format!("INSERT INTO {table} (id, k, pad) VALUES ({}, 1, 'new')", ROWS + 1 + n),
        _ => format!("DELETE FROM {table} WHERE id = {id}"),
    };
    let statements = ["BEGIN".to_owned(), change("t"), change("shadow"), "COMMIT".to_owned()];
    for statement in &statements {
        let answer = conn.query(statement).await.unwrap();
        match answer.err() {
            None => {}
            Some((1213 | 1205, message)) if !message.contains("sluice") => {
                conn.query("ROLLBACK").await.unwrap();
                return false;
            }
            Some(error) => panic!("{statement}: {error:?}"),
        }
    }
    true
}

/// The rules for tools in `proxy-config.yaml`, one for dumps that the `mysql` client reads in, and
/// one that lets everybody else pass.
fn shipped_rules() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("proxy-config.yaml");
    let file = std::fs::read_to_string(file).unwrap();
    let mut rules = String::new();
    for name in ["schema-changes", "copies-and-archives"] {
        let start = file.find(&format!("  - name: {name}\n")).unwrap();
        let rule = file.get(start..).unwrap();
        for line in rule.lines().take_while(|line| !line.trim().is_empty()) {
            rules += line.get(2..).unwrap();
            rules.push('\n');
        }
    }
    rules
        + "- { name: restores, match: { app: mysql, user: myloader }, max_delay: 2h, \
           permanent: true }\n\
           - { name: everything-else, gate: none, permanent: true }"
}

const ROWS: u64 = 100_000;
/// Rows below are left alone by the traffic.
const FIRST_BUSY: u64 = 10_000;
const POLL: Duration = Duration::from_millis(10);
const BETWEEN: Duration = Duration::from_millis(15);
/// Longer than a statement waits under a rule that says nothing of it.
const SHUT_FOR: Duration = Duration::from_millis(5500);
pub(crate) const TOOL_LIMIT: Duration = Duration::from_secs(180);
const SYNC_LIMIT: Duration = Duration::from_secs(60);
const STATEMENTS: &str = "sluice_statements_total";

/// 100,000 rows, twice.
const TABLE: [&str; 7] = [
    "CREATE TABLE d (d INT NOT NULL PRIMARY KEY)",
    "INSERT INTO d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, pad VARCHAR(60) NOT NULL)",
    "INSERT INTO t SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, f.d, \
     REPEAT('x', 40) FROM d a, d b, d c, d e, d f",
    "CREATE TABLE shadow LIKE t",
    "INSERT INTO shadow SELECT * FROM t",
    // The tools choose their chunks by the server's estimate.
    "ANALYZE TABLE t",
];
