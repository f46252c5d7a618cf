//! A text in pieces: what its digest leaves out and a glance can tell, and all else.
//!
//! What is left out are whole and decimal numbers, the insides of `'…'`, and `/* … */`. Everything
//! that is a token boundary or makes a name is in a plain piece. Where a glance does not tell
//! (executable comments, hints, line comments, dollar quotes, character sets whose trail bytes may
//! be quotes) there are no pieces.

use super::key::Extent;
use super::values::{Values, skip_values};
use crate::mode::{Charset, LexMode, Setting};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// It counts as it stands.
    Plain(&'t [u8]),
    /// Some value of this kind.
    Value(Value),
    Open,
    Close,
    /// A minus, which may belong to the number behind it.
    Minus,
    Semicolon,
    /// Nothing more.
    End,
}

/// What is left out of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// `1`, `1.5`; the sign is none of it.
    Number,
    /// A literal in these quotes.
    Text(u8),
    /// A comment that says nothing to the server.
    Comment,
}

/// What quotes and backslashes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quoting {
    /// A backslash in a literal is an ordinary byte.
    plain_backslash: bool,
    /// `"x"` is a name.
    pub(super) names_in_quotes: bool,
    /// No byte from 0x80 up is white space.
    high_bytes_are_names: bool,
}

impl Quoting {
    /// `None`: a glance at a text of this mode does not tell.
    pub(super) fn of(mode: LexMode) -> Option<Self> {
        let known = |setting: Setting| match setting {
            Setting::Off => Some(false),
            Setting::On => Some(true),
            Setting::Unknown => None,
        };
        let high_bytes_are_names = match mode.charset {
            Charset::Plain | Charset::Euc | Charset::SingleByte => true,
            Charset::Latin | Charset::Armscii8 => false,
            Charset::Dos
            | Charset::Swe7
            | Charset::Big5
            | Charset::Cp932
            | Charset::Gbk
            | Charset::Sjis
            | Charset::Gb18030
            | Charset::Unknown => return None,
        };
        Some(Self {
            plain_backslash: known(mode.no_backslash_escapes)?,
            names_in_quotes: known(mode.ansi_quotes)?,
            high_bytes_are_names,
        })
    }
}

/// Takes a text apart, from its beginning on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces<'t> {
    rest: &'t [u8],
    /// The byte before, or one that separates as well.
    before: u8,
    quoting: Quoting,
    extent: Extent,
}

impl<'t> Pieces<'t> {
    pub(super) fn new(text: &'t [u8], quoting: Quoting, extent: Extent) -> Self {
        Self { rest: text, before: b' ', quoting, extent }
    }

