//! The rules of one cluster, and which of them decides.
//!
//! Theory. Rules are a list and the first match decides, but looking at all of them would cost the
//! more the more there are. Every rule is entered into an index under the values of one of its
//! conditions, the one whose values the fewest other rules share. A statement's values are looked
//! up; what is found are candidates in ascending order, each of which is held against all of its
//! conditions until one matches or none can come before the best so far. Rules without a value to
//! look up stand in a list for each class.
//!
//! Rules that were made at runtime stand before those of the file. They change by themselves, often
//! and one at a time, so they have an index of their own: see [`made`].
//!
//! Rules that have expired, or that their schedule does not put in force, are passed over without a
//! new policy; [`Rules::next_change_after`] says how long a verdict stays true.

mod index;
mod made;
mod named;
mod prefixes;
mod trie;

use std::sync::Arc;

use admission::Mode;
use sql::Class;

pub(crate) use self::index::{Candidates, Indexed, RuleIndex};
pub(crate) use self::made::Basis;
use self::made::Made;
use crate::compile::RuntimeChange;
use crate::facts::Facts;
use crate::rule::{Action, Gated, Rule, Standing};
use crate::schedule::Schedule;
use crate::shape::ShapeNeeds;
use crate::time::UnixTime;
use crate::verdict::{PassReason, Verdict};

/// The rules of one cluster, in their order: the first that matches decides.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    made: Made,
    file: Arc<FileRules>,
}

/// The rules of the file.
#[derive(Debug, Default)]
struct FileRules {
    list: Vec<Rule>,
    index: RuleIndex,
    /// Rules that look at the text itself, by their index.
    shaped: Vec<u32>,
    has_schedules: bool,
    watches_runaways: bool,
    /// When rules expire, each time once, ascending.
    expiries: Vec<UnixTime>,
}

/// Rules with a digest or a table that are looked at one by one before a text is read; where there
/// are more, reading it is cheaper.
const SHAPED_LOOKED_AT_MAX: usize = 64;

impl Rules {
    /// Rules of the file, whose `index` is their place in the list.
    pub(crate) fn new(list: Vec<Rule>) -> Self {
        let file = FileRules {
            index: RuleIndex::new(&list),
            shaped: shaped(&list),
            watches_runaways: list.iter().any(|rule| rule.runaway.is_some()),
            has_schedules: list.iter().any(|rule| rule.schedule.is_some()),
            expiries: expiries(&list),
            list,
        };
        Self { made: Made::default(), file: Arc::new(file) }
    }

