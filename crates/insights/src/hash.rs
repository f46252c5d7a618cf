//! Hashes of names, and a hasher for keys that are hashes already.

use std::hash::{BuildHasher, Hasher};

/// The hash that stands for a name in a [`crate::Record`]: 64 bits, the same in all threads, and for
/// those who come after the process. An empty name is 0, and no other is. It does not resist chosen inputs: two names that
/// were made to have one hash are shown as one.
#[must_use]
pub fn name_hash(name: &[u8]) -> u64 {
    if name.is_empty() {
        return 0;
    }
    let mut state = SEED ^ u64::try_from(name.len()).unwrap_or(u64::MAX).wrapping_mul(FACTOR);
    let (words, rest) = name.as_chunks::<8>();
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(state ^ u64::from_le_bytes(last)).max(1)
}

/// One round of multiplying and folding: every bit of the input reaches the lower half.
pub(crate) fn mix(value: u64) -> u64 {
    let product = u128::from(value).wrapping_mul(u128::from(FACTOR));
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = product.to_le_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ u64::from_le_bytes([i, j, k, l, m, n, o, p])
}

/// Digits of pi and of the golden ratio.
const SEED: u64 = 0x243F_6A88_85A3_08D3;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Makes hashers of keys that consist of hashes. What clients send becomes digests, so the seed
/// keeps them from choosing keys that collide here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeded(pub(crate) u64);

impl BuildHasher for Seeded {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

#[derive(Debug)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }
}
