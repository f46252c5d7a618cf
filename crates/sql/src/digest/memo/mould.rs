//! A text without its values, to hold others against: comparing is cheaper than hashing, and than
//! reading.
//!
//! Theory. Two texts that one mould fits have the same tokens but for what is in numbers, literals
//! and comments, and but for how many values stand in a list behind IN or in the rows behind VALUES
//! that stand in no brackets. A digest leaves all of that out. What a text says about itself depends
//! on some of it: so [`crate::describe`] tells which texts say the same with any values
//! (module `describe::again`), and of the others only what has no values at all is kept.
//! Elsewhere the number of values counts: MariaDB's `POINT(1, 2)` is built in, `POINT(1)` calls.

use super::key::{Extent, hash};
use super::pieces::{Piece, Pieces, Quoting, Value, skip_rows};
use super::place;
use super::values::{Values, skip_values};
use crate::comments::Scratch;
use crate::describe::{Again, Statement};
use crate::lexer::CommentSink as _;
use crate::mode::LexMode;
use crate::survey::{CleanSurvey, Survey};

/// Texts that are longer are not kept, and fit nothing: digests are made of their fronts.
const LEN_MAX: usize = 4 * 1024;

/// Bytes that tell texts apart mostly: an INSERT's columns, or most of a join.
const HEAD_LEN: usize = 96;

/// Most bytes of a text that are kept as they are.
const PLAIN_MAX: usize = 512;

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
    /// What it begins with.
    head: TextHead,
    /// What whatever fits it says about itself.
    again: Option<Again>,
}

/// What a text begins with, behind comments and up to its first value, as a number: texts that fit one
/// mould have one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextHead(u64);

impl TextHead {
    /// Of `text` as a server of `mode` reads it. `None`: it fits no mould.
    #[must_use]
    pub fn of(text: &[u8], mode: LexMode) -> Option<Self> {
        let mut pieces = Pieces::new(text, Quoting::of(mode)?, Extent::Whole);
        let (mut head, mut len) = (0, 0_usize);
        while len < HEAD_LEN {
            match pieces.next()? {
                Piece::Plain(plain) => {
                    head = hash(plain, head);
                    len = len.saturating_add(plain.len());
                    // A list behind it is left out.
                    if ends_with_word(plain.trim_ascii_end(), b"VALUES")
                        || ends_with_word(plain.trim_ascii_end(), b"IN")
                    {
                        break;
                    }
                }
                Piece::Value(Value::Comment) if len <= 1 => {}
                Piece::Value(_) | Piece::End => break,
                Piece::Open | Piece::Close | Piece::Minus | Piece::Semicolon => {}
            }
        }
        Some(Self(head))
    }

    /// One of so many places, which all heads have alike.
    #[must_use]
    pub fn place(self, places: usize) -> usize {
        place(self.0, places)
    }
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Plain bytes before it, behind the gap before.
    plain: u16,
    filling: Filling,
}

/// What is left out.
#[derive(Debug, Clone, Copy)]
enum Filling {
    One(Value),
    /// A bracket with values and nothing else in it.
    List,
    /// The same, and those behind it.
    Rows,
}

impl Mould {
    /// Makes it that of `text`, as a server of `mode` reads it. False where a glance does not tell,
    /// or the text is long: then nothing fits it.
    pub fn cast(&mut self, text: &[u8], mode: LexMode) -> bool {
        self.plain.clear();
        self.gaps.clear();
        self.again = None;
        self.mode = mode;
        self.head = TextHead::of(text, mode).unwrap_or_default();
        self.quoting = Quoting::of(mode).filter(|quoting| self.fill(text, *quoting).is_some());
        self.quoting.is_some()
    }

    /// Notes what the text that it was cast of says, if all that fits says the same.
    pub fn note(&mut self, statement: &Statement<'_>) {
        self.again =
            statement.again().filter(|again| again.with_any_values || self.gaps.is_empty());
    }

    /// What `text`, which fits it, says about itself: what [`crate::describe`] says of it where it is
    /// whole. `None`: it is to be read.
    #[inline]
    pub fn describe<'t>(&self, text: &'t [u8], scratch: &'t mut Scratch) -> Option<Statement<'t>> {
        let again = self.again?;
        scratch.spans.clear();
        self.comments(text, scratch)?;
        scratch.remember(text);
        Some(again.statement(text, scratch))
    }

    /// What texts begin with that fit it.
    #[must_use]
    pub fn head(&self) -> TextHead {
        self.head
    }

    /// What guards look at in whatever fits it, of whose text that was found in which it was cast,
    /// if no guard could object to any. How many rows stand behind VALUES does not matter where no
    /// tables are named in a row: in an INSERT that reads nothing.
    #[must_use]
    pub fn clean(&self, survey: &Survey) -> Option<CleanSurvey> {
        let is_rows = |gap: &Gap| matches!(gap.filling, Filling::Rows);
        let begins = |verb: &[u8]| {
            self.plain.get(..verb.len()).is_some_and(|first| first.eq_ignore_ascii_case(verb))
        };
        let inserts = begins(b"INSERT ") || begins(b"REPLACE ");
        let alike = !self.gaps.iter().any(is_rows) || (inserts && !survey.has_from);
        survey.clean().filter(|_| alike && self.again.is_some())
    }

