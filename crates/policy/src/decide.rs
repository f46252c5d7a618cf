//! The one decision: what the rules say, and what they may not say.

use sql::{Exemption, Tool};

use crate::cluster::ClusterPolicy;
use crate::facts::Facts;
use crate::rule::{Action, Rule};
use crate::verdict::{PassReason, Verdict};

/// What becomes of a statement, wherever its session stands: see [`Verdict::under`] for what a
/// transaction and locks change. Allocates nothing.
///
/// It stays true for the same facts until [`crate::Rules::next_change_after`] their time.
#[must_use]
pub fn decide<'p>(policy: &'p ClusterPolicy, facts: &Facts<'_>) -> Verdict<'p> {
    let verdict = policy.rules.evaluate(facts);
    match (never_held(facts), verdict) {
        // Nothing delays RENAME TABLE, but refusing it holds nobody up.
        (Some(_), Verdict::Deny(_)) if facts.classes.is_denied_as_ddl() => verdict,
        // Who may not write at all may not write by calling itself gh-ost.
        (Some(PassReason::NeverHeld(Exemption::GhostChangelog)), Verdict::Deny(_)) => verdict,
        (Some(why), _) => Verdict::Pass { rule: verdict.rule(), why },
        (None, _) => verdict,
    }
}

/// The rule whose `runaway` is about a statement with this verdict: the one that decided, if it is the
/// file's. One made at runtime has none, and slowing an app down frees nothing of it: there it is the
/// file's rule that would decide without it. Who is exempted at runtime is free of that too.
///
/// It stays true as long as the verdict.
#[must_use]
pub fn watching<'p>(
    policy: &'p ClusterPolicy,
    facts: &Facts<'_>,
    verdict: &Verdict<'p>,
) -> Option<&'p Rule> {
    let rule = verdict.rule().filter(|_| policy.rules.watches_runaways())?;
    match (&rule.author, rule.action) {
        (None, _) => Some(rule),
        (Some(_), Action::Exempt) => None,
        (Some(_), Action::Throttle { .. } | Action::Deny) => {
            policy.rules.evaluate_file(facts).rule()
        }
    }
}

/// Whether nothing can hold it back.
pub(crate) fn is_never_held(facts: &Facts<'_>) -> bool {
    never_held(facts).is_some()
}

/// Why no rule can hold it back.
fn never_held(facts: &Facts<'_>) -> Option<PassReason> {
    let exemption = facts.exemption.filter(|exemption| match exemption {
        // Refusing gh-ost's own heartbeat kills its migration; anybody else's table of that name is
        // a table. Only who may claim to be gh-ost is.
        Exemption::GhostChangelog => {
            facts.identity.tool_seen == Some(Tool::GhOst) || facts.session.is_sticky(Tool::GhOst)
        }
        Exemption::SystemSchema | Exemption::AdvisoryLock | Exemption::RenameTable => true,
    });
    match exemption {
        Some(exemption) => Some(PassReason::NeverHeld(exemption)),
        None => (!facts.class().is_gateable()).then_some(PassReason::NotGateable),
    }
}

#[cfg(test)]
mod tests;
