//! The 64-bit FNV-1a hash (Fowler, Noll, Vo): stable over runs and versions, so it makes the keys
//! that outlive a reload, and short names hash fast. It does not resist chosen inputs; the maps
//! hashed by it hold only what the operator wrote, clients only look things up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A map looked up while a statement waits for its verdict.
pub(crate) type FnvMap<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;

/// The state of one hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(OFFSET_BASIS)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    fn write_usize(&mut self, value: usize) {
        // The length in front of a slice: one round is enough.
        self.0 = (self.0 ^ u64::try_from(value).unwrap_or(u64::MAX)).wrapping_mul(PRIME);
    }
}

/// The hash of these bytes and nothing else: that of a digest text.
pub(crate) fn plain(bytes: &[u8]) -> u64 {
    let mut state = Fnv::default();
    state.write(bytes);
    state.finish()
}

/// The hash of `parts`; where one part ends and the next begins counts.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = Fnv::default();
    for part in parts {
        state.write(part);
        state.write(&[0xff]);
    }
    state.finish()
}

/// A 64-bit hash in 32 bits.
pub(crate) fn fold(hash: u64) -> u32 {
    let [a, b, c, d, e, f, g, h] = hash.to_le_bytes();
    u32::from_le_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let mut state = Fnv::default();
        state.write(b"foobar");
        assert_eq!(state.finish(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
