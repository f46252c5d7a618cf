//! Bytes that were read and that nobody has taken yet.

/// A queue of bytes in memory that is initialised once and used again and again.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    /// Where the first byte is that was not taken. Zero while there is none.
    start: usize,
    /// Behind the last.
    end: usize,
}

impl Buffer {
    /// An empty one.
    pub(super) fn with_len(len: usize) -> Self {
        Self { memory: vec![0; len], start: 0, end: 0 }
    }

    /// All of its memory, used or not.
    pub(super) fn memory_len(&self) -> usize {
        self.memory.len()
    }

    /// Nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// There is something at the end of its memory.
    pub(super) fn is_full(&self) -> bool {
        self.end == self.memory.len()
    }

    /// What is in it.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..self.end).unwrap_or_default()
    }

    /// Takes the first `len` bytes, or all.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) {
        self.start = self.start.saturating_add(len).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Makes room for half of `len` bytes at least; where there is less, for all of them.
    pub(super) fn make_room(&mut self, len: usize) {
        if self.free_len() >= len / 2 {
            return;
        }
        self.memory.copy_within(self.start..self.end, 0);
        self.end = self.end.saturating_sub(self.start);
        self.start = 0;
        if self.free_len() < len {
            self.memory.resize(self.end.saturating_add(len), 0);
        }
    }

    fn free_len(&self) -> usize {
        self.memory.len().saturating_sub(self.end)
    }

    /// Room for more.
    pub(super) fn free(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.end..).unwrap_or_default()
    }

    /// The first `len` bytes of what was free are in it now.
    pub(super) fn fill(&mut self, len: usize) {
        self.end = self.end.saturating_add(len).min(self.memory.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let mut state = 1_u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 40).unwrap() % limit
        };
        let byte = |n: usize| u8::try_from(n % 251).unwrap();
        for _ in 0..100 {
            let mut buffer = Buffer::default();
            let (mut put, mut taken) = (0, 0);
            for _ in 0..50 {
                let room = below(5_000);
                buffer.make_room(room);
                assert!(buffer.free().len() >= room / 2);
                let fill = below(3_000).min(buffer.free().len());
                for place in &mut buffer.free()[..fill] {
                    *place = byte(put);
                    put += 1;
                }
                buffer.fill(fill);
                assert_eq!(buffer.bytes().len(), put - taken);
                assert!(buffer.bytes().iter().zip(taken..).all(|(is, n)| *is == byte(n)));
                let take = below(3_000);
                buffer.consume(take);
                taken = (taken + take).min(put);
                assert_eq!(buffer.is_empty(), taken == put);
            }
        }
    }

    #[test]
    fn what_waits_is_moved_to_the_front_before_memory_grows() {
        let mut buffer = Buffer::with_len(100);
        buffer.free().fill(7);
        buffer.fill(1_000);
        assert!(buffer.is_full());
        buffer.consume(90);
        buffer.make_room(80);
        assert_eq!((buffer.bytes(), buffer.memory_len()), (&[7; 10][..], 100));
        assert_eq!(buffer.free().len(), 90);
        buffer.make_room(200);
        assert_eq!(buffer.free().len(), 200);
        buffer.consume(usize::MAX);
        assert!(buffer.is_empty());
        assert_eq!(buffer.free().len(), 210);
    }
}
