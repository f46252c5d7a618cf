//! From what is written to what is in force: defaults, ranges, names, and everything that makes no
//! sense.
//!
//! Every check goes on after a fault, so that all faults of a file are found at once. What is built
//! after a fault is never used.

mod admin;
mod budget;
mod bypass;
mod checks;
mod classes;
mod cluster;
mod compression;
mod context;
mod error_profile;
mod guard;
mod history;
mod identity;
mod insights;
mod latency;
pub(crate) mod limits;
mod matching;
mod network;
mod replicas;
mod rule;
mod runaway;
mod runtime;
mod schedule;
mod signals;
mod tls;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZoneDatabase;

pub use self::admin::admin_of;
use self::checks::{duration, whole};
use self::rule::Draft;
use crate::cluster::Starvation;
use crate::config::{Config, Metrics, NamedElsewhere, NamedLegs, NamedSecret};
use crate::fault::{Fault, Faults, Place};
use crate::network::Listen;
use crate::raw;

pub use self::runtime::{RUNTIME_PREFIX, RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec};

/// Reads a configuration file.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file; text that is not YAML has one fault.
pub fn load(text: &str) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    let file = raw::parse(text, &mut faults).map_err(|fault| vec![fault])?;
    let config = file.and_then(|file| compile(file, &mut faults));
    match config {
        Some(config) if faults.is_empty() => Ok(config),
        Some(_) | None => Err(faults.into_sorted()),
    }
}

/// What the file says. Nothing that is built after a fault may be used.
pub(crate) fn compile(file: raw::File, faults: &mut Faults) -> Option<Config> {
    check_version(&file, faults);
    let secrets = secrets(&file);
    let admin = admin::compile(file.admin, faults);
    let max_apps = file.metrics.and_then(|metrics| metrics.value.max_apps);
    let metrics = Metrics { max_apps: whole(max_apps, limits::MAX_APPS, faults) };
    let drain_timeout = duration(file.drain_timeout, limits::DRAIN_TIMEOUT, faults);
    let takeover_socket =
        file.takeover_socket.and_then(|path| checks::socket_path(&path.value, &path, faults));
    let state_dir = file.state_dir.and_then(|path| checks::directory(&path, faults));
    let identity = identity::compile(file.identity, faults);
    let clusters = file.clusters.map(|clusters| (clusters.value.0, clusters.place));
    let (clusters, place) = clusters.unwrap_or_default();
    if clusters.is_empty() && place != Place::default() {
        faults.add(&place, "at least one cluster is needed");
    }
    let names: Vec<String> = clusters.iter().map(|(name, _)| name.clone()).collect();
    let zones = TimeZoneDatabase::bundled();
    let context = context::Context { clusters: &names, identity: &identity, zones: &zones };
    let drafts = compile_rules(file.rules, &context, faults);
    let guards = guard::compile_all(file.guards, &context, faults);
    let starvation = compile_starvation(file.starvation, faults);
    let budgets = budget::compile(file.budgets, &context, faults);
    let insights = insights::compile(file.insights, &identity, faults);
    let history = history::compile(file.history, faults);
    let identity = Arc::new(identity);
    let shared = cluster::Shared { identity, starvation, budgets, guards, insights, history };
    let mut compiled = Vec::new();
    let mut listeners = vec![(Listen::Tcp(admin.listen), "admin.listen".to_owned())];
    for (name, cluster) in clusters {
        let place = cluster.place.clone();
        let policy = cluster::compile(&name, cluster, &drafts, &shared, faults);
        let Some(policy) = policy else { continue };
        let taken = listeners.iter().find(|(listen, _)| listen.collides_with(&policy.listen));
        if let Some((_, by)) = taken {
            faults.add(&place.key("listen", place.line), format!("{by} has the same address"));
        }
        listeners.push((policy.listen.clone(), format!("clusters.{name}.listen")));
        compiled.push(Arc::new(policy));
    }
    Some(Config {
        admin,
        metrics,
        drain_timeout,
        takeover_socket,
        state_dir,
        clusters: compiled,
        rule_names: drafts.iter().map(|draft| draft.name.clone()).collect(),
        secrets,
    })
}

