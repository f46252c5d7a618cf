//! `client_compression`, `backend_compression` and `compression_level` of a cluster.

use super::checks::{keyword, list, whole};
use super::limits::{self, Limits};
use crate::compression::{BackendCompression, ClientCompression, CompressionLevel};
use crate::fault::Faults;
use crate::raw::{self, Maybe, Spanned};

const BACKEND: [(&str, BackendCompression); 4] = [
    ("off", BackendCompression::Off),
    ("as_client", BackendCompression::AsClient),
    ("zlib", BackendCompression::Zlib),
    ("zstd", BackendCompression::Zstd),
];

/// Named as the servers' `protocol_compression_algorithms` names them.
const ALGORITHMS: [&str; 3] = ["zstd", "zlib", "uncompressed"];

pub(super) fn client(
    compression: Maybe<raw::ClientCompression>,
    faults: &mut Faults,
) -> ClientCompression {
    let algorithms = compression.and_then(|compression| compression.value.algorithms);
    let Some(Spanned { value: algorithms, place }) = algorithms else {
        return ClientCompression { zlib: true, zstd: true, uncompressed: true };
    };
    if algorithms.is_empty() {
        faults.add(&place, "must not be empty: `[uncompressed]` offers no compression");
    }
    let mut offered = ClientCompression { zlib: false, zstd: false, uncompressed: false };
    for Spanned { value, place } in algorithms {
        let known = match value.as_str() {
            "zlib" => &mut offered.zlib,
            "zstd" => &mut offered.zstd,
            "uncompressed" => &mut offered.uncompressed,
            _ => {
                let words = list(ALGORITHMS.iter());
                faults.add(&place, format!("`{value}` is not one of {words}"));
                continue;
            }
        };
        *known = true;
    }
    offered
}

pub(super) fn backend(word: Maybe<String>, faults: &mut Faults) -> BackendCompression {
    keyword(word, BackendCompression::Off, &BACKEND, faults)
}

pub(super) fn level(level: Maybe<raw::CompressionLevel>, faults: &mut Faults) -> CompressionLevel {
    let (zlib, zstd) = match level {
        Some(Spanned { value: raw, .. }) => (raw.zlib, raw.zstd),
        None => (None, None),
    };
    CompressionLevel {
        zlib: small(zlib, limits::ZLIB_LEVEL, faults),
        zstd: small(zstd, limits::ZSTD_LEVEL, faults),
    }
}

/// The limits are so narrow that it fits.
fn small(level: Maybe<i128>, limits: Limits<u32>, faults: &mut Faults) -> u8 {
    u8::try_from(whole(level, limits, faults)).unwrap_or(u8::MAX)
}
