//! The rules of a cluster that were made at runtime, in a form in which one more costs what one
//! costs.
//!
//! Theory. They come and go while statements are decided by them, and there may be ten thousand. So
//! each is compiled once and kept in maps that share with those of before whatever has not changed
//! ([`super::trie`]): by the user that it names and then the app, by its name, by its number, by its
//! end. A statement's user and app are looked up there; of what is found the rule decides that comes
//! first in their order. The file's rules are not among them: another file leaves all of this as it
//! is, unless its mode or its default gate is another, for those are every runtime rule's too.

use std::cmp::Reverse;
use std::sync::Arc;

use admission::{GateKey, Mode};
use sql::Class;

use super::named::{ByBytes, ByNamed, Named};
use super::trie::Trie;
use crate::compile::RuntimeRule;
use crate::condition::Condition;
use crate::facts::Facts;
use crate::patterns::Patterns;
use crate::rule::{Rule, Standing};
use crate::time::UnixTime;

/// What a runtime rule takes from its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    pub(crate) gate: GateKey,
    pub(crate) gate_is_always_open: bool,
    pub(crate) mode: Mode,
}

/// The rules that were made at runtime.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    /// By the user that they name, then by the app.
    targets: ByNamed<ByNamed<Arc<MadeRule>>>,
    names: ByBytes<Arc<MadeRule>>,
    numbers: Trie<Arc<MadeRule>>,
    /// By their ends: see [`end_key`].
    ends: Trie<Vec<Arc<MadeRule>>>,
    /// When the first of them ends.
    first_end: Option<UnixTime>,
    len: usize,
    last_number: u32,
}

#[derive(Debug)]
struct MadeRule {
    rule: Rule,
    source: RuntimeRule,
    order: Order,
}

/// The one that says most closely whom it is about comes first, of those the newest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Order(Reverse<u8>, Reverse<i64>, Arc<str>);

/// The numbers of rules that were made at runtime have this bit: those of the file are their places.
const MADE: u32 = 1 << 31;

