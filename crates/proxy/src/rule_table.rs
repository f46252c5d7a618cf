//! What the probes know of the table of runtime rules: its rows, and who keeps them.
//!
//! The probes read and write the table on the primary ([`crate::probe`]); what its rows mean is
//! for the [`RuleKeeper`]. Versions are given by the primary, and order is by them alone.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The highest version that is one: rules made without a pause do not come to it in a million years.
/// Whoever wrote a higher one is no Sluice, and those that follow it would not fit the column.
pub const VERSION_MAX: u64 = u64::MAX >> 1;

/// A row as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRow {
    /// The rule's name: with the cluster's, the key.
    pub name: String,
    /// Given by the primary when it was written.
    pub version: u64,
    /// How long the rule stands yet, by the primary's clock. Zero: it has ended.
    pub left: Duration,
    /// It was lifted.
    pub lifted: bool,
    /// Who made or lifted it.
    pub author: String,
    /// The rule, as its keeper wrote it.
    pub body: String,
}

/// A row to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRow {
    /// The rule's name, of characters that need no quoting.
    pub name: String,
    /// Which change of the rule this is, for the keeper.
    pub change: u64,
    /// How long the rule stands yet.
    pub left: Duration,
    /// It was lifted.
    pub lifted: bool,
    /// Who made or lifted it.
    pub author: String,
    /// The rule.
    pub body: String,
    /// Only over a row of this version or a lower one. `None`: over any.
    pub over: Option<u64>,
}

/// A row that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The rule's name.
    pub name: String,
    /// [`WriteRow::change`].
    pub change: u64,
    /// What the primary gave it.
    pub version: u64,
}

/// What a reading of the table gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The rows since the version that was asked for.
    Changes(Vec<ReadRow>),
    /// All rows: what is not there, the primary does not have.
    Everything {
        /// The rows.
        rows: Vec<ReadRow>,
        /// The highest version that it has given.
        counter: u64,
    },
}

/// Who keeps the runtime rules of one cluster.
pub trait RuleKeeper: Debug + Send + Sync {
    /// What waits to be written now, at most so many rows. Versions given to them must be above
    /// [`Self::highest`].
    fn outbox(&self, rows_max: usize) -> Vec<WriteRow>;

    /// Up to which version the table was read.
    fn read_to(&self) -> u64;

    /// The highest version that was ever seen.
    fn highest(&self) -> u64;

    /// Rows have been committed.
    fn handle_written(&self, rows: Vec<Written>);

    /// Rows could not be written, for this reason; they stay in the outbox.
    fn handle_unwritten(&self, why: &str);

    /// The table was read.
    fn handle_reading(&self, reading: Reading);

    /// The table could not be read, for this reason.
    fn handle_unread(&self, why: &str);

    /// Resolves when there is something new in the outbox.
    fn work<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}
