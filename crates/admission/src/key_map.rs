//! Maps whose keys are numbers that stand for something: keys of policies, hashes of texts.
//!
//! Such keys are hashes already, so they are not hashed again byte by byte: one multiplication
//! spreads them. What clients send becomes digests and names of buckets, so a seed that nobody can
//! know keeps them from choosing keys that collide here. Nothing depends on the seed but the order
//! in which a map is gone through.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map by keys that consist of a few whole numbers.
pub(crate) type KeyMap<K, V> = HashMap<K, V, Keyed>;

/// Makes the hashers of one map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

#[derive(Debug)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    /// Once more: what a key of one number differs in has gone through one multiplication only.
    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(u64::try_from(value).unwrap_or(u64::MAX));
    }
}

/// One round of multiplying and folding: every bit of the input reaches the lower half.
#[inline]
fn mix(value: u64) -> u64 {
    let product = u128::from(value).wrapping_mul(u128::from(FACTOR));
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = product.to_le_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ u64::from_le_bytes([i, j, k, l, m, n, o, p])
}

/// Digits of the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A table takes its places from the lowest bits, and compares the highest before the keys.
    #[test]
    fn keys_that_follow_one_another_are_spread_in_high_and_low_bits_alike() {
        let keyed = Keyed::default();
        for step in [1, 1 << 20, 1 << 40, 1 << 52] {
            let hashes = (0..4_096_u64).map(|n| keyed.hash_one((7_u64, n.wrapping_mul(step))));
            let hashes: Vec<u64> = hashes.collect();
            let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xFFF).collect();
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 52).collect();
            let all: HashSet<&u64> = hashes.iter().collect();
            // Of 4,096 balls in as many boxes 63 % of the boxes have one.
            assert!(low.len() > 2_200, "step {step}: {}", low.len());
            assert!(high.len() > 2_200, "step {step}: {}", high.len());
            assert_eq!(all.len(), hashes.len());
        }
    }

    #[test]
    fn two_maps_put_the_same_keys_elsewhere() {
        let (one, other) = (Keyed::default(), Keyed::default());
        let differ = (0..100_u64).filter(|n| one.hash_one(n) != other.hash_one(n)).count();
        assert!(differ > 90, "{differ}");
    }
}
