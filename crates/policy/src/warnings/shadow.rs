//! Rules that never decide, because earlier ones always do.
//!
//! Theory. For each class of a text the first rule decides that matches and is in force. What it
//! does then does not matter here: a rule that only observes has decided, and so has one whose
//! `statements` do not cover the class. So a rule is shadowed when some earlier rule matches
//! whatever it matches, and is in force whenever it is. Both are told from the conditions alone:
//! each condition of the earlier rule must be implied by one of the later. Several rules shadow one
//! together when they do so in turn by their schedules, or when each part of it, by the values that
//! it names, is shadowed: see [`parts`]. Where that cannot be told, the rule is not shadowed: two
//! halves of a network, or of the time until it ends, are not found, nor is one tag that always
//! stands beside another.
//!
//! Of a rule that looks at tables, what is not known decides too, and with it what the rule covers: see
//! `Caution`.

mod parts;

use std::collections::HashMap;

use sql::{Class, ClassSet};

use super::Found;
use crate::cidr::Cidr;
use crate::condition::Condition;
use crate::fault::Faults;
use crate::patterns::Patterns;
use crate::rule::Rule;
use crate::schedule::Schedule;
use crate::shape::{Caution, TablePatterns};

/// Most pairs of rules that are compared, some tenths of a second: rules on apps or users are not
/// compared with all others, so only ten thousand rules on something else come near it.
const PAIRS_MAX: usize = 4_000_000;

/// What comparing two schedules, minute by minute of a week, counts for.
const SCHEDULE_PAIRS: usize = 10_000;

/// Most rules that a warning names.
const NAMED_MAX: usize = 3;

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    // By the rule's name: in how many clusters it stands, and who shadows it there.
    let mut standing: HashMap<&str, (usize, Vec<Vec<&Rule>>)> = HashMap::new();
    for cluster in &found.config.clusters {
        let mut earlier = Earlier::default();
        for rule in cluster.rules.iter().filter(|rule| !rule.is_expired(found.now)) {
            let (count, by) = standing.entry(&rule.name).or_default();
            *count = count.saturating_add(1);
            by.extend(earlier.that_cover(rule));
            earlier.add(rule);
        }
    }
    let mut places = HashMap::new();
    for rule in found.rules() {
        let Some(name) = &rule.value.name else { continue };
        places.insert(name.value.as_str(), &rule.place);
        let Some((count, by)) = standing.get(name.value.as_str()) else { continue };
        let (Some(first), true) = (by.first(), by.len() == *count) else { continue };
        let named = |rule: &&Rule| {
            let place = places.get(&*rule.name);
            let stands = place.map(|place| format!(" ({}, line {})", place.path, place.line));
            format!("`{}`{}", rule.name, stands.unwrap_or_default())
        };
        let names: Vec<String> = first.iter().take(NAMED_MAX).map(named).collect();
        let more = match first.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let do_what = match *first.as_slice() {
            [_] => "matches all that it matches, and comes first",
            _ => "match all that it matches between them, and come first",
        };
        let message = format!("never decides: {}{more} {do_what}", names.join(", "));
        warnings.add(&rule.place, message);
    }
}

/// The rules so far, by a value that a later one must share to be covered.
#[derive(Default)]
struct Earlier<'r> {
    apps: ByValue<'r>,
    users: ByValue<'r>,
    /// With neither app nor user.
    others: Vec<&'r Rule>,
    compared: usize,
}

#[derive(Default)]
struct ByValue<'r> {
    exact: HashMap<&'r [u8], Vec<&'r Rule>>,
    prefixes: HashMap<&'r [u8], Vec<&'r Rule>>,
    present: Vec<&'r Rule>,
}

impl<'r> Earlier<'r> {
    fn add(&mut self, rule: &'r Rule) {
        let Condition { app, user, .. } = &*rule.condition;
        match (app, user) {
            (Some(apps), _) => self.apps.add(apps, rule),
            (None, Some(users)) => self.users.add(users, rule),
            (None, None) => self.others.push(rule),
        }
    }

