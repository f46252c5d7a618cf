//! CREATE, ALTER, DROP, and what stands before the body of a stored program.

use super::walk::Walk;
use crate::{
    class::Class,
    effects::Locks,
    lexer::{Kind, Token},
};

/// Most words between CREATE and the kind of object.
const MODIFIERS_MAX: u32 = 24;

/// Locks that go with the last of the tables that LOCK TABLES has named, where that is dropped.
/// MariaDB's CREATE OR REPLACE has dropped it when it fails. Which is the last one only the server
/// knows: a table may be locked under several names.
const WITH_THE_LAST_TABLE: Locks = Locks { tables: true, global: false, instance: false };

/// What drops tables names them so.
const TABLES: [&str; 3] = ["TABLE", "TABLES", "SEQUENCE"];

/// Which object a stored program belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Routine,
    Trigger,
    Event,
}

impl Walk<'_, '_> {
    /// CREATE, ALTER, DROP.
    pub(super) fn definition(&mut self, verb: &[u8]) -> Class {
        // What a definition names is not run, and no default, check or schedule may call.
        self.spots = false;
        let mut drops = verb == b"DROP";
        for _ in 0..MODIFIERS_MAX {
            let token = self.token();
            drops |= verb == b"CREATE" && self.is(token, "REPLACE");
            drops &= !self.is(token, "TEMPORARY");
            if drops && TABLES.iter().any(|word| self.is(token, word)) {
                self.effects.plain.release(WITH_THE_LAST_TABLE);
            }
            let is = |word: &str| self.is(token, word);
            if is("USER") || is("ROLE") {
                self.pass_over();
                return Class::Admin;
            }
            if verb == b"DROP" {
                if is("PREPARE") {
                    let name = self.token();
                    self.effects.deallocate = self.prepared_name(name);
                    return Class::Session;
                }
                break;
            }
            let program = if verb == b"CREATE" && (is("PROCEDURE") || is("FUNCTION")) {
                Some(Program::Routine)
            } else if verb == b"CREATE" && is("TRIGGER") {
                Some(Program::Trigger)
            } else if is("EVENT") {
                Some(Program::Event)
            } else {
                None
            };
            if verb == b"CREATE" && is("TABLE") {
                self.created_table();
                return Class::Ddl;
            }
            if let Some(program) = program {
                self.program(program);
                return Class::Ddl;
            }
            if !self.modifier(token) {
                break;
            }
        }
        self.pass_over();
        Class::Ddl
    }

    /// CREATE TABLE, which fills the table if a query is anywhere in it. SELECT and TABLE stand in
    /// no other place; VALUES does where partitions are defined.
    fn created_table(&mut self) {
        let effects = self.effects;
        let mut before = self.token();
        while !matches!(before.kind, Kind::Semicolon | Kind::End) {
            let token = self.token();
            let is = |word: &str| token.kind == Kind::Word && self.is(token, word);
            if before.kind == Kind::Punct(b'.') {
                // A name, whatever it looks like.
            } else if is("SELECT") || is("TABLE") {
                self.writes = true;
            } else if is("VALUES") {
                let next = self.peek();
                self.writes |= !self.is(next, "LESS") && !self.is(next, "IN");
            }
            self.spots = self.writes;
            if matches!(token.kind, Kind::Word | Kind::Name) {
                self.note_word(token);
            }
            before = token;
        }
        if !self.writes {
            self.effects = effects;
        }
    }

    /// Passes everything of a CREATE FUNCTION that stands before its body, from behind CREATE on.
    pub(super) fn function_head(&mut self) -> Option<Token> {
        self.spots = false;
        for _ in 0..MODIFIERS_MAX {
            let token = self.token();
            if self.is(token, "FUNCTION") {
                let first = self.routine_head();
                self.spots = true;
                return first;
            }
            if !self.modifier(token) {
                return None;
            }
        }
        None
    }

