//! What a side goes through that is compressed.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use session::Compression;
use wire::compress::{CompressedLeg, Decompressor, Role, Unread};

use super::buffer::Buffer;
use super::carrier::Carrier;
use super::codecs::Codecs;

/// A compressed side. Between statements it holds no more than two small buffers: what compresses
/// is lent.
#[derive(Debug)]
pub(super) struct Packed {
    carrier: Carrier,
    leg: CompressedLeg,
    codecs: Arc<Codecs>,
    /// Read, and not yet decompressed.
    wire: Buffer,
    /// What decompresses, within a compressed packet.
    decompressor: Option<Decompressor>,
    /// Compressed, and being written.
    out: Vec<u8>,
    /// Compressed bytes that were read. Wraps.
    received: u64,
}

/// Bytes compressed and written at once, so that a long command is not compressed as a whole.
const PIECE_LEN_MAX: usize = 64 * 1024;

/// What buffers keep of their memory between statements.
const KEPT_LEN: usize = 4 * 1024;

impl Packed {
    /// From here on; `wire` has been read ahead.
    pub(super) fn new(
        carrier: Carrier,
        wire: Buffer,
        role: Role,
        compression: Compression,
        codecs: Arc<Codecs>,
    ) -> Self {
        let mut leg = CompressedLeg::new(role, compression.algorithm, compression.level);
        leg.rest();
        Self { carrier, leg, codecs, wire, decompressor: None, out: Vec::new(), received: 0 }
    }

    /// Bytes that have come over the socket, in all; wraps.
    pub(super) fn received(&self) -> u64 {
        self.carrier.received().unwrap_or(self.received)
    }

    pub(super) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    pub(super) fn carrier_mut(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// As [`Carrier::poll_fill`], decompressed. What is not wanted yet stays as it is, however long
    /// it says that it will be.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Buffer,
        read_len: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            if !self.wire.is_empty() || !self.leg.awaits_bytes() {
                let (produced, held) = self.unpack(buffer)?;
                if produced > 0 {
                    return Poll::Ready(Ok(produced));
                }
                if held {
                    // Whoever reads has the commands before it still to look at.
                    return Poll::Pending;
                }
            }
            self.wire.make_room(read_len);
            match self.carrier.poll_fill(cx, &mut self.wire) {
                Poll::Ready(Ok(len @ 1..)) => {
                    let len = u64::try_from(len).unwrap_or_default();
                    self.received = self.received.wrapping_add(len);
                }
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn unpack(&mut self, buffer: &mut Buffer) -> io::Result<(usize, bool)> {
        let mut decompressor = match self.decompressor.take() {
            Some(begun) => begun,
            None => self.codecs.decompressor(self.leg.algorithm())?,
        };
        let unread = if buffer.is_empty() { Unread::Nothing } else { Unread::Frames };
        let unpacked = self.leg.unpack(self.wire.bytes(), buffer.free(), unread, &mut decompressor);
        let unpacked =
            unpacked.map_err(|corrupt| io::Error::new(io::ErrorKind::InvalidData, corrupt))?;
        buffer.fill(unpacked.produced);
        self.wire.consume(unpacked.consumed);
        if self.leg.is_within_packet() {
            self.decompressor = Some(decompressor);
        } else {
            self.codecs.give_back_decompressor(decompressor);
        }
        Ok((unpacked.produced, unpacked.held))
    }

    /// As [`Carrier::write`], compressed.
    ///
    /// # Cancellation
    /// Some of the bytes may have been written.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE_LEN_MAX) {
            self.out.clear();
            let mut compressor = self.codecs.compressor(self.leg.algorithm())?;
            self.leg.pack(piece, &mut compressor, &mut self.out);
            self.codecs.give_back_compressor(compressor);
            // A frame may be kept back until its rest has come.
            if !self.out.is_empty() {
                self.carrier.write(&self.out).await?;
            }
        }
        Ok(())
    }

    pub(super) fn begin_upload(&mut self) {
        self.leg.begin_upload();
    }

    pub(super) fn begin_stream(&mut self, restart: u8) {
        self.leg.begin_stream(restart);
    }

    pub(super) fn end_stream(&mut self) {
        self.leg.end_stream();
    }

    /// Nothing is under way. Gives memory back.
    pub(super) fn rest(&mut self) {
        self.leg.rest();
        if self.wire.is_empty() && self.wire.memory_len() > KEPT_LEN {
            self.wire = Buffer::default();
        }
        if self.out.capacity() > KEPT_LEN {
            self.out = Vec::new();
        }
    }
}
