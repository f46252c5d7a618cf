//! A statement at its admission point, until the shell has an answer.

use std::ops::ControlFlow;

use crate::action::{Action, Ask, Held};
use crate::command::Sending;
use crate::cut_over::MigrationWork;
use crate::plan::{Hold, Plan};

/// A statement that is held back.
#[derive(Debug)]
pub(crate) struct Asking {
    sending: Sending,
    work: Option<Box<MigrationWork>>,
}

impl Asking {
    /// What the plan says: the statement may be sent, or it is held and the shell is asked.
    pub(crate) fn begin(plan: Plan) -> ControlFlow<(Self, Action), Sending> {
        let Plan { sending, hold, work, guarded: _ } = plan;
        let asks = |held: Held, action: fn(Ask) -> Action| action(Ask::of(held));
        let action = match hold {
            Hold::Nothing => return ControlFlow::Continue(sending),
            Hold::Ask(held) => asks(held, Action::Ask),
            Hold::Deny(held) => asks(held, Action::Deny),
        };
        ControlFlow::Break((Self { sending, work }, action))
    }

    /// What it is about, if it may belong to a migration of gh-ost.
    pub(crate) fn work(&self) -> Option<&MigrationWork> {
        self.work.as_deref()
    }

    /// The statement, to be sent or refused.
    pub(crate) fn into_sending(self) -> Sending {
        self.sending
    }
}
