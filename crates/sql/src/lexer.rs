//! Tokens of a statement, as the server's lexer cuts them.
//!
//! The lexer is total: every byte string gives tokens, and each step moves forward, so the time is
//! linear. It follows `lex_one_token` of `sql_lex.cc` in what decides where a literal, a name, a
//! number or a comment ends; it knows no grammar. What no server would accept (a literal without
//! its end) sets [`Lexer::broken`]; what servers of different releases read differently sets
//! [`Lexer::unsure`], and the caller reads again in another way.

mod bytes;
mod executable;
mod pieces;

pub(crate) use executable::{ExecutableRule, SixDigits};

use crate::mode::{Charset, LexMode, Server};
use bytes::{Start, is_space, start_of};
pub(crate) use bytes::{depends_on_mode, is_before_bracket, is_swe7_letter};

/// One of the ways to read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) executable: ExecutableRule,
    /// `$tag$ … $tag$` is a literal (MySQL 9).
    pub(crate) dollar_quotes: bool,
}

impl Reading {
    /// The way the server of `mode` reads; for an unknown one, the first of its ways.
    pub(crate) fn first(mode: LexMode) -> Self {
        match mode.server {
            Server::MySql { version } => Self {
                executable: ExecutableRule::MySql {
                    version,
                    digits: if version < 90_000 {
                        SixDigits::Never
                    } else {
                        SixDigits::BeforeSpace
                    },
                },
                dollar_quotes: version >= 90_000,
            },
            Server::MariaDb { version } => {
                Self { executable: ExecutableRule::MariaDb { version }, dollar_quotes: false }
            }
            Server::Unknown => Self { executable: ExecutableRule::Inline, dollar_quotes: false },
        }
    }

    /// The other ways, for a text that the first way was not sure of.
    pub(crate) fn others(mode: LexMode) -> [Option<Self>; 4] {
        const MARIADB_NEWEST: u32 = 999_998;
        const MYSQL_NEWEST: u32 = 99_998;
        let mysql = |version, digits, dollar_quotes| Self {
            executable: ExecutableRule::MySql { version, digits },
            dollar_quotes,
        };
        match mode.server {
            Server::MySql { version } => [
                Some(mysql(version, SixDigits::BeforeSpace, false)),
                Some(mysql(version, SixDigits::BeforeSpace, true)),
                None,
                None,
            ],
            Server::MariaDb { .. } => [None; 4],
            Server::Unknown => [
                Some(Self { executable: ExecutableRule::Skip, dollar_quotes: false }),
                Some(mysql(MYSQL_NEWEST, SixDigits::BeforeSpace, true)),
                Some(mysql(MYSQL_NEWEST, SixDigits::Never, false)),
                Some(Self {
                    executable: ExecutableRule::MariaDb { version: MARIADB_NEWEST },
                    dollar_quotes: false,
                }),
            ],
        }
    }
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An unquoted word: a keyword or a name.
    Word,
    /// A quoted name, quotes included.
    Name,
    /// A string literal, quotes included.
    Text,
    /// `$tag$ … $tag$`.
    DollarText,
    Number,
    /// `@name`, `` @`name` ``, `@'name'`, and the host part of an account.
    UserVar,
    /// `@@`; the words of the variable follow.
    SysVar,
    Punct(u8),
    Semicolon,
    End,
}

/// Where plain comments go.
pub(crate) trait CommentSink {
    /// A comment that is neither executable nor a hint and does not stand inside an executable
    /// one, delimiters included (a line comment without its line end).
    fn comment(&mut self, start: usize, end: usize);
}

/// Comments are of no interest.
pub(crate) struct NoComments;

impl CommentSink for NoComments {
    fn comment(&mut self, _start: usize, _end: usize) {}
}

/// See the module.
pub(crate) struct Lexer<'t, S> {
    text: &'t [u8],
    pos: usize,
    mode: LexMode,
    reading: Reading,
    sink: S,
    /// A word is made of the bytes that are letters in most character sets, and of no other.
    plain_words: bool,
    /// Inside an executable comment whose content is code. A flag and no depth, as in the servers.
    in_executable: bool,
    /// Behind the last byte whose meaning depends on the mode; nothing until it is asked for.
    last_dependent: Option<usize>,
    /// The server will not accept this text: a literal or comment does not end, or nothing sensible
    /// can be said about how it reads it.
    pub(crate) broken: bool,
    /// Servers differ on this text: another reading is needed.
    pub(crate) unsure: bool,
}

impl<'t, S: CommentSink> Lexer<'t, S> {
    /// Of a setting that is not known, the lexer takes the servers' default.
    pub(crate) fn new(text: &'t [u8], mode: LexMode, reading: Reading, sink: S) -> Self {
        let mode = mode.assumed();
        Self {
            text: without_final_nul(text, mode.charset),
            pos: 0,
            mode,
            reading,
            sink,
            plain_words: mode.charset.has_plain_words(),
            in_executable: false,
            last_dependent: None,
            broken: false,
            unsure: false,
        }
    }

