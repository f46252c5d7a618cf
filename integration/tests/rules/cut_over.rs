//! Swaps of schema change tools while a gate shuts, a hold is set, or a denial: whoever has locked
//! the user's table is never kept waiting by what should protect its users.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::raw::{RawConn, Response};
use integration::scenario::{
    Pending, Refused, Shared, Switch, connect, numbers, wait_for_depth, wait_until,
};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);

/// Longer than anything here takes, and shorter than `max_delay`.
const SOON: Duration = Duration::from_secs(10);

/// What gh-ost sets ahead of each of its transactions.
const SETTINGS: &str = "SET SESSION time_zone = '+00:00', \
    sql_mode = CONCAT(@@session.sql_mode, ',,NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES')";

/// The tables of a migration of `test.NAME`.
struct Migration {
    name: &'static str,
}

impl Migration {
    async fn made(servers: &Topology, name: &'static str) -> Self {
        let row = "(id INT PRIMARY KEY, word VARCHAR(40))";
        for table in [name, &format!("_{name}_gho"), &format!("_{name}_ghk")] {
            let statement = format!("CREATE TABLE test.{table} {row}");
            servers.primary.run_sql(&[&statement]).await.unwrap();
        }
        Self { name }
    }

    fn create_sentry(&self) -> String {
        format!("create /* gh-ost */ table `test`.`_{}_del` (id int primary key)", self.name)
    }

    fn lock(&self) -> String {
        let name = self.name;
        format!("lock /* gh-ost */ tables `test`.`{name}` write, `test`.`_{name}_del` write")
    }

    /// What the application did until the lock, as gh-ost applies it.
    fn events(&self, from: u32) -> String {
        let name = self.name;
        let replace = |id: u32, word: &str| {
            format!(
                "replace /* gh-ost `test`.`_{name}_gho` */ into `test`.`_{name}_gho` (`id`, `word`) \
                 values ({id}, '{word}')"
            )
        };
        let delete = format!(
            "delete /* gh-ost `test`.`_{name}_gho` */ from `test`.`_{name}_gho` where ((`id` = 0))"
        );
        [replace(from, "it\\'s \\\"so\\\""), replace(from + 1, "b"), delete].join("; ")
    }

    fn rename(&self) -> String {
        let name = self.name;
        format!(
            "rename /* gh-ost */ table `test`.`{name}` to `test`.`_{name}_del`, \
             `test`.`_{name}_gho` to `test`.`{name}`"
        )
    }

    fn drop_sentry(&self) -> String {
        format!("drop /* gh-ost */ table if exists `test`.`_{}_del`", self.name)
    }
}

/// A session of gh-ost's, with everything behind its login that it sends.
async fn ghost(sluice: &SluiceProcess, user: &str) -> RawConn {
    let mut conn = connect(sluice, user).await.unwrap();
    ok(&mut conn, "SELECT /* gh-ost */ 1").await;
    conn
}

async fn ghosts(sluice: &SluiceProcess) -> [RawConn; 3] {
    [ghost(sluice, "ddl").await, ghost(sluice, "ddl").await, ghost(sluice, "ddl").await]
}

async fn ok(conn: &mut RawConn, sql: &str) -> Response {
    let response = conn.query(sql).await.unwrap();
    assert_eq!(Refused::of(&response), None, "{sql}");
    response
}

async fn answered(pending: Pending) -> RawConn {
    let answered = pending.answered(SOON).await.unwrap();
    assert_eq!(Refused::of(&answered.response), None);
    answered.conn
}

/// What happens once the table is locked.
#[derive(Clone, Copy, Default)]
struct Meanwhile<'a> {
    /// The gate shuts.
    shuts: Option<(&'a Switch<'a>, &'a SluiceProcess)>,
    /// A user of this name writes to the table.
    user: Option<(&'a SluiceProcess, &'a str)>,
}

