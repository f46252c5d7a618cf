//! Whether the body of a stored function writes nothing.

use crate::{
    calls::Calls,
    describe::calls_of_body,
    lexer::{Kind, Token},
    mode::{LexMode, Server},
};

/// What SHOW CREATE FUNCTION begins with.
const CREATE: &[u8] = b"CREATE ";
/// Most variables that one function may declare.
const VARIABLES_MAX: usize = 64;

/// What `body` calls, if it writes nothing by itself; nothing if it may write.
///
/// `information_schema` shows a body with its literals unescaped, between quotes that they may
/// hold: what looks like a literal there may be code. CREATE FUNCTION shows what was written. Its
/// bytes from 0x80 up were another character set's once.
pub(super) fn calls(server: Server, sql_mode: &[u8], body: &[u8]) -> Option<Calls> {
    let created = body.get(..CREATE.len()).is_some_and(|head| head.eq_ignore_ascii_case(CREATE));
    let quoted = || body.iter().any(|byte| b"'\"`\\$".contains(byte));
    if !body.is_ascii() || (!created && quoted()) {
        return None;
    }
    let has = |wanted: &[u8]| {
        sql_mode.split(|byte| *byte == b',').any(|mode| mode.eq_ignore_ascii_case(wanted))
    };
    if has(b"ORACLE") {
        return None;
    }
    let mode = LexMode {
        no_backslash_escapes: has(b"NO_BACKSLASH_ESCAPES").into(),
        ansi_quotes: has(b"ANSI_QUOTES").into(),
        server,
        ..LexMode::default()
    };
    let mut reader = Body::default();
    let calls = calls_of_body(body, mode, |token, bytes| reader.token(token, bytes))?;
    reader.is_harmless().then_some(calls)
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Awaited {
    /// The first word of a statement.
    #[default]
    Statement,
    /// Nothing in particular.
    Anything,
    /// Behind DECLARE: a variable, or what else may be declared.
    Declared,
    /// Behind a variable that is declared.
    MoreDeclared,
    /// Behind SET: what is assigned to.
    Target,
    /// Behind what is assigned to.
    Assignment,
    /// The value that is assigned, up to a comma at this depth of brackets.
    Value(u32),
}

/// A reader of a body, token by token. What it does not expect makes the body one that writes.
#[derive(Debug, Default)]
struct Body<'t> {
    awaited: Awaited,
    /// The variables of the outermost block: only these are certain to be seen everywhere. A name
    /// that is none may be a system variable.
    variables: Vec<&'t [u8]>,
    /// How many blocks have begun; more than there are, if the body is no block.
    blocks: u32,
    brackets: u32,
    /// A word that could write, if no bracket makes it a function.
    suspect: bool,
    /// A word that must be a label, with a colon behind it.
    label: bool,
    /// In a SIGNAL, whose SET assigns to no variable.
    signals: bool,
    behind_point: bool,
    behind_character: bool,
    writes: bool,
}

impl<'t> Body<'t> {
    fn is_harmless(&self) -> bool {
        self.blocks > 0 && !self.writes && !self.suspect && !self.label
    }

    fn token(&mut self, token: Token, bytes: &'t [u8]) {
        let punct = |byte: u8| token.kind == Kind::Punct(byte);
        self.writes |= (self.suspect && !punct(b'(')) || (self.label && !punct(b':'));
        self.suspect = false;
        if std::mem::take(&mut self.label) {
            self.awaited = Awaited::Statement;
            return;
        }
        if punct(b'(') {
            self.brackets = self.brackets.saturating_add(1);
        } else if punct(b')') {
            self.brackets = self.brackets.saturating_sub(1);
        }
        if token.kind == Kind::Semicolon {
            self.awaited = Awaited::Statement;
            self.brackets = 0;
            self.signals = false;
        } else if token.kind == Kind::Word && !self.behind_point {
            self.word(bytes);
        } else {
            self.other(token, bytes);
        }
        self.behind_point = punct(b'.');
        self.behind_character =
            token.kind == Kind::Word && bytes.eq_ignore_ascii_case(b"CHARACTER");
    }

    /// An unquoted word that is no part of a qualified name.
    fn word(&mut self, word: &'t [u8]) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        self.suspect = WRITING.iter().any(|known| is(known));
        self.writes |= LOCKING.iter().any(|known| is(known));
        self.signals |= is("SIGNAL") || is("RESIGNAL");
        if is("BEGIN") {
            self.blocks = self.blocks.saturating_add(1);
        }
        if is("SET") && !self.behind_character && !self.signals {
            self.awaited = Awaited::Target;
            return;
        }
        match self.awaited {
            Awaited::Statement => self.first_word(word),
            Awaited::MoreDeclared => {
                // The name of something else than a variable.
                if ["CURSOR", "CONDITION", "HANDLER"].iter().any(|known| is(known)) {
                    self.variables.pop();
                }
                self.awaited = Awaited::Anything;
            }
            Awaited::Declared | Awaited::Target | Awaited::Assignment => self.name(word),
            Awaited::Anything | Awaited::Value(_) => {}
        }
    }

