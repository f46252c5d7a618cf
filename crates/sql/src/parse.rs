//! The full parser, for administration: the tables of a normalised statement.
//!
//! Nothing that decides about a statement may call this. `sqlparser` recurses: 300 joins without
//! ON, in 1.5 KB, overflow the 2 MiB stack of an ordinary thread and abort the process, and no
//! handler catches that. So it sees only text that [`digest`](crate::digest()) has made short,
//! under the limits below, and the caller runs it on a thread of its own with [`STACK_BYTES`] of
//! stack. It fails on about a third of what servers accept; whoever calls it has
//! [`tables`](crate::tables()) to fall back on.

use core::ops::ControlFlow;

use sqlparser::{
    ast::{ObjectNamePart, visit_relations},
    dialect::MySqlDialect,
    parser::Parser,
};

use crate::{
    lexer::{Kind, Lexer, NoComments, Reading},
    mode::LexMode,
};

/// The stack that the calling thread must have.
pub const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Longest text, in bytes.
pub const TEXT_MAX: usize = 8 * 1024;
/// Most tokens.
pub const TOKENS_MAX: usize = 2_000;
/// Most JOINs: the parser's stack grows with each.
pub const JOINS_MAX: usize = 64;
/// Most opening brackets, nested or not.
pub const BRACKETS_MAX: usize = 48;
/// Most operators that chain: a tree leans to one side and is as deep as they are many.
pub const OPERATORS_MAX: usize = 512;

/// A table, as the parser names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The schema, if the name is qualified.
    pub schema: Option<String>,
    /// The table.
    pub name: String,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseRefused {
    /// The text is longer than [`TEXT_MAX`].
    TooLong,
    /// It has more than [`TOKENS_MAX`] tokens.
    TooManyTokens,
    /// It has more than [`JOINS_MAX`] joins.
    TooManyJoins,
    /// It has more than [`BRACKETS_MAX`] opening brackets.
    TooManyBrackets,
    /// It has more than [`OPERATORS_MAX`] operators.
    TooManyOperators,
    /// The parser does not know this statement.
    NotUnderstood,
}

impl std::fmt::Display for ParseRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the statement is too long to be parsed",
            Self::TooManyTokens => "the statement has too many tokens to be parsed",
            Self::TooManyJoins => "the statement has too many joins to be parsed",
            Self::TooManyBrackets => "the statement has too many brackets to be parsed",
            Self::TooManyOperators => "the statement has too many operators to be parsed",
            Self::NotUnderstood => "the parser does not know this statement",
        })
    }
}

impl std::error::Error for ParseRefused {}

/// The tables named in `normalised`, a text that [`digest`](crate::digest()) wrote, in order and
/// each once. Call it on a thread with [`STACK_BYTES`] of stack.
///
/// # Errors
///
/// [`ParseRefused`] if the text is beyond a limit or the parser does not know it.
pub fn table_names(normalised: &str) -> Result<Vec<TableName>, ParseRefused> {
    within_limits(normalised.as_bytes())?;
    let text = crate::digest::readable_digest(normalised);
    let statements = Parser::parse_sql(&MySqlDialect {}, &text)
        .map_err(|_unknown| ParseRefused::NotUnderstood)?;
    let mut names: Vec<TableName> = Vec::new();
    let walked: ControlFlow<()> = visit_relations(&statements, |relation| {
        let mut parts = relation.0.iter().rev().filter_map(identifier);
        if let Some(name) = parts.next() {
            let table = TableName { schema: parts.next(), name };
            if !names.contains(&table) {
                names.push(table);
            }
        }
        ControlFlow::Continue(())
    });
    match walked {
        ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(names),
    }
}

fn identifier(part: &ObjectNamePart) -> Option<String> {
    part.as_ident().map(|identifier| identifier.value.clone())
}

fn within_limits(text: &[u8]) -> Result<(), ParseRefused> {
    if text.len() > TEXT_MAX {
        return Err(ParseRefused::TooLong);
    }
    let mode = LexMode::default();
    let mut lexer = Lexer::new(text, mode, Reading::first(mode), NoComments);
    let (mut tokens, mut joins, mut brackets, mut operators) = (0_usize, 0_usize, 0_usize, 0_usize);
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End => break,
            Kind::Punct(b'(' | b'[' | b'{') => brackets = brackets.saturating_add(1),
            Kind::Punct(b',' | b')' | b']' | b'}' | b'.' | b'?') | Kind::Semicolon => {}
            Kind::Punct(_) => operators = operators.saturating_add(1),
            Kind::Word => {
                let word = lexer.bytes(token);
                let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
                if is(b"JOIN") || is(b"STRAIGHT_JOIN") || is(b"APPLY") {
                    joins = joins.saturating_add(1);
                } else if CHAINING.iter().any(|known| is(known)) {
                    operators = operators.saturating_add(1);
                }
            }
            Kind::Name
            | Kind::Text
            | Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::SysVar => {}
        }
        tokens = tokens.saturating_add(1);
    }
    let beyond = |count: usize, max: usize, refused: ParseRefused| {
        if count > max { Err(refused) } else { Ok(()) }
    };
    beyond(joins, JOINS_MAX, ParseRefused::TooManyJoins)?;
    beyond(brackets, BRACKETS_MAX, ParseRefused::TooManyBrackets)?;
    beyond(operators, OPERATORS_MAX, ParseRefused::TooManyOperators)?;
    beyond(tokens, TOKENS_MAX, ParseRefused::TooManyTokens)
}

/// Words that make a tree one level deeper.
const CHAINING: [&[u8]; 17] = [
    b"AND",
    b"OR",
    b"XOR",
    b"NOT",
    b"BETWEEN",
    b"LIKE",
    b"RLIKE",
    b"REGEXP",
    b"DIV",
    b"MOD",
    b"IS",
    b"IN",
    b"COLLATE",
    b"UNION",
    b"EXCEPT",
    b"INTERSECT",
    b"CASE",
];

#[cfg(test)]
mod tests;
