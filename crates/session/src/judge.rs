//! Who is asking, and what the rules say to it.

pub(crate) mod guarded;
pub(crate) mod known;
pub(crate) mod memo;
pub(crate) mod subject;
pub(crate) mod who;

use admission::BudgetSet;
use policy::identity::{IdentityScratch, resolve_with};
use policy::{
    Facts, Priority, Shape, ShapeNeeds, ShapeScratch, ShapeText, Verdict, decide, watching,
};
use sql::{ClassSet, Exemption, LexMode, Scratch, Statement, Surveyor, Tool};
use wire::command::{Query, QueryAttributes};

use self::known::Recent;
use self::memo::{Kept, MEMO_LEN_MAX, Memo, Remembered, Ruling};
use self::subject::{Samples, Subject};
use self::who::Who;
use crate::action::Input;
use crate::server::prepared::Description;

/// What a session needs to find out who asks and what the rules say, and the memory for it.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// In which texts are read. Apart from the bench, for what is read stands in it meanwhile.
    pub(crate) texts: Scratch,
    pub(crate) bench: Bench,
}

/// All of it but the text.
#[derive(Debug, Default)]
pub(crate) struct Bench {
    pub(crate) who: Who,
    /// What the text under way is about, as far as anybody has asked.
    pub(crate) shape: ShapeScratch,
    /// What guards look at texts with, once there are any.
    surveyor: Option<Box<Surveyor>>,
    /// The budgets that meet the statement under way.
    pub(crate) budgets: BudgetSet,
    /// The rule whose `runaway` is about the statement under way.
    pub(crate) watched: Option<u32>,
    /// What the statement under way is about, if somebody counts statements.
    pub(crate) subject: Subject,
    /// Where the text under way is among those that came before.
    pub(crate) recent: Recent,
    memo: Memo,
    identities: IdentityScratch,
}

impl Judge {
    /// Gives back memory that a large statement has taken.
    pub(crate) fn shrink(&mut self) {
        self.texts.shrink();
        self.bench.shape.shrink();
        if let Some(surveyor) = &mut self.bench.surveyor {
            surveyor.shrink();
        }
        self.bench.identities.shrink();
        self.bench.subject.shrink();
    }
}

/// Who asks and what for, but for the text.
struct Asked<'t, T> {
    classes: ClassSet,
    exemption: Option<Exemption>,
    tool: Option<Tool>,
    attributes: QueryAttributes<'t>,
    tags: T,
}

/// What an execution says of itself, ahead of what was described when it was prepared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SaidByExecution<'t> {
    pub(crate) attributes: QueryAttributes<'t>,
    /// The `EXECUTE` of SQL.
    pub(crate) statement: Option<&'t Statement<'t>>,
}

/// What a text is about.
enum About<'t> {
    /// It was read when it was prepared.
    Known(Shape<'t>),
    /// It is read for rules that look at it.
    Text {
        text: &'t [u8],
        mode: LexMode,
        statement: &'t Statement<'t>,
        scratch: &'t mut ShapeScratch,
        /// What is in the scratch already.
        read: Option<ShapeNeeds>,
    },
}

impl Bench {
    /// A statement comes of which nothing is known yet.
    pub(crate) fn begin_statement(&mut self, input: &Input<'_>) {
        self.recent.pass();
        self.subject.pass();
        if input.digests.is_some() {
            self.subject.begin(&self.who);
        }
    }

    /// The digest of the text under way, certain or not: what it costs is predicted by it, and what
    /// runs away is known by it.
    pub(crate) fn digest(
        &mut self,
        text: (&[u8], LexMode),
        statement: &Statement<'_>,
        input: &Input<'_>,
    ) -> u64 {
        if statement.is_certain() {
            let known = (&self.recent, input.texts);
            self.subject.judged_by(text, known, &mut self.shape)
        } else {
            self.shape.digest(text.0, text.1)
        }
    }

    /// The statement is this text. To be called when its shape is no longer needed.
    pub(crate) fn note_text(
        &mut self,
        text: (&[u8], LexMode),
        statement: &Statement<'_>,
        input: &Input<'_>,
    ) {
        if let Some(memo) = input.digests {
            let samples =
                if input.policy.insights.sample_text { Samples::Kept } else { Samples::NotKept };
            let known = (&self.recent, input.texts);
            let looks = (known, &mut self.shape);
            self.subject.note_text(text, statement, looks, (memo, samples));
        }
    }

