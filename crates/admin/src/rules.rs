//! `/api/v1/rules`: which rules there are, and those that are made and lifted while Sluice runs.
//!
//! The types are what the answers are written from, and what `sluice rules` reads.

mod draft;
pub(crate) mod routes;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::Mode;
use fleet::{Receipt, RuntimeEffect, StandingRule};
use policy::{Action, ClusterPolicy, RUNTIME_PREFIX, Rule, Standing, UnixTime};
use proxy::cluster::Cluster;
use serde::{Deserialize, Serialize};

pub(crate) use self::draft::KeyFault;
pub use self::words::{end, kept, told};
use crate::AdminState;
use crate::status::words as status_words;

/// The rules of all clusters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// When this was read.
    pub now: String,
    /// By cluster in the order of the file; within one in the order in which they are tried, so
    /// that the first that matches decides. Those that were made while Sluice runs come first.
    pub rules: Vec<RuleShown>,
}

/// A rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleShown {
    /// The cluster.
    pub cluster: String,
    /// Its name: the `rule` of metrics, errors and logs.
    pub rule: String,
    /// `runtime` or `file`.
    pub source: String,
    /// `throttle`, `hold`, `exempt` or `deny`.
    pub effect: String,
    /// What that means, in words.
    pub does: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// `in_force`, `expired` or `off_schedule`; `lifted`, in the answer to a DELETE.
    pub standing: String,
    /// The app that it is about, of a runtime rule that is about one.
    pub app: Option<String>,
    /// The MySQL user that it is about, of a runtime rule that is about one.
    pub user: Option<String>,
    /// The classes of statements that it can delay or refuse; with `exempt`, that it lets pass.
    pub classes: Vec<String>,
    /// The part of checks that are refused, with `throttle`.
    pub ratio: Option<f64>,
    /// Who made it, of a runtime rule.
    pub author: Option<String>,
    /// When, of a runtime rule.
    pub made_at: Option<String>,
    /// When it ends. None: it is permanent.
    pub expires_at: Option<String>,
    /// How long that is; below 0 it has.
    pub expires_in_s: Option<i64>,
    /// Its number in the table on the primary. None: it is not written there, or the file's.
    pub version: Option<u64>,
    /// Statements that it has decided about since the process started.
    pub hits: u64,
    /// Why it exists.
    pub reason: String,
}

/// What a change has come to. It is in force at the Sluice that was asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changed {
    /// When.
    pub now: String,
    /// `made` or `lifted`.
    pub change: String,
    /// What it is, in words.
    pub done: String,
    /// By whom.
    pub author: String,
    /// The rules that were made, or as they stood when they were lifted.
    pub rules: Vec<RuleShown>,
    /// Where it is kept.
    pub kept: Kept,
}

/// Where a change is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Whether it outlives a restart of this Sluice.
    pub outlives_restart: bool,
    /// Whether it is on this machine's disk.
    pub journal: bool,
    /// Why not.
    pub journal_error: Option<String>,
    /// Whether it is on the primaries, from where all Sluices of a cluster have it.
    pub tables: Vec<TableKept>,
}

/// Whether a change is in the table of one cluster's primary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableKept {
    /// The cluster.
    pub cluster: String,
    /// Whether it is there.
    pub written: bool,
    /// The number that the primary gave it.
    pub version: Option<u64>,
    /// Why it is written later, or never.
    pub error: Option<String>,
}

/// Which of the rules are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) cluster: Option<String>,
    pub(crate) source: Option<Source>,
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Runtime,
    File,
}

impl Source {
    /// The words for them.
    const WORDS: [&'static str; 2] = [Self::Runtime.as_str(), Self::File.as_str()];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::File => "file",
        }
    }
}

/// Reads them. With thousands of rules it takes milliseconds.
pub(crate) fn gather(state: &AdminState, wanted: &Wanted) -> Rules {
    let hits = state.telemetry.rule_hits();
    let standing = state.rules.standing();
    let mut made: HashMap<(&str, &str), &StandingRule> = HashMap::new();
    for rule in &standing {
        made.insert((&rule.cluster, &rule.name), rule);
    }
    let is_wanted = |cluster: &&Arc<Cluster>| {
        wanted.cluster.as_ref().is_none_or(|wanted| *wanted == *cluster.name)
    };
    let mut all = Rules { now: now(state).to_string(), rules: Vec::new() };
    for cluster in state.clusters.iter().filter(is_wanted) {
        let policy = cluster.policy();
        let about = About { cluster, policy: &policy, hits: &hits };
        let shown = policy.rules.iter().map(|rule| {
            let made = made.get(&(&*cluster.name, &*rule.name)).copied();
            about.rule(rule, made)
        });
        let is_wanted =
            |rule: &RuleShown| wanted.source.is_none_or(|source| source.as_str() == rule.source);
        all.rules.extend(shown.filter(is_wanted));
    }
    all
}

struct About<'s> {
    cluster: &'s Arc<Cluster>,
    policy: &'s ClusterPolicy,
    hits: &'s HashMap<String, u64>,
}

