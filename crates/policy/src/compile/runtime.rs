//! Rules that are made while Sluice runs, checked and compiled as those of the file are.
//!
//! A runtime rule stands before the file's. So it matches only what it acts on: what it does not
//! cover is not let pass by it, but goes on to the file's rules. It names no gate and no mode: both
//! are the cluster's.

use std::sync::Arc;

use jiff::tz::TimeZoneDatabase;

use super::context::Context;
use super::rule::{self, Draft};
use crate::cluster::ClusterPolicy;
use crate::condition::Condition;
use crate::fault::{Fault, Faults, Place};
use crate::identity::IdentityPolicy;
use crate::raw::{self, Maybe, OneOrMany, Spanned};
use crate::rule::Rule;
use crate::rules::Basis;
use crate::time::UnixTime;

/// What the names of runtime rules begin with. No rule of the file may.
pub const RUNTIME_PREFIX: &str = "runtime:";

/// What a runtime rule does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RuntimeEffect {
    /// `ratio` of a rule of the file: dice, then the cluster's gate.
    Throttle {
        /// From 0 to 1.
        ratio: f64,
    },
    /// `hold: true`.
    Hold,
    /// `exempt: true`.
    Exempt,
    /// `deny: true`.
    Deny,
}

impl RuntimeEffect {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttle { .. } => "throttle",
            Self::Hold => "hold",
            Self::Exempt => "exempt",
            Self::Deny => "deny",
        }
    }
}

/// A runtime rule as it is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeSpec {
    /// Its name, which begins with [`RUNTIME_PREFIX`].
    pub name: String,
    /// `match.app`: a name, a prefix with `*`, or `*`.
    pub app: Option<String>,
    /// `match.user`, in the same way.
    pub user: Option<String>,
    /// The classes of statements that it is about. Empty: those that a rule of the file with this
    /// effect is about.
    pub classes: Vec<String>,
    /// What it does.
    pub effect: RuntimeEffect,
    /// Why, for people.
    pub reason: String,
    /// When it was made, Unix time in milliseconds: of rules that say as closely whom they are
    /// about the newest comes first.
    pub made_at_ms: i64,
}

/// A runtime rule that a file would not refuse.
#[derive(Debug, Clone)]
pub struct RuntimeRule {
    draft: Arc<Draft>,
    author: Arc<str>,
    expires_at: UnixTime,
    made_at_ms: i64,
}

/// A change of what stands.
#[derive(Debug, Clone)]
pub enum RuntimeChange {
    /// This rule stands, in the place of the one of its name.
    Stands(RuntimeRule),
    /// The rule of this name does not stand any more.
    Gone(Arc<str>),
}

impl RuntimeRule {
    /// Checks and compiles a rule, as the file's are.
    ///
    /// # Errors
    /// Everything that is wrong with it: [`Fault::path`] is the field, and there are no lines.
    pub fn new(spec: RuntimeSpec, author: Arc<str>, at: UnixTime) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        if spec.app.is_none() && spec.user.is_none() {
            faults.add(&Place::default(), "names neither an app nor a user: one of them is needed");
        }
        let made_at_ms = spec.made_at_ms;
        let rule = Spanned { value: raw_rule(spec, at), place: Place::default() };
        let zones = TimeZoneDatabase::none();
        let context =
            Context { clusters: &[], identity: &IdentityPolicy::default(), zones: &zones };
        let draft = rule::compile(rule, &context, &mut faults).acting_on_what_it_matches();
        if !faults.is_empty() {
            return Err(faults.into_sorted());
        }
        Ok(Self { draft: Arc::new(draft), author, expires_at: at, made_at_ms })
    }

    /// Its name: the `rule` label.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.draft.name
    }

    /// From this second on it is gone.
    #[must_use]
    pub fn expires_at(&self) -> UnixTime {
        self.expires_at
    }

    /// The same with another end.
    #[must_use]
    pub fn ending(&self, at: UnixTime) -> Self {
        Self { expires_at: at, ..self.clone() }
    }

    /// When it was made, Unix time in milliseconds.
    pub(crate) fn made_at_ms(&self) -> i64 {
        self.made_at_ms
    }

    /// The rule that it is in a cluster.
    pub(crate) fn rule(&self, index: u32, basis: Basis) -> Rule {
        let Basis { gate, gate_is_always_open, mode } = basis;
        Rule {
            expires_at: Some(self.expires_at),
            author: Some(self.author.clone()),
            ..self.draft.rule(index, gate, gate_is_always_open, mode)
        }
    }
}

