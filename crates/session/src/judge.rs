//! Who is asking, and what the rules say to it.

use policy::identity::resolve;
use policy::{
    Facts, Priority, Shape, ShapeNeeds, ShapeScratch, ShapeText, UnixTime, Verdict, decide,
};
use sql::{Class, ClassSet, Statement, Tool};
use wire::command::{Query, QueryAttributes};

use crate::action::Input;
use crate::prepared::{Description, PreparedStatement};
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

/// The last verdict, and the app that it was about.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    verdict: Option<Kept>,
    app: Vec<u8>,
}

/// A verdict, and as long as it holds.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The session's generation in which it holds.
    generation: u64,
    /// A rule expires then, or a schedule may begin or end.
    valid_until: Option<UnixTime>,
    tool_seen: Option<Tool>,
    judged: Judged,
}

impl Remembered {
    fn of(&self, generation: u64, now: UnixTime) -> Option<Kept> {
        self.verdict.filter(|kept| {
            kept.generation == generation && kept.valid_until.is_none_or(|until| now < until)
        })
    }

    fn note(&mut self, kept: Kept, app: &[u8]) {
        self.verdict = Some(kept);
        replace(&mut self.app, app);
    }
}

/// The last verdict for each class. The statements of one connection mostly come from one place in one
/// program: then comparing their comments replaces reading them and looking the rule up.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// Boxed: few connections send statements of more than three classes.
    entries: [Option<Box<Entry>>; CLASSES],
}

const CLASSES: usize = Class::ALL.len();

#[derive(Debug, Default)]
struct Entry {
    verdict: Remembered,
    comments: Vec<u8>,
    classes: ClassSet,
    /// What such a text is looked at for.
    needs: ShapeNeeds,
    digest: Option<u64>,
    tables: Vec<u8>,
    knows_tables: bool,
}

/// The longest comments that are remembered, and the longest names of tables: longer ones are read anew each
/// time.
const MEMO_LEN_MAX: usize = 512;

impl Memo {
    fn entry(&mut self, class: Class) -> Option<&mut Entry> {
        let index = Class::ALL.iter().position(|other| *other == class)?;
        Some(self.entries.get_mut(index)?.get_or_insert_default())
    }
}

impl Entry {
    /// Whether the statement comes from where the remembered one came from.
    fn is_from(&self, statement: &Statement<'_>) -> bool {
        self.classes == statement.classes && self.comments == statement.comment_bytes()
    }

    fn is_about(&self, shape: Shape<'_>) -> bool {
        self.digest == shape.digest()
            && self.knows_tables == shape.knows_tables()
            && self.tables == shape.table_bytes()
    }

    fn note(&mut self, statement: &Statement<'_>, needs: ShapeNeeds, shape: Shape<'_>) {
        replace(&mut self.comments, statement.comment_bytes());
        replace(&mut self.tables, shape.table_bytes());
        self.classes = statement.classes;
        self.needs = needs;
        self.digest = shape.digest();
        self.knows_tables = shape.knows_tables();
    }
}

fn replace(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.clear();
    kept.extend_from_slice(bytes);
}

/// Who asks and what for, but for the text.
struct Asked<'t, T> {
    classes: ClassSet,
    tool: Option<Tool>,
    attributes: QueryAttributes<'t>,
    tags: T,
}

/// What a text is about.
enum About<'t> {
    /// It was read when it was prepared.
    Known(Shape<'t>),
    /// It is read for rules that look at it.
    Text {
        text: &'t [u8],
        statement: &'t Statement<'t>,
        scratch: &'t mut ShapeScratch,
        /// What is in the scratch already.
        read: Option<ShapeNeeds>,
    },
}

impl Session {
    /// Judges a statement in text. Its shape is read only for rules that look at it.
    pub(crate) fn judge_text(
        &mut self,
        statement: &Statement<'_>,
        query: &Query<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let mut scratch = std::mem::take(&mut self.shape);
        scratch.clear();
        let judged = self.judge_read(statement, query, &mut scratch, input);
        self.shape = scratch;
        judged
    }

