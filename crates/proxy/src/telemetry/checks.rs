//! What became of checks over HTTP since somebody last looked, by identity: the history has them.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::event::{CheckEvent, StatementDecision};

/// Combinations at a time: those who ask choose their names. Beyond it, they are `other`.
const COMBINATIONS_MAX: usize = 4_096;

/// Whose checks are counted together, with what they were told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckKey {
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// The rule; `none` where none decided.
    pub rule: String,
    /// Why it was told not to go on. None: it was told to.
    pub refused: Option<&'static str>,
}

/// The counts.
#[derive(Debug, Default)]
pub(super) struct CheckTally(Mutex<HashMap<CheckKey, u64>>);

impl CheckTally {
    pub(super) fn count(&self, event: &CheckEvent<'_>, app: &str) {
        let refused = match event.decision {
            StatementDecision::Admitted | StatementDecision::ClientGone => None,
            StatementDecision::Rejected => Some(event.reason.unwrap_or("unknown")),
        };
        let (cluster, rule) = (event.cluster.to_owned(), event.rule.to_owned());
        let key = CheckKey { cluster, app: app.to_owned(), rule, refused };
        let mut counts = self.0.lock();
        let is_new = counts.len() >= COMBINATIONS_MAX && !counts.contains_key(&key);
        let key = if is_new { CheckKey { app: "other".to_owned(), ..key } } else { key };
        let count = counts.entry(key).or_default();
        *count = count.saturating_add(1);
    }

    pub(super) fn take(&self) -> Vec<(CheckKey, u64)> {
        self.0.lock().drain().collect()
    }
}