    /// All of them, in their order. Those made at runtime are sorted for it.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.made.iter().chain(&self.file.list)
    }

    /// Those of the file, in their order.
    #[must_use]
    pub fn of_file(&self) -> &[Rule] {
        &self.file.list
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.made.len().saturating_add(self.file.list.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were made at runtime.
    #[must_use]
    pub fn made_at_runtime(&self) -> usize {
        self.made.len()
    }

    /// The rule with this index.
    #[must_use]
    pub fn at(&self, index: u32) -> Option<&Rule> {
        self.file.at(index).or_else(|| self.made.at(index))
    }

    /// The rule that was made at runtime and has this name.
    #[must_use]
    pub fn made_named(&self, name: &str) -> Option<&Rule> {
        self.made.named(name)
    }

    /// The same with changes of rules made at runtime. It takes as long as there are changes,
    /// however many rules there are.
    pub(crate) fn with_changes(
        &self,
        changes: impl IntoIterator<Item = RuntimeChange>,
        basis: Basis,
    ) -> Self {
        let mut rules = self.clone();
        for change in changes {
            match change {
                RuntimeChange::Stands(rule) => rules.made.put(rule, basis),
                RuntimeChange::Gone(name) => rules.made.remove(&name),
            }
        }
        rules
    }

    /// The file's rules behind those that were made at runtime in a cluster of the same basis.
    pub(crate) fn behind(&self, running: &Self) -> Self {
        Self { made: running.made.clone(), file: self.file.clone() }
    }

    /// The same where runtime rules take something else from their cluster: each is made anew.
    pub(crate) fn behind_on(&self, running: &Self, basis: Basis) -> Self {
        Self { made: running.made.on(basis), file: self.file.clone() }
    }

    /// Whether one of them limits what its statements may take at the server.
    #[must_use]
    pub fn watches_runaways(&self) -> bool {
        self.file.watches_runaways
    }

    /// Until this second a verdict of `now` stays what it is: a rule expires then, or a schedule
    /// may begin or end. Cheap, and so no later than the next minute where there is a schedule.
    #[must_use]
    pub fn next_change_after(&self, now: UnixTime) -> Option<UnixTime> {
        let file = self.file.next_change_after(now);
        [file, self.made.next_end_after(now)].into_iter().flatten().min()
    }

    /// The rules that stand otherwise at one time than at another one.
    pub fn changed_between(&self, a: UnixTime, b: UnixTime) -> impl Iterator<Item = &Rule> {
        let (first, last) = (a.min(b), a.max(b));
        let ends = move |rule: &&Rule| rule.expires_at.is_some_and(|end| end <= last);
        let made = self.made.ending_after(first).take_while(ends);
        let differs = move |rule: &&Rule| rule.standing(a) != rule.standing(b);
        made.chain(self.file.list.iter().filter(differs))
    }

    /// Whether the rules in force at one time are others than at another one.
    #[must_use]
    pub fn changes_between(&self, before: UnixTime, after: UnixTime) -> bool {
        self.changed_between(before, after).next().is_some()
    }

    /// What has to be read of a text before [`crate::decide`]: what is named by rules that could
    /// match by all else. Only the file's have such. `facts.shape` is not looked at. What it says holds as long as a verdict:
    /// see [`Self::next_change_after`].
    #[must_use]
    pub fn shape_needs(&self, facts: &Facts<'_>) -> ShapeNeeds {
        let FileRules { shaped, .. } = &*self.file;
        let are_many = shaped.len() > SHAPED_LOOKED_AT_MAX;
        let could_match = |rule: &Rule| {
            let Rule { condition, .. } = rule;
            condition.statements.is_none_or(|named| facts.may_be_of(named))
                && condition.is_from(facts)
                && rule.standing(facts.now) == Standing::InForce
        };
        let mut needs = ShapeNeeds::default();
        for rule in shaped.iter().filter_map(|index| self.file.at(*index)) {
            if needs == ShapeNeeds::ALL {
                break;
            }
            if are_many || could_match(rule) {
                needs = needs.or(rule.condition.needs());
            }
        }
        needs
    }

    /// The strictest of what the rules say to each class of a text, so that a statement cannot be
    /// carried past its rule by another one; what passes everywhere passes for the reason of the
    /// strictest class. What is [denied as DDL](sql::ClassSet::is_denied_as_ddl) is DDL to rules that
    /// deny.
    pub(crate) fn evaluate(&self, facts: &Facts<'_>) -> Verdict<'_> {
        strictest(facts, |class| self.first_match(facts, class))
    }

    fn first_match(&self, facts: &Facts<'_>, class: Class) -> Option<&Rule> {
        let Some(made) = self.made.first_match(facts, class) else {
            return self.file.first_match(facts, class);
        };
        self.in_front_of(made, facts, class).or(Some(made))
    }

    /// What only observes changes nothing: the file's rule that holds back behind one that was made
    /// at runtime and is not carried out. An exemption is no observation.
    fn in_front_of(&self, made: &Rule, facts: &Facts<'_>, class: Class) -> Option<&Rule> {
        if made.mode == Mode::Enforce || matches!(made.action, Action::Exempt) {
            return None;
        }
        let acts = |rule: &&Rule| {
            rule.mode == Mode::Enforce && !matches!(verdict(rule, class), Verdict::Pass { .. })
        };
        self.file.first_match(facts, class).filter(acts)
    }

    /// What the file's rules would say if none had been made at runtime.
    pub(crate) fn evaluate_file(&self, facts: &Facts<'_>) -> Verdict<'_> {
        strictest(facts, |class| self.file.first_match(facts, class))
    }
}

impl FileRules {
    fn at(&self, index: u32) -> Option<&Rule> {
        self.list.get(usize::try_from(index).ok()?)
    }

    fn first_match(&self, facts: &Facts<'_>, class: Class) -> Option<&Rule> {
        self.index.first_match(&self.list, facts, class)
    }

    fn next_change_after(&self, now: UnixTime) -> Option<UnixTime> {
        let next = self.expiries.partition_point(|expiry| *expiry <= now);
        let expiry = self.expiries.get(next).copied();
        let schedule = self.has_schedules.then(|| Schedule::next_change_after(now));
        [expiry, schedule].into_iter().flatten().min()
    }
}

fn shaped(rules: &[Rule]) -> Vec<u32> {
    let shaped = rules.iter().filter(|rule| rule.condition.needs().any());
    shaped.map(|rule| rule.index).collect()
}

fn expiries(rules: &[Rule]) -> Vec<UnixTime> {
    let mut expiries: Vec<UnixTime> = rules.iter().filter_map(|rule| rule.expires_at).collect();
    expiries.sort_unstable();
    expiries.dedup();
    expiries
}

/// The strictest verdict over the classes of a text, by the rule that matches each first.
fn strictest<'r>(facts: &Facts<'_>, first: impl Fn(Class) -> Option<&'r Rule>) -> Verdict<'r> {
    let of_class = |class| match first(class) {
        Some(rule) => verdict(rule, class),
        None => Verdict::Pass { rule: None, why: PassReason::NoRule },
    };
    let strictest = facts.class();
    let others = Class::ALL
        .into_iter()
        .filter(|class| *class != strictest && facts.classes.contains(*class));
    let mut verdict = of_class(strictest);
    for class in others {
        let other = of_class(class);
        if other.severity() > verdict.severity() {
            verdict = other;
        }
    }
    if facts.classes.is_denied_as_ddl() {
        let as_ddl = of_class(Class::Ddl);
        if matches!(as_ddl, Verdict::Deny(_)) && as_ddl.severity() > verdict.severity() {
            verdict = as_ddl;
        }
    }
    verdict
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
