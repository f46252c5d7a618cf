//! How much of what happened is kept.

use std::time::Duration;

/// How much of what happened is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Whether anything is.
    pub enabled: bool,
    /// What is older goes.
    pub max_age: Duration,
    /// The largest size of the file, in bytes, without its write-ahead log.
    pub max_size: u64,
}