impl Made {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// In their order. Sorts them: for those who show all.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Rule> {
        let mut all: Vec<&MadeRule> = self.names.values().map(|made| &**made).collect();
        all.sort_by(|a, b| a.order.cmp(&b.order));
        all.into_iter().map(|made| &made.rule)
    }

    pub(super) fn at(&self, number: u32) -> Option<&Rule> {
        Some(&self.numbers.get(number_key(number))?.rule)
    }

    pub(super) fn named(&self, name: &str) -> Option<&Rule> {
        Some(&self.names.get(name.as_bytes())?.rule)
    }

    /// Puts a rule in the place of the one of its name.
    pub(super) fn put(&mut self, source: RuntimeRule, basis: Basis) {
        self.remove(source.name());
        let number = self.next_number();
        let made = MadeRule::new(source, number, basis);
        let Target { user, app } = made.target();
        // Names are made of targets, so there is one rule for each. If two names had the same, the
        // later one would count: the one before goes.
        let former = self.targets.get(user).and_then(|apps| apps.get(app)).cloned();
        if let Some(former) = former {
            self.remove(&former.rule.name);
        }
        let mut apps = self.targets.get(user).cloned().unwrap_or_default();
        let made = Arc::new(made);
        let Target { user, app } = made.target();
        apps.set(app, Some(made.clone()));
        self.targets.set(user, Some(apps));
        self.names.set(made.rule.name.as_bytes(), Some(made.clone()));
        self.numbers = self.numbers.with(number_key(number), made.clone());
        let (key, mut ending) = self.ending_with(&made);
        ending.push(made);
        self.ends = self.ends.with(key, ending);
        self.len = self.len.saturating_add(1);
        self.note_first_end();
    }

    /// Takes the rule of this name out, if there is one.
    pub(super) fn remove(&mut self, name: &str) {
        let Some(made) = self.names.get(name.as_bytes()).cloned() else { return };
        let Target { user, app } = made.target();
        if let Some(mut apps) = self.targets.get(user).cloned() {
            apps.set(app, None);
            self.targets.set(user, (!apps.is_empty()).then_some(apps));
        }
        self.names.set(name.as_bytes(), None);
        self.numbers = self.numbers.without(number_key(made.rule.index));
        let (key, mut ending) = self.ending_with(&made);
        ending.retain(|other| !Arc::ptr_eq(other, &made));
        self.ends =
            if ending.is_empty() { self.ends.without(key) } else { self.ends.with(key, ending) };
        self.len = self.len.saturating_sub(1);
        self.note_first_end();
    }

    /// The same rules in a cluster that has another mode, or another default gate.
    pub(super) fn on(&self, basis: Basis) -> Self {
        let mut other = Self { last_number: self.last_number, ..Self::default() };
        for made in self.names.values() {
            other.put(made.source.clone(), basis);
        }
        other
    }

    /// The first of them in force that matches a statement of this class.
    pub(super) fn first_match(&self, facts: &Facts<'_>, class: Class) -> Option<&Rule> {
        let mut best: Option<&MadeRule> = None;
        if self.len == 0 {
            return None;
        }
        for apps in self.targets.of(facts.session.user()).chain(self.targets.of_anybody()) {
            consider(apps.of_anybody(), facts, class, &mut best);
            let app = facts.identity.app;
            consider(apps.of(app), facts, class, &mut best);
            if app.contains(&b':') {
                for level in app.split(|byte| *byte == b':') {
                    consider(apps.of(level), facts, class, &mut best);
                }
            }
        }
        best.map(|made| &made.rule)
    }

    /// When the next of them ends, after this second.
    pub(super) fn next_end_after(&self, now: UnixTime) -> Option<UnixTime> {
        let first = self.first_end?;
        if first > now {
            return Some(first);
        }
        self.ending_after(now).next().and_then(|rule| rule.expires_at)
    }

    /// Those that end in a later second than this one, in the order in which they do.
    pub(super) fn ending_after(&self, now: UnixTime) -> impl Iterator<Item = &Rule> {
        let from = end_key(UnixTime(now.0.saturating_add(1)), 0);
        self.ends.from(from).flat_map(|(_, ending)| ending.iter().map(|made| &made.rule))
    }

    fn note_first_end(&mut self) {
        let first = self.ends.from(0).next().and_then(|(_, ending)| ending.first());
        self.first_end = first.and_then(|made| made.rule.expires_at);
    }

    /// Those whose place by their ends is that of this one.
    fn ending_with(&self, made: &MadeRule) -> (u64, Vec<Arc<MadeRule>>) {
        let end = made.rule.expires_at.unwrap_or(UnixTime(i64::MAX));
        let key = end_key(end, made.rule.index);
        (key, self.ends.get(key).cloned().unwrap_or_default())
    }

    /// One that no rule has: there are far fewer rules than numbers.
    fn next_number(&mut self) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1) & !MADE;
            let number = self.last_number | MADE;
            if self.at(number).is_none() {
                return number;
            }
        }
    }
}

/// Whom a rule names.
struct Target<'r> {
    user: Named<'r>,
    app: Named<'r>,
}

impl MadeRule {
    fn new(source: RuntimeRule, number: u32, basis: Basis) -> Self {
        let rule = source.rule(number, basis);
        let named = |condition: Option<&Patterns>| Named::of(condition).closeness();
        let Condition { app, user, .. } = &*rule.condition;
        let closeness = named(app.as_ref()).saturating_add(named(user.as_ref()));
        let order = Order(Reverse(closeness), Reverse(source.made_at_ms()), rule.name.clone());
        Self { rule, source, order }
    }

    fn target(&self) -> Target<'_> {
        let condition = &self.rule.condition;
        Target { user: Named::of(condition.user.as_ref()), app: Named::of(condition.app.as_ref()) }
    }
}

fn consider<'p>(
    candidates: impl IntoIterator<Item = &'p Arc<MadeRule>>,
    facts: &Facts<'_>,
    class: Class,
    best: &mut Option<&'p MadeRule>,
) {
    for made in candidates {
        let rule = &made.rule;
        if best.is_none_or(|best| made.order < best.order)
            && rule.is_about(facts, class)
            && rule.standing(facts.now) == Standing::InForce
        {
            *best = Some(made);
        }
    }
}

/// Numbers are given one after the other: their low bits are to lead apart.
fn number_key(number: u32) -> u64 {
    u64::from(number.reverse_bits()) << 32
}

/// The second, up to the year 10000, then what tells rules of one second apart.
fn end_key(end: UnixTime, number: u32) -> u64 {
    let second = u64::try_from(end.0).unwrap_or(0).min(SECOND_MAX);
    second << NUMBER_BITS | u64::from(number) & ((1 << NUMBER_BITS) - 1)
}

const NUMBER_BITS: u32 = 26;
const SECOND_MAX: u64 = (1 << (u64::BITS - NUMBER_BITS)) - 1;

#[cfg(test)]
mod tests;
