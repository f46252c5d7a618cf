//! A string literal of the statement, still in the bytes of the statement.

use crate::mode::{Charset, LexMode, Setting};

/// The body of a string literal, as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct SqlText<'t> {
    raw: &'t [u8],
    quote: u8,
    backslash: bool,
    charset: Charset,
}

/// Literals are equal when their bytes are, and are read in one way or hold nothing that is read
/// differently: a backslash, the quote of the other one doubled. In no character set does a quote
/// end a character of several bytes.
impl PartialEq for SqlText<'_> {
    fn eq(&self, other: &Self) -> bool {
        let Self { raw, quote, backslash, charset } = *self;
        let read_alike =
            (quote, backslash, charset) == (other.quote, other.backslash, other.charset);
        let holds_nothing = || self.plain().is_some() && other.plain().is_some();
        let only_quotes = || quote == other.quote && !raw.contains(&b'\\');
        raw == other.raw && (read_alike || holds_nothing() || only_quotes())
    }
}

impl Eq for SqlText<'_> {}

impl<'t> SqlText<'t> {
    /// The literal at `token`, quotes included.
    pub(crate) fn from_token(token: &'t [u8], mode: LexMode) -> Option<Self> {
        let (&quote, rest) = token.split_first()?;
        let (_, raw) = rest.split_last()?;
        let backslash = mode.no_backslash_escapes != Setting::On;
        Some(Self { raw, quote, backslash, charset: mode.charset })
    }

    /// The bytes between the quotes, escapes and all.
    #[must_use]
    pub fn raw(&self) -> &'t [u8] {
        self.raw
    }

    /// The value itself, if it holds no escape and so is the raw text.
    #[must_use]
    pub fn plain(&self) -> Option<&'t [u8]> {
        let escape = if self.backslash { b'\\' } else { self.quote };
        memchr::memchr2(escape, self.quote, self.raw).is_none().then_some(self.raw)
    }

    /// Whether a server that prepares it reads the bytes that stand here. MySQL converts the text to
    /// UTF-8 first and then reads it in the client's character set: what is no character takes the
    /// quote behind it with it, and the last byte of one may take a backslash; of armscii8 some become
    /// brackets and quotes.
    #[must_use]
    pub fn is_prepared_as_it_stands(&self) -> bool {
        match self.charset {
            Charset::SingleByte | Charset::Latin | Charset::Dos => true,
            Charset::Plain => std::str::from_utf8(self.raw).is_ok(),
            Charset::Euc
            | Charset::Armscii8
            | Charset::Big5
            | Charset::Cp932
            | Charset::Gbk
            | Charset::Sjis
            | Charset::Gb18030
            | Charset::Swe7
            | Charset::Unknown => self.raw.is_ascii(),
        }
    }

    /// Appends the value to `out`, escapes undone as the server's lexer does it.
    pub fn unescape_into(&self, out: &mut Vec<u8>) {
        let mut rest = self.raw;
        while let Some((&byte, tail)) = rest.split_first() {
            let step = self.charset.step(rest);
            if step > 1 {
                let (wide, after) = rest.split_at_checked(step).unwrap_or((rest, &[]));
                out.extend_from_slice(wide);
                rest = after;
                continue;
            }
            rest = tail;
            if byte == self.quote {
                out.push(byte);
                rest = tail.strip_prefix(&[self.quote]).unwrap_or(tail);
            } else if byte == b'\\' && self.backslash {
                let Some((&escaped, after)) = tail.split_first() else { return };
                push_escape(escaped, out);
                rest = after;
            } else {
                out.push(byte);
            }
        }
    }
}

/// Whether every server takes `name` for equal to no other but for the case of its letters: ASCII
/// letters, digits, `_`, `$` and, in names of user variables, `.`. Collations fold the rest.
pub(crate) fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte))
}

/// `\%` and `\_` keep their backslash: they are for LIKE.
fn push_escape(escaped: u8, out: &mut Vec<u8>) {
    match escaped {
        b'n' => out.push(b'\n'),
        b't' => out.push(b'\t'),
        b'r' => out.push(b'\r'),
        b'b' => out.push(0x08),
        b'0' => out.push(0),
        b'Z' => out.push(0x1A),
        b'_' | b'%' => out.extend_from_slice(&[b'\\', escaped]),
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(token: &[u8], mode: LexMode) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        SqlText::from_token(token, mode)?.unescape_into(&mut out);
        Some(out)
    }

    #[test]
    fn escapes_are_undone_as_the_server_does() {
        let mode = LexMode::default();
        assert_eq!(value(br"'a\'b''c\n\%\q'", mode), Some(b"a'b'c\n\\%q".to_vec()));
        assert_eq!(value(br#""a""b'c""#, mode), Some(br#"a"b'c"#.to_vec()));
        let plain = LexMode { no_backslash_escapes: Setting::On, ..mode };
        assert_eq!(value(br"'a\n'", plain), Some(br"a\n".to_vec()));
        let gbk = LexMode { charset: Charset::Gbk, ..mode };
        assert_eq!(value(b"'\x81\\n'", gbk), Some(b"\x81\\n".to_vec()));
    }

    #[test]
    fn literals_are_equal_when_every_way_to_read_them_gives_the_same() {
        let plain = LexMode { no_backslash_escapes: Setting::On, ..LexMode::default() };
        let gbk = LexMode { charset: Charset::Gbk, ..LexMode::default() };
        let equal = |one: &'static [u8], two: &'static [u8], mode| {
            let equal =
                SqlText::from_token(one, LexMode::default()) == SqlText::from_token(two, mode);
            let same = value(one, LexMode::default()) == value(two, mode);
            assert!(same || !equal, "{one:?} {two:?}");
            equal
        };
        for mode in [plain, gbk] {
            assert!(equal(b"'SELECT 1'''", b"'SELECT 1'''", mode));
            assert!(equal(b"'a'", b"\"a\"", mode));
            assert!(!equal(b"'a''b'", b"\"a''b\"", mode));
            assert!(!equal(b"'a'", b"'b'", mode));
        }
        assert!(!equal(br"'a\n'''", br"'a\n'''", plain));
        assert!(!equal(b"'\x81\\n'", b"'\x81\\n'", gbk));
        let gb18030 = LexMode { charset: Charset::Gb18030, ..LexMode::default() };
        for mode in [gbk, gb18030] {
            assert!(equal(b"'\x81'''", b"'\x81'''", mode));
            assert!(equal(b"'SELECT 1''\x80'", b"'SELECT 1''\x80'", mode));
        }
    }

    #[test]
    fn a_literal_without_escapes_is_borrowed() {
        let text = SqlText::from_token(b"'etl:nightly'", LexMode::default());
        assert_eq!(text.and_then(|text| text.plain()), Some(&b"etl:nightly"[..]));
        let text = SqlText::from_token(b"'a''b'", LexMode::default());
        assert_eq!(text.and_then(|text| text.plain()), None);
    }
}
