//! Guard rails in front of real servers: what a text may not do never reaches the server, the client
//! is told where and how, and its session lives.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

mod corpus;
mod given_up;
mod hidden;

use std::time::{Duration, Instant};

use integration::raw::response::SERVER_STATUS_IN_TRANS;
use integration::raw::{COM_RESET_CONNECTION, Execute, Login, RawConn, Shape, capability, framed};
use integration::scenario::{Refused, Shared, connect, connect_as, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use mysql_async::prelude::Queryable as _;
use serde_json::Value;

pub(crate) static MYSQL: Shared = Shared::new(Flavour::MySql);
pub(crate) static MARIADB: Shared = Shared::new(Flavour::MariaDb);

const GUARDS: &str = "\
guards:
  - { name: where, where_required: deny }
  - { name: joins, no_cross_join: deny, match: { app: [shop, root] } }
  - { name: lists, max_in_list: 3 }
  - { name: long, max_statement_bytes: 4000 }
  - { name: tags, require_tag: [controller], match: { app: tagged } }
  - { name: night, no_ddl_hours: { hours: \"00:00-24:00\" }, match: { user: app } }
  - { name: later, where_required: warn, limit_counts: true, match: { app: warned } }";

#[tokio::test]
async fn what_a_guard_denies_is_told_with_its_place_and_never_runs() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, "g_told", GUARDS).await;
        let mut conn = connect_as(&sluice, "shop").await.unwrap();
        let long = format!("INSERT INTO g_told VALUES (1) /* {} */", "x".repeat(4_000));
        let cases = [
            ("DELETE FROM g_told", "where", "where_required", "0"),
            ("SELECT 1; UPDATE g_told SET n = 2", "where", "where_required", "10"),
            ("/* c */ DELETE FROM g_told WHERE 1 = 1", "where", "where_required", "8"),
            ("SELECT 1 FROM g_told a JOIN g_told b", "joins", "no_cross_join", "23"),
            ("DELETE FROM g_told WHERE n IN (1, 2, 3, 4)", "lists", "max_in_list", "27"),
            (&long, "long", "max_statement_bytes", "4000"),
            ("PREPARE s FROM 'DELETE FROM g_told'", "where", "where_required", "15"),
        ];
        for (sql, guard, check, offset) in cases {
            let refused = refusal(&mut conn, sql).await;
            assert_eq!((refused.errno, refused.sqlstate.as_str()), (1226, "42000"), "{refused:?}");
            assert_eq!(refused.reason(), Some("guard"), "{refused:?}");
            for (key, value) in [("guard", guard), ("check", check), ("offset", offset)] {
                assert_eq!(refused.part(key), Some(value), "{sql}: {refused:?}");
            }
            assert!(refused.message.ends_with(" executed=no]") && refused.message.len() <= 512);
            assert!(sluice.log().unwrap().contains(refused.part("id").unwrap()));
        }
        passes(&mut conn, "SELECT 1 FROM g_told a JOIN g_told b ON a.n = b.n").await;
        passes(&mut conn, "DELETE FROM g_told WHERE n IN (7, 8, 9)").await;
        assert_eq!(count(servers, "g_told").await, 2);
        let hits = [("guard", "where"), ("check", "where_required"), ("mode", "deny")];
        wait_for_sum(&sluice, "sluice_guard_hits_total", &hits, 4.0).await.unwrap();
        // As in the error and in the log: no rule was asked.
        let counted =
            [("rule", "none"), ("reason", "guard"), ("decision", "rejected"), ("mode", "enforce")];
        wait_for_sum(&sluice, "sluice_statements_total", &counted, 7.0).await.unwrap();
        is_in_the_status(&sluice).await;
    }
}

