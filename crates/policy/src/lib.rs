//! The YAML file to validated rules, identity, and which rule decides.
//!
//! ```text
//! text ─▶ raw ─▶ compile ─▶ Config { clusters: ClusterPolicy }
//!                                         │
//!              identity::resolve ─▶ Facts ─▶ evaluate ─▶ Verdict ─▶ refusal
//! ```
//!
//! Everything here is a pure function: no clock, no environment, no socket. [`load`] reads a file and finds
//! all of its faults at once; what it returns is valid. For each statement [`identity::resolve`] finds out
//! who asks and [`ClusterPolicy::evaluate`] which rule decides; neither allocates once warm.

#![deny(clippy::arithmetic_side_effects)]

pub mod evaluate;
pub mod identity;
pub mod refusal;

mod cluster;
mod compile;
mod compression;
mod condition;
mod config;
mod diff;
mod explain;
mod fault;
mod fnv;
mod label;
mod network;
mod priority;
mod probing;
mod raw;
mod reference;
mod rule;
mod schedule;
mod shape;
mod tls;

pub use cluster::{
    ClusterPolicy, LagSource, PacingKind, Probe, Scope, Signal, SignalKind, Starvation, TableName,
};
pub use compile::load;
pub use compression::{BackendCompression, ClientCompression, CompressionLevel};
pub use condition::{Cidr, Condition, Patterns};
pub use config::{Admin, Config, Metrics, Secret};
pub use diff::{Change, diff};
pub use evaluate::{Facts, PassReason, Verdict};
pub use explain::{Explanation, Question, Skipped, explain};
pub use fault::Fault;
pub use label::app_label;
pub use network::{Keepalive, Listen, Network, ProxyProtocol, SendProxy, ServerAddress};
pub use priority::Priority;
pub use reference::config_reference;
pub use rule::{
    Action, Gated, RefusalProfile, Rule, Standing, UnixTime, app_key, identity_key,
    ruleless_app_key,
};
pub use schedule::Schedule;
pub use shape::{OwnedShape, Shape, ShapeNeeds, ShapeScratch, ShapeText};
pub use tls::{
    BackendTls, BackendTlsMode, ClientTls, ClientTlsMode, Redirect, TlsFile, TlsIdentity,
    TlsVersion,
};
