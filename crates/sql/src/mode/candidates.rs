//! The modes in which a text is read when the server's is not known.
//!
//! Only what the text depends on is varied: without a backslash NO_BACKSLASH_ESCAPES says nothing,
//! without a double quote ANSI_QUOTES, and without a byte from 0x80 up almost no character set. So
//! at most 28 modes come of it, and one of almost every text.

use super::{Charset, LexMode, Setting};
use crate::lexer::is_swe7_letter;

impl LexMode {
    /// Every mode that may be the server's, as far as `text` depends on it. The first reads a text
    /// as [`LexMode::assumed`] does, but where that is not sure.
    pub(crate) fn candidates(self, text: &[u8]) -> impl Iterator<Item = Self> + use<> {
        const BOTH: &[Setting] = &[Setting::Off, Setting::On];
        let known = self.assumed();
        let both = |setting: Setting, byte: u8| {
            if setting == Setting::Unknown && memchr::memchr(byte, text).is_some() {
                BOTH
            } else {
                &[]
            }
        };
        let escapes = both(self.no_backslash_escapes, b'\\');
        let quotes = both(self.ansi_quotes, b'"');
        let charsets = Charsets::of(self.charset, text);
        let of = |known: Setting, both: &'static [Setting]| {
            std::iter::once(known).chain(both.iter().copied().filter(move |one| *one != known))
        };
        charsets.flat_map(move |charset| {
            of(known.no_backslash_escapes, escapes).flat_map(move |no_backslash_escapes| {
                of(known.ansi_quotes, quotes).map(move |ansi_quotes| Self {
                    no_backslash_escapes,
                    ansi_quotes,
                    charset,
                    server: self.server,
                })
            })
        })
    }
}

/// The character sets in which a text has to be read.
struct Charsets {
    all: [Option<Charset>; 7],
    at: usize,
}

impl Charsets {
    /// One, if it is known or all read the text in the same way. Otherwise those that stand for
    /// all: `SingleByte` for those of `Plain`, whose words are the same, `Sjis` for cp932, whose
    /// characters are, and `Gbk` for gb18030.
    fn of(charset: Charset, text: &[u8]) -> Self {
        let mut all = [None; 7];
        if let Some(first) = all.first_mut() {
            *first = Some(charset);
        }
        if charset != Charset::Unknown {
            return Self { all, at: 0 };
        }
        let has = |byte: u8| memchr::memchr(byte, text).is_some();
        let high = text.iter().any(|byte| *byte >= 0x80);
        let wide = high && text.windows(2).any(is_pair_that_differs);
        let if_any = |any: bool, charset: Charset| any.then_some(charset);
        let base = if high { Charset::SingleByte } else { Charset::Plain };
        Self {
            all: [
                Some(base),
                if_any(high && has(0xA0), Charset::Latin),
                if_any(high && has(0xFF), Charset::Dos),
                if_any(text.iter().copied().any(is_swe7_letter), Charset::Swe7),
                if_any(wide, Charset::Big5),
                if_any(wide, Charset::Sjis),
                if_any(wide, Charset::Gbk),
            ],
            at: 0,
        }
    }
}

impl Iterator for Charsets {
    type Item = Charset;

    fn next(&mut self) -> Option<Charset> {
        while let Some(charset) = self.all.get(self.at) {
            self.at = self.at.wrapping_add(1);
            if charset.is_some() {
                return *charset;
            }
        }
        None
    }
}

/// Whether `pair` may be one character whose second byte would mean something by itself: letters
/// behind a byte from 0x80 up belong to its word anyway.
fn is_pair_that_differs(pair: &[u8]) -> bool {
    matches!(pair, [0x80..=0xFF, 0x40 | 0x5B..=0x5E | 0x60 | 0x7B..=0x7E])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Server;

    fn count(text: &[u8], mode: LexMode) -> usize {
        mode.candidates(text).count()
    }

    #[test]
    fn a_text_is_read_as_often_as_it_depends_on_the_mode() {
        let unknown = LexMode::unknown(Server::Unknown);
        assert_eq!(count(b"SELECT 'x' FROM `t` WHERE a = 1", unknown), 1);
        assert_eq!(count(b"SELECT \"x\"", unknown), 2);
        assert_eq!(count(b"SELECT 'it\\'s'", unknown), 4, "swe7 has a letter there");
        assert_eq!(count("SELECT 'é'".as_bytes(), unknown), 1);
        assert_eq!(count(b"SELECT '\xE0\\'", unknown), 10);
        assert_eq!(count(b"\xA0\xFF\\\"", unknown), 28);
        assert_eq!(count(b"\xA0\xFF\\\"", LexMode::default()), 1);
        let known = LexMode { charset: Charset::Gbk, ..unknown };
        assert_eq!(count(b"\xA0\xFF\\\"", known), 4);
    }
}
