//! Loads on a server that is short of slots, not of processors.
//!
//! `innodb_thread_concurrency` statements may be inside InnoDB at once (MySQL manual, "Configuring Thread
//! Concurrency for InnoDB"). One that sleeps between two rows stays inside, for it keeps the tickets
//! that it entered with, as one does that waits for a disk. Whoever finds no slot looks again after
//! `innodb_thread_sleep_delay`: nobody's turn is kept. All of it takes next to no processor, so what is
//! measured does not depend on what else the machine does.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::Failure;
use benches::web::{Reads, WebApp};
use integration::raw::{Login, RawConn};
use tokio::task::JoinSet;

/// A server with slots, its web app and its reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The name of the load.
    pub(crate) name: &'static str,
    /// Statements inside InnoDB at once.
    count: u32,
    /// For how long who found no slot sleeps, until it looks again.
    looks_after: Duration,
    web_sessions: u32,
    /// For how long the server sleeps at each row of a report.
    report_row: Duration,
    /// Orders of a report, each of five rows: at least, and at most.
    pub(crate) report_orders: (u32, u32),
    pub(crate) report_sessions: u32,
    /// Reports in flight that are tried.
    pub(crate) limits: &'static [u32],
    /// The jobs work for so long, and then rest as long.
    pub(crate) bursts: Option<Duration>,
    /// Half-way through a block the web app has as many sessions again.
    pub(crate) doubles: bool,
}

impl Slots {
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|load| load.name == name)
    }

    /// What the server is started with.
    pub(crate) fn server_args(&self) -> [String; 4] {
        [
            format!("--innodb-thread-concurrency={}", self.count),
            format!("--innodb-thread-sleep-delay={}", self.looks_after.as_micros()),
            "--innodb-adaptive-max-sleep-delay=0".to_owned(),
            "--max-connections=500".to_owned(),
        ]
    }

    /// 5 to 15 ms a statement, and 120 ms between two.
    pub(crate) fn web(&self) -> WebApp {
        WebApp {
            sessions: self.web_sessions,
            thinks: Duration::from_millis(120),
            reads: Reads::Rows { least: 2, most: 6, each: Duration::from_micros(2_500) },
            writes_one_in: None,
        }
    }

    /// The report of the orders behind this one.
    pub(crate) fn report(&self, from: u32, orders: u32) -> String {
        let (each, to) = (self.report_row.as_secs_f64(), from.saturating_add(orders));
        format!(
            "SELECT COUNT(*), SUM(l.qty * l.price), SUM(SLEEP({each})) FROM order_lines l \
             WHERE l.order_id > {from} AND l.order_id <= {to}"
        )
    }

    /// What it is, in a sentence.
    pub(crate) fn described(&self) -> String {
        let row_ms = self.report_row.as_secs_f64() * 1e3 * f64::from(LINES);
        let (least, most) = self.report_orders;
        let bursts = self.bursts.map(|time| format!(", {time:?} at work and {time:?} not"));
        format!(
            "{} slots, {} web sessions{}, {} sessions of reports of {:.0} to {:.0} ms{}",
            self.count,
            self.web_sessions,
            if self.doubles { " and as many again half-way" } else { "" },
            self.report_sessions,
            row_ms * f64::from(least),
            row_ms * f64::from(most),
            bursts.unwrap_or_default(),
        )
    }
}

/// Holds the server to what these loads are about: while all slots are taken one statement more waits
/// until one is free, and does not while one is left.
///
/// # Errors
/// When it is otherwise.
pub(crate) async fn check(addr: SocketAddr, load: &Slots) -> Result<()> {
    let one_left = beside_sleepers(addr, load.count.saturating_sub(1)).await?;
    let none_left = beside_sleepers(addr, load.count).await?;
    let waited = none_left > SLEEPS.mul_f64(0.5) && one_left < SLEEPS.mul_f64(0.5);
    eprintln!(
        "protect: a read of one row takes {one_left:?} beside {} statements of {SLEEPS:?}, {none_left:?} \
         beside {}",
        load.count.saturating_sub(1),
        load.count,
    );
    if waited { Ok(()) } else { Err("statements that sleep do not keep their slots".into()) }
}

/// How long a read of one row takes beside so many statements that have just begun to sleep.
async fn beside_sleepers(addr: SocketAddr, count: u32) -> Result<Duration> {
    let mut reader = RawConn::open(addr, &Login::new("web")).await?;
    let mut sleepers = JoinSet::new();
    for _ in 0..count {
        let mut conn = RawConn::open(addr, &Login::new("etl")).await?;
        let sleeps = SLEEPS.as_secs_f64() / 4.0;
        let text = format!("SELECT SUM(SLEEP({sleeps})) FROM t WHERE id > 4 AND id <= 8");
        sleepers.spawn(async move {
            conn.query(text).await?.accepted()?;
            Ok::<(), Failure>(())
        });
    }
    tokio::time::sleep(SLEEPS / 4).await;
    let began = Instant::now();
    reader.query("SELECT n FROM t WHERE id = 1").await?.accepted()?;
    let took = began.elapsed();
    while let Some(ended) = sleepers.join_next().await {
        ended?.map_err(|failure| failure.to_string())?;
    }
    Ok(took)
}

/// For how long those sleep that take the slots.
const SLEEPS: Duration = Duration::from_millis(800);

const ALL: [&Slots; 8] =
    [&SIXTEEN, &SHORT, &LONG, &EIGHT, &MORE_WEB, &BURSTS, &DOUBLES, &RARE_LOOKS];

/// The others differ from this one in what their names say.
const SIXTEEN: Slots = Slots {
    name: "slots",
    count: 16,
    looks_after: Duration::from_millis(1),
    web_sessions: 80,
    report_row: Duration::from_millis(10),
    report_orders: (2, 6),
    report_sessions: 32,
    limits: &[2, 4, 6, 7, 8, 9, 10, 12],
    bursts: None,
    doubles: false,
};
const SHORT: Slots = Slots {
    name: "slots-short",
    report_row: Duration::from_millis(4),
    report_orders: (1, 3),
    ..SIXTEEN
};
const LONG: Slots = Slots { name: "slots-long", report_orders: (10, 30), ..SIXTEEN };
const EIGHT: Slots = Slots {
    name: "slots-8",
    count: 8,
    web_sessions: 40,
    report_sessions: 16,
    limits: &[1, 2, 3, 4, 5, 6],
    ..SIXTEEN
};
const MORE_WEB: Slots = Slots { name: "slots-web", web_sessions: 110, ..SIXTEEN };
const BURSTS: Slots =
    Slots { name: "slots-bursts", bursts: Some(Duration::from_secs(4)), ..SIXTEEN };
const DOUBLES: Slots = Slots { name: "slots-doubles", web_sessions: 45, doubles: true, ..SIXTEEN };
/// As the server is shipped, 10 ms: it finds slots less often, so one that is missed costs more.
const RARE_LOOKS: Slots =
    Slots { name: "slots-looks", looks_after: Duration::from_millis(10), ..SIXTEEN };

/// Rows of an order.
const LINES: u32 = 5;
