//! Classes of statements, as lists name them.

use sql::{Class, ClassSet};

use super::checks::list;
use crate::fault::Faults;
use crate::raw::{OneOrMany, Spanned};

/// Which classes a list may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delayable {
    Only,
    AndOthers,
}

pub(super) fn compile_classes(
    classes: &Spanned<OneOrMany<String>>,
    which: Delayable,
    faults: &mut Faults,
) -> ClassSet {
    if classes.value.0.is_empty() {
        faults.add(&classes.place, "names no class");
    }
    let mut set = ClassSet::default();
    for Spanned { value, place } in &classes.value.0 {
        match Class::parse(value) {
            Some(class) if which == Delayable::AndOthers || class.is_gateable() => {
                set = set.union(expand(class));
            }
            Some(class) => {
                let message = format!("statements of class `{}` are never delayed", class.as_str());
                faults.add(place, message);
            }
            None => {
                let known = Class::ALL.into_iter();
                let known =
                    known.filter(|class| which == Delayable::AndOthers || class.is_gateable());
                let known = list(known.map(Class::as_str));
                faults.add(place, format!("`{value}` is not one of {known}"));
            }
        }
    }
    set
}

/// What a rule covers that denies and does not say: all that changes data or schema. Where DDL is
/// denied, so is RENAME TABLE.
pub(super) fn whatever_changes() -> ClassSet {
    expand(Class::Write).with(Class::Ddl)
}

/// Whether the list names classes only, and at least one.
pub(super) fn are_known(classes: &Spanned<OneOrMany<String>>) -> bool {
    let names = &classes.value.0;
    !names.is_empty() && names.iter().all(|name| Class::parse(&name.value).is_some())
}

/// A rule that names classes in both places names the same in both.
pub(super) fn check_agreement(
    matched: &Spanned<OneOrMany<String>>,
    covered: &Spanned<OneOrMany<String>>,
    faults: &mut Faults,
) {
    let [matches, covers] = [matched, covered].map(set_of);
    let only_matched = beyond(matched, covers);
    if !only_matched.is_empty() {
        let line = covered.place.line;
        let message = format!(
            "matches {only_matched}, which the rule's `statements` (line {line}) do not cover: they would \
             pass, and no later rule would see them; name the same classes in both, or only in one"
        );
        faults.add(&matched.place, message);
    }
    let only_covered = beyond(covered, matches);
    if !only_covered.is_empty() {
        let line = matched.place.line;
        let message = format!(
            "covers {only_covered}, which `match.statements` (line {line}) does not match: the rule never \
             acts on them; name the same classes in both, or only in one"
        );
        faults.add(&covered.place, message);
    }
}

/// A rule without `statements` matches nothing that it does not cover.
pub(super) fn check_default(
    matched: &Spanned<OneOrMany<String>>,
    covered: ClassSet,
    faults: &mut Faults,
) {
    let only_matched = beyond(matched, covered);
    if only_matched.is_empty() {
        return;
    }
    let delayable = |name: &str| Class::parse(name).is_some_and(Class::is_gateable);
    let wanted: Vec<&str> = matched.value.0.iter().map(|name| &*name.value).collect();
    let remedy = if wanted.iter().all(|name| delayable(name)) {
        format!("say `statements: [{}]` beside `match`", wanted.join(", "))
    } else {
        "leave out what no rule delays or refuses".to_owned()
    };
    let message = format!(
        "matches {only_matched}, which the rule does not cover, since it has no `statements`: they would \
         pass, and no later rule would see them; {remedy}"
    );
    faults.add(&matched.place, message);
}

/// The names in a list that stand for more than `set`, for people.
fn beyond(names: &Spanned<OneOrMany<String>>, set: ClassSet) -> String {
    let names = names.value.0.iter().map(|name| &name.value);
    let is_beyond =
        |name: &&String| Class::parse(name).is_some_and(|class| expand(class).union(set) != set);
    list(names.filter(is_beyond))
}

fn set_of(names: &Spanned<OneOrMany<String>>) -> ClassSet {
    let classes = names.value.0.iter().filter_map(|name| Class::parse(&name.value));
    classes.map(expand).fold(ClassSet::default(), ClassSet::union)
}

/// What a class in the file covers.
pub(super) fn expand(class: Class) -> ClassSet {
    match class {
        Class::Write => {
            Class::ALL.into_iter().filter(|class| class.is_covered_by_write()).collect()
        }
        Class::Read
        | Class::LockingRead
        | Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Transaction
        | Class::Session
        | Class::Admin
        | Class::Unknown => ClassSet::default().with(class),
    }
}
