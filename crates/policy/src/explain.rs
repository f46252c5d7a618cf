//! Who a statement is taken for, and what the rules say to it: what `sluice explain` prints.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use sql::{Class, Exemption, LexMode, Scratch, Tool, Whole, describe, digest};

use crate::cluster::ClusterPolicy;
use crate::evaluate::{Facts, PassReason, Verdict};
use crate::identity::{IdentityScratch, SessionIdentity, resolve};
use crate::priority::Priority;
use crate::rule::{Rule, Standing, UnixTime};
use crate::shape::{ShapeNeeds, ShapeScratch, ShapeText};

/// A statement on a connection that has said nothing before.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The MySQL user.
    pub user: &'q [u8],
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The default schema.
    pub schema: &'q [u8],
    /// The connection attributes.
    pub attributes: &'q [(&'q [u8], &'q [u8])],
    /// The text.
    pub sql: &'q [u8],
    /// How the server reads it.
    pub mode: LexMode,
    /// When rules are looked at: some expire.
    pub now: UnixTime,
}

/// Who the statement is taken for, and what the rules say to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The app.
    pub app: String,
    /// Who named it.
    pub source: &'static str,
    /// Claims that were ignored.
    pub refused_claims: u32,
    /// The class.
    pub class: &'static str,
    /// The tags of the statement, then connection attributes with other keys.
    pub tags: BTreeMap<String, String>,
    /// The name of the rule that decides.
    pub rule: Option<String>,
    /// Why that rule exists, in its own words.
    pub reason: Option<String>,
    /// `enforce` or `observe`.
    pub mode: &'static str,
    /// Rules before it that are about the statement, but not in force.
    pub not_in_force: Vec<Skipped>,
    /// The priority that scales the rule's dice, if it honours them.
    pub priority: Option<u8>,
    /// The hash of the digest text, as `match.digest` takes it.
    pub digest: String,
    /// The text without its values.
    pub digest_text: String,
    /// The tables that the text names, by schema if there is one.
    pub tables: Vec<String>,
    /// Whether these are all of its tables.
    pub tables_known: bool,
    /// Whether the statement may be delayed or refused at all, outside of a transaction.
    pub admission_point: bool,
    /// `pass`, `ask` (dice, gate and queue decide) or `deny`.
    pub outcome: &'static str,
    /// Why.
    pub why: String,
}

/// A rule that would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub rule: String,
    /// Why it does not.
    pub why: &'static str,
}