/// Everything from the lock to the end of the swap, and how long the table was locked, from when the
/// gate had shut.
async fn swap(
    migration: &Migration,
    conns: [RawConn; 3],
    Meanwhile { shuts, user }: Meanwhile<'_>,
) -> Duration {
    let [mut a, mut b, c] = conns;
    ok(&mut a, &migration.create_sentry()).await;
    ok(&mut a, &migration.lock()).await;
    if let Some((switch, sluice)) = shuts {
        switch.shut(sluice).await.unwrap();
    }
    let locked = Instant::now();
    ok(&mut b, SETTINGS).await;
    ok(&mut b, "BEGIN").await;
    let mut events = b.query(migration.events(5)).await.unwrap();
    assert_eq!(Refused::of(&events), None);
    events = b.query("COMMIT").await.unwrap();
    assert_eq!(Refused::of(&events), None);
    let writer = match user {
        Some((sluice, user)) => {
            let conn = connect(sluice, user).await.unwrap();
            let insert = format!("INSERT INTO test.{} VALUES (100, 'app')", migration.name);
            Some(Pending::query(conn, insert))
        }
        None => None,
    };
    let rename = Pending::query(c, migration.rename());
    // As gh-ost does: who comes before it would write to the old table.
    let stands = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'rename %`{}`%' \
         AND STATE = 'Waiting for table metadata lock'",
        migration.name
    );
    let admin = &MYSQL.get().await.unwrap().primary;
    let stands = || async { Ok(numbers(admin, &stands).await? == [1]) };
    wait_until("the rename stands in line", SOON, stands).await.unwrap();
    ok(&mut a, &migration.drop_sentry()).await;
    ok(&mut a, "unlock /* gh-ost */ tables").await;
    let took = locked.elapsed();
    answered(rename).await;
    if let Some(writer) = writer {
        answered(writer).await;
    }
    took
}

/// Rules that hold gh-ost at a switch, and nobody else.
fn gated(servers: &Topology, switch: &Switch<'_>, name: &str) -> Config {
    let rules = format!(
        "- {{ name: ghost, match: {{ app: gh-ost }}, gate: [{name}], max_delay: 60s, permanent: true }}\n\
         - {{ name: rest, gate: none, permanent: true }}"
    );
    Config::new(servers).unwrap().signals(&switch.signal()).rules(&rules)
}

fn is_shut(metrics: &integration::sluice::Metrics, signal: &str) -> bool {
    metrics.value("sluice_gate_open", &[("signal", signal)]).is_some_and(|open| open < 0.5)
}

#[tokio::test]
async fn a_gate_that_shuts_during_a_cut_over_does_not_prolong_its_lock() {
    let servers = MYSQL.get().await.unwrap();
    let switch = Switch::new(&servers.primary, "cut_shut").await.unwrap();
    let config = gated(servers, &switch, "cut_shut");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let direct = Migration::made(servers, "c_direct").await;
    let through = Migration::made(servers, "c_through").await;
    let login = || async {
        let login = integration::raw::Login::new("ddl");
        RawConn::open(servers.primary.addr(), &login).await.unwrap()
    };
    let conns = [login().await, login().await, login().await];
    let directly = swap(&direct, conns, Meanwhile::default()).await;
    let margin = Duration::from_secs(2);
    // It shuts inside the lock.
    let inside = Migration::made(servers, "c_inside").await;
    let meanwhile = Meanwhile { shuts: Some((&switch, &sluice)), user: Some((&sluice, "web")) };
    let took = swap(&inside, ghosts(&sluice).await, meanwhile).await;
    assert!(is_shut(&sluice.metrics().await.unwrap(), "cut_shut"));
    assert!(took < directly + margin, "locked for {took:?}, and {directly:?} without Sluice");
    switch.open(&sluice).await.unwrap();
    // It has shut before, and what follows is held already.
    let conns = ghosts(&sluice).await;
    // A chunk and events of the migration wait already when the lock is taken.
    let (chunk, early) = (ghost(&sluice, "ddl").await, ghost(&sluice, "ddl").await);
    switch.shut(&sluice).await.unwrap();
    let early = Pending::query(early, through.events(50));
    let copy =
        "insert /* gh-ost */ ignore into `test`.`_c_through_ghk` select * from test.c_through";
    let chunk = Pending::query(chunk, copy);
    wait_for_depth(&sluice, "ghost", 2).await.unwrap();
    let meanwhile = Meanwhile { user: Some((&sluice, "web")), ..Meanwhile::default() };
    let took = swap(&through, conns, meanwhile).await;
    answered(early).await;
    // All of it with the gate shut.
    let metrics = sluice.metrics().await.unwrap();
    assert!(is_shut(&metrics, "cut_shut"));
    assert!(!chunk.is_answered(), "it reads the user's table, so it is no part of the cut-over");
    assert!(took < directly + margin, "locked for {took:?}, and {directly:?} without Sluice");
    let rows = "SELECT id FROM test.c_through ORDER BY id";
    assert_eq!(numbers(&servers.primary, rows).await.unwrap(), [5, 6, 50, 51, 100]);
    // It is over: what comes now waits.
    let late = ghost(&sluice, "ddl").await;
    let late = Pending::query(late, "delete /* gh-ost */ from `test`.`_c_through_ghk`");
    wait_for_depth(&sluice, "ghost", 2).await.unwrap();
    switch.open(&sluice).await.unwrap();
    answered(late).await;
    answered(chunk).await;
    let log = sluice.log().unwrap();
    let given_back = "lock of a cut-over of gh-ost was given back";
    let lines: Vec<_> = log.lines().filter(|line| line.contains(given_back)).collect();
    let [inside, before] = lines[..] else { panic!("{lines:?}") };
    assert!(inside.contains("passed=1"), "{inside}");
    assert!(before.contains("passed=2"), "{before}");
}

