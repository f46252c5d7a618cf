//! Which statements begin a transaction or end one, of themselves or by an implicit commit.

use super::walk::Walk;
use crate::{
    class::{Class, ClassSet},
    effects::TransactionAfter,
    lexer::Token,
};

impl Walk<'_, '_> {
    /// Notes whether the statement of `class` that begins with `verb` may begin or end a
    /// transaction; SET has noted so itself.
    pub(super) fn note_transaction(&mut self, verb: Token, class: Class) {
        let is = |words: &[&str]| words.iter().any(|word| self.is(verb, word));
        let may = match class {
            Class::Read | Class::LockingRead | Class::Write | Class::Load | Class::Session => false,
            // ROLLBACK has told whether it goes to a savepoint.
            Class::Transaction => {
                !is(&["SAVEPOINT", "RELEASE", "ROLLBACK"]) || self.effects.plain.ends_transaction
            }
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
        self.controls |= may;
    }

    /// Notes what a statement of `class` does to the transaction of what follows: it is over.
    pub(super) fn follow_transaction(&mut self, class: Class, classes: ClassSet) {
        let plain = &mut self.effects.plain;
        let controls = std::mem::take(&mut self.controls);
        let is_gateable = classes.is_gateable();
        plain.transaction_control_before_other |= is_gateable && self.controlled;
        // What commits of itself, and may work before or behind that, shows in the server's flags,
        // if nothing follows.
        let commits = controls && matches!(class, Class::Ddl | Class::Admin);
        let calls = plain.transaction_after == TransactionAfter::Unknown && !self.controlled;
        plain.transaction_after = if calls {
            TransactionAfter::Unknown
        } else if controls && !commits {
            TransactionAfter::Other
        } else if is_gateable && self.controlled {
            TransactionAfter::OfText
        } else if self.committed {
            TransactionAfter::Other
        } else {
            plain.transaction_after
        };
        self.committed = commits;
        self.controlled |= controls;
        plain.any_transaction_verb = self.controlled;
    }
}
