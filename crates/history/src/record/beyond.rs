//! What the next process is to know beside the history.

use super::At;

/// A window of insights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightsWindow {
    /// Whose it is.
    pub run: i64,
    /// When it began, in seconds.
    pub at: i64,
    /// How long it is.
    pub minutes: i64,
    /// The cluster.
    pub cluster: String,
    /// How many rows it has; 0 where that does not matter.
    pub count: usize,
    /// These, as JSON.
    pub rows: String,
}

/// What a hash in those rows stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightsName {
    /// The cluster.
    pub cluster: String,
    /// The hash.
    pub hash: u64,
    /// When this was written, in seconds.
    pub at: i64,
    /// What it stands for, as JSON.
    pub name: String,
}

/// A digest of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CostKey {
    /// The cluster.
    pub cluster: String,
    /// The digest, with its size.
    pub digest: u64,
}

/// What statements of a digest cost that cost more than a budget lets them.
#[derive(Debug, Clone, PartialEq)]
pub struct CostRow {
    /// Which.
    pub key: CostKey,
    /// Time at the server.
    pub seconds: f64,
    /// Rows changed, and rows sent.
    pub rows: f64,
    /// Until when it is refused for that.
    pub until: At,
}

/// What makes an entry of the quarantine another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineKey {
    /// The cluster.
    pub cluster: String,
    /// The rule.
    pub rule: String,
    /// `digest` or `text`.
    pub by: &'static str,
    /// The hash of that.
    pub hash: u64,
}

/// An entry of the quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineRow {
    /// What is in it.
    pub key: QuarantineKey,
    /// What is done with its like.
    pub action: &'static str,
    /// Whose it was.
    pub app: String,
    /// Since when, and until when.
    pub since: At,
    /// Until when.
    pub until: At,
}
