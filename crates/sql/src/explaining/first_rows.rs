//! Statements that stop behind their first rows.
//!
//! A server's plan says what it would read without the LIMIT. Where a query takes the rows of one
//! table as they come, it reads no more than it sends and skips; where anything in it may have it
//! read on (a condition, an order, groups, a second table), nothing is said.

use crate::lexer::{Kind, Lexer, NoComments, Reading, Token};
use crate::mode::LexMode;

/// The most rows that `SELECT … FROM table LIMIT …` reads, or `TABLE table LIMIT …`. `None`: it is
/// another statement.
pub(super) fn most_read(text: &[u8], mode: LexMode) -> Option<u64> {
    let mut words = Words(Lexer::new(text, mode, Reading::first(mode), NoComments));
    let verb = words.0.next();
    if words.is(verb, "SELECT") {
        words.pass_list()?;
    } else if !words.is(verb, "TABLE") {
        return None;
    }
    words.pass_table()?;
    let first = words.number()?;
    let token = words.0.next();
    if token.kind == Kind::End {
        return Some(first);
    }
    if token.kind != Kind::Punct(b',') && !words.is(token, "OFFSET") {
        return None;
    }
    let second = words.number()?;
    (words.0.next().kind == Kind::End).then(|| first.saturating_add(second))
}

struct Words<'t>(Lexer<'t, NoComments>);

impl Words<'_> {
    fn is(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Word && self.0.bytes(token).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Passes what is selected, up to the FROM.
    fn pass_list(&mut self) -> Option<()> {
        loop {
            let token = self.0.next();
            match token.kind {
                Kind::Word if self.is(token, "FROM") => return Some(()),
                Kind::Word if READS_ON.iter().any(|word| self.is(token, word)) => return None,
                // A function may add up all rows.
                Kind::Punct(b'(') | Kind::Semicolon | Kind::End => return None,
                Kind::Word
                | Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_) => {}
            }
        }
    }

    /// Passes one table with its alias, up to the LIMIT: at most `a.b AS c`.
    fn pass_table(&mut self) -> Option<()> {
        for _ in 0..TABLE_LEN {
            let token = self.0.next();
            match token.kind {
                Kind::Word if self.is(token, "LIMIT") => return Some(()),
                Kind::Word | Kind::Name | Kind::Punct(b'.') => {}
                Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_)
                | Kind::Semicolon
                | Kind::End => return None,
            }
            if READS_ON.iter().any(|word| self.is(token, word)) {
                return None;
            }
        }
        None
    }

    fn number(&mut self) -> Option<u64> {
        let token = self.0.next();
        let is_number = token.kind == Kind::Number;
        let digits = std::str::from_utf8(self.0.bytes(token)).ok().filter(|_| is_number)?;
        digits.parse().ok()
    }
}

/// Tokens of `a.b AS c LIMIT`.
const TABLE_LEN: usize = 6;

/// What has a query read on, or be several.
const READS_ON: [&str; 15] = [
    "DISTINCT",
    "DISTINCTROW",
    "SQL_CALC_FOUND_ROWS",
    "SELECT",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "JOIN",
    "STRAIGHT_JOIN",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "FOR",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_table_as_they_come_are_read_up_to_the_limit() {
        let most = |text: &str| most_read(text.as_bytes(), LexMode::default());
        for (text, rows) in [
            ("SELECT * FROM t LIMIT 1", 1),
            ("select a, t.b AS c, 'x' from `s`.`t` as `where` limit 10", 10),
            ("SELECT a + 1 FROM s.t u LIMIT 5 OFFSET 1000", 1_005),
            ("/* app=x */ SELECT a FROM t LIMIT 1000, 5 -- so", 1_005),
            ("SELECT `order` FROM t LIMIT 0", 0),
            ("SELECT a FROM t LIMIT 18446744073709551615, 1", u64::MAX),
        ] {
            assert_eq!(most(text), Some(rows), "{text}");
        }
        for text in [
            "SELECT * FROM t",
            "SELECT COUNT(*) FROM t LIMIT 1",
            "SELECT DISTINCT a FROM t LIMIT 1",
            "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1",
            "SELECT a FROM t WHERE b = 1 LIMIT 1",
            "SELECT a FROM t ORDER BY b LIMIT 1",
            "SELECT a FROM t GROUP BY a LIMIT 1",
            "SELECT a FROM t HAVING a LIMIT 1",
            "SELECT a FROM t, u LIMIT 1",
            "SELECT a FROM t JOIN u LIMIT 1",
            "SELECT a FROM t NATURAL JOIN u LIMIT 1",
            "SELECT a FROM t STRAIGHT_JOIN u LIMIT 1",
            "SELECT 1 UNION SELECT a FROM t LIMIT 1",
            "SELECT a FROM t UNION TABLE u LIMIT 1",
            "SELECT a FROM t EXCEPT SELECT b FROM u LIMIT 1",
            "SELECT a FROM (SELECT * FROM t) u LIMIT 1",
            "(SELECT a FROM t LIMIT 1)",
            "SELECT a FROM t LIMIT 1 FOR UPDATE",
            "SELECT a FROM t LIMIT ROWS EXAMINED 5",
            "SELECT a FROM t LIMIT 1 ROWS EXAMINED 5",
            "SELECT a FROM t LIMIT ?",
            "SELECT a FROM t LIMIT 99999999999999999999",
            "SELECT a FROM t LIMIT 1; SELECT b FROM u",
            "UPDATE t SET a = 1 LIMIT 1",
            "WITH c AS (SELECT a FROM t) SELECT a FROM c LIMIT 1",
            "",
        ] {
            assert_eq!(most(text), None, "{text}");
        }
    }
}
