//! CREATE, ALTER, DROP, and how far a stored program reaches.
//!
//! A semicolon inside BEGIN … END does not end CREATE PROCEDURE. To hide nothing behind a program
//! that only seems to go on, a word opens a block only where the grammar has a statement begin, so
//! a column called `begin` opens none; and when in doubt a block is taken as closed, which shows
//! more statements than there are and never fewer.

use super::walk::Walk;
use crate::{
    class::Class,
    lexer::{Kind, Token},
};

/// Deepest nesting of blocks that is followed.
const BLOCKS_MAX: usize = 32;
/// Most words between CREATE and the kind of object.
const MODIFIERS_MAX: u32 = 24;

/// What is open in a stored program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Begin,
    If,
    /// CASE as a statement.
    Case,
    /// CASE inside an expression.
    CaseExpression,
    Loop,
    /// WHILE and MariaDB's FOR: their statements begin behind DO.
    While,
    Repeat,
}

/// Which object a stored program belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Routine,
    Trigger,
    Event,
}

struct Blocks {
    open: [Block; BLOCKS_MAX],
    len: usize,
}

impl Blocks {
    fn top(&self) -> Option<Block> {
        self.open.get(self.len.checked_sub(1)?).copied()
    }

    /// False if there is no room.
    fn push(&mut self, block: Block) -> bool {
        match self.open.get_mut(self.len) {
            Some(place) => {
                *place = block;
                self.len = self.len.wrapping_add(1);
                true
            }
            None => false,
        }
    }

    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }
}

impl Walk<'_, '_> {
    /// CREATE, ALTER, DROP.
    pub(super) fn definition(&mut self, verb: &[u8]) -> Class {
        for _ in 0..MODIFIERS_MAX {
            let token = self.token();
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

    /// Passes a word that may stand before the kind of object, and its value.
    fn modifier(&mut self, token: Token) -> bool {
        const WITH_VALUE: [&str; 2] = ["DEFINER", "ALGORITHM"];
        const ALONE: [&str; 8] =
            ["OR", "REPLACE", "AGGREGATE", "SQL", "SECURITY", "INVOKER", "TEMPORARY", "ONLINE"];
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
            Program::Event => self.head_until("DO"),
        };
        if let Some(first) = body {
            self.body(first);
        }
    }

    /// Passes everything up to the word `last` and gives what follows.
    fn head_until(&mut self, last: &str) -> Option<Token> {
        loop {
            let token = self.token();
            if matches!(token.kind, Kind::Semicolon | Kind::End) {
                return None;
            }
            if self.is(token, last) {
                return Some(self.token());
            }
        }
    }

    /// FOR EACH ROW [FOLLOWS other].
    fn trigger_head(&mut self) -> Option<Token> {
        let first = self.head_until("ROW")?;
        if self.is(first, "FOLLOWS") || self.is(first, "PRECEDES") {
            self.token();
            return Some(self.token());
        }
        Some(first)
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

    /// Passes over the body that begins with `first`.
    fn body(&mut self, first: Token) {
        let mut blocks = Blocks { open: [Block::Begin; BLOCKS_MAX], len: 0 };
        let mut begins = true;
        let mut until = false;
        let mut token = first;
        loop {
            match token.kind {
                Kind::End => {
                    self.lexer.broken |= blocks.len > 0;
                    return self.finish_at(token);
                }
                Kind::Semicolon if blocks.len == 0 => return self.finish_at(token),
                Kind::Semicolon => {
                    begins = true;
                    until = false;
                }
                Kind::Word if begins => {
                    until = self.is(token, "UNTIL");
                    begins = self.first_word(token, &mut blocks);
                }
                Kind::Word => begins = self.later_word(token, until, &mut blocks),
                Kind::Name if begins => begins = self.is_label(),
                Kind::Punct(b'.') => {
                    // What follows is a name, whatever it looks like.
                    let next = self.raw_token();
                    if next.kind != Kind::Word {
                        self.unread(next);
                    }
                    begins = false;
                }
                Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_) => begins = false,
            }
            token = self.raw_token();
        }
    }

    /// A word where a statement begins; whether one begins behind it too.
    fn first_word(&mut self, token: Token, blocks: &mut Blocks) -> bool {
        const OPENING: [(&str, Block, bool); 7] = [
            ("BEGIN", Block::Begin, true),
            ("IF", Block::If, false),
            ("CASE", Block::Case, false),
            ("LOOP", Block::Loop, true),
            ("REPEAT", Block::Repeat, true),
            ("WHILE", Block::While, false),
            ("FOR", Block::While, false),
        ];
        if let Some((_, block, begins)) = OPENING.iter().find(|(word, ..)| self.is(token, word)) {
            self.lexer.broken |= !blocks.push(*block);
            return *begins;
        }
        if self.is(token, "END") {
            blocks.pop();
            self.pass_end();
            return false;
        }
        if self.is(token, "DECLARE") {
            return self.declaration();
        }
        self.is(token, "ELSE") || self.is_label()
    }

    /// A word inside a statement; whether a statement begins behind it.
    fn later_word(&mut self, token: Token, until: bool, blocks: &mut Blocks) -> bool {
        if self.is(token, "CASE") {
            self.lexer.broken |= !blocks.push(Block::CaseExpression);
            return false;
        }
        let Some(top) = blocks.top() else { return false };
        if self.is(token, "END") {
            match top {
                Block::CaseExpression => blocks.pop(),
                Block::Repeat if until => {
                    blocks.pop();
                    self.pass_end();
                }
                Block::Begin
                | Block::If
                | Block::Case
                | Block::Loop
                | Block::While
                | Block::Repeat => {}
            }
            return false;
        }
        match top {
            Block::If | Block::Case => self.is(token, "THEN") || self.is(token, "ELSE"),
            Block::While => self.is(token, "DO"),
            Block::Begin | Block::CaseExpression | Block::Loop | Block::Repeat => false,
        }
    }

    /// Passes the word behind END that says what ends.
    fn pass_end(&mut self) {
        const KINDS: [&str; 6] = ["IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR"];
        let next = self.raw_token();
        if !KINDS.iter().any(|kind| self.is(next, kind)) {
            self.unread(next);
        }
    }

    /// Whether a colon follows: then a statement begins behind it.
    fn is_label(&mut self) -> bool {
        let next = self.raw_token();
        if next.kind == Kind::Punct(b':') {
            return true;
        }
        self.unread(next);
        false
    }

    /// DECLARE … HANDLER FOR conditions: a statement begins behind the conditions. Every other
    /// DECLARE is an ordinary statement.
    fn declaration(&mut self) -> bool {
        const ACTIONS: [&str; 3] = ["CONTINUE", "EXIT", "UNDO"];
        let action = self.raw_token();
        if !ACTIONS.iter().any(|word| self.is(action, word)) {
            self.unread(action);
            return false;
        }
        for word in ["HANDLER", "FOR"] {
            let next = self.raw_token();
            if !self.is(next, word) {
                self.unread(next);
                return false;
            }
        }
        loop {
            let condition = self.raw_token();
            if matches!(condition.kind, Kind::Semicolon | Kind::End) {
                self.unread(condition);
                return false;
            }
            let more = self.is(condition, "NOT") || self.is(condition, "SQLSTATE");
            let value = if more { Some(self.raw_token()) } else { None };
            if value.is_some_and(|value| self.is(value, "VALUE")) {
                self.raw_token();
            }
            let next = self.raw_token();
            if next.kind != Kind::Punct(b',') {
                self.unread(next);
                return true;
            }
        }
    }
}
