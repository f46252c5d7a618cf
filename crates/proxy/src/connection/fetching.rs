//! What is fetched from a cursor, against what the rule of its execution lets an answer have.
//!
//! The rows of an execution that opens a cursor come by COM_STMT_FETCH, as many as the client asks
//! for, and neither server ends a COM_STMT_FETCH by a KILL QUERY. So they are added up behind each,
//! and nothing more is fetched once they are too many.

use std::time::Duration;

use admission::RuleKey;
use policy::{ClusterPolicy, Likeness, Rule, Runaway, RunawayAction, is_killable};
use session::{Answer, Finished};
use sql::Class;

use super::Connection;
use super::running_away::{Told, quarantine, tell};
use crate::runaway::{Excess, action};

/// What may still be fetched from a cursor.
#[derive(Clone, Debug)]
pub(super) struct FetchLimits {
    /// The rule of its execution, over reloads.
    rule: RuleKey,
    class: Class,
    likeness: Option<Likeness>,
    digest: Option<u64>,
    rows_left: Option<u64>,
    bytes_left: Option<u64>,
}

impl FetchLimits {
    /// The rule that watches what is fetched, if it still does.
    fn watching<'p>(&self, policy: &'p ClusterPolicy) -> Option<(&'p Rule, Runaway)> {
        let rule = policy.rules.iter().find(|rule| rule.key == self.rule)?;
        Some((rule, rule.runaway?))
    }

    /// So much has been fetched. What there is too much of: told once.
    fn take(&mut self, rows: u64, bytes: u64) -> Option<Excess> {
        let is_over = |left: &mut Option<u64>, taken: u64| match *left {
            Some(most) => {
                *left = most.checked_sub(taken);
                left.is_none()
            }
            None => false,
        };
        let rows = is_over(&mut self.rows_left, rows);
        let bytes = is_over(&mut self.bytes_left, bytes);
        if !rows && !bytes {
            return None;
        }
        (self.rows_left, self.bytes_left) = (None, None);
        Some(if rows { Excess::RowsSent } else { Excess::BytesSent })
    }
}

impl Connection {
    /// What may be fetched from the cursor that an execution has opened. `None`: nothing limits it.
    pub(super) fn limits_of_cursor(&self, finished: &Finished) -> Option<Box<FetchLimits>> {
        let statement = finished.statement?;
        let rule = self.policy.rule(statement.watched?)?;
        let Runaway { rows_sent, bytes_sent, .. } = rule.runaway?;
        if rows_sent.is_none() && bytes_sent.is_none() {
            return None;
        }
        Some(Box::new(FetchLimits {
            rule: rule.key,
            class: statement.class,
            likeness: finished.likeness,
            digest: self.insights.counted().and_then(|counted| counted.digest()),
            rows_left: rows_sent,
            // That it answered with its columns counts; it was not over its limit by that.
            bytes_left: bytes_sent.map(|most| most.saturating_sub(self.insights.bytes_out)),
        }))
    }

    /// Rows of a cursor have been fetched.
    pub(super) fn note_fetched(&mut self, statement_id: u32, finished: &Finished, is_open: bool) {
        let rows = finished.response.map_or(0, |response| response.rows);
        let bytes = self.insights.bytes_out;
        let Some(limits) = self.cursors.limits(statement_id) else { return };
        let Some(excess) = limits.take(rows, bytes) else { return };
        let limits = limits.clone();
        let policy = self.policy.clone();
        // The file may watch it no more.
        let Some((rule, runaway)) = limits.watching(&policy) else { return };
        let done = match action(rule, runaway) {
            RunawayAction::Log => "log",
            RunawayAction::Deprioritise => {
                let is_done = limits.class.is_gateable()
                    && self.quarantine_cursor(rule, &limits, RunawayAction::Deprioritise);
                if is_done { "deprioritise" } else { "left" }
            }
            RunawayAction::Kill if !is_killable(limits.class) => "left",
            RunawayAction::Kill => {
                self.quarantine_cursor(rule, &limits, RunawayAction::Kill);
                if is_open {
                    self.session.handle_cursor_ended(statement_id, interrupted(rule, excess));
                }
                if is_open { "kill" } else { "over" }
            }
        };
        let elapsed: Duration = self.timing.backend;
        let told = Told { rule, digest: limits.digest, excess, elapsed, action: done };
        tell(&self.shared, &self.session, &self.peer, &told);
    }

    /// A cursor is open of which nobody will know what is fetched from it, for so many are. It ends
    /// where the rule of its execution would end it some time.
    #[cold]
    pub(super) fn end_uncounted(&mut self, statement_id: u32, limits: &FetchLimits) {
        let policy = self.policy.clone();
        let Some((rule, runaway)) = limits.watching(&policy) else { return };
        let is_ended = action(rule, runaway) == RunawayAction::Kill && is_killable(limits.class);
        let (digest, elapsed) = (limits.digest, self.timing.backend);
        let excess = if limits.rows_left.is_some() { Excess::RowsSent } else { Excess::BytesSent };
        if is_ended {
            self.session.handle_cursor_ended(statement_id, interrupted(rule, excess));
        }
        let action = if is_ended { "kill" } else { "left" };
        let told = Told { rule, digest, excess, elapsed, action };
        tell(&self.shared, &self.session, &self.peer, &told);
    }

    /// False: nobody watches for what is like it, or nobody can say what is.
    fn quarantine_cursor(&self, rule: &Rule, limits: &FetchLimits, action: RunawayAction) -> bool {
        let Some(likeness) = limits.likeness else { return false };
        quarantine(&self.shared, rule, likeness, (action, self.session.app())).is_some()
    }
}

/// What is told to whoever fetches on: the server's own words for a statement that is killed.
fn interrupted(rule: &Rule, excess: Excess) -> Answer {
    let message = format!(
        "Query execution was interrupted [sluice rule={} limit={} executed=no]",
        rule.name,
        excess.as_str()
    );
    Answer { errno: ER_QUERY_INTERRUPTED, sqlstate: *b"70100", message: message.into_bytes() }
}

/// `ER_QUERY_INTERRUPTED` of the manual.
const ER_QUERY_INTERRUPTED: u16 = 1317;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_adds_up_and_is_too_much_once() {
        let limits = |rows_left, bytes_left| FetchLimits {
            rule: RuleKey(7),
            class: Class::Read,
            likeness: None,
            digest: None,
            rows_left,
            bytes_left,
        };
        let mut rows = limits(Some(10), None);
        assert_eq!((rows.take(5, 999), rows.take(5, 999)), (None, None), "as many as there may be");
        assert_eq!((rows.take(1, 0), rows.take(1, 0)), (Some(Excess::RowsSent), None));
        let mut bytes = limits(Some(10), Some(100));
        assert_eq!((bytes.take(1, 100), bytes.take(1, 1)), (None, Some(Excess::BytesSent)));
        assert_eq!(bytes.take(99, 99), None, "told once, whatever else there is too much of");
    }
}
