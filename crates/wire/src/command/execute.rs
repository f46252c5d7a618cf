//! COM_STMT_EXECUTE: which statement, and where its parameters lie.

use std::ops::Range;

use crate::capability::{CLIENT_QUERY_ATTRIBUTES, Capabilities};
use crate::error::ProtocolError;
use crate::lenenc::Reader;
use crate::response_tracker::Cursor;

use super::attributes::{
    ExecuteParts, QueryAttributes, TypeNames, null_bitmap_len, parameter_count, skip_types,
};
use super::{COM_STMT_EXECUTE, CURSOR_TYPE_READ_ONLY, PARAMETER_COUNT_AVAILABLE};

/// COM_STMT_EXECUTE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The statement, [`LAST_PREPARED`](super::LAST_PREPARED) for the last one prepared.
    pub statement_id: u32,
    /// Cursor type and [`PARAMETER_COUNT_AVAILABLE`].
    pub flags: u8,
    /// What follows the iteration count: parameters, for [`execute_layout`].
    pub body: &'a [u8],
}

impl<'a> Execute<'a> {
    /// Reads what follows the command byte.
    pub(super) fn parse(after_command: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(after_command);
        let truncated = ProtocolError::CommandTruncated { command: COM_STMT_EXECUTE };
        let statement_id = reader.u32().ok_or(truncated)?;
        let flags = reader.u8().ok_or(truncated)?;
        reader.u32().ok_or(truncated)?;
        Ok(Self { statement_id, flags, body: reader.rest() })
    }

    /// Whether a cursor can be opened for this. Both servers look at one bit of the flags only,
    /// whatever else of `enum_cursor_type` is set. `num_columns` is what PREPARE_OK said of the
    /// statement, 0 when that is not known.
    ///
    /// A statement that announced no columns, such as EXPLAIN ANALYZE, CALL and SHOW CREATE, writes
    /// its rows itself, and MySQL says SERVER_STATUS_CURSOR_EXISTS ahead of them when a stored
    /// function had a cursor. There is one for which a cursor is opened all the same, MySQL's DO:
    /// behind that the tracker waits for rows.
    #[must_use]
    pub fn cursor(&self, num_columns: u16) -> Cursor {
        let asked = self.flags & CURSOR_TYPE_READ_ONLY != 0 && num_columns > 0;
        if asked { Cursor::Asked } else { Cursor::NotAsked }
    }
}

/// Where the parameters of one EXECUTE lie, as offsets into its whole payload (command byte
/// included).
///
/// ```text
/// 0  0x17, statement id : u32, flags : u8, iteration count : u32
/// 10 [parameter count : lenenc, with CLIENT_QUERY_ATTRIBUTES]
///    NULL bitmap
///    new_params_bind_flag : u8                          ◀ bind_flag_offset
///    [n × type : u16, each with a name : lenenc under CLIENT_QUERY_ATTRIBUTES]  ◀ type_block
///    values
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteLayout {
    /// Parameters in the packet: the statement's, then query attributes.
    pub param_count: usize,
    /// Where new_params_bind_flag lies. Always within what was read.
    pub bind_flag_offset: usize,
    /// Whether the flag is set: the types are in this packet.
    pub types_sent: bool,
    /// Where the types lie; empty when they are not sent. Without names its end is computed, so
    /// with a prefix of a long command it may lie behind what was read.
    pub type_block: Range<usize>,
    /// Whether each type is followed by a name.
    pub named: bool,
}

/// Finds the parameters of an EXECUTE. `payload` is the command from its first byte, whole or a
/// prefix; `num_params` is PREPARE_OK's number; `caps` is what was agreed.
///
/// `None` when the packet holds no parameters, cannot be read, or is a prefix that ends before the
/// bind flag or, with names, before the end of the types.
#[must_use]
pub fn execute_layout(
    payload: &[u8],
    num_params: u16,
    caps: Capabilities,
) -> Option<ExecuteLayout> {
    let after_command = payload.strip_prefix(&[COM_STMT_EXECUTE])?;
    let execute = Execute::parse(after_command).ok()?;
    let named = caps.has(CLIENT_QUERY_ATTRIBUTES);
    let count_sent = named && execute.flags & PARAMETER_COUNT_AVAILABLE != 0;
    if num_params == 0 && !count_sent {
        return None;
    }
    let mut reader = Reader::new(execute.body);
    let param_count = if named { parameter_count(&mut reader)? } else { usize::from(num_params) };
    if param_count == 0 {
        return None;
    }
    reader.bytes(null_bitmap_len(param_count))?;
    let offset = |reader: &Reader<'_>| payload.len().checked_sub(reader.rest().len());
    let bind_flag_offset = offset(&reader)?;
    let types_sent = reader.u8()? != 0;
    let start = offset(&reader)?;
    let end = if !types_sent {
        start
    } else if named {
        skip_types(&mut reader, param_count, TypeNames::Sent)?;
        offset(&reader)?
    } else {
        start.checked_add(param_count.checked_mul(2)?)?
    };
    let type_block = start..end;
    Some(ExecuteLayout { param_count, bind_flag_offset, types_sent, type_block, named })
}

/// The query attributes of an EXECUTE: the parameters behind the statement's own `num_params`.
/// Empty without names, without types in this packet, or where the values cannot be sized.
///
/// Parameters sent with COM_STMT_SEND_LONG_DATA have no value in the packet, so with long data
/// pending what this finds is wrong: do not ask then.
#[must_use]
pub fn execute_attributes<'a>(
    payload: &'a [u8],
    layout: &ExecuteLayout,
    num_params: u16,
) -> QueryAttributes<'a> {
    parts(payload, layout).map_or_else(QueryAttributes::default, |parts| {
        QueryAttributes::of_execute(parts, usize::from(num_params))
    })
}

fn parts<'a>(payload: &'a [u8], layout: &ExecuteLayout) -> Option<ExecuteParts<'a>> {
    if !layout.named || !layout.types_sent {
        return None;
    }
    let nulls_start = layout.bind_flag_offset.checked_sub(null_bitmap_len(layout.param_count))?;
    Some(ExecuteParts {
        nulls: payload.get(nulls_start..layout.bind_flag_offset)?,
        types: payload.get(layout.type_block.clone())?,
        values: payload.get(layout.type_block.end..)?,
        count: layout.param_count,
    })
}