/// Who is called at night sees who is refused, by which check, since when, and how to ask on.
async fn is_in_the_status(sluice: &SluiceProcess) {
    let status = sluice.http_get("/api/v1/status").await.unwrap().body;
    let status: Value = serde_json::from_str(&status).unwrap();
    let at = |path: &str| status.pointer(&format!("/clusters/0/{path}"));
    let is = |path: &str, value: Value| assert_eq!(at(path), Some(&value), "{path}: {status}");
    is("refused_total", 4.into());
    assert!(at("refused/3").is_some() && at("refused/4").is_none(), "{status}");
    is("refused/0/app", "shop".into());
    is("refused/0/user", "app".into());
    is("refused/0/rule", "none".into());
    is("refused/0/reason", "guard".into());
    is("refused/0/guard", "where".into());
    is("refused/0/check", "where_required".into());
    is("refused/0/count", 4.into());
    let [last, since] = ["last_s", "for_s"].map(|it| at(&format!("refused/0/{it}")).unwrap());
    assert!(last.as_f64().unwrap() <= since.as_f64().unwrap(), "{status}");
    let id = at("refused/0/last_id").unwrap().as_str().unwrap();
    let why = sluice.http_get(&format!("/api/v1/why/{id}")).await.unwrap().body;
    assert!(why.contains("where_required"), "{why}");
    for (place, check, limit, hits) in [
        (0, "where_required", "", 4),
        (1, "no_cross_join", "", 1),
        (2, "max_in_list", "3", 1),
        (3, "max_statement_bytes", "4000", 1),
        (4, "require_tag", "controller", 0),
    ] {
        is(&format!("guards/{place}/check"), check.into());
        is(&format!("guards/{place}/limit"), limit.into());
        is(&format!("guards/{place}/hits"), hits.into());
    }
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains("guard where: where_required"), "{page}");
    assert!(page.contains(&format!("sluice why {id}")), "{page}");
}

#[tokio::test]
async fn a_guard_refuses_inside_a_transaction_which_lives_on() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = started(servers, "g_open", GUARDS).await;
    let mut conn = connect_as(&sluice, "shop").await.unwrap();
    passes(&mut conn, "BEGIN").await;
    passes(&mut conn, "INSERT INTO g_open VALUES (3)").await;
    refusal(&mut conn, "DELETE FROM g_open").await;
    let seen = conn.query("SELECT COUNT(*) FROM g_open").await.unwrap();
    assert_eq!(seen.status().unwrap() & SERVER_STATUS_IN_TRANS, SERVER_STATUS_IN_TRANS);
    passes(&mut conn, "COMMIT").await;
    assert_eq!(count(servers, "g_open").await, 3);
}

#[tokio::test]
async fn a_text_is_judged_when_it_is_prepared_and_the_statement_before_it_stays_what_it_is() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, "g_prepared", GUARDS).await;
        let mut conn = connect_as(&sluice, "shop").await.unwrap();
        let good = conn.prepare("INSERT INTO g_prepared VALUES (9)").await.unwrap();
        let refused = conn.prepare("DELETE FROM g_prepared").await.unwrap_err().to_string();
        assert!(refused.contains("guard=where"), "{refused}");
        passes_response(&conn.execute(&good, &[]).await.unwrap());
        assert_eq!(count(servers, "g_prepared").await, 3);
    }
    // MariaDB's clients send the execution of "the last one" along with the text.
    let servers = MARIADB.get().await.unwrap();
    let sluice = started(servers, "g_last", GUARDS).await;
    let mut conn = connect_as(&sluice, "shop").await.unwrap();
    conn.prepare("INSERT INTO g_last VALUES (9)").await.unwrap();
    let mut both = framed(0, b"\x16DELETE FROM g_last");
    both.extend(framed(0, b"\x17\xFF\xFF\xFF\xFF\0\x01\0\0\0"));
    conn.send_bytes(&both).await.unwrap();
    let (first, _) = conn.read_packet().await.unwrap().err().unwrap();
    let (second, _) = conn.read_packet().await.unwrap().err().unwrap();
    assert_eq!((first, second), (1226, 1243));
    assert_eq!(count(servers, "g_last").await, 2, "the one before is not run in its place");
}

