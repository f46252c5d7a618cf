//! By what the cost of a statement is predicted: its digest, and how large a bulk of values it has.

use admission::DigestKey;

/// From so many bytes on a text or a set of parameters is a bulk: the digest of an INSERT of a
/// thousand rows is that of an INSERT of one.
const BULK_MIN: usize = 4_096;

/// Bulks of one class differ by less than two to this power in size.
const CLASS_BITS: u32 = 2;

/// Spreads a small number over all bits (Fibonacci hashing: 2^64 over the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of a digest for statements of this many bytes.
pub(super) fn sized(digest: u64, len: usize) -> DigestKey {
    let above = len.checked_div(BULK_MIN).and_then(usize::checked_ilog2);
    // 0 is what is no bulk.
    let class = above.map_or(0, |bits| u64::from(bits / CLASS_BITS).saturating_add(1));
    DigestKey(digest ^ class.wrapping_mul(SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulks_are_told_apart_by_four_times_their_size_and_others_are_not() {
        assert_eq!(sized(7, 0), DigestKey(7));
        assert_eq!(sized(7, 4_095), DigestKey(7));
        let sizes = [4_096, 16_384, 65_536, 262_144, 16 << 20];
        let keys: Vec<DigestKey> = sizes.into_iter().map(|len| sized(7, len)).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(*key != DigestKey(7) && !keys[..at].contains(key), "{keys:?}");
        }
        assert_eq!(sized(7, 4_096), sized(7, 16_383));
        assert_ne!(sized(7, 4_096), sized(8, 4_096));
    }
}
