//! `SET sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')`: what is added to the mode that is in
//! force.
//!
//! A value of nothing but CONCAT, brackets, commas, `@@sql_mode` of the session and literals is, if
//! the server takes it, all of these one behind the other. With a comma at each of their ends that
//! is a list of what is in force and what the literals name.

use super::Modes;
use crate::{
    lexer::{CommentSink, Kind, Lexer, Token},
    mode::Setting,
    text::SqlText,
};

/// The value as far as it has been read.
pub(super) struct Joined {
    awaited: Awaited,
    /// The list may go on in the next part without a comma at its front.
    ends_with_comma: bool,
    /// Nothing has been joined.
    empty: bool,
    /// How often the mode in force has been joined.
    in_force: u32,
    added: Option<Modes>,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Part,
    /// Behind `@@`.
    Variable,
    /// Behind `@@SESSION`.
    Point,
    /// Behind `@@SESSION.`
    Name,
}

impl Default for Joined {
    fn default() -> Self {
        Self {
            awaited: Awaited::Part,
            ends_with_comma: true,
            empty: true,
            in_force: 0,
            added: Some(Modes::OFF),
        }
    }
}

impl Joined {
    /// What the literals add to the mode in force, if that is what the value is.
    pub(super) fn added(&self) -> Option<Modes> {
        let whole = self.awaited == Awaited::Part && self.in_force == 1;
        self.added.filter(|_| whole)
    }

    /// Takes the next token of the value.
    pub(super) fn push<S: CommentSink>(&mut self, lexer: &Lexer<'_, S>, token: Token) {
        let bytes = lexer.bytes(token);
        let is = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
        self.awaited = match (self.awaited, token.kind) {
            (Awaited::Part, Kind::Punct(b'(' | b')' | b',') | Kind::Semicolon | Kind::End) => {
                Awaited::Part
            }
            (Awaited::Part, Kind::Word) if is("CONCAT") => Awaited::Part,
            (Awaited::Part, Kind::Text) => {
                let literal = SqlText::from_token(bytes, lexer.mode());
                self.literal(literal.and_then(|literal| literal.plain()));
                Awaited::Part
            }
            (Awaited::Part, Kind::SysVar) => Awaited::Variable,
            (Awaited::Variable, Kind::Word) if is("SESSION") || is("LOCAL") => Awaited::Point,
            (Awaited::Point, Kind::Punct(b'.')) => Awaited::Name,
            (Awaited::Variable | Awaited::Name, Kind::Word) if is("sql_mode") => {
                self.in_force = self.in_force.saturating_add(1);
                self.join(false, false);
                Awaited::Part
            }
            (awaited, _) => {
                self.added = None;
                awaited
            }
        };
    }

    fn literal(&mut self, list: Option<&[u8]>) {
        let Some(list) = list else {
            self.added = None;
            return;
        };
        self.join(list.starts_with(b","), list.ends_with(b","));
        self.added = self.added.and_then(|added| added.and(Modes::of(list)));
    }

    /// Joins a part that has commas at these ends.
    fn join(&mut self, begins_with_comma: bool, ends_with_comma: bool) {
        if !self.empty && !self.ends_with_comma && !begins_with_comma {
            self.added = None;
        }
        self.empty = false;
        self.ends_with_comma = ends_with_comma;
    }
}

impl Modes {
    const OFF: Self = Self { ansi_quotes: Setting::Off, no_backslash_escapes: Setting::Off };

    /// What is in either list; nothing if one is not known.
    fn and(self, other: Self) -> Option<Self> {
        let either = |one: Setting, two: Setting| match (one, two) {
            (Setting::Off, Setting::Off) => Some(Setting::Off),
            (Setting::On, Setting::Off | Setting::On) | (Setting::Off, Setting::On) => {
                Some(Setting::On)
            }
            (Setting::Unknown, _) | (_, Setting::Unknown) => None,
        };
        Some(Self {
            ansi_quotes: either(self.ansi_quotes, other.ansi_quotes)?,
            no_backslash_escapes: either(self.no_backslash_escapes, other.no_backslash_escapes)?,
        })
    }
}
