//! The two algorithms behind one face: whole packets are compressed, and decompressed piece by
//! piece.

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, Operation};
use zstd::zstd_safe::CParameter;

use super::Corrupt;

/// How a leg is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM.
    Zstd,
}

/// What compresses. Large, and good for any leg: one is enough for a thread.
pub struct Compressor(Squeeze);

enum Squeeze {
    Zlib { engine: Compress, level: u8 },
    Zstd { engine: zstd::bulk::Compressor<'static>, level: u8 },
}

impl Compressor {
    /// Makes one. `None`: there is no memory for it.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Option<Self> {
        let squeeze = match algorithm {
            Algorithm::Zlib => {
                let engine = Compress::new(Compression::new(ZLIB_LEVEL.into()), true);
                Squeeze::Zlib { engine, level: ZLIB_LEVEL }
            }
            Algorithm::Zstd => {
                let engine = zstd::bulk::Compressor::new(ZSTD_LEVEL.into()).ok()?;
                Squeeze::Zstd { engine, level: ZSTD_LEVEL }
            }
        };
        Some(Self(squeeze))
    }

    /// Which algorithm it has.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match &self.0 {
            Squeeze::Zlib { .. } => Algorithm::Zlib,
            Squeeze::Zstd { .. } => Algorithm::Zstd,
        }
    }

    /// Compresses `plain` into `packed` and says how long it has become. `None`: it does not fit,
    /// or `wanted` is no level.
    pub(super) fn compress(
        &mut self,
        wanted: u8,
        plain: &[u8],
        packed: &mut [u8],
    ) -> Option<usize> {
        match &mut self.0 {
            Squeeze::Zlib { engine, level } => {
                engine.reset();
                if *level != wanted {
                    engine.set_level(Compression::new(wanted.into())).ok()?;
                    *level = wanted;
                }
                match engine.compress(plain, packed, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => usize::try_from(engine.total_out()).ok(),
                    Ok(Status::Ok | Status::BufError) | Err(_) => None,
                }
            }
            Squeeze::Zstd { engine, level } => {
                if *level != wanted {
                    engine.set_parameter(CParameter::CompressionLevel(wanted.into())).ok()?;
                    *level = wanted;
                }
                engine.compress_to_buffer(plain, packed).ok()
            }
        }
    }
}

/// What decompresses. Good for any leg, but for one compressed packet at a time, from its begin to
/// its end.
pub struct Decompressor(Stretch);

enum Stretch {
    Zlib(Decompress),
    Zstd(Decoder<'static>),
}

/// How far a [`Decompressor`] came.
pub(super) struct Stretched {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    /// The data has ended.
    pub(super) ended: bool,
}

impl Decompressor {
    /// Makes one. `None`: there is no memory for it.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Option<Self> {
        let stretch = match algorithm {
            Algorithm::Zlib => Stretch::Zlib(Decompress::new(true)),
            Algorithm::Zstd => {
                let mut decoder = Decoder::new().ok()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).ok()?;
                Stretch::Zstd(decoder)
            }
        };
        Some(Self(stretch))
    }

    /// Which algorithm it has.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match &self.0 {
            Stretch::Zlib(_) => Algorithm::Zlib,
            Stretch::Zstd(_) => Algorithm::Zstd,
        }
    }

    /// A compressed packet begins.
    pub(super) fn begin(&mut self) -> Result<(), Corrupt> {
        match &mut self.0 {
            Stretch::Zlib(engine) => {
                engine.reset(true);
                Ok(())
            }
            Stretch::Zstd(engine) => engine.reinit().map_err(|_| Corrupt::Data),
        }
    }

    /// Goes on with the packet; either slice may be too short for all of it.
    pub(super) fn feed(&mut self, packed: &[u8], plain: &mut [u8]) -> Result<Stretched, Corrupt> {
        match &mut self.0 {
            Stretch::Zlib(engine) => {
                let (before_in, before_out) = (engine.total_in(), engine.total_out());
                let status = engine
                    .decompress(packed, plain, FlushDecompress::None)
                    .map_err(|_| Corrupt::Data)?;
                let moved = |now: u64, before: u64| {
                    usize::try_from(now.saturating_sub(before)).unwrap_or_default()
                };
                Ok(Stretched {
                    consumed: moved(engine.total_in(), before_in),
                    produced: moved(engine.total_out(), before_out),
                    ended: matches!(status, Status::StreamEnd),
                })
            }
            Stretch::Zstd(engine) => {
                let status = engine.run_on_buffers(packed, plain).map_err(|_| Corrupt::Data)?;
                Ok(Stretched {
                    consumed: status.bytes_read,
                    produced: status.bytes_written,
                    ended: status.remaining == 0,
                })
            }
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compressor({:?})", self.algorithm())
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decompressor({:?})", self.algorithm())
    }
}

/// What a new engine is set to before it is told.
const ZLIB_LEVEL: u8 = 6;
const ZSTD_LEVEL: u8 = 3;

/// No packet is longer than 16 MiB, so none needs to look further back. More would be memory for
/// nothing.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;
