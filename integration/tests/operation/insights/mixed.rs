//! A load of every kind of statement, on both servers: the sums are those of the server's own summary
//! of the user's statements.

use integration::raw::{Cursor, Execute, Login, Param, RawConn};
use integration::server::{Flavour, PerformanceSchema, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

use super::{ask, load, servers};

#[tokio::test]
async fn mysql_counts_a_mixed_load_as_sluice_does() {
    counts_agree(servers().await).await;
}

#[tokio::test]
async fn mariadb_counts_a_mixed_load_as_sluice_does() {
    let mut options = TopologyOptions::new(Flavour::MariaDb, 0);
    options.performance_schema = PerformanceSchema::On;
    counts_agree(&Topology::start(options).await.unwrap()).await;
}

/// Statements, errors, warnings, rows sent, rows affected.
pub(super) type Sums = (u64, u64, u64, u64, u64);

async fn counts_agree(servers: &Topology) {
    let server = &servers.primary;
    let made = [
        "CREATE TABLE test.t (id INT PRIMARY KEY, c VARCHAR(20))",
        "INSERT INTO test.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
        "CREATE PROCEDURE test.p() BEGIN SELECT id FROM t WHERE id < 4; SELECT 1; \
         UPDATE t SET c = 'p' WHERE id < 3; END",
    ];
    server.run_sql(&made).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("etl")).await.unwrap();
    let mut told = by_sluice(&sluice, "etl").await;
    let mut counted = by_server(server, "etl").await;
    let steps: [(&str, Step); 6] = [
        ("a load", Step::Load),
        ("cursors", Step::Cursors),
        ("an upload", Step::Upload),
        ("prepared statements that fail, warn and change", Step::Prepared),
        ("texts of several statements", Step::Several),
        ("procedures", Step::Procedures),
    ];
    for (what, step) in steps {
        step.take(&mut conn).await;
        super::counted(&mut conn).await;
        let counted_now = by_server(server, "etl").await;
        let mut theirs = less(counted_now, counted);
        match step {
            Step::Several => {
                // Three, two of which the second one fails, three, and two: each text is one to Sluice.
                assert_eq!(theirs.0, 10, "{what}");
                theirs.0 = 4;
            }
            Step::Procedures => {
                // The rows are those of the statements inside. MySQL adds them up from one to the
                // next there.
                assert_eq!(theirs.3, 0, "{what}");
                theirs.3 = 3 * (3 + 1);
            }
            Step::Load | Step::Cursors | Step::Upload | Step::Prepared => {}
        }
        assert!(theirs.0 > 0, "{what}");
        let told_now = by_sluice(&sluice, "etl").await;
        assert_eq!(less(told_now, told), theirs, "{what}");
        (told, counted) = (told_now, counted_now);
    }
}

#[derive(Clone, Copy)]
enum Step {
    Load,
    Cursors,
    Upload,
    Prepared,
    Several,
    Procedures,
}

impl Step {
    async fn take(self, conn: &mut RawConn) {
        match self {
            Self::Load => load(conn, 10).await,
            Self::Cursors => cursors(conn).await,
            Self::Upload => {
                conn.queue_infile(b"100\tx\n101\ty\n1\tdouble\n".to_vec());
                conn.query("LOAD DATA LOCAL INFILE 'rows' INTO TABLE t").await.unwrap();
            }
            Self::Prepared => prepared(conn).await,
            Self::Several => {
                for sql in [
                    "SELECT id FROM t WHERE id < 4; UPDATE t SET c = 's' WHERE id < 3; SELECT 1",
                    "SELECT 1; SELECT nothing FROM t; SELECT 2",
                    "BEGIN; DELETE FROM t WHERE id = 5; ROLLBACK",
                    &format!("{WARNS}; {WARNS}"),
                ] {
                    conn.query(sql).await.unwrap();
                }
            }
            Self::Procedures => {
                for _ in 0..3 {
                    conn.query("CALL p()").await.unwrap().accepted().unwrap();
                }
                conn.query("CALL no_such_procedure()").await.unwrap();
            }
        }
    }
}

