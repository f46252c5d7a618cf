//! The digests of texts that came before.
//!
//! Theory. Reading a digest takes some eighty instructions for each byte of a text, most of them to
//! find out what is a keyword. But applications send the same texts again, with other literals. So
//! a text is hashed in one pass that leaves out what a digest leaves out and can be told by a glance:
//! the digits of whole numbers, the insides of `'…'`, and `/* … */`. Two texts with one such hash
//! have one digest, because everything that is a token boundary or makes a name is hashed; where a
//! glance does not tell (executable comments, hints, line comments, dollar quotes, character sets
//! whose trail bytes may be quotes), there is no hash, and the digest is read.
//!
//! Hash and digest are kept in a table that all threads look at without a lock. An entry is two
//! words, written one after the other; the first is the hash xor the digest, so that a pair whose
//! halves come from two writers is taken for no entry (Hyatt and Mann, "A lockless transposition
//! table implementation for parallel search", ICGA Journal 25(1), 2002). A hash of 64 bits can be
//! made to collide by who wants to: what is counted by these digests may then be counted wrong,
//! nothing is admitted by them.
//!
//! Beside it stands which digests somebody has been told the text of, so that a text is made once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mode::{Charset, LexMode, Setting};

/// Texts that are remembered; others are read again. 128 KiB.
const TEXTS: usize = 8_192;

/// Digests with the same place.
const WAYS: usize = 8;

/// Places of digests that are remembered as told: 8,192 digests, 64 KiB.
const TOLD_SETS: usize = 1_024;

/// Texts that are longer are not looked up: hashing them would cost more than it saves, for texts
/// of thousands of values are hardly ever equal in all else.
const LEN_MAX: usize = 4 * 1024;

/// The digests of texts that came before, for all threads.
#[derive(Debug)]
pub struct DigestMemo {
    texts: Box<[Entry]>,
    told: Box<[[AtomicU64; WAYS]]>,
}

#[derive(Debug, Default)]
struct Entry {
    /// The text's hash xor `digest`.
    check: AtomicU64,
    digest: AtomicU64,
}

/// What stands for a text but for its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextKey(u64);

impl Default for DigestMemo {
    fn default() -> Self {
        Self {
            texts: std::iter::repeat_with(Entry::default).take(TEXTS).collect(),
            told: std::iter::repeat_with(Default::default).take(TOLD_SETS).collect(),
        }
    }
}

impl DigestMemo {
    /// The digest of a text that came before, if it has been told.
    #[must_use]
    pub fn get(&self, key: TextKey) -> Option<u64> {
        let entry = self.entry(key)?;
        let digest = entry.digest.load(Ordering::Relaxed);
        let is_its = entry.check.load(Ordering::Relaxed) ^ digest == key.0;
        (is_its && self.is_told(digest)).then_some(digest)
    }

    /// Keeps the digest of a text.
    pub fn put(&self, key: TextKey, digest: u64) {
        if let Some(entry) = self.entry(key) {
            entry.check.store(key.0 ^ digest, Ordering::Relaxed);
            entry.digest.store(digest, Ordering::Relaxed);
        }
    }

    /// Whether somebody has been told what the digest stands for.
    #[must_use]
    pub fn is_told(&self, digest: u64) -> bool {
        let ways = self.ways(digest).into_iter().flatten();
        ways.into_iter().any(|told| told.load(Ordering::Relaxed) == digest)
    }

    /// Somebody has.
    pub fn note_told(&self, digest: u64) {
        let Some(ways) = self.ways(digest) else { return };
        let free = ways.iter().find(|told| matches!(told.load(Ordering::Relaxed), 0));
        let at = usize::try_from(digest.wrapping_shr(61)).unwrap_or_default();
        if let Some(place) = free.or_else(|| ways.get(at)) {
            place.store(digest, Ordering::Relaxed);
        }
    }

    /// What was told is forgotten there: every digest is to be told again.
    pub fn forget_told(&self) {
        for told in self.told.iter().flatten() {
            told.store(0, Ordering::Relaxed);
        }
    }

    fn entry(&self, key: TextKey) -> Option<&Entry> {
        self.texts.get(place(key.0, self.texts.len()))
    }

    fn ways(&self, digest: u64) -> Option<&[AtomicU64; WAYS]> {
        self.told.get(place(digest, self.told.len()))
    }
}

/// The middle of the hash, whose lowest bits FNV mixes least.
fn place(hash: u64, len: usize) -> usize {
    usize::try_from(hash.wrapping_shr(20) & u64::from(u32::MAX))
        .unwrap_or_default()
        .checked_rem(len)
        .unwrap_or_default()
}

