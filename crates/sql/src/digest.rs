//! What a statement looks like without its values.
//!
//! The text follows MySQL's DIGEST_TEXT closely enough to be matched by eye: literals are `?`,
//! a list of nothing but literals is `(...)`, literals one behind the other in a list of other things
//! too are `?, ...`, equal rows one behind the other are one, comments are
//! gone, keywords are upper case, names stand as written and lose their quotes where they can.
//! The hash is not the server's: that one depends on the token numbers of its grammar.

mod keywords;
mod memo;

use std::borrow::Cow;

use crate::{
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::LexMode,
};
use keywords::{is_keyword, key};

pub use memo::{DigestMemo, Extent, Mould, TextHead, TextKey};

/// The bytes of a text that its digest is made of; what comes behind them does not count.
pub const DIGEST_TEXT_MAX: usize = 256 * 1024;
/// Deepest nesting of brackets in which lists are collapsed.
const GROUPS_MAX: usize = 32;

/// Writes the normalised text of `text` into `out`, which is cleared first, and gives its hash:
/// FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), stable over releases and machines.
pub fn digest(text: &[u8], mode: LexMode, out: &mut Vec<u8>) -> u64 {
    Writer::new(text, mode, out).text();
    fnv1a(out)
}

/// The text of a digest as SQL that can be read again: a value or two stand for as many as there were.
#[must_use]
pub fn readable_digest(text: &str) -> Cow<'_, str> {
    if text.contains("...") {
        Cow::Owned(text.replace("(...)", "(?)").replace("?, ...", "?, ?"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for the front of a longer text. A list of values, or of rows, that the cut has left open
/// ends with what is whole of it, so that the front of a long INSERT has the digest of a short one.
pub fn digest_front(front: &[u8], mode: LexMode, out: &mut Vec<u8>) -> u64 {
    let mut writer = Writer::new(front, mode, out);
    writer.text();
    writer.cut();
    fnv1a(out)
}

/// Whether `word` is reserved in MySQL or MariaDB, or begins a statement, in any case.
pub(crate) fn is_reserved(word: &[u8]) -> bool {
    is_keyword(word, key(word))
}

/// Hash of `bytes`, FNV-1a with 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// What was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Start,
    Keyword,
    /// IS or NOT, behind which NULL is no value.
    NullTest,
    /// A name or a variable.
    Operand,
    Literal,
    /// `(`, `.`, `@@`: what follows stands close.
    Glue,
    Close,
    Other,
}

/// An open bracket.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Where it stands in the output.
    start: usize,
    /// Nothing but literals and commas so far.
    pure: bool,
    literals: bool,
    /// The bracket just before, behind a comma, at the same depth.
    follows: Option<(usize, usize)>,
    /// The latest bracket closed inside this one.
    latest: Option<(usize, usize)>,
}

struct Writer<'t, 'o> {
    lexer: Lexer<'t, NoComments>,
    out: &'o mut Vec<u8>,
    /// The open brackets; the first is the text itself.
    groups: [Group; GROUPS_MAX],
    depth: usize,
    before: Before,
    before_token: Token,
    /// Where the latest token begins in the output, its space included.
    before_at: usize,
    /// A sign that belongs to the number that may follow, and where it was written.
    sign_at: Option<usize>,
    /// The letter of a literal has been left out, whose quotes come next.
    in_literal: bool,
}

impl<'t, 'o> Writer<'t, 'o> {
    fn new(text: &'t [u8], mode: LexMode, out: &'o mut Vec<u8>) -> Self {
        out.clear();
        let text = text.get(..text.len().min(DIGEST_TEXT_MAX)).unwrap_or_default();
        Self {
            lexer: Lexer::new(text, mode, Reading::first(mode), NoComments),
            out,
            groups: [Group::default(); GROUPS_MAX],
            depth: 0,
            before: Before::Start,
            before_token: Token { kind: Kind::Semicolon, start: 0, end: 0 },
            before_at: 0,
            sign_at: None,
            in_literal: false,
        }
    }

    fn text(&mut self) {
        let mut pending = false;
        loop {
            let token = self.lexer.next();
            match token.kind {
                Kind::End => return,
                Kind::Semicolon => {
                    pending = self.before != Before::Start;
                    continue;
                }
                Kind::Word
                | Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_) => {}
            }
            if pending {
                self.out.push(b';');
                self.before = Before::Other;
                self.depth = 0;
                pending = false;
            }
            self.token(token);
            self.before_token = token;
        }
    }

    /// The text goes on behind its cut: what is left open is closed, or left out if it repeats what
    /// stands before it.
    fn cut(&mut self) {
        if let Some(group) = self.groups.get(1).filter(|_| self.depth > 0) {
            match group.follows {
                Some((_, end)) => self.out.truncate(end),
                None if group.pure => {
                    self.out.truncate(group.start);
                    self.out.extend_from_slice(b"(...)");
                }
                None => {}
            }
        }
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
    }

    fn token(&mut self, token: Token) {
        match token.kind {
            Kind::Word => self.word(token),
            Kind::Name => self.quoted_name(token),
            Kind::Text | Kind::DollarText => self.string(token),
            Kind::Number => {
                if let Some(at) = self.sign_at.take() {
                    self.take_back(at);
                }
                self.literal();
            }
            Kind::UserVar => {
                let glue = self.before_token.end == token.start;
                self.impure();
                self.write(self.lexer.bytes(token), !glue);
                self.before = Before::Operand;
            }
            Kind::SysVar => {
                self.impure();
                self.write(b"@@", true);
                self.before = Before::Glue;
            }
            Kind::Punct(byte) => self.punct(byte, token),
            Kind::Semicolon | Kind::End => {}
        }
    }

    fn word(&mut self, token: Token) {
        const NULL: u128 = key(b"NULL");
        const IS: u128 = key(b"IS");
        const NOT: u128 = key(b"NOT");
        let bytes = self.lexer.bytes(token);
        let key = key(bytes);
        if key == NULL && self.before != Before::NullTest {
            return self.literal();
        }
        if self.is_number(token, bytes) {
            return self.literal();
        }
        self.in_literal = self.begins_literal(token);
        if self.in_literal {
            return;
        }
        self.impure();
        if self.before_token.kind != Kind::Punct(b'.') && is_keyword(bytes, key) {
            self.write(b"", true);
            self.out.extend(bytes.iter().map(u8::to_ascii_uppercase));
            self.before = if key == IS || key == NOT { Before::NullTest } else { Before::Keyword };
        } else {
            self.write(bytes, true);
            self.before = Before::Operand;
        }
    }

    /// `0x4D` and `0b01`, which to the lexer may as well be names, and `\N`, another NULL.
    fn is_number(&mut self, token: Token, bytes: &[u8]) -> bool {
        if bytes == b"N" && self.before_token.kind == Kind::Punct(b'\\') {
            self.take_back(self.before_at);
            return self.before_token.end == token.start;
        }
        match bytes {
            [b'0', b'x', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
            [b'0', b'b', digits @ ..] => digits.iter().all(|digit| matches!(digit, b'0' | b'1')),
            _ => false,
        }
    }

    /// The letter of `N'x'`, `x'4D'` or `b'01'`, which the lexer leaves apart: to the server they are
    /// one token, and a value in a list like any other.
    fn begins_literal(&self, token: Token) -> bool {
        let from_here = self.lexer.text().get(token.start..).unwrap_or_default();
        matches!(from_here, [b'n' | b'N' | b'x' | b'X' | b'b' | b'B', b'\'', ..])
            && self.sign_at.is_none()
            && matches!(self.before_token.kind, Kind::Punct(b'(' | b','))
    }

    fn quoted_name(&mut self, token: Token) {
        let bytes = self.lexer.bytes(token);
        let inner = bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default();
        self.impure();
        let bare = inner.first().is_some_and(|byte| !byte.is_ascii_digit())
            && inner.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && !is_keyword(inner, key(inner));
        if bare {
            self.write(inner, true);
        } else {
            self.write(b"`", true);
            self.out.extend_from_slice(inner);
            self.out.push(b'`');
        }
        self.before = Before::Operand;
    }

    /// A string; what stands before it may belong to it: `_utf8mb4'x'`, `N'x'`, another string.
    fn string(&mut self, token: Token) {
        let word = self.lexer.bytes(self.before_token);
        let introduces = self.before_token.kind == Kind::Word
            && (word.first() == Some(&b'_')
                || (self.before_token.end == token.start && word.len() == 1));
        if self.before_token.kind == Kind::Text {
            return;
        }
        if std::mem::take(&mut self.in_literal) {
            return self.literal();
        }
        if introduces {
            self.take_back(self.before_at);
        }
        self.literal();
    }

    fn literal(&mut self) {
        if let Some(group) = self.groups.get_mut(self.depth) {
            group.literals = true;
        }
        self.sign_at = None;
        if self.depth > 0 && self.out.ends_with(b"?, ...,") {
            self.out.pop();
            self.before_at = self.out.len();
        } else if self.depth > 0 && self.out.ends_with(b"?,") {
            self.write(b"...", true);
        } else {
            self.write(b"?", true);
        }
        self.before = Before::Literal;
    }

    fn punct(&mut self, byte: u8, token: Token) {
        match byte {
            b'(' => return self.open(),
            b')' => return self.close(),
            b'?' => return self.literal(),
            b',' => {
                self.sign_at = None;
                self.write(b",", false);
                self.before = Before::Other;
                return;
            }
            b'.' => {
                self.impure();
                self.write(b".", false);
                self.before = Before::Glue;
                return;
            }
            _ => {}
        }
        let joined = matches!(self.before_token.kind, Kind::Punct(b) if is_operator(b))
            && self.before_token.end == token.start
            && is_operator(byte);
        let operand = matches!(self.before, Before::Operand | Before::Literal | Before::Close);
        if matches!(byte, b'-' | b'+') && !operand {
            self.sign_at = Some(self.out.len());
        } else {
            self.impure();
        }
        self.write(&[byte], !joined);
        self.before = Before::Other;
    }

    fn open(&mut self) {
        self.impure();
        let latest = self.groups.get(self.depth).and_then(|group| group.latest);
        let space = self.before != Before::Operand;
        self.write(b"(", space);
        let start = self.out.len().saturating_sub(1);
        let between = |end: usize| self.out.get(end..start).unwrap_or_default();
        let follows = latest.filter(|(_, end)| matches!(between(*end), b", " | b", ROW "));
        self.depth = self.depth.saturating_add(1);
        if let Some(group) = self.groups.get_mut(self.depth) {
            *group = Group { start, pure: true, literals: false, follows, latest: None };
        }
        self.before = Before::Glue;
    }

    fn close(&mut self) {
        self.impure_sign();
        let group = self.groups.get(self.depth).copied().filter(|_| self.depth > 0);
        self.depth = self.depth.saturating_sub(1);
        match group {
            Some(group) if group.pure && group.literals => {
                self.out.truncate(group.start);
                self.out.extend_from_slice(b"(...)");
            }
            _ => self.write(b")", false),
        }
        self.before = Before::Close;
        let Some(group) = group else { return };
        let mut range = (group.start, self.out.len());
        if let Some(row) = group.follows
            && self.out.get(row.0..row.1) == self.out.get(range.0..range.1)
        {
            self.out.truncate(row.1);
            range = row;
        }
        if let Some(outer) = self.groups.get_mut(self.depth) {
            outer.latest = Some(range);
        }
    }

    /// The innermost bracket holds more than literals.
    fn impure(&mut self) {
        self.sign_at = None;
        if let Some(group) = self.groups.get_mut(self.depth) {
            group.pure = false;
        }
    }

    /// A sign without a number behind it is an operator after all.
    fn impure_sign(&mut self) {
        if self.sign_at.is_some() {
            self.impure();
        }
    }

    /// What stands from there on belongs to the literal that comes, which stands in its place.
    fn take_back(&mut self, at: usize) {
        self.out.truncate(at);
        self.before = if self.out.ends_with(b"(") { Before::Glue } else { Before::Other };
    }

    fn write(&mut self, bytes: &[u8], space: bool) {
        self.before_at = self.out.len();
        if space && !matches!(self.before, Before::Start | Before::Glue) {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(bytes);
    }
}

fn is_operator(byte: u8) -> bool {
    b"<>=!|&:-+*/%^~".contains(&byte)
}

#[cfg(test)]
mod tests;