    /// What has not been taken.
    pub(super) fn rest(&self) -> &'t [u8] {
        self.rest
    }

    /// Behind an opened bracket: passes what is in it and its end, if that is values and nothing else.
    pub(super) fn skip_values(&mut self) -> Option<Values> {
        let (values, behind) = skip_values(self.rest, self.quoting, self.extent)?;
        self.rest = behind;
        self.before = b' ';
        Some(values)
    }

    /// Behind a row of values: passes those that follow and are whole.
    pub(super) fn skip_rows(&mut self) {
        self.rest = skip_rows(self.rest, self.quoting, self.extent);
    }

    /// Passes so many bytes, of which the last is no part of any word.
    fn skip(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
        self.before = b' ';
    }

    /// The next piece. `None`: a glance does not tell, here or for the text as a whole.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Piece<'t>> {
        let len = plain_len(self.rest);
        if len > 0 {
            return Some(self.plain(len));
        }
        let Some(&byte) = self.rest.first() else { return Some(Piece::End) };
        match byte {
            b'(' => Some(self.single(Piece::Open)),
            b')' => Some(self.single(Piece::Close)),
            b'0'..=b'9' => match behind_number(self.rest).filter(|_| !is_in_word(self.before)) {
                Some(behind) => {
                    self.rest = behind;
                    self.before = b' ';
                    Some(Piece::Value(Value::Number))
                }
                None => Some(self.plain(digits_len(self.rest))),
            },
            // A host behind @ is part of a name.
            b'\'' | b'"' if self.before == b'@' => None,
            b'"' if self.quoting.names_in_quotes => self.name(byte),
            b'\'' | b'"' => {
                let len = match (literal_len(self.rest, byte, self.quoting), self.extent) {
                    (Some(len), _) => len,
                    // It is cut.
                    (None, Extent::Front) => self.rest.len(),
                    (None, Extent::Whole) => return None,
                };
                Some(self.value(Value::Text(byte), len))
            }
            b'`' => self.name(byte),
            b'/' if self.rest.get(1) == Some(&b'*') => {
                let len = comment_len(self.rest)?;
                Some(self.value(Value::Comment, len))
            }
            b'/' => Some(self.plain(1)),
            b';' => Some(self.single(Piece::Semicolon)),
            b'-' if self.rest.get(1) == Some(&b'-') => None,
            b'-' => Some(self.single(Piece::Minus)),
            0x80.. if self.quoting.high_bytes_are_names => {
                let len = self.rest.iter().position(|byte| *byte < 0x80);
                Some(self.plain(len.unwrap_or(self.rest.len())))
            }
            // `#`, `$`, `\`, NUL, and what may be white space.
            _ => None,
        }
    }

    /// So many bytes, and the rest of the word that they end in.
    #[inline(always)]
    fn plain(&mut self, len: usize) -> Piece<'t> {
        let mut len = len;
        while let Some(b'0'..=b'9') = self.rest.get(len)
            && let Some(before) = self.rest.get(len.wrapping_sub(1))
            && is_in_word(*before)
        {
            let behind = self.rest.get(len..).unwrap_or_default();
            let digits = digits_len(behind);
            let more = plain_len(behind.get(digits..).unwrap_or_default());
            len = len.saturating_add(digits).saturating_add(more);
        }
        let (plain, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        self.before = plain.last().copied().unwrap_or(b' ');
        self.rest = rest;
        Piece::Plain(plain)
    }

    fn single(&mut self, piece: Piece<'t>) -> Piece<'t> {
        self.skip(1);
        piece
    }

    fn value(&mut self, value: Value, len: usize) -> Piece<'t> {
        self.skip(len);
        // A number or a name may stand behind a literal or a comment, but not behind a number.
        Piece::Value(value)
    }

    /// A quoted name up to its last quote, with it.
    fn name(&mut self, quote: u8) -> Option<Piece<'t>> {
        let inside = self.rest.get(1..)?;
        let len = memchr::memchr(quote, inside)?;
        Some(self.plain(len.checked_add(2)?))
    }
}

/// What stands behind the rows of values that are whole and follow one.
pub(super) fn skip_rows(text: &[u8], quoting: Quoting, extent: Extent) -> &[u8] {
    let mut rest = text;
    while let [b',', b'(', row @ ..] | [b',', b' ' | b'\n', b'(', row @ ..] = rest
        && let Some((Values::Closed, behind)) = skip_values(row, quoting, extent)
    {
        rest = behind;
    }
    rest
}

impl Value {
    /// The text behind a value of this kind, with which it begins. `None`: it does not.
    #[inline(always)]
    pub(super) fn strip(self, text: &[u8], quoting: Quoting) -> Option<&[u8]> {
        let len = match self {
            Self::Number => return behind_number(text),
            Self::Text(quote) if text.first() == Some(&quote) => literal_len(text, quote, quoting)?,
            Self::Text(_) => return None,
            Self::Comment if text.starts_with(b"/*") => comment_len(text)?,
            Self::Comment => return None,
        };
        text.get(len..)
    }
}

/// What stands behind a number, if that is no part of it for certain.
#[inline(always)]
pub(super) fn behind_number(text: &[u8]) -> Option<&[u8]> {
    let behind = behind_digits(text);
    let is_number = behind.len() < text.len();
    match behind {
        [b'.', fraction @ ..] => {
            let behind = behind_digits(fraction);
            let ends = behind.first().is_none_or(|byte| !is_in_word(*byte));
            (is_number && ends).then_some(behind)
        }
        [byte, ..] if is_in_word(*byte) => None,
        _ => is_number.then_some(behind),
    }
}

#[inline(always)]
fn behind_digits(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let [b'0'..=b'9', behind @ ..] = rest {
        rest = behind;
    }
    rest
}

