//! Rules by the values they name.

use std::collections::{BTreeMap, HashMap};

use sql::Class;

use super::prefixes::Prefixes;
use crate::cidr::{Cidr, mask};
use crate::condition::Condition;
use crate::facts::Facts;
use crate::fnv::FnvMap;
use crate::patterns::{Folded, Patterns};
use crate::rule::{Rule, Standing};
use crate::shape::{Caution, TablePatterns};

/// Rules by the values they name. Every list is ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleIndex {
    apps: ValueIndex,
    users: ValueIndex,
    schemas: ValueIndex,
    tags: FnvMap<Box<[u8]>, ValueIndex>,
    attributes: FnvMap<Box<[u8]>, ValueIndex>,
    clients: ClientIndex,
    digests: FnvMap<u64, Vec<u32>>,
    tables: TableIndex,
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

/// Rules by tables.
#[derive(Debug, Clone, Default)]
struct TableIndex {
    names: ValueIndex,
    qualified: ValueIndex,
    /// Those that hold back or deny: where not every table is known, or a schema as a whole is
    /// meant, any of them may match.
    holding: Vec<u32>,
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
    Digest(&'r [u64]),
    Table(&'r TablePatterns),
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
    Hash(u64),
}

/// What can be found by its conditions.
pub(crate) trait Indexed {
    fn condition(&self) -> &Condition;
    /// Its place in the list.
    fn index(&self) -> u32;
    /// What it does with a statement of which something is not known.
    fn caution(&self) -> Caution;
}

/// Who looks at what is found.
pub(crate) trait Candidates {
    /// These may match, in ascending order.
    fn consider(&mut self, candidates: &[u32]);
}

impl Indexed for Rule {
    fn condition(&self) -> &Condition {
        &self.condition
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn caution(&self) -> Caution {
        self.caution()
    }
}

impl RuleIndex {
    /// The index of a list of rules.
    pub(crate) fn new(rules: &[impl Indexed]) -> Self {
        let mut sharers: HashMap<Shared<'_>, u32> = HashMap::new();
        for rule in rules {
            for shared in anchors(rule.condition()).flat_map(Anchor::values) {
                let count = sharers.entry(shared).or_default();
                *count = count.saturating_add(1);
            }
        }
        let cost = |anchor: &Anchor<'_>| {
            anchor.values().filter_map(|value| sharers.get(&value).copied()).max()
        };
        let mut index = Self::default();
        for rule in rules {
            match anchors(rule.condition()).min_by_key(cost) {
                Some(anchor) => index.add(anchor, rule),
                None => index.add_rest(rule),
            }
        }
        index.link();
        index
    }

    fn add(&mut self, anchor: Anchor<'_>, of: &impl Indexed) {
        let rule = of.index();
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
            Anchor::Digest(hashes) => {
                for hash in hashes {
                    self.digests.entry(*hash).or_default().push(rule);
                }
            }
            Anchor::Table(tables) => {
                self.tables.names.add(&tables.names, rule);
                self.tables.qualified.add(&tables.qualified, rule);
                match of.caution() {
                    Caution::Holds => self.tables.holding.push(rule),
                    Caution::Loosens => {}
                }
            }
        }
    }

    fn add_rest(&mut self, rule: &impl Indexed) {
        for class in Class::ALL {
            if rule.condition().allows_class(class) {
                self.rest.entry(class).or_default().push(rule.index());
            }
        }
    }

    fn link(&mut self) {
        let TableIndex { names, qualified, holding: _ } = &mut self.tables;
        for values in [&mut self.apps, &mut self.users, &mut self.schemas, names, qualified] {
            values.link();
        }
        for values in self.tags.values_mut().chain(self.attributes.values_mut()) {
            values.link();
        }
    }

    /// The first rule in force that matches a statement of this class.
    pub(crate) fn first_match<'p>(
        &self,
        rules: &'p [Rule],
        facts: &Facts<'_>,
        class: Class,
    ) -> Option<&'p Rule> {
        let mut search = Search { rules, facts, class, best: None };
        self.look_up(facts, class, &mut search);
        search.best
    }

    /// Shows those that may match a statement of this class; one more than once if several of its
    /// values are the statement's.
    pub(crate) fn look_up(&self, facts: &Facts<'_>, class: Class, search: &mut impl Candidates) {
        let Facts { identity, session, .. } = *facts;
        if !self.apps.is_empty() {
            self.apps.look_up(identity.app, search);
            if identity.app.contains(&b':') {
                for level in identity.app.split(|byte| *byte == b':') {
                    self.apps.look_up(level, search);
                }
            }
        }
        self.users.look_up(session.user(), search);
        if !self.schemas.is_empty() {
            self.schemas.look_up(Folded::of(session.schema()).name(), search);
        }
        if !self.tags.is_empty() {
            for (key, value) in identity.tags() {
                if let Some(values) = self.tags.get(key) {
                    values.look_up(value, search);
                }
            }
        }
        if !self.attributes.is_empty() {
            for (key, value) in session.attributes() {
                if let Some(values) = self.attributes.get(key) {
                    values.look_up(value, search);
                }
            }
        }
        if let Some(address) = session.client_bits() {
            self.clients.look_up(address, search);
        }
        if let Some(rules) = facts.shape.digest.and_then(|digest| self.digests.get(&digest)) {
            search.consider(rules);
        }
        self.tables.look_up(facts, search);
        if let Some(rest) = self.rest.get(&class) {
            search.consider(rest);
        }
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

    fn look_up(&self, value: &[u8], search: &mut impl Candidates) {
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

impl TableIndex {
    fn look_up(&self, facts: &Facts<'_>, search: &mut impl Candidates) {
        if self.names.is_empty() && self.qualified.is_empty() {
            return;
        }
        if !facts.knows_tables() {
            search.consider(&self.holding);
        }
        for table in facts.shape.tables.iter() {
            if table.is_schema() {
                search.consider(&self.holding);
                search.consider(&self.names.present);
            }
            self.names.look_up(table.name, search);
            self.qualified.look_up(table.qualified, search);
        }
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

    fn look_up(&self, address: u128, search: &mut impl Candidates) {
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
    class: Class,
    best: Option<&'p Rule>,
}

impl Candidates for Search<'_, '_> {
    /// Looks for a better match.
    fn consider(&mut self, candidates: &[u32]) {
        for &index in candidates {
            if self.best.is_some_and(|best| best.index <= index) {
                return;
            }
            let rule = usize::try_from(index).ok().and_then(|index| self.rules.get(index));
            let Some(rule) = rule else { return };
            if rule.is_about(self.facts, self.class)
                && rule.standing(self.facts.now) == Standing::InForce
            {
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
    let digest = condition.digests.as_deref().map(Anchor::Digest);
    let table = condition.tables.as_ref().map(Anchor::Table);
    let plain = [user, app, schema, client, digest, table];
    plain.into_iter().flatten().chain(tags).chain(attributes)
}

impl<'r> Anchor<'r> {
    fn values(self) -> impl Iterator<Item = Shared<'r>> {
        const NO_KEY: &[u8] = b"";
        type Parts<'r> = (u8, &'r [u8], Option<&'r Patterns>, Option<&'r Patterns>);
        let (condition, key, patterns, qualified): Parts<'r> = match self {
            Self::App(patterns) => (0, NO_KEY, Some(patterns), None),
            Self::User(patterns) => (1, NO_KEY, Some(patterns), None),
            Self::Schema(patterns) => (2, NO_KEY, Some(patterns), None),
            Self::Tag(key, patterns) => (3, key, Some(patterns), None),
            Self::Attribute(key, patterns) => (4, key, Some(patterns), None),
            Self::Client(_) => (5, NO_KEY, None, None),
            Self::Digest(_) => (6, NO_KEY, None, None),
            Self::Table(tables) => (7, NO_KEY, Some(&tables.names), Some(&tables.qualified)),
        };
        let networks: &[Cidr] = if let Self::Client(networks) = self { networks } else { &[] };
        let hashes: &[u64] = if let Self::Digest(hashes) = self { hashes } else { &[] };
        let networks = networks.iter().map(|network| SharedValue::Network(*network));
        let hashes = hashes.iter().map(|hash| SharedValue::Hash(*hash));
        let patterns = patterns.into_iter().chain(qualified).flat_map(shared_values);
        patterns.chain(networks).chain(hashes).map(move |value| Shared { condition, key, value })
    }
}

fn shared_values(patterns: &Patterns) -> impl Iterator<Item = SharedValue<'_>> {
    let exact = patterns.exact.iter().map(|value| SharedValue::Exact(value));
    let prefixes = patterns.prefixes.iter().map(|value| SharedValue::Prefix(value));
    exact.chain(prefixes).chain(patterns.present.then_some(SharedValue::Present))
}
