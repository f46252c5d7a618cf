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

    /// Whether `token` of a SET may change how the rest of the text is read: `sql_mode` always, a
    /// character set if it is not one that is in force, and the rest depends on it. Quoted names
    /// and those beyond ASCII may be these too.
    fn changes_reading(&mut self, token: Token) -> bool {
        let Some(name) = self.lexer.name_of(token) else { return false };
        if token.kind == Kind::Name || !name.is_ascii() || self.is(token, "SQL_MODE") {
            return true;
        }
        let sets_charset = ["NAMES", "CHARACTER", "CHAR", "CHARSET", "CHARACTER_SET_CLIENT"]
            .iter()
            .any(|word| self.is(token, word));
        if !sets_charset || !self.lexer.depends_on_mode(token) {
            return false;
        }
        let next = self.lexer.peeked();
        let to_utf8 = ["UTF8MB4", "UTF8MB3", "UTF8"].iter().any(|word| self.is(next, word));
        !(self.is(token, "NAMES") && to_utf8 && self.utf8)
    }
}
