//! What changed the rules, with its author, until whoever keeps the history has taken it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use policy::Change;

/// Edits, and changes at runtime, that wait to be taken: somebody looks every quarter of a second.
const WAITING_MAX: usize = 64;

/// Changes of one edit that are named.
const CHANGES_MAX: usize = 50;

/// What changed the rules.
#[derive(Debug, Default)]
pub struct Edits(Mutex<VecDeque<RuleEdit>>);

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleEdit {
    /// The file was saved, and is in force.
    File {
        /// Its path.
        path: String,
        /// Its text before.
        before: Arc<str>,
        /// Its text now.
        after: Arc<str>,
        /// What that changes, in words.
        changes: Vec<String>,
    },
    /// A rule was made or lifted here, at runtime.
    Runtime {
        /// The cluster.
        cluster: Arc<str>,
        /// The rule's name.
        rule: Arc<str>,
        /// Who has done it.
        author: String,
        /// `made` or `lifted`.
        what: &'static str,
    },
}

impl Edits {
    pub(crate) fn note(&self, path: &Path, before: Arc<str>, after: Arc<str>, changes: &[Change]) {
        let changes = changes.iter().take(CHANGES_MAX).map(Change::to_string).collect();
        let path = path.display().to_string();
        self.push(RuleEdit::File { path, before, after, changes });
    }

    /// A rule was made or lifted at runtime.
    pub fn note_runtime(
        &self,
        cluster: &Arc<str>,
        rule: &Arc<str>,
        author: &str,
        what: &'static str,
    ) {
        let (cluster, rule, author) = (cluster.clone(), rule.clone(), author.to_owned());
        self.push(RuleEdit::Runtime { cluster, rule, author, what });
    }

    /// Those since the last call. One caller keeps the history.
    pub fn take(&self) -> Vec<RuleEdit> {
        self.0.lock().drain(..).collect()
    }

    fn push(&self, edit: RuleEdit) {
        let mut waiting = self.0.lock();
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(edit);
    }
}
