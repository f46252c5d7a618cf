//! Admission: may this statement run now? Dice, signals, gate, pace, queue and permits on a virtual
//! clock.
//!
//! Theory. A rule's ratio is the probability that one *check* is refused; a check is one throw of
//! the dice followed by one look at the *gate*, the signals that must be healthy. While the gate is
//! open and nobody waits for it, a statement is checked on arrival, and one that loses comes back
//! after the check interval: what a well-behaved cooperative client does, done for it. When the
//! gate is shut, or others wait already, statements queue: one lane per identity, first come first
//! served. Checks are handed out in turn, one app and one of its identities after the other, so
//! admissions are shared in proportion to 1 − ratio: at the pace at which replicas acknowledge what
//! was admitted before ([`AdaptivePacing`]), or at a ramped rate once the gate opens
//! ([`BinaryPacing`]). A statement is charged what its digest is expected to write.
//!
//! The crate is deterministic: time is an argument ([`MonoTime`]), chance is seeded, there is no
//! lock, no task, no log, no clock. It never learns who asks: it sees keys, weights and ratios. A
//! shell drives [`Controller`]: commands and `handle_*` in, then `poll_*` until there is nothing
//! left.
//!
//! A client that writes around the proxy asks with [`Controller::inquire`]: the same check, without
//! a place in line; what it is allowed is on its way to the replicas like a statement's work.
//!
//! [`Controller::starved`] names those who have been kept from working for too long, and who worked
//! meanwhile.
//!
//! [`lag`] measures replication lag by heartbeats and feeds a signal.

#![deny(clippy::arithmetic_side_effects)]

pub mod lag;

mod aged;
mod appointment;
mod budget;
mod checks;
mod claims;
mod config;
mod controller;
mod costs;
mod decision;
mod dice;
mod gate;
mod in_flight;
mod inquiry;
mod key_map;
mod latency;
mod learned;
mod pace;
mod pacing;
mod patience;
mod promises;
mod queue;
mod rates;
mod reason;
mod request;
mod ring;
mod row_work;
mod signal;
mod slow_start;
mod speed;
mod starvation;
mod sweep;
mod time;
mod turns;

pub use appointment::{Appointment, Return};
pub use budget::{
    BudgetBook, BudgetDebt, BudgetHold, BudgetKey, BudgetNews, BudgetSet, BudgetTerms, BudgetUse,
    BudgetUsed, BudgetView, DigestCost, OnExceeded,
};
pub use checks::CheckCount;
pub use config::{
    AdaptivePacing, BinaryPacing, ControllerConfig, GateConfig, InFlightPacing, OnNoData, Pacing,
    SignalConfig, SignalKey,
};
pub use controller::{BudgetAsk, Controller, FormerWatch, Remains};
pub use decision::{
    Cause, Decision, Outcome, Permit, Refusal, Resolution, Resolved, Ticket, Waiting,
    WaitingStatement, Work,
};
pub use dice::Ratio;
pub use in_flight::InFlightView;
pub use inquiry::{Answer, Inquiry, Purpose};
pub use latency::{LATENCY_BUCKETS, LatencyCounts, LatencyRecent, LatencyWindow, latency_bucket};
pub use learned::Learned;
pub use pace::{Demand, FlowView, PaceView, Round, Share, Turn};
pub use reason::{Reason, RuleLimit};
pub use request::{
    AppKey, DigestKey, GateKey, IdentityKey, Mode, OnRefusedCheck, OnTimeout, Request, RuleKey,
    Terms,
};
pub use row_work::{Appliers, Applying, RowWorkView, Step, TableKey, WriteKind, Written};
pub use signal::{Sample, SignalState, SignalView};
pub use speed::Speed;
pub use starvation::{
    APPS_MAX, Admitted, AppShare, AppShareKey, BELOW, Blocked, Census, IDENTITIES_MAX,
    MEANWHILE_MAX, Passage, STARVED_MAX, StarvationConfig, Starved, StarvedKind,
};
pub use time::MonoTime;
