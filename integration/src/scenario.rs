//! What the acceptance tests say in one line each: shared servers, a gate that a test shuts by hand, a
//! statement that is still waiting, a refusal taken apart.

use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use crate::certificates::Certificates;
use crate::error::{HarnessError, Result};
use crate::raw::{Login, RawConn};
use crate::server::{Flavour, Server};
use crate::sluice::{Metrics, SluiceProcess};
use crate::topology::{Topology, TopologyOptions};

pub use chance::Chance;
pub use held::Held;
pub use pending::{Answered, Pending};
pub use refused::Refused;
pub use siege::{Neighbour, Siege};

mod chance;
mod held;
mod pending;
mod refused;
mod siege;

/// Servers that the tests of one file share: each test brings its own tables and its own Sluice. They
/// end with the test process, by its guard.
#[derive(Debug)]
pub struct Shared {
    flavour: Flavour,
    in_tls: bool,
    cell: OnceCell<Topology>,
}

impl Shared {
    /// A server that is started when the first test asks for it.
    #[must_use]
    pub const fn new(flavour: Flavour) -> Self {
        Self { flavour, in_tls: false, cell: OnceCell::const_new() }
    }

    /// The same, and it offers TLS: MariaDB 10.11 makes no certificate for itself.
    #[must_use]
    pub const fn in_tls(flavour: Flavour) -> Self {
        Self { flavour, in_tls: true, cell: OnceCell::const_new() }
    }

    /// The server, without replicas.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn get(&self) -> Result<&Topology> {
        let start = || async {
            let mut options = TopologyOptions::new(self.flavour, 0);
            if self.in_tls {
                // Read when the server starts, and of no use after that.
                let certificates = Certificates::new()?;
                options.extra_args = certificates.server_args()?;
                return Topology::start(options).await;
            }
            Topology::start(options).await
        };
        self.cell.get_or_try_init(start).await
    }
}

/// A signal whose value a test sets: Sluice asks for it by a query of its own (a custom signal), so a
/// gate on it shuts and opens like any other, at once and without load.
#[derive(Debug)]
pub struct Switch<'a> {
    server: &'a Server,
    name: &'static str,
}

impl<'a> Switch<'a> {
    /// A switch of this name on the primary, healthy.
    ///
    /// # Errors
    /// When its table cannot be made.
    pub async fn new(server: &'a Server, name: &'static str) -> Result<Self> {
        let table = format!("CREATE TABLE sluice.{name} (value INT NOT NULL)");
        server.run_sql(&[&table, &format!("INSERT INTO sluice.{name} VALUES (0)")]).await?;
        Ok(Self { server, name })
    }

    /// The line below `signals`.
    #[must_use]
    pub fn signal(&self) -> String {
        let name = self.name;
        format!("{name}: {{ query: \"SELECT value FROM sluice.{name}\", threshold: 50 }}")
    }

    /// Makes the signal unhealthy, and waits until Sluice knows.
    ///
    /// # Errors
    /// When Sluice does not shut the gate in time.
    pub async fn shut(&self, sluice: &SluiceProcess) -> Result<()> {
        self.set(100).await?;
        wait_for_signal(sluice, self.name, 0.0).await
    }

    /// Makes the signal healthy, and waits until Sluice knows.
    ///
    /// # Errors
    /// When Sluice does not open the gate in time.
    pub async fn open(&self, sluice: &SluiceProcess) -> Result<()> {
        self.set(0).await?;
        wait_for_signal(sluice, self.name, 1.0).await
    }

    async fn set(&self, value: i32) -> Result<()> {
        self.server.run_sql(&[&format!("UPDATE sluice.{} SET value = {value}", self.name)]).await
    }
}

/// Waits until `sluice_gate_open` of a signal has this value.
///
/// # Errors
/// When it has not in time.
pub async fn wait_for_signal(sluice: &SluiceProcess, signal: &str, value: f64) -> Result<()> {
    let what = format!("sluice_gate_open of {signal} is {value}");
    let is_there = |metrics: &Metrics| {
        metrics.value("sluice_gate_open", &[("signal", signal)]).is_some_and(|now| is(now, value))
    };
    sluice.wait_for_metrics(&what, SIGNAL_LIMIT, is_there).await.map(drop)
}

/// Waits until so many statements wait under a rule.
///
/// # Errors
/// When they do not in time.
pub async fn wait_for_depth(sluice: &SluiceProcess, rule: &str, depth: u32) -> Result<()> {
    let what = format!("{depth} statements wait under {rule}");
    let is_there = |metrics: &Metrics| {
        is(metrics.sum("sluice_queue_depth", &[("rule", rule)]), f64::from(depth))
    };
    sluice.wait_for_metrics(&what, DEPTH_LIMIT, is_there).await.map(drop)
}

/// Waits until a metric, summed over the labels that are not named, has this value. What is counted of a
/// statement is counted just after its client has its answer.
///
/// # Errors
/// When it has not in time.
pub async fn wait_for_sum(
    sluice: &SluiceProcess,
    name: &str,
    labels: &[(&str, &str)],
    value: f64,
) -> Result<()> {
    let what = format!("{name}{labels:?} is {value}");
    let is_there = |metrics: &Metrics| is(metrics.sum(name, labels), value);
    sluice.wait_for_metrics(&what, DEPTH_LIMIT, is_there).await.map(drop)
}

/// Logs in through Sluice as an account of the harness; its name is the app, for nothing else names one.
///
/// # Errors
/// When the login fails.
pub async fn connect(sluice: &SluiceProcess, user: &str) -> Result<RawConn> {
    RawConn::open(sluice.listen_addr(), &Login::new(user)).await
}

/// Logs in through Sluice as `app`, calling itself something else by a connection attribute.
///
/// # Errors
/// When the login fails.
pub async fn connect_as(sluice: &SluiceProcess, app: &str) -> Result<RawConn> {
    let login = Login::new("app").attribute("sluice_app", app);
    RawConn::open(sluice.listen_addr(), &login).await
}

/// The first column of a query that gives numbers, asked of the server itself.
///
/// # Errors
/// When the query fails.
pub async fn numbers(server: &Server, sql: &str) -> Result<Vec<i64>> {
    server.query(sql).await
}

/// Asks again until the answer is `true`.
///
/// # Errors
/// When it is not within `limit`; `what` then says what was waited for.
pub async fn wait_until<F>(what: &str, limit: Duration, ask: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    let started = Instant::now();
    while !ask().await? {
        if started.elapsed() > limit {
            return Err(HarnessError::TimedOut { what: what.into(), after: limit });
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Whether a metric has exactly this value: counts and flags are whole numbers.
#[must_use]
pub fn is(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

const POLL: Duration = Duration::from_millis(10);
const SIGNAL_LIMIT: Duration = Duration::from_secs(15);
const DEPTH_LIMIT: Duration = Duration::from_secs(10);
