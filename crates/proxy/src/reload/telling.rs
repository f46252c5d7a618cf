//! What the log and the metrics tell of edits.

use policy::{Change, FixedKey};
use tokio::time::Instant;

use super::waiting::{TRIED_AGAIN_EVERY_S, Waiting};
use super::{LOGGED_LINES_MAX, LoadError, Reloader, unix_seconds};
use crate::caught::{Panic, words};
use crate::telemetry::Reload;

impl<A> Reloader<A> {
    /// Says what has come of an edit.
    pub(super) fn log(&self, changes: &[Change], waited: bool) {
        let file = self.path.display();
        let pending = self.telemetry.pending_keys();
        let applied = changes.len().saturating_sub(pending.len());
        tracing::info!(%file, changes = applied, "configuration applied");
        self.in_force.log_warnings(&self.path);
        for fault in self.in_force.outlived.iter().take(LOGGED_LINES_MAX) {
            tracing::error!(%file, %fault, "certificates cannot be used; what was in force stays");
        }
        if !pending.is_empty() {
            let keys: Vec<String> = pending.iter().map(FixedKey::path).collect();
            tracing::warn!(
                %file, keys = keys.join(", "),
                "these keys wait for a restart; until then each is what it was, everywhere"
            );
        } else if waited {
            tracing::info!(%file, "no key waits for a restart any more");
        }
        for change in changes.iter().take(LOGGED_LINES_MAX) {
            match change {
                Change::NeedsRestart(_) => tracing::warn!(%change, "not applied"),
                Change::Setting(_)
                | Change::RuleAdded(_)
                | Change::RuleRemoved(_)
                | Change::RuleChanged(_)
                | Change::RulesReordered => tracing::info!(%change, "applied"),
            }
        }
        let further = changes.len().saturating_sub(LOGGED_LINES_MAX);
        if further > 0 {
            tracing::info!(further, "and more changes");
        }
    }

    /// What was looked at last waits for files that it names. Whether the log has yet to say why.
    pub(super) fn waits(&mut self, why: &str) -> bool {
        self.telemetry.reload(Reload::Waiting, unix_seconds());
        let waiting = Waiting::new(why, Instant::now());
        let before = self.waiting.replace(waiting);
        before.is_none_or(|before| before.why() != why)
    }

    pub(super) fn complain(&mut self, error: &LoadError) {
        let is_told = match error {
            LoadError::Unreadable(_) | LoadError::Faults(_) => {
                self.waiting = None;
                self.telemetry.reload(Reload::Failed, unix_seconds());
                false
            }
            LoadError::Files(_) | LoadError::NoAnswer(_) => {
                !self.waits(&error.lines(&self.path).join("\n"))
            }
        };
        if !is_told {
            self.log_error(error);
        }
    }

    fn log_error(&self, error: &LoadError) {
        let file = self.path.display();
        let faults = match error {
            LoadError::Unreadable(error) => {
                tracing::error!(%file, %error, "cannot read the configuration; nothing is changed");
                return;
            }
            LoadError::NoAnswer(why) => {
                tracing::error!(
                    %file, %why,
                    "the configuration waits; nothing is changed, and it is tried again by itself"
                );
                return;
            }
            LoadError::Faults(faults) => {
                let count = faults.len();
                tracing::error!(%file, count, "the configuration has faults; nothing is changed");
                faults
            }
            LoadError::Files(faults) => {
                let count = faults.len();
                tracing::error!(
                    %file, count,
                    "the configuration names files that cannot be used; nothing is changed, and it is \
                     tried again every {TRIED_AGAIN_EVERY_S} s"
                );
                faults
            }
        };
        for fault in faults.iter().take(LOGGED_LINES_MAX) {
            tracing::error!(%file, %fault, "configuration fault");
        }
    }

    /// What a look has left that panicked.
    pub(super) fn is_left(&mut self, panic: &Panic) {
        self.is_torn = true;
        self.waiting = None;
        self.telemetry.reload(Reload::Torn, unix_seconds());
        tracing::error!(
            file = %self.path.display(), why = words(panic),
            "a fault of Sluice's own: a panic while the configuration was looked at or put in force, \
             which may be in force in part; the next edit, or SIGHUP, puts all of it in force"
        );
    }
}
