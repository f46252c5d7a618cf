//! How a statement begins: which of them is judged, and as what.

use super::walk::Walk;
use crate::lexer::{Kind as TokenKind, Token};
use crate::text::SqlText;

use super::Temporary;
use super::block::{Clause, Kind};

/// Where the beginning of a statement has been read to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Begin {
    /// Its first word comes.
    #[default]
    Start,
    /// It is known what it is.
    Known,
    /// Nothing of it is run, or nothing of it is judged.
    Skip,
    /// EXPLAIN: what it explains is not run without ANALYZE.
    Explain,
    /// ANALYZE, which is a statement of its own ahead of TABLE.
    Analyze,
    /// What is run comes, perhaps behind `FORMAT = name`.
    Analyzed,
    /// So many more tokens, and then what is run, perhaps behind more of that kind.
    Format(u8),
    Set,
    /// `SET STATEMENT … FOR`.
    SetStatement,
    /// BEGIN, or a compound statement.
    Block,
    Create,
    /// CREATE TEMPORARY, and what it makes.
    Temporary,
    Alter,
    Drop,
    Rename,
    Prepare,
    /// EXECUTE, which names a statement or is IMMEDIATE.
    Execute,
    /// The text that is to be run comes.
    Text,
}

impl Walk<'_, '_> {
    /// Reads a token of the beginning. True: it is all that there is to it.
    pub(super) fn begin(&mut self, token: Token) -> bool {
        let is = |word: &str| {
            token.kind == TokenKind::Word
                && self.lexer.bytes(token).eq_ignore_ascii_case(word.as_bytes())
        };
        let is_one = |words: &[&str]| words.iter().any(|word| is(word));
        let next = match self.begin {
            Begin::Known => return false,
            Begin::Skip => return true,
            Begin::Start => return self.first_word(token),
            Begin::Explain if is("ANALYZE") => Begin::Analyzed,
            Begin::Explain => Begin::Skip,
            Begin::Analyze if is_one(&["TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"]) => {
                Begin::Skip
            }
            Begin::Analyze | Begin::Analyzed if is("FORMAT") => Begin::Format(2),
            // MySQL's `INTO @v` and `FOR SCHEMA name`, in this order.
            Begin::Analyzed | Begin::Format(0) if is("INTO") => Begin::Format(1),
            Begin::Analyzed | Begin::Format(0) if is("FOR") => Begin::Format(2),
            Begin::Analyze | Begin::Analyzed | Begin::Format(0) => {
                self.begin = Begin::Start;
                return self.first_word(token);
            }
            Begin::Format(left) => Begin::Format(left.saturating_sub(1)),
            Begin::Set if is("STATEMENT") => Begin::SetStatement,
            Begin::Set => Begin::Known,
            Begin::SetStatement if self.depth == 0 && is("FOR") => Begin::Start,
            Begin::SetStatement => Begin::SetStatement,
            Begin::Block if is("WORK") => Begin::Known,
            Begin::Block => return self.stop(),
            // A name, as in `DEFINER = user@host`.
            begin @ (Begin::Create | Begin::Alter) if self.is_value() => begin,
            // It ends with the session, and is in nobody's way.
            Begin::Create if is("TEMPORARY") => Begin::Temporary,
            Begin::Drop if is("TEMPORARY") => Begin::Known,
            Begin::Temporary => self.temporary(token),
            Begin::Create | Begin::Alter if is("VIEW") => {
                self.define();
                Begin::Skip
            }
            Begin::Create if is_one(&BODIES) => return self.stop(),
            Begin::Create if is_one(&["USER", "ROLE", "SERVER", "RESOURCE"]) => Begin::Skip,
            Begin::Create if is_one(&OBJECTS) => return self.define(),
            Begin::Create => Begin::Create,
            Begin::Alter if is_one(&BODIES) => return self.stop(),
            Begin::Alter if is_one(&["USER", "ROLE", "SERVER", "RESOURCE", "INSTANCE"]) => {
                Begin::Skip
            }
            Begin::Alter if is_one(&OBJECTS) => return self.define(),
            Begin::Alter => Begin::Alter,
            Begin::Drop if is_one(&["PREPARE", "USER", "ROLE", "SERVER", "RESOURCE"]) => {
                Begin::Skip
            }
            Begin::Rename if is("USER") => Begin::Skip,
            Begin::Drop | Begin::Rename => return self.define(),
            Begin::Prepare if is("FROM") => Begin::Text,
            Begin::Prepare => Begin::Prepare,
            Begin::Execute if is("IMMEDIATE") => Begin::Text,
            Begin::Execute => Begin::Skip,
            Begin::Text => {
                self.text(token);
                Begin::Skip
            }
        };
        self.begin = next;
        true
    }

    /// Whether what comes is said to be what stands ahead of it.
    fn is_value(&self) -> bool {
        self.before.is_some_and(|before| before.kind == TokenKind::Punct(b'='))
    }

