//! Statements and rows a second, of clients that send as fast as they can: what the server has is what
//! the budget gives, over any stretch of time.

use std::time::Duration;

use integration::raw::{Login, Param, RawConn, Shape, capability};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::places::Lab;
use super::session;

/// As the budget `rows` and `both` have it.
const ROWS_PER_S: f64 = 2_000.0;
/// As the budget `paced` and `both` have it.
const STATEMENTS_PER_S: f64 = 50.0;
/// For so long; what [BUDGETS](../../docs/BUDGETS.md) says of a minute was measured with one.
const TIME: Duration = Duration::from_secs(3);
/// Most rows of one statement.
const ROWS_MAX: u64 = 300;

/// How a session writes rows.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// INSERT of one row.
    One,
    /// INSERT of 1 to 60.
    Many,
    /// INSERT … SELECT of 10 to [`ROWS_MAX`].
    Select,
    /// Three INSERTs in a text.
    Several,
    /// LOAD DATA of 50.
    Load,
    /// A prepared INSERT of one row; with MariaDB's bulk of 40.
    Prepared,
}

impl Lab {
    pub(super) async fn rows_a_second(&self) {
        self.server.run_sql(&[WRITTEN, SEQUENCE, FILLED]).await.unwrap();
        let all = [Form::One, Form::Many, Form::Select, Form::Several, Form::Load, Form::Prepared];
        // Two of each: while one is at the server the other asks.
        let rows = self.written("rows", &[all, all].concat()).await;
        // What is ahead is what may be, 50 ms, and one statement, or what one was foreseen to be.
        rows.is_near(ROWS_PER_S, 0.05 * ROWS_PER_S + 2.0 * as_f64(ROWS_MAX));
    }

    pub(super) async fn statements_a_second(&self) {
        for (app, rest) in [("both", 0), ("paced", 0), ("paced", 1)] {
            // Nothing is saved up while nobody comes.
            sleep(Duration::from_secs(rest)).await;
            let asked = self.asked(app).await;
            // Each of the four may have one that the server's thread takes up late: it waited for a core.
            asked.is_near(STATEMENTS_PER_S, 0.05 * STATEMENTS_PER_S + 1.0 + 4.0);
        }
    }

    /// Four sessions of an app that ask and ask: when the server began with their statements, by its own
    /// timers.
    async fn asked(&self, app: &'static str) -> Taken {
        self.server.run_sql(&[FORGET]).await.unwrap();
        let until = Instant::now() + TIME;
        let mut sessions = JoinSet::new();
        for _ in 0..4 {
            let addr = self.sluice.listen_addr();
            sessions.spawn(async move {
                let mut conn = session(addr, app).await;
                while Instant::now() < until {
                    conn.query("SELECT 'asked'").await.unwrap().accepted().unwrap();
                }
            });
        }
        while let Some(session) = sessions.join_next().await {
            session.unwrap();
        }
        let began: Vec<u64> = self.server.query(BEGAN).await.unwrap();
        let first = *began.first().unwrap();
        let looks = (0_u64..).zip(began).map(|(n, at)| (as_f64(at - first) / 1e12, as_f64(n)));
        let asked = Taken::of(&looks.collect::<Vec<_>>(), STATEMENTS_PER_S);
        eprintln!("{:?} {app}: {asked:?}", self.server.flavour());
        asked
    }

    /// What sessions of an app write that do nothing else, one for each form.
    async fn written(&self, app: &'static str, forms: &[Form]) -> Taken {
        self.server.run_sql(&["TRUNCATE TABLE test.written"]).await.unwrap();
        let until = Instant::now() + TIME;
        let mut sessions = JoinSet::new();
        for (n, form) in (0_u64..).zip(forms.iter().copied()) {
            let addr = self.sluice.listen_addr();
            let login = Login::new("web").attribute("sluice_app", app);
            let login = login.with_mariadb(capability::MARIADB_BULK);
            sessions.spawn(async move {
                let mut conn = RawConn::open(addr, &login).await.unwrap();
                let insert = conn.prepare("INSERT INTO test.written VALUES (?)").await.unwrap();
                let mut sizes = (n..).step_by(7);
                while Instant::now() < until {
                    form.write(&mut conn, sizes.next().unwrap_or(n), insert.id).await;
                }
            });
        }
        let began = Instant::now();
        let mut looks = vec![(0.0, 0.0)];
        while Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
            let count = "SELECT COUNT(*) FROM test.written";
            let count: u64 = self.server.query_first(count).await.unwrap().unwrap();
            looks.push((began.elapsed().as_secs_f64(), as_f64(count)));
        }
        while let Some(session) = sessions.join_next().await {
            session.unwrap();
        }
        let written = Taken::of(&looks, ROWS_PER_S);
        eprintln!("{:?} {app}: {written:?}", self.server.flavour());
        written
    }
}

