//! What every Rust driver is put through: the same steps, direct and through Sluice. A driver is a program
//! that implements [`Driver`].

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

/// Where to connect, and what stands there.
#[derive(Debug, Clone)]
pub struct Target {
    /// Address of the server or of Sluice.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The account.
    pub user: String,
    /// Its password.
    pub password: String,
    /// A database of the driver's own.
    pub database: String,
    /// Whether to encrypt.
    pub tls: bool,
    /// Whether to compress.
    pub compress: bool,
    /// Whether Sluice is in between.
    pub through_sluice: bool,
}

/// An error as the application sees it.
#[derive(Debug)]
pub struct Seen {
    /// The driver's type.
    pub kind: String,
    /// The server's number; 0 of an error of the driver's own.
    pub errno: u16,
    /// The server's SQLSTATE.
    pub sqlstate: String,
    /// The text.
    pub message: String,
}

/// What a driver can do.
pub trait Driver: Sized {
    /// Opens a connection.
    fn connect(target: &Target) -> impl Future<Output = Result<Self, Seen>>;
    /// Runs a text without rows.
    fn run(&mut self, sql: &str) -> impl Future<Output = Result<(), Seen>>;
    /// The first row of a text, as strings.
    fn first(&mut self, sql: &str) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, Seen>>;
    /// Executes a prepared statement with a number, a text and bytes.
    fn execute(
        &mut self,
        sql: &str,
        id: i32,
        note: &str,
        data: &[u8],
    ) -> impl Future<Output = Result<(), Seen>>;
    /// The first column of a prepared query with one number.
    fn notes(&mut self, sql: &str, id: i32) -> impl Future<Output = Result<Vec<String>, Seen>>;
    /// The first value of each result of a text of several statements.
    fn several(&mut self, sql: &str) -> impl Future<Output = Result<Vec<i64>, Seen>>;
    /// Closes the connection.
    fn close(self) -> impl Future<Output = ()>;
}

/// Runs all steps, and tells whether all went well.
pub fn main<D: Driver>() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, password, database, tls, _server, route] = words.as_slice() else {
        eprintln!("HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE");
        return 2.into();
    };
    let target = Target {
        host: host.clone(),
        port: port.parse().unwrap_or_default(),
        user: user.clone(),
        password: password.clone(),
        database: database.clone(),
        tls: tls == "yes",
        compress: std::env::var("DRIVER_COMPRESSION").is_ok_and(|how| how != "no"),
        through_sluice: route == "sluice",
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    u8::from(!runtime.block_on(all::<D>(target))).into()
}

async fn all<D: Driver>(target: Target) -> bool {
    let mut steps = match Steps::<D>::connect(target).await {
        Ok(steps) => steps,
        Err(why) => return told("connect", Err(why)),
    };
    let mut well = told("connect", steps.prepare_table().await);
    well &= told("text", steps.text().await);
    well &= told("prepared", steps.prepared().await);
    well &= told("commit", steps.transaction(10, "COMMIT", 1).await);
    well &= told("rollback", steps.transaction(11, "ROLLBACK", 0).await);
    well &= told("blob", steps.blob().await);
    well &= told("multi", steps.multi().await);
    well &= told("error", steps.error().await);
    well &= told("held", steps.held().await);
    well &= told("refused", steps.refused().await);
    well &= told("refused-prepared", steps.refused_prepared().await);
    well &= told("refused-in-transaction", steps.refused_in_transaction().await);
    well &= told("reconnect", steps.reconnect().await);
    well
}

fn told(name: &str, outcome: Detail) -> bool {
    let (verdict, detail) = match &outcome {
        Ok(detail) => ("ok", detail),
        Err(why) => ("fail", why),
    };
    println!("step {name} {verdict} {}", detail.split_whitespace().collect::<Vec<_>>().join(" "));
    outcome.is_ok()
}

type Detail = Result<String, String>;

struct Steps<D> {
    driver: D,
    target: Target,
}

impl<D: Driver> Steps<D> {
    async fn connect(target: Target) -> Result<Self, String> {
        Ok(Self { driver: D::connect(&target).await?, target })
    }

    // --- what works everywhere -------------------------------------------------------------------