    /// Whether `text`, as a server of `mode` reads it, is this text with other values.
    #[inline]
    #[must_use]
    pub fn fits(&self, text: &[u8], mode: LexMode) -> bool {
        let Some(quoting) = self.quoting else { return false };
        let (mut rest, mut plain) = (text, self.plain.as_slice());
        for Gap { plain: len, filling } in &self.gaps {
            let Some((before, behind)) = plain.split_at_checked(usize::from(*len)) else {
                return false;
            };
            let Some(at_value) = rest.strip_prefix(before) else { return false };
            let Some(behind_value) = filling.strip(at_value, quoting) else { return false };
            (rest, plain) = (behind_value, behind);
        }
        rest.len() == plain.len()
            && (rest.is_empty() || rest == plain)
            && text.len() <= LEN_MAX
            && self.mode == mode
    }

    /// Notes where the comments of a text stand that fits.
    fn comments(&self, text: &[u8], scratch: &mut Scratch) -> Option<()> {
        let is_comment = |gap: &Gap| matches!(gap.filling, Filling::One(Value::Comment));
        if !self.gaps.iter().any(is_comment) {
            return Some(());
        }
        let mut spans = &mut scratch.spans;
        let mut rest = text;
        for gap in &self.gaps {
            let at_value = rest.get(usize::from(gap.plain)..)?;
            rest = gap.filling.strip(at_value, self.quoting?)?;
            if is_comment(gap) {
                let from_end = |rest: &[u8]| text.len().checked_sub(rest.len());
                spans.comment(from_end(at_value)?, from_end(rest)?);
            }
        }
        Some(())
    }

    fn fill(&mut self, text: &[u8], quoting: Quoting) -> Option<()> {
        let text = Some(text).filter(|text| text.len() <= LEN_MAX)?;
        let mut pieces = Pieces::new(text, quoting, Extent::Whole);
        let mut depth = 0_usize;
        let mut len = 0_u16;
        loop {
            let plain: &[u8] = match pieces.next()? {
                Piece::Plain(plain) => plain,
                Piece::Open => {
                    let filling = if depth == 0 { self.list(len, &mut pieces) } else { None };
                    if let Some(filling) = filling {
                        self.leave_out(&mut len, filling)?;
                        continue;
                    }
                    depth = depth.saturating_add(1);
                    b"("
                }
                Piece::Close => {
                    depth = depth.saturating_sub(1);
                    b")"
                }
                Piece::Minus => b"-",
                Piece::Semicolon => b";",
                Piece::Value(value) => {
                    self.leave_out(&mut len, Filling::One(value))?;
                    continue;
                }
                Piece::End => return Some(()),
            };
            self.plain.extend_from_slice(plain);
            len = len.checked_add(u16::try_from(plain.len()).ok()?)?;
            if self.plain.len() > PLAIN_MAX {
                return None;
            }
        }
    }

    /// What a bracket holds that has just been opened behind so many plain bytes, if that is left out.
    fn list(&self, plain: u16, pieces: &mut Pieces<'_>) -> Option<Filling> {
        let from = self.plain.len().checked_sub(usize::from(plain))?;
        let before = self.plain.get(from..)?.trim_ascii_end();
        let filling = if ends_with_word(before, b"VALUES") {
            Filling::Rows
        } else if ends_with_word(before, b"IN") {
            Filling::List
        } else {
            return None;
        };
        match (pieces.skip_values()?, filling) {
            (Values::Closed, Filling::Rows) => pieces.skip_rows(),
            (Values::Closed, Filling::List | Filling::One(_)) => {}
            (Values::Cut, _) => return None,
        }
        Some(filling)
    }

    fn leave_out(&mut self, plain: &mut u16, filling: Filling) -> Option<()> {
        if self.gaps.len() >= VALUES_MAX {
            return None;
        }
        self.gaps.push(Gap { plain: std::mem::take(plain), filling });
        Some(())
    }
}

impl Filling {
    /// The text behind what is left out, with which it begins. `None`: it does not.
    #[inline(always)]
    fn strip(self, text: &[u8], quoting: Quoting) -> Option<&[u8]> {
        let rows = match self {
            Self::One(value) => return value.strip(text, quoting),
            Self::List => false,
            Self::Rows => true,
        };
        let list = text.strip_prefix(b"(")?;
        let (_, behind) = skip_values(list, quoting, Extent::Whole)?;
        Some(if rows { skip_rows(behind, quoting, Extent::Whole) } else { behind })
    }
}

/// Whether `text` ends with this word, before which white space or a bracket stands.
fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    let Some((before, last)) = text.split_at_checked(at) else { return false };
    last.eq_ignore_ascii_case(word)
        && matches!(before.last(), Some(b' ' | b'\n' | b'\t' | b'\r' | b')'))
}
