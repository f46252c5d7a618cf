//! Little-endian integers, length-encoded integers and strings, NUL-terminated strings: the basic
//! types of the manual's "Protocol Basics", read from the front of a slice.

/// Reads from the front of a payload. Every method takes what it returns and yields `None`, taking
/// nothing, when the payload ends too early.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of all of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// `count` bytes as they are.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// `int<1>`.
    pub fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// `int<2>`.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// `int<3>`.
    pub fn u24(&mut self) -> Option<u32> {
        self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// `int<4>`.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// `int<8>`.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// `int<lenenc>`. NULL (0xfb) and the undefined 0xff are no integers.
    pub fn lenenc_int(&mut self) -> Option<u64> {
        let mut ahead = *self;
        let value = match ahead.u8()? {
            short @ 0..=0xfa => u64::from(short),
            LENENC_2 => u64::from(ahead.u16()?),
            LENENC_3 => u64::from(ahead.u24()?),
            LENENC_8 => ahead.u64()?,
            LENENC_NULL | LENENC_UNDEFINED => return None,
        };
        *self = ahead;
        Some(value)
    }

    /// `string<lenenc>`.
    pub fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = usize::try_from(ahead.lenenc_int()?).ok()?;
        let taken = ahead.bytes(len)?;
        *self = ahead;
        Some(taken)
    }

    /// `string<lenenc>`, cut when the payload ends within it.
    pub fn lenenc_bytes_cut(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.lenenc_int()?).ok()?;
        self.bytes(len.min(self.rest.len()))
    }

    /// `string<NUL>`, without the NUL.
    pub fn nul_terminated(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.iter().position(|&byte| byte == 0)?;
        let taken = self.bytes(len)?;
        self.u8()?;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }
}

/// Appends `string<lenenc>`.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len().to_le_bytes();
    let [a, b, c, ..] = len;
    match bytes.len() {
        0..=0xfa => out.push(a),
        0xfb..=0xffff => out.extend_from_slice(&[LENENC_2, a, b]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[LENENC_3, a, b, c]),
        _ => {
            out.push(LENENC_8);
            out.extend_from_slice(&len);
        }
    }
    out.extend_from_slice(bytes);
}

/// The first byte of a length-encoded NULL in a text row.
pub const LENENC_NULL: u8 = 0xfb;
const LENENC_2: u8 = 0xfc;
const LENENC_3: u8 = 0xfd;
const LENENC_8: u8 = 0xfe;
const LENENC_UNDEFINED: u8 = 0xff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_are_read() {
        let mut reader =
            Reader::new(&[0xfa, 0xfc, 0xfb, 0, 0xfd, 1, 2, 3, 0xfe, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(reader.lenenc_int(), Some(0xfa));
        assert_eq!(reader.lenenc_int(), Some(0xfb));
        assert_eq!(reader.lenenc_int(), Some(0x03_0201));
        assert_eq!(reader.lenenc_int(), Some(0x0102_0304_0506_0708));
        assert_eq!(reader.lenenc_int(), None);
    }

    #[test]
    fn null_undefined_and_cut_integers_take_nothing() {
        for bytes in [&[0xfb, 1][..], &[0xff, 1], &[0xfc, 1], &[0xfd, 1, 2], &[0xfe, 1, 2, 3, 4]] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.lenenc_int(), None);
            assert_eq!(reader.rest(), bytes);
        }
    }

    #[test]
    fn strings_of_every_length_read_back_as_written() {
        for len in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000] {
            let bytes = vec![7; len];
            let mut out = Vec::new();
            put_lenenc_bytes(&mut out, &bytes);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.lenenc_bytes(), Some(&bytes[..]));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn strings_end_at_their_length_or_their_nul() {
        let mut reader = Reader::new(b"\x03abcde\0f");
        assert_eq!(reader.lenenc_bytes(), Some(&b"abc"[..]));
        assert_eq!(reader.nul_terminated(), Some(&b"de"[..]));
        assert_eq!(reader.nul_terminated(), None);
        assert_eq!(reader.rest(), b"f");
        let mut cut = Reader::new(b"\x05abc");
        assert_eq!(cut.lenenc_bytes(), None);
        assert_eq!(cut.lenenc_bytes_cut(), Some(&b"abc"[..]));
    }
}
