//! Which statements a rule can hold back, and which never wait whatever a rule names: seen with a gate that
//! is shut and a rule that refuses at once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::Duration;

use integration::raw::{Login, RawConn, Response};
use integration::scenario::{
    Pending, Refused, Shared, Switch, connect, connect_as, numbers, wait_for_depth, wait_for_sum,
};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn a_rule_holds_back_the_classes_it_names_and_writes_when_it_names_none() {
    for servers in both().await {
        let shut = Shut::start(servers, "a_classes", NAMED).await;
        for (app, refused) in [
            ("writes", &[WRITE, READ_AND_WRITE, LOCKING_READ, CALL, UNKNOWN][..]),
            ("reads", &[READ, READ_AND_WRITE, EXPLAINED_READ]),
            ("ddl", &[DDL]),
            ("locking-reads", &[LOCKING_READ]),
            ("calls", &[CALL]),
            ("loads", &[]),
        ] {
            let mut conn = connect_as(&shut.sluice, app).await.unwrap();
            for (class, sql) in ALL {
                let sql = sql.replace("TABLE_NAME", "a_classes");
                let answer = by_sluice(&conn.query(&sql).await.unwrap());
                assert_eq!(answer.is_some(), refused.contains(&class), "{app}: {sql}");
            }
        }
    }
}

#[tokio::test]
async fn what_the_contract_never_delays_passes_a_rule_that_names_everything() {
    for servers in both().await {
        let shut = Shut::start(servers, "a_never", EVERYTHING).await;
        let mut conn = connect(&shut.sluice, "etl").await.unwrap();
        for sql in NEVER {
            assert_eq!(by_sluice(&conn.query(sql).await.unwrap()), None, "{sql}");
        }
        assert!(by_sluice(&conn.query("SELECT 1").await.unwrap()).is_some());
        // A table of everybody's that has such a name, and a mere mention, are not exempt.
        for sql in [
            "SELECT 'performance_schema.threads'",
            "SELECT 1 /* information_schema.tables */",
            "DELETE FROM a_never",
            "INSERT INTO _a_never_ghc VALUES (2)",
        ] {
            assert!(by_sluice(&conn.query(sql).await.unwrap()).is_some(), "{sql}");
        }
    }
}

#[tokio::test]
async fn the_changelog_of_gh_ost_passes_when_gh_ost_writes_it() {
    for servers in both().await {
        let shut = Shut::start(servers, "a_ghost", EVERYTHING).await;
        let mut ghost = connect(&shut.sluice, "etl").await.unwrap();
        let heartbeat = "INSERT /* gh-ost */ INTO test._a_ghost_ghc VALUES (1)";
        for sql in [heartbeat, "REPLACE INTO `test`.`_a_ghost_ghc` VALUES (2)"] {
            assert_eq!(Refused::of(&ghost.query(sql).await.unwrap()), None, "{sql}");
        }
        let copy = "INSERT /* gh-ost */ INTO test.a_ghost SELECT 1";
        assert!(by_sluice(&ghost.query(copy).await.unwrap()).is_some());
        let there = numbers(&servers.primary, "SELECT n FROM _a_ghost_ghc ORDER BY n").await;
        assert_eq!(there.unwrap(), [1, 2]);
    }
}

#[tokio::test]
async fn the_first_rule_that_matches_decides_and_an_exempt_one_is_still_counted() {
    let servers = MYSQL.get().await.unwrap();
    let shut = Shut::start(servers, "a_first", FIRST).await;
    let subnet = Login::new("etl").attribute("sluice_app", "by-client");
    for (login, rule) in [
        (Login::new("etl").attribute("sluice_app", "urgent"), None),
        (Login::new("etl").attribute("sluice_app", "urgent:x").attribute("team", "a"), None),
        (Login::new("web").attribute("team", "a"), Some("attribute")),
        (Login::new("etl"), Some("user")),
        (subnet, Some("user")),
        (Login::new("ddl").attribute("sluice_app", "etl-7"), Some("prefix")),
        (Login { schema: "sluice".into(), ..Login::new("admin") }, Some("schema")),
        (Login::new("web"), Some("client")),
    ] {
        let addr = shut.sluice.listen_addr();
        let mut conn = RawConn::open(addr, &login).await.unwrap();
        let answer = conn.query("DELETE FROM test.a_first").await.unwrap();
        let refused = Refused::of(&answer);
        let by = refused.as_ref().and_then(|refused| refused.part("rule"));
        assert_eq!(by, rule, "{login:?}: {answer:?}");
    }
    let labels = [("rule", "exempt"), ("decision", "admitted"), ("class", "write")];
    wait_for_sum(&shut.sluice, "sluice_statements_total", &labels, 2.0).await.unwrap();
}

#[tokio::test]
async fn a_read_waits_when_a_rule_says_so() {
    for servers in both().await {
        let shut = Shut::start(servers, "a_read", WAITING_READS).await;
        let web = connect(&shut.sluice, "web").await.unwrap();
        let waiting = Pending::query(web, "SELECT 'read'");
        wait_for_depth(&shut.sluice, "r", 1).await.unwrap();
        shut.switch.open(&shut.sluice).await.unwrap();
        let answered = waiting.answered(Duration::from_secs(10)).await.unwrap();
        assert_eq!(answered.response.first_text().as_deref(), Some("read"));
    }
}

/// Sluice with a gate that is shut, and the tables that the statements name.
struct Shut<'a> {
    sluice: SluiceProcess,
    switch: Switch<'a>,
}

