//! Executions of prepared statements.

use std::sync::Arc;

use admission::DigestKey;
use wire::command::{
    COM_STMT_BULK_EXECUTE, Command, ExecuteLayout, QueryAttributes, SplicedHead,
    execute_attributes, execute_layout, parse_command, splice_head, splice_type_block,
};
use wire::frame::{FrameHeader, HEADER_LEN, MAX_PAYLOAD_LEN};
use wire::response_tracker::{Cursor, Expect};
use wire::upload::FrameSkipper;

use super::query::Planned;
use super::{Running, Seen, works};
use crate::action::{Action, Input};
use crate::forwarding::Forwarding;
use crate::judge::Judged;
use crate::prepared::Description;
use crate::session::{Phase, Session, frame_len};
use crate::transaction::Ran;

impl Session {
    pub(super) fn plan_execute(
        &mut self,
        statement_id: u32,
        seen: Seen<'_>,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let capabilities = self.capabilities;
        let (description, attributes) = match self.prepared.get_mut(statement_id) {
            // Values sent ahead as long data are not in the packet: then it cannot be read to its end.
            Some(statement) if statement.long_data => {
                (statement.description.clone(), QueryAttributes::default())
            }
            Some(statement) => {
                let attributes = execute_layout(seen.payload, statement.num_params, capabilities)
                    .map(|layout| execute_attributes(seen.payload, &layout, statement.num_params));
                (statement.description.clone(), attributes.unwrap_or_default())
            }
            None => (Arc::new(Description::unknown()), QueryAttributes::default()),
        };
        let judged = self.judge_execution(statement_id, &description, attributes, input);
        let mut planned = self.plan_judged(&description, judged);
        planned.execution = Some(statement_id);
        self.carry_plan(planned, input)
    }

    /// Plans what was described earlier.
    pub(super) fn plan_description(
        &mut self,
        description: &Description,
        attributes: QueryAttributes<'_>,
        input: &Input<'_>,
    ) -> Planned {
        let judged = self.judge_description(description, attributes, input);
        self.plan_judged(description, judged)
    }

    fn plan_judged(&self, description: &Description, judged: Judged) -> Planned {
        let class = description.class;
        let free = !class.is_gateable()
            || self.is_exempt(description.exemption)
            || self.transaction.covers(&description.consequences.plain);
        let ran = if description.exemption.is_some() { Ran::Rest } else { works(class) };
        Planned {
            class,
            judged,
            free,
            digest: description.shape.digest().map(DigestKey),
            ran,
            consequences: description.consequences.clone(),
            execution: None,
        }
    }
}

/// Where MariaDB's COM_STMT_BULK_EXECUTE has its parameter types (MariaDB manual, "COM_STMT_BULK_EXECUTE"):
/// command, statement id, flags, then two bytes for each parameter if the flags say so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk<'a> {
    /// The types, if this execution brings them.
    pub(crate) types: Option<&'a [u8]>,
    flags: u16,
    len: usize,
}

const BULK_FLAGS_OFFSET: usize = 5;
const BULK_TYPES_OFFSET: usize = 7;
/// `STMT_BULK_FLAG_CLIENT_SEND_TYPES`.
const BULK_SEND_TYPES: u16 = 128;

