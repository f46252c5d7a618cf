//! A rule in parts, by the values that it names.
//!
//! Theory. The values of one condition are ORed: what a rule on two apps matches is what the same
//! rule on the first matches, and what it matches on the second. So earlier rules that shadow each
//! of its parts shadow the rule. Parts are made one condition at a time, and only of what no earlier
//! rule takes as a whole, until one part is left that nobody takes: then that is what the rule
//! decides. Tables are no such condition, for a statement has several of them and a rule that lets
//! pass wants all to be its own.

use std::sync::Arc;

use sql::{Class, ClassSet};

use crate::condition::Condition;
use crate::patterns::Patterns;
use crate::rule::Rule;

/// The rule once for each value of its first condition that has several. `None`: none has.
pub(super) fn of(rule: &Rule) -> Option<Vec<Rule>> {
    let conditions = of_condition(&rule.condition)?;
    let part = |condition| Rule { condition: Arc::new(condition), ..rule.clone() };
    Some(conditions.into_iter().map(part).collect())
}

fn of_condition(whole: &Condition) -> Option<Vec<Condition>> {
    let with = |change: &dyn Fn(&mut Condition)| {
        let mut part = whole.clone();
        change(&mut part);
        part
    };
    if let Some(apps) = whole.app.as_ref().and_then(one_each) {
        return Some(each(apps, |app| with(&|part| part.app = Some(app.clone()))));
    }
    if let Some(users) = whole.user.as_ref().and_then(one_each) {
        return Some(each(users, |user| with(&|part| part.user = Some(user.clone()))));
    }
    if let Some(schemas) = whole.schema.as_ref().and_then(one_each) {
        return Some(each(schemas, |schema| with(&|part| part.schema = Some(schema.clone()))));
    }
    if let Some(tags) = one_each_of_keyed(&whole.tags) {
        return Some(each(tags, |tags| with(&|part| part.tags.clone_from(&tags))));
    }
    if let Some(attributes) = one_each_of_keyed(&whole.attributes) {
        return Some(each(attributes, |all| with(&|part| part.attributes.clone_from(&all))));
    }
    if let Some([first, second, rest @ ..]) = whole.client.as_deref() {
        let networks = [first, second].into_iter().chain(rest);
        return Some(each(networks, |network| with(&|part| part.client = Some(vec![*network]))));
    }
    if let Some([first, second, rest @ ..]) = whole.digests.as_deref() {
        let digests = [first, second].into_iter().chain(rest);
        return Some(each(digests, |digest| with(&|part| part.digests = Some(vec![*digest]))));
    }
    let classes =
        whole.statements.map(|set| Class::ALL.into_iter().filter(move |c| set.contains(*c)))?;
    let parts = each(classes, |class| {
        with(&|part| part.statements = Some(ClassSet::default().with(class)))
    });
    (parts.len() > 1).then_some(parts)
}

fn each<T>(values: impl IntoIterator<Item = T>, part: impl Fn(T) -> Condition) -> Vec<Condition> {
    values.into_iter().map(part).collect()
}

/// Each of several values alone. `None`: there are none, for `*` is all of them.
fn one_each(patterns: &Patterns) -> Option<Vec<Patterns>> {
    let Patterns { exact, prefixes, present } = patterns;
    if *present || exact.len().saturating_add(prefixes.len()) < 2 {
        return None;
    }
    let values =
        exact.iter().map(|value| Patterns { exact: vec![value.clone()], ..Patterns::default() });
    let begun = prefixes
        .iter()
        .map(|prefix| Patterns { prefixes: vec![prefix.clone()], ..Patterns::default() });
    Some(values.chain(begun).collect())
}

type Keyed = Vec<(Box<[u8]>, Patterns)>;

/// The same with each value of the first key that has several.
fn one_each_of_keyed(keyed: &Keyed) -> Option<Vec<Keyed>> {
    let (at, values) =
        keyed.iter().enumerate().find_map(|(at, (_, values))| Some((at, one_each(values)?)))?;
    let with = |value: Patterns| {
        let mut part = keyed.clone();
        if let Some((_, values)) = part.get_mut(at) {
            *values = value;
        }
        part
    };
    Some(values.into_iter().map(with).collect())
}
