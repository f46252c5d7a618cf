//! A statement at its admission point, until the shell has an answer.

use crate::command::Sending;
use crate::cut_over::MigrationWork;

/// A statement that is held back.
#[derive(Debug)]
pub(crate) struct Asking {
    sending: Sending,
    work: Option<Box<MigrationWork>>,
}

impl Asking {
    /// A statement is held, and this is asked of the shell.
    pub(crate) fn new(sending: Sending, work: Option<Box<MigrationWork>>) -> Self {
        Self { sending, work }
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
