//! The report jobs: what they ask, and how fast.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::{Failure, beside};
use benches::export::{ORDERS, Tool};
use benches::web::{Chance, Reads, WebApp};
use integration::raw::{Login, RawConn};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::slots::Slots;

/// What a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The totals of all orders: nothing but the processor, for some tens of milliseconds.
    Scans,
    /// Orders that a tool takes row by row: a few hundredths of a core for half a second.
    Exports,
    /// The totals of a page of orders: nothing but the processor, for about a millisecond.
    Pages,
    /// Totals of a few orders for which the server keeps one of its slots, and sleeps.
    Slots(&'static Slots),
}

impl Kind {
    pub(crate) fn of(name: Option<&str>) -> Result<Self> {
        let name = name.unwrap_or_default();
        let kinds = [Self::Scans, Self::Exports, Self::Pages];
        let found = kinds.into_iter().find(|kind| kind.name() == name);
        let found = found.or_else(|| Slots::of(name).map(Self::Slots));
        found
            .ok_or_else(|| "usage: protect slots[-…]|scans|exports|pages [SECONDS] [FOLDER]".into())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scans => "scans",
            Self::Exports => "exports",
            Self::Pages => "pages",
            Self::Slots(load) => load.name,
        }
    }

    /// The app that is protected from them.
    pub(crate) fn web(self) -> WebApp {
        match self {
            Self::Scans | Self::Exports | Self::Pages => WEB_APP,
            Self::Slots(load) => load.web(),
        }
    }

    /// Whether the app has as many sessions again half-way through a block.
    pub(crate) fn web_doubles(self) -> bool {
        match self {
            Self::Scans | Self::Exports | Self::Pages => false,
            Self::Slots(load) => load.doubles,
        }
    }

    /// What the server is started with.
    pub(crate) fn server_args(self) -> Vec<String> {
        match self {
            Self::Scans | Self::Exports | Self::Pages => Vec::new(),
            Self::Slots(load) => load.server_args().into(),
        }
    }

    /// The load in a few words.
    pub(crate) fn described(self) -> String {
        match self {
            Self::Scans | Self::Exports | Self::Pages => {
                format!(
                    "{} web sessions, {} sessions of reports",
                    WEB_APP.sessions,
                    self.sessions()
                )
            }
            Self::Slots(load) => load.described(),
        }
    }

    /// Sessions of the four jobs together.
    pub(crate) fn sessions(self) -> u32 {
        match self {
            Self::Scans | Self::Pages => 16,
            Self::Exports => 32,
            Self::Slots(load) => load.report_sessions,
        }
    }

    /// Reports in flight that are tried.
    pub(crate) fn limits(self) -> &'static [u32] {
        match self {
            Self::Scans | Self::Pages => &[1, 2, 3, 4, 6, 8],
            Self::Exports => &[1, 2, 4, 8, 12, 16],
            Self::Slots(load) => load.limits,
        }
    }

    /// Parts of the time in which one is in flight that are tried.
    pub(crate) fn parts(self) -> &'static [f64] {
        match self {
            Self::Scans | Self::Pages => &[0.125, 0.5],
            Self::Exports | Self::Slots(_) => &[],
        }
    }
}

/// Jobs at work, on a thread of their own, until they are dropped. They ask as fast as they are let.
#[derive(Debug)]
pub(crate) struct Jobs {
    done: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::result::Result<(), Failure>>>,
}