impl About<'_> {
    fn rule(&self, rule: &Rule, made: Option<&StandingRule>) -> RuleShown {
        let now = UnixTime(self.cluster.clock().unix_seconds());
        let is_runtime = rule.name.starts_with(RUNTIME_PREFIX);
        let source = if is_runtime { Source::Runtime } else { Source::File };
        let (effect, ratio) = match rule.action {
            Action::Exempt => ("exempt", None),
            Action::Deny => ("deny", None),
            Action::Throttle { terms, .. } if terms.hold => ("hold", None),
            Action::Throttle { terms, .. } => ("throttle", Some(terms.ratio.as_f64())),
        };
        let standing = match rule.standing(now) {
            Standing::InForce => "in_force",
            Standing::Expired => "expired",
            Standing::OffSchedule => "off_schedule",
        };
        RuleShown {
            cluster: self.cluster.name.to_string(),
            rule: rule.name.to_string(),
            source: source.as_str().to_owned(),
            effect: effect.to_owned(),
            does: status_words::action(rule, self.policy),
            mode: mode(rule.mode).to_owned(),
            standing: standing.to_owned(),
            app: made.and_then(|made| made.app.clone()),
            user: made.and_then(|made| made.user.clone()),
            classes: rule.classes().map(str::to_owned).collect(),
            ratio,
            author: rule.author.as_deref().map(str::to_owned),
            made_at: made.map(|made| made.made_at.to_string()),
            expires_at: rule.expires_at.map(|at| at.to_string()),
            expires_in_s: rule.expires_at.map(|at| at.0.saturating_sub(now.0)),
            version: made.and_then(|made| made.version),
            hits: self.hits.get(&*rule.name).copied().unwrap_or(0),
            reason: rule.reason.clone(),
        }
    }
}

/// A change that was made, for an answer.
pub(crate) fn changed(
    state: &AdminState,
    change: &'static str,
    author: &str,
    receipt: &Receipt,
) -> Changed {
    let now = now(state);
    let shown = |rule: &StandingRule| of_receipt(rule, change, state.telemetry.hits_of(&rule.name));
    let rules = receipt.rules.iter().map(shown).collect();
    let kept = Kept {
        outlives_restart: receipt.outlives_restart(),
        journal: receipt.journal.is_ok(),
        journal_error: receipt.journal.clone().err(),
        tables: receipt
            .table
            .iter()
            .map(|table| TableKept {
                cluster: table.cluster.to_string(),
                written: table.written.is_ok(),
                version: table.written.clone().ok(),
                error: table.written.clone().err(),
            })
            .collect(),
    };
    let mut changed = Changed {
        now: now.to_string(),
        change: change.to_owned(),
        done: String::new(),
        author: author.to_owned(),
        rules,
        kept,
    };
    changed.done = told(&changed);
    if change == MADE {
        for warning in warnings(state, receipt) {
            changed.done.push_str("; warning: ");
            changed.done.push_str(&warning);
        }
    }
    changed
}

/// What can hardly be meant of the rules that were made, each thing once.
fn warnings(state: &AdminState, receipt: &Receipt) -> Vec<String> {
    let of_rule = |made: &StandingRule| {
        let cluster = state.clusters.iter().find(|cluster| cluster.name == made.cluster)?;
        let policy = cluster.policy();
        let rule = policy.rules.made_named(&made.name)?;
        let whom = (made.app.as_deref(), made.user.as_deref());
        Some(policy::warnings_of_made((&policy, rule), whom, made.left))
    };
    let mut said: Vec<String> = Vec::new();
    for warning in receipt.rules.iter().filter_map(of_rule).flatten() {
        if !said.contains(&warning) {
            said.push(warning);
        }
    }
    said
}

/// What a made rule is, wherever its cluster's list of rules is by now.
fn of_receipt(made: &StandingRule, change: &str, hits: u64) -> RuleShown {
    let ratio = match made.effect {
        RuntimeEffect::Throttle { ratio } => Some(ratio),
        RuntimeEffect::Hold | RuntimeEffect::Exempt | RuntimeEffect::Deny => None,
    };
    let standing = if change == MADE { "in_force" } else { "lifted" };
    RuleShown {
        cluster: made.cluster.to_string(),
        rule: made.name.to_string(),
        source: Source::Runtime.as_str().to_owned(),
        effect: made.effect.as_str().to_owned(),
        does: words::effect(made.effect.as_str(), ratio),
        mode: mode(made.mode).to_owned(),
        standing: standing.to_owned(),
        app: made.app.clone(),
        user: made.user.clone(),
        classes: made.classes.clone(),
        ratio,
        author: Some(made.author.clone()),
        made_at: Some(made.made_at.to_string()),
        expires_at: Some(made.ends_at.to_string()),
        expires_in_s: Some(seconds(made.left)),
        version: made.version,
        hits,
        reason: made.reason.clone(),
    }
}

pub(crate) const MADE: &str = "made";
pub(crate) const LIFTED: &str = "lifted";

fn now(state: &AdminState) -> UnixTime {
    let cluster = state.clusters.first();
    cluster.map_or(UnixTime(0), |cluster| UnixTime(cluster.clock().unix_seconds()))
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX)
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}
