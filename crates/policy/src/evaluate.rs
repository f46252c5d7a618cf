//! Which rule decides.
//!
//! Theory. Rules are a list and the first match decides, but looking at all of them would cost the more the
//! more there are. Every rule is entered into an index under the values of one of its conditions, the one
//! whose values the fewest other rules share. A statement's values are looked up; what is found are
//! candidates in ascending order, each of which is held against all of its conditions until one matches or
//! none can come before the best so far. Rules without a value to look up stand in a list for each class.
//!
//! Rules that have expired, or that their schedule does not put in force, are passed over without a new policy;
//! [`ClusterPolicy::next_change_after`] says how long a verdict stays true.

mod index;
mod prefixes;

use sql::{Class, ClassSet};

pub(crate) use self::index::RuleIndex;
use crate::cluster::ClusterPolicy;
use crate::identity::{Identity, SessionIdentity};
use crate::rule::{Action, Gated, Rule, Standing, UnixTime};
use crate::shape::{Shape, ShapeNeeds};

/// What rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// Who asks.
    pub identity: &'f Identity<'f>,
    /// On which connection.
    pub session: &'f SessionIdentity,
    /// What kind of statement.
    pub class: Class,
    /// What its text is about; read as far as [`ClusterPolicy::shape_needs`] says.
    pub shape: Shape<'f>,
    /// The wall clock.
    pub now: UnixTime,
}

/// What the rules say to a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'p> {
    /// It may run.
    Pass {
        /// The rule that decided.
        rule: Option<&'p Rule>,
        /// Why it may.
        why: PassReason,
    },
    /// Admission must be asked.
    Ask(&'p Rule),
    /// It may not run.
    Deny(&'p Rule),
}

/// Why a statement passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassReason {
    /// No rule matches.
    NoRule,
    /// The rule's `statements` do not name the class.
    NotCovered,
    /// The rule exempts.
    Exempt,
    /// The rule has no gate, no dice and no hold.
    Ungated,
}

impl PassReason {
    /// The name in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRule => "no_rule",
            Self::NotCovered => "not_covered",
            Self::Exempt => "exempt",
            Self::Ungated => "ungated",
        }
    }
}

/// Rules with a digest or a table that are looked at one by one before a text is read; where there are more,
/// reading it is cheaper.
const SHAPED_LOOKED_AT_MAX: usize = 64;

impl ClusterPolicy {
    /// What has to be read of a text of these classes before [`Self::evaluate`]: what is named by rules that could
    /// match by all else. `facts.class` and `facts.shape` are not looked at. What it says holds as long as a
    /// verdict: see [`Self::next_change_after`].
    #[must_use]
    pub fn shape_needs(&self, facts: &Facts<'_>, classes: ClassSet) -> ShapeNeeds {
        let are_many = self.shaped.len() > SHAPED_LOOKED_AT_MAX;
        let could_match = |rule: &Rule| {
            let Rule { condition, .. } = rule;
            condition.statements.is_none_or(|named| named.intersects(classes))
                && condition.is_from(facts)
                && rule.standing(facts.now) == Standing::InForce
        };
        let mut needs = ShapeNeeds::default();
        for rule in self.shaped.iter().filter_map(|index| self.rule(*index)) {
            if needs == ShapeNeeds::ALL {
                break;
            }
            if are_many || could_match(rule) {
                needs = needs.or(rule.condition.needs());
            }
        }
        needs
    }

    /// What the rules say. Allocates nothing.
    #[must_use]
    pub fn evaluate(&self, facts: &Facts<'_>) -> Verdict<'_> {
        match self.index.first_match(&self.rules, facts) {
            Some(rule) => verdict(rule, facts.class),
            None => Verdict::Pass { rule: None, why: PassReason::NoRule },
        }
    }

    /// What the rules say to a text of several statements: the strictest of what they say to each of its
    /// classes, so that a statement cannot be carried past its rule by another one. `facts.class` is not
    /// looked at; what passes everywhere passes for the reason of the strictest class.
    #[must_use]
    pub fn evaluate_classes(&self, facts: &Facts<'_>, classes: ClassSet) -> Verdict<'_> {
        let strictest = Facts { class: classes.strictest().unwrap_or(Class::Unknown), ..*facts };
        let mut verdict = self.evaluate(&strictest);
        for class in Class::ALL.into_iter().filter(|class| classes.contains(*class)) {
            let other = self.evaluate(&Facts { class, ..*facts });
            if other.severity() > verdict.severity() {
                verdict = other;
            }
        }
        verdict
    }
}

impl Verdict<'_> {
    fn severity(&self) -> u8 {
        match self {
            Self::Pass { .. } => 0,
            Self::Ask(_) => 1,
            Self::Deny(_) => 2,
        }
    }
}

fn verdict(rule: &Rule, class: Class) -> Verdict<'_> {
    let pass = |why| Verdict::Pass { rule: Some(rule), why };
    let covered = rule.statements.contains(class);
    match rule.action {
        Action::Exempt => pass(PassReason::Exempt),
        Action::Deny | Action::Throttle { .. } if !covered => pass(PassReason::NotCovered),
        Action::Deny => Verdict::Deny(rule),
        Action::Throttle { gated: Gated::No, .. } => pass(PassReason::Ungated),
        Action::Throttle { gated: Gated::Yes, .. } => Verdict::Ask(rule),
    }
}

#[cfg(test)]
mod tests;