    fn first_word(&mut self, word: &'t [u8]) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        self.awaited = if is("DECLARE") {
            Awaited::Declared
        } else if ["BEGIN", "LOOP", "REPEAT", "ELSE"].iter().any(|known| is(known)) {
            Awaited::Statement
        } else {
            Awaited::Anything
        };
        self.label = !FIRST.iter().any(|known| is(known));
        if self.blocks == 0 && !self.label {
            self.blocks = NOT_A_BLOCK;
        }
    }

    fn other(&mut self, token: Token, bytes: &'t [u8]) {
        match (self.awaited, token.kind) {
            (Awaited::Target, Kind::UserVar) => self.awaited = Awaited::Assignment,
            (Awaited::Assignment, Kind::Punct(b':')) => {}
            (Awaited::Assignment, Kind::Punct(b'=')) => {
                self.awaited = Awaited::Value(self.brackets);
            }
            (Awaited::Value(depth), Kind::Punct(b',')) if depth == self.brackets => {
                self.awaited = Awaited::Target;
            }
            (Awaited::MoreDeclared, Kind::Punct(b',')) => self.awaited = Awaited::Declared,
            (Awaited::Anything | Awaited::Value(_) | Awaited::MoreDeclared, _) => {}
            (_, Kind::End) => {}
            (_, Kind::Name) => {
                let inner = bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default();
                self.name(inner);
            }
            (_, _) => self.writes = true,
        }
    }

    /// A name that is declared or assigned to.
    fn name(&mut self, name: &'t [u8]) {
        match self.awaited {
            Awaited::Declared => {
                if self.blocks == 1 && self.variables.len() < VARIABLES_MAX && name.is_ascii() {
                    self.variables.push(name);
                }
                self.awaited = Awaited::MoreDeclared;
            }
            Awaited::Target => {
                let own = self.variables.iter().any(|known| known.eq_ignore_ascii_case(name));
                self.writes |= !own;
                self.awaited = Awaited::Assignment;
            }
            Awaited::Statement
            | Awaited::Anything
            | Awaited::Assignment
            | Awaited::MoreDeclared
            | Awaited::Value(_) => self.writes = true,
        }
    }
}

/// What a statement of a harmless function begins with.
const FIRST: [&str; 24] = [
    "BEGIN", "CASE", "CLOSE", "DECLARE", "ELSE", "ELSEIF", "END", "FETCH", "GET", "IF", "ITERATE",
    "LEAVE", "LOOP", "OPEN", "REPEAT", "RESIGNAL", "RETURN", "SELECT", "SET", "SIGNAL", "UNTIL",
    "WHEN", "WHILE", "WITH",
];

/// Words that begin a statement which is not harmless, or make one so; anywhere, unless they are
/// functions.
const WRITING: [&str; 58] = [
    "ALTER",
    "ANALYZE",
    "BACKUP",
    "BINLOG",
    "CACHE",
    "CALL",
    "CHANGE",
    "CHECK",
    "CHECKSUM",
    "CLONE",
    "COMMIT",
    "CREATE",
    "DEALLOCATE",
    "DELETE",
    "DROP",
    "DUMPFILE",
    "EXECUTE",
    "EXPLAIN",
    "FLUSH",
    "GLOBAL",
    "GRANT",
    "HELP",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "KILL",
    "LOAD",
    "LOCAL",
    "LOCK",
    "MERGE",
    "NAMES",
    "OPTIMIZE",
    "OUTFILE",
    "PERSIST",
    "PERSIST_ONLY",
    "PREPARE",
    "PURGE",
    "RELEASE",
    "RENAME",
    "REPAIR",
    "REPLACE",
    "RESET",
    "RESTART",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SESSION",
    "SHARE",
    "SHOW",
    "SHUTDOWN",
    "START",
    "STATEMENT",
    "STOP",
    "TRUNCATE",
    "UNINSTALL",
    "UNLOCK",
    "UPDATE",
    "XA",
];

/// Functions that are built in and leave something behind.
const LOCKING: [&str; 5] = ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "NEXTVAL", "SETVAL"];

/// More blocks than any in which a declaration counts.
const NOT_A_BLOCK: u32 = 2;