impl Form {
    async fn write(self, conn: &mut RawConn, n: u64, prepared: u32) {
        let rows = |count: u64| vec!["(1)"; usize::try_from(count).unwrap()].join(", ");
        let insert = |count| format!("INSERT INTO test.written VALUES {}", rows(count));
        let text = match self {
            Self::One => insert(1),
            Self::Many => insert(1 + n % 60),
            Self::Select => {
                let limit = 10 + n % (ROWS_MAX - 10);
                format!("INSERT INTO test.written SELECT n FROM test.sequence LIMIT {limit}")
            }
            Self::Several => vec![insert(5); 3].join("; "),
            Self::Load => {
                conn.queue_infile(b"1\n".repeat(50));
                "LOAD DATA LOCAL INFILE 'rows' INTO TABLE test.written".to_owned()
            }
            Self::Prepared => return execute(conn, prepared).await,
        };
        conn.query(text).await.unwrap().accepted().unwrap();
    }
}

/// As many rows as the server takes in one go.
async fn execute(conn: &mut RawConn, id: u32) {
    if conn.mariadb_capabilities() & capability::MARIADB_BULK == 0 {
        let execute = integration::raw::Execute {
            id,
            params: &[Param::int(1)],
            ..integration::raw::Execute::default()
        };
        conn.execute_as(&execute).await.unwrap().accepted().unwrap();
        return;
    }
    const COM_STMT_BULK_EXECUTE: u8 = 0xfa;
    const SEND_TYPES: u8 = 128;
    const MYSQL_TYPE_LONG: u8 = 3;
    let mut payload = vec![COM_STMT_BULK_EXECUTE];
    payload.extend_from_slice(&id.to_le_bytes());
    payload.extend_from_slice(&[SEND_TYPES, 0, MYSQL_TYPE_LONG, 0]);
    payload.extend_from_slice(&[0, 1, 0, 0, 0].repeat(40));
    conn.command(&payload, Shape::Query).await.unwrap().accepted().unwrap();
}

/// What the server had of it.
#[derive(Debug)]
struct Taken {
    /// Rows, or statements, a second.
    per_s: f64,
    /// Most that it was ahead of the rate, over any stretch of time.
    ahead: f64,
}

impl Taken {
    fn of(looks: &[(f64, f64)], rate: f64) -> Self {
        let (time, rows) = looks.last().copied().unwrap();
        let mut least = f64::INFINITY;
        let mut ahead = 0.0_f64;
        for (at, count) in looks {
            let owed = count - rate * at;
            least = least.min(owed);
            ahead = ahead.max(owed - least);
        }
        Self { per_s: rows / time, ahead }
    }

    fn is_near(&self, rate: f64, ahead: f64) {
        // What is under way at the last look is paid for, and not written yet.
        assert!((0.88..=1.08).contains(&(self.per_s / rate)), "{self:?} of {rate}");
        assert!(self.ahead <= ahead, "{self:?}: {ahead} may be ahead");
    }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "small numbers")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

const FORGET: &str = "TRUNCATE TABLE performance_schema.events_statements_history_long";
const BEGAN: &str = "SELECT TIMER_START FROM performance_schema.events_statements_history_long \
                     WHERE SQL_TEXT LIKE 'SELECT ''asked%' ORDER BY 1";
const WRITTEN: &str = "CREATE TABLE test.written (n INT)";
const SEQUENCE: &str = "CREATE TABLE test.sequence (n INT)";
const FILLED: &str = "INSERT INTO test.sequence \
    WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 300) SELECT n FROM s";