    /// Passes a word that may stand before the kind of object, and its value.
    fn modifier(&mut self, token: Token) -> bool {
        const WITH_VALUE: [&str; 2] = ["DEFINER", "ALGORITHM"];
        const ALONE: [&str; 9] = [
            "OR",
            "REPLACE",
            "AGGREGATE",
            "SQL",
            "SECURITY",
            "INVOKER",
            "TEMPORARY",
            "EXTERNAL",
            "ONLINE",
        ];
        if WITH_VALUE.iter().any(|word| self.is(token, word)) {
            if self.peek().kind != Kind::Punct(b'=') {
                return self.is(token, "DEFINER");
            }
            self.token();
            self.token();
            return true;
        }
        ALONE.iter().any(|word| self.is(token, word))
            || matches!(token.kind, Kind::UserVar | Kind::Punct(b'(' | b')'))
    }

    /// Passes over a stored program, from behind PROCEDURE, TRIGGER or EVENT on.
    fn program(&mut self, program: Program) {
        let body = match program {
            Program::Routine => self.routine_head(),
            Program::Trigger => self.trigger_head(),
            Program::Event => self.event_head(),
        };
        if let Some(first) = body {
            self.body(first);
        }
    }

    /// Passes everything up to the word `last`, which neither stands in brackets nor is a name
    /// behind a point.
    fn head_until(&mut self, last: &str) -> Option<()> {
        let mut depth = 0_u32;
        loop {
            let token = self.token();
            match token.kind {
                Kind::Semicolon | Kind::End => return None,
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Punct(b'.') => {
                    self.token();
                }
                Kind::Word if depth == 0 && self.is(token, last) => return Some(()),
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

    /// FOR EACH ROW [FOLLOWS other].
    fn trigger_head(&mut self) -> Option<Token> {
        loop {
            self.head_until("FOR")?;
            let each = self.token();
            if !self.is(each, "EACH") {
                self.unread(each);
                continue;
            }
            let row = self.token();
            if self.is(row, "ROW") {
                break;
            }
            self.unread(row);
        }
        let first = self.token();
        if self.is(first, "FOLLOWS") || self.is(first, "PRECEDES") {
            self.token();
            return Some(self.token());
        }
        Some(first)
    }

    /// The name of an event, its schedule and whatever else stands before DO.
    fn event_head(&mut self) -> Option<Token> {
        const BEFORE_NAME: [&str; 3] = ["IF", "NOT", "EXISTS"];
        let mut name = self.token();
        while BEFORE_NAME.iter().any(|word| self.is(name, word)) {
            name = self.token();
        }
        self.head_until("DO")?;
        Some(self.token())
    }

    /// The name, the parameters and the characteristics of a routine.
    fn routine_head(&mut self) -> Option<Token> {
        const BEFORE_NAME: [&str; 3] = ["IF", "NOT", "EXISTS"];
        let mut token = self.token();
        while BEFORE_NAME.iter().any(|word| self.is(token, word)) {
            token = self.token();
        }
        token = self.token();
        if token.kind == Kind::Punct(b'.') {
            self.token();
            token = self.token();
        }
        let mut depth = 0_u32;
        loop {
            match token.kind {
                Kind::Semicolon | Kind::End => return None,
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Word if depth == 0 && !self.characteristic(token) => return Some(token),
                Kind::Word
                | Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_) => {}
            }
            token = self.token();
        }
    }

    /// Passes a word of a routine's characteristics or of the type it returns, and what belongs
    /// to it; any other word is the first of the body.
    fn characteristic(&mut self, token: Token) -> bool {
        const ONE_MORE: [&str; 5] = ["RETURNS", "LANGUAGE", "CHARACTER", "CHARSET", "COLLATE"];
        const ALONE: [&str; 24] = [
            "COMMENT",
            "SQL",
            "NOT",
            "DETERMINISTIC",
            "CONTAINS",
            "NO",
            "READS",
            "MODIFIES",
            "DATA",
            "SECURITY",
            "DEFINER",
            "INVOKER",
            "UNSIGNED",
            "SIGNED",
            "ZEROFILL",
            "PRECISION",
            "VARYING",
            "VARCHAR",
            "CHAR",
            "BINARY",
            "ASCII",
            "UNICODE",
            "AS",
            "SONAME",
        ];
        if self.is(token, "CHARACTER") {
            self.token();
        }
        if ONE_MORE.iter().any(|word| self.is(token, word)) {
            self.token();
            return true;
        }
        ALONE.iter().any(|word| self.is(token, word))
    }
}
