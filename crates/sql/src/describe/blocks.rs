//! How far a stored program reaches.
//!
//! A semicolon inside BEGIN … END does not end CREATE PROCEDURE. To hide nothing behind a program
//! that only seems to go on, a word opens a block only where the grammar has a statement begin, so
//! a column called `begin` opens none. BEGIN, END and DO are no reserved words, so some of them are
//! names. Where a word may be one or the other, all blocks are taken as closed: every semicolon
//! ends a statement from there on, which shows more statements than there are and never fewer.

use super::walk::Walk;
use crate::{
    digest::is_reserved,
    lexer::{Kind, Token},
    mode::Server,
};

/// Deepest nesting of blocks that is followed.
const BLOCKS_MAX: usize = 32;
/// What is open in a stored program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Begin,
    If,
    /// CASE as a statement.
    Case,
    /// CASE inside an expression, at this depth of brackets.
    CaseExpression(u32),
    /// LOOP, and what stands behind the DO of WHILE and FOR.
    Loop,
    /// WHILE and MariaDB's FOR up to their DO, or to LOOP where `sql_mode` is ORACLE.
    While,
    Repeat,
}

/// Where the walk over a body is.
struct Blocks {
    open: [Block; BLOCKS_MAX],
    len: usize,
    /// A statement begins here.
    begins: bool,
    /// Behind UNTIL.
    until: bool,
    /// Depth of brackets in this statement.
    brackets: u32,
    /// The token before, a name behind a point being part of what stands before it.
    before: Token,
    /// Whether a word is a name or a keyword could not be told: all blocks count as closed.
    doubtful: bool,
}

impl Blocks {
    fn new(first: Token) -> Self {
        Self {
            open: [Block::Begin; BLOCKS_MAX],
            len: 0,
            begins: true,
            until: false,
            brackets: 0,
            before: Token { kind: Kind::Semicolon, ..first },
            doubtful: false,
        }
    }

    /// Whether a semicolon here ends the whole statement. One inside an expression or a condition
    /// ends no statement of a program that the server accepts, so something was misread.
    fn ends(&mut self) -> bool {
        self.doubtful |= self.brackets != 0
            || matches!(self.top(), Some(Block::CaseExpression(_) | Block::While));
        self.doubtful || self.len == 0
    }

    fn next_statement(&mut self) {
        self.begins = true;
        self.until = false;
    }

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
    /// Passes over the body that begins with `first`.
    pub(super) fn body(&mut self, first: Token) {
        let mut blocks = Blocks::new(first);
        let mut token = first;
        loop {
            let mut before = token;
            match token.kind {
                Kind::End => {
                    self.lexer.broken |= blocks.len > 0 && !blocks.doubtful;
                    return self.finish_at(token);
                }
                Kind::Semicolon if blocks.ends() => return self.finish_at(token),
                Kind::Semicolon => blocks.next_statement(),
                Kind::Word if blocks.begins => {
                    blocks.until = self.is(token, "UNTIL");
                    blocks.begins = self.first_word(token, &mut blocks);
                }
                Kind::Word => blocks.begins = self.later_word(token, &mut blocks),
                Kind::Name if blocks.begins => blocks.begins = self.is_label(),
                Kind::Punct(b'.') => {
                    before = self.behind_point(token);
                    blocks.begins = false;
                }
                Kind::Punct(byte) => {
                    blocks.begins = false;
                    match byte {
                        b'(' => blocks.brackets = blocks.brackets.saturating_add(1),
                        b')' => blocks.brackets = blocks.brackets.saturating_sub(1),
                        _ => {}
                    }
                }
                Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar => blocks.begins = false,
            }
            blocks.before = before;
            token = self.raw_token();
        }
    }

    /// What follows a point is a name, whatever it looks like.
    fn behind_point(&mut self, point: Token) -> Token {
        let next = self.raw_token();
        if next.kind == Kind::Word {
            return Token { kind: Kind::Name, ..next };
        }
        self.unread(next);
        point
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
            blocks.doubtful |= !self.opens(token);
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

    /// Whether a word of this kind opens a block here: FOR does with MariaDB alone, and what is
    /// assigned to or qualified is a variable.
    fn opens(&mut self, token: Token) -> bool {
        let mariadb = match self.lexer.mode().server {
            Server::MariaDb { .. } => true,
            Server::MySql { .. } | Server::Unknown => false,
        };
        if self.is(token, "FOR") && !mariadb {
            return false;
        }
        let next = self.raw_token();
        self.unread(next);
        !matches!(next.kind, Kind::Punct(b'.' | b':' | b'=' | b','))
    }

    /// A word inside a statement; whether a statement begins behind it.
    fn later_word(&mut self, token: Token, blocks: &mut Blocks) -> bool {
        if self.is(token, "CASE") {
            // END CASE where no statement begins ends what was not seen to begin.
            if !self.is(blocks.before, "END") {
                self.lexer.broken |= !blocks.push(Block::CaseExpression(blocks.brackets));
            }
            return false;
        }
        let Some(top) = blocks.top() else { return false };
        if self.is(token, "END") {
            self.later_end(top, blocks);
            return false;
        }
        match top {
            Block::If | Block::Case => {
                let branch = self.is(token, "THEN") || self.is(token, "ELSE");
                blocks.doubtful |= branch && blocks.brackets != 0;
                branch
            }
            Block::While => {
                let loops =
                    blocks.brackets == 0 && (self.is(token, "DO") || self.is(token, "LOOP"));
                if loops {
                    blocks.pop();
                    blocks.push(Block::Loop);
                }
                loops
            }
            Block::Begin | Block::CaseExpression(_) | Block::Loop | Block::Repeat => false,
        }
    }

    /// END inside a statement: the end of a CASE or of UNTIL, or a name. In brackets of its own it
    /// is a name; behind an operator it is one too.
    fn later_end(&mut self, top: Block, blocks: &mut Blocks) {
        let depth = match top {
            Block::CaseExpression(depth) => depth,
            Block::Repeat if blocks.until => 0,
            Block::Begin | Block::If | Block::Case | Block::Loop | Block::While | Block::Repeat => {
                return;
            }
        };
        if blocks.brackets > depth {
            return;
        }
        if blocks.brackets < depth || !self.is_operand(blocks.before) {
            blocks.doubtful = true;
            return;
        }
        blocks.pop();
        if top == Block::Repeat {
            self.pass_end();
        }
    }

    /// Whether `token` can be the last of a value: then no name can follow it.
    fn is_operand(&self, token: Token) -> bool {
        const VALUES: [&str; 4] = ["NULL", "TRUE", "FALSE", "END"];
        const OPERATORS: [&str; 2] = ["ESCAPE", "OVER"];
        match token.kind {
            Kind::Word => {
                let is = |words: &[&str]| words.iter().any(|word| self.is(token, word));
                is(&VALUES) || !(is_reserved(self.lexer.bytes(token)) || is(&OPERATORS))
            }
            Kind::Name
            | Kind::Text
            | Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::Punct(b')') => true,
            Kind::SysVar | Kind::Punct(_) | Kind::Semicolon | Kind::End => false,
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