impl Jobs {
    pub(crate) fn start(addr: SocketAddr, kind: Kind, sessions: u32) -> Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let done = Arc::new(AtomicU64::new(0));
        let counted = done.clone();
        let thread = beside(THREAD, move || async move {
            let mut all = JoinSet::new();
            for session in 0..sessions {
                all.spawn(one(addr, kind, session, counted.clone()));
            }
            tokio::select! {
                Some(ended) = all.join_next() => ended?,
                _ = stopped => Ok(()),
            }
        })?;
        Ok(Self { done, stop: Some(stop), thread: Some(thread) })
    }

    /// Reports that have come to their end since the last call.
    ///
    /// # Errors
    /// When one has failed.
    pub(crate) fn take(&mut self) -> Result<u64> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end()?;
            return Err("the report jobs have ended".into());
        }
        Ok(self.done.swap(0, Ordering::Relaxed))
    }

    fn end(&mut self) -> Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(failure))) => Err(failure.to_string().into()),
            Some(Err(_)) => Err("the report jobs have panicked".into()),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // Whoever wanted to know of a failure has asked for what was done.
        self.end().ok();
    }
}

async fn one(
    addr: SocketAddr,
    kind: Kind,
    session: u32,
    done: Arc<AtomicU64>,
) -> std::result::Result<(), Failure> {
    let login = Login::new("etl");
    match kind {
        Kind::Scans => totals(RawConn::open(addr, &login).await?, ORDERS, session, &done).await,
        Kind::Pages => totals(RawConn::open(addr, &login).await?, PAGE, session, &done).await,
        Kind::Exports => {
            let tool = Tool::open(addr, &login, WORKS).await;
            let mut tool = tool.map_err(|failure| failure.to_string())?;
            loop {
                tool.export(EXPORTED).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
        Kind::Slots(load) => {
            sleeping(RawConn::open(addr, &login).await?, load, session, &done).await
        }
    }
}

async fn sleeping(
    mut conn: RawConn,
    load: &Slots,
    session: u32,
    done: &AtomicU64,
) -> std::result::Result<(), Failure> {
    conn.set_read_limit(ANSWER_LIMIT);
    let began = Instant::now();
    let mut chance = Chance(session.saturating_add(1));
    let (least, most) = load.report_orders;
    loop {
        if let Some(time) = load.bursts {
            rest(began.elapsed(), time).await;
        }
        let orders = least.saturating_add(chance.below(most.saturating_sub(least) + 1));
        let from = chance.below(ORDERS.saturating_sub(orders));
        conn.query(load.report(from, orders)).await?.accepted()?;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every second such time is one of rest: waits for its end.
async fn rest(since: Duration, time: Duration) {
    let within = Duration::from_secs_f64(since.as_secs_f64() % (time * 2).as_secs_f64());
    if within >= time {
        tokio::time::sleep((time * 2).saturating_sub(within)).await;
    }
}

async fn totals(
    mut conn: RawConn,
    orders: u32,
    session: u32,
    done: &AtomicU64,
) -> std::result::Result<(), Failure> {
    // A report waits for as long as it must.
    conn.set_read_limit(ANSWER_LIMIT);
    let pages = ORDERS.checked_div(orders).unwrap_or(1);
    for page in (session..).map(|page| page.checked_rem(pages).unwrap_or(0)) {
        let from = page.saturating_mul(orders);
        let to = from.saturating_add(orders);
        conn.query(format!("{TOTALS} WHERE o.id > {from} AND o.id <= {to} GROUP BY kind"))
            .await?
            .accepted()?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Some 750 statements a second, of 16 sessions.
const WEB_APP: WebApp = WebApp {
    sessions: 16,
    thinks: Duration::from_millis(20),
    reads: Reads::Row,
    writes_one_in: None,
};
/// The name of their thread.
pub(crate) const THREAD: &str = "reports";
const TOTALS: &str = "SELECT o.id % 7 AS kind, COUNT(*), SUM(l.qty * l.price), MAX(l.sku) \
                      FROM orders o JOIN order_lines l ON l.order_id = o.id";
/// Orders of a page.
const PAGE: u32 = 250;
/// Orders of an export, and what the tool works on a row of them.
const EXPORTED: u32 = 1_000;
const WORKS: Duration = Duration::from_micros(500);
const ANSWER_LIMIT: Duration = Duration::from_secs(600);
