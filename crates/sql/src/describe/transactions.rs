//! Which statements begin a transaction or end one, of themselves or by an implicit commit.

use super::walk::Walk;
use crate::{class::Class, lexer::Token};

impl Walk<'_, '_> {
    /// Notes whether the statement of `class` that begins with `verb` may begin or end a
    /// transaction; SET has noted so itself.
    pub(super) fn note_transaction(&mut self, verb: Token, class: Class) {
        let is = |words: &[&str]| words.iter().any(|word| self.is(verb, word));
        let may = match class {
            Class::Read | Class::LockingRead | Class::Write | Class::Load | Class::Session => false,
            Class::Transaction => !is(&["SAVEPOINT", "RELEASE", "ROLLBACK"]),
            Class::Admin => !is(&["SHOW", "KILL", "HELP"]),
            Class::Ddl => true,
            Class::Call if is(&["CALL"]) => {
                self.effects.plain.call(self.lexer.mode().server);
                true
            }
            // A stored function can neither end a transaction nor prepare anything.
            Class::Call => false,
            Class::Unknown => {
                self.effects.plain.unread = true;
                true
            }
        };
        self.commits_implicitly = may && matches!(class, Class::Admin | Class::Ddl);
        // ROLLBACK has told whether it goes to a savepoint.
        self.effects.plain.any_transaction_verb |= may || self.effects.plain.ends_transaction;
    }
}
