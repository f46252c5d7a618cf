//! What guards and budgets say to one statement.

use admission::{BudgetTerms, Mode, OnExceeded};
use serde::Serialize;
use sql::survey;

use super::Question;
use crate::cluster::ClusterPolicy;
use crate::compile::limits::show;
use crate::facts::Facts;
use crate::guard::{Estimate, GuardMode, GuardReport, Guarded};

/// What a guard says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardSaid {
    /// Its name.
    pub guard: String,
    /// What it checks, as in the file.
    pub check: &'static str,
    /// `deny`, `warn`; or `unknown`: what it looks at cannot be told of this text here, so it passes
    /// and is counted, or the server is asked.
    pub says: &'static str,
    /// Where in the text, in bytes from its beginning.
    pub offset: Option<u64>,
    /// What is wrong, and how to write it.
    pub advice: String,
}

/// A budget that meets the statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetMet {
    /// Its name.
    pub budget: String,
    /// What it allows, in words.
    pub allows: String,
    /// What becomes of a statement without room, in words.
    pub else_it: String,
}

/// What the guards say, in the order of the file; the first that says `deny` refuses it.
pub(super) fn guards(
    policy: &ClusterPolicy,
    question: &Question<'_>,
    facts: &Facts<'_>,
    all_tags: bool,
) -> Vec<GuardSaid> {
    if policy.guards.is_empty() {
        return Vec::new();
    }
    let survey = survey(question.sql, question.mode, sql::Whole::Yes);
    let guarded = Guarded {
        survey: Some(&survey),
        len: u64::try_from(question.sql.len()).unwrap_or(u64::MAX),
        goes_on: false,
        now: question.now,
        tags: true,
        all_tags,
    };
    let GuardReport { hits, unjudged, estimates, quarantined: _ } =
        policy.guards.judge(&guarded, facts);
    let hits = hits.iter().map(|hit| GuardSaid {
        guard: hit.guard.to_string(),
        check: hit.check,
        says: hit.mode.as_str(),
        offset: Some(hit.offset),
        advice: hit.advice(),
    });
    let unknown = |guard: &str, check: &'static str, why: &str| GuardSaid {
        guard: guard.to_owned(),
        check,
        says: "unknown",
        offset: None,
        advice: why.to_owned(),
    };
    let unjudged = unjudged.iter().map(|(guard, check)| {
        unknown(guard, check, "cannot be judged in this text: it passes, and is counted")
    });
    let estimates = estimates.iter().map(|estimate| {
        unknown(&estimate.guard, Estimate::CHECK, "the server is asked, by EXPLAIN")
    });
    hits.chain(unjudged).chain(estimates).collect()
}

/// The guard that refuses the statement.
pub(super) fn refuses(said: &[GuardSaid]) -> Option<&GuardSaid> {
    said.iter().find(|said| said.says == GuardMode::Deny.as_str())
}

/// The budgets that meet it, in the order of the file.
pub(super) fn budgets(policy: &ClusterPolicy, facts: &Facts<'_>) -> Vec<BudgetMet> {
    let met = policy.budgets.meeting(facts);
    let met = met.iter().filter_map(|used| policy.budgets.get(used.budget));
    let met = met.map(|budget| BudgetMet {
        budget: budget.name.to_string(),
        allows: budget.allows(),
        else_it: else_it(&budget.terms),
    });
    met.collect()
}

fn else_it(terms: &BudgetTerms) -> String {
    match (terms.mode, terms.on_exceeded) {
        (Mode::Observe, _) => "is only counted".to_owned(),
        (Mode::Enforce, OnExceeded::Refuse) => "is refused at once".to_owned(),
        (Mode::Enforce, OnExceeded::Delay) => {
            format!("waits for {} at most, and is refused then", show(terms.max_delay))
        }
    }
}