    /// The statement executes what was described when it was prepared.
    pub(crate) fn note_description(&mut self, description: &Description, input: &Input<'_>) {
        if let Some(memo) = input.digests {
            self.subject.note_shape(&description.shape, memo, || {
                let (classes, _) = description.classes_with(&input.facts.routines);
                (classes, description.exemption)
            });
        }
    }

    /// What the rules say to a statement in text. Its shape is read only for rules that look at
    /// it. Costs one comparison when the statement comes from where the last one came from.
    pub(crate) fn rule_on_text(
        &mut self,
        statement: &Statement<'_>,
        query: &Query<'_>,
        mode: LexMode,
        input: &Input<'_>,
    ) -> Ruling {
        let Self { who, shape: scratch, budgets, watched, memo, identities, subject, .. } = self;
        scratch.clear();
        let remembers =
            query.attributes.is_empty() && statement.comment_bytes().len() <= MEMO_LEN_MAX;
        let mut read = None;
        if remembers
            && let Some(last) = memo.of_class(statement.class)
            && let Some(kept) = last.remembered.of(who.generation(), input.now)
            && is_told(kept, input)
            && last.is_from(statement)
        {
            if last.needs.any() {
                let text = ShapeText::of_session(query.text, mode, who.identity(), statement);
                scratch.read(&text, last.needs);
                read = Some(last.needs);
            }
            if last.is_about(scratch.shape()) {
                who.said.note_again(&mut last.remembered, &kept);
                last.remembered.give_budgets(budgets);
                *watched = kept.watched;
                return kept.ruling;
            }
        }
        let asked = Asked {
            classes: statement.classes,
            exemption: statement.exemption,
            tool: statement.tool(),
            attributes: query.attributes,
            tags: statement.tags().map(|tag| (tag.key, tag.value)),
        };
        let about = About::Text { text: query.text, mode, statement, scratch, read };
        let bench = (&mut *who, identities, subject);
        let judged = rule(asked, about, bench, input);
        (*budgets, *watched) = (judged.budgets, judged.watched);
        let kept = if remembers { keep(&judged, who, input) } else { None };
        let shape = scratch.shape();
        if let Some(kept) = kept
            && shape.table_bytes().len() <= MEMO_LEN_MAX
            && let Some(last) = memo.of_class(statement.class)
        {
            last.note(statement, judged.needs, shape);
            last.remembered.note(kept, who, budgets);
        }
        judged.ruling
    }

