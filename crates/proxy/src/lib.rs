//! The shell: sockets, tasks, clock, probes, reload, drain, telemetry. The only crate that touches
//! MySQL sockets or the clock; what may run, and when, is decided in the crates below.

mod alarm;
mod auth;
pub mod board;
pub mod clock;
pub mod cluster;
mod connection;
mod current;
pub mod cut_overs;
pub mod descriptors;
mod explain;
mod facts;
pub mod follower;
pub mod inherited;
pub mod insights;
mod kill;
mod latency;
mod left_behind;
mod link;
mod listener;
mod printable;
pub mod probe;
pub mod registry;
pub mod reload;
pub mod rule_table;
mod runaway;
pub mod secret;
pub mod server;
mod socket;
mod statement_log;
mod stream;
pub mod takeover;
pub mod telemetry;
mod texts;
pub mod tls;
pub mod unbound;
pub mod workers;
