//! The YAML file to validated rules, identity, and which rule decides.
//!
//! ```text
//! text ─▶ raw ─▶ compile ─▶ Config { clusters: ClusterPolicy }
//!                                         │
//!              identity::resolve ─▶ Facts ─▶ decide ─▶ Verdict ─▶ refusal
//! ```
//!
//! Everything here is a pure function: no clock, no environment, no socket. [`load`] reads a file
//! and finds all of its faults at once; what it returns is valid. For each statement
//! [`identity::resolve`] finds out who asks and [`decide`] what becomes of it; neither allocates
//! once warm.

#![deny(clippy::arithmetic_side_effects)]

pub mod identity;
pub mod refusal;

mod admin;
mod ahead;
mod budget;
mod bypass;
mod cidr;
mod cluster;
mod compile;
mod compression;
mod condition;
mod config;
mod decide;
mod diff;
mod explain;
mod facts;
mod fault;
mod fnv;
mod guard;
mod history;
mod insights;
mod label;
mod network;
mod patterns;
mod priority;
mod probing;
mod raw;
pub mod reading;
mod reference;
mod replica;
mod rule;
mod rules;
mod runaway;
mod running;
mod schedule;
mod secret;
mod shape;
mod time;
mod tls;
mod verdict;
mod warnings;
mod written;

pub use admin::{ADMIN_TOKEN_LEN_MIN, Admin, AdminAccess, AdminToken};
pub use ahead::{Ahead, Foreseen, MetBudget, Recorded, Unseen};
pub use budget::{Budget, Budgets, Per};
pub use bypass::Bypass;
pub use cidr::Cidr;
pub use cluster::{
    ClusterPolicy, LagSource, Latency, PacingKind, Probe, RowCosts, Scope, Signal, SignalKind,
    Starvation, TableName,
};
pub use compile::{
    RUNTIME_PREFIX, RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec, admin_of, load,
    named_by,
};
pub use compression::{BackendCompression, ClientCompression, CompressionLevel};
pub use condition::Condition;
pub use config::{Config, Metrics, NamedElsewhere, NamedLegs, NamedSecret};
pub use decide::{decide, watching};
pub use diff::{Change, Edit, FixedKey, Pending, edit};
pub use explain::{BudgetMet, Explanation, GuardSaid, Question, Skipped, explain};
pub use facts::Facts;
pub use fault::Fault;
pub use guard::{
    Estimate, Guard, GuardHit, GuardMode, GuardReport, Guarded, Guards,
    write_message as write_guard_message,
};
pub use history::HistoryLimits;
pub use insights::{InsightTags, Insights};
pub use label::app_label;
pub use network::{Keepalive, Listen, Network, ProxyProtocol, SendProxy, ServerAddress};
pub use patterns::Patterns;
pub use priority::Priority;
pub use raw::parse_duration;
pub use reference::config_reference;
pub use replica::{ReplicaBook, ReplicaTerms};
pub use rule::{
    Action, GateFrom, Gated, OnClientGone, RefusalProfile, Rule, Standing, app_key, identity_key,
    rule_key, ruleless_app_key,
};
pub use rules::Rules;
pub use runaway::{
    Likeness, Quarantine, QuarantineId, Quarantined, Runaway, RunawayAction, Watch, WatchBy,
    is_killable,
};
pub use running::{Met, Running, WatchedNow, limits_otherwise};
pub use schedule::Schedule;
pub use secret::Secret;
pub use shape::{OwnedShape, Shape, ShapeNeeds, ShapeScratch, ShapeText};
pub use time::{NoTime, UnixTime};
pub use tls::{
    BackendTls, BackendTlsMode, ClientTls, ClientTlsMode, Redirect, TlsFile, TlsIdentity,
    TlsVersion,
};
pub use verdict::{Cover, PassReason, Verdict};
pub use warnings::{load_with_warnings, warnings_of_made};
pub use written::{table_key, written};
