//! What is repaired of executions of prepared statements when one of them is refused, because the
//! server never saw it.
//!
//! Parameter types are sent once and then assumed known: those of a refused execution are kept, and
//! put into the next one that comes without. Long data sent ahead would be appended to by the
//! client's retry: COM_STMT_RESET drops it.

use wire::capability::Capabilities;
use wire::command::{
    COM_STMT_BULK_EXECUTE, COM_STMT_RESET, ExecuteLayout, SplicedHead, execute_layout, splice_head,
    splice_type_block,
};
use wire::frame::{FrameHeader, HEADER_LEN, MAX_PAYLOAD_LEN};
use wire::upload::FrameSkipper;

use crate::answer::Answer;
use crate::command::{Arrived, frame_len};
use crate::outbox::Outbox;
use crate::server::prepared::{LostTypes, PreparedStatements, TypesOf};

/// An execution cannot be repaired: its parameter types were lost with a refused one, and it is too
/// long to be put together again.
#[derive(Debug)]
pub(crate) struct Unrepairable;

impl Unrepairable {
    pub(crate) fn answer(self) -> Answer {
        let Self = self;
        Answer { errno: ER_WRONG_ARGUMENTS, sqlstate: *b"HY000", message: UNREPAIRABLE.to_vec() }
    }
}

/// The server's own answer to an execution without the types it needs.
const ER_WRONG_ARGUMENTS: u16 = 1210;

/// See [`Unrepairable`].
const UNREPAIRABLE: &[u8] = b"Incorrect arguments to EXECUTE [sluice: the parameter types went with an \
    execution that was refused, and this one is too long to be repaired; prepare again; executed=no]";

/// What goes out in place of the head of a command: the outbox, for so many bytes of the client's,
/// and then the rest as it comes.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub(crate) drop: usize,
    pub(crate) rest: Option<FrameSkipper>,
}

/// Writes to the outbox the head of the execution that goes out in place of what was sent: the one
/// place where what is relayed differs from what was sent. None: it goes as it is.
pub(crate) fn repair(
    statement_id: u32,
    client: &[u8],
    capabilities: Capabilities,
    prepared: &mut PreparedStatements,
    out: &mut Outbox,
) -> Result<Option<Replaced>, Unrepairable> {
    let Some(statement) = prepared.get_mut(statement_id) else { return Ok(None) };
    let Some(arrived) = Arrived::of(client) else { return Ok(None) };
    statement.long_data = None;
    // The execution closes it.
    statement.ended_cursor = None;
    if let (LostTypes::None, LostTypes::None) = (&statement.lost_types, &statement.lost_bulk_types)
    {
        return Ok(None);
    }
    let out = out.clear();
    if let Some(bulk) = Bulk::of(arrived.payload, statement.num_params) {
        let spliced = match (&statement.lost_bulk_types, bulk.types) {
            (LostTypes::None, _) => return Ok(None),
            (LostTypes::Kept(_) | LostTypes::Forgotten, Some(_)) => None,
            (LostTypes::Kept(types), None) => Some(bulk.splice(arrived, types, out)?),
            (LostTypes::Forgotten, None) => return Err(Unrepairable),
        };
        prepared.drop_types(statement_id, TypesOf::Bulk);
        return Ok(spliced);
    }
    let layout = execute_layout(arrived.payload, statement.num_params, capabilities);
    let replaced = match (layout, &statement.lost_types) {
        (_, LostTypes::None) => return Ok(None),
        (Some(layout), LostTypes::Kept(types)) if !layout.types_sent => {
            Some(splice(arrived, &layout, types, out)?)
        }
        (Some(layout), LostTypes::Forgotten) if !layout.types_sent => return Err(Unrepairable),
        (Some(_) | None, LostTypes::Kept(_) | LostTypes::Forgotten) => None,
    };
    prepared.drop_types(statement_id, TypesOf::One);
    Ok(replaced)
}

/// Keeps the parameter types of the refused execution at the start of the client's buffer.
pub(crate) fn keep_types(
    statement_id: u32,
    client: &[u8],
    capabilities: Capabilities,
    prepared: &mut PreparedStatements,
) {
    let Some(statement) = prepared.get_mut(statement_id) else { return };
    let Some(Arrived { payload, .. }) = Arrived::of(client) else { return };
    if let Some(bulk) = Bulk::of(payload, statement.num_params) {
        if let Some(types) = bulk.types {
            prepared.keep_types(statement_id, TypesOf::Bulk, types);
        }
        return;
    }
    let layout = execute_layout(payload, statement.num_params, capabilities);
    if let Some(layout) = layout
        && layout.types_sent
        && let Some(types) = payload.get(layout.type_block)
    {
        prepared.keep_types(statement_id, TypesOf::One, types);
    }
}

