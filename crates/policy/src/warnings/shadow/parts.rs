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

use crate::cidr::Cidr;
use crate::condition::Condition;
use crate::patterns::Patterns;
use crate::rule::Rule;

/// One value of a condition that has several.
enum Value {
    App(Patterns),
    User(Patterns),
    Schema(Patterns),
    /// Of the tag at this place.
    Tag(usize, Patterns),
    /// Of the attribute at this place.
    Attribute(usize, Patterns),
    Client(Cidr),
    Digest(u64),
    Class(Class),
}

/// The rule once for each value of its first condition that has several, each with what it takes to
/// make: the values that it names. `None`: no condition has several.
pub(super) fn of(rule: &Rule) -> Option<impl Iterator<Item = (Rule, usize)> + use<>> {
    let mut rest = (*rule.condition).clone();
    let values = take_values(&mut rest)?;
    let names = len(&rest);
    let rest = Rule { condition: Arc::new(rest), ..rule.clone() };
    Some(values.into_iter().map(move |value| {
        let mut condition = (*rest.condition).clone();
        value.put_into(&mut condition);
        (Rule { condition: Arc::new(condition), ..rest.clone() }, names.saturating_add(1))
    }))
}

/// Takes the values of the first condition that has several.
fn take_values(from: &mut Condition) -> Option<Vec<Value>> {
    let Condition { app, user, schema, tags, attributes, client, statements, digests, tables: _ } =
        from;
    let has_several = |patterns: &mut Option<Patterns>| patterns.take_if(|them| several(them));
    if let Some(apps) = has_several(app) {
        return Some(one_each(apps).map(Value::App).collect());
    }
    if let Some(users) = has_several(user) {
        return Some(one_each(users).map(Value::User).collect());
    }
    if let Some(schemas) = has_several(schema) {
        return Some(one_each(schemas).map(Value::Schema).collect());
    }
    if let Some((at, values)) = take_keyed(tags) {
        return Some(one_each(values).map(|value| Value::Tag(at, value)).collect());
    }
    if let Some((at, values)) = take_keyed(attributes) {
        return Some(one_each(values).map(|value| Value::Attribute(at, value)).collect());
    }
    if let Some(networks) = client.take_if(|networks| networks.len() > 1) {
        return Some(networks.into_iter().map(Value::Client).collect());
    }
    if let Some(digests) = digests.take_if(|digests| digests.len() > 1) {
        return Some(digests.into_iter().map(Value::Digest).collect());
    }
    let named = statements.as_ref()?;
    let classes: Vec<Value> =
        Class::ALL.into_iter().filter(|class| named.contains(*class)).map(Value::Class).collect();
    (classes.len() > 1).then_some(classes)
}

impl Value {
    fn put_into(self, condition: &mut Condition) {
        match self {
            Self::App(app) => condition.app = Some(app),
            Self::User(user) => condition.user = Some(user),
            Self::Schema(schema) => condition.schema = Some(schema),
            Self::Tag(at, value) => put_keyed(&mut condition.tags, (at, value)),
            Self::Attribute(at, value) => put_keyed(&mut condition.attributes, (at, value)),
            Self::Client(network) => condition.client = Some(vec![network]),
            Self::Digest(digest) => condition.digests = Some(vec![digest]),
            Self::Class(class) => condition.statements = Some(ClassSet::default().with(class)),
        }
    }
}

/// Whether it names several values, and not all of them with `*`.
fn several(patterns: &Patterns) -> bool {
    !patterns.present && len_of(patterns) > 1
}

fn len_of(patterns: &Patterns) -> usize {
    patterns.exact.len().saturating_add(patterns.prefixes.len())
}

/// Each value alone.
fn one_each(Patterns { exact, prefixes, .. }: Patterns) -> impl Iterator<Item = Patterns> {
    let exact =
        exact.into_iter().map(|value| Patterns { exact: vec![value], ..Patterns::default() });
    let begun = prefixes
        .into_iter()
        .map(|prefix| Patterns { prefixes: vec![prefix], ..Patterns::default() });
    exact.chain(begun)
}

type Keyed = Vec<(Box<[u8]>, Patterns)>;

/// The values of the first key that has several, and its place.
fn take_keyed(keyed: &mut Keyed) -> Option<(usize, Patterns)> {
    let mut places = keyed.iter_mut().enumerate();
    let (at, (_, values)) = places.find(|(_, (_, values))| several(values))?;
    Some((at, std::mem::take(values)))
}

fn put_keyed(keyed: &mut Keyed, (at, value): (usize, Patterns)) {
    if let Some((_, values)) = keyed.get_mut(at) {
        *values = value;
    }
}

/// The values that a condition names.
fn len(condition: &Condition) -> usize {
    let Condition { app, user, schema, tags, attributes, client, digests, .. } = condition;
    let named = [app, user, schema].into_iter().flatten().map(len_of);
    let keyed = tags.iter().chain(attributes).map(|(_, values)| len_of(values));
    let listed = [client.as_ref().map(Vec::len), digests.as_ref().map(Vec::len)];
    named.chain(keyed).chain(listed.into_iter().flatten()).fold(0, usize::saturating_add)
}