#[inline(always)]
fn digits_len(text: &[u8]) -> usize {
    text.len().saturating_sub(behind_digits(text).len())
}

/// The length of a literal with its quotes. `None`: it has no end.
pub(super) fn literal_len(text: &[u8], quote: u8, quoting: Quoting) -> Option<usize> {
    let escape = if quoting.plain_backslash { quote } else { b'\\' };
    let mut at = 1_usize;
    loop {
        let inside = text.get(at..)?;
        let found = find_either(inside, quote, escape)?;
        let behind = inside.get(found.checked_add(1)?..)?;
        let is_end = inside.get(found) == Some(&quote) && behind.first() != Some(&quote);
        at = at.checked_add(found)?.checked_add(1)?;
        if is_end {
            return Some(at);
        }
        // What is escaped, which may be the second of two quotes.
        at = at.checked_add(1)?;
        if behind.is_empty() {
            return None;
        }
    }
}

/// Where the first of two bytes stands. Most literals are short: their first bytes are looked at
/// eight at a time, which takes as long as a call for more.
#[inline(always)]
fn find_either(text: &[u8], one: u8, other: u8) -> Option<usize> {
    let (words, _) = text.as_chunks::<8>();
    let mut at = 0_usize;
    for word in words.iter().take(SHORT) {
        let word = u64::from_le_bytes(*word);
        let hits = zeros(word ^ splat(one)) | zeros(word ^ splat(other));
        if hits != 0 {
            return at.checked_add(usize::try_from(hits.trailing_zeros() / 8).ok()?);
        }
        at = at.wrapping_add(8);
    }
    at.checked_add(memchr::memchr2(one, other, text.get(at..)?)?)
}

/// Words of a literal that are looked at here.
const SHORT: usize = 2;

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// A bit for the first byte that is zero, and for some behind it (Mycroft's; Warren, Hacker's
/// Delight, 6-1).
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(splat(1)) & !word & splat(0x80)
}

/// The length of a comment that says nothing to the server.
fn comment_len(text: &[u8]) -> Option<usize> {
    let inside = text.get(2..)?;
    if let [b'!' | b'+', ..] | [b'M', b'!', ..] = inside {
        return None;
    }
    let mut at = 2_usize;
    loop {
        at = at.checked_add(memchr::memchr(b'*', text.get(at..)?)?)?.checked_add(1)?;
        if text.get(at) == Some(&b'/') {
            return at.checked_add(1);
        }
    }
}

/// The bytes at the beginning that are plain whatever stands beside them.
#[inline(always)]
fn plain_len(text: &[u8]) -> usize {
    let mut len = 0_usize;
    let mut rest = text;
    while let [a, b, c, d, behind @ ..] = rest {
        match [is_plain(*a), is_plain(*b), is_plain(*c), is_plain(*d)] {
            [true, true, true, true] => {
                len = len.wrapping_add(4);
                rest = behind;
            }
            [false, ..] => return len,
            [_, false, ..] => return len.wrapping_add(1),
            [_, _, false, _] => return len.wrapping_add(2),
            [_, _, _, false] => return len.wrapping_add(3),
        }
    }
    for byte in rest {
        if !is_plain(*byte) {
            break;
        }
        len = len.wrapping_add(1);
    }
    len
}

#[inline(always)]
fn is_plain(byte: u8) -> bool {
    PLAIN.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Whether a digit beside it may be part of a name, of a variable or of another number.
#[inline(always)]
fn is_in_word(byte: u8) -> bool {
    IN_WORD.get(usize::from(byte)).copied().unwrap_or(true)
}

static PLAIN: [bool; 256] = table(false);
static IN_WORD: [bool; 256] = table(true);

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn table(in_word: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    let mut at = 0_usize;
    while at < 256 {
        table[at] = if in_word {
            matches!(byte, b'_' | b'$' | b'@' | b'.' | b'`' | 0x80..)
                || byte.is_ascii_alphanumeric()
        } else {
            !matches!(byte, b'0'..=b'9' | b'(' | b')' | b'\'' | b'"' | b'`' | b'/' | b'-')
                && !matches!(byte, b';' | b'#' | b'$' | b'\\' | 0 | 0x80..)
        };
        at += 1;
        byte = byte.wrapping_add(1);
    }
    table
}