/// Writes COM_STMT_RESET to the outbox if the refused execution leaves long data on the server.
pub(crate) fn put_reset(
    statement_id: u32,
    prepared: &mut PreparedStatements,
    out: &mut Outbox,
) -> bool {
    let id = prepared.resolve(statement_id);
    let Some(statement) = prepared.get_mut(id) else { return false };
    if statement.long_data.take().is_none() {
        return false;
    }
    let [a, b, c, d] = id.to_le_bytes();
    out.put_frame(0, &[COM_STMT_RESET, a, b, c, d]);
    true
}

/// Where MariaDB's COM_STMT_BULK_EXECUTE has its parameter types (MariaDB manual,
/// "COM_STMT_BULK_EXECUTE"): command, statement id, flags, then two bytes for each parameter if the
/// flags say so.
#[derive(Clone, Copy, Debug)]
struct Bulk<'a> {
    /// The types, if this execution brings them.
    types: Option<&'a [u8]>,
    flags: u16,
    len: usize,
}

const BULK_FLAGS_OFFSET: usize = 5;
const BULK_TYPES_OFFSET: usize = 7;
/// `STMT_BULK_FLAG_CLIENT_SEND_TYPES`.
const BULK_SEND_TYPES: u16 = 128;

impl<'a> Bulk<'a> {
    /// None: another command, or cut short, or one without parameters.
    fn of(payload: &'a [u8], num_params: u16) -> Option<Self> {
        let flags = payload.get(BULK_FLAGS_OFFSET..BULK_TYPES_OFFSET)?;
        if payload.first() != Some(&COM_STMT_BULK_EXECUTE) || num_params == 0 {
            return None;
        }
        let flags = u16::from_le_bytes(flags.try_into().ok()?);
        let len = usize::from(num_params).saturating_mul(2);
        let block = payload.get(BULK_TYPES_OFFSET..BULK_TYPES_OFFSET.saturating_add(len));
        let types = if flags & BULK_SEND_TYPES == 0 { None } else { Some(block?) };
        Some(Self { types, flags, len })
    }

    /// Writes the execution with the types that an earlier, refused one took along.
    fn splice(
        self,
        arrived: Arrived<'_>,
        types: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Replaced, Unrepairable> {
        let payload_len = arrived.payload.len().saturating_add(types.len());
        if !arrived.whole || types.len() != self.len || payload_len >= MAX_PAYLOAD_LEN {
            return Err(Unrepairable);
        }
        let (head, values) =
            arrived.payload.split_at_checked(BULK_TYPES_OFFSET).ok_or(Unrepairable)?;
        let head = head.get(..BULK_FLAGS_OFFSET).ok_or(Unrepairable)?;
        let header = FrameHeader { payload_len, sequence: arrived.header.sequence };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(head);
        out.extend_from_slice(&(self.flags | BULK_SEND_TYPES).to_le_bytes());
        out.extend_from_slice(types);
        out.extend_from_slice(values);
        Ok(Replaced { drop: frame_len(arrived.header), rest: None })
    }
}

fn splice(
    arrived: Arrived<'_>,
    layout: &ExecuteLayout,
    types: &[u8],
    out: &mut Vec<u8>,
) -> Result<Replaced, Unrepairable> {
    if arrived.whole {
        splice_type_block(arrived.payload, layout, types, arrived.header.sequence, out)
            .map_err(|_| Unrepairable)?;
        return Ok(Replaced { drop: frame_len(arrived.header), rest: None });
    }
    match splice_head(arrived.header, arrived.payload, layout, types, out) {
        Ok(SplicedHead::Written) => {
            let head_len = layout.bind_flag_offset.saturating_add(1);
            let left = arrived.header.payload_len.saturating_sub(head_len);
            let rest = Some(FrameSkipper::within(arrived.header, left));
            Ok(Replaced { drop: head_len.saturating_add(HEADER_LEN), rest })
        }
        Ok(SplicedHead::TooLong) | Err(_) => Err(Unrepairable),
    }
}
