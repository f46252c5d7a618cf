//! The value of a query attribute as text.

use std::fmt;
use std::io::Write as _;

/// The value of a query attribute as text: a string as it is, an integer in decimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AttributeText<'a>(Text<'a>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text<'a> {
    Bytes(&'a [u8]),
    Integer([u8; DIGITS_MAX], usize),
}

/// As many as the longest 64-bit integer has, with its sign.
const DIGITS_MAX: usize = 20;

impl<'a> AttributeText<'a> {
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        Self(Text::Bytes(bytes))
    }

    /// The integer of these bytes, as binary values have them: little-endian, of 1 to 8 bytes.
    pub(super) fn of_integer(bytes: &[u8], unsigned: bool) -> Option<Self> {
        let is_negative = !unsigned && bytes.last().is_some_and(|last| last & 0x80 != 0);
        let mut wide = if is_negative { [0xff; 8] } else { [0; 8] };
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let mut digits = [0; DIGITS_MAX];
        let mut rest = digits.as_mut_slice();
        let written = if unsigned {
            write!(rest, "{}", u64::from_le_bytes(wide))
        } else {
            write!(rest, "{}", i64::from_le_bytes(wide))
        };
        written.ok()?;
        let len = DIGITS_MAX.checked_sub(rest.len())?;
        Some(Self(Text::Integer(digits, len)))
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Bytes(bytes) => bytes,
            Text::Integer(digits, len) => digits.get(..*len).unwrap_or_default(),
        }
    }
}

impl AsRef<[u8]> for AttributeText<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for AttributeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_what_the_server_shows_of_them() {
        for (bytes, unsigned, text) in [
            (&[42][..], false, "42"),
            (&[1], true, "1"),
            (&[0xff], false, "-1"),
            (&[0xff], true, "255"),
            (&[0x80], false, "-128"),
            (&[0x2c, 0x01], false, "300"),
            (&[0x00, 0x80], false, "-32768"),
            (&[0xff, 0xff, 0xff, 0xff], true, "4294967295"),
            (&[0, 0, 0, 0x80], false, "-2147483648"),
            (&[0xff; 8], true, "18446744073709551615"),
            (&[0, 0, 0, 0, 0, 0, 0, 0x80], false, "-9223372036854775808"),
            (&[0; 8], false, "0"),
        ] {
            let shown = AttributeText::of_integer(bytes, unsigned).unwrap();
            assert_eq!(shown.as_bytes(), text.as_bytes());
        }
        assert!(AttributeText::of_integer(&[0; 9], true).is_none());
    }
}