    /// The bytes of `token`.
    pub(crate) fn bytes(&self, token: Token) -> &'t [u8] {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// The bytes of a word, or those between the quotes of a name.
    pub(crate) fn name_of(&self, token: Token) -> Option<&'t [u8]> {
        let bytes = self.bytes(token);
        match token.kind {
            Kind::Word => Some(bytes),
            Kind::Name => bytes.get(1..bytes.len().saturating_sub(1)),
            Kind::Text
            | Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::SysVar
            | Kind::Punct(_)
            | Kind::Semicolon
            | Kind::End => None,
        }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'t [u8] {
        self.text
    }

    /// Whether the text from `token` on has a byte whose meaning depends on the session's mode. The
    /// text is looked through once.
    pub(crate) fn depends_on_mode(&mut self, token: Token) -> bool {
        let last = *self.last_dependent.get_or_insert_with(|| {
            let at = self.text.iter().rposition(|byte| depends_on_mode(*byte));
            at.map_or(0, |at| at.wrapping_add(1))
        });
        token.start < last
    }

    /// How literals are read.
    pub(crate) fn mode(&self) -> LexMode {
        self.mode
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        self.scan::<false>()
    }

    /// The next token, which stays the next one.
    pub(crate) fn peeked(&mut self) -> Token {
        let before = (self.pos, self.in_executable);
        let token = self.next();
        (self.pos, self.in_executable) = before;
        token
    }

    /// The next word, quoted name, semicolon or the end: literals, numbers and operators are skipped.
    pub(crate) fn next_word(&mut self) -> Token {
        self.scan::<true>()
    }

    #[inline(always)]
    fn scan<const WORDS: bool>(&mut self) -> Token {
        loop {
            let start = self.pos;
            let Some(&byte) = self.text.get(start) else { return self.end() };
            let kind = match start_of(byte) {
                Start::Space => {
                    self.pos = start.wrapping_add(1);
                    continue;
                }
                Start::Punct if WORDS && (self.plain_words || !self.is_swe7()) => {
                    self.pos = start.wrapping_add(1);
                    continue;
                }
                Start::Punct | Start::Dot => self.punct(byte),
                Start::Word if self.plain_words => self.plain_word(),
                Start::Word => self.word(),
                Start::Digit => self.number(),
                Start::Quote => self.quoted(byte),
                Start::Backtick => self.name(byte),
                Start::Semicolon => self.semicolon(),
                Start::Dash | Start::Hash | Start::Slash | Start::Star => {
                    match self.comment_or_punct(byte) {
                        Some(kind) => kind,
                        None => continue,
                    }
                }
                Start::At => self.variable(),
                Start::Dollar => self.dollar(),
                Start::High if self.mode.charset.is_space(byte) => {
                    self.pos = start.wrapping_add(1);
                    continue;
                }
                Start::High => self.word(),
            };
            if WORDS && !matches!(kind, Kind::Word | Kind::Name | Kind::Semicolon) {
                continue;
            }
            return Token { kind, start, end: self.pos };
        }
    }

    /// The semicolon just passed ends a statement: the server reads what follows afresh, so an
    /// executable comment does not reach across.
    pub(crate) fn end_statement(&mut self) {
        self.broken |= self.in_executable;
        self.in_executable = false;
    }

    fn end(&mut self) -> Token {
        let end = self.text.len();
        self.end_statement();
        Token { kind: Kind::End, start: end, end }
    }

    fn semicolon(&mut self) -> Kind {
        self.pos = self.pos.wrapping_add(1);
        Kind::Semicolon
    }

    fn punct(&mut self, byte: u8) -> Kind {
        if self.is_swe7() && is_swe7_letter(byte) {
            return self.word();
        }
        self.pos = self.pos.wrapping_add(1);
        if byte == b'.'
            && self.peek(0).is_some_and(|next| next.is_ascii_digit())
            && !self.follows_name()
        {
            return self.fraction();
        }
        Kind::Punct(byte)
    }

    fn is_swe7(&self) -> bool {
        self.mode.charset == Charset::Swe7
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.pos.wrapping_add(ahead)).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.pos..).unwrap_or_default()
    }
}

/// The text without the NUL that ends it, if one does. Servers take away white space and semicolons
/// at the end of what a client sends, and for the lexer a NUL as the last byte of the rest is the end;
/// anywhere else it is an error.
fn without_final_nul(text: &[u8], charset: Charset) -> &[u8] {
    let is_end = |byte: &u8| match *byte {
        b';' => true,
        high @ 0x80.. => charset.is_space(high),
        byte => is_space(byte),
    };
    let len = text.iter().rposition(|byte| !is_end(byte)).unwrap_or_default();
    match text.split_at_checked(len) {
        Some((front, [0, ..])) if front.last() != Some(&0) => front,
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests;
