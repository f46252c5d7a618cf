//! Who a statement is taken for, and what guards, rules and budgets say to it: what `sluice explain` prints.

mod limits;
mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use sql::{Class, Exemption, LexMode, Scratch, Whole, describe, digest};

pub use self::limits::{BudgetMet, GuardSaid};
use crate::cluster::ClusterPolicy;
use crate::decide::{decide, watching};
use crate::facts::Facts;
use crate::identity::{IdentityScratch, SessionIdentity, resolve};
use crate::priority::Priority;
use crate::rule::{Rule, Standing};
use crate::shape::{ShapeNeeds, ShapeScratch, ShapeText};
use crate::time::UnixTime;
use crate::verdict::{PassReason, Verdict};

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
    /// The first of them.
    pub refused_claim: Option<String>,
    /// The class.
    pub class: &'static str,
    /// It is a `call` for functions that are not built in, and for nothing else: if the server's
    /// list of routines shows that none of them writes, it is not.
    pub calls_functions: bool,
    /// The tags of the statement, then connection attributes with other keys.
    pub tags: BTreeMap<String, String>,
    /// The name of the rule that decides.
    pub rule: Option<String>,
    /// Why that rule exists, in its own words.
    pub reason: Option<String>,
    /// What that rule does with statements that it covers, in words.
    pub does: Option<String>,
    /// When the rule that decides stops doing so, as RFC 3339 writes it: its end, or that of its
    /// schedule's hours.
    pub until: Option<String>,
    /// What to expect of a session that the rule slows down, in words.
    pub speed: Option<String>,
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
    /// What guards say: they are asked before the rules.
    pub guards: Vec<GuardSaid>,
    /// The budgets that must have room for it, beside what its rule says.
    pub budgets: Vec<BudgetMet>,
    /// `pass`, `ask` (dice, gate and queue decide) or `deny`, by a guard or by the rules.
    pub outcome: &'static str,
    /// Why.
    pub why: String,
}

impl Explanation {
    /// Whether a guard refuses the statement, before any rule is asked.
    #[must_use]
    pub fn is_refused_by_guard(&self) -> bool {
        limits::refuses(&self.guards).is_some()
    }
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
    let identity = resolve(&policy.identity, &session, none, tags, statement.tool(), &mut scratch);
    let text = ShapeText::new(question.sql, question.mode, question.schema, &statement);
    let mut shape_scratch = ShapeScratch::default();
    let shape = shape_scratch.read(&text, ShapeNeeds::ALL);
    let mut digest_text = Vec::new();
    let digest = digest(question.sql, question.mode, &mut digest_text);
    let facts = Facts {
        identity: &identity,
        session: &session,
        classes: statement.classes,
        exemption: statement.exemption,
        shape,
        now: question.now,
    };
    let verdict = decide(policy, &facts);
    let rule = verdict.rule();
    let guards = limits::guards(policy, question, &facts, statement.is_certain());
    let (outcome, why) = end(policy, verdict, &facts, &guards);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Explanation {
        app: text(identity.app),
        source: identity.source.as_str(),
        refused_claims: identity.refused_claims,
        refused_claim: (identity.refused_claims > 0).then(|| text(identity.refused_claim)),
        class: statement.class.as_str(),
        calls_functions: statement.statement_count == 1 && statement.called().is_some(),
        tags: identity.tags().map(|(key, value)| (text(key), text(value))).collect(),
        rule: rule.map(|rule| rule.name.to_string()),
        reason: rule.map(|rule| rule.reason.clone()).filter(|reason| !reason.is_empty()),
        does: rule.map(|rule| words::does_behind(policy, rule, watching(policy, &facts, &verdict))),
        until: rule.and_then(|rule| words::until(rule, question.now)).map(|end| end.to_string()),
        speed: rule.and_then(Rule::speed_to_expect),
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
        tables_known: facts.knows_tables(),
        admission_point: is_admission_point(verdict, statement.class),
        budgets: limits::budgets(policy, &facts),
        guards,
        outcome,
        why,
    }
}