    /// The rules that shadow this one: the first that does so alone, or else several, in the order
    /// of the file.
    fn that_cover(&mut self, rule: &Rule) -> Option<Vec<&'r Rule>> {
        let mut by = Vec::new();
        if !self.cover(rule, &mut by) {
            return None;
        }
        by.sort_unstable_by_key(|earlier| earlier.index);
        by.dedup_by_key(|earlier| earlier.index);
        Some(by)
    }

    /// Whether the rules so far shadow this one, or part of one, and which.
    fn cover(&mut self, rule: &Rule, by: &mut Vec<&'r Rule>) -> bool {
        if self.compared > PAIRS_MAX {
            return false;
        }
        let candidates = self.candidates(rule);
        let alone = candidates.iter().find(|earlier| self.is_in_force_with(earlier, rule));
        if let Some(alone) = alone {
            by.push(alone);
            return true;
        }
        if self.take_turns(&candidates, rule) {
            by.extend(candidates);
            return true;
        }
        let Some(mut parts) = parts::of(rule) else { return false };
        parts.all(|(part, len)| {
            self.compared = self.compared.saturating_add(len);
            self.cover(&part, by)
        })
    }

    /// The rules that match all that this one matches and do not end before it, in the order of the
    /// file.
    fn candidates(&mut self, rule: &Rule) -> Vec<&'r Rule> {
        let Condition { app, user, .. } = &*rule.condition;
        let mut candidates: Vec<&'r Rule> = self.others.clone();
        // One of a rule's values is as good as another: all of them must be covered.
        if let Some(apps) = app {
            let whole = one_of(apps);
            let levels = whole.split(|byte| *byte == b':').filter(|level| *level != whole);
            for value in std::iter::once(whole).chain(levels) {
                self.apps.near(value, &mut candidates);
            }
            candidates.extend(&self.apps.present);
        }
        if let Some(users) = user {
            self.users.near(one_of(users), &mut candidates);
            candidates.extend(&self.users.present);
        }
        self.compared = self.compared.saturating_add(candidates.len());
        candidates.retain(|earlier| covers(earlier, rule));
        candidates.sort_unstable_by_key(|earlier| earlier.index);
        candidates.dedup_by_key(|earlier| earlier.index);
        candidates
    }

    /// Whether one or the other of these is in force whenever the later one is.
    fn take_turns(&mut self, earlier: &[&Rule], later: &Rule) -> bool {
        let schedules = || earlier.iter().filter_map(|rule| rule.schedule.as_deref());
        if schedules().nth(1).is_none() {
            return false;
        }
        self.compared =
            self.compared.saturating_add(SCHEDULE_PAIRS.saturating_mul(schedules().count()));
        self.compared <= PAIRS_MAX
            && Schedule::any_of(schedules()).covers(later.schedule.as_deref())
    }

    /// Whether the earlier rule's schedule puts it in force whenever the later one is.
    fn is_in_force_with(&mut self, earlier: &Rule, later: &Rule) -> bool {
        let Some(schedule) = &earlier.schedule else { return true };
        self.compared = self.compared.saturating_add(SCHEDULE_PAIRS);
        self.compared <= PAIRS_MAX && schedule.covers(later.schedule.as_deref())
    }
}

impl<'r> ByValue<'r> {
    fn add(&mut self, patterns: &'r Patterns, rule: &'r Rule) {
        for value in &patterns.exact {
            self.exact.entry(value).or_default().push(rule);
        }
        for prefix in &patterns.prefixes {
            self.prefixes.entry(prefix).or_default().push(rule);
        }
        if patterns.present {
            self.present.push(rule);
        }
    }

    /// The rules that name this value or one of its prefixes.
    fn near(&self, value: &[u8], candidates: &mut Vec<&'r Rule>) {
        candidates.extend(self.exact.get(value).into_iter().flatten());
        for len in 1..=value.len() {
            let prefix = value.get(..len).and_then(|prefix| self.prefixes.get(prefix));
            candidates.extend(prefix.into_iter().flatten());
        }
    }
}

/// One of the values; for `*`, nothing.
fn one_of(patterns: &Patterns) -> &[u8] {
    let value = patterns.exact.first().or_else(|| patterns.prefixes.first());
    if patterns.present { &[] } else { value.map(|value| &**value).unwrap_or_default() }
}

/// Whether the earlier rule matches whatever the later one matches, and does not end before it.
fn covers(earlier: &Rule, later: &Rule) -> bool {
    let lasts =
        earlier.expires_at.is_none_or(|end| later.expires_at.is_some_and(|other| other <= end));
    lasts && covers_condition(earlier, later)
}

