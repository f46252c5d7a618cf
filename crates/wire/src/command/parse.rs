//! From the first bytes of a command to what it is.

use crate::capability::{CLIENT_QUERY_ATTRIBUTES, Capabilities};
use crate::error::ProtocolError;
use crate::lenenc::Reader;

use super::attributes::QueryAttributes;
use super::execute::Execute;
use super::{
    COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_CHANGE_USER, COM_CLONE, COM_DEBUG, COM_FIELD_LIST,
    COM_INIT_DB, COM_PING, COM_PROCESS_INFO, COM_PROCESS_KILL, COM_QUERY, COM_QUIT, COM_REFRESH,
    COM_REGISTER_SLAVE, COM_RESET_CONNECTION, COM_SET_OPTION, COM_SHUTDOWN, COM_STATISTICS,
    COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH, COM_STMT_PREPARE,
    COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, COM_SUBSCRIBE_GROUP_REPLICATION_STREAM,
    COM_TABLE_DUMP, Command, Query,
};

/// Reads a command from its payload, or from the front of a long one. `caps` is what was agreed.
///
/// A prefix must hold the fixed fields and all query attributes; of a text it may hold any part.
///
/// # Errors
/// [`ProtocolError::QueryAttributesMalformed`]: the text of a COM_QUERY cannot be found, because its
/// attributes are broken, of a type without a known size, or longer than a prefix. The server may
/// find a text where we do not, so this is to be treated as a statement of unknown class, forwarded
/// if admitted, and answered as [`Expect::ResultSets`](crate::response_tracker::Expect::ResultSets).
///
/// [`ProtocolError::CommandTruncated`]: too short to name its statement or connection. Servers differ
/// in whether they answer such a command, so it is to be answered with ER_MALFORMED_PACKET (1835) and
/// not forwarded.
pub fn parse_command(payload: &[u8], caps: Capabilities) -> Result<Command<'_>, ProtocolError> {
    let Some((&code, body)) = payload.split_first() else { return Ok(Command::Empty) };
    let id = || Reader::new(body).u32().ok_or(ProtocolError::CommandTruncated { command: code });
    let command = match code {
        COM_QUERY => Command::Query(parse_query(body, caps)?),
        COM_STMT_PREPARE => Command::Prepare(body),
        COM_STMT_EXECUTE => Command::Execute(Execute::parse(body)?),
        COM_STMT_BULK_EXECUTE => Command::BulkExecute { statement_id: id()? },
        COM_STMT_SEND_LONG_DATA => Command::SendLongData { statement_id: id()? },
        COM_STMT_CLOSE => Command::CloseStatement { statement_id: id()? },
        COM_STMT_RESET => Command::ResetStatement { statement_id: id()? },
        COM_STMT_FETCH => Command::Fetch { statement_id: id()? },
        COM_INIT_DB => Command::InitDb(body),
        COM_CHANGE_USER => Command::ChangeUser,
        COM_RESET_CONNECTION => Command::ResetConnection,
        COM_QUIT => Command::Quit,
        COM_PING => Command::Ping,
        COM_STATISTICS => Command::Statistics,
        COM_FIELD_LIST => Command::FieldList,
        COM_SET_OPTION => Command::SetOption(Reader::new(body).u16()),
        COM_PROCESS_KILL => Command::ProcessKill { connection_id: id()? },
        COM_PROCESS_INFO => Command::ProcessInfo,
        COM_DEBUG => Command::Debug,
        COM_REFRESH => Command::Refresh,
        COM_SHUTDOWN => Command::Shutdown,
        COM_BINLOG_DUMP => Command::BinlogDump,
        COM_BINLOG_DUMP_GTID => Command::BinlogDumpGtid,
        COM_TABLE_DUMP => Command::TableDump,
        COM_REGISTER_SLAVE => Command::RegisterReplica,
        COM_CLONE => Command::Clone,
        COM_SUBSCRIBE_GROUP_REPLICATION_STREAM => Command::SubscribeGroupReplication,
        other => Command::Other(other),
    };
    Ok(command)
}

/// With CLIENT_QUERY_ATTRIBUTES every text stands behind a count of attributes and a count of sets,
/// always 1.
fn parse_query(body: &[u8], caps: Capabilities) -> Result<Query<'_>, ProtocolError> {
    if !caps.has(CLIENT_QUERY_ATTRIBUTES) {
        return Ok(Query { text: body, attributes: QueryAttributes::default() });
    }
    let mut reader = Reader::new(body);
    let attributes = QueryAttributes::take_from_query(&mut reader)
        .ok_or(ProtocolError::QueryAttributesMalformed)?;
    Ok(Query { text: reader.rest(), attributes })
}
