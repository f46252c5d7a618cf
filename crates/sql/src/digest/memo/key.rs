//! One number for a text without its values.
//!
//! Two texts with one key have one digest, because everything that is a token boundary or makes a
//! name is hashed. Two things are folded, as the digest folds them: a bracket with nothing but values
//! in it, however many, and a row behind a comma that is like the row before. So an INSERT has one
//! key, whatever the number of its rows.

use super::mix;
use super::pieces::{Piece, Pieces, Quoting, Value};
use super::values::Values;
use crate::mode::LexMode;

/// Texts that are longer have no key.
const LEN_MAX: usize = 4 * 1024;

/// Deepest nesting of brackets in a text that has a key.
const DEPTH: usize = 8;

/// What stands for a text but for its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextKey(pub(super) u64);

/// Whether a text goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// It is whole, and its digest is [`crate::digest`].
    Whole,
    /// It is the front of a longer one, and its digest is [`crate::digest_front`].
    Front,
}

impl TextKey {
    /// What stands for `text` as a server of `mode` reads it. `None` where a glance does not tell.
    #[must_use]
    pub fn of(text: &[u8], mode: LexMode, extent: Extent) -> Option<Self> {
        let quoting = Quoting::of(mode)?;
        if text.len() > LEN_MAX {
            return None;
        }
        Glance::new(Pieces::new(text, quoting, extent), extent).key()
    }
}

/// A row that is closed.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// What stands for what is in it.
    inside: u64,
    /// What stands for everything up to its end.
    after: u64,
    /// A comma, and nothing else, stands behind it.
    comma: bool,
}

/// An open bracket, or the text itself.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// What stands for everything before it.
    before: u64,
    /// Nothing but values and what separates them so far.
    pure: bool,
    values: bool,
    /// A comma, or nothing, stands before what comes next: a minus there is a sign.
    separated: bool,
    /// The row before it.
    follows: Option<Row>,
    /// The bracket just closed inside it.
    latest: Option<Row>,
}

struct Glance<'t> {
    pieces: Pieces<'t>,
    extent: Extent,
    /// What stands for what came since the innermost bracket was opened.
    hash: u64,
    groups: [Group; DEPTH],
    depth: usize,
}

impl<'t> Glance<'t> {
    fn new(pieces: Pieces<'t>, extent: Extent) -> Self {
        let hash = match extent {
            Extent::Whole => WHOLE,
            Extent::Front => FRONT,
        };
        Self { pieces, extent, hash, groups: [Group::default(); DEPTH], depth: 0 }
    }

    fn key(mut self) -> Option<TextKey> {
        loop {
            match self.pieces.next()? {
                Piece::Plain(plain) => self.plain(plain),
                Piece::Value(value) => self.value(value)?,
                Piece::Minus => self.minus()?,
                Piece::Semicolon => self.semicolon()?,
                Piece::Open => self.open()?,
                Piece::Close => self.close()?,
                Piece::End => return self.end(),
            }
        }
    }

    fn plain(&mut self, plain: &[u8]) {
        let is_comma = matches!(plain, b"," | b", " | b",\n");
        if let Some(group) = self.groups.get_mut(self.depth) {
            group.pure &= is_comma || (group.pure && separates(plain));
            group.separated = is_comma
                || plain.trim_ascii_end().last().map_or(group.separated, |last| *last == b',');
            let latest = group.latest.filter(|row| is_comma && !row.comma);
            group.latest = latest.map(|row| Row { comma: true, ..row });
        }
        self.hash = hash(plain, self.hash);
    }

    fn value(&mut self, value: Value) -> Option<()> {
        let group = self.groups.get_mut(self.depth)?;
        group.latest = None;
        let mark = match value {
            Value::Number => NUMBER,
            Value::Text(quote) => TEXT ^ u64::from(quote),
            Value::Comment => COMMENT,
        };
        if value != Value::Comment {
            (group.values, group.separated) = (true, false);
        }
        self.hash = mix(self.hash ^ mark);
        Some(())
    }

    /// `None`: it stands in a bracket, and no server reads on.
    fn semicolon(&mut self) -> Option<()> {
        self.groups.get_mut(0).filter(|_| self.depth == 0)?.latest = None;
        self.hash = mix(self.hash ^ SEMICOLON);
        Some(())
    }

