//! Whether a text runs another one that is not in it.

use super::Whole;
use crate::{
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::LexMode,
};

/// Whether `text` has an EXECUTE in any way in which the server may read it: the word, outside of
/// comments and literals, in front of a name or of IMMEDIATE. No grammar is followed, so
/// `SELECT execute e` counts as one: then two texts are not alike that are, and never the other
/// way round. Where `readable` says that how the text is read cannot be told, the word counts
/// wherever it stands.
pub(super) fn is_run(text: &[u8], mode: LexMode, whole: Whole, readable: Readable) -> bool {
    if !has_word(text) {
        return false;
    }
    match readable {
        Readable::No => true,
        Readable::Yes if mode.is_known() => is_run_in(text, mode, whole),
        Readable::Yes => mode.candidates(text).any(|mode| is_run_in(text, mode, whole)),
    }
}

/// Whether it can be told where words of a text begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readable {
    Yes,
    No,
}

const EXECUTE: &[u8] = b"EXECUTE";

fn has_word(text: &[u8]) -> bool {
    text.windows(EXECUTE.len()).any(|word| word.eq_ignore_ascii_case(EXECUTE))
}

fn is_run_in(text: &[u8], mode: LexMode, whole: Whole) -> bool {
    let read = |reading| Found::read(text, mode, reading, whole);
    let first = read(Reading::first(mode));
    let others = || Reading::others(mode).into_iter().flatten().map(read);
    first.executes || (first.unsure && others().any(|found| found.executes))
}

/// What one reading has found.
struct Found {
    executes: bool,
    unsure: bool,
}

impl Found {
    fn read(text: &[u8], mode: LexMode, reading: Reading, whole: Whole) -> Self {
        let mut lexer = Lexer::new(text, mode, reading, NoComments);
        let (mut before, mut after_execute, mut executes) = (Kind::Semicolon, false, false);
        loop {
            let token = next(&mut lexer);
            executes |= after_execute && is_name(&lexer, token);
            if token.kind == Kind::End {
                break;
            }
            if token.kind == Kind::Semicolon {
                lexer.end_statement();
            }
            let qualified = matches!(before, Kind::Punct(b'.') | Kind::SysVar);
            let is_execute = lexer.bytes(token).eq_ignore_ascii_case(EXECUTE);
            after_execute = token.kind == Kind::Word && is_execute && !qualified;
            before = token.kind;
        }
        // The end of a text that was cut may well be inside a literal.
        executes |= lexer.broken && whole == Whole::Yes;
        Self { executes, unsure: lexer.unsure }
    }
}

/// The next token. A byte from 0x80 up that belongs to no word may be white space.
fn next(lexer: &mut Lexer<'_, NoComments>) -> Token {
    loop {
        let token = lexer.next();
        if !matches!(token.kind, Kind::Punct(0x80..)) {
            return token;
        }
    }
}

/// Whether this is a name, and no keyword that may stand behind a column.
fn is_name(lexer: &Lexer<'_, NoComments>, token: Token) -> bool {
    let is_keyword =
        |name: &[u8]| BEHIND_COLUMNS.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()));
    lexer.name_of(token).is_some_and(|name| token.kind == Kind::Name || !is_keyword(name))
}

/// What may stand behind a column called `execute`, of what both servers reserve, so that no
/// prepared statement is called so without quotes.
const BEHIND_COLUMNS: [&str; 28] = [
    "AND", "AS", "ASC", "BETWEEN", "COLLATE", "DESC", "DIV", "ELSE", "FROM", "GROUP", "HAVING",
    "IN", "INTO", "IS", "LIKE", "LIMIT", "MOD", "NOT", "OR", "ORDER", "REGEXP", "RLIKE", "THEN",
    "UNION", "USING", "WHEN", "WHERE", "XOR",
];
