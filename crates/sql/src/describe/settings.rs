//! SET, in all its forms.

use super::walk::{Step, Walk};
use crate::{
    class::Class,
    effects::AppSetting,
    lexer::{Kind, Token},
    mode::Charset,
    text::SqlText,
};

/// What an assignment sets, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    App,
    Charset,
    SqlMode,
    Other,
}

impl<'t> Walk<'t, '_> {
    /// SET …; MariaDB's SET STATEMENT … FOR leads on to the statement behind it.
    pub(super) fn set(&mut self) -> Step {
        let first = self.token();
        if self.is(first, "STATEMENT") {
            return self.set_statement();
        }
        let mut reads = false;
        let mut item = first;
        loop {
            let target = self.target(item);
            if !self.value(target, &mut reads) {
                break;
            }
            item = self.token();
        }
        let class = if reads && self.locking { Class::LockingRead } else { Class::Session };
        Step::Class(class)
    }

    fn set_statement(&mut self) -> Step {
        let mut depth = 0_u32;
        let mut reads_differently = false;
        loop {
            let token = self.token();
            match token.kind {
                Kind::Semicolon | Kind::End => return Step::Class(Class::Unknown),
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Word if self.is(token, "SQL_MODE") => reads_differently = true,
                Kind::Word if depth == 0 && self.is(token, "FOR") => {
                    return if reads_differently {
                        Step::Class(Class::Unknown)
                    } else {
                        Step::Again(self.behind_brackets())
                    };
                }
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

    fn behind_brackets(&mut self) -> Token {
        loop {
            let token = self.token();
            if token.kind != Kind::Punct(b'(') {
                return token;
            }
        }
    }

    /// Reads the left side of an assignment, up to its value.
    fn target(&mut self, item: Token) -> Target {
        let mut token = item;
        let mut global = false;
        if token.kind == Kind::SysVar {
            token = self.token();
        }
        loop {
            let scope = ["SESSION", "LOCAL", "GLOBAL", "PERSIST", "PERSIST_ONLY"];
            let Some(at) = scope.iter().position(|word| self.is(token, word)) else { break };
            global |= at >= 2;
            token = self.token();
            if token.kind == Kind::Punct(b'.') {
                token = self.token();
            }
        }
        if self.is(token, "NAMES") || self.is(token, "CHARSET") {
            let next = self.peek();
            return if is_assignment(next) { Target::Other } else { Target::Charset };
        }
        if self.is(token, "CHARACTER") {
            self.token();
            return Target::Charset;
        }
        let target = self.assigned(token, global);
        if self.pass_assignment() { target } else { Target::Other }
    }

    fn assigned(&self, token: Token, global: bool) -> Target {
        if token.kind == Kind::UserVar {
            let bytes = self.lexer.bytes(token);
            let name = bytes.get(1..).unwrap_or_default();
            return if unquoted(name).eq_ignore_ascii_case(b"sluice_app") {
                Target::App
            } else {
                Target::Other
            };
        }
        let is = |word: &[u8]| {
            self.lexer.name_of(token).is_some_and(|name| name.eq_ignore_ascii_case(word))
        };
        if is(b"sql_mode") && !global {
            Target::SqlMode
        } else if is(b"character_set_client") && !global {
            Target::Charset
        } else {
            Target::Other
        }
    }

    /// Passes `=` or `:=`.
    fn pass_assignment(&mut self) -> bool {
        let mut token = self.token();
        if token.kind == Kind::Punct(b':') {
            token = self.token();
        }
        if token.kind == Kind::Punct(b'=') {
            return true;
        }
        self.unread(token);
        false
    }

    /// Reads a value up to the comma behind it; whether there is a comma.
    fn value(&mut self, target: Target, reads: &mut bool) -> bool {
        let first = self.token();
        let mut token = first;
        let mut len = 0_u32;
        let mut depth = 0_u32;
        let mut ansi = false;
        loop {
            match token.kind {
                Kind::Semicolon | Kind::End => break,
                Kind::Punct(b',') if depth == 0 => break,
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Text if target == Target::SqlMode => {
                    ansi |= names_ansi(self.lexer.bytes(token));
                }
                Kind::Word => {
                    *reads |= self.is(token, "SELECT") || self.is(token, "TABLE");
                    self.note_word(token);
                }
                Kind::Name => self.note_word(token),
                Kind::Text
                | Kind::DollarText
                | Kind::Number
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_) => {}
            }
            len = len.saturating_add(1);
            token = self.token();
        }
        self.note_value(target, Value { first, alone: len == 1, names_ansi: ansi });
        token.kind == Kind::Punct(b',')
    }

    fn note_value(&mut self, target: Target, value: Value) {
        match target {
            Target::Other => {}
            Target::App => self.effects.set_app = Some(self.app(value)),
            Target::Charset => {
                let charset = self.charset(value.first);
                self.effects.plain.set_charset = charset;
                let same = charset == Some(self.lexer.mode().charset);
                self.reads_differently |= !same;
            }
            Target::SqlMode => {
                let literal = value.alone && value.first.kind == Kind::Text;
                if literal || value.names_ansi {
                    self.effects.plain.sets_ansi_quotes = Some(value.names_ansi);
                }
                self.reads_differently = true;
            }
        }
    }

    fn app(&self, value: Value) -> AppSetting<'t> {
        if value.alone && self.is(value.first, "NULL") {
            return AppSetting::Cleared;
        }
        if value.alone && value.first.kind == Kind::Text {
            let literal = SqlText::from_token(self.lexer.bytes(value.first), self.lexer.mode());
            return literal.map_or(AppSetting::Unreadable, AppSetting::Named);
        }
        AppSetting::Unreadable
    }

    /// The character set named by a word, a literal or a quoted name.
    fn charset(&self, token: Token) -> Option<Charset> {
        let name = match token.kind {
            Kind::Word | Kind::Name => self.lexer.name_of(token)?,
            Kind::Text => {
                SqlText::from_token(self.lexer.bytes(token), self.lexer.mode())?.plain()?
            }
            Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::SysVar
            | Kind::Punct(_)
            | Kind::Semicolon
            | Kind::End => return None,
        };
        if name.eq_ignore_ascii_case(b"default") { None } else { Some(Charset::from_name(name)) }
    }
}

/// The right side of an assignment.
#[derive(Clone, Copy)]
struct Value {
    first: Token,
    /// It is one token.
    alone: bool,
    /// One of its literals names a mode that means ANSI_QUOTES.
    names_ansi: bool,
}

fn is_assignment(token: Token) -> bool {
    matches!(token.kind, Kind::Punct(b'=' | b':'))
}

fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [b'\'' | b'"' | b'`', inner @ .., _] => inner,
        _ => name,
    }
}

/// ANSI_QUOTES itself and the modes that include it.
fn names_ansi(literal: &[u8]) -> bool {
    const MODES: [&[u8]; 7] =
        [b"ANSI_QUOTES", b"ANSI", b"DB2", b"MAXDB", b"MSSQL", b"ORACLE", b"POSTGRESQL"];
    unquoted(literal)
        .split(|byte| *byte == b',')
        .any(|mode| MODES.iter().any(|ansi| mode.trim_ascii().eq_ignore_ascii_case(ansi)))
}