    /// What the rules say to an execution of what was described when it was prepared. Costs one
    /// comparison while nothing has changed since the last one.
    pub(crate) fn rule_on_execution(
        &mut self,
        description: &Description,
        last: &mut Remembered,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Ruling {
        let remembers = attributes.is_empty();
        if remembers
            && let Some(kept) = last.of(self.who.generation(), input.now)
            && is_told(kept, input)
        {
            self.who.said.note_again(last, &kept);
            last.give_budgets(&mut self.budgets);
            self.watched = kept.watched;
            return kept.ruling;
        }
        let said = SaidByExecution { attributes, statement: None };
        let judged = self.judge_description(description, said, input);
        if remembers && let Some(kept) = keep(&judged, &self.who, input) {
            last.note(kept, &self.who, &self.budgets);
        }
        judged.ruling
    }

    /// What the rules say to what was described when it was prepared.
    pub(crate) fn rule_on_description(
        &mut self,
        description: &Description,
        said: SaidByExecution<'_>,
        input: &Input<'_>,
    ) -> Ruling {
        self.judge_description(description, said, input).ruling
    }

    fn judge_description(
        &mut self,
        description: &Description,
        said: SaidByExecution<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let SaidByExecution { attributes, statement } = said;
        let exemption = description.exemption;
        let (classes, _) = description.classes_with(&input.facts.routines);
        let tool = statement.and_then(Statement::tool).or(description.tool);
        let own = statement.into_iter().flat_map(Statement::tags);
        let own = own.map(|tag| pair(tag.key, tag.value));
        let tags = description.tags.iter().map(|(key, value)| pair(key, value));
        let about = About::Known(description.shape.shape());
        let asked = Asked { classes, exemption, tool, attributes, tags: own.chain(tags) };
        let Self { who, identities, subject, .. } = self;
        let judged = rule(asked, about, (who, identities, subject), input);
        (self.budgets, self.watched) = (judged.budgets, judged.watched);
        judged
    }
}

/// What may be kept of a ruling. Claims that were refused are counted for each statement, so those
/// are not remembered.
fn keep(judged: &Judged, who: &Who, input: &Input<'_>) -> Option<Kept> {
    (!who.has_refused_claims()).then(|| Kept {
        generation: who.generation(),
        valid_until: input.policy.rules.next_change_after(input.now),
        tool: who.tool(),
        source: who.source(),
        trace: who.trace(),
        tags: who.tags(),
        ruling: judged.ruling,
        watched: judged.watched,
    })
}

/// What the rules say, by what was read, and the budgets beside them.
struct Judged {
    ruling: Ruling,
    /// The rule whose `runaway` is about it.
    watched: Option<u32>,
    needs: ShapeNeeds,
    budgets: BudgetSet,
}

/// Whether somebody knows what the statement's tags are: if not, they are read again.
fn is_told(kept: Kept, input: &Input<'_>) -> bool {
    kept.tags == 0 || input.digests.is_none_or(|memo| memo.is_told(kept.tags))
}

fn rule<'t>(
    asked: Asked<'t, impl Iterator<Item = (&'t [u8], &'t [u8])>>,
    about: About<'_>,
    (who, identities, subject): (&mut Who, &mut IdentityScratch, &mut Subject),
    input: &Input<'_>,
) -> Judged {
    let Asked { classes, exemption, tool, attributes, tags } = asked;
    let attributes = attributes.iter().filter_map(|(name, value)| Some((name, value?)));
    let tags = tags.map(|(key, value)| pair(key, value));
    let Who { identity: session, said, .. } = &mut *who;
    let session = &*session;
    let identity =
        resolve_with(&input.policy.identity, session, attributes, tags, tool, identities);
    let shape = Shape::default();
    let mut facts =
        Facts { identity: &identity, session, classes, exemption, shape, now: input.now };
    let mut needs = ShapeNeeds::default();
    match about {
        About::Known(shape) => facts.shape = shape,
        About::Text { text, mode, statement, scratch, read } => {
            let of_budgets = input.policy.budgets.shape_needs();
            needs = input.policy.rules.shape_needs(&facts).or(of_budgets);
            if read != Some(needs) {
                scratch.read(&ShapeText::of_session(text, mode, session, statement), needs);
            }
            facts.shape = scratch.shape();
        }
    }
    let verdict = decide(input.policy, &facts);
    let watched = watching(input.policy, &facts, &verdict).map(|rule| rule.index);
    let ruling = match verdict {
        Verdict::Pass { rule, why } => Ruling::Pass(rule.map(|rule| rule.index), why),
        Verdict::Ask(rule) if rule.honour_priority => {
            Ruling::Ask(rule.index, Priority::of(&identity))
        }
        Verdict::Ask(rule) => Ruling::Ask(rule.index, Priority::LOWEST),
        Verdict::Deny(rule) => Ruling::Deny(rule.index),
    };
    let budgets = input.policy.budgets.meeting(&facts);
    let trace = match ruling {
        Ruling::Pass(..) if budgets.is_empty() => None,
        Ruling::Pass(..) | Ruling::Ask(..) | Ruling::Deny(_) => identity.trace_id(),
    };
    said.note(identity.app, Some(identity.source), identity.tool_seen, trace);
    said.tags = match input.digests {
        Some(memo) => subject.note_tags(&input.policy.insights.tags, &identity, memo),
        None => 0,
    };
    said.note_refused(identity.refused_claims, identity.refused_claim);
    who.stick_to_tool();
    Judged { ruling, watched, needs, budgets }
}

fn replace(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.clear();
    kept.extend_from_slice(bytes);
}

/// A key and its value, for no longer than the identity is looked at.
fn pair<'a>(key: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (key, value)
}
