//! A web application: sessions that read and write single rows by their key, and think in between.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::server::Server;
use tokio::sync::mpsc::{
    UnboundedReceiver, UnboundedSender, error::TryRecvError, unbounded_channel,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Result;
use crate::beside::{Failure, beside};

/// What the application does.
#[derive(Debug, Clone, Copy)]
pub struct WebApp {
    /// Each with a statement at a time.
    pub sessions: u32,
    /// Between an answer and the next statement, on average; from half of it to half more, by chance.
    pub thinks: Duration,
    /// What a statement that reads asks for.
    pub reads: Reads,
    /// One statement of so many changes its row; the others read it.
    pub writes_one_in: Option<u32>,
}

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// A row by its key.
    Row,
    /// Rows that follow one another, so many by chance. The server sleeps at each, as if for a disk.
    Rows {
        /// No fewer than these.
        least: u32,
        /// No more than these.
        most: u32,
        /// For how long the server sleeps at each.
        each: Duration,
    },
}

/// One statement that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When it was sent.
    pub at: Instant,
    /// Until its answer was there.
    pub took_s: f64,
}

/// The application at work, on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Web {
    seen: UnboundedReceiver<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::result::Result<(), Failure>>>,
}

/// Makes the table `t` with [`ROWS`] rows.
///
/// # Errors
/// When the server does not run a statement.
pub async fn fill(server: &Server) -> Result<()> {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, pad CHAR(128))";
    let rows = format!(
        "INSERT INTO t (id, pad) WITH RECURSIVE n (i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, REPEAT(SHA2(i, 256), 2) FROM n"
    );
    server.run_sql(&["SET SESSION cte_max_recursion_depth = 1000000", table, &rows]).await?;
    Ok(())
}

impl Web {
    /// Logs in as `web`, and begins.
    ///
    /// # Errors
    /// When a session is not let in.
    pub async fn start(addr: SocketAddr, app: WebApp) -> Result<Self> {
        let (told, seen) = unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (up, is_up) = oneshot::channel();
        let thread = beside("web", move || browse(addr, app, told, (up, stopped)))?;
        let mut web = Self { seen, stop: Some(stop), thread: Some(thread) };
        match is_up.await {
            Ok(()) => Ok(web),
            Err(_) => Err(web.end().err().unwrap_or_else(|| "the web app has ended".into())),
        }
    }

    /// What was answered since the last call.
    ///
    /// # Errors
    /// When a statement has failed: it is not beside the point.
    pub fn take(&mut self) -> Result<Vec<Seen>> {
        let mut all = Vec::new();
        loop {
            match self.seen.try_recv() {
                Ok(seen) => all.push(seen),
                Err(TryRecvError::Empty) => return Ok(all),
                Err(TryRecvError::Disconnected) => {
                    self.end()?;
                    return Err("the web app has ended".into());
                }
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(failure))) => Err(failure.to_string().into()),
            Some(Err(_)) => Err("the web app has panicked".into()),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // Whoever wanted to know of a failure has asked for what was seen.
        self.end().ok();
    }
}

async fn browse(
    addr: SocketAddr,
    app: WebApp,
    told: UnboundedSender<Seen>,
    (up, stopped): (oneshot::Sender<()>, oneshot::Receiver<()>),
) -> std::result::Result<(), Failure> {
    let mut conns = Vec::new();
    for _ in 0..app.sessions {
        conns.push(RawConn::open(addr, &Login::new("web")).await?);
    }
    let mut sessions = JoinSet::new();
    for (session, conn) in (1..).zip(conns) {
        sessions.spawn(one(conn, app, Chance(session), told.clone()));
    }
    drop(told);
    up.send(()).ok();
    tokio::select! {
        ended = sessions.join_next() => match ended {
            Some(ended) => ended?,
            None => Ok(()),
        },
        _ = stopped => Ok(()),
    }
}

async fn one(
    mut conn: RawConn,
    app: WebApp,
    mut chance: Chance,
    told: UnboundedSender<Seen>,
) -> std::result::Result<(), Failure> {
    loop {
        let id = chance.below(ROWS).saturating_add(1);
        let writes = app.writes_one_in.is_some_and(|of| chance.below(of) == 0);
        let text = if writes {
            format!("UPDATE t SET n = n + 1 WHERE id = {id}")
        } else {
            app.reads.text(id, &mut chance)
        };
        let at = Instant::now();
        conn.query(text).await?.accepted()?;
        let took_s = at.elapsed().as_secs_f64();
        if told.send(Seen { at, took_s }).is_err() {
            return Ok(());
        }
        let thinks = app.thinks.mul_f64(0.5 + f64::from(chance.below(1_000)) / 1e3);
        tokio::time::sleep(thinks).await;
    }
}

impl Reads {
    fn text(self, id: u32, chance: &mut Chance) -> String {
        match self {
            Self::Row => format!("SELECT pad FROM t WHERE id = {id}"),
            Self::Rows { least, most, each } => {
                let more = chance.below(most.saturating_sub(least).saturating_add(1));
                let rows = least.saturating_add(more);
                // Not beyond the last row.
                let from = id.min(ROWS.saturating_sub(rows));
                let (each, to) = (each.as_secs_f64(), from.saturating_add(rows));
                format!("SELECT pad, SLEEP({each}) FROM t WHERE id > {from} AND id <= {to}")
            }
        }
    }
}

/// The same numbers in every run.
#[derive(Debug)]
pub struct Chance(pub u32);

impl Chance {
    /// Below this, and 0 when it is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The low bits of such a generator repeat soon.
        (self.0 >> 8).checked_rem(limit).unwrap_or(0)
    }
}

/// Rows of the table.
pub const ROWS: u32 = 10_000;
