//! What the session reports of a command that is over.

use admission::Mode;
use policy::Likeness;
use sql::{Class, Kill};
use wire::response_tracker::ResponseEnd;

/// A command is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// Present for what is counted as a statement: text, executions of prepared statements, and a
    /// preparation that a guard refuses.
    pub statement: Option<StatementOutcome>,
    /// How the server's answer ended. None when the command has no answer, or was not sent.
    pub response: Option<ResponseEnd>,
    /// Nothing that was admitted is under way any more: a permit held for it goes back.
    pub admission_over: bool,
    /// The server accepted this KILL; its victim may be waiting in our own queue.
    pub kill: Option<Kill>,
    /// What it was to the cursors of prepared statements.
    pub cursor: Option<CursorUse>,
    /// What it is like, if its rule puts what it kills in quarantine.
    pub likeness: Option<Likeness>,
    /// Identity claims that were ignored because `identity.claims` does not allow them.
    pub claims_refused: u32,
}

/// What a command that was sent does to the cursors of prepared statements. Whether one is open
/// behind it is in [`ResponseEnd::cursor_open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorUse {
    /// The statement with this id is executed: a cursor of it that is open is closed first.
    Execute(u32),
    /// Rows of its cursor are fetched.
    Fetch(u32),
    /// Its cursor is closed: COM_STMT_CLOSE, COM_STMT_RESET.
    Close(u32),
    /// All are: COM_RESET_CONNECTION.
    CloseAll,
}

/// What is counted of a statement. Its app is [`crate::Session::app`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementOutcome {
    /// Index into the rules of the policy it was judged by. None: no rule matched.
    pub rule: Option<u32>,
    /// The rule whose `runaway` is about it, if there is any such rule: behind one made at runtime the
    /// file's.
    pub watched: Option<u32>,
    /// Its class.
    pub class: Class,
    /// The rule's mode, or the cluster's.
    pub mode: Mode,
    /// Nothing can hold it back, so no budget counts it: it waits for an advisory lock, for one.
    pub never_held: bool,
    /// Bytes of it that came ahead, by COM_STMT_SEND_LONG_DATA.
    pub long_data: usize,
}