impl TextKey {
    /// What stands for `text` as a server of `mode` reads it. `None` where a glance does not tell.
    #[must_use]
    pub fn of(text: &[u8], mode: LexMode) -> Option<Self> {
        let backslash = match mode.no_backslash_escapes {
            Setting::Off => Backslash::Escapes,
            Setting::On => Backslash::IsPlain,
            Setting::Unknown => return None,
        };
        let double = match mode.ansi_quotes {
            Setting::Off => Double::Text,
            Setting::On => Double::Name,
            Setting::Unknown => return None,
        };
        let reads_bytewise =
            matches!(mode.charset, Charset::Plain | Charset::SingleByte | Charset::Latin);
        if !reads_bytewise || text.len() > LEN_MAX {
            return None;
        }
        let high_bytes_are_names = mode.charset != Charset::Latin;
        Glance { hash: SEED, rest: text, before: b' ', backslash, double, high_bytes_are_names }
            .key()
    }
}

/// What a backslash in a literal does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Escapes,
    IsPlain,
}

/// What stands in double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Double {
    Text,
    Name,
}

struct Glance<'t> {
    hash: u64,
    rest: &'t [u8],
    /// The byte before.
    before: u8,
    backslash: Backslash,
    double: Double,
    /// No byte from 0x80 up is white space.
    high_bytes_are_names: bool,
}

impl Glance<'_> {
    fn key(mut self) -> Option<TextKey> {
        while let [byte, rest @ ..] = self.rest {
            let byte = *byte;
            match (byte, rest) {
                (b'0'..=b'9', _) if !is_in_word(self.before) => {
                    self.number();
                    continue;
                }
                // A host behind @ is part of a name.
                (b'\'' | b'"', _) if self.before == b'@' => return None,
                (b'"', _) if self.double == Double::Name => self.name(byte)?,
                (b'\'' | b'"', _) => {
                    self.literal(byte)?;
                    continue;
                }
                (b'`', _) => self.name(byte)?,
                (b'/', [b'*', inside @ ..]) => {
                    self.rest = comment(inside)?;
                    self.put(b' ');
                    self.before = b' ';
                    continue;
                }
                (b'-', [b'-', ..]) | (b'#' | b'$' | b'\\' | 0, _) => return None,
                (0x80.., _) if !self.high_bytes_are_names => return None,
                _ => {}
            }
            if let [byte, rest @ ..] = self.rest {
                self.put(*byte);
                self.before = *byte;
                self.rest = rest;
            }
        }
        Some(TextKey(self.hash))
    }

    fn put(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(PRIME);
    }

    /// Digits that are a number for certain are left out; others are hashed, with what belongs to
    /// them.
    fn number(&mut self) {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        let ends = rest.first().is_none_or(|byte| !is_in_word(*byte));
        if ends {
            self.put(NUMBER);
        } else {
            digits.iter().for_each(|digit| self.put(*digit));
        }
        self.before = b'0';
        self.rest = rest;
    }

    /// A literal, from its first quote on. `None`: it has no end.
    fn literal(&mut self, quote: u8) -> Option<()> {
        let mut inside = self.rest.get(1..)?;
        loop {
            let [byte, rest @ ..] = inside else { return None };
            inside = match rest {
                [_, rest @ ..] if *byte == b'\\' && self.backslash == Backslash::Escapes => rest,
                [next, rest @ ..] if *byte == quote && *next == quote => rest,
                rest if *byte == quote => {
                    self.put(LITERAL);
                    self.put(quote);
                    self.before = quote;
                    self.rest = rest;
                    return Some(());
                }
                rest => rest,
            };
        }
    }

    /// Hashes a quoted name up to its last quote, which is left.
    fn name(&mut self, quote: u8) -> Option<()> {
        let inside = self.rest.get(1..)?;
        let len = inside.iter().position(|byte| *byte == quote)?;
        self.put(quote);
        for byte in inside.get(..len)? {
            self.put(*byte);
        }
        self.rest = inside.get(len..)?;
        Some(())
    }
}

/// What stands behind a comment that says nothing to the server, of which this is the inside.
fn comment(inside: &[u8]) -> Option<&[u8]> {
    if let [b'!' | b'+', ..] | [b'M', b'!', ..] = inside {
        return None;
    }
    let len = inside.array_windows().position(|pair| pair == b"*/")?;
    inside.get(len.checked_add(2)?..)
}

/// Whether a digit beside it may be part of a name, of a variable or of another number.
fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | b'.' | b'`' | 0x80..)
}

/// Stand for what is left out; no text has them (0 makes no key).
const NUMBER: u8 = 0;
const LITERAL: u8 = 1;

/// FNV-1a.
const SEED: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

#[cfg(test)]
mod tests;