/// 40,000 warnings: two of these have more than a server tells of one statement.
const WARNS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) \
     SELECT COUNT(CAST(CONCAT(a.i, 'x', b.i) AS SIGNED)) FROM n a JOIN n b";

/// To the last row, to some row, and none.
async fn cursors(conn: &mut RawConn) {
    let statement = conn.prepare("SELECT id, c FROM t WHERE id > ? ORDER BY id").await.unwrap();
    for fetches in [3, 1, 0] {
        let params = [Param::int(1)];
        let execute = Execute {
            id: statement.id,
            cursor: Cursor::ReadOnly,
            params: &params,
            ..Execute::default()
        };
        conn.execute_as(&execute).await.unwrap().accepted().unwrap();
        for _ in 0..fetches {
            conn.fetch(statement.id, 2).await.unwrap().accepted().unwrap();
        }
    }
    conn.reset_statement(statement.id).await.unwrap().accepted().unwrap();
    conn.fetch(statement.id, 2).await.unwrap();
}

async fn prepared(conn: &mut RawConn) {
    let insert = conn.prepare("INSERT INTO t (id, c) VALUES (?, ?)").await.unwrap();
    for n in [200, 201, 200] {
        conn.execute(&insert, &[Param::int(n), Param::text("x")]).await.unwrap();
    }
    let warns = conn.prepare("INSERT IGNORE INTO t (id, c) VALUES (?, ?)").await.unwrap();
    conn.execute(&warns, &[Param::int(200), Param::text("x")]).await.unwrap().accepted().unwrap();
    let delete = conn.prepare("DELETE FROM t WHERE id >= ?").await.unwrap();
    conn.query("START TRANSACTION").await.unwrap();
    conn.execute(&delete, &[Param::int(200)]).await.unwrap().accepted().unwrap();
    conn.query("ROLLBACK").await.unwrap();
    conn.query("PREPARE s FROM 'SELECT COUNT(*) FROM t WHERE id > ?'").await.unwrap();
    conn.query("SET @n = 2").await.unwrap();
    conn.query("EXECUTE s USING @n").await.unwrap();
    conn.query("DEALLOCATE PREPARE s").await.unwrap();
}

pub(super) async fn by_sluice(sluice: &SluiceProcess, user: &str) -> Sums {
    let answer = ask(sluice, &format!("by=user&user={user}&window=10m")).await;
    let of = |key: &str| answer["total"][key].as_u64().unwrap_or(0);
    (of("count"), of("errors"), of("warnings"), of("rows_sent"), of("rows_affected"))
}

/// Preparing, fetching and closing are no statements, but rows are fetched. What a procedure runs
/// counts once more as statements of its own. MySQL counts the warnings of what came before for
/// commands that are no statements.
pub(super) async fn by_server(server: &Server, user: &str) -> Sums {
    let executions = "IF(EVENT_NAME LIKE 'statement/sql/%' OR EVENT_NAME IN \
                      ('statement/com/Execute', 'statement/com/Bulk_execute'),";
    let sum = |of: String| format!("CAST(COALESCE(SUM({of}), 0) AS UNSIGNED)");
    let sums = [
        sum(format!("{executions} COUNT_STAR, 0)")),
        sum("SUM_ERRORS".to_owned()),
        sum(format!("{executions} SUM_WARNINGS, 0)")),
        sum("SUM_ROWS_SENT".to_owned()),
        sum("SUM_ROWS_AFFECTED".to_owned()),
    ];
    let sql = format!(
        "SELECT {} FROM performance_schema.events_statements_summary_by_user_by_event_name \
         WHERE USER = '{user}' AND EVENT_NAME NOT LIKE 'statement/sp/%'",
        sums.join(", ")
    );
    server.query_first(&sql).await.unwrap().unwrap()
}

fn less(now: Sums, before: Sums) -> Sums {
    let of = |field: fn(&Sums) -> u64| field(&now) - field(&before);
    (of(|sums| sums.0), of(|sums| sums.1), of(|sums| sums.2), of(|sums| sums.3), of(|sums| sums.4))
}
