//! Statements in text: COM_QUERY, and the text of COM_STMT_PREPARE.

use std::sync::Arc;

use admission::DigestKey;
use policy::{Priority, ShapeNeeds, ShapeText};
use sql::{Class, Effects, Exemption, Statement, Tool, Whole, describe};
use wire::command::Query;
use wire::response_tracker::Expect;

use super::execute::Unrepairable;
use super::{Asking, Consequences, Running, Seen, Then, works};
use crate::action::{Action, Ask, Input};
use crate::judge::Judged;
use crate::outcome::StatementOutcome;
use crate::prepared::Description;
use crate::refusal::Answer;
use crate::session::{Phase, Session};
use crate::transaction::Ran;

/// The server's own answer to an execution without the types it needs.
const ER_WRONG_ARGUMENTS: u16 = 1210;

/// See [`Unrepairable`].
const UNREPAIRABLE: &[u8] = b"Incorrect arguments to EXECUTE [sluice: the parameter types went with an \
    execution that was refused, and this one is too long to be repaired; prepare again; executed=no]";

/// A statement, judged, on its way to its admission point or past it.
pub(crate) struct Planned {
    pub(crate) class: Class,
    pub(crate) judged: Judged,
    /// Its class cannot be held back, its transaction has been admitted, or it is exempt.
    pub(crate) free: bool,
    /// What its cost is predicted by, if it is to be asked for.
    pub(crate) digest: Option<DigestKey>,
    pub(crate) ran: Ran,
    pub(crate) consequences: Consequences,
    pub(crate) execution: Option<u32>,
}

impl Session {
    pub(super) fn plan_query(
        &mut self,
        query: Query<'_>,
        seen: Seen<'_>,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let whole = if seen.whole { Whole::Yes } else { Whole::Truncated };
        let statement = describe(query.text, self.mode, whole, &mut scratch);
        let planned = match self.executed(&statement) {
            Some(description) => {
                let mut planned = self.plan_description(&description, query.attributes, input);
                planned.consequences = description.consequences.clone();
                planned
            }
            None => self.plan_statement(&statement, &query, input),
        };
        self.scratch = scratch;
        self.carry_plan(planned, input)
    }

    fn plan_statement(
        &mut self,
        statement: &Statement<'_>,
        query: &Query<'_>,
        input: &Input<'_>,
    ) -> Planned {
        let class = statement.class;
        let judged = self.judge_text(statement, query, input);
        let free = !class.is_gateable()
            || self.is_exempt(statement.exemption)
            || self.transaction.covers(&statement.effects.plain);
        let digest = match judged {
            Judged::Ask(..) if !free => Some(self.shape.digest(query.text, self.mode)),
            Judged::Ask(..) | Judged::Pass(_) | Judged::Deny(_) => None,
        };
        let prepare = self.sql_prepare(&statement.effects);
        let ran = if statement.exemption.is_some() { Ran::Rest } else { works(class) };
        Planned {
            class,
            judged,
            free,
            digest: digest.map(DigestKey),
            ran,
            consequences: Consequences::of(&statement.effects, prepare),
            execution: None,
        }
    }

    /// Asks, or sends it on.
    pub(super) fn carry_plan(&mut self, planned: Planned, input: &Input<'_>) -> (Phase, Action) {
        let Planned { class, judged, free, digest, ran, consequences, execution } = planned;
        let mode = judged
            .rule()
            .and_then(|index| input.policy.rule(index))
            .map_or(input.policy.mode, |rule| rule.mode);
        let statement = StatementOutcome { rule: judged.rule(), class, mode };
        let running =
            Running { statement: Some(statement), ran, consequences, then: Then::Nothing };
        let (rule, priority, denied) = match judged {
            Judged::Ask(rule, priority) if !free => (rule, priority, false),
            Judged::Deny(rule) if !free => (rule, Priority::LOWEST, true),
            Judged::Pass(_) | Judged::Ask(..) | Judged::Deny(_) => {
                return self.send_statement(running, execution, input);
            }
        };
        let asking =
            Asking { ask: Ask { rule, class, digest, priority }, denied, running, execution };
        let action = asking.action();
        (Phase::Asking(asking), action)
    }

    /// Sends a statement on, as it is or repaired.
    pub(crate) fn send_statement(
        &mut self,
        running: Running,
        execution: Option<u32>,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let forwarding = match execution {
            Some(id) => match self.forward_execution(running, id, input) {
                Ok(forwarding) => forwarding,
                Err(Unrepairable) => {
                    let refusing = self.refuse_command(Answer {
                        errno: ER_WRONG_ARGUMENTS,
                        sqlstate: *b"HY000",
                        message: UNREPAIRABLE.to_vec(),
                    });
                    return self.next_refusing(refusing, input);
                }
            },
            None => self.forward(running, Expect::ResultSets),
        };
        self.start_forwarding(forwarding, input)
    }

    /// Whether the contract never holds this statement back.
    pub(super) fn is_exempt(&self, exemption: Option<Exemption>) -> bool {
        match exemption {
            None => false,
            // Refusing gh-ost's own heartbeat kills its migration; anybody else's table of that name is
            // a table. Only who may claim to be gh-ost is.
            Some(Exemption::GhostChangelog) => {
                self.tool_seen == Some(Tool::GhOst) || self.identity.is_sticky(Tool::GhOst)
            }
            Some(Exemption::SystemSchema | Exemption::AdvisoryLock | Exemption::RenameTable) => {
                true
            }
        }
    }

    /// What SQL `EXECUTE name` runs, when that is all the text does and the session has prepared it.
    fn executed(&self, statement: &Statement<'_>) -> Option<Arc<Description>> {
        if statement.statement_count != 1 {
            return None;
        }
        self.prepared.name(statement.effects.execute?)
    }

    /// What SQL `PREPARE` prepares. Text from a variable is not known: nothing is remembered, and its
    /// execution is of class `unknown`.
    fn sql_prepare(&mut self, effects: &Effects<'_>) -> Option<(Vec<u8>, Arc<Description>)> {
        let prepare = effects.prepare?;
        let mut text = Vec::new();
        let description = match prepare.text {
            Some(literal) => {
                literal.unescape_into(&mut text);
                self.describe_prepared(&text, true)
            }
            None => Description::unknown(),
        };
        Some((prepare.name.to_vec(), Arc::new(description)))
    }

    /// Describes a text once, for all its executions.
    pub(super) fn describe_prepared(&mut self, text: &[u8], is_whole: bool) -> Description {
        let mut scratch = std::mem::take(&mut self.scratch);
        let whole = if is_whole { Whole::Yes } else { Whole::Truncated };
        let statement = describe(text, self.mode, whole, &mut scratch);
        let shape_text = ShapeText::new(text, self.mode, self.identity.schema(), &statement);
        self.shape.read(&shape_text, ShapeNeeds::ALL);
        let description = Description {
            class: statement.class,
            classes: statement.classes,
            exemption: statement.exemption,
            tool: statement.tool(),
            tags: statement.tags().map(|tag| (tag.key.into(), tag.value.into())).collect(),
            shape: self.shape.to_owned(),
            consequences: Consequences::of(&statement.effects, None),
        };
        self.scratch = scratch;
        description
    }

    /// A statement that cannot be read.
    pub(super) fn plan_unknown(&mut self, input: &Input<'_>) -> (Phase, Action) {
        let description = Description::unknown();
        let planned = self.plan_description(&description, Default::default(), input);
        self.carry_plan(planned, input)
    }
}
