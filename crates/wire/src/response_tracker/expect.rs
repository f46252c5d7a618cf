//! What a command makes the server answer.

/// The shape of a response, by the command that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No answer at all, not even to a mistake.
    Nothing,
    /// One OK, ERR or EOF.
    OnePacket,
    /// Any number of results: OK, ERR, a result set, or the request for a local file.
    ResultSets,
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