fn covers_condition(earlier: &Rule, later: &Rule) -> bool {
    let (wide, narrow) = (&*earlier.condition, &*later.condition);
    each(&wide.app, &narrow.app, covers_apps)
        && each(&wide.user, &narrow.user, covers_values)
        && each(&wide.schema, &narrow.schema, covers_values)
        && covers_keyed(&wide.tags, &narrow.tags)
        && covers_keyed(&wide.attributes, &narrow.attributes)
        && each(&wide.client, &narrow.client, |wide, narrow| covers_networks(wide, narrow))
        && covers_classes(wide.statements, narrow.statements)
        && each(&wide.digests, &narrow.digests, |wide, narrow| {
            narrow.iter().all(|digest| wide.binary_search(digest).is_ok())
        })
        && each(&wide.tables, &narrow.tables, covers_tables)
        && (wide.tables.is_none() || is_as_cautious(earlier, later))
}

/// Whether the earlier rule takes tables that are not known wherever the later one does. A rule lets
/// pass what it does not cover, and takes of that only what is certain to be all its own.
fn is_as_cautious(earlier: &Rule, later: &Rule) -> bool {
    let takes = |first: Caution, second: Caution| first == Caution::Holds || first == second;
    let with = |rule: &Rule, class: Class| {
        if rule.statements.contains(class) { rule.caution() } else { Caution::Loosens }
    };
    let mut matched = Class::ALL.into_iter().filter(|class| later.condition.allows_class(*class));
    takes(earlier.caution(), later.caution())
        && matched.all(|class| takes(with(earlier, class), with(later, class)))
}

/// Whether a condition that must hold is implied by the same of another rule.
fn each<T>(wide: &Option<T>, narrow: &Option<T>, covers: impl FnOnce(&T, &T) -> bool) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => covers(wide, narrow),
        (Some(_), None) => false,
    }
}

fn covers_values(wide: &Patterns, narrow: &Patterns) -> bool {
    let has_prefix = |value: &[u8]| wide.prefixes.iter().any(|prefix| value.starts_with(prefix));
    wide.present
        || (!narrow.present
            && narrow.exact.iter().all(|value| wide.matches(value))
            && narrow.prefixes.iter().all(|prefix| has_prefix(prefix)))
}

/// A value without `:` is one of an app's levels, one with `:` the whole of it.
fn covers_apps(wide: &Patterns, narrow: &Patterns) -> bool {
    let has_prefix = |value: &[u8]| wide.prefixes.iter().any(|prefix| value.starts_with(prefix));
    // What follows a prefix is not known, so its last level is only begun.
    let covers_prefix = |prefix: &[u8]| {
        let mut levels = prefix.rsplit(|byte| *byte == b':');
        has_prefix(prefix)
            || levels.next().is_some_and(|begun| prefix.len() > begun.len() && has_prefix(begun))
            || levels.any(|level| wide.matches(level))
    };
    wide.present
        || (!narrow.present
            && narrow.exact.iter().all(|app| wide.matches_app(app))
            && narrow.prefixes.iter().all(|prefix| covers_prefix(prefix)))
}

type Keyed = [(Box<[u8]>, Patterns)];

fn covers_keyed(wide: &Keyed, narrow: &Keyed) -> bool {
    wide.iter().all(|(key, values)| {
        let same = narrow.iter().find(|(other, _)| other == key);
        same.is_some_and(|(_, narrow)| covers_values(values, narrow))
    })
}

fn covers_networks(wide: &[Cidr], narrow: &[Cidr]) -> bool {
    narrow.iter().all(|inner| wide.iter().any(|outer| inner.is_within(*outer)))
}

fn covers_classes(wide: Option<ClassSet>, narrow: Option<ClassSet>) -> bool {
    let Some(wide) = wide else { return true };
    let named = |class: &Class| narrow.is_none_or(|narrow| narrow.contains(*class));
    Class::ALL.into_iter().filter(named).all(|class| wide.contains(class))
}

fn covers_tables(wide: &TablePatterns, narrow: &TablePatterns) -> bool {
    let has_prefix = |prefixes: &[Box<[u8]>], value: &[u8]| {
        prefixes.iter().any(|prefix| value.starts_with(prefix))
    };
    let TablePatterns { names, qualified } = wide;
    covers_values(names, &narrow.names)
        && narrow
            .qualified
            .exact
            .iter()
            .all(|table| qualified.matches(table) || names.matches(unqualified(table)))
        && narrow.qualified.prefixes.iter().all(|prefix| {
            let name = unqualified(prefix);
            names.present
                || has_prefix(&qualified.prefixes, prefix)
                || has_prefix(&names.prefixes, name)
        })
}

/// What stands behind the schema.
fn unqualified(table: &[u8]) -> &[u8] {
    table.splitn(2, |byte| *byte == 0).nth(1).unwrap_or_default()
}
