//! Which rule the statements of one app meet: asked of the code that asks for every statement.

use std::iter;

use ::simulate::{Effect, Gate, MetRule, Rows};
use admission::{AppKey, Mode, Speed, Terms};
use policy::identity::{IdentityScratch, SessionIdentity, resolve};
use policy::{
    Action, ClusterPolicy, Explanation, Facts, Priority, Question, Rule, ShapeNeeds, ShapeScratch,
    ShapeText, SignalKind, UnixTime, Verdict, decide, explain,
};
use sql::{Class, LexMode, Scratch, Whole, describe};

use crate::cli::{AppLoad, Text};

/// What the statements of one app meet, and why.
pub(super) struct Met {
    /// The app's name in the load.
    pub(super) name: String,
    /// The rule, as the simulator has it.
    pub(super) rule: MetRule,
    /// Rows of a statement.
    pub(super) rows: Rows,
    /// Who was asked for, and what the rules say: in the words of `sluice explain`.
    pub(super) explanation: Explanation,
    /// What the rule does, for people.
    pub(super) does: String,
    /// Whose turn its statements take; apps of one key share it.
    pub(super) turn: Option<AppKey>,
    /// Signals of its gate that the simulator does not have.
    pub(super) other_signals: Vec<String>,
    /// Rules that could match it look at tables or digests, and no text was given.
    pub(super) needs_text: bool,
    /// When the rule is gone.
    pub(super) expires_at: Option<UnixTime>,
    /// Whether it has a schedule.
    pub(super) scheduled: bool,
    /// Whether it looks for statements that run away.
    pub(super) runaway: bool,
}

impl Met {
    /// # Errors
    /// What is wrong with the load.
    pub(super) fn of(
        cluster: &ClusterPolicy,
        load: &AppLoad,
        now: UnixTime,
    ) -> Result<Self, String> {
        let sql = text(load);
        // Without a user there is no claim: the server has checked the name.
        let claim = load.user.is_some().then_some(("sluice_app", load.name.as_str()));
        let user = load.user.as_deref().unwrap_or(&load.name);
        let own = load.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let attributes: Vec<(&[u8], &[u8])> =
            claim.into_iter().chain(own).map(|(k, v)| (k.as_bytes(), v.as_bytes())).collect();
        let question = Question {
            user: user.as_bytes(),
            client: load.client,
            schema: load.schema.as_bytes(),
            attributes: &attributes,
            sql: sql.as_bytes(),
            mode: LexMode::default(),
            now,
        };
        Self::answer(cluster, load, &question)
    }

    fn answer(
        cluster: &ClusterPolicy,
        load: &AppLoad,
        question: &Question<'_>,
    ) -> Result<Self, String> {
        let Question { user, client, schema, attributes, sql, mode, now } = *question;
        let session = SessionIdentity::new(user, client, schema, attributes.iter().copied());
        let mut sql_scratch = Scratch::default();
        let statement = describe(sql, mode, Whole::Yes, &mut sql_scratch);
        let tags = statement.tags().map(|tag| (tag.key, tag.value));
        let mut scratch = IdentityScratch::default();
        let tool = statement.tool();
        let identity =
            resolve(&cluster.identity, &session, iter::empty(), tags, tool, &mut scratch);
        let mut shape_scratch = ShapeScratch::default();
        let shape_text = ShapeText::new(sql, mode, schema, &statement);
        let facts = Facts {
            identity: &identity,
            session: &session,
            classes: statement.classes,
            exemption: statement.exemption,
            shape: shape_scratch.read(&shape_text, ShapeNeeds::ALL),
            now,
        };
        let verdict = decide(cluster, &facts);
        let rule = verdict.rule();
        let explanation = explain(cluster, question);
        let effect = if explanation.is_refused_by_guard() {
            Effect::Denies(Mode::Enforce)
        } else {
            effect(cluster, verdict, Priority::of(&identity))
        };
        let is_first = rule.is_some_and(|rule| rule.index == 0);
        let needs_text = match load.text {
            Text::Sql(_) => false,
            Text::Any { .. } => !is_first && cluster.rules.shape_needs(&facts).any(),
        };
        Ok(Self {
            name: load.name.clone(),
            rows: rows(load, statement.class)?,
            does: does(cluster, verdict, &effect, &explanation),
            rule: MetRule { name: rule.map(|rule| rule.name.to_string()), effect },
            turn: rule.map(|rule| policy::app_key(rule, identity.app)),
            other_signals: rule.map(|rule| other_signals(cluster, rule)).unwrap_or_default(),
            needs_text,
            expires_at: rule.and_then(|rule| rule.expires_at),
            scheduled: rule.is_some_and(|rule| rule.schedule.is_some()),
            runaway: rule.is_some_and(|rule| rule.runaway.is_some()),
            explanation,
        })
    }
}

/// A statement of every class, with a table whose schema is known: what is not known of a table may
/// be held for it.
fn sample(class: Class, table: &str) -> String {
    match class {
        Class::Read => format!("SELECT a FROM {table}"),
        Class::LockingRead => format!("SELECT a FROM {table} FOR UPDATE"),
        Class::Write => format!("UPDATE {table} SET a = 1 WHERE id = 2"),
        Class::Load => format!("LOAD DATA INFILE 'f' INTO TABLE {table}"),
        Class::Call => "CALL p()".to_owned(),
        Class::Ddl => format!("ALTER TABLE {table} ADD COLUMN b INT"),
        Class::Transaction => "BEGIN".to_owned(),
        Class::Session => "SET @a = 1".to_owned(),
        Class::Admin => format!("ANALYZE TABLE {table}"),
        Class::Unknown => "EXECUTE s".to_owned(),
    }
}

