//! What guards have to say of a text, ahead of what the rules say.
//!
//! A text is looked at where it comes: COM_QUERY and COM_STMT_PREPARE. What was prepared is not
//! looked at again when it is executed, but for tags, which come with each execution.

use policy::identity::resolve_with;
use policy::{Facts, GuardReport, Guarded, Shape, ShapeText};
use sql::{ClassSet, Exemption, Statement, Survey, Tool, Whole, describe};
use wire::command::{Query, QueryAttributes};

use super::who::Who;
use super::{Bench, Judge, SaidByExecution, pair};
use crate::action::Input;
use crate::command::Arrived;
use crate::server::ServerSide;
use crate::server::prepared::Description;

/// A text that guards look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuardedText<'t> {
    text: &'t [u8],
    attributes: QueryAttributes<'t>,
    whole: Whole,
    /// Bytes of its frame that are not there yet.
    unseen: usize,
    /// Further frames follow.
    goes_on: bool,
    /// Whether tags are looked at now.
    tags: bool,
    /// Whether it was looked for among the texts of late.
    looked_for: bool,
}

impl<'t> GuardedText<'t> {
    /// The text of a COM_QUERY.
    pub(crate) fn query(query: &Query<'t>, arrived: Arrived<'_>) -> Self {
        let Query { text, attributes } = *query;
        Self { attributes, tags: true, looked_for: true, ..Self::preparation(text, arrived) }
    }

    /// The text of a COM_STMT_PREPARE.
    pub(crate) fn preparation(text: &'t [u8], arrived: Arrived<'_>) -> Self {
        let Arrived { header, payload, whole } = arrived;
        Self {
            text,
            attributes: QueryAttributes::default(),
            whole: if whole { Whole::Yes } else { Whole::Truncated },
            unseen: header.payload_len.saturating_sub(payload.len()),
            goes_on: header.continues(),
            tags: false,
            looked_for: false,
        }
    }

    fn len(&self) -> u64 {
        u64::try_from(self.text.len().saturating_add(self.unseen)).unwrap_or(u64::MAX)
    }
}

/// What a statement is, for guards.
struct Subject<'t, T> {
    classes: ClassSet,
    exemption: Option<Exemption>,
    tool: Option<Tool>,
    attributes: QueryAttributes<'t>,
    tags: T,
    shape: Shape<'t>,
}

impl Judge {
    /// What guards have to say of a text. None, for one comparison, where there are no guards.
    pub(crate) fn guard_text(
        &mut self,
        text: GuardedText<'_>,
        server: &mut ServerSide,
        input: &Input<'_>,
    ) -> Option<Box<GuardReport>> {
        let guards = &input.policy.guards;
        if guards.is_empty() {
            return None;
        }
        let survey = self.bench.survey(text, server, input);
        server.temporary.note(text.text, &survey);
        let guarded = Guarded {
            survey: Some(&survey),
            len: text.len(),
            goes_on: text.goes_on,
            now: input.now,
            tags: text.tags,
            all_tags: true,
        };
        let may_object = guards.may_object(&guarded, &self.bench.who.identity);
        if may_object { self.ask(text, &guarded, server, input) } else { None }
    }

    /// Finds out who asks, and for what.
    fn ask(
        &mut self,
        text: GuardedText<'_>,
        guarded: &Guarded<'_>,
        server: &ServerSide,
        input: &Input<'_>,
    ) -> Option<Box<GuardReport>> {
        let Self { texts, bench } = self;
        let statement = describe(text.text, server.mode, text.whole, texts);
        let guarded = &Guarded { all_tags: statement.is_certain(), ..*guarded };
        let executed = statement.effects.execute.filter(|_| statement.statement_count == 1);
        if let Some(description) = executed.and_then(|name| server.prepared.name(name)) {
            let said = SaidByExecution { attributes: text.attributes, statement: Some(&statement) };
            return bench.guard_description(&description, said, guarded, input);
        }
        let Bench { who, shape: scratch, .. } = bench;
        let session = &who.identity;
        let text_of = ShapeText::of_session(text.text, server.mode, session, &statement);
        scratch.read(&text_of, input.policy.guards.shape_needs());
        let shape = scratch.shape();
        let subject = Subject {
            classes: statement.classes,
            exemption: statement.exemption,
            tool: statement.tool(),
            attributes: text.attributes,
            tags: statement.tags().map(|tag| pair(tag.key, tag.value)),
            shape,
        };
        judge(subject, guarded, (who, &mut bench.identities), input)
    }
}

