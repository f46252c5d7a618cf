//! The trace that a statement belongs to, by the W3C's Trace Context: what sqlcommenter and drivers
//! write as `traceparent`, in a comment or as a query attribute.

use std::fmt;
use std::num::NonZero;

/// The trace-id of a `traceparent`. It holds nothing but a number, so it is safe in a log whoever
/// chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(NonZero<u128>);

/// The tag that carries it.
pub(super) const TRACEPARENT: &[u8] = b"traceparent";

/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const VERSION_0_LEN: usize = 55;

impl TraceId {
    /// Reads `VERSION-TRACEID-PARENTID-FLAGS` in lower-case hexadecimal. None for anything else:
    /// versions above 0 may have more behind the flags, as the specification wants it.
    #[must_use]
    pub fn of_traceparent(value: &[u8]) -> Option<Self> {
        let mut parts = value.splitn(5, |byte| *byte == b'-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let parent = hex(parts.next()?, 16)?;
        hex(parts.next()?, 2)?;
        let is_whole = match version {
            0 => value.len() == VERSION_0_LEN,
            255 => false,
            _ => true,
        };
        if !is_whole || parent == 0 {
            return None;
        }
        NonZero::new(trace).map(Self)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// So many digits, and no sign, prefix or capital among them.
fn hex(digits: &[u8], len: usize) -> Option<u128> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != len || !digits.iter().all(is_digit) {
        return None;
    }
    u128::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        TraceId::of_traceparent(value.as_bytes()).map(|id| id.to_string())
    }

    #[test]
    fn the_trace_of_a_traceparent_is_its_32_digits() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let expected = Some(trace.to_owned());
        assert_eq!(read(&format!("00-{trace}-b7ad6b7169203331-01")), expected);
        assert_eq!(read(&format!("00-{trace}-b7ad6b7169203331-00")), expected);
        // A later version may say more.
        assert_eq!(read(&format!("cc-{trace}-b7ad6b7169203331-01-what-the-future-says")), expected);
        let small = "00000000000000000000000000000001";
        assert_eq!(read(&format!("00-{small}-b7ad6b7169203331-01")), Some(small.to_owned()));
    }

    #[test]
    fn what_is_not_of_that_form_names_no_trace() {
        for value in [
            "",
            "00",
            "0af7651916cd43dd8448eb211c80319c",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319\u{1b}-b7ad6b7169203331-01",
        ] {
            assert_eq!(read(value), None, "{value:?}");
        }
    }
}
