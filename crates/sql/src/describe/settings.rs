//! SET, in all its forms.
//!
//! What was tried on MySQL 9.7 and MariaDB 10.11 and decides here: GLOBAL and PERSIST without `@@`
//! go on to hold for the assignments behind them; MySQL takes `śql_mode` and `` `sql_mode ` `` for
//! `sql_mode`; a value may be any expression; of several assignments all values are computed before
//! the first is assigned. An assignment to `sql_mode` puts the status flags right, also behind a
//! routine that has left them wrong.

mod joined;

use self::joined::Joined;
use super::{
    transactions::Switch,
    walk::{Step, Walk},
};
use crate::{
    class::Class,
    effects::AppSetting,
    lexer::{Kind, Token},
    mode::{Charset, Setting},
    text::{SqlText, is_plain_name},
};

/// What an assignment sets, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    App,
    /// A user variable whose name the server may take for the app's.
    PerhapsApp,
    Charset,
    SqlMode,
    Autocommit,
    /// A variable of the session whose name the server may take for any of these.
    Any,
    /// SET PASSWORD, SET DEFAULT ROLE and whatever else is no assignment: it may commit.
    Statement,
    Other,
}

/// Which variables an assignment is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Global,
    /// Behind an assignment to GLOBAL: for the server to know.
    Unclear,
}