/// What a text names that lies elsewhere, whatever else is wrong with it.
#[must_use]
pub fn named_by(text: &str) -> NamedElsewhere {
    let Ok(Some(file)) = raw::parse(text, &mut Faults::default()) else {
        return NamedElsewhere::default();
    };
    let secrets = secrets(&file);
    // What is wrong with it has been told.
    let faults = &mut Faults::default();
    let admin_tls = admin::compile(file.admin, faults).tls;
    let clusters = file.clusters.map(|clusters| clusters.value.0).unwrap_or_default();
    let legs = clusters.into_iter().map(|(cluster, raw)| NamedLegs {
        cluster,
        client: tls::client(raw.value.client_tls, faults),
        backend: tls::backend(raw.value.backend_tls, faults),
    });
    NamedElsewhere { secrets, admin_tls, legs: legs.collect() }
}

fn secrets(file: &raw::File) -> Vec<NamedSecret> {
    let admin = file.admin.iter().flat_map(|admin| admin::secrets(&admin.value));
    let clusters = file.clusters.iter().flat_map(|clusters| &clusters.value.0);
    admin.chain(clusters.filter_map(|(_, cluster)| secret(&cluster.value))).collect()
}

/// The password of a cluster's probe.
fn secret(cluster: &raw::Cluster) -> Option<NamedSecret> {
    let raw::Probe { password_env, password_file, .. } = &cluster.probe.as_ref()?.value;
    NamedSecret::of(password_env, password_file, 0)
}

fn check_version(file: &raw::File, faults: &mut Faults) {
    if let Some(version) = &file.version
        && version.value != 1
    {
        faults.add(&version.place, "this version of Sluice reads version 1");
    }
}

/// Off with a share of 0: everybody who waits at all would be starved.
fn compile_starvation(
    starvation: raw::Maybe<raw::Starvation>,
    faults: &mut Faults,
) -> Option<Starvation> {
    let (share, window) = starvation
        .map(|starvation| (starvation.value.share, starvation.value.window))
        .unwrap_or_default();
    let window = duration(window, limits::STARVATION_WINDOW, faults);
    let Some(raw::Spanned { value: share, place }) = share else {
        return Some(Starvation { share: limits::STARVATION_SHARE, window });
    };
    if !(0.0..=1.0).contains(&share) {
        faults.add(&place, format!("{share} is not a share: must be from 0 (off) to 1"));
    }
    (share > 0.0).then_some(Starvation { share, window })
}

fn compile_rules(
    rules: raw::Maybe<Vec<raw::Spanned<raw::Rule>>>,
    context: &context::Context<'_>,
    faults: &mut Faults,
) -> Vec<Draft> {
    let mut lines: HashMap<String, u32> = HashMap::new();
    let mut keys: HashMap<u64, String> = HashMap::new();
    let mut drafts = Vec::new();
    let rules = rules.map(|rules| rules.value).unwrap_or_default();
    if rules.len() > limits::RULES_MAX {
        let place = rules.last().map(|rule| rule.place.clone()).unwrap_or_default();
        faults.add(&place, format!("more than {} rules", limits::RULES_MAX));
        return drafts;
    }
    for rule in rules {
        let draft = rule::compile(rule, context, faults);
        if draft.name.starts_with(RUNTIME_PREFIX) {
            let message = format!("`{RUNTIME_PREFIX}` is how rules that are made at runtime begin");
            faults.add(&draft.place.key("name", draft.place.line), message);
        }
        if draft.name.is_empty() {
            // It has a fault for that.
        } else if let Some(line) = lines.insert(draft.name.to_string(), draft.place.line) {
            let message = format!("the rule on line {line} has the same name, `{}`", draft.name);
            faults.add(&draft.place.key("name", draft.place.line), message);
        } else if let Some(other) = keys.insert(draft.key.0, draft.name.to_string()) {
            let message = format!("rename the rule: its key collides with that of `{other}`");
            faults.add(&draft.place.key("name", draft.place.line), message);
        }
        drafts.push(draft);
    }
    drafts
}

#[cfg(test)]
mod tests;
