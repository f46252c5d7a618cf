//! What a statement is like, and what quarantine makes of that: it is refused, or comes last.

use std::sync::Arc;

use admission::{BudgetSet, DigestKey, Mode};
use policy::{Cover, Likeness, PassReason, Priority, Quarantined, RunawayAction, WatchBy};

use sql::{Statement, Whole};

use super::{Hold, Plan, Ruled};
use crate::action::{Held, Input, Question};
use crate::judge::Bench;
use crate::judge::memo::Ruling;
use crate::server::ServerSide;

/// What a statement is like, if its rule watches for that, and how it may be held back for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    likeness: Likeness,
    /// `None`: nothing may hold it back.
    question: Option<Question>,
}

impl Alike {
    /// Of a text; of an EXECUTE, of what it executes.
    pub(super) fn of_text(
        ruled: &Ruled,
        bench: &mut Bench,
        ((text, whole), statement): ((&[u8], Whole), &Statement<'_>),
        server: &ServerSide,
        input: &Input<'_>,
    ) -> Option<Self> {
        let by = watches_by(ruled, input)?;
        let likeness = match ruled.likenesses {
            Some(known) => known.of(by)?,
            // `EXECUTE IMMEDIATE @sql` is the same text, and every time another statement.
            None if statement.runs_other_text() => return None,
            None => match by {
                WatchBy::Digest => {
                    Likeness { by, hash: bench.digest((text, server.mode), statement, input) }
                }
                // What comes behind the part that is known makes it another text.
                WatchBy::Text if whole == Whole::Truncated => return None,
                WatchBy::Text => Likeness { by, hash: Likeness::hash_of_text(text) },
            },
        };
        Some(Self { likeness, question: question(ruled) })
    }

    /// Of what was prepared.
    pub(super) fn of_prepared(ruled: &Ruled, input: &Input<'_>) -> Option<Self> {
        let by = watches_by(ruled, input)?;
        Some(Self { likeness: ruled.likenesses?.of(by)?, question: question(ruled) })
    }
}

/// What makes statements alike to the rule that watches for those that run away.
fn watches_by(ruled: &Ruled, input: &Input<'_>) -> Option<WatchBy> {
    input.policy.rule(ruled.watched?)?.watches_by()
}

/// What a budget would want of it.
fn question(ruled: &Ruled) -> Option<Question> {
    match ruled.ruling {
        Ruling::Pass(_, PassReason::NeverHeld(_) | PassReason::NotGateable) => None,
        Ruling::Pass(..) | Ruling::Ask(..) | Ruling::Deny(_) => {
            Some(budget_question(ruled.ruling, ruled.cover))
        }
    }
}

/// What budgets want of a statement. Whatever keeps a rule from holding it back keeps them from it
/// as well, and so does a rule that exempts; it counts all the same.
pub(super) fn budget_question(ruling: Ruling, cover: Cover) -> Question {
    let exempt = matches!(ruling, Ruling::Pass(_, PassReason::Exempt));
    let waits = cover == Cover::Nothing && !exempt;
    if waits { Question::Budgets } else { Question::Count }
}

impl Plan {
    /// Makes it that of a statement that is like this: if its like is in quarantine it is refused, or comes
    /// last. What guards have to say of it is said first.
    pub(super) fn be_like(
        &mut self,
        Alike { likeness, question }: Alike,
        budgets: &mut BudgetSet,
        input: &Input<'_>,
    ) {
        self.sending.running.likeness = Some(likeness);
        if !input.policy.quarantine.may_hold(input.mono) {
            return;
        }
        let rule = self.sending.running.statement.and_then(|statement| statement.watched);
        let rule = rule.and_then(|rule| input.policy.rule(rule));
        let Some(rule) = rule.filter(|rule| rule.mode == Mode::Enforce) else { return };
        let Some(held) = input.policy.quarantine.holds(rule.key, likeness, input.mono) else {
            return;
        };
        match held.action {
            RunawayAction::Log | RunawayAction::Kill => {
                let report = self.guarded.get_or_insert_default();
                report.quarantined = Some(Arc::clone(held));
            }
            RunawayAction::Deprioritise => self.come_last(held, question, budgets),
        }
    }

    /// One like it at a time is at the server: it asks for that as for its budgets.
    fn come_last(
        &mut self,
        held: &Quarantined,
        question: Option<Question>,
        budgets: &mut BudgetSet,
    ) {
        let Some(question) = question else { return };
        // It has a place of its own.
        budgets.add(held.lane());
        let statement = self.sending.running.statement;
        match (&mut self.hold, statement) {
            // What its rule asks for, it asks for with its budgets.
            (Hold::Ask(_), _) | (Hold::Nothing, None) => {}
            // A rule that denies only observes here, or the statement would not get as far.
            (Hold::Deny(denied), _) => denied.question = question,
            (hold @ Hold::Nothing, Some(statement)) => {
                let digest = match held.likeness.by {
                    WatchBy::Digest => Some(DigestKey(held.likeness.hash)),
                    WatchBy::Text => None,
                };
                let (rule, class) = (statement.rule, statement.class);
                let priority = Priority::LOWEST;
                *hold = Hold::Ask(Held { rule, question, class, digest, written: None, priority });
            }
        }
    }
}