#[tokio::test]
async fn a_warning_only_counts_and_a_match_says_for_whom() {
    let servers = MYSQL.get().await.unwrap();
    let warning = GUARDS
        .replace("{ name: where, where_required: deny }", "{ name: where, where_required: off }");
    let sluice = started(servers, "g_warned", &warning).await;
    let mut conn = connect_as(&sluice, "warned").await.unwrap();
    passes(&mut conn, "DELETE FROM g_warned LIMIT 1").await;
    passes(&mut conn, "SELECT 1 FROM g_warned a, g_warned b").await;
    passes(&mut conn, "UPDATE g_warned SET n = 5").await;
    let hits = [("guard", "later"), ("mode", "warn")];
    wait_for_sum(&sluice, "sluice_guard_hits_total", &hits, 1.0).await.unwrap();

    let mut tagged = connect_as(&sluice, "tagged").await.unwrap();
    assert_eq!(
        refusal(&mut tagged, "SELECT n FROM g_warned").await.part("check"),
        Some("require_tag")
    );
    passes(&mut tagged, "SELECT n FROM g_warned /*controller='orders'*/").await;
    passes(&mut tagged, "SELECT @@version").await;
    // What many pools send to see whether a connection still works.
    passes(&mut tagged, "SELECT 1 FROM DUAL").await;
    let prepared = tagged.prepare("SELECT n FROM g_warned").await.unwrap();
    let refused = Refused::of(&tagged.execute(&prepared, &[]).await.unwrap()).unwrap();
    assert_eq!(refused.part("check"), Some("require_tag"));
    let prepared = tagged.prepare("SELECT n FROM g_warned /*controller='orders'*/").await.unwrap();
    passes_response(&tagged.execute(&prepared, &[]).await.unwrap());

    tags_in_attributes(&sluice).await;

    let mut app = connect(&sluice, "app").await.unwrap();
    let refused = refusal(&mut app, "CREATE TABLE g_more (n INT)").await;
    assert_eq!(refused.part("check"), Some("no_ddl_hours"));
    passes(&mut app, "INSERT INTO g_warned VALUES (6)").await;
}