    fn first_word(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Punct(b'(') => return false,
            TokenKind::Word => {}
            TokenKind::Name
            | TokenKind::Text
            | TokenKind::DollarText
            | TokenKind::Number
            | TokenKind::UserVar
            | TokenKind::SysVar
            | TokenKind::Punct(_)
            | TokenKind::Semicolon
            | TokenKind::End => {
                // A label, or nothing that a server takes.
                return self.stop();
            }
        }
        let bytes = self.lexer.bytes(token);
        let is_one =
            |words: &[&str]| words.iter().any(|word| bytes.eq_ignore_ascii_case(word.as_bytes()));
        self.began_at = Self::offset(token);
        self.begin = if is_one(&["SELECT", "VALUES", "TABLE", "WITH", "INSERT", "REPLACE"]) {
            self.begin = Begin::Known;
            return false;
        } else if is_one(&["UPDATE"]) {
            self.main_block(Kind::Update, Clause::From);
            Begin::Known
        } else if is_one(&["DELETE"]) {
            self.main_block(Kind::Delete, Clause::Head);
            Begin::Known
        } else if is_one(&["EXPLAIN", "DESCRIBE", "DESC"]) {
            Begin::Explain
        } else if is_one(&["ANALYZE"]) {
            Begin::Analyze
        } else if is_one(&["SET"]) {
            Begin::Set
        } else if is_one(&["BEGIN"]) {
            Begin::Block
        } else if is_one(&["CREATE"]) {
            Begin::Create
        } else if is_one(&["ALTER"]) {
            Begin::Alter
        } else if is_one(&["DROP"]) {
            Begin::Drop
        } else if is_one(&["RENAME"]) {
            Begin::Rename
        } else if is_one(&["TRUNCATE", "OPTIMIZE", "REPAIR", "IMPORT"]) {
            return self.define();
        } else if is_one(&["PREPARE"]) {
            Begin::Prepare
        } else if is_one(&["EXECUTE"]) {
            Begin::Execute
        } else if is_one(&COMPOUND) || self.lexer.peeked().kind == TokenKind::Punct(b':') {
            return self.stop();
        } else {
            Begin::Known
        };
        true
    }

    /// Reads on to the name of what is made.
    fn temporary(&mut self, token: Token) -> Begin {
        let bytes = self.lexer.bytes(token);
        let is_one =
            |words: &[&str]| words.iter().any(|word| bytes.eq_ignore_ascii_case(word.as_bytes()));
        let is_name = match token.kind {
            TokenKind::Word if is_one(&["TABLE", "SEQUENCE", "IF", "NOT", "EXISTS"]) => {
                return Begin::Temporary;
            }
            TokenKind::Punct(b'.') => return Begin::Temporary,
            TokenKind::Word | TokenKind::Name => true,
            TokenKind::Text
            | TokenKind::DollarText
            | TokenKind::Number
            | TokenKind::UserVar
            | TokenKind::SysVar
            | TokenKind::Punct(_)
            | TokenKind::Semicolon
            | TokenKind::End => false,
        };
        if is_name && self.lexer.peeked().kind == TokenKind::Punct(b'.') {
            return Begin::Temporary;
        }
        let at = Self::offset(token);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let made = if is_name { Temporary::Named { at, len } } else { Temporary::Unnamed };
        self.survey.note_temporary(made);
        Begin::Known
    }

    /// The statement changes a schema.
    fn define(&mut self) -> bool {
        self.survey.ddl.get_or_insert(self.began_at);
        self.begin = Begin::Known;
        true
    }

    /// From here on the text is a compound statement, or a stored program: which of its statements
    /// are run now, or at all, is not known.
    fn stop(&mut self) -> bool {
        if matches!(self.begin, Begin::Create | Begin::Alter) {
            self.survey.ddl.get_or_insert(self.began_at);
            // It runs nothing itself: only what may stand behind it is not judged.
            self.stored = true;
        } else {
            self.give_up();
        }
        self.stopped = true;
        true
    }

    /// The text of a PREPARE or EXECUTE IMMEDIATE.
    fn text(&mut self, token: Token) {
        let next = self.lexer.peeked();
        let is_all = match next.kind {
            TokenKind::Semicolon | TokenKind::End => true,
            TokenKind::Word => self.lexer.bytes(next).eq_ignore_ascii_case(b"USING"),
            TokenKind::Name
            | TokenKind::Text
            | TokenKind::DollarText
            | TokenKind::Number
            | TokenKind::UserVar
            | TokenKind::SysVar
            | TokenKind::Punct(_) => false,
        };
        let literal = SqlText::from_token(self.lexer.bytes(token), self.lexer.mode());
        match literal {
            Some(literal)
                if token.kind == TokenKind::Text
                    && is_all
                    && !self.is_inner
                    && literal.is_prepared_as_it_stands() =>
            {
                let mut text = Vec::new();
                literal.unescape_into(&mut text);
                self.inner(&text, Self::offset(token));
            }
            Some(_) | None => self.give_up(),
        }
    }
}

/// What CREATE and ALTER make of text that is run later.
const BODIES: [&str; 5] = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];

/// What else they make. One of these words comes ahead of any that could be a name.
const OBJECTS: [&str; 10] = [
    "TABLE",
    "INDEX",
    "DATABASE",
    "SCHEMA",
    "TABLESPACE",
    "SEQUENCE",
    "LOGFILE",
    "UNDO",
    "LIBRARY",
    "SPATIAL",
];

/// What begins a compound statement of MariaDB outside of stored programs.
const COMPOUND: [&str; 8] = ["IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR", "DECLARE", "ELSEIF"];
