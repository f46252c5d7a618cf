//! What guards would have said to a digest's text, and of what nobody can tell.
//!
//! A digest's text is a text without its values: whether there is a WHERE, and a condition for every
//! join, is still to be seen. How many values a list had, how long the text was, and when a statement
//! came that is one of many, is not: what depends on it is not judged.

use std::borrow::Cow;
use std::sync::Arc;

use sql::{Survey, survey};

use super::{Ahead, MODE, Recorded, whole};
use crate::condition::Condition;
use crate::facts::Facts;
use crate::guard::{Check, Estimate, Guard, GuardHit, GuardReport, Guarded, Guards};

/// The guards that look at something that is not known, without that.
#[derive(Debug)]
pub(super) struct BlindGuards(Guards);

impl BlindGuards {
    /// Those of which `rest` says what of their condition can be told.
    pub(super) fn of<'p>(
        guards: impl Iterator<Item = &'p Guard>,
        rest: impl Fn(&Guard) -> Option<Condition>,
    ) -> Self {
        let blind = guards.filter_map(|guard| {
            let condition = Arc::new(rest(guard)?);
            Some(Guard { condition, ..guard.clone() })
        });
        Self(Guards::new(blind.collect()))
    }
}

/// The text as the lexer can read it: one value stands for a list of them.
pub(super) fn readable(text: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(text) {
        Cow::Borrowed(text) => match sql::readable_digest(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        Cow::Owned(text) => Cow::Owned(sql::readable_digest(&text).into_owned().into_bytes()),
    }
}

impl Ahead<'_> {
    /// What the guards say.
    pub(super) fn judge(&self, past: &Recorded<'_>, facts: &Facts<'_>) -> GuardReport {
        let guards = &self.policy.guards;
        if guards.is_empty() {
            return GuardReport::default();
        }
        let text = readable(past.text);
        let mut survey = survey(&text, MODE, whole(past));
        // What is not there was not looked at.
        if past.long {
            survey.unjudged.filters = true;
            survey.unjudged.joins = true;
            survey.unjudged.ddl = true;
        }
        survey.unjudged.lists |= past.long || has_list(past.text);
        let guarded = Guarded {
            survey: Some(&survey),
            len: past.bytes.max(u64::try_from(past.text.len()).unwrap_or(u64::MAX)),
            goes_on: false,
            now: past.seen.1,
            tags: true,
            all_tags: !past.long,
        };
        let mut report = guards.judge(&guarded, facts);
        let hits = std::mem::take(&mut report.hits);
        for hit in hits {
            if self.is_certain(&hit, past) {
                report.hits.push(hit);
            } else {
                note(&mut report, (&hit.guard, hit.check));
            }
        }
        self.add_untimed(&survey, (past, facts), &mut report);
        let blind = self.guards.0.judge(&guarded, facts);
        let may_hit = blind.hits.iter().map(|hit| (&hit.guard, hit.check));
        let unjudged = blind.unjudged.iter().map(|(guard, check)| (guard, *check));
        for unknown in may_hit.chain(unjudged) {
            note(&mut report, unknown);
        }
        // Only a server can tell.
        for estimate in std::mem::take(&mut report.estimates) {
            note(&mut report, (&estimate.guard, Estimate::CHECK));
        }
        report
    }

    /// Whether every one of the statements would have been hit.
    fn is_certain(&self, hit: &GuardHit, past: &Recorded<'_>) -> bool {
        let Some(check) = self.check_of(hit) else { return true };
        match check {
            Check::WhereRequired(_) | Check::NoCrossJoin | Check::MaxInList(_) => true,
            // Of each nobody knows how long it was, and what is executed has no text.
            Check::MaxStatementBytes(_) => false,
            // What is not kept may have been there.
            Check::RequireTag(keys) => keys.iter().any(|key| {
                let is_kept = self.kept_tags.iter().any(|kept| kept.as_bytes() == &**key);
                is_kept && past.tags.iter().all(|(known, _)| *known != &**key)
            }),
            Check::NoDdlHours(hours) => hours.is_steady(past.seen.0, past.seen.1),
            Check::MaxRowsExpected(_) => false,
        }
    }

    fn check_of(&self, hit: &GuardHit) -> Option<&Check> {
        let guard = self.policy.guards.of(hit)?;
        guard.checks.iter().map(|(check, _)| check).find(|check| check.as_str() == hit.check)
    }

    /// DDL that came at several times, some of them perhaps within the hours, though the last did
    /// not.
    fn add_untimed(
        &self,
        survey: &Survey,
        (past, facts): (&Recorded<'_>, &Facts<'_>),
        report: &mut GuardReport,
    ) {
        if survey.ddl.is_none() {
            return;
        }
        for guard in self.policy.guards.iter() {
            let is_about = guard.is_about(facts) != Some(false);
            let hours = guard.checks.iter().filter_map(|(check, _)| match check {
                Check::NoDdlHours(hours) => Some((check, hours)),
                Check::WhereRequired(_)
                | Check::NoCrossJoin
                | Check::MaxInList(_)
                | Check::MaxStatementBytes(_)
                | Check::MaxRowsExpected(_)
                | Check::RequireTag(_) => None,
            });
            for (check, hours) in hours {
                if is_about && !hours.is_steady(past.seen.0, past.seen.1) {
                    note(report, (&guard.name, check.as_str()));
                }
            }
        }
    }
}

/// Notes once that a guard's check could not judge.
fn note(report: &mut GuardReport, (guard, check): (&Arc<str>, &'static str)) {
    let unjudged = &mut report.unjudged;
    if !unjudged.iter().any(|(known, of)| known == guard && *of == check) {
        unjudged.push((guard.clone(), check));
    }
}

/// Whether a list of IN may be among those whose values are gone.
fn has_list(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.contains("...") && text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "IN")
}
