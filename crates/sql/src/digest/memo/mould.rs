//! A text without its values, to hold others against: comparing is cheaper than hashing.

use super::key::Extent;
use super::pieces::{Piece, Pieces, Quoting, Value};
use crate::mode::LexMode;

/// Texts that are longer are not kept as they are.
const LEN_MAX: usize = 512;

/// Values of such a text at most.
const VALUES_MAX: usize = 16;

/// A text without its values. Whatever fits it has the same digest.
#[derive(Debug, Default)]
pub struct Mould {
    mode: LexMode,
    /// What quotes are in that mode. `None`: nothing fits.
    quoting: Option<Quoting>,
    /// What is not left out.
    plain: Vec<u8>,
    /// What is, in the order of the text.
    gaps: Vec<Gap>,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Plain bytes before it, behind the gap before.
    plain: u16,
    value: Value,
}

impl Mould {
    /// Makes it that of `text`, as a server of `mode` reads it. False where a glance does not tell,
    /// or the text is long: then nothing fits it.
    pub fn cast(&mut self, text: &[u8], mode: LexMode) -> bool {
        self.plain.clear();
        self.gaps.clear();
        self.mode = mode;
        self.quoting = Quoting::of(mode).filter(|quoting| self.fill(text, *quoting).is_some());
        self.quoting.is_some()
    }

    /// Whether `text`, as a server of `mode` reads it, is this text with other values.
    #[inline]
    #[must_use]
    pub fn fits(&self, text: &[u8], mode: LexMode) -> bool {
        let Some(quoting) = self.quoting else { return false };
        let (mut rest, mut plain) = (text, self.plain.as_slice());
        for Gap { plain: len, value } in &self.gaps {
            let Some((before, behind)) = plain.split_at_checked(usize::from(*len)) else {
                return false;
            };
            let Some(at_value) = rest.strip_prefix(before) else { return false };
            let Some(behind_value) = value.strip(at_value, quoting) else { return false };
            (rest, plain) = (behind_value, behind);
        }
        rest == plain && self.mode == mode
    }

    fn fill(&mut self, text: &[u8], quoting: Quoting) -> Option<()> {
        let text = Some(text).filter(|text| text.len() <= LEN_MAX)?;
        let mut pieces = Pieces::new(text, quoting, Extent::Whole);
        let mut len = 0_u16;
        loop {
            let plain: &[u8] = match pieces.next()? {
                Piece::Plain(plain) => plain,
                Piece::Open => b"(",
                Piece::Close => b")",
                Piece::Minus => b"-",
                Piece::Semicolon => b";",
                Piece::Value(value) => {
                    if self.gaps.len() >= VALUES_MAX {
                        return None;
                    }
                    self.gaps.push(Gap { plain: std::mem::take(&mut len), value });
                    continue;
                }
                Piece::End => return Some(()),
            };
            self.plain.extend_from_slice(plain);
            len = len.checked_add(u16::try_from(plain.len()).ok()?)?;
        }
    }
}
