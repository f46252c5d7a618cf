//! What a valid file says that cannot work, or can hardly be meant.
//!
//! A fault stops a file; a warning does not, for it may be meant: `sluice check` prints it,
//! `sluice check --strict` fails on it, and a running Sluice logs it. So each of them has to be
//! certain of what it says: a warning that is wrong once is not read again. What is said is about
//! the file alone; whether servers and accounts are as it needs them, only they can tell.
//!
//! They are found in the file as it is written, for their lines, beside what was made of it.

mod addresses;
mod admin;
mod claims;
mod foreign;
mod limits;
mod servers;
mod shadow;
mod signals;
mod tools;

use std::collections::HashMap;
use std::time::Duration;

use sql::{Class, ClassSet, LexMode, Scratch, Whole, describe};

use crate::budget::Budget;
use crate::cluster::ClusterPolicy;
use crate::compile::compile;
use crate::config::Config;
use crate::fault::{Fault, Faults};
use crate::guard::Guard;
use crate::raw::{self, Spanned};
use crate::rule::{Action, Rule};
use crate::time::UnixTime;

/// How long before its end a rule is worth a word.
const ENDS_SOON_S: i64 = 86_400;

/// Reads a configuration file as [`crate::load`] does, and finds what in it cannot work, in the
/// order of the file.
///
/// # Errors
/// As [`crate::load`].
pub fn load_with_warnings(text: &str, now: UnixTime) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    let mut faults = Faults::default();
    let file = raw::parse(text, &mut faults).map_err(|fault| vec![fault])?;
    match file.map(|file| (compile(file.clone(), &mut faults), file)) {
        Some((Some(config), file)) if faults.is_empty() => {
            let warnings = warnings(&file, &config, now);
            Ok((config, warnings))
        }
        Some(_) | None => Err(faults.into_sorted()),
    }
}

/// What of a rule that was made while Sluice runs can hardly be meant: what a file would be warned of.
/// It lasts for so long, and is about this app and this user, as they were written.
#[must_use]
pub fn warnings_of_made(
    policy: (&ClusterPolicy, &Rule),
    (app, user): (Option<&str>, Option<&str>),
    lasts: Duration,
) -> Vec<String> {
    let (cluster, rule) = policy;
    let mut said = foreign::of_made(app, user);
    // What is no name at all is nobody's.
    if let Some(app) = app.filter(|_| said.is_empty()) {
        said.extend(claims::of_made(cluster, rule, app));
        said.extend(tools::of_made(policy, app, lasts));
    }
    said
}

fn warnings(file: &raw::File, config: &Config, now: UnixTime) -> Vec<Fault> {
    let mut warnings = Faults::default();
    let found = Found::new(file, config, now);
    found.in_rules(&mut warnings);
    admin::look(file, config, &mut warnings);
    claims::look(&found, &mut warnings);
    foreign::look(file, &mut warnings);
    limits::look(&found, &mut warnings);
    servers::look(&found, &mut warnings);
    shadow::look(&found, &mut warnings);
    signals::look(&found, &mut warnings);
    tools::look(&found, &mut warnings);
    warnings.into_sorted()
}

/// A file, and what was made of it.
struct Found<'f> {
    file: &'f raw::File,
    config: &'f Config,
    now: UnixTime,
    /// What was made of each rule, by its name: one for each cluster that has it.
    compiled: HashMap<&'f str, Vec<(&'f ClusterPolicy, &'f Rule)>>,
    /// The same of each budget.
    budgets: HashMap<&'f str, Vec<(&'f ClusterPolicy, &'f Budget)>>,
    /// The same of each guard.
    guards: HashMap<&'f str, Vec<(&'f ClusterPolicy, &'f Guard)>>,
}

impl<'f> Found<'f> {
    fn new(file: &'f raw::File, config: &'f Config, now: UnixTime) -> Self {
        let compiled = HashMap::new();
        let (budgets, guards) = (HashMap::new(), HashMap::new());
        let mut found = Self { file, config, now, compiled, budgets, guards };
        for cluster in &config.clusters {
            for rule in cluster.rules.iter() {
                found.compiled.entry(&*rule.name).or_default().push((cluster, rule));
            }
            for budget in cluster.budgets.iter() {
                found.budgets.entry(&*budget.name).or_default().push((cluster, budget));
            }
            for guard in cluster.guards.iter() {
                found.guards.entry(&*guard.name).or_default().push((cluster, guard));
            }
        }
        found
    }

