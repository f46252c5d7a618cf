//! What a command makes the server answer.

/// The shape of a response, by the command that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No answer at all, not even to a mistake.
    Nothing,
    /// One OK, ERR or EOF.
    OnePacket,
    /// COM_QUERY. Any number of results: OK, ERR, a result set with rows of text, or the request
    /// for a local file.
    ResultSets,
    /// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE. The same with binary rows; and, where a cursor
    /// was asked for, definitions without rows.
    Execution(Cursor),
    /// COM_PROCESS_INFO. A result set with rows of text, or ERR.
    ProcessInfo,
    /// PREPARE_OK with its definitions, or ERR.
    Prepare,
    /// Column definitions without a count, then EOF or an OK in its place; or ERR.
    FieldList,
    /// One packet with a bare string, which may begin with any byte.
    Statistics,
    /// Rows without definitions, then EOF or an OK in its place; or ERR.
    Fetch,
    /// EOF, or an OK in its place; or ERR.
    Eof,
    /// Events until EOF or ERR.
    BinlogStream,
    /// ERR, or a protocol of its own that does not end.
    Opaque,
    /// COM_CHANGE_USER: packets of the server, answered by the client in between, until OK or ERR.
    Auth,
}

/// Whether the flags of a COM_STMT_EXECUTE ask for a cursor. A server opens one for the client only
/// then, and not for every statement; it can say SERVER_STATUS_CURSOR_EXISTS of any other result,
/// when a stored function had a cursor of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// Rows follow the definitions, whatever the status says.
    NotAsked,
    /// Rows follow in answers to COM_STMT_FETCH, if the status says so.
    Asked,
}
