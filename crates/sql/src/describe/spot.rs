//! Finding what a statement calls and writes by name: stored functions, loadable functions, and
//! MariaDB's sequences.
//!
//! A word before a bracket calls a function unless it is built in or stands where no expression
//! does: behind what ends one, behind words such as INTO and AS, or as a common table expression.
//! The text around such a word is read once more only when it is no word of the servers' grammar.

use super::walk::Walk;
use crate::{
    builtin::{Bracket, is_builtin},
    lexer::{Kind, Lexer, NoComments, Token, is_before_bracket},
};

/// Tokens that are looked at behind a bracket before a word is taken for a function.
const AHEAD_MAX: usize = 512;

/// What may stand before a word and is no part of its name.
#[derive(Clone, Copy)]
struct NamePlace {
    /// Where the name begins, with the schema before it.
    start: usize,
    /// The two tokens before it, the nearer first.
    before: [Token; 2],
    qualified: bool,
    /// Behind a point there is no name, or behind three: nothing is known about it.
    strange: bool,
}

impl<'t> Walk<'t, '_> {
    /// Looks at a word or a quoted name that the lexer has just given.
    #[inline(always)]
    pub(super) fn spot(&mut self, token: Token) {
        let behind = self.lexer.text().get(token.end..).unwrap_or_default();
        if self.spots && (self.mariadb || may_lead_to_bracket(behind)) {
            self.look_around(token, behind);
        }
        self.recent.push(token);
    }

    fn look_around(&mut self, token: Token, behind: &'t [u8]) {
        if may_lead_to_bracket(behind) {
            self.look_behind(token, behind);
        }
        if self.mariadb && matches!(token.end.wrapping_sub(token.start), 4 | 7 | 9) {
            self.sequence(token);
        }
    }

    fn look_behind(&mut self, token: Token, behind: &'t [u8]) {
        let apart = match behind {
            [b'(', ..] => return self.before_bracket(token, Bracket::Adjacent),
            [b'*', b'/', ..] | [b' ', b'*', b'/', ..] => true,
            [b' ', next, ..] | [next, ..] => is_space_or_comment(*next) || *next == b'(',
            [] => false,
        };
        if apart && self.is_bracket_apart(behind) {
            self.before_bracket(token, Bracket::Apart);
        }
    }

    /// Whether `behind` begins with a bracket behind white space, comments or the end of an
    /// executable one.
    fn is_bracket_apart(&self, behind: &'t [u8]) -> bool {
        let trimmed = behind.trim_ascii_start();
        match trimmed.first() {
            Some(b'(') => true,
            Some(byte) if is_space_or_comment(*byte) || *byte == b'*' => {
                self.tokens(trimmed, 0).next().is_some_and(|token| token.kind == Kind::Punct(b'('))
            }
            Some(_) | None => false,
        }
    }

    fn before_bracket(&mut self, token: Token, bracket: Bracket) {
        let bytes = self.lexer.bytes(token);
        let server = self.lexer.mode().server;
        let word = token.kind == Kind::Word;
        if word && !self.may_be_qualified(token) {
            self.writes |= self.mariadb && is_sequence_function(bytes);
            if is_builtin(bytes, bracket, server) {
                return;
            }
        }
        if self.is_behind_into(token) {
            return;
        }
        let place = self.place(token);
        if word && !place.qualified {
            // As above: what it says must not depend on whether a value has a point.
            self.writes |= self.mariadb && is_sequence_function(bytes);
            if is_builtin(bytes, bracket, server) || self.is_geometry(token) {
                return;
            }
        }
        if place.strange {
            self.called = true;
            self.calls.others = true;
        } else if !self.is_no_expression(token, place) {
            self.called = true;
            self.calls.push(self.lexer.text(), place.start, token.end);
        }
    }

    /// Whether a point may stand before `token`, looking only at the byte that ends what stands
    /// there: of a comment, of the head of an executable comment, or of a token.
    fn may_be_qualified(&self, token: Token) -> bool {
        let before = self.lexer.text().get(..token.start).unwrap_or_default();
        let trimmed = before.trim_ascii_end();
        let may_hide = match trimmed.last() {
            Some(b'.') => return true,
            Some(b'/' | b'!' | b'0'..=b'9' | 0x80.. | 0x0B | 0) => true,
            Some(_) | None => {
                let blank = before.get(trimmed.len()..).unwrap_or_default();
                blank.contains(&b'\n')
            }
        };
        let [(from, _)] = self.recent.nearest();
        let gap = before.get(from..).unwrap_or_default();
        may_hide && memchr::memchr(b'.', gap).is_some()
    }

    /// `INTO name (` and `INTO schema.name (`, the commonest of all, without reading it once more.
    fn is_behind_into(&self, token: Token) -> bool {
        let text = self.lexer.text();
        let [near, far] = self.recent.nearest();
        let gap = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let (into, name) =
            if gap(near.1, token.start) == b"." { (far, near.0) } else { (near, token.start) };
        gap(into.0, into.1).eq_ignore_ascii_case(b"INTO")
            && gap(into.1, name).trim_ascii().is_empty()
            && gap(into.0.saturating_sub(1), into.0).iter().all(u8::is_ascii_whitespace)
    }

    /// Reads what stands before `token` once more.
    fn place(&self, token: Token) -> NamePlace {
        let none = Token { kind: Kind::End, start: 0, end: 0 };
        let [.., (from, _)] = self.recent.nearest::<4>();
        let text = self.lexer.text().get(from..token.start).unwrap_or_default();
        let mut last = [none; 5];
        for token in self.tokens(text, from) {
            let [a, b, c, d, _] = last;
            last = [token, a, b, c, d];
        }
        let [a, b, c, d, _] = last;
        if a.kind != Kind::Punct(b'.') {
            return NamePlace {
                start: token.start,
                before: [a, b],
                qualified: false,
                strange: false,
            };
        }
        NamePlace {
            start: b.start,
            before: [c, d],
            qualified: true,
            strange: !matches!(b.kind, Kind::Word | Kind::Name) || c.kind == Kind::Punct(b'.'),
        }
    }

    /// Whether no expression can stand where `token`, which stands at `place`, does.
    fn is_no_expression(&self, token: Token, place: NamePlace) -> bool {
        /// Behind these stands the name of a table, of a type, or an alias with its columns.
        const BEFORE_NAME: [&str; 13] = [
            "INTO",
            "TABLE",
            "AS",
            "WITH",
            "RECURSIVE",
            "PROCEDURE",
            "CALL",
            "INSERT",
            "REPLACE",
            "IGNORE",
            "LOW_PRIORITY",
            "DELAYED",
            "COLLATE",
        ];
        // No stored function takes these, and COUNT (*) is what IGNORE_SPACE is set for.
        let argument = self.behind(token).nth(1);
        if argument
            .is_some_and(|first| first.kind == Kind::Punct(b'*') || self.is(first, "DISTINCT"))
        {
            return true;
        }
        let [near, far] = place.before;
        if far.kind == Kind::Punct(b'{') {
            // {name expression} is what its expression is.
            return false;
        }
        match near.kind {
            Kind::Text | Kind::DollarText | Kind::Number | Kind::Name | Kind::UserVar => true,
            Kind::Punct(b')') => true,
            Kind::Word => {
                let is = |word: &str| self.is(near, word);
                BEFORE_NAME.iter().any(|word| is(word))
                    || (is("HIGH_PRIORITY") && self.is(far, "INSERT"))
                    || (is("SET") && self.is(far, "CHARACTER"))
                    || (is("MEMBER") && self.is(token, "OF"))
                    || ((is("FROM") || is("JOIN")) && self.is(token, "JSON_TABLE"))
                    || (is("JOIN") && self.is_lateral(token))
            }
            Kind::Punct(b',') => {
                self.is_column_list(token) || self.is_json_table(token) || self.is_lateral(token)
            }
            Kind::Punct(b'(') => self.is_json_table(token),
            Kind::Punct(_) | Kind::SysVar | Kind::Semicolon | Kind::End => false,
        }
    }

    /// A common table expression behind another: `name (a, b) AS (`.
    fn is_column_list(&self, token: Token) -> bool {
        let mut tokens = self.behind(token).skip(1);
        let mut comma = false;
        for token in tokens.by_ref() {
            let named = matches!(token.kind, Kind::Word | Kind::Name);
            if token.kind == Kind::Punct(b')') && comma {
                break;
            }
            if named == comma || !(named || token.kind == Kind::Punct(b',')) {
                return false;
            }
            comma = named;
        }
        tokens.next().is_some_and(|token| self.is(token, "AS"))
            && tokens.next().is_some_and(|token| token.kind == Kind::Punct(b'('))
    }

    /// JSON_TABLE(…, path COLUMNS (: the word is reserved in MySQL alone.
    fn is_json_table(&self, token: Token) -> bool {
        let mut depth = 0_u32;
        let mut before = token;
        if !self.is(token, "JSON_TABLE") {
            return false;
        }
        for token in self.behind(token) {
            if depth == 1 && before.kind == Kind::Text && self.is(token, "COLUMNS") {
                return true;
            }
            if token.kind == Kind::Punct(b'(') {
                depth = depth.saturating_add(1);
            } else if token.kind == Kind::Punct(b')') {
                depth = depth.saturating_sub(1);
            }
            if depth == 0 {
                return false;
            }
            before = token;
        }
        false
    }

    /// MariaDB's constructors of geometries are functions like any other unless they have
    /// arguments, POINT unless it has two.
    fn is_geometry(&self, token: Token) -> bool {
        const OF_OTHERS: [&str; 6] = [
            "GEOMETRYCOLLECTION",
            "LINESTRING",
            "MULTILINESTRING",
            "MULTIPOINT",
            "MULTIPOLYGON",
            "POLYGON",
        ];
        if !self.is(token, "POINT") {
            return OF_OTHERS.iter().any(|word| self.is(token, word))
                && self.behind(token).nth(1).is_some_and(|token| token.kind != Kind::Punct(b')'));
        }
        let (mut depth, mut commas) = (0_u32, 0_u32);
        for token in self.behind(token) {
            let punct = |byte: u8| token.kind == Kind::Punct(byte);
            if punct(b'(') {
                depth = depth.saturating_add(1);
            } else if punct(b')') && depth == 1 {
                return commas == 1;
            } else if punct(b')') {
                depth = depth.saturating_sub(1);
            } else if punct(b',') && depth == 1 {
                commas = commas.saturating_add(1);
            }
        }
        false
    }

    /// LATERAL (SELECT: the word is MySQL's, and no function has a query for an argument that
    /// stands in no brackets of its own.
    fn is_lateral(&self, token: Token) -> bool {
        const QUERIES: [&str; 4] = ["SELECT", "WITH", "TABLE", "VALUES"];
        self.is(token, "LATERAL")
            && self
                .behind(token)
                .nth(1)
                .is_some_and(|first| QUERIES.iter().any(|word| self.is(first, word)))
    }

    /// MariaDB's sequences move on when they are asked: NEXT VALUE FOR s and, where `sql_mode` is
    /// ORACLE, `s.nextval`.
    fn sequence(&mut self, token: Token) {
        let Some(name) = self.lexer.name_of(token) else { return };
        if name.eq_ignore_ascii_case(b"nextval") {
            self.writes |= self.may_be_qualified(token) && self.place(token).qualified;
        } else if self.is(token, "NEXT") {
            let mut behind = self.behind(token);
            self.writes |= behind.next().is_some_and(|token| self.is(token, "VALUE"))
                && behind.next().is_some_and(|token| self.is(token, "FOR"));
        }
    }

    /// The tokens behind `token`.
    fn behind(&self, token: Token) -> impl Iterator<Item = Token> + use<'t> {
        let text = self.lexer.text().get(token.end..).unwrap_or_default();
        self.tokens(text, token.end).take(AHEAD_MAX)
    }

    /// The tokens of `text`, a part of the whole that begins at `from`. The end of an executable
    /// comment whose beginning is not in it is none.
    fn tokens(&self, text: &'t [u8], from: usize) -> impl Iterator<Item = Token> + use<'t> {
        let mut lexer = Lexer::new(text, self.lexer.mode(), self.reading, NoComments);
        std::iter::from_fn(move || {
            let mut token = lexer.next();
            while matches!(token.kind, Kind::Punct(0x80..)) || ends_comment(token, text) {
                if token.kind == Kind::Punct(b'*') {
                    lexer.next();
                }
                token = lexer.next();
            }
            let (start, end) = (token.start.wrapping_add(from), token.end.wrapping_add(from));
            (token.kind != Kind::End).then_some(Token { kind: token.kind, start, end })
        })
    }
}

/// Whether `*/` stands at `token` and not the beginning of another comment behind an asterisk.
fn ends_comment(token: Token, text: &[u8]) -> bool {
    let behind = text.get(token.end..).unwrap_or_default();
    token.kind == Kind::Punct(b'*') && behind.starts_with(b"/") && !behind.starts_with(b"/*")
}

/// The functions that write to a sequence.
fn is_sequence_function(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"nextval") || name.eq_ignore_ascii_case(b"setval")
}

/// Whether the two bytes behind a word leave it open that a bracket comes next: almost every word
/// is dismissed by them.
#[inline(always)]
fn may_lead_to_bracket(behind: &[u8]) -> bool {
    match behind {
        [] => false,
        [b' ', next, ..] | [next, ..] => is_before_bracket(*next),
    }
}

/// Whether `byte` is one that the lexer may skip, or begins a comment.
#[inline]
fn is_space_or_comment(byte: u8) -> bool {
    matches!(byte, 0..=b' ' | b'/' | b'#' | b'-' | 0x80..)
}
