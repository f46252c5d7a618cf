//! Rules by the values they name.

use std::collections::{BTreeMap, HashMap};

use sql::Class;

use super::Facts;
use super::prefixes::Prefixes;
use crate::condition::{Cidr, Condition, Patterns, mask};
use crate::fnv::FnvMap;
use crate::rule::Rule;

/// Rules by the values they name. Every list is ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleIndex {
    apps: ValueIndex,
    users: ValueIndex,
    schemas: ValueIndex,
    tags: FnvMap<Box<[u8]>, ValueIndex>,
    attributes: FnvMap<Box<[u8]>, ValueIndex>,
    clients: ClientIndex,
    /// Rules that name no value.
    rest: BTreeMap<Class, Vec<u32>>,
}

/// Rules by the values of one condition.
#[derive(Debug, Clone, Default)]
struct ValueIndex {
    exact: FnvMap<Box<[u8]>, Vec<u32>>,
    prefixes: Prefixes,
    /// Prefixes on their way into `prefixes`.
    staged: Vec<(Box<[u8]>, u32)>,
    present: Vec<u32>,
}

/// Rules by networks, the longest prefix first.
#[derive(Debug, Clone, Default)]
struct ClientIndex {
    by_len: Vec<(u32, FnvMap<u128, Vec<u32>>)>,
}