    /// The rules as they are written.
    fn rules(&self) -> &'f [Spanned<raw::Rule>] {
        self.file.rules.as_ref().map(|rules| rules.value.as_slice()).unwrap_or_default()
    }

    /// The clusters as they are written.
    fn clusters(&self) -> &'f [(String, Spanned<raw::Cluster>)] {
        self.file.clusters.as_ref().map(|clusters| clusters.value.0.as_slice()).unwrap_or_default()
    }

    /// What was made of a rule, in each cluster that has it.
    fn compiled(&self, raw: &raw::Rule) -> &[(&'f ClusterPolicy, &'f Rule)] {
        let name = raw.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        self.compiled.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The budgets as they are written.
    fn budgets(&self) -> &'f [Spanned<raw::Budget>] {
        self.file.budgets.as_ref().map(|budgets| budgets.value.as_slice()).unwrap_or_default()
    }

    /// The guards as they are written.
    fn guards(&self) -> &'f [Spanned<raw::Guard>] {
        self.file.guards.as_ref().map(|guards| guards.value.as_slice()).unwrap_or_default()
    }

    /// What was made of a budget, in each cluster that has it.
    fn compiled_budgets(&self, raw: &raw::Budget) -> &[(&'f ClusterPolicy, &'f Budget)] {
        let name = raw.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        self.budgets.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// What was made of a guard, in each cluster that has it and in which it is not off.
    fn compiled_guards(&self, raw: &raw::Guard) -> &[(&'f ClusterPolicy, &'f Guard)] {
        let name = raw.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
        self.guards.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn in_rules(&self, warnings: &mut Faults) {
        for rule in self.rules() {
            let Some((_, compiled)) = self.compiled(&rule.value).first() else { continue };
            self.end(&rule.value, compiled, warnings);
            classes(rule, compiled, warnings);
        }
    }

    /// An end that is over, or about to be.
    fn end(&self, raw: &raw::Rule, rule: &Rule, warnings: &mut Faults) {
        let (Some(written), Some(end)) = (&raw.expires_at, rule.expires_at) else { return };
        if end <= self.now {
            let message = format!("ended at {end}: the rule does nothing any more");
            warnings.add(&written.place, message);
        } else if end.0 <= self.now.0.saturating_add(ENDS_SOON_S) {
            warnings.add(&written.place, format!("ends within a day, at {end}"));
        }
    }
}

/// Classes that the rule can never see.
fn classes(rule: &Spanned<raw::Rule>, compiled: &Rule, warnings: &mut Faults) {
    let Some(conditions) = rule.value.conditions.as_ref().map(|conditions| &conditions.value)
    else {
        return;
    };
    if let (Some(named), Some(set), Action::Exempt) =
        (&conditions.statements, compiled.condition.statements, compiled.action)
        && !Class::ALL.into_iter().any(|class| class.is_gateable() && set.contains(class))
    {
        let message = "statements of these classes are never delayed: there is nothing to exempt";
        warnings.add(&named.place, message);
    }
    for digest in conditions.digest.iter().flat_map(|digests| &digests.value.0) {
        // A hash says nothing of the text.
        let Some(class) = class_of(&digest.value) else { continue };
        if !compiled.condition.allows_class(class) {
            let message = format!(
                "a text of class `{}`, which `match.statements` does not name: it never matches",
                class.as_str()
            );
            warnings.add(&digest.place, message);
        } else if is_held(compiled) && !compiled.statements.contains(class) {
            let message = format!(
                "a text of class `{}`, which the rule's `statements` do not cover: it is never held",
                class.as_str()
            );
            warnings.add(&digest.place, message);
        }
    }
}

/// The class of a text, where that is beyond doubt.
fn class_of(text: &str) -> Option<Class> {
    if !text.trim().contains(char::is_whitespace) {
        return None;
    }
    let mut scratch = Scratch::default();
    let statement = describe(text.as_bytes(), LexMode::default(), Whole::Yes, &mut scratch);
    let only = statement.classes == ClassSet::default().with(statement.class);
    (only && statement.class == Class::Read).then_some(statement.class)
}

/// Whether the rule holds anything back.
fn is_held(rule: &Rule) -> bool {
    match rule.action {
        Action::Exempt => false,
        Action::Deny | Action::Throttle { .. } => true,
    }
}