#[tokio::test]
async fn only_the_same_users_gh_ost_passes_and_only_while_the_lock_is_held() {
    let servers = MYSQL.get().await.unwrap();
    let switch = Switch::new(&servers.primary, "cut_liar").await.unwrap();
    let config = gated(servers, &switch, "cut_liar");
    let rules = config.rules.replace("60s", "50ms");
    let config = config.rules(&rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let migration = Migration::made(servers, "c_liar").await;
    Migration::made(servers, "c_other").await;
    let mut holder = ghost(&sluice, "etl").await;
    switch.shut(&sluice).await.unwrap();
    ok(&mut holder, &migration.create_sentry()).await;
    ok(&mut holder, &migration.lock()).await;
    let own = "delete /* gh-ost */ from test._c_liar_gho where id = 1";
    let mut same = ghost(&sluice, "etl").await;
    ok(&mut same, own).await;
    let prepared = same.prepare(own).await.unwrap();
    let executed = same.execute(&prepared, &[]).await.unwrap();
    assert_eq!(Refused::of(&executed), None, "prepared");
    let outside = same.prepare("delete /* gh-ost */ from test.c_other").await.unwrap();
    let executed = same.execute(&outside, &[]).await.unwrap();
    let refused = Refused::of(&executed).unwrap();
    assert_eq!(refused.reason(), Some("gate_closed"), "prepared, of another table");
    let mut other = ghost(&sluice, "ddl").await;
    assert_eq!(reason(&mut other, own).await.as_deref(), Some("gate_closed"), "another user");
    for text in [
        "delete /* gh-ost */ from test._c_other_gho where id = 1",
        "delete /* gh-ost */ from test._c_liar_gho where id in (select id from test.c_other)",
    ] {
        assert_eq!(reason(&mut same, text).await.as_deref(), Some("gate_closed"), "{text}");
    }
    // What passed opens nothing for the rest of its transaction.
    ok(&mut same, "BEGIN").await;
    ok(&mut same, own).await;
    let outside = "delete /* gh-ost */ from test.c_other";
    assert_eq!(reason(&mut same, outside).await.as_deref(), Some("gate_closed"));
    ok(&mut same, "ROLLBACK").await;
    // However the lock is lost, nothing passes behind it.
    for lose in ["UNLOCK TABLES", "BEGIN", "LOCK TABLES test.c_other READ"] {
        ok(&mut holder, &migration.lock()).await;
        ok(&mut same, own).await;
        ok(&mut holder, lose).await;
        assert_eq!(reason(&mut same, own).await.as_deref(), Some("gate_closed"), "{lose}");
    }
    let executed = same.execute(&prepared, &[]).await.unwrap();
    assert_eq!(Refused::of(&executed).unwrap().reason(), Some("gate_closed"), "nor prepared");
    // Names that `--force-table-names` has made of another than the table's.
    let force = "lock /* gh-ost */ tables test.c_other write, test._c_liar_del write";
    ok(&mut holder, force).await;
    ok(&mut same, own).await;
    let unforced = "delete /* gh-ost */ from test._c_other_gho where id = 1";
    assert_eq!(reason(&mut same, unforced).await.as_deref(), Some("gate_closed"));
    ok(&mut holder, &migration.lock()).await;
    ok(&mut same, own).await;
    drop(holder);
    let closed = || async {
        let metrics = sluice.metrics().await?;
        let open = metrics.sum("sluice_client_connections", &[]);
        Ok((open - 2.0).abs() < 0.5)
    };
    wait_until("the holder has gone", SOON, closed).await.unwrap();
    assert_eq!(reason(&mut same, own).await.as_deref(), Some("gate_closed"));
}

#[tokio::test]
async fn a_hold_that_comes_too_late_is_told_of_and_a_denial_reaches_a_cut_over() {
    let servers = MYSQL.get().await.unwrap();
    let migration = Migration::made(servers, "c_held").await;
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut holder = ghost(&sluice, "ddl").await;
    let mut applier = ghost(&sluice, "ddl").await;
    ok(&mut holder, &migration.create_sentry()).await;
    ok(&mut holder, &migration.lock()).await;
    let own = "delete /* gh-ost */ from test._c_held_gho where id = 1";
    let edit = |rule: &'static str| {
        let rules =
            format!("- {{ name: late, match: {{ app: gh-ost }}, {rule}, permanent: true }}");
        sluice.write_config(&config.clone().rules(&rules).render()).unwrap();
        let (sluice, rule) = (&sluice, rule.split(':').next().unwrap());
        let effect = if rule == "hold" { "does not stop the swap" } else { "the swap is denied" };
        let told = move || async move {
            let log = sluice.log()?;
            let line = |line: &&str| {
                line.contains("while a cut-over of gh-ost is pending") && line.contains(effect)
            };
            Ok(log.lines().filter(line).count() == 1)
        };
        wait_until("it is told of", SOON, told)
    };
    edit("hold: true").await.unwrap();
    ok(&mut applier, own).await;
    let status = sluice.http_get("/api/v1/status").await.unwrap();
    let id = holder.connection_id();
    assert!(status.body.contains(&format!("\"connection_id\":{id}")), "{}", status.body);
    edit("deny: true").await.unwrap();
    assert_eq!(reason(&mut applier, own).await.as_deref(), Some("deny"));
}

