//! Statements that name no table: transaction control and SET.

use super::{Finder, TableRef, Verb};
use crate::lexer::{Kind, Token};

impl<'t, F: FnMut(TableRef<'t>)> Finder<'t, F> {
    /// The verb of a statement that names no table, if `token` is one.
    pub(super) fn quiet_verb(&mut self, token: Token) -> Option<Verb> {
        let next = self.lexer.peeked();
        let ends = matches!(next.kind, Kind::Semicolon | Kind::End);
        let is = |word: &str| self.is(token, word);
        if is("SET") {
            return (!self.is(next, "STATEMENT")).then_some(Verb::Set);
        }
        // MariaDB's BEGIN NOT ATOMIC is a block, and so is BEGIN where `sql_mode` is ORACLE.
        let controls = (is("BEGIN") && (ends || self.is(next, "WORK")))
            || (is("START") && self.is(next, "TRANSACTION"))
            || ["COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"].iter().any(|word| is(word));
        controls.then_some(Verb::Transaction)
    }

    /// A token of such a statement. What it computes is not looked at, and what stands behind it
    /// must be read as what stood before.
    pub(super) fn quiet(&mut self, token: Token) {
        let fault = token.kind == Kind::Punct(b'(')
            || self.is(token, "SELECT")
            || (self.verb == Verb::Set && self.changes_reading(token));
        self.fault_if(fault);
    }

    /// Whether `token` of a SET may change how the rest of the text is read: `sql_mode` and a
    /// character set, unless it is UTF-8 and in force, or nothing in the rest depends on it. Quoted
    /// names and those beyond ASCII may be these too.
    fn changes_reading(&mut self, token: Token) -> bool {
        let Some(name) = self.lexer.name_of(token) else { return false };
        if self.is(token, "NAMES") {
            let next = self.lexer.peeked();
            let bytes = self.lexer.bytes(next);
            let charset = bytes.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'"));
            let charset = charset.unwrap_or(bytes);
            let to_utf8 = ["utf8mb4", "utf8mb3", "utf8"]
                .iter()
                .any(|utf8| charset.eq_ignore_ascii_case(utf8.as_bytes()));
            return !to_utf8 || (!self.utf8 && self.lexer.depends_on_mode(token));
        }
        token.kind == Kind::Name
            || !name.is_ascii()
            || ["SQL_MODE", "CHARACTER", "CHAR", "CHARSET", "CHARACTER_SET_CLIENT"]
                .iter()
                .any(|word| self.is(token, word))
    }
}