    /// Costs one comparison when the statement comes from where the last one came from.
    fn judge_read(
        &mut self,
        statement: &Statement<'_>,
        query: &Query<'_>,
        scratch: &mut ShapeScratch,
        input: &Input<'_>,
    ) -> Judged {
        let remembers =
            query.attributes.is_empty() && statement.comment_bytes().len() <= MEMO_LEN_MAX;
        let generation = self.generation;
        let mut read = None;
        if remembers
            && let Some(entry) = self.memo.entry(statement.class)
            && let Some(kept) = entry.verdict.of(generation, input.now)
            && entry.is_from(statement)
        {
            if entry.needs.any() {
                let schema = self.identity.schema();
                scratch
                    .read(&ShapeText::new(query.text, self.mode, schema, statement), entry.needs);
                read = Some(entry.needs);
            }
            if entry.is_about(scratch.shape()) {
                replace(&mut self.app, &entry.verdict.app);
                self.tool_seen = kept.tool_seen;
                return kept.judged;
            }
        }
        let tags = statement.tags().map(|tag| (tag.key, tag.value));
        let attributes = query.attributes;
        let asked = Asked { classes: statement.classes, tool: statement.tool(), attributes, tags };
        let about = About::Text { text: query.text, statement, scratch: &mut *scratch, read };
        let (judged, needs) = self.judge(asked, about, input);
        let verdict = if remembers { self.remembered(judged, input) } else { None };
        let shape = scratch.shape();
        if let Some(verdict) = verdict
            && shape.table_bytes().len() <= MEMO_LEN_MAX
            && let Some(entry) = self.memo.entry(statement.class)
        {
            entry.note(statement, needs, shape);
            entry.verdict.note(verdict, &self.app);
        }
        judged
    }

    /// Judges an execution of what was described when it was prepared. Costs one comparison while nothing has
    /// changed since the last one.
    pub(crate) fn judge_execution(
        &mut self,
        statement_id: u32,
        description: &Description,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let remembers = attributes.is_empty();
        let generation = self.generation;
        if remembers
            && let Some(PreparedStatement { verdict, .. }) = self.prepared.get_mut(statement_id)
            && let Some(kept) = verdict.of(generation, input.now)
        {
            replace(&mut self.app, &verdict.app);
            self.tool_seen = kept.tool_seen;
            return kept.judged;
        }
        let judged = self.judge_description(description, attributes, input);
        let verdict = if remembers { self.remembered(judged, input) } else { None };
        if let Some(verdict) = verdict
            && let Some(statement) = self.prepared.get_mut(statement_id)
        {
            statement.verdict.note(verdict, &self.app);
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
        let Description { classes, tool, .. } = *description;
        let tags = description.tags.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let about = About::Known(description.shape.shape());
        self.judge(Asked { classes, tool, attributes, tags }, about, input).0
    }

    /// What may be kept of a verdict. Claims that were refused are counted for each statement, so those are not
    /// remembered.
    fn remembered(&self, judged: Judged, input: &Input<'_>) -> Option<Kept> {
        (self.claims_refused == 0).then(|| Kept {
            generation: self.generation,
            valid_until: input.policy.rules.next_change_after(input.now),
            tool_seen: self.tool_seen,
            judged,
        })
    }

    fn judge<'t>(
        &mut self,
        asked: Asked<'t, impl Iterator<Item = (&'t [u8], &'t [u8])>>,
        about: About<'_>,
        input: &Input<'_>,
    ) -> (Judged, ShapeNeeds) {
        let Asked { classes, tool, attributes, tags } = asked;
        let attributes = attributes.iter().filter_map(|(name, value)| Some(pair(name, value?)));
        let tags = tags.map(|(key, value)| pair(key, value));
        let identity = resolve(
            &input.policy.identity,
            &self.identity,
            attributes,
            tags,
            tool,
            &mut self.identity_scratch,
        );
        replace(&mut self.app, identity.app);
        self.claims_refused = self.claims_refused.saturating_add(identity.refused_claims);
        self.tool_seen = identity.tool_seen;
        let session = &self.identity;
        let shape = Shape::default();
        let mut facts =
            Facts { identity: &identity, session, classes, exemption: None, shape, now: input.now };
        let mut needs = ShapeNeeds::default();
        match about {
            About::Known(shape) => facts.shape = shape,
            About::Text { text, statement, scratch, read } => {
                needs = input.policy.rules.shape_needs(&facts);
                if read != Some(needs) {
                    scratch
                        .read(&ShapeText::new(text, self.mode, session.schema(), statement), needs);
                }
                facts.shape = scratch.shape();
            }
        }
        let judged = verdict_of(&facts, input);
        if let Some(tool) = self.tool_seen
            && self.identity.handle_tool_seen(tool)
        {
            self.generation = self.generation.wrapping_add(1);
        }
        (judged, needs)
    }
}

fn verdict_of(facts: &Facts<'_>, input: &Input<'_>) -> Judged {
    match decide(input.policy, facts) {
        Verdict::Pass { rule, .. } => Judged::Pass(rule.map(|rule| rule.index)),
        Verdict::Ask(rule) if rule.honour_priority => {
            Judged::Ask(rule.index, Priority::of(facts.identity))
        }
        Verdict::Ask(rule) => Judged::Ask(rule.index, Priority::LOWEST),
        Verdict::Deny(rule) => Judged::Deny(rule.index),
    }
}

/// A key and its value, for no longer than the identity is looked at.
fn pair<'a>(key: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (key, value)
}