#[tokio::test]
async fn swaps_that_need_one_session_only_pass_whatever_holds_them() {
    let servers = MYSQL.get().await.unwrap();
    let rules =
        "- { name: stop, hold: true, max_delay: 50ms, statements: [write, ddl], permanent: true }";
    let config = Config::new(servers).unwrap().rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let admin = &servers.primary;
    for table in ["c_pt", "_c_pt_new", "c_lhm", "lhmn_c_lhm", "c_locked", "lhmn_c_locked"] {
        admin.run_sql(&[&format!("CREATE TABLE test.{table} (id INT)")]).await.unwrap();
    }
    let mut conn = connect(&sluice, "ddl").await.unwrap();
    let held = "INSERT INTO test.c_pt VALUES (1) /* pt-online-schema-change 7 */";
    assert_eq!(reason(&mut conn, held).await.as_deref(), Some("hold"));
    for statement in [
        // pt-online-schema-change.
        "ANALYZE TABLE `test`.`_c_pt_new` /* pt-online-schema-change */",
        "RENAME TABLE `test`.`c_pt` TO `test`.`_c_pt_old`, `test`.`_c_pt_new` TO `test`.`c_pt`",
        // LHM's atomic switch, and its locked one.
        "SET SESSION lock_wait_timeout = 3",
        "RENAME TABLE `test`.`c_lhm` TO `test`.`lhma_c_lhm`, `test`.`lhmn_c_lhm` TO `test`.`c_lhm` \
         /*maintenance:lhm*/",
        "LOCK TABLE `test`.`c_locked` write, `test`.`lhmn_c_locked` write /* large hadron migration */",
        "ALTER TABLE `test`.`c_locked` RENAME `test`.`lhma_c_locked` /* large hadron migration */",
        "ALTER TABLE `test`.`lhmn_c_locked` RENAME `test`.`c_locked` /* large hadron migration */",
        "COMMIT",
        "UNLOCK TABLES",
    ] {
        ok(&mut conn, statement).await;
    }
    let swapped = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test' AND \
        TABLE_NAME IN ('_c_pt_old', 'c_pt', 'lhma_c_lhm', 'c_lhm', 'lhma_c_locked', 'c_locked')";
    assert_eq!(numbers(admin, swapped).await.unwrap(), [6]);
}

/// Why a statement was refused.
async fn reason(conn: &mut RawConn, sql: &str) -> Option<String> {
    let refused = Refused::of(&conn.query(sql).await.unwrap())?;
    refused.reason().map(str::to_owned)
}
