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
