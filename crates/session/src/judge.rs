//! Who is asking, and what the rules say to it.

use policy::identity::resolve;
use policy::{Facts, UnixTime, Verdict};
use sql::{Class, Statement, Tool};
use wire::command::QueryAttributes;

use crate::action::Input;
use crate::prepared::Description;
use crate::session::Session;

/// What the rules said, without borrowing from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) rule: Option<u32>,
    pub(crate) says: Says,
}

/// What a rule says to a statement of its class, wherever the statement stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Says {
    #[default]
    Ask,
    Pass,
    Deny,
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
    /// A rule expires then.
    valid_until: Option<UnixTime>,
    comments: Vec<u8>,
    app: Vec<u8>,
    judged: Judged,
}

/// The longest comments that are remembered: longer ones are read anew each time.
const MEMO_COMMENTS_LEN_MAX: usize = 512;

impl Memo {
    fn entry(&mut self, class: Class) -> Option<&mut Entry> {
        let index = Class::ALL.iter().position(|other| *other == class)?;
        self.entries.get_mut(index)
    }
}

impl Entry {
    fn holds(&self, generation: u64, now: UnixTime, comments: &[u8]) -> bool {
        self.generation == Some(generation)
            && self.valid_until.is_none_or(|until| now < until)
            && self.comments == comments
    }
}

impl Session {
    /// Judges a statement in text. Costs one comparison when it comes from where the last one came from.
    pub(crate) fn judge_text(
        &mut self,
        statement: &Statement<'_>,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Judged {
        let comments = statement.comment_bytes();
        let remembers = attributes.is_empty() && comments.len() <= MEMO_COMMENTS_LEN_MAX;
        let generation = self.generation;
        if remembers
            && let Some(entry) = self.memo.entry(statement.class)
            && entry.holds(generation, input.now, comments)
        {
            self.app.clear();
            self.app.extend_from_slice(&entry.app);
            return entry.judged;
        }
        let tags = statement.tags().map(|tag| (tag.key, tag.value));
        let judged = self.judge(statement.class, attributes, tags, statement.tool(), input);
        // Claims that were refused are counted for each statement, so those are not remembered.
        if remembers
            && self.claims_refused == 0
            && let Some(entry) = self.memo.entry(statement.class)
        {
            entry.generation = Some(self.generation);
            entry.valid_until = input.policy.next_expiry_after(input.now);
            entry.comments.clear();
            entry.comments.extend_from_slice(comments);
            entry.app.clear();
            entry.app.extend_from_slice(&self.app);
            entry.judged = judged;
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
        self.judge(description.class, attributes, tags, description.tool, input)
    }

    fn judge<'t>(
        &mut self,
        class: Class,
        attributes: QueryAttributes<'t>,
        tags: impl Iterator<Item = (&'t [u8], &'t [u8])>,
        tool: Option<Tool>,
        input: &Input<'_>,
    ) -> Judged {
        let attributes = attributes.iter().filter_map(|(name, value)| Some((name, value?)));
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
        let facts =
            Facts { identity: &identity, session: &self.identity, class, now: input.now };
        let judged = match input.policy.evaluate(&facts) {
            Verdict::Pass { rule, .. } => {
                Judged { rule: rule.map(|rule| rule.index), says: Says::Pass }
            }
            Verdict::Ask(rule) => Judged { rule: Some(rule.index), says: Says::Ask },
            Verdict::Deny(rule) => Judged { rule: Some(rule.index), says: Says::Deny },
        };
        if let Some(tool) = identity.tool_seen
            && self.identity.handle_tool_seen(tool)
        {
            self.generation = self.generation.wrapping_add(1);
        }
        judged
    }
}
