//! The compressed protocol, as a client speaks it.
//!
//! It holds the other end to the numbers of compressed packets, as the client libraries do, and to the ids of the
//! frames inside, as the strictest of them does (mysql_async); and it cuts what it sends into several.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::bytes::{put_u24, usize_of};
use super::transport::Transport;

/// Whether the client asks for compression, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compress {
    /// It does not.
    #[default]
    Never,
    /// With zlib.
    Zlib,
    /// With zstd at this level.
    Zstd(u8),
}

/// A leg that is compressed.
#[derive(Debug)]
pub(super) struct Compressed {
    algorithm: Compress,
    /// The number of the next compressed packet, whoever sends it.
    next: u8,
    /// The id of the next frame, unless it is that of its compressed packet.
    inner: u8,
    uploads: bool,
    /// Decompressed and not yet read, from `taken` on.
    frames: Vec<u8>,
    taken: usize,
    /// How many compressed packets have come, and how many of them were not stored as they are.
    received: (u64, u64),
}

impl Compressed {
    pub(super) fn new(algorithm: Compress) -> Self {
        Self {
            algorithm,
            next: 0,
            inner: 0,
            uploads: false,
            frames: Vec::new(),
            taken: 0,
            received: (0, 0),
        }
    }

    pub(super) fn received(&self) -> (u64, u64) {
        self.received
    }

    /// Whether the frames sent are a file, and no command though their id is 0.
    pub(super) fn mark_upload(&mut self, uploads: bool) {
        self.uploads = uploads;
    }

    /// As if the command that is answered next were the last one sent.
    pub(super) fn await_answer_of_one(&mut self) {
        self.next = 1;
        self.inner = 1;
    }

    /// Another result is expected behind the one that has been read: where it begins a compressed packet, servers
    /// have flushed, and its first id is the number of that.
    pub(super) fn await_result(&mut self) {
        if self.taken == self.frames.len() {
            self.inner = self.next;
        }
    }

    /// Whether a frame that has been read may have this id.
    pub(super) fn take_id(&mut self, id: u8) -> io::Result<()> {
        if id != self.inner && id != self.next.wrapping_sub(1) {
            let what = format!("frame {id} inside, neither {} nor {}", self.inner, self.next);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.inner = id.wrapping_add(1);
        Ok(())
    }

    /// Sends frames. Those whose first has the id 0 are commands, and numbered from 0.
    pub(super) async fn write_all(
        &mut self,
        transport: &mut Transport,
        frames: &[u8],
    ) -> io::Result<()> {
        self.write_pieces(transport, frames, PIECE_LEN).await
    }

    pub(super) async fn write_pieces(
        &mut self,
        transport: &mut Transport,
        frames: &[u8],
        piece_len: usize,
    ) -> io::Result<()> {
        if frames.get(3) == Some(&0) && !self.uploads {
            self.next = 0;
        }
        let mut wire = Vec::new();
        for piece in frames.chunks(piece_len) {
            let packed = if piece.len() < COMPRESSED_FROM { None } else { self.pack(piece)? };
            let packed = packed.filter(|packed| packed.len() < piece.len());
            put_u24(&mut wire, packed.as_ref().map_or(piece.len(), Vec::len));
            wire.push(self.next);
            put_u24(&mut wire, if packed.is_some() { piece.len() } else { 0 });
            wire.extend_from_slice(packed.as_deref().unwrap_or(piece));
            self.next = self.next.wrapping_add(1);
        }
        self.inner = self.next;
        transport.write_all(&wire).await
    }

    pub(super) async fn read_exact(
        &mut self,
        transport: &mut Transport,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        let end = loop {
            let end = self.taken.saturating_add(bytes.len());
            if end <= self.frames.len() {
                break end;
            }
            self.frames.drain(..self.taken);
            self.taken = 0;
            self.receive(transport).await?;
        };
        bytes.copy_from_slice(self.frames.get(self.taken..end).unwrap_or_default());
        self.taken = end;
        Ok(())
    }

    async fn receive(&mut self, transport: &mut Transport) -> io::Result<()> {
        let mut header = [0; 7];
        transport.read_exact(&mut header).await?;
        let [a, b, c, sequence, d, e, f] = header;
        let len = |a, b, c| usize_of(u32::from_le_bytes([a, b, c, 0]));
        let mut data = vec![0; len(a, b, c)];
        transport.read_exact(&mut data).await?;
        if sequence != self.next {
            let what = format!("compressed packet {sequence}, not {}", self.next);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.next = sequence.wrapping_add(1);
        self.received.0 = self.received.0.saturating_add(1);
        let plain_len = len(d, e, f);
        if plain_len == 0 {
            self.frames.append(&mut data);
            return Ok(());
        }
        self.received.1 = self.received.1.saturating_add(1);
        let plain = self.unpack(&data, plain_len)?;
        if plain.len() != plain_len {
            let what = format!("{} bytes, not the {plain_len} announced", plain.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.frames.extend_from_slice(&plain);
        Ok(())
    }

    fn pack(&self, plain: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self.algorithm {
            Compress::Never => Ok(None),
            Compress::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(plain)?;
                encoder.finish().map(Some)
            }
            Compress::Zstd(level) => zstd::bulk::compress(plain, level.into()).map(Some),
        }
    }

    fn unpack(&self, data: &[u8], plain_len: usize) -> io::Result<Vec<u8>> {
        match self.algorithm {
            Compress::Never => Err(io::ErrorKind::InvalidData.into()),
            Compress::Zlib => {
                let mut plain = Vec::with_capacity(plain_len);
                ZlibDecoder::new(data).read_to_end(&mut plain)?;
                Ok(plain)
            }
            Compress::Zstd(_) => zstd::bulk::decompress(data, plain_len),
        }
    }
}

/// Less is sent as it is, as client libraries do.
const COMPRESSED_FROM: usize = 50;

/// What goes into one compressed packet: client libraries have buffers of this size.
const PIECE_LEN: usize = 16 * 1024;
