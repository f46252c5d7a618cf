//! What is answered: rules that stand, and where a change has gone.

use std::sync::Arc;
use std::time::Duration;

use admission::Mode;
use policy::{RuntimeEffect, UnixTime};

/// A runtime rule that stands, in one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingRule {
    /// Its name: the `rule` label.
    pub name: Arc<str>,
    /// The cluster.
    pub cluster: Arc<str>,
    /// `match.app`.
    pub app: Option<String>,
    /// `match.user`.
    pub user: Option<String>,
    /// The classes that it was made for. Empty: the usual ones for its effect.
    pub classes: Vec<String>,
    /// What it does.
    pub effect: RuntimeEffect,
    /// The cluster's: under `observe` it is only counted.
    pub mode: Mode,
    /// Who made it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// When it was made, by the clock of where it was made.
    pub made_at: UnixTime,
    /// When it ends, by this machine's clock.
    pub ends_at: UnixTime,
    /// How long that is.
    pub left: Duration,
    /// Its version in the table on the primary. `None`: it is not written yet.
    pub version: Option<u64>,
}

/// What a change has come to. It is in force at this Sluice in any case.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Receipt {
    /// The rules that were made, or as they stood when they were lifted.
    pub rules: Vec<StandingRule>,
    /// Whether it is in the journal, on disk; else why not.
    pub journal: Result<(), String>,
    /// Whether it is in the table on each cluster's primary.
    pub table: Vec<TableReceipt>,
}

/// Whether a change is in the table of one cluster's primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReceipt {
    /// The cluster.
    pub cluster: Arc<str>,
    /// The version that the primary gave it; else why it is written later, or never.
    pub written: Result<u64, String>,
}

impl Receipt {
    /// Whether a restart of this Sluice leaves the change in force: it is on disk, or in every
    /// table.
    #[must_use]
    pub fn outlives_restart(&self) -> bool {
        self.journal.is_ok() || self.table.iter().all(|table| table.written.is_ok())
    }
}