fn text(load: &AppLoad) -> String {
    let (class, tags, priority) = match &load.text {
        Text::Sql(sql) => return sql.clone(),
        Text::Any { class, tags, priority } => (*class, tags, *priority),
    };
    let mut sql = sample(class, if load.schema.is_empty() { "s.t" } else { "t" });
    let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}='{value}'")).collect();
    if !tags.is_empty() {
        sql += &format!(" /*{}*/", tags.join(","));
    }
    if let Some(priority) = priority {
        sql = format!("/*vt+ PRIORITY={priority} */ {sql}");
    }
    sql
}

/// Only what writes has rows that replicas apply.
fn rows(load: &AppLoad, class: Class) -> Result<Rows, String> {
    let writes = match class {
        Class::Write | Class::Load | Class::Call | Class::Unknown => true,
        Class::Read
        | Class::LockingRead
        | Class::Ddl
        | Class::Transaction
        | Class::Session
        | Class::Admin => false,
    };
    match (load.rows, writes) {
        (Some(rows), false) if rows.max > 0 => Err(format!(
            "--app {}: a statement of class {} writes no rows, leave `rows` out",
            load.name,
            class.as_str()
        )),
        (Some(rows), _) => Ok(rows),
        (None, true) => Ok(Rows { min: 1, max: 1 }),
        (None, false) => Ok(Rows { min: 0, max: 0 }),
    }
}

fn effect(cluster: &ClusterPolicy, verdict: Verdict<'_>, priority: Priority) -> Effect {
    match verdict {
        Verdict::Pass { .. } => Effect::Passes,
        Verdict::Deny(rule) => Effect::Denies(rule.mode),
        Verdict::Ask(rule) => match rule.action {
            Action::Throttle { terms, gate, .. } => {
                let mut signals = cluster.gate_signals(gate);
                // Without replicas the lag is 0 at any time.
                let waits = !cluster.replicas.is_empty()
                    && signals.any(|signal| matches!(signal.kind, SignalKind::Lag { .. }));
                let ratio =
                    if rule.honour_priority { priority.scale(terms.ratio) } else { terms.ratio };
                Effect::Asks {
                    terms: Terms { ratio, ..terms },
                    gate: if waits { Gate::Lag } else { Gate::Open },
                    speed: rule.speed,
                }
            }
            // What is asked for throttles.
            Action::Exempt => Effect::Passes,
            Action::Deny => Effect::Denies(rule.mode),
        },
    }
}

fn other_signals(cluster: &ClusterPolicy, rule: &Rule) -> Vec<String> {
    match rule.action {
        Action::Throttle { gate, .. } => {
            let signals = cluster.gate_signals(gate);
            let others = signals.filter(|signal| !matches!(signal.kind, SignalKind::Lag { .. }));
            others.map(|signal| signal.name.to_string()).collect()
        }
        Action::Exempt | Action::Deny => Vec::new(),
    }
}

/// What the rule does to these statements, in the words of its keys.
fn does(
    cluster: &ClusterPolicy,
    verdict: Verdict<'_>,
    effect: &Effect,
    explanation: &Explanation,
) -> String {
    let (terms, speed) = match effect {
        Effect::Passes | Effect::Denies(Mode::Enforce) => {
            return format!("{}: {}", explanation.outcome, explanation.why);
        }
        Effect::Denies(Mode::Observe) => {
            return format!("pass: {}, but only observes", explanation.why);
        }
        Effect::Asks { terms, speed, .. } => (terms, speed),
    };
    let gate = verdict.rule().map(|rule| rule.action);
    let gate: Vec<&str> = match gate {
        Some(Action::Throttle { gate, .. }) => {
            cluster.gate_signals(gate).map(|signal| &*signal.name).collect()
        }
        Some(Action::Exempt | Action::Deny) | None => Vec::new(),
    };
    let gate = if gate.is_empty() { "none".to_owned() } else { gate.join(" and ") };
    let mut words = vec!["ask:".to_owned()];
    if terms.hold {
        words.push("hold,".to_owned());
    }
    if *speed != Speed::FULL {
        words.push(format!("speed {},", speed.as_f64()));
    }
    words.push(format!("ratio {},", terms.ratio.as_f64()));
    if let Some(percent) = explanation.priority.filter(|percent| *percent != 100) {
        words.push(format!("(by priority {percent}),"));
    }
    words.push(format!("gate {gate},"));
    let rates = [("at least", terms.min_rate, "rows/s"), ("at most", terms.max_rate, "rows/s")];
    for (word, rate, unit) in rates.into_iter().chain([("at most", terms.max_in_flight, "at once")])
    {
        words.extend(rate.map(|rate| format!("{word} {rate} {unit},")));
    }
    words.push(format!("max_delay {:?}", terms.max_delay));
    match terms.mode {
        Mode::Enforce => {}
        Mode::Observe => words.push("(observes only)".to_owned()),
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_a_class_is_of_that_class() {
        for class in Class::ALL {
            let mut scratch = Scratch::default();
            let sql = sample(class, "s.t");
            let mode = LexMode::default();
            let statement = describe(sql.as_bytes(), mode, Whole::Yes, &mut scratch);
            assert_eq!(statement.class, class, "{sql}");
        }
    }
}
