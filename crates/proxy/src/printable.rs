//! Names that clients choose, as a line of the log shows them.

use std::fmt::{self, Write as _};

/// A name that a client chose. Shown as it is when it can be nothing but one word; otherwise in
/// quotes and escaped, so that it neither begins a line of its own nor passes for another field of
/// this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printable<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        let shown = name.get(..SHOWN_LEN_MAX).unwrap_or(name);
        let rest = if shown.len() < name.len() { "…" } else { "" };
        if rest.is_empty() && !shown.is_empty() && shown.iter().all(|byte| is_plain(*byte)) {
            return shown.iter().try_for_each(|byte| f.write_char(char::from(*byte)));
        }
        write!(f, "\"{}{rest}\"", String::from_utf8_lossy(shown).escape_debug())
    }
}

/// Longer ones than this are cut: a client may call itself whatever fits into its first packet.
const SHOWN_LEN_MAX: usize = 256;

/// Whether a byte needs no quotes.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:@/%*+".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &[u8]) -> String {
        Printable(name).to_string()
    }

    #[test]
    fn a_word_is_shown_as_it_is() {
        for name in ["etl", "job:etl-7", "app@10.0.0.1", "d666bbfc_169e:online-ddl", "a/b.c%d"] {
            assert_eq!(shown(name.as_bytes()), name);
        }
    }

    #[test]
    fn a_name_is_never_a_line_nor_another_field() {
        assert_eq!(shown(b"x\nINFO all is well"), r#""x\nINFO all is well""#);
        assert_eq!(shown(b"x\r\n\t\x1b[2J"), r#""x\r\n\t\u{1b}[2J""#);
        assert_eq!(shown(b"x reason=deny"), r#""x reason=deny""#);
        assert_eq!(shown(b"a=b"), r#""a=b""#);
        assert_eq!(shown(br#"x" y="z"#), r#""x\" y=\"z""#);
        assert_eq!(shown(b""), r#""""#);
        assert_eq!(shown("j\u{f6}rg".as_bytes()), "\"j\u{f6}rg\"");
        assert_eq!(shown("a\u{2028}b\u{202e}c".as_bytes()), r#""a\u{2028}b\u{202e}c""#);
        assert_eq!(shown(b"a\xffb"), "\"a\u{fffd}b\"");
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = shown(&[b'x'; 100_000]);
        assert!(long.len() < 300 && long.ends_with("…\""), "{long}");
    }
}
