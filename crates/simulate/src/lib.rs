//! The shipped admission controller against a model of a primary, its replicas and closed-loop clients.
//!
//! Theory. Everything happens on a virtual clock, one event after another, and chance comes from the scenario's
//! seed: the same scenario gives the same figures, to the last digit. What decides is not modelled:
//! [`admission::Controller`] and [`admission::lag::LagTracker`] are driven as the proxy drives them, with a timer of
//! a millisecond, heartbeats and probes at the proxy's rhythm, and hibernation when nobody asks.
//!
//! The model, in rows and seconds:
//!
//! - The *primary* serves statements first come first served at `writes_per_s` rows a second, and none takes less
//!   than `latency`. A commit appends a transaction to the queue of every replica that is present.
//!   With `service` it works on so many statements at a time, each for its own time, and the others wait.
//! - A *signal* other than the lag is looked at four times a second: the statements at the primary, or a
//!   percentile of an app's latencies there, measured as the proxy measures it.
//! - A *replica* is that queue, served at `apply_per_s`, times a jitter drawn every [`TICK`]. A transaction is
//!   applied when its last row is. Heartbeats cost nothing and keep their place in the order.
//! - *Background* writes reach the replicas as well, and no rule gates them.
//! - There may be several *Sluices*, each with a controller, heartbeats and probes of its own and a part of the
//!   sessions. They tell each other how fast they go and what they want, once a second.
//! - A *client* issues a statement, waits for the decision and for the commit, thinks, and issues the next. One
//!   that was refused comes back after `retry_after`.
//! - A *rule* is its terms, which the controller is given, and its `speed`, a pause of the session before it
//!   asks. What it exempts or denies asks nobody.
//!
//! The *true lag* of a replica is the age of the oldest transaction it has not applied. Sluice never sees it: it sees
//! heartbeats, late. Figures are about the true lag.

#![deny(clippy::arithmetic_side_effects)]

mod engine;
mod report;
mod scenario;

use std::time::Duration;

pub use engine::{Bound, TooMuch, WORK_MAX, refusals, simulate, simulate_within};
pub use report::{AppFigures, Distribution, RefusedStatement, Report};
pub use scenario::{
    Amount, App, Away, Effect, Expectation, Gate, LagLimits, MetRule, Pace, Replica, RowCosts,
    Rows, Scenario, ScenarioError, Service, SignalKind, SignalPlan, SignalSet, Window, duration,
};

/// How often the replicas' jitter is drawn and their lag is sampled.
pub const TICK: Duration = Duration::from_millis(10);