/// A tag may come as a query attribute, of a text and of an execution; one that is no string is there
/// as well, only its value is not read.
async fn tags_in_attributes(sluice: &SluiceProcess) {
    let login = Login::new("app").with(capability::QUERY_ATTRIBUTES);
    let login = login.attribute("sluice_app", "tagged");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let text = "SELECT n FROM g_warned";
    let tag = [("controller", "orders")];
    let other = [("action", "index")];
    passes_response(&conn.query_with_attributes(text, &tag).await.unwrap());
    let refused = Refused::of(&conn.query_with_attributes(text, &other).await.unwrap()).unwrap();
    assert_eq!(refused.part("check"), Some("require_tag"));
    let prepared = conn.prepare(text).await.unwrap();
    let execute = Execute { id: prepared.id, attributes: &tag, ..Execute::default() };
    passes_response(&conn.execute_as(&execute).await.unwrap());
    let without = Execute { attributes: &other, ..execute };
    let refused = Refused::of(&conn.execute_as(&without).await.unwrap()).unwrap();
    assert_eq!(refused.part("check"), Some("require_tag"));
    // COM_QUERY with one attribute, of MYSQL_TYPE_LONGLONG and of MYSQL_TYPE_DOUBLE.
    let head = |kind: u8| [b"\x03\x01\x01\0\x01", &[kind][..], b"\0\x0acontroller"].concat();
    let whole = [&head(8)[..], &42_i64.to_le_bytes(), text.as_bytes()].concat();
    passes_response(&conn.command(&whole, Shape::Query).await.unwrap());
    let number = [&head(5)[..], &4.2_f64.to_le_bytes(), text.as_bytes()].concat();
    passes_response(&conn.command(&number, Shape::Query).await.unwrap());
    let unjudged = [("guard", "tags"), ("check", "require_tag")];
    wait_for_sum(sluice, "sluice_guard_unjudged_total", &unjudged, 1.0).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_judged_passes_and_is_counted() {
    let servers = MARIADB.get().await.unwrap();
    let sluice = started(servers, "g_unjudged", GUARDS).await;
    let mut conn = connect_as(&sluice, "shop").await.unwrap();
    passes(&mut conn, "BEGIN NOT ATOMIC UPDATE g_unjudged SET n = 4; END").await;
    passes(&mut conn, "SET @s = 'UPDATE g_unjudged SET n = 5'").await;
    passes(&mut conn, "EXECUTE IMMEDIATE @s").await;
    refusal(&mut conn, "EXECUTE IMMEDIATE 'UPDATE g_unjudged SET n = 6'").await;
    let labels = [("guard", "where"), ("check", "where_required")];
    wait_for_sum(&sluice, "sluice_guard_unjudged_total", &labels, 2.0).await.unwrap();
}

#[tokio::test]
async fn a_tag_may_stand_behind_what_was_read_of_a_long_text_and_no_ddl_is_about_what_stays() {
    let guards = "\
guards:
  - { name: tags, require_tag: [controller], match: { app: tagged } }
  - { name: night, no_ddl_hours: { hours: \"00:00-24:00\" }, match: { app: app } }";
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, "g_long", guards).await;
        let mut tagged = connect_as(&sluice, "tagged").await.unwrap();
        let value = "x".repeat(2_000_000);
        let long = format!("INSERT INTO g_long SELECT LENGTH('{value}')");
        passes(&mut tagged, &format!("{long} /*controller='orders'*/")).await;
        let labels = [("guard", "tags"), ("check", "require_tag")];
        wait_for_sum(&sluice, "sluice_guard_unjudged_total", &labels, 1.0).await.unwrap();
        assert_eq!(count(servers, "g_long").await, 3);

        let mut app = connect(&sluice, "app").await.unwrap();
        passes(&mut app, "CREATE TEMPORARY TABLE g_own (n INT)").await;
        passes(&mut app, "DROP TEMPORARY TABLE g_own").await;
        refusal(&mut app, "CREATE VIEW g_view AS SELECT 1").await;
        passes(&mut app, "SET @s = 'DROP TABLE IF EXISTS g_none'").await;
        passes(&mut app, "PREPARE s FROM @s").await;
        let labels = [("guard", "night"), ("check", "no_ddl_hours")];
        wait_for_sum(&sluice, "sluice_guard_unjudged_total", &labels, 1.0).await.unwrap();
    }
}

/// By the server's own word, asked over the probe's account; what cannot be asked passes.
#[tokio::test]
async fn what_the_server_expects_to_read_is_limited_and_nothing_of_it_is_run_for_that() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        servers.primary.run_sql(EXPECTED).await.unwrap();
        let sluice = started(servers, "g_expected", EXPECTING).await;
        let mut conn = connect_as(&sluice, "expected").await.unwrap();
        // Nothing may be looked at by the probe's account yet: it passes, and that is told.
        passes(&mut conn, "SELECT COUNT(*) FROM g_many").await;
        let result = |result: &'static str| [("result", result)];
        let explains = "sluice_guard_explains_total";
        wait_for_sum(&sluice, explains, &result("denied"), 1.0).await.unwrap();
        assert!(sluice.log().unwrap().contains("to be run there: GRANT"));
        let grant = "GRANT SELECT, UPDATE, DELETE, INSERT ON test.* TO 'sluice'@'%'";
        let other = "GRANT SELECT ON g_other.* TO 'sluice'@'%', 'app'@'%'";
        servers.primary.run_sql(&[grant, other]).await.unwrap();

        let refused = refusal(&mut conn, "SELECT n FROM g_many WHERE v > 1").await;
        assert_eq!((refused.errno, refused.reason()), (1226, Some("guard")));
        assert_eq!(refused.part("check"), Some("max_rows_expected"));
        assert!(refused.message.contains("rows for it and 100 are allowed"), "{refused:?}");
        passes(&mut conn, "SELECT n FROM g_many WHERE n = 1").await;
        passes(&mut conn, "SELECT n FROM g_many WHERE n = 2").await;
        wait_for_sum(&sluice, explains, &result("cached"), 1.0).await.unwrap();
        for sql in [
            "UPDATE g_many SET v = 2",
            "DELETE FROM g_many WHERE v < 1000",
            "INSERT INTO g_told_of SELECT n FROM g_many WHERE v < 1000",
            "SELECT a.n FROM g_many a JOIN g_many b ON a.v = b.v FOR UPDATE",
        ] {
            assert_eq!(refusal(&mut conn, sql).await.part("check"), Some("max_rows_expected"));
        }
        runs_what_it_tells_of(servers, &mut conn).await;
        let each = "SELECT n, (SELECT COUNT(*) FROM g_few b WHERE b.v > a.v) FROM g_few a";
        match servers.primary.flavour() {
            Flavour::MySql => {
                let refused = refusal(&mut conn, each).await;
                assert!(refused.message.contains("to read 930 rows"), "{refused:?}");
            }
            Flavour::MariaDb => passes(&mut conn, each).await,
        }
        passes(&mut conn, &format!("{each} LIMIT 1")).await;
        // Neither server's plan knows of the LIMIT.
        passes(&mut conn, "SELECT n, v FROM g_many LIMIT 3").await;
        let refused = refusal(&mut conn, "SELECT n, v FROM g_many LIMIT 3 OFFSET 500").await;
        assert_eq!(refused.part("check"), Some("max_rows_expected"));
        let refused = conn.prepare("SELECT n FROM g_many WHERE v > 2").await.unwrap_err();
        assert!(refused.to_string().contains("check=max_rows_expected"), "{refused}");
        passes(&mut conn, "UPDATE g_many SET v = 2 WHERE n = 3").await;
        passes(&mut conn, "INSERT INTO g_told_of VALUES (1)").await;

        // What its EXPLAIN might run, or what another session cannot know, is not explained.
        let unjudged = sluice.metrics().await.unwrap().sum(explains, &result("not_explained"));
        for sql in [
            "SELECT x FROM g_view",
            "SELECT n FROM g_many WHERE n = (SELECT x FROM g_view)",
            "SELECT n FROM g_many WHERE v > (SELECT g_counts())",
            "SELECT n FROM g_many WHERE v > @v",
            "SELECT n FROM g_many WHERE v > 1 AND n = 'a;b'",
            "SELECT n FROM g_many WHERE n = '1' || '2'",
            "CREATE TABLE g_none AS SELECT n FROM g_many",
        ] {
            let prepared = conn.prepare(sql).await;
            assert!(prepared.is_ok(), "{sql}: {prepared:?}");
        }
        wait_for_sum(&sluice, explains, &result("not_explained"), unjudged + 7.0).await.unwrap();
        let labels = [("guard", "expected"), ("check", "max_rows_expected")];
        wait_for_sum(&sluice, "sluice_guard_unjudged_total", &labels, 8.0).await.unwrap();
        assert_eq!(count(servers, "g_ran").await, 0, "nothing but an EXPLAIN would have run it");

        a_table_of_the_session_hides_a_base_table(&sluice).await;
        behind_what_may_have_changed_the_schema(servers, &sluice).await;
        behind_a_lock(servers, &sluice).await;
        servers
            .primary
            .run_sql(&["REVOKE SELECT, UPDATE, DELETE, INSERT ON test.* FROM 'sluice'@'%'"])
            .await
            .unwrap();
    }
}