impl ClusterPolicy {
    /// What is in force with these changes of runtime rules, which stand before those of the file:
    /// the one that says most closely whom it is about first, of those the newest. It takes as long
    /// as there are changes, however many rules stand.
    #[must_use]
    pub fn with_runtime_changes(&self, changes: impl IntoIterator<Item = RuntimeChange>) -> Self {
        let rules = self.rules.with_changes(changes, self.basis());
        Self { rules, ..self.clone() }
    }

    /// This file's policy behind the runtime rules that stand in the one that runs. They are not
    /// looked at one by one, unless the file has given the cluster another mode or another default
    /// gate: those are theirs too.
    #[must_use]
    pub fn behind_runtime_rules_of(&self, running: &Self) -> Self {
        let basis = self.basis();
        let rules = if basis == running.basis() {
            self.rules.behind(&running.rules)
        } else {
            self.rules.behind_on(&running.rules, basis)
        };
        Self { rules, ..self.clone() }
    }

    fn basis(&self) -> Basis {
        let gate = self.default_gate;
        let gate_is_always_open =
            self.gates.iter().any(|known| known.key == gate && known.signals.is_empty());
        Basis { gate, gate_is_always_open, mode: self.mode }
    }
}

impl Draft {
    /// What the rule does not cover is for the next one, and not let pass.
    fn acting_on_what_it_matches(mut self) -> Self {
        if self.exempts() || self.condition.statements.is_some() {
            return self;
        }
        let condition = Condition::clone(&self.condition);
        let statements = Some(self.statements);
        self.condition = Arc::new(Condition { statements, ..condition });
        self
    }
}

fn raw_rule(spec: RuntimeSpec, at: UnixTime) -> raw::Rule {
    let RuntimeSpec { name, app, user, classes, effect, reason, made_at_ms: _ } = spec;
    let is = |wanted: bool, key: &str| wanted.then(|| spanned(true, key));
    let classes: Maybe<OneOrMany<String>> = (!classes.is_empty()).then(|| {
        let words = classes.into_iter().map(|word| spanned(word, "classes"));
        spanned(OneOrMany(words.collect()), "classes")
    });
    let (matched, statements) = match effect {
        RuntimeEffect::Exempt => (classes, None),
        RuntimeEffect::Throttle { .. } | RuntimeEffect::Hold | RuntimeEffect::Deny => {
            (None, classes)
        }
    };
    let one = |value: String, key: &str| spanned(OneOrMany(vec![spanned(value, key)]), key);
    let conditions = raw::Match {
        app: app.map(|app| one(app, "app")),
        user: user.map(|user| one(user, "user")),
        statements: matched,
        tag: None,
        attribute: None,
        schema: None,
        client: None,
        cluster: None,
        digest: None,
        table: None,
    };
    let ratio = match effect {
        RuntimeEffect::Throttle { ratio } => Some(spanned(ratio, "ratio")),
        RuntimeEffect::Hold | RuntimeEffect::Exempt | RuntimeEffect::Deny => None,
    };
    raw::Rule {
        name: Some(spanned(name, "name")),
        conditions: Some(spanned(conditions, "")),
        ratio,
        statements,
        exempt: is(effect == RuntimeEffect::Exempt, "exempt"),
        deny: is(effect == RuntimeEffect::Deny, "deny"),
        hold: is(effect == RuntimeEffect::Hold, "hold"),
        expires_at: Some(spanned(at.to_string(), "expires_at")),
        reason: Some(spanned(reason, "reason")),
        speed: None,
        gate: None,
        max_delay: None,
        on_refused_check: None,
        on_timeout: None,
        max_queue: None,
        mode: None,
        weight: None,
        min_rate: None,
        max_rate: None,
        max_in_flight: None,
        error: None,
        honour_priority: None,
        schedule: None,
        on_client_gone: None,
        runaway: None,
        permanent: None,
        essential: None,
    }
}

fn spanned<T>(value: T, key: &str) -> Spanned<T> {
    Spanned { value, place: Place { path: key.to_owned(), line: 0 } }
}
