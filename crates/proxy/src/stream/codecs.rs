//! What compresses and decompresses, for all connections of a cluster.

use std::io;

use parking_lot::Mutex;
use wire::compress::{Algorithm, Compressor, Decompressor};

/// Engines that nobody uses now. They are large and are needed for moments, so connections do not
/// have their own: a compressor is lent for one call, a decompressor until the end of a compressed
/// packet.
#[derive(Debug, Default)]
pub(crate) struct Codecs {
    compressors: Mutex<Vec<Compressor>>,
    decompressors: Mutex<Vec<Decompressor>>,
}

/// Engines of each kind that are kept. As many compressors are in use at once as there are threads;
/// more decompressors only while clients are in the middle of long packets.
const KEPT_MAX: usize = 64;

impl Codecs {
    pub(super) fn compressor(&self, algorithm: Algorithm) -> io::Result<Compressor> {
        let idle = take(&self.compressors, |idle| idle.algorithm() == algorithm);
        idle.or_else(|| Compressor::new(algorithm)).ok_or_else(no_memory)
    }

    pub(super) fn give_back_compressor(&self, compressor: Compressor) {
        give_back(&self.compressors, compressor);
    }

    pub(super) fn decompressor(&self, algorithm: Algorithm) -> io::Result<Decompressor> {
        let idle = take(&self.decompressors, |idle| idle.algorithm() == algorithm);
        idle.or_else(|| Decompressor::new(algorithm)).ok_or_else(no_memory)
    }

    pub(super) fn give_back_decompressor(&self, decompressor: Decompressor) {
        give_back(&self.decompressors, decompressor);
    }
}

fn take<T>(kept: &Mutex<Vec<T>>, fits: impl Fn(&T) -> bool) -> Option<T> {
    let mut kept = kept.lock();
    let at = kept.iter().rposition(fits)?;
    Some(kept.swap_remove(at))
}

fn give_back<T>(kept: &Mutex<Vec<T>>, engine: T) {
    let mut kept = kept.lock();
    if kept.len() < KEPT_MAX {
        kept.push(engine);
    }
}

fn no_memory() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}
