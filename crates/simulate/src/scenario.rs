//! A scenario: what is simulated, and what is expected of it.

mod amount;
mod compile;
mod expect;
mod faults;
mod lag;
mod limits;
mod raw;
mod rule;
mod signals;
mod write;

use std::fmt;
use std::time::Duration;

use admission::MonoTime;
use policy::reading::{Fault, FromNode as _, Place, Value, parse};

pub use self::amount::Amount;
pub use self::expect::Expectation;
pub use self::lag::LagLimits;
pub use self::raw::duration;
pub use self::rule::{Effect, Gate, MetRule, SignalSet};
pub use self::signals::{Service, SignalKind, SignalPlan};

/// A scenario whose values have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// How long it runs.
    pub duration: Duration,
    /// What is not counted in the figures, from the beginning.
    pub warmup: Duration,
    /// Where chance comes from.
    pub seed: u64,
    /// How contended gates let through.
    pub pacing: Pace,
    /// What a row of a statement counts as.
    pub row_costs: RowCosts,
    /// What the lag must stay below.
    pub threshold: Duration,
    /// What else is said of the lag.
    pub lag: LagLimits,
    /// Time until a lost check is repeated.
    pub check_interval: Duration,
    /// Checks a second in the first second after a gate opens that has no pace.
    pub release_per_s: u32,
    /// Most waiters in all.
    pub queue_len_max: u32,
    /// How often a heartbeat is written.
    pub heartbeat_interval: Duration,
    /// How often a replica is asked for it.
    pub probe_interval: Duration,
    /// An answer arrives up to this much after the replica was looked at.
    pub probe_delay: Duration,
    /// Rows a second that the primary can take.
    pub primary: Amount,
    /// The least a statement takes on the primary.
    pub latency: Duration,
    /// How many statements the primary works on at a time. `None`: on all there are.
    pub service: Option<Service>,
    /// The signals other than the lag.
    pub signals: Vec<SignalPlan>,
    /// The replicas, named `replica-1` and so on in their order.
    pub replicas: Vec<Replica>,
    /// Rows a second that no rule gates.
    pub background: Amount,
    /// Sluices in front of the primary, each with its own controller.
    pub proxies: usize,
    /// When the proxies are started anew.
    pub restarts: Vec<MonoTime>,
    /// Whether the next begins with what the one before had learned.
    pub handover: bool,
    /// Who asks.
    pub apps: Vec<App>,
    /// What is expected.
    pub expect: Vec<Expectation>,
}

/// What a row counts as at the pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCosts {
    /// `told`: a row is a row.
    Told,
    /// `applied`: what it was found to cost the replicas.
    Applied,
}

impl RowCosts {
    /// The word in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Applied => "applied",
        }
    }
}

/// How contended gates let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// `adaptive`
    Adaptive,
    /// `binary`
    Binary,
}

impl Pace {
    /// The word in files and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Binary => "binary",
        }
    }
}

/// One replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    /// Rows a second that it applies.
    pub apply: Amount,
    /// Every tick its rate is multiplied by a number between 1 − jitter and 1 + jitter.
    pub jitter: f64,
    /// What its lag must stay below; `None`: the threshold of the scenario.
    pub threshold: Option<Duration>,
    /// When it is out of the cluster.
    pub away: Vec<Away>,
    /// How long the stream takes to it: from each time on, so long. The first is at the origin.
    pub transit: Vec<(MonoTime, Duration)>,
    /// Threads that apply, each with its part of the rate.
    pub appliers: u32,
    /// How many its settings say there are, which is what Sluice knows.
    pub workers: u32,
    /// Whether what they apply is committed in the primary's order.
    pub preserve_commit_order: bool,
    /// Work of a transaction whatever it writes, in rows.
    pub commit_cost: f64,
}

impl Replica {
    /// How long the stream takes.
    #[must_use]
    pub fn transit_at(&self, now: MonoTime) -> Duration {
        let begun = self.transit.iter().take_while(|(from, _)| *from <= now);
        begun.last().map_or(Duration::ZERO, |(_, transit)| *transit)
    }
}

/// When something is the case: from the first time up to and without the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From.
    pub from: MonoTime,
    /// Up to.
    pub to: MonoTime,
}

/// When a replica is out of the cluster.
pub type Away = Window;

impl Window {
    /// Whether `at` is inside.
    #[must_use]
    pub fn contains(&self, at: MonoTime) -> bool {
        self.from <= at && at < self.to
    }
}

/// One app: sessions that ask in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// What it is called.
    pub name: String,
    /// Its sessions.
    pub sessions: u32,
    /// The Sluices that its sessions are spread over, numbered from 0. None: all of them.
    pub proxies: Vec<usize>,
    /// Identities that its sessions are spread over.
    pub identities: u32,
    /// What its statements meet.
    pub rule: MetRule,
    /// The least a statement takes on the primary. `None`: the scenario's latency.
    pub latency: Option<Duration>,
    /// Texts that its statements have: each has any of them, as likely.
    pub digests: u32,
    /// Rows that a statement writes.
    pub rows: Rows,
    /// Work of a row on a replica, in rows.
    pub apply_cost: f64,
    /// What it writes into. `None`: a table of its own.
    pub table: Option<Table>,
    /// Rows that a statement tells beside those it writes.
    pub phantom_rows: u32,
    /// Statements under one permit.
    pub transactions: u32,
    /// Mean time between a result and the next statement.
    pub think_time: Duration,
    /// How long after a refusal its sessions ask again. `None`: when they are told to.
    pub comes_back_after: Option<Duration>,
    /// When its sessions issue statements; in order, and never empty.
    pub active: Vec<Window>,
}

/// A table that several apps write into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// As the file calls it.
    pub name: String,
    /// The first app that writes into it, numbered from 0.
    pub number: u64,
}

/// How many rows a statement writes: any number between these, each as likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

/// What is wrong with a scenario's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// Each fault: where, and what would be right, in the order of the file.
    pub faults: Vec<Fault>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ScenarioError {}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// All faults, each with its place; or what is not YAML.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let whole = |message: String| {
            let fault = Fault { path: String::new(), line: 1, message };
            ScenarioError { faults: vec![fault] }
        };
        if text.len() > limits::TEXT_LEN_MAX {
            return Err(whole(format!("the file is longer than {} bytes", limits::TEXT_LEN_MAX)));
        }
        let root = parse(text).map_err(|fault| ScenarioError { faults: vec![fault] })?;
        if root.value == Value::Nothing {
            return Err(whole("the file is empty".to_owned()));
        }
        let mut faults = faults::Faults::of(&root);
        let place = Place { path: String::new(), line: root.line };
        let compiled = match raw::Scenario::from_node(root, &place, faults.reading()) {
            Some(raw) => compile::compile(raw, faults),
            None => Err(faults.into_sorted()),
        };
        compiled.map_err(|faults| ScenarioError { faults })
    }

    /// The scenario as a file that [`Self::parse`] reads as the same scenario.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::yaml(self)
    }
}