impl<'a> Bulk<'a> {
    /// None: another command, or cut short, or one without parameters.
    pub(crate) fn of(payload: &'a [u8], num_params: u16) -> Option<Self> {
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

    /// Writes the execution with the types that an earlier, refused one took along. False: as it is.
    fn splice(
        self,
        seen: Seen<'_>,
        lost: &mut Option<Box<[u8]>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Unrepairable> {
        if self.types.is_some() {
            *lost = None;
        }
        let Some(types) = lost.as_deref() else { return Ok(false) };
        let payload_len = seen.payload.len().saturating_add(types.len());
        if !seen.whole || types.len() != self.len || payload_len >= MAX_PAYLOAD_LEN {
            return Err(Unrepairable);
        }
        let (head, values) =
            seen.payload.split_at_checked(BULK_TYPES_OFFSET).ok_or(Unrepairable)?;
        let head = head.get(..BULK_FLAGS_OFFSET).ok_or(Unrepairable)?;
        let header = FrameHeader { payload_len, sequence: seen.header.sequence };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(head);
        out.extend_from_slice(&(self.flags | BULK_SEND_TYPES).to_le_bytes());
        out.extend_from_slice(types);
        out.extend_from_slice(values);
        *lost = None;
        Ok(true)
    }
}

/// An execution cannot be repaired: its parameter types were lost with a refused one, and it is too long to
/// be put together again.
pub(crate) struct Unrepairable;

impl Session {
    /// Sends an execution on. If its parameter types went away with an earlier one that was refused, they
    /// are put back: the one place where what is relayed differs from what was sent.
    pub(crate) fn forward_execution(
        &mut self,
        running: Running,
        statement_id: u32,
        input: &Input<'_>,
    ) -> Result<Forwarding, Unrepairable> {
        let replaced = self.repair_execution(statement_id, input)?;
        let expect = self.execution_expects(statement_id, input);
        let mut forwarding = self.forward(running, expect);
        if let Some(Replaced { drop, rest }) = replaced {
            forwarding.replace(drop, rest);
        }
        Ok(forwarding)
    }

    /// What the flags of the execution, and the statement, say about its answer.
    fn execution_expects(&mut self, statement_id: u32, input: &Input<'_>) -> Expect {
        let statement = self.prepared.get_mut(statement_id);
        let num_columns = statement.map_or(0, |statement| statement.num_columns);
        let seen = Seen::of(input.client);
        match seen.and_then(|seen| parse_command(seen.payload, self.capabilities).ok()) {
            Some(Command::Execute(execute)) => Expect::Execution(execute.cursor(num_columns)),
            Some(_) | None => Expect::Execution(Cursor::NotAsked),
        }
    }

    /// Writes the head of the execution that goes out in place of what was sent to the outbox. None: it goes
    /// as it is.
    fn repair_execution(
        &mut self,
        statement_id: u32,
        input: &Input<'_>,
    ) -> Result<Option<Replaced>, Unrepairable> {
        let capabilities = self.capabilities;
        let Some(statement) = self.prepared.get_mut(statement_id) else { return Ok(None) };
        let Some(seen) = Seen::of(input.client) else { return Ok(None) };
        self.outbox.clear();
        if let Some(bulk) = Bulk::of(seen.payload, statement.num_params) {
            statement.long_data = false;
            let spliced = bulk.splice(seen, &mut statement.lost_bulk_types, &mut self.outbox)?;
            let whole = Replaced { drop: frame_len(seen.header), rest: None };
            return Ok(spliced.then_some(whole));
        }
        let layout = execute_layout(seen.payload, statement.num_params, capabilities);
        let types = statement.lost_types.as_deref();
        let replaced = match (layout, types) {
            (Some(layout), Some(types)) if !layout.types_sent => {
                Some(splice(seen, &layout, types, &mut self.outbox)?)
            }
            (Some(_) | None, _) => None,
        };
        statement.lost_types = None;
        statement.long_data = false;
        Ok(replaced)
    }
}

/// What goes out in place of the head of a command: the outbox, for so many bytes of the client's, and then
/// the rest as it comes.
struct Replaced {
    drop: usize,
    rest: Option<FrameSkipper>,
}

fn splice(
    seen: Seen<'_>,
    layout: &ExecuteLayout,
    types: &[u8],
    out: &mut Vec<u8>,
) -> Result<Replaced, Unrepairable> {
    if seen.whole {
        splice_type_block(seen.payload, layout, types, seen.header.sequence, out)
            .map_err(|_| Unrepairable)?;
        return Ok(Replaced { drop: frame_len(seen.header), rest: None });
    }
    match splice_head(seen.header, seen.payload, layout, types, out) {
        Ok(SplicedHead::Written) => {
            let head_len = layout.bind_flag_offset.saturating_add(1);
            let left = seen.header.payload_len.saturating_sub(head_len);
            let rest = Some(FrameSkipper::within(seen.header, left));
            Ok(Replaced { drop: head_len.saturating_add(HEADER_LEN), rest })
        }
        Ok(SplicedHead::TooLong) | Err(_) => Err(Unrepairable),
    }
}