impl<'a> Shut<'a> {
    async fn start(servers: &'a Topology, table: &'static str, rules: &str) -> Self {
        let server = &servers.primary;
        for name in [table.to_owned(), format!("_{table}_ghc")] {
            server.run_sql(&[&format!("CREATE TABLE {name} (n INT)")]).await.unwrap();
        }
        server.run_sql(&[&format!("CREATE PROCEDURE {table}_p() SELECT 1")]).await.unwrap();
        let switch = Switch::new(server, table).await.unwrap();
        let rules = rules.replace("SWITCH", table);
        let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(&rules);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        switch.shut(&sluice).await.unwrap();
        Self { sluice, switch }
    }
}

/// The server's own errors are none of Sluice's doing.
fn by_sluice(response: &Response) -> Option<Refused> {
    Refused::of(response).filter(|refused| refused.part("rule").is_some())
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

const WRITE: &str = "write";
const LOCKING_READ: &str = "locking read";
const CALL: &str = "call";
const UNKNOWN: &str = "unknown";
const READ: &str = "read";
const EXPLAINED_READ: &str = "explain of a write";
const DDL: &str = "ddl";
/// Each rule that names one of them: nobody gets past a rule by saying more.
const READ_AND_WRITE: &str = "read and write";

const ALL: [(&str, &str); 20] = [
    (WRITE, "INSERT INTO TABLE_NAME VALUES (1)"),
    (WRITE, "  (  ( /* x */ DELETE FROM TABLE_NAME"),
    (WRITE, "/*!50000 INSERT */ INTO TABLE_NAME VALUES (1)"),
    (WRITE, "WITH d AS (SELECT 1) UPDATE TABLE_NAME SET n = 1"),
    (WRITE, "REPLACE INTO TABLE_NAME VALUES (1)"),
    (READ_AND_WRITE, "SELECT 1; DELETE FROM TABLE_NAME"),
    (LOCKING_READ, "SELECT * FROM TABLE_NAME FOR UPDATE"),
    (LOCKING_READ, "SELECT * FROM (SELECT n FROM TABLE_NAME LOCK IN SHARE MODE) d"),
    (CALL, "CALL TABLE_NAME_p()"),
    (UNKNOWN, "FROBNICATE ALL THE TABLES"),
    (UNKNOWN, "EXECUTE nobody"),
    (READ, "SELECT * FROM TABLE_NAME"),
    (READ, "SELECT 'x FOR UPDATE'"),
    (READ, "(SELECT 1) UNION (SELECT 2)"),
    (READ, "DO 1"),
    (READ, "WITH d AS (SELECT 1) SELECT * FROM d"),
    (EXPLAINED_READ, "EXPLAIN DELETE FROM TABLE_NAME"),
    (READ, "DESCRIBE TABLE_NAME"),
    (DDL, "CREATE TABLE TABLE_NAME_made (n INT)"),
    (DDL, "DROP TABLE IF EXISTS TABLE_NAME_made"),
];

const NAMED: &str = "\
- { name: w, match: { app: writes }, gate: [SWITCH], on_refused_check: reject, permanent: true }
- { name: r, match: { app: reads }, gate: [SWITCH], on_refused_check: reject, statements: [read], permanent: true }
- { name: d, match: { app: ddl }, gate: [SWITCH], on_refused_check: reject, statements: [ddl], permanent: true }
- { name: l, match: { app: locking-reads }, gate: [SWITCH], on_refused_check: reject, statements: [locking_read], permanent: true }
- { name: c, match: { app: calls }, gate: [SWITCH], on_refused_check: reject, statements: call, permanent: true }
- { name: o, match: { app: loads }, gate: [SWITCH], on_refused_check: reject, statements: [load], permanent: true }";

const EVERYTHING: &str = "\
- { name: everything, match: { user: etl }, gate: [SWITCH], on_refused_check: reject, statements: [read, write, ddl], permanent: true }";

const WAITING_READS: &str = "\
- { name: r, gate: [SWITCH], statements: [read], max_delay: 60s, permanent: true }";

const FIRST: &str = "\
- { name: exempt, match: { app: urgent }, exempt: true, essential: true, permanent: true }
- { name: attribute, match: { attribute: { team: [a, b] } }, deny: true, permanent: true }
- { name: user, match: { user: etl }, deny: true, permanent: true }
- { name: prefix, match: { app: \"etl-*\" }, deny: true, permanent: true }
- { name: schema, match: { schema: sluice }, deny: true, permanent: true }
- { name: far, match: { client: 10.0.0.0/8 }, deny: true, permanent: true }
- { name: client, match: { client: [\"::1\", 127.0.0.0/8] }, deny: true, permanent: true }";

/// None of them may wait, whatever a rule names.
const NEVER: [&str; 24] = [
    "BEGIN",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "COMMIT",
    "ROLLBACK",
    "XA RECOVER",
    "SET @x = 1",
    "SHOW TABLES",
    "SHOW PROCESSLIST",
    "USE test",
    "LOCK TABLES a_never WRITE",
    "INSERT INTO a_never VALUES (1)",
    "UNLOCK TABLES",
    "SELECT GET_LOCK('a_never', 0)",
    "DELETE FROM a_never",
    "SELECT RELEASE_LOCK('a_never')",
    "DO RELEASE_ALL_LOCKS()",
    "RENAME TABLE a_never TO a_never_2, a_never_2 TO a_never",
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test'",
    "SELECT COUNT(*) FROM performance_schema.global_status",
    "PREPARE s FROM 'DELETE FROM a_never'",
    "DEALLOCATE PREPARE s",
    "FLUSH STATUS",
    "ANALYZE TABLE a_never",
];
