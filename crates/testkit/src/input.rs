//! Choices and bytes out of one byte string, for checks that a fuzzer drives.
//!
//! What is asked for behind the end is 0 or empty, so that every byte string is an input, and a
//! short one a simple one. Numbers are little-endian.

/// A byte string that is used up from the front.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all is used up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// One of `choices`, by one byte.
    ///
    /// # Panics
    /// When there is nothing to choose from.
    #[expect(clippy::expect_used, reason = "a check with nothing to choose from is a wrong check")]
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = usize::from(self.u8()).checked_rem(choices.len());
        let chosen = index.and_then(|index| choices.get(index));
        *chosen.expect("there is something to choose from")
    }

    /// Up to so many bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Bytes behind their length: one byte, or 255 and two more.
    pub fn chunk(&mut self) -> &'a [u8] {
        let len = match self.u8() {
            u8::MAX => usize::from(self.u16()),
            short => usize::from(short),
        };
        self.take(len)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        for (to, from) in array.iter_mut().zip(self.take(N)) {
            *to = *from;
        }
        array
    }
}

#[cfg(test)]
mod tests {
    use super::Input;

    #[test]
    fn an_input_is_used_up_from_the_front() {
        let mut input = Input::new(b"\x01\x02\x03\x05\x02abcdef");
        assert_eq!((input.u8(), input.u16()), (1, 0x0302));
        assert_eq!(input.choose(b"xyz"), b'z');
        assert_eq!(input.chunk(), b"ab");
        assert_eq!(input.take(1), b"c");
        assert_eq!(input.rest(), b"def");
        assert!(input.is_empty());
    }

    #[test]
    fn behind_the_end_everything_is_zero_or_empty() {
        let mut input = Input::new(b"\x07");
        assert_eq!(input.u32(), 7);
        assert_eq!((input.u8(), input.chunk(), input.choose(&[3, 4])), (0, &b""[..], 3));
    }

    #[test]
    fn a_long_chunk_has_a_length_of_three_bytes() {
        let bytes = [&[255, 0, 1][..], &[9; 300]].concat();
        let mut input = Input::new(&bytes);
        assert_eq!((input.chunk().len(), input.rest().len()), (256, 44));
    }
}
