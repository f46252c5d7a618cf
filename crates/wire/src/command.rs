//! Commands: what a client asks for, read from the first packet's payload.
//!
//! Manual: "Command Phase"; MariaDB's documentation for 0xfa and above.

mod attribute_text;
mod attributes;
mod execute;
mod parse;
mod splice;

pub use attribute_text::AttributeText;
pub use attributes::{QueryAttributes, QueryAttributesIter};
pub use execute::{Execute, ExecuteLayout, execute_attributes, execute_layout};
pub use parse::parse_command;
pub use splice::{SplicedHead, splice_head, splice_type_block};

pub use crate::response_tracker::{Cursor, Expect};

/// One client command. Made from the front of its payload, so a text may be only the beginning of a
/// statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// COM_QUERY.
    Query(Query<'a>),
    /// COM_STMT_PREPARE with the statement's text.
    Prepare(&'a [u8]),
    /// COM_STMT_EXECUTE.
    Execute(Execute<'a>),
    /// MariaDB's COM_STMT_BULK_EXECUTE.
    BulkExecute {
        /// The statement, [`LAST_PREPARED`] for the last one prepared.
        statement_id: u32,
    },
    /// COM_STMT_SEND_LONG_DATA. Never answered.
    SendLongData {
        /// The statement.
        statement_id: u32,
    },
    /// COM_STMT_CLOSE. Never answered.
    CloseStatement {
        /// The statement.
        statement_id: u32,
    },
    /// COM_STMT_RESET.
    ResetStatement {
        /// The statement.
        statement_id: u32,
    },
    /// COM_STMT_FETCH.
    Fetch {
        /// The statement.
        statement_id: u32,
    },
    /// COM_INIT_DB with the schema's name.
    InitDb(&'a [u8]),
    /// COM_CHANGE_USER; see [`parse_change_user`](crate::handshake::parse_change_user).
    ChangeUser,
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_QUIT.
    Quit,
    /// COM_PING.
    Ping,
    /// COM_STATISTICS.
    Statistics,
    /// COM_FIELD_LIST.
    FieldList,
    /// COM_SET_OPTION with [`MYSQL_OPTION_MULTI_STATEMENTS_ON`] or
    /// [`MYSQL_OPTION_MULTI_STATEMENTS_OFF`].
    SetOption(Option<u16>),
    /// COM_PROCESS_KILL.
    ProcessKill {
        /// The connection to end.
        connection_id: u32,
    },
    /// COM_PROCESS_INFO.
    ProcessInfo,
    /// COM_DEBUG.
    Debug,
    /// COM_REFRESH.
    Refresh,
    /// COM_SHUTDOWN.
    Shutdown,
    /// COM_BINLOG_DUMP.
    BinlogDump,
    /// COM_BINLOG_DUMP_GTID.
    BinlogDumpGtid,
    /// COM_TABLE_DUMP.
    TableDump,
    /// COM_REGISTER_SLAVE.
    RegisterReplica,
    /// COM_CLONE.
    Clone,
    /// COM_SUBSCRIBE_GROUP_REPLICATION_STREAM.
    SubscribeGroupReplication,
    /// Any other command byte.
    Other(u8),
    /// A packet without a command byte. Servers answer ERR 1047.
    Empty,
}

impl Command<'_> {
    /// What the server answers. For an EXECUTE that may open a cursor it takes the statement as
    /// well: [`Execute::cursor`].
    #[must_use]
    pub fn expect(&self) -> Expect {
        match self {
            Self::Query(_) => Expect::ResultSets,
            Self::Execute(_) | Self::BulkExecute { .. } => Expect::Execution(Cursor::NotAsked),
            Self::ProcessInfo => Expect::ProcessInfo,
            Self::Prepare(_) => Expect::Prepare,
            Self::SendLongData { .. } | Self::CloseStatement { .. } | Self::Quit => Expect::Nothing,
            Self::Fetch { .. } => Expect::Fetch,
            Self::FieldList => Expect::FieldList,
            Self::Statistics => Expect::Statistics,
            Self::Debug | Self::SetOption(_) => Expect::Eof,
            Self::ChangeUser => Expect::Auth,
            Self::BinlogDump | Self::BinlogDumpGtid | Self::TableDump => Expect::BinlogStream,
            Self::Clone | Self::SubscribeGroupReplication => Expect::Opaque,
            Self::ResetStatement { .. }
            | Self::InitDb(_)
            | Self::ResetConnection
            | Self::Ping
            | Self::ProcessKill { .. }
            | Self::Refresh
            | Self::Shutdown
            | Self::RegisterReplica
            | Self::Other(_)
            | Self::Empty => Expect::OnePacket,
        }
    }
}

/// COM_QUERY: a statement, or several, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// The text, in the client's character set.
    pub text: &'a [u8],
    /// The query attributes in front of it.
    pub attributes: QueryAttributes<'a>,
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident = $code:expr;)*) => {
        $($(#[$doc])* pub const $name: u8 = $code;)*
    };
}

commands! {
    /// Internal to the server.
    COM_SLEEP = 0x00;
    /// Ends the session.
    COM_QUIT = 0x01;
    /// Changes the default schema.
    COM_INIT_DB = 0x02;
    /// Runs a text.
    COM_QUERY = 0x03;
    /// Lists a table's columns.
    COM_FIELD_LIST = 0x04;
    /// Withdrawn.
    COM_CREATE_DB = 0x05;
    /// Withdrawn.
    COM_DROP_DB = 0x06;
    /// FLUSH.
    COM_REFRESH = 0x07;
    /// SHUTDOWN.
    COM_SHUTDOWN = 0x08;
    /// A line about the server.
    COM_STATISTICS = 0x09;
    /// SHOW PROCESSLIST.
    COM_PROCESS_INFO = 0x0a;
    /// Internal to the server.
    COM_CONNECT = 0x0b;
    /// KILL.
    COM_PROCESS_KILL = 0x0c;
    /// Makes the server log its state.
    COM_DEBUG = 0x0d;
    /// Asks whether the server is alive.
    COM_PING = 0x0e;
    /// Internal to the server.
    COM_TIME = 0x0f;
    /// Internal to the server.
    COM_DELAYED_INSERT = 0x10;
    /// Authenticates anew.
    COM_CHANGE_USER = 0x11;
    /// Streams the binary log from a position.
    COM_BINLOG_DUMP = 0x12;
    /// Withdrawn.
    COM_TABLE_DUMP = 0x13;
    /// Internal to the server.
    COM_CONNECT_OUT = 0x14;
    /// Makes a replica known.
    COM_REGISTER_SLAVE = 0x15;
    /// Prepares a statement.
    COM_STMT_PREPARE = 0x16;
    /// Runs a prepared statement.
    COM_STMT_EXECUTE = 0x17;
    /// Sends a piece of a parameter.
    COM_STMT_SEND_LONG_DATA = 0x18;
    /// Forgets a prepared statement.
    COM_STMT_CLOSE = 0x19;
    /// Forgets a statement's long data and cursor.
    COM_STMT_RESET = 0x1a;
    /// Allows or forbids multi-statements.
    COM_SET_OPTION = 0x1b;
    /// Fetches rows of a cursor.
    COM_STMT_FETCH = 0x1c;
    /// Internal to the server.
    COM_DAEMON = 0x1d;
    /// Streams the binary log from a GTID set.
    COM_BINLOG_DUMP_GTID = 0x1e;
    /// Resets the session.
    COM_RESET_CONNECTION = 0x1f;
    /// Clones the server's data.
    COM_CLONE = 0x20;
    /// Joins a group's replication stream.
    COM_SUBSCRIBE_GROUP_REPLICATION_STREAM = 0x21;
    /// MariaDB: runs a prepared statement with many sets of parameters.
    COM_STMT_BULK_EXECUTE = 0xfa;
    /// MariaDB, internal to the server.
    COM_SLAVE_WORKER = 0xfb;
    /// MariaDB, internal to the server.
    COM_SLAVE_IO = 0xfc;
    /// MariaDB, internal to the server.
    COM_SLAVE_SQL = 0xfd;
    /// MariaDB, withdrawn.
    COM_MULTI = 0xfe;
}

/// MariaDB: stands for the statement that was prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;
/// COM_SET_OPTION: multi-statements from here on.
pub const MYSQL_OPTION_MULTI_STATEMENTS_ON: u16 = 0;
/// COM_SET_OPTION: no multi-statements from here on.
pub const MYSQL_OPTION_MULTI_STATEMENTS_OFF: u16 = 1;
/// COM_STMT_EXECUTE's flag: open a cursor.
pub const CURSOR_TYPE_READ_ONLY: u8 = 0x01;
/// COM_STMT_EXECUTE's flag: the number of parameters is sent, for query attributes.
pub const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;

#[cfg(test)]
mod tests;