    async fn prepare_table(&mut self) -> Detail {
        let row = self.driver.first("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
        let encrypted = !text_of(&row, 1).is_empty();
        expect(encrypted, self.target.tls, "encrypted")?;
        let row = self.driver.first("SHOW SESSION STATUS LIKE 'Compression'").await?;
        let compressed = text_of(&row, 1) == "ON";
        expect(compressed, self.target.compress, "compressed")?;
        self.driver.run("DROP TABLE IF EXISTS t").await?;
        self.driver
            .run("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4")
            .await?;
        Ok(format!("tls={} compressed={}", yes(encrypted), yes(compressed)))
    }

    async fn text(&mut self) -> Detail {
        let row = self.driver.first(&format!("SELECT '1', '{GREETING}', NULL, '12.50'")).await?;
        expect(row.get(2), Some(&None), "NULL")?;
        expect(text_of(&row, 1).as_str(), GREETING, "words")?;
        Ok(format!("{} {} NULL {}", text_of(&row, 0), text_of(&row, 1), text_of(&row, 3)))
    }

    async fn prepared(&mut self) -> Detail {
        for id in 1..=3 {
            self.driver.execute(INSERT, id, &format!("{GREETING} {id}"), b"").await?;
        }
        let seen = self.driver.notes("SELECT note FROM t WHERE id >= ? ORDER BY id", 2).await?;
        expect(seen, vec![format!("{GREETING} 2"), format!("{GREETING} 3")], "rows")?;
        Ok("rows=3 by=server".into())
    }

    async fn transaction(&mut self, id: i32, end: &str, left: i64) -> Detail {
        self.driver.run("START TRANSACTION").await?;
        self.insert("", id).await?;
        self.driver.run(end).await?;
        self.expect_rows(left, id).await?;
        Ok(format!("rows={left}"))
    }

    async fn blob(&mut self) -> Detail {
        let sent: Vec<u8> = (0..BLOB_BYTES).map(|i| ((i * 7 + (i >> 8)) & 255) as u8).collect();
        self.driver.execute(INSERT, 12, "", &sent).await?;
        let row = self.driver.first("SELECT data, SHA2(data, 256) FROM t WHERE id = 12").await?;
        let wanted: String =
            Sha256::digest(&sent).iter().map(|byte| format!("{byte:02x}")).collect();
        expect(text_of(&row, 1), wanted.clone(), "digest")?;
        expect(row.first() == Some(&Some(sent)), true, "bytes came back")?;
        Ok(format!("bytes={BLOB_BYTES} sha256={}", wanted.get(..16).unwrap_or_default()))
    }

    async fn multi(&mut self) -> Detail {
        expect(
            self.driver.several("SELECT 1; SELECT 2; SELECT 3").await?,
            vec![1, 2, 3],
            "results",
        )?;
        Ok("results=1,2,3".into())
    }

    async fn error(&mut self) -> Detail {
        let outcome = self.insert("", 1).await;
        Ok(failed(outcome, 1062)?)
    }

    // --- what Sluice changes ---------------------------------------------------------------------

    async fn held(&mut self) -> Detail {
        let started = Instant::now();
        self.insert(HELD, 20).await?;
        let held = started.elapsed() >= HELD_AT_LEAST;
        self.expect_rows(1, 20).await?;
        expect(held || !self.target.through_sluice, true, "held back")?;
        Ok(format!("held={} rows=1", yes(held)))
    }

    async fn refused(&mut self) -> Detail {
        let before = self.connection_id().await?;
        let outcome = self.insert(REFUSED, 30).await;
        let said = self.refused_or_not(outcome)?;
        expect(self.connection_id().await?, before, "connection id")?;
        self.expect_rows(self.if_admitted(), 30).await?;
        Ok(format!("{said} connection=kept"))
    }

    async fn refused_prepared(&mut self) -> Detail {
        let data = [0, 255, b'\'', b'\\'];
        self.driver.run("SET @sluice_app = 'driver-refused'").await?;
        let outcome = self.driver.execute(INSERT, 31, GREETING, &data).await;
        let said = self.refused_or_not(outcome)?;
        self.driver.run("SET @sluice_app = 'driver'").await?;
        let id = if self.target.through_sluice { 31 } else { 32 };
        self.driver.execute(INSERT, id, GREETING, &data).await?;
        let row = self.driver.first(&format!("SELECT note, data FROM t WHERE id = {id}")).await?;
        expect(row, vec![Some(GREETING.into()), Some(data.into())], "row after the retry")?;
        Ok(format!("{said} retry=stored"))
    }

    async fn refused_in_transaction(&mut self) -> Detail {
        let said = self.transaction_with_refusal(40, "ROLLBACK").await?;
        self.expect_rows(0, 40).await?;
        self.expect_rows(0, 41).await?;
        self.transaction_with_refusal(42, "COMMIT").await?;
        self.expect_rows(self.if_admitted(), 42).await?;
        self.expect_rows(1, 43).await?;
        Ok(format!("{said} transaction=goes-on"))
    }

    async fn transaction_with_refusal(&mut self, id: i32, end: &str) -> Detail {
        self.driver.run("START TRANSACTION").await?;
        let outcome = self.insert(REFUSED, id).await;
        let said = self.refused_or_not(outcome)?;
        self.insert("", id + 1).await?;
        self.driver.run(end).await?;
        Ok(said)
    }

    async fn reconnect(&mut self) -> Detail {
        let id = self.connection_id().await?;
        let mut other = D::connect(&self.target).await?;
        other.run(&format!("KILL {id}")).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let Err(lost) = self.driver.run("SELECT 1").await else { return Err("no error".into()) };
        let new = D::connect(&self.target).await?;
        std::mem::replace(&mut self.driver, new).close().await;
        self.expect_rows(1, 1).await?;
        other.close().await;
        Ok(format!("lost={}", lost.kind))
    }

    // --- words the steps are made of -------------------------------------------------------------

    async fn insert(&mut self, comment: &str, id: i32) -> Result<(), Seen> {
        self.driver.run(&format!("{comment}INSERT INTO t (id) VALUES ({id})")).await
    }

    async fn expect_rows(&mut self, wanted: i64, id: i32) -> Result<(), String> {
        let count = format!("SELECT CAST(COUNT(*) AS CHAR) FROM t WHERE id = {id}");
        let row = self.driver.first(&count).await?;
        expect(text_of(&row, 0), wanted.to_string(), "rows")
    }

    async fn connection_id(&mut self) -> Result<String, String> {
        Ok(text_of(&self.driver.first("SELECT CAST(CONNECTION_ID() AS CHAR)").await?, 0))
    }

    fn if_admitted(&self) -> i64 {
        i64::from(!self.target.through_sluice)
    }

    fn refused_or_not(&self, outcome: Result<(), Seen>) -> Detail {
        if self.target.through_sluice {
            return failed(outcome, 1205);
        }
        outcome?;
        Ok("admitted".into())
    }
}

fn failed(outcome: Result<(), Seen>, errno: u16) -> Detail {
    let Err(seen) = outcome else { return Err("no error".into()) };
    expect(seen.errno, errno, &seen.message)?;
    let ours = seen.message.contains("[sluice ") && seen.message.contains("executed=no]");
    expect(ours, errno == 1205, &seen.message)?;
    Ok(format!("{} errno={} sqlstate={}", seen.kind, seen.errno, seen.sqlstate))
}

fn expect<T: PartialEq + std::fmt::Debug>(seen: T, wanted: T, what: &str) -> Result<(), String> {
    if seen == wanted { Ok(()) } else { Err(format!("{what}: {seen:?} instead of {wanted:?}")) }
}

fn text_of(row: &[Option<Vec<u8>>], column: usize) -> String {
    row.get(column)
        .and_then(Option::as_deref)
        .map(String::from_utf8_lossy)
        .unwrap_or_default()
        .into_owned()
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

impl From<Seen> for String {
    fn from(seen: Seen) -> Self {
        format!("{} {} {}", seen.kind, seen.errno, seen.message)
    }
}

const INSERT: &str = "INSERT INTO t (id, note, data) VALUES (?, ?, ?)";
const GREETING: &str = "Grüße, 世界";
const HELD: &str = "/*app='driver-held'*/ ";
const REFUSED: &str = "/*app='driver-refused'*/ ";
const BLOB_BYTES: usize = 4 << 20;
/// The rule holds back for one second; clocks and schedulers may shave a little off it.
const HELD_AT_LEAST: Duration = Duration::from_millis(950);