/// A table that somebody alters is not waited for, and is judged soon behind that.
async fn behind_a_lock(servers: &Topology, sluice: &SluiceProcess) {
    let mut conn = connect_as(sluice, "expected").await.unwrap();
    let mut locker = servers.primary.admin().await.unwrap();
    locker.query_drop("LOCK TABLES test.g_late WRITE, test.g_many READ").await.unwrap();
    let large = "SELECT n FROM g_late WHERE v > 1";
    let waits = conn.query_payload(large.as_bytes(), &[]);
    conn.send_command(&waits).await.unwrap();
    wait_for_sum(sluice, "sluice_guard_explains_total", &[("result", "timed_out")], 1.0)
        .await
        .unwrap();
    locker.query_drop("INSERT INTO test.g_late SELECT n, v FROM test.g_many").await.unwrap();
    locker.query_drop("UNLOCK TABLES").await.unwrap();
    conn.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    // It is asked about again soon.
    let until = Instant::now() + Duration::from_secs(20);
    while Refused::of(&conn.query(large).await.unwrap()).is_none() {
        assert!(Instant::now() < until, "it is not judged any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// It read all, and counted as a statement that reads nothing.
async fn runs_what_it_tells_of(servers: &Topology, conn: &mut RawConn) {
    let (runs, tells) = match servers.primary.flavour() {
        Flavour::MySql => {
            ("EXPLAIN ANALYZE SELECT n FROM g_many WHERE v > 5", "EXPLAIN FORMAT=TREE")
        }
        Flavour::MariaDb => ("ANALYZE FORMAT=JSON UPDATE g_many SET v = v", "EXPLAIN FORMAT=JSON"),
    };
    assert_eq!(refusal(conn, runs).await.part("check"), Some("max_rows_expected"));
    passes(conn, &format!("{tells} SELECT n FROM g_many WHERE v > 5")).await;
}

/// Only the session can know how large it is: it is not judged as the other one is.
async fn a_table_of_the_session_hides_a_base_table(sluice: &SluiceProcess) {
    let mut conn = connect_as(sluice, "expected").await.unwrap();
    let scan = "SELECT n FROM g_many WHERE v > 3";
    passes(&mut conn, "CREATE TEMPORARY TABLE g_man (n INT)").await;
    assert_eq!(refusal(&mut conn, scan).await.part("check"), Some("max_rows_expected"));
    passes(&mut conn, "CREATE TEMPORARY TABLE IF NOT EXISTS test.`g_many` (n INT, v INT)").await;
    passes(&mut conn, scan).await;
    let reset = conn.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap();
    reset.accepted().unwrap();
    assert_eq!(refusal(&mut conn, scan).await.part("check"), Some("max_rows_expected"));
}

/// Names with their schemas are judged all the same, and all where the server tells of a USE; elsewhere
/// from the next USE on. On MySQL a procedure changes nothing, and EXECUTE IMMEDIATE is no statement.
async fn behind_what_may_have_changed_the_schema(servers: &Topology, sluice: &SluiceProcess) {
    let flavour = servers.primary.flavour();
    let (plain, full) =
        ("SELECT n FROM g_many WHERE v > 4", "SELECT n FROM test.g_many WHERE v > 4");
    for tells in [true, false] {
        let mut login = Login::new("app").attribute("sluice_app", "expected");
        if !tells {
            login = login.without(capability::SESSION_TRACK);
        }
        let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        for text in ["CALL g_nothing()", "EXECUTE IMMEDIATE 'SELECT 1'"] {
            conn.query(text).await.unwrap();
            assert_eq!(refusal(&mut conn, full).await.part("check"), Some("max_rows_expected"));
            if tells || flavour == Flavour::MySql {
                refusal(&mut conn, plain).await;
            } else {
                passes(&mut conn, plain).await;
            }
            passes(&mut conn, "USE test").await;
            refusal(&mut conn, plain).await;
        }
        if flavour == Flavour::MariaDb {
            passes(&mut conn, "EXECUTE IMMEDIATE 'USE g_other'").await;
            // There it is empty.
            passes(&mut conn, plain).await;
            passes(&mut conn, "USE test").await;
        }
    }
}

const EXPECTING: &str = "\
guards:
  - { name: expected, match: { app: expected }, max_rows_expected: 100, explain_timeout: 1s }";

const EXPECTED: &[&str] = &[
    "USE test",
    "DROP TABLE IF EXISTS g_many, g_few, g_told_of, g_ran, g_late",
    "DROP VIEW IF EXISTS g_view",
    "DROP FUNCTION IF EXISTS g_counts",
    "DROP PROCEDURE IF EXISTS g_nothing",
    "CREATE PROCEDURE g_nothing() DO 1",
    "CREATE DATABASE IF NOT EXISTS g_other",
    "CREATE TABLE IF NOT EXISTS g_other.g_many (n INT PRIMARY KEY, v INT)",
    "CREATE TABLE g_many (n INT PRIMARY KEY, v INT)",
    "INSERT INTO g_many WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT n, n FROM s",
    "CREATE TABLE g_few (n INT PRIMARY KEY, v INT)",
    "INSERT INTO g_few SELECT n, v FROM g_many WHERE n <= 30",
    "ANALYZE TABLE g_many, g_few",
    "CREATE TABLE g_told_of (n INT)",
    "CREATE TABLE g_ran (n INT)",
    "CREATE TABLE g_late (n INT, v INT)",
    "CREATE FUNCTION g_counts() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO g_ran VALUES (1); RETURN 1; END",
    "CREATE VIEW g_view AS SELECT g_counts() AS x",
];

/// Sluice with these guards, in front of a table of two rows.
async fn started(servers: &Topology, table: &str, guards: &str) -> SluiceProcess {
    let create = format!("CREATE TABLE {table} (n INT)");
    let insert = format!("INSERT INTO {table} VALUES (1), (2)");
    let drop = format!("DROP TABLE IF EXISTS {table}");
    servers.primary.run_sql(&["USE test", &drop, &create, &insert]).await.unwrap();
    let mut config = Config::new(servers).unwrap();
    guards.clone_into(&mut config.top);
    SluiceProcess::start(&config).await.unwrap()
}

async fn refusal(conn: &mut RawConn, sql: &str) -> Refused {
    let response = conn.query(sql).await.unwrap();
    Refused::of(&response).unwrap_or_else(|| panic!("{sql}: {response:?}"))
}

async fn passes(conn: &mut RawConn, sql: &str) {
    let response = conn.query(sql).await.unwrap();
    assert_eq!(response.err(), None, "{sql}");
}

fn passes_response(response: &integration::raw::Response) {
    assert_eq!(response.err(), None);
}

async fn count(servers: &Topology, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM test.{table}");
    servers.primary.query_first(&sql).await.unwrap().unwrap()
}
