//! The load by which a release is optimised (`scripts/build-release`): what applications send, in text and prepared,
//! with comments and without, in the clear, in TLS and compressed, with the shipped file and with everything on.
//!
//!   SLUICE_BIN=/path/to/sluice train [PAGES = 300]      pages that each session goes through
//!
//! It says nothing of how fast that is.
#![expect(clippy::print_stdout, reason = "it says what it has done")]

use std::net::SocketAddr;
use std::time::Duration;

use benches::shipped::{SHIPPED_REPLICAS, start_sluice, with_everything};
use benches::{Result, web};
use integration::error::Result as Answered;
use integration::raw::{Compress, Login, Param, Prepared, RawConn, Tls, capability};
use integration::server::Flavour;
use integration::topology::{Topology, TopologyOptions};
use tokio::task::JoinSet;

/// Sessions at once.
const SESSIONS: u32 = 24;

/// For the statements that wait for the lag.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// For the requests that are under way when it is told to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let pages = std::env::args().nth(1).map_or(Ok(300), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = TopologyOptions::new(Flavour::MySql, SHIPPED_REPLICAS.len());
        let topology = Topology::start(options).await?;
        web::fill(&topology.primary).await?;
        topology.primary.run_sql(&[NOTES]).await?;
        for change in [Ok, with_everything] {
            let mut sluice = start_sluice(&topology, change).await?;
            let statements = all_sessions(sluice.listen_addr(), pages).await?;
            println!("train: {statements} statements");
            sluice.stop(STOP_LIMIT).await?;
        }
        Ok(())
    })
}

/// What they have sent.
async fn all_sessions(addr: SocketAddr, pages: u32) -> Result<u64> {
    let mut sessions = JoinSet::new();
    for number in 0..SESSIONS {
        sessions.spawn(session(addr, number, pages));
    }
    let mut statements = 0;
    while let Some(ended) = sessions.join_next().await {
        statements += ended??;
    }
    Ok(statements)
}

/// Most come as they are; some in TLS, compressed, or in the older protocol.
fn login(number: u32) -> Login {
    let login = Login::new("app").attribute("program_name", "shop").attribute("_pid", "4711");
    match number % 8 {
        0 => login.tls(Tls::Newest),
        1 => login.compress(Compress::Zlib),
        2 => login.compress(Compress::Zstd(3)),
        3 => login.without(capability::DEPRECATE_EOF),
        _ => login,
    }
}

async fn session(addr: SocketAddr, number: u32, pages: u32) -> Answered<u64> {
    let mut conn = RawConn::open(addr, &login(number)).await?;
    conn.set_read_limit(ANSWER_LIMIT);
    conn.query("SET NAMES utf8mb4").await?.accepted()?;
    let select = conn.prepare("SELECT pad FROM t WHERE id = ?").await?;
    let update = conn.prepare("UPDATE t SET n = n + 1 WHERE id = ?").await?;
    let mut client = Client { conn, select, update, sent: 3 };
    for page in 0..pages {
        client.page(number, page).await?;
    }
    client.conn.close_statement(client.select.id).await?;
    client.conn.quit().await?;
    Ok(client.sent)
}

struct Client {
    conn: RawConn,
    select: Prepared,
    update: Prepared,
    sent: u64,
}

impl Client {
    /// What an application does for a page: reads mostly, and now and then all else.
    async fn page(&mut self, number: u32, page: u32) -> Answered<()> {
        // Of each session its own, so that none waits for another's lock.
        let id = 1 + number * 400 + page % 400;
        for read in 0..10 {
            self.text(&format!("SELECT pad FROM t WHERE id = {}", id + read)).await?;
            self.prepared(id).await?;
        }
        for (at, what) in READS.iter().enumerate() {
            let trace = format!("{:032x}-{at:016x}", u64::from(id) * 0x9E37_79B9);
            self.text(&format!("{what} WHERE id = {id} /*app='shop',route='%2Fcart'*/")).await?;
            self.text(&format!(
                "{what} WHERE id = {id} /*app='shop',traceparent='00-{trace}-01'*/"
            ))
            .await?;
        }
        self.text(&format!("SELECT id, n FROM t WHERE id BETWEEN {id} AND {}", id + 200)).await?;
        self.transaction(id).await?;
        if page.is_multiple_of(10) {
            self.rare(id).await?;
        }
        Ok(())
    }

    async fn transaction(&mut self, id: u32) -> Answered<()> {
        self.text("BEGIN").await?;
        self.text(&format!("SELECT n FROM t WHERE id = {id} FOR UPDATE")).await?;
        let id = Param::int(i64::from(id));
        self.conn.execute(&self.update, &[id]).await?.accepted()?;
        self.text("INSERT INTO notes (what) VALUES ('bought')").await?;
        self.text("COMMIT").await
    }

    /// What costs the most, what is held by the lag, what fails.
    async fn rare(&mut self, id: u32) -> Answered<()> {
        let rows: Vec<String> = (0..50).map(|row| format!("('{id}-{row}')")).collect();
        self.text(&format!("INSERT INTO notes (what) VALUES {}", rows.join(", "))).await?;
        self.text("/* gh-ost */ INSERT INTO notes (what) SELECT 'copied' FROM t LIMIT 5").await?;
        self.text("SELECT id, pad FROM t LIMIT 1000").await?;
        self.text("SHOW SESSION STATUS LIKE 'Threads_running'").await?;
        self.text("SET @who = 'shop'").await?;
        self.sent += 1;
        let twice = self.conn.query(format!("INSERT INTO t (id) VALUES ({id})")).await?;
        // ER_DUP_ENTRY: the row is there.
        let errno = twice.err().map(|(errno, _)| errno);
        if errno != Some(1062) { twice.accepted().map(drop) } else { Ok(()) }
    }

    async fn text(&mut self, sql: &str) -> Answered<()> {
        self.sent += 1;
        self.conn.query(sql).await?.accepted().map(drop)
    }

    async fn prepared(&mut self, id: u32) -> Answered<()> {
        self.sent += 1;
        let id = Param::int(i64::from(id));
        self.conn.execute(&self.select, &[id]).await?.accepted().map(drop)
    }
}

const NOTES: &str = "CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(64), at TIMESTAMP DEFAULT NOW())";

/// Texts that differ in more than their values.
const READS: [&str; 6] = [
    "SELECT id FROM t",
    "SELECT n FROM t",
    "SELECT id, n FROM t",
    "SELECT COUNT(*) FROM t",
    "SELECT pad, n FROM t",
    "SELECT MAX(n), MIN(n) FROM t",
];
