//! Choices that are the same in every run.

/// A small generator (SplitMix64). Its seed is the test's.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// A generator; the same seed makes the same choices.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let [byte, ..] = self.bits().to_le_bytes();
        byte
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// A number below `limit`; 0 when that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits().checked_rem(limit).unwrap_or(0)
    }

    /// An index below `len`; 0 when that is 0.
    pub fn index(&mut self, len: usize) -> usize {
        let limit = u64::try_from(len).unwrap_or(u64::MAX);
        usize::try_from(self.below(limit)).unwrap_or(0)
    }
}
