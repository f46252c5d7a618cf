//! Which statements begin a transaction or end one, of themselves or by an implicit commit.

use super::walk::Walk;
use crate::{
    class::{Class, ClassSet},
    effects::{TransactionAfter, TransactionVerb},
    lexer::Token,
};

/// What a SET does to autocommit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Switch {
    /// Nothing, or what only the server knows.
    #[default]
    Unclear,
    /// It is one assignment, to autocommit.
    Alone,
    /// So is one of its assignments, and the others commit nothing.
    WithOthers,
}

impl Walk<'_, '_> {
    /// Notes whether the statement of `class` that begins with `verb` may begin or end a
    /// transaction; SET and the statements of transactions have noted so themselves.
    pub(super) fn note_transaction(&mut self, verb: Token, class: Class) {
        let is = |words: &[&str]| words.iter().any(|word| self.is(verb, word));
        let may = match class {
            Class::Read
            | Class::LockingRead
            | Class::Write
            | Class::Load
            | Class::Session
            | Class::Transaction => false,
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
        self.locks = self.is(verb, "LOCK");
        self.commits_implicitly = may && matches!(class, Class::Admin | Class::Ddl);
        self.controls |= may;
    }

    /// Notes what a statement of `class` does to the transaction of what follows: it is over.
    pub(super) fn follow_transaction(&mut self, class: Class, classes: ClassSet) {
        let plain = &mut self.effects.plain;
        let controls = std::mem::take(&mut self.controls);
        let switch = std::mem::take(&mut self.switch);
        let controlled = self.verbs.any();
        plain.transaction_control_before_other |= classes.is_gateable() && controlled;
        plain.unlocks_before_other |= classes.is_gateable() && self.unlocks;
        self.unlocks = plain.releases.any() || plain.takes.any() || plain.begins_transaction;
        // What commits of itself, and may work before or behind that, shows in the server's flags,
        // if nothing follows; not LOCK TABLES, behind which another transaction is open where
        // autocommit is off. So does one SET of autocommit: what it switches on commits, and nothing
        // else of it does.
        let shows = matches!(class, Class::Ddl | Class::Admin) || switch != Switch::Unclear;
        let commits = controls && shows && !self.locks;
        let calls = controls && class == Class::Call;
        plain.transaction_after = match plain.transaction_after {
            _ if calls && controlled => TransactionAfter::OfTextOrOther,
            _ if calls => TransactionAfter::Unknown,
            _ if controls && !commits => TransactionAfter::Other,
            _ if classes.works() && controlled => TransactionAfter::OfText,
            _ if self.committed => TransactionAfter::Other,
            before => before,
        };
        self.committed = commits;
        if controls {
            let verb = match class {
                Class::Call => TransactionVerb::Call,
                Class::Transaction => TransactionVerb::Plain,
                Class::Session if switch == Switch::Alone => TransactionVerb::Switch,
                Class::Read
                | Class::LockingRead
                | Class::Write
                | Class::Load
                | Class::Session
                | Class::Ddl
                | Class::Admin
                | Class::Unknown => TransactionVerb::Other,
            };
            self.verbs = self.verbs.with(self.count, verb);
        }
        plain.transaction_verbs = self.verbs;
    }
}