    /// A sign, if a number follows and no value stands before it.
    fn minus(&mut self) -> Option<()> {
        let is_sign = self.pieces.rest().first().is_some_and(u8::is_ascii_digit);
        let group = self.groups.get_mut(self.depth)?;
        group.pure &= is_sign && group.separated;
        group.separated = false;
        group.latest = None;
        self.hash = mix(self.hash ^ MINUS);
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        let outer = self.groups.get_mut(self.depth)?;
        outer.pure = false;
        let follows = outer.latest.filter(|row| row.comma);
        self.depth = self.depth.checked_add(1)?;
        let before = self.hash;
        *self.groups.get_mut(self.depth)? =
            Group { before, pure: true, separated: true, follows, ..Group::default() };
        self.hash = INSIDE;
        // Values are passed at once, with the rows behind them that have nothing but values too.
        let skipped = match follows {
            Some(row) if row.inside != VALUES => None,
            Some(_) | None => self.pieces.skip_values(),
        };
        if let Some(values) = skipped {
            self.groups.get_mut(self.depth)?.values = true;
            match values {
                Values::Closed => {
                    self.close()?;
                    self.pieces.skip_rows();
                }
                Values::Cut if self.depth == 1 => {}
                // What was passed would count.
                Values::Cut => return None,
            }
        }
        Some(())
    }

    /// What stands for what is in a bracket that ends here.
    fn inside(&self, group: &Group) -> u64 {
        if group.pure && group.values { VALUES } else { self.hash }
    }

    /// `None`: this bracket was never opened.
    fn close(&mut self) -> Option<()> {
        let group = *self.groups.get(self.depth).filter(|_| self.depth > 0)?;
        let inside = self.inside(&group);
        self.hash = match group.follows {
            Some(row) if row.inside == inside => row.after,
            Some(_) | None => mix(mix(group.before ^ CLOSE) ^ inside),
        };
        let after = self.hash;
        self.depth = self.depth.saturating_sub(1);
        let outer = self.groups.get_mut(self.depth)?;
        outer.latest = Some(Row { inside, after, comma: false });
        Some(())
    }

    fn end(mut self) -> Option<TextKey> {
        match (self.depth, self.extent) {
            (0, _) => Some(TextKey(self.hash)),
            (_, Extent::Whole) => None,
            (_, Extent::Front) => {
                // As the digest of a front has it: what is open and follows a row is left out.
                if let Some(row) = self.groups.get(1).and_then(|group| group.follows) {
                    return Some(TextKey(row.after));
                }
                let outermost = self.depth == 1;
                while let Some(group) = self.groups.get(self.depth).filter(|_| self.depth > 0) {
                    // Deeper ones are cut as they stand.
                    let group = Group { pure: group.pure && outermost, ..*group };
                    self.hash = mix(mix(group.before ^ OPEN) ^ self.inside(&group));
                    self.depth = self.depth.saturating_sub(1);
                }
                Some(TextKey(self.hash))
            }
        }
    }
}

/// Whether it is nothing but commas, white space and NULL, which is a value.
fn separates(plain: &[u8]) -> bool {
    let mut parts = plain.split(|byte| *byte == b',');
    plain == b" "
        || parts.all(|part| {
            let part = part.trim_ascii();
            part.is_empty() || part.eq_ignore_ascii_case(b"NULL")
        })
}

/// What stands for these bytes behind others.
#[inline(always)]
pub(super) fn hash(bytes: &[u8], before: u64) -> u64 {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut hash = mix(before ^ PLAIN ^ len);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    if rest.is_empty() {
        return hash;
    }
    let last = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0_u64, |word, byte| word.wrapping_shl(8) | u64::from(*byte)),
    };
    mix(hash ^ last)
}

/// Digits of pi: each stands for something else.
const WHOLE: u64 = 0x243F_6A88_85A3_08D3;
const FRONT: u64 = 0x1319_8A2E_0370_7344;
const PLAIN: u64 = 0xA409_3822_299F_31D0;
const NUMBER: u64 = 0x082E_FA98_EC4E_6C89;
const TEXT: u64 = 0x4528_21E6_38D0_1377;
const COMMENT: u64 = 0xBE54_66CF_34E9_0C6C;
const SEMICOLON: u64 = 0xC0AC_29B7_C97C_50DD;
const MINUS: u64 = 0x3F84_D5B5_B547_0917;
const INSIDE: u64 = 0x9216_D5D9_8979_FB1B;
const VALUES: u64 = 0xD131_0BA6_98DF_B5AC;
const CLOSE: u64 = 0x2FFD_72DB_D01A_DFB7;
const OPEN: u64 = 0xB8E1_AFED_6A26_7E96;
