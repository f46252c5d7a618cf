//! The digests of texts that came before.
//!
//! Theory. Reading a digest takes some eighty instructions for each byte of a text, most of them to
//! find out what is a keyword. But applications send the same texts again, with other literals. So
//! a text is hashed in one pass that leaves out what a digest leaves out and can be told by a glance
//! (module `key`). A session remembers some of its texts as they are, and compares (module `mould`).
//!
//! Hash and digest are kept in a table that all threads look at without a lock. An entry is two
//! words, written one after the other; the first is the hash xor the digest xor the generation in
//! which somebody was told, so that a pair whose halves come from two writers is taken for no entry
//! (Hyatt and Mann, "A lockless transposition table implementation for parallel search", ICGA Journal
//! 25(1), 2002). A hash of 64 bits can be made to collide by who wants to: what is counted by these
//! digests may then be counted wrong, nothing is admitted by them.
//!
//! Beside it stands which digests somebody has been told the text of, so that a text is made once.

mod key;
mod mould;
mod pieces;
mod values;

use std::sync::atomic::{AtomicU64, Ordering};

pub use key::{Extent, TextKey};
pub use mould::{Mould, TextHead};

/// Texts that are remembered; others are read again. 128 KiB.
const TEXTS: usize = 8_192;

/// Digests with the same place.
const WAYS: usize = 8;

/// Places of digests that are remembered as told: 8,192 digests, 64 KiB.
const TOLD_SETS: usize = 1_024;

/// The digests of texts that came before, for all threads.
#[derive(Debug)]
pub struct DigestMemo {
    texts: Box<[Entry]>,
    told: Box<[[AtomicU64; WAYS]]>,
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Entry {
    /// The text's hash xor `digest` xor the generation in which it was told.
    check: AtomicU64,
    digest: AtomicU64,
}

impl Default for DigestMemo {
    fn default() -> Self {
        Self::starting_at(1)
    }
}

impl DigestMemo {
    /// Its generations are counted from there: whoever notes something by them and uses several
    /// memos gives each another, by chance.
    #[must_use]
    pub fn starting_at(generation: u64) -> Self {
        Self {
            texts: std::iter::repeat_with(Entry::default).take(TEXTS).collect(),
            told: std::iter::repeat_with(Default::default).take(TOLD_SETS).collect(),
            generation: AtomicU64::new(generation),
        }
    }

    /// The digest of a text that came before, if it has been told.
    #[must_use]
    pub fn get(&self, key: TextKey) -> Option<u64> {
        let entry = self.entry(key)?;
        let digest = entry.digest.load(Ordering::Relaxed);
        let check = entry.check.load(Ordering::Relaxed);
        (check ^ digest ^ spread(self.generation()) == key.0).then_some(digest)
    }

    /// Keeps the digest of a text, if it has been told.
    pub fn put(&self, key: TextKey, digest: u64) {
        // Before it is looked up: what is forgotten meanwhile is kept for a time that is over.
        let generation = self.generation();
        if !self.is_told(digest) {
            return;
        }
        if let Some(entry) = self.entry(key) {
            entry.check.store(key.0 ^ digest ^ spread(generation), Ordering::Relaxed);
            entry.digest.store(digest, Ordering::Relaxed);
        }
    }

    /// Changes when what was told is forgotten: until then, whatever has been told is known.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether somebody has been told what the digest stands for.
    #[must_use]
    pub fn is_told(&self, digest: u64) -> bool {
        let ways = self.ways(digest).into_iter().flatten();
        ways.into_iter().any(|told| told.load(Ordering::Relaxed) == digest)
    }

    /// Somebody has.
    pub fn note_told(&self, digest: u64) {
        let Some(ways) = self.ways(digest) else { return };
        let free = ways.iter().find(|told| matches!(told.load(Ordering::Relaxed), 0));
        let at = usize::try_from(digest.wrapping_shr(61)).unwrap_or_default();
        if let Some(place) = free.or_else(|| ways.get(at)) {
            place.store(digest, Ordering::Relaxed);
        }
    }

    /// What was told is forgotten there: every digest is to be told again.
    pub fn forget_told(&self) {
        for told in self.told.iter().flatten() {
            told.store(0, Ordering::Relaxed);
        }
        // Last: whoever sees the new generation sees nothing as told that was told before it.
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn entry(&self, key: TextKey) -> Option<&Entry> {
        self.texts.get(place(key.0, self.texts.len()))
    }

    fn ways(&self, digest: u64) -> Option<&[AtomicU64; WAYS]> {
        self.told.get(place(digest, self.told.len()))
    }
}

/// The middle of the hash; of FNV, which digests are, the lowest bits are mixed least.
fn place(hash: u64, len: usize) -> usize {
    usize::try_from(hash.wrapping_shr(20) & u64::from(u32::MAX))
        .unwrap_or_default()
        .checked_rem(len)
        .unwrap_or_default()
}

/// One round of multiplying and folding: every bit of the input reaches the lower half.
#[inline(always)]
fn mix(value: u64) -> u64 {
    let product = u128::from(value).wrapping_mul(u128::from(GOLDEN));
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = product.to_le_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ u64::from_le_bytes([i, j, k, l, m, n, o, p])
}

/// Small numbers that follow one another, over all bits.
#[inline(always)]
fn spread(generation: u64) -> u64 {
    generation.wrapping_mul(GOLDEN)
}

/// Digits of the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