impl Bench {
    /// What guards look at in a text.
    fn survey(&mut self, text: GuardedText<'_>, server: &ServerSide, input: &Input<'_>) -> Survey {
        if text.looked_for
            && let Some(survey) = self.recent.survey(input.texts)
        {
            return survey;
        }
        let surveyor = self.surveyor.get_or_insert_default();
        let survey = surveyor.survey(text.text, server.mode, text.whole);
        if text.looked_for {
            self.recent.note_survey(input.texts, &survey);
        }
        survey
    }

    /// What guards have to say of an execution: of its tags. `None`: its attributes cannot be read.
    pub(crate) fn guard_execution(
        &mut self,
        description: &Description,
        attributes: Option<QueryAttributes<'_>>,
        input: &Input<'_>,
    ) -> Option<Box<GuardReport>> {
        if !input.policy.guards.may_want_tags_of(&self.who.identity) {
            return None;
        }
        let all_tags = attributes.is_some();
        let attributes = attributes.unwrap_or_default();
        let said = SaidByExecution { attributes, statement: None };
        let guarded =
            Guarded { survey: None, len: 0, goes_on: false, now: input.now, tags: true, all_tags };
        self.guard_description(description, said, &guarded, input)
    }

    fn guard_description(
        &mut self,
        description: &Description,
        said: SaidByExecution<'_>,
        guarded: &Guarded<'_>,
        input: &Input<'_>,
    ) -> Option<Box<GuardReport>> {
        let SaidByExecution { attributes, statement } = said;
        let own = statement.into_iter().flat_map(Statement::tags);
        let own = own.map(|tag| pair(tag.key, tag.value));
        let tags = description.tags.iter().map(|(key, value)| pair(key, value));
        let subject = Subject {
            classes: description.classes,
            exemption: description.exemption,
            tool: statement.and_then(Statement::tool).or(description.tool),
            attributes,
            tags: own.chain(tags),
            shape: description.shape.shape(),
        };
        let all_tags = guarded.all_tags && description.has_all_tags;
        let guarded = Guarded { survey: None, all_tags, ..*guarded };
        judge(subject, &guarded, (&mut self.who, &mut self.identities), input)
    }
}

fn judge<'t>(
    subject: Subject<'t, impl Iterator<Item = (&'t [u8], &'t [u8])>>,
    guarded: &Guarded<'_>,
    (who, identities): (&mut Who, &mut policy::identity::IdentityScratch),
    input: &Input<'_>,
) -> Option<Box<GuardReport>> {
    let Subject { classes, exemption, tool, attributes, tags, shape } = subject;
    // What has more than one text is a value too, only none that is read here.
    let are_texts = attributes.iter().all(|(_, value)| value.is_some());
    let guarded = &Guarded { all_tags: guarded.all_tags && are_texts, ..*guarded };
    let attributes = attributes.iter().filter_map(|(name, value)| Some((name, value?)));
    let Who { identity: session, said, .. } = who;
    let session = &*session;
    let identity =
        resolve_with(&input.policy.identity, session, attributes, tags, tool, identities);
    let facts = Facts { identity: &identity, session, classes, exemption, shape, now: input.now };
    let report = input.policy.guards.judge(guarded, &facts);
    if report.is_empty() {
        return None;
    }
    // Nobody is told here what they are: who has sent such before is known.
    said.tags = input.policy.insights.tags.write(&identity, &mut Vec::new());
    // Of a text that is prepared no rule has asked yet who it comes from.
    said.note(identity.app, Some(identity.source), identity.tool_seen, identity.trace_id());
    Some(Box::new(report))
}