/// The outcome, and why.
fn end(
    policy: &ClusterPolicy,
    verdict: Verdict<'_>,
    facts: &Facts<'_>,
    guards: &[GuardSaid],
) -> (&'static str, String) {
    match limits::refuses(guards) {
        Some(GuardSaid { guard, check, advice, .. }) => {
            ("deny", format!("guard {guard} ({check}): {advice}"))
        }
        None => (outcome(verdict), why(policy, verdict, facts)),
    }
}

/// Rules before the one that decides which are about the statement but not in force.
fn skipped(policy: &ClusterPolicy, facts: &Facts<'_>, decides: Option<&Rule>) -> Vec<Skipped> {
    let before = |rule: &&Rule| decides.is_none_or(|decides| rule.index != decides.index);
    let candidates = policy.rules.iter().take_while(before);
    let candidates = candidates.filter(|rule| rule.is_about(facts, facts.class()));
    let standings = candidates.map(|rule| (rule, rule.standing(facts.now)));
    standings
        .filter(|(_, standing)| *standing != Standing::InForce)
        .map(|(rule, standing)| Skipped { rule: rule.name.to_string(), why: standing.as_str() })
        .collect()
}

fn table_name((schema, name): (&[u8], &[u8])) -> String {
    // Every table of the schema.
    let name = if name.is_empty() { "*".into() } else { String::from_utf8_lossy(name) };
    match String::from_utf8_lossy(schema).as_ref() {
        "" => name.into_owned(),
        schema => format!("{schema}.{name}"),
    }
}

fn outcome(verdict: Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Pass { .. } => "pass",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

fn why(policy: &ClusterPolicy, verdict: Verdict<'_>, facts: &Facts<'_>) -> String {
    let class = facts.class();
    let why = match verdict {
        Verdict::Ask(rule) => {
            let held = words::held(policy, rule, facts.now);
            return held.unwrap_or_else(|| "dice, gate and queue decide".to_owned());
        }
        Verdict::Deny(rule) if rule.condition.needs().tables && !facts.knows_tables() => {
            "the rule denies it, for it may be about its tables: not all that it is about can be told"
        }
        Verdict::Deny(_) => "the rule denies it",
        Verdict::Pass { why, .. } => match why {
            PassReason::NoRule => "no rule matches",
            PassReason::NotCovered => {
                let class = class.as_str();
                return format!("the rule's `statements` do not cover class `{class}`");
            }
            PassReason::Exempt => "the rule exempts it",
            PassReason::Ungated => "the rule has no gate, no ratio, no speed and no hold",
            PassReason::NotGateable => "its class is never delayed",
            PassReason::NeverHeld(Exemption::SystemSchema) => "it reads system schemas only",
            PassReason::NeverHeld(Exemption::GhostChangelog) => "it is gh-ost's changelog",
            PassReason::NeverHeld(Exemption::AdvisoryLock) => "it is about an advisory lock",
            PassReason::NeverHeld(Exemption::RenameTable) => "it renames tables",
            PassReason::InTransaction => "its transaction has been admitted",
            PassReason::HoldsRowLocks => "its transaction may hold locks already",
            PassReason::HoldsTableLocks => "its session keeps others from tables",
            PassReason::HoldsNamedLock => "its session holds a user-level lock",
        },
    };
    why.to_owned()
}

/// Reads and DDL are admission points only for rules that name them.
fn is_admission_point(verdict: Verdict<'_>, class: Class) -> bool {
    match verdict {
        // Of a text of several statements, one whose class the rule names is enough.
        Verdict::Ask(_) | Verdict::Deny(_) => true,
        Verdict::Pass { rule, why } => match why {
            PassReason::NotGateable
            | PassReason::NeverHeld(_)
            | PassReason::InTransaction
            | PassReason::HoldsRowLocks
            | PassReason::HoldsTableLocks
            | PassReason::HoldsNamedLock => false,
            PassReason::NoRule
            | PassReason::NotCovered
            | PassReason::Exempt
            | PassReason::Ungated => {
                rule.map_or(class.is_covered_by_write(), |rule| rule.statements.contains(class))
            }
        },
    }
}

#[cfg(test)]
mod tests;