impl<'t> Walk<'t, '_> {
    /// SET …; MariaDB's SET STATEMENT … FOR leads on to the statement behind it.
    pub(super) fn set(&mut self) -> Step {
        let first = self.token();
        if self.is(first, "STATEMENT") {
            return self.set_statement();
        }
        if self.is(first, "ROLE") && !self.mariadb {
            return Step::Class(Class::Session);
        }
        let mut assigned = Assigned::default();
        let mut item = first;
        let mut scope = Scope::Session;
        loop {
            let target = self.target(item, &mut scope);
            if !self.value(target, &mut assigned) {
                break;
            }
            item = self.token();
        }
        self.effects.plain.sql_mode_by_flags =
            assigned.computes_mode && !assigned.unclear && !self.behind_settings;
        self.switch = assigned.switch();
        let reads = assigned.reads && self.locking;
        Step::Class(if reads { Class::LockingRead } else { Class::Session })
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
                Kind::Word if depth == 0 && self.is(token, "FOR") => {
                    return if reads_differently {
                        Step::Class(Class::Unknown)
                    } else {
                        self.behind_settings = true;
                        Step::Again(self.behind_brackets())
                    };
                }
                Kind::Word | Kind::Name => {
                    let name = self.lexer.name_of(token).unwrap_or_default();
                    reads_differently |=
                        name.eq_ignore_ascii_case(b"sql_mode") || !is_plain_name(name);
                    self.note_word(token);
                }
                Kind::Text
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
    fn target(&mut self, item: Token, sticky: &mut Scope) -> Target {
        const SCOPES: [&str; 5] = ["SESSION", "LOCAL", "GLOBAL", "PERSIST", "PERSIST_ONLY"];
        let mut token = item;
        let at_variable = token.kind == Kind::SysVar;
        if at_variable {
            token = self.token();
        }
        let mut scope = if at_variable { Scope::Session } else { *sticky };
        while let Some(at) = SCOPES.iter().position(|word| self.is(token, word)) {
            scope = if at >= 2 { Scope::Global } else { Scope::Session };
            if !at_variable {
                *sticky = if at >= 2 { Scope::Unclear } else { Scope::Session };
            }
            token = self.token();
            if token.kind == Kind::Punct(b'.') {
                token = self.token();
            }
        }
        if self.is(token, "NAMES") || self.is(token, "CHARSET") {
            let next = self.peek();
            return if is_assignment(next) { Target::Other } else { Target::Charset };
        }
        if self.is(token, "CHARACTER") || self.is(token, "CHAR") {
            self.token();
            return Target::Charset;
        }
        let role = self.is(token, "ROLE") && !is_assignment(self.peek());
        if role || self.is(token, "TRANSACTION") {
            return Target::Other;
        }
        if self.is(token, "PASSWORD") {
            return Target::Statement;
        }
        let mut target = self.assigned(token, scope);
        let dotted = self.peek().kind == Kind::Punct(b'.');
        if dotted && scope != Scope::Global && token.kind != Kind::UserVar {
            target = Target::Any;
        }
        if self.pass_assignment() { target } else { Target::Statement }
    }

    fn assigned(&self, token: Token, scope: Scope) -> Target {
        if token.kind == Kind::UserVar {
            let bytes = self.lexer.bytes(token);
            let name = unquoted(bytes.get(1..).unwrap_or_default());
            let goes_on = self.lexer.text().get(token.end).is_some_and(|byte| *byte >= 0x80);
            return if !is_plain_name(name) || goes_on {
                Target::PerhapsApp
            } else if name.eq_ignore_ascii_case(b"sluice_app") {
                Target::App
            } else {
                Target::Other
            };
        }
        let name = self.lexer.name_of(token).unwrap_or_default();
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        let matters = is(b"sql_mode") || is(b"character_set_client") || is(b"autocommit");
        match scope {
            Scope::Global => Target::Other,
            _ if !is_plain_name(name) => Target::Any,
            Scope::Unclear if matters => Target::Any,
            Scope::Unclear => Target::Other,
            Scope::Session if is(b"sql_mode") => Target::SqlMode,
            Scope::Session if is(b"character_set_client") => Target::Charset,
            Scope::Session if is(b"autocommit") => Target::Autocommit,
            Scope::Session => Target::Other,
        }
    }

    /// Passes `=` or `:=`.
    fn pass_assignment(&mut self) -> bool {
        let mut token = self.token();
        while matches!(token.kind, Kind::Word | Kind::Punct(b'.')) {
            token = self.token();
        }
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
    fn value(&mut self, target: Target, assigned: &mut Assigned) -> bool {
        let first = self.token();
        let mut token = first;
        let mut len = 0_u32;
        let mut depth = 0_u32;
        let mut collates = false;
        let mut joined = Joined::default();
        loop {
            let ends = depth == 0 && token.kind == Kind::Punct(b',');
            if target == Target::SqlMode && !ends {
                joined.push(&self.lexer, token);
            }
            match token.kind {
                Kind::Semicolon | Kind::End => break,
                Kind::Punct(b',') if depth == 0 => break,
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Word => {
                    let table = self.is(token, "TABLE");
                    assigned.reads |= table || self.is(token, "SELECT");
                    assigned.unclear |= table || self.is(token, "FROM");
                    collates |= len == 1 && self.is(token, "COLLATE");
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
        let alone = len == 1 || (collates && len == 3 && target == Target::Charset);
        let value = Value { first, alone };
        assigned.unclear |= matches!(target, Target::Any | Target::Statement);
        assigned.items = assigned.items.saturating_add(1);
        let switches = u32::from(target == Target::Autocommit);
        assigned.switches = assigned.switches.saturating_add(switches);
        if target == Target::SqlMode {
            self.note_mode(value, joined, assigned);
        } else {
            self.note_value(target, value);
        }
        token.kind == Kind::Punct(b',')
    }

    fn note_mode(&mut self, value: Value, joined: Joined, assigned: &mut Assigned) {
        // The mode that is added to is the one ahead of the whole SET.
        let added = if assigned.sets_mode { None } else { joined.added() };
        let plain = &mut self.effects.plain;
        assigned.sets_mode = true;
        assigned.computes_mode = false;
        self.reads_differently = true;
        if let Some(added) = added {
            for (set, added) in [
                (&mut plain.sets_ansi_quotes, added.ansi_quotes),
                (&mut plain.sets_no_backslash_escapes, added.no_backslash_escapes),
            ] {
                // What is not added is as it was.
                if added != Setting::Off {
                    *set = Some(added);
                }
            }
            return;
        }
        let modes = self.modes(value);
        assigned.computes_mode = modes.no_backslash_escapes == Setting::Unknown;
        self.effects.plain.sets_ansi_quotes = Some(modes.ansi_quotes);
        self.effects.plain.sets_no_backslash_escapes = Some(modes.no_backslash_escapes);
    }

    fn note_value(&mut self, target: Target, value: Value) {
        match target {
            Target::Other | Target::SqlMode => {}
            Target::App => self.effects.set_app = Some(self.app(value)),
            Target::PerhapsApp => self.effects.set_app = Some(AppSetting::Unreadable),
            Target::Charset => {
                let charset = self.charset(value);
                self.effects.plain.set_charset = Some(charset);
                self.reads_differently |= charset != self.lexer.mode().charset;
            }
            Target::Autocommit => {
                // Switching it off leaves what is open as it is.
                let ends = !self.is_off(value);
                self.controls |= ends;
                self.effects.plain.ends_transaction |= ends;
            }
            Target::Statement => self.controls = true,
            Target::Any => {
                let plain = &mut self.effects.plain;
                plain.set_charset = Some(Charset::Unknown);
                plain.sets_ansi_quotes = Some(Setting::Unknown);
                plain.sets_no_backslash_escapes = Some(Setting::Unknown);
                plain.ends_transaction = true;
                self.controls = true;
                self.reads_differently = true;
            }
        }
    }

    /// Whether the value is one that autocommit can only be switched off with.
    fn is_off(&self, value: Value) -> bool {
        let bytes = self.lexer.bytes(value.first);
        value.alone
            && match value.first.kind {
                Kind::Number => bytes == b"0",
                Kind::Word => ["OFF", "FALSE"].iter().any(|word| self.is(value.first, word)),
                Kind::Name
                | Kind::Text
                | Kind::DollarText
                | Kind::UserVar
                | Kind::SysVar
                | Kind::Punct(_)
                | Kind::Semicolon
                | Kind::End => false,
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

    /// A value that is one word, name or literal without escapes.
    fn word_of(&self, value: Value) -> Option<&'t [u8]> {
        if !value.alone {
            return None;
        }
        match value.first.kind {
            Kind::Word | Kind::Name => self.lexer.name_of(value.first),
            Kind::Text => {
                SqlText::from_token(self.lexer.bytes(value.first), self.lexer.mode())?.plain()
            }
            Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::SysVar
            | Kind::Punct(_)
            | Kind::Semicolon
            | Kind::End => None,
        }
    }

    /// The character set that the value names; DEFAULT is the server's affair.
    fn charset(&self, value: Value) -> Charset {
        self.word_of(value).map_or(Charset::Unknown, Charset::from_name)
    }

    /// What `sql_mode` is if it is set to this value.
    fn modes(&self, value: Value) -> Modes {
        self.word_of(value).map_or(Modes::UNKNOWN, Modes::of)
    }
}

/// What the assignments of one SET have done so far.
#[derive(Default)]
struct Assigned {
    /// A query stands in a value.
    reads: bool,
    /// A value may come from a table or from a view, which may call functions, or it is not clear
    /// what is set.
    unclear: bool,
    sets_mode: bool,
    /// What `sql_mode` is set to is not in the text.
    computes_mode: bool,
    items: u32,
    /// How many of them are for autocommit.
    switches: u32,
}

impl Assigned {
    /// Switched off and on again, autocommit commits as often.
    fn switch(&self) -> Switch {
        match (self.switches, self.items) {
            (1, 1) if !self.unclear => Switch::Alone,
            (1, _) if !self.unclear => Switch::WithOthers,
            (_, _) => Switch::Unclear,
        }
    }
}

/// The right side of an assignment.
#[derive(Clone, Copy)]
struct Value {
    first: Token,
    /// It is one token, or names a character set and its collation.
    alone: bool,
}

/// The parts of `sql_mode` that change where a literal ends.
#[derive(Clone, Copy)]
struct Modes {
    ansi_quotes: Setting,
    no_backslash_escapes: Setting,
}

impl Modes {
    const UNKNOWN: Self =
        Self { ansi_quotes: Setting::Unknown, no_backslash_escapes: Setting::Unknown };

    /// The modes in `list`, separated by commas, as the server knows them without spaces. A mode
    /// that is not known here may be a combination of others, of another release.
    fn of(list: &[u8]) -> Self {
        const ANSI: [&[u8]; 7] =
            [b"ANSI_QUOTES", b"ANSI", b"DB2", b"MAXDB", b"MSSQL", b"ORACLE", b"POSTGRESQL"];
        let mut modes = Self { ansi_quotes: Setting::Off, no_backslash_escapes: Setting::Off };
        for mode in list.split(|byte| *byte == b',') {
            let mode = mode.trim_ascii_end();
            let is = |known: &[u8]| mode.eq_ignore_ascii_case(known);
            if is(b"NO_BACKSLASH_ESCAPES") {
                modes.no_backslash_escapes = Setting::On;
            } else if ANSI.iter().any(|ansi| is(ansi)) {
                modes.ansi_quotes = Setting::On;
            } else if !mode.is_empty() && !OTHER_MODES.iter().any(|other| is(other)) {
                return Self::UNKNOWN;
            }
        }
        modes
    }
}

/// The modes of both servers that leave literals as they are, combinations of them included.
const OTHER_MODES: [&[u8]; 29] = [
    b"ALLOW_INVALID_DATES",
    b"EMPTY_STRING_IS_NULL",
    b"ERROR_FOR_DIVISION_BY_ZERO",
    b"HIGH_NOT_PRECEDENCE",
    b"IGNORE_BAD_TABLE_OPTIONS",
    b"IGNORE_SPACE",
    b"MYSQL323",
    b"MYSQL40",
    b"NO_AUTO_CREATE_USER",
    b"NO_AUTO_VALUE_ON_ZERO",
    b"NO_DIR_IN_CREATE",
    b"NO_ENGINE_SUBSTITUTION",
    b"NO_FIELD_OPTIONS",
    b"NO_KEY_OPTIONS",
    b"NO_TABLE_OPTIONS",
    b"NO_UNSIGNED_SUBTRACTION",
    b"NO_ZERO_DATE",
    b"NO_ZERO_IN_DATE",
    b"ONLY_FULL_GROUP_BY",
    b"PAD_CHAR_TO_FULL_LENGTH",
    b"PIPES_AS_CONCAT",
    b"REAL_AS_FLOAT",
    b"SIMULTANEOUS_ASSIGNMENT",
    b"STRICT_ALL_TABLES",
    b"STRICT_TRANS_TABLES",
    b"TIME_ROUND_FRACTIONAL",
    b"TIME_TRUNCATE_FRACTIONAL",
    b"TRADITIONAL",
    b"NOT_USED",
];

fn is_assignment(token: Token) -> bool {
    matches!(token.kind, Kind::Punct(b'=' | b':'))
}

fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [b'\'' | b'"' | b'`', inner @ .., _] => inner,
        _ => name,
    }
}
