//! Gives an EXECUTE the parameter types that its client believes the server has.
//!
//! Client libraries send a statement's parameter types with its first EXECUTE only, whatever became
//! of it. If that EXECUTE was refused by us, the server never saw the types, and the client's
//! retry, without them, would be decoded with none or with stale ones: wrong values, silently. So
//! the session keeps the type block of a refused EXECUTE and puts it into the next one that comes
//! without, the only command that is not forwarded byte for byte.
//!
//! Two ways, because an EXECUTE may be longer than what has been read of it:
//!
//! * [`splice_head`] needs no more than the packet up to the bind flag. It writes a new frame
//!   header, those bytes and the block; everything behind the bind flag is then forwarded as it
//!   comes. This serves every packet that still fits into one frame.
//! * [`splice_type_block`] needs the whole payload and writes as many frames as it takes. Above
//!   16 MiB the block moves every later frame's boundary, so nothing of it could be forwarded as it
//!   comes.

use crate::error::ProtocolError;
use crate::frame::{FrameHeader, FrameWriter, HEADER_LEN, MAX_PAYLOAD_LEN};
use crate::lenenc::Reader;

use super::attributes::{TypeNames, skip_types};
use super::execute::ExecuteLayout;

/// Appends to `out` the whole packet `payload` with `block` as its type block, as frames numbered
/// from `sequence`. When that takes one frame more than the client sent, the last frame's number,
/// and with it the server's answer's, is one higher than the client expects.
///
/// # Errors
/// [`ProtocolError::TypeBlockMismatch`] when `block` does not fit `layout`; nothing is written
/// then.
pub fn splice_type_block(
    payload: &[u8],
    layout: &ExecuteLayout,
    block: &[u8],
    sequence: u8,
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let parts = Parts::of(payload, layout, block)?;
    let packet_len = payload.len().saturating_add(block.len());
    let mut writer = FrameWriter::new(out, packet_len, sequence);
    writer.push(parts.before_flag);
    writer.push(&[TYPES_SENT]);
    writer.push(block);
    writer.push(parts.after_flag);
    Ok(())
}

/// Appends to `out` a new header for the packet whose only frame has `header`, its bytes up to the
/// bind flag, the set flag and `block`. `prefix` is the payload as far as it was read, at least up
/// to and including the bind flag. The caller goes on with the payload's bytes from
/// `layout.bind_flag_offset + 1`, unchanged.
///
/// # Errors
/// [`ProtocolError::TypeBlockMismatch`] when `block` does not fit `layout`; nothing is written
/// then.
pub fn splice_head(
    header: FrameHeader,
    prefix: &[u8],
    layout: &ExecuteLayout,
    block: &[u8],
    out: &mut Vec<u8>,
) -> Result<SplicedHead, ProtocolError> {
    let parts = Parts::of(prefix, layout, block)?;
    let payload_len = header.payload_len.saturating_add(block.len());
    if payload_len >= MAX_PAYLOAD_LEN {
        return Ok(SplicedHead::TooLong);
    }
    let sequence = header.sequence;
    out.reserve(
        HEADER_LEN
            .saturating_add(layout.bind_flag_offset)
            .saturating_add(block.len())
            .saturating_add(1),
    );
    out.extend_from_slice(&FrameHeader { payload_len, sequence }.encode());
    out.extend_from_slice(parts.before_flag);
    out.push(TYPES_SENT);
    out.extend_from_slice(block);
    Ok(SplicedHead::Written)
}

/// What became of [`splice_head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplicedHead {
    /// The head is in the buffer.
    Written,
    /// The packet would not fit into one frame any more, nothing is written: that takes
    /// [`splice_type_block`].
    TooLong,
}

struct Parts<'a> {
    before_flag: &'a [u8],
    after_flag: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(payload: &'a [u8], layout: &ExecuteLayout, block: &[u8]) -> Result<Self, ProtocolError> {
        Self::split(payload, layout, block).ok_or(ProtocolError::TypeBlockMismatch)
    }

    fn split(payload: &'a [u8], layout: &ExecuteLayout, block: &[u8]) -> Option<Self> {
        let names = if layout.named { TypeNames::Sent } else { TypeNames::Absent };
        let mut types = Reader::new(block);
        skip_types(&mut types, layout.param_count, names)?;
        if layout.types_sent || !types.is_empty() {
            return None;
        }
        let (before_flag, from_flag) = payload.split_at_checked(layout.bind_flag_offset)?;
        let (_, after_flag) = from_flag.split_first()?;
        Some(Self { before_flag, after_flag })
    }
}

/// new_params_bind_flag when types follow.
const TYPES_SENT: u8 = 1;
