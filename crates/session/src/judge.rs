//! Who is asking, and what the rules say to it.

use policy::identity::resolve;
use policy::{Facts, Priority, Shape, ShapeText, UnixTime, Verdict};
use sql::{Class, ClassSet, Statement, Tool};
use wire::command::{Query, QueryAttributes};

use crate::action::Input;
use crate::prepared::Description;
use crate::session::Session;

/// What the rules said to a statement of its class, wherever it stands; rules by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Pass(Option<u32>),
    Ask(u32, Priority),
    Deny(u32),
}

impl Judged {
    /// The rule that decided.
    pub(crate) fn rule(self) -> Option<u32> {
        match self {
            Self::Pass(rule) => rule,
            Self::Ask(rule, _) | Self::Deny(rule) => Some(rule),
        }
    }
}

/// What is asked about a text besides who asks.
#[derive(Clone, Copy, Debug)]
struct Asked<'s> {
    classes: ClassSet,
    tool: Option<Tool>,
    shape: Shape<'s>,
}

/// A text and what it is about.
#[derive(Clone, Copy, Debug)]
struct Text<'t> {
    statement: &'t Statement<'t>,
    shape: Shape<'t>,
}

/// The last verdict for each class. The statements of one connection mostly come from one place in one
/// program: then comparing their comments replaces reading them and looking the rule up.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    entries: [Entry; CLASSES],
}

const CLASSES: usize = Class::ALL.len();

#[derive(Debug, Default)]
struct Entry {
    /// The session's generation in which it holds.
    generation: Option<u64>,
    /// A rule expires then, or a schedule may begin or end.
    valid_until: Option<UnixTime>,
    comments: Vec<u8>,
    app: Vec<u8>,
    classes: ClassSet,
    digest: Option<u64>,
    tables: Vec<u8>,
    knows_tables: bool,
    tool_seen: Option<Tool>,
    judged: Option<Judged>,
}

/// The longest comments that are remembered, and the longest names of tables: longer ones are read anew each
/// time.
const MEMO_LEN_MAX: usize = 512;

impl Memo {
    fn entry(&mut self, class: Class) -> Option<&mut Entry> {
        let index = Class::ALL.iter().position(|other| *other == class)?;
        self.entries.get_mut(index)
    }
}

impl Entry {
    fn holds(&self, generation: u64, now: UnixTime, text: &Text<'_>) -> bool {
        self.generation == Some(generation)
            && self.valid_until.is_none_or(|until| now < until)
            && self.classes == text.statement.classes
            && self.comments == text.statement.comment_bytes()
            && self.digest == text.shape.digest()
            && self.knows_tables == text.shape.knows_tables()
            && self.tables == text.shape.table_bytes()
    }

    fn remember(&mut self, text: &Text<'_>) {
        let replace = |kept: &mut Vec<u8>, bytes: &[u8]| {
            kept.clear();
            kept.extend_from_slice(bytes);
        };
        replace(&mut self.comments, text.statement.comment_bytes());
        replace(&mut self.tables, text.shape.table_bytes());
        self.classes = text.statement.classes;
        self.digest = text.shape.digest();
        self.knows_tables = text.shape.knows_tables();
    }
}

impl Session {
    /// Judges a statement in text. Its shape is read only for rules that look at it.
    pub(crate) fn judge_text(
        &mut self,
        statement: &Statement<'_>,
        query: &Query<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let needs = input.policy.shape_needs();
        let mut scratch = std::mem::take(&mut self.shape);
        let shape = if needs.any() {
            let schema = self.identity.schema();
            scratch.read(&ShapeText::new(query.text, self.mode, schema, statement), needs)
        } else {
            scratch.clear();
            Shape::default()
        };
        let judged = self.judge_shaped(&Text { statement, shape }, query.attributes, input);
        self.shape = scratch;
        judged
    }

    /// Costs one comparison when the statement comes from where the last one came from.
    fn judge_shaped(
        &mut self,
        text: &Text<'_>,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let Text { statement, shape } = *text;
        let remembers = attributes.is_empty()
            && statement.comment_bytes().len() <= MEMO_LEN_MAX
            && shape.table_bytes().len() <= MEMO_LEN_MAX;
        let generation = self.generation;
        if remembers
            && let Some(entry) = self.memo.entry(statement.class)
            && entry.holds(generation, input.now, text)
            && let Some(judged) = entry.judged
        {
            self.app.clear();
            self.app.extend_from_slice(&entry.app);
            self.tool_seen = entry.tool_seen;
            return judged;
        }
        let tags = statement.tags().map(|tag| (tag.key, tag.value));
        let asked = Asked { classes: statement.classes, tool: statement.tool(), shape };
        let judged = self.judge(asked, attributes, tags, input);
        // Claims that were refused are counted for each statement, so those are not remembered.
        if remembers
            && self.claims_refused == 0
            && let Some(entry) = self.memo.entry(statement.class)
        {
            entry.generation = Some(self.generation);
            entry.valid_until = input.policy.next_change_after(input.now);
            entry.remember(text);
            entry.app.clear();
            entry.app.extend_from_slice(&self.app);
            entry.tool_seen = self.tool_seen;
            entry.judged = Some(judged);
        }
        judged
    }

    /// Judges what was described when it was prepared.
    pub(crate) fn judge_description(
        &mut self,
        description: &Description,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let tags = description.tags.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let shape = description.shape.shape();
        let asked = Asked { classes: description.classes, tool: description.tool, shape };
        self.judge(asked, attributes, tags, input)
    }

    fn judge<'t>(
        &mut self,
        Asked { classes, tool, shape }: Asked<'_>,
        attributes: QueryAttributes<'t>,
        tags: impl Iterator<Item = (&'t [u8], &'t [u8])>,
        input: &Input<'_>,
    ) -> Judged {
        let attributes = attributes.iter().filter_map(|(name, value)| Some(pair(name, value?)));
        let tags = tags.map(|(key, value)| pair(key, value));
        let identity = resolve(
            input.policy,
            &self.identity,
            attributes,
            tags,
            tool,
            &mut self.identity_scratch,
        );
        self.app.clear();
        self.app.extend_from_slice(identity.app);
        self.claims_refused = self.claims_refused.saturating_add(identity.refused_claims);
        self.tool_seen = identity.tool_seen;
        let class = classes.strictest().unwrap_or(Class::Unknown);
        let session = &self.identity;
        let facts = Facts { identity: &identity, session, class, shape, now: input.now };
        // Of a text of several statements each must pass: none is carried past its rule by another.
        let verdict = if classes == ClassSet::from_iter([class]) {
            input.policy.evaluate(&facts)
        } else {
            input.policy.evaluate_classes(&facts, classes)
        };
        let judged = match verdict {
            Verdict::Pass { rule, .. } => Judged::Pass(rule.map(|rule| rule.index)),
            Verdict::Ask(rule) if rule.honour_priority => {
                Judged::Ask(rule.index, Priority::of(&identity))
            }
            Verdict::Ask(rule) => Judged::Ask(rule.index, Priority::LOWEST),
            Verdict::Deny(rule) => Judged::Deny(rule.index),
        };
        if let Some(tool) = self.tool_seen
            && self.identity.handle_tool_seen(tool)
        {
            self.generation = self.generation.wrapping_add(1);
        }
        judged
    }
}

/// A key and its value, for no longer than the identity is looked at.
fn pair<'a>(key: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (key, value)
}
