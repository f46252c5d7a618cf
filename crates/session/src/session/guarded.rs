//! The text of a command that guards ask the shell about.

use sql::Server;
use wire::command::{Command, Query, parse_command};

use super::{Phase, Session};
use crate::command::Arrived;
use crate::server::SchemaKnown;

/// A text that stands before the shell.
#[derive(Clone, Copy, Debug)]
pub struct GuardedText<'t> {
    /// All of it.
    pub text: &'t [u8],
    /// The default schema, empty if there is none; `None`: it is not certain which.
    pub schema: Option<&'t [u8]>,
    /// It may name a temporary table of the session, which nobody else can ask the server about.
    pub of_session: bool,
    /// Which server is to read it.
    pub server: Server,
}

impl Session {
    /// The text of the command that stands before the shell by [`crate::Action::Guard`], of the
    /// client's buffer. `None`: it is not all there, or no text.
    pub fn guarded_text<'t>(&'t self, client: &'t [u8]) -> Option<GuardedText<'t>> {
        let Phase::Guarding(_) = &self.phase else { return None };
        let arrived = Arrived::of(client).filter(|arrived| arrived.whole)?;
        let command = parse_command(arrived.payload, self.negotiated.capabilities).ok()?;
        let (Command::Query(Query { text, .. }) | Command::Prepare(text)) = command else {
            return None;
        };
        let schema = match self.server.schema {
            SchemaKnown::No => None,
            SchemaKnown::Told | SchemaKnown::Certain => {
                Some(self.judge.bench.who.identity().schema())
            }
        };
        let of_session = self.server.temporary.may_be_named_in(text);
        Some(GuardedText { text, schema, of_session, server: self.server.mode.server })
    }
}