/// Says what would become of a statement.
#[must_use]
pub fn explain(policy: &ClusterPolicy, question: &Question<'_>) -> Explanation {
    let session = SessionIdentity::new(
        question.user,
        question.client,
        question.schema,
        question.attributes.iter().copied(),
    );
    let mut sql_scratch = Scratch::default();
    let statement = describe(question.sql, question.mode, Whole::Yes, &mut sql_scratch);
    let mut scratch = IdentityScratch::default();
    let tags = statement.tags().map(|tag| (tag.key, tag.value));
    let none = std::iter::empty();
    let identity = resolve(policy, &session, none, tags, statement.tool(), &mut scratch);
    let text = ShapeText::new(question.sql, question.mode, question.schema, &statement);
    let mut shape_scratch = ShapeScratch::default();
    let shape = shape_scratch.read(&text, ShapeNeeds::ALL);
    let mut digest_text = Vec::new();
    let digest = digest(question.sql, question.mode, &mut digest_text);
    let facts = Facts {
        identity: &identity,
        session: &session,
        class: statement.class,
        shape,
        now: question.now,
    };
    let verdict = policy.evaluate_classes(&facts, statement.classes);
    let exemption = statement.exemption.filter(|exemption| match exemption {
        Exemption::GhostChangelog => identity.tool_seen == Some(Tool::GhOst),
        Exemption::SystemSchema | Exemption::AdvisoryLock | Exemption::RenameTable => true,
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (rule, outcome, why) = judge(verdict, statement.class, exemption);
    Explanation {
        app: text(identity.app),
        source: identity.source.as_str(),
        refused_claims: identity.refused_claims,
        class: statement.class.as_str(),
        tags: identity.tags().map(|(key, value)| (text(key), text(value))).collect(),
        rule: rule.map(|rule| rule.name.to_string()),
        reason: rule.map(|rule| rule.reason.clone()).filter(|reason| !reason.is_empty()),
        mode: match rule.map_or(policy.mode, |rule| rule.mode) {
            admission::Mode::Enforce => "enforce",
            admission::Mode::Observe => "observe",
        },
        not_in_force: skipped(policy, &facts, rule),
        priority: rule
            .filter(|rule| rule.honour_priority)
            .map(|_| Priority::of(&identity).percent()),
        digest: format!("{digest:016x}"),
        digest_text: text(&digest_text),
        tables: shape.tables().map(table_name).collect(),
        tables_known: shape.knows_tables(),
        admission_point: is_admission_point(verdict, statement.class, exemption),
        outcome,
        why,
    }
}

/// Rules before the one that decides which are about the statement but not in force.
fn skipped(policy: &ClusterPolicy, facts: &Facts<'_>, decides: Option<&Rule>) -> Vec<Skipped> {
    let before = |rule: &&Rule| decides.is_none_or(|decides| rule.index < decides.index);
    let candidates = policy.rules.iter().take_while(before).filter(|rule| rule.is_about(facts));
    let standings = candidates.map(|rule| (rule, rule.standing(facts.now)));
    standings
        .filter(|(_, standing)| *standing != Standing::InForce)
        .map(|(rule, standing)| Skipped { rule: rule.name.to_string(), why: standing.as_str() })
        .collect()
}

fn table_name((schema, name): (&[u8], &[u8])) -> String {
    let name = String::from_utf8_lossy(name);
    match String::from_utf8_lossy(schema).as_ref() {
        "" => name.into_owned(),
        schema => format!("{schema}.{name}"),
    }
}

fn judge(
    verdict: Verdict<'_>,
    class: Class,
    exemption: Option<Exemption>,
) -> (Option<&Rule>, &'static str, String) {
    let class_name = class.as_str();
    let (rule, outcome, why) = match verdict {
        Verdict::Ask(rule) => (Some(rule), "ask", "dice, gate and queue decide".to_owned()),
        Verdict::Deny(rule) => (Some(rule), "deny", "the rule denies it".to_owned()),
        Verdict::Pass { rule, why } => {
            let why = match why {
                PassReason::NoRule => "no rule matches".to_owned(),
                PassReason::NotCovered => {
                    format!("the rule's `statements` do not cover class `{class_name}`")
                }
                PassReason::Exempt => "the rule exempts it".to_owned(),
                PassReason::Ungated => "the rule has no gate, no ratio and no hold".to_owned(),
            };
            (rule, "pass", why)
        }
    };
    let never = match exemption {
        Some(Exemption::SystemSchema) => Some("it reads system schemas only"),
        Some(Exemption::GhostChangelog) => Some("it is gh-ost's changelog"),
        Some(Exemption::AdvisoryLock) => Some("it is about an advisory lock"),
        Some(Exemption::RenameTable) => Some("it renames tables"),
        None if !class.is_gateable() => Some("its class is never delayed"),
        None => None,
    };
    match never {
        Some(never) => (rule, "pass", never.to_owned()),
        None => (rule, outcome, why),
    }
}

/// Reads and DDL are admission points only for rules that name them.
fn is_admission_point(verdict: Verdict<'_>, class: Class, exemption: Option<Exemption>) -> bool {
    let covered = match verdict {
        // Of a text of several statements, one whose class the rule names is enough.
        Verdict::Ask(_) | Verdict::Deny(_) => true,
        Verdict::Pass { rule: Some(rule), .. } => rule.statements.contains(class),
        Verdict::Pass { rule: None, .. } => class.is_covered_by_write(),
    };
    exemption.is_none() && class.is_gateable() && covered
}

#[cfg(test)]
mod tests;
