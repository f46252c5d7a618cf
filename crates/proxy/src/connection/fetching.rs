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

/// What has been fetched from a cursor that a rule limits.
#[derive(Clone, Debug)]
pub(super) struct FetchLimits {
    /// The rule of its execution, over reloads.
    rule: RuleKey,
    /// Where that stood when it was looked at last.
    index: u32,
    class: Class,
    likeness: Option<Likeness>,
    digest: Option<u64>,
    rows: u64,
    bytes: u64,
    /// That there was too much has been told.
    is_told: bool,
}

impl FetchLimits {
    /// The rule that watches what is fetched, if it still does.
    fn watching<'p>(&mut self, policy: &'p ClusterPolicy) -> Option<(&'p Rule, Runaway)> {
        let is_its = |rule: &&Rule| rule.key == self.rule;
        let where_it_stood = policy.rule(self.index).filter(is_its);
        let rule = where_it_stood.or_else(|| policy.rules.iter().find(is_its))?;
        self.index = rule.index;
        Some((rule, rule.runaway?))
    }

    /// So much has been fetched. What there is too much of by what is in force now: told once.
    fn take(&mut self, (rows, bytes): (u64, u64), runaway: Option<Runaway>) -> Option<Excess> {
        self.rows = self.rows.saturating_add(rows);
        self.bytes = self.bytes.saturating_add(bytes);
        let is_over = |most: Option<u64>, taken: u64| most.is_some_and(|most| taken > most);
        let Runaway { rows_sent, bytes_sent, .. } = runaway.filter(|_| !self.is_told)?;
        let rows = is_over(rows_sent, self.rows);
        let bytes = is_over(bytes_sent, self.bytes);
        self.is_told = rows || bytes;
        self.is_told.then_some(if rows { Excess::RowsSent } else { Excess::BytesSent })
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
            index: rule.index,
            class: statement.class,
            likeness: finished.likeness,
            digest: self.insights.counted().and_then(|counted| counted.digest()),
            rows: 0,
            // That it answered with its columns counts.
            bytes: self.insights.bytes_out,
            is_told: false,
        }))
    }

    /// Rows of a cursor have been fetched.
    pub(super) fn note_fetched(&mut self, statement_id: u32, finished: &Finished, is_open: bool) {
        let rows = finished.response.map_or(0, |response| response.rows);
        let bytes = self.insights.bytes_out;
        // As the file is now.
        let policy = self.policy.clone();
        let Some(limits) = self.cursors.limits(statement_id) else { return };
        let watching = limits.watching(&policy);
        let excess = limits.take((rows, bytes), watching.map(|(_, runaway)| runaway));
        let (Some(excess), Some((rule, runaway))) = (excess, watching) else { return };
        let limits = limits.clone();
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
    pub(super) fn end_uncounted(&mut self, statement_id: u32, limits: &mut FetchLimits) {
        let policy = self.policy.clone();
        let Some((rule, runaway)) = limits.watching(&policy) else { return };
        let is_ended = action(rule, runaway) == RunawayAction::Kill && is_killable(limits.class);
        let (digest, elapsed) = (limits.digest, self.timing.backend);
        let is_of_rows = runaway.rows_sent.is_some();
        let excess = if is_of_rows { Excess::RowsSent } else { Excess::BytesSent };
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
        let fetched = || FetchLimits {
            rule: RuleKey(7),
            index: 0,
            class: Class::Read,
            likeness: None,
            digest: None,
            rows: 0,
            bytes: 0,
            is_told: false,
        };
        let limited = |rows_sent, bytes_sent| {
            let (elapsed, action, watch) = (None, RunawayAction::Kill, None);
            Some(Runaway { elapsed, bytes_sent, rows_sent, action, watch })
        };
        let (mut rows, ten) = (fetched(), limited(Some(10), None));
        assert_eq!((rows.take((5, 999), ten), rows.take((5, 999), ten)), (None, None), "as many");
        let over = (rows.take((1, 0), ten), rows.take((1, 0), ten));
        assert_eq!(over, (Some(Excess::RowsSent), None));
        let (mut bytes, both) = (fetched(), limited(Some(10), Some(100)));
        let over = (bytes.take((1, 100), both), bytes.take((1, 1), both));
        assert_eq!(over, (None, Some(Excess::BytesSent)));
        assert_eq!(bytes.take((99, 99), both), None, "told once, whatever else is too much");
    }

    #[test]
    fn an_edit_is_for_what_has_been_fetched_too() {
        let mut fetched = FetchLimits {
            rule: RuleKey(7),
            index: 0,
            class: Class::Read,
            likeness: None,
            digest: None,
            rows: 8,
            bytes: 0,
            is_told: false,
        };
        let limited = |rows_sent| {
            let (elapsed, action, watch) = (None, RunawayAction::Kill, None);
            Some(Runaway { elapsed, bytes_sent: None, rows_sent, action, watch })
        };
        assert_eq!(fetched.take((4, 0), limited(Some(20))), None, "more");
        assert_eq!(fetched.take((1, 0), None), None, "nobody limits it any more");
        assert_eq!(fetched.take((1, 0), limited(Some(13))), Some(Excess::RowsSent), "fewer");
    }
}