/// One condition that a rule can be found by.
#[derive(Debug, Clone, Copy)]
enum Anchor<'r> {
    App(&'r Patterns),
    User(&'r Patterns),
    Schema(&'r Patterns),
    Tag(&'r [u8], &'r Patterns),
    Attribute(&'r [u8], &'r Patterns),
    Client(&'r [Cidr]),
}

/// One value of one condition, to count how many rules share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shared<'r> {
    condition: u8,
    key: &'r [u8],
    value: SharedValue<'r>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SharedValue<'r> {
    Exact(&'r [u8]),
    Prefix(&'r [u8]),
    Present,
    Network(Cidr),
}

impl RuleIndex {
    /// The index of a list of rules.
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let mut sharers: HashMap<Shared<'_>, u32> = HashMap::new();
        for rule in rules {
            for shared in anchors(&rule.condition).flat_map(Anchor::values) {
                let count = sharers.entry(shared).or_default();
                *count = count.saturating_add(1);
            }
        }
        let cost = |anchor: &Anchor<'_>| {
            anchor.values().filter_map(|value| sharers.get(&value).copied()).max()
        };
        let mut index = Self::default();
        for rule in rules {
            match anchors(&rule.condition).min_by_key(cost) {
                Some(anchor) => index.add(anchor, rule.index),
                None => index.add_rest(rule),
            }
        }
        index.link();
        index
    }

    fn add(&mut self, anchor: Anchor<'_>, rule: u32) {
        match anchor {
            Anchor::App(values) => self.apps.add(values, rule),
            Anchor::User(values) => self.users.add(values, rule),
            Anchor::Schema(values) => self.schemas.add(values, rule),
            Anchor::Tag(key, values) => {
                self.tags.entry(key.into()).or_default().add(values, rule);
            }
            Anchor::Attribute(key, values) => {
                self.attributes.entry(key.into()).or_default().add(values, rule);
            }
            Anchor::Client(networks) => {
                for network in networks {
                    self.clients.add(*network, rule);
                }
            }
        }
    }

    fn add_rest(&mut self, rule: &Rule) {
        for class in Class::ALL {
            if rule.condition.allows_class(class) {
                self.rest.entry(class).or_default().push(rule.index);
            }
        }
    }

    fn link(&mut self) {
        for values in [&mut self.apps, &mut self.users, &mut self.schemas] {
            values.link();
        }
        for values in self.tags.values_mut().chain(self.attributes.values_mut()) {
            values.link();
        }
    }

    /// The first rule in force that matches.
    pub(crate) fn first_match<'p>(&self, rules: &'p [Rule], facts: &Facts<'_>) -> Option<&'p Rule> {
        let mut search = Search { rules, facts, best: None };
        let Facts { identity, session, .. } = *facts;
        if !self.apps.is_empty() {
            self.apps.look_up(identity.app, &mut search);
            if identity.app.contains(&b':') {
                for level in identity.app.split(|byte| *byte == b':') {
                    self.apps.look_up(level, &mut search);
                }
            }
        }
        self.users.look_up(session.user(), &mut search);
        self.schemas.look_up(session.schema(), &mut search);
        if !self.tags.is_empty() {
            for (key, value) in identity.tags() {
                if let Some(values) = self.tags.get(key) {
                    values.look_up(value, &mut search);
                }
            }
        }
        if !self.attributes.is_empty() {
            for (key, value) in session.attributes() {
                if let Some(values) = self.attributes.get(key) {
                    values.look_up(value, &mut search);
                }
            }
        }
        if let Some(address) = session.client_bits() {
            self.clients.look_up(address, &mut search);
        }
        if let Some(rest) = self.rest.get(&facts.class) {
            search.consider(rest);
        }
        search.best
    }
}

impl ValueIndex {
    fn add(&mut self, values: &Patterns, rule: u32) {
        for exact in &values.exact {
            self.exact.entry(exact.clone()).or_default().push(rule);
        }
        for prefix in &values.prefixes {
            self.staged.push((prefix.clone(), rule));
        }
        if values.present {
            self.present.push(rule);
        }
    }

    fn link(&mut self) {
        self.prefixes = Prefixes::new(std::mem::take(&mut self.staged));
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.present.is_empty()
    }

    fn look_up(&self, value: &[u8], search: &mut Search<'_, '_>) {
        if value.is_empty() || self.is_empty() {
            return;
        }
        if let Some(rules) = self.exact.get(value) {
            search.consider(rules);
        }
        for rules in self.prefixes.of(value) {
            search.consider(rules);
        }
        search.consider(&self.present);
    }
}

impl ClientIndex {
    fn add(&mut self, network: Cidr, rule: u32) {
        let at = self.by_len.partition_point(|(len, _)| *len > network.prefix_len);
        if self.by_len.get(at).is_none_or(|(len, _)| *len != network.prefix_len) {
            self.by_len.insert(at, (network.prefix_len, FnvMap::default()));
        }
        if let Some((_, networks)) = self.by_len.get_mut(at) {
            networks.entry(network.network).or_default().push(rule);
        }
    }

    fn look_up(&self, address: u128, search: &mut Search<'_, '_>) {
        for (len, networks) in &self.by_len {
            if let Some(rules) = networks.get(&(address & mask(*len))) {
                search.consider(rules);
            }
        }
    }
}

/// The best match so far.
struct Search<'p, 'f> {
    rules: &'p [Rule],
    facts: &'f Facts<'f>,
    best: Option<&'p Rule>,
}

impl Search<'_, '_> {
    /// Looks for a better match among candidates in ascending order.
    fn consider(&mut self, candidates: &[u32]) {
        for &index in candidates {
            if self.best.is_some_and(|best| best.index <= index) {
                return;
            }
            let rule = usize::try_from(index).ok().and_then(|index| self.rules.get(index));
            let Some(rule) = rule else { return };
            if !rule.is_expired(self.facts.now) && rule.condition.matches(self.facts) {
                self.best = Some(rule);
                return;
            }
        }
    }
}

/// The conditions that a rule can be found by.
fn anchors(condition: &Condition) -> impl Iterator<Item = Anchor<'_>> {
    let user = condition.user.as_ref().map(Anchor::User);
    let app = condition.app.as_ref().map(Anchor::App);
    let schema = condition.schema.as_ref().map(Anchor::Schema);
    let client = condition.client.as_deref().map(Anchor::Client);
    let tags = condition.tags.iter().map(|(key, values)| Anchor::Tag(key, values));
    let attributes =
        condition.attributes.iter().map(|(key, values)| Anchor::Attribute(key, values));
    [user, app, schema, client].into_iter().flatten().chain(tags).chain(attributes)
}

impl<'r> Anchor<'r> {
    fn values(self) -> impl Iterator<Item = Shared<'r>> {
        const NO_KEY: &[u8] = b"";
        let (condition, key, patterns, networks): (u8, _, _, &[Cidr]) = match self {
            Self::App(patterns) => (0, NO_KEY, Some(patterns), &[]),
            Self::User(patterns) => (1, NO_KEY, Some(patterns), &[]),
            Self::Schema(patterns) => (2, NO_KEY, Some(patterns), &[]),
            Self::Tag(key, patterns) => (3, key, Some(patterns), &[]),
            Self::Attribute(key, patterns) => (4, key, Some(patterns), &[]),
            Self::Client(networks) => (5, NO_KEY, None, networks),
        };
        let exact = patterns.map(|patterns| patterns.exact.as_slice()).unwrap_or_default();
        let prefixes = patterns.map(|patterns| patterns.prefixes.as_slice()).unwrap_or_default();
        let present = patterns.is_some_and(|patterns| patterns.present);
        let exact = exact.iter().map(|value| SharedValue::Exact(value));
        let prefixes = prefixes.iter().map(|value| SharedValue::Prefix(value));
        let networks = networks.iter().map(|network| SharedValue::Network(*network));
        let values = exact.chain(prefixes).chain(networks);
        values.chain(present.then_some(SharedValue::Present)).map(move |value| Shared {
            condition,
            key,
            value,
        })
    }
}
