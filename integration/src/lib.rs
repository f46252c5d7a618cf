//! Real servers and real clients around Sluice.
//!
//! A test owns what it starts:
//!
//! ```no_run
//! # use integration::topology::Topology;
//! # use integration::replica::Lag;
//! # async fn demo() -> integration::error::Result<()> {
//! let mut servers = Topology::mysql(2).await?;
//! servers.primary.run_sql(&["CREATE TABLE test.t (id INT PRIMARY KEY)"]).await?;
//! for replica in &mut servers.replicas {
//!     replica.lag_start(Lag::StoppedApplier).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The servers come from `scripts/install-servers`. Everything listens on 127.0.0.1 only, runs in
//! folders `sluice-it-*` of the system's temporary folder, and is gone when its owner is.

pub mod certificates;
pub mod client;
pub mod error;
pub mod fidelity;
pub mod footprint;
pub mod ghost;
pub mod lag_meter;
pub mod ports;
pub mod prometheus;
pub mod raw;
pub mod replica;
pub mod scenario;
pub mod server;
pub mod siege;
pub mod sluice;
mod supervised;
pub mod tools;
pub mod topology;
pub mod writers;
