//! The class of a statement by its first word.

use super::walk::{Step, Walk};
use crate::{
    class::Class,
    effects::{Kill, Locks, SqlPrepare},
    lexer::{Kind, Token},
    mode::Server,
    text::SqlText,
};

/// Locks that UNLOCK TABLES gives back.
pub(super) const BY_UNLOCK_TABLES: Locks = Locks { tables: true, global: true, instance: false };

/// Words that begin a statement of some server, of which nothing is known here but that. With these
/// and the verbs above, none of the 859 keywords of MySQL 9.7.4 and MariaDB 10.11.19 was left that is
/// answered by anything but `ER_PARSE_ERROR` as a first word, whichever of 17 ways the text went on.
const OTHER_VERBS: [&str; 18] = [
    "BINLOG", "CASE", "CLOSE", "DECLARE", "ELSE", "END", "FETCH", "FOR", "GOTO", "IF", "ITERATE",
    "LEAVE", "LOOP", "OPEN", "REPEAT", "RETURN", "RAISE", "WHILE",
];

/// Longest verb: UNINSTALL and DEALLOCATE, and one byte more to tell a longer word.
const VERB_MAX: usize = 12;

impl Walk<'_, '_> {
    /// The class of the statement that begins with `token`, or where to look for it.
    pub(super) fn step(&mut self, token: Token) -> Step {
        if token.kind != Kind::Word {
            return Step::Class(Class::Unknown);
        }
        let mut buffer = [0_u8; VERB_MAX];
        let bytes = self.lexer.bytes(token);
        for (to, from) in buffer.iter_mut().zip(bytes) {
            *to = from.to_ascii_uppercase();
        }
        let verb = buffer.get(..bytes.len().min(VERB_MAX)).unwrap_or_default();
        Step::Class(match verb {
            b"SELECT" => {
                self.ordinary |= !self.behind_settings;
                Class::Read
            }
            b"VALUES" | b"TABLE" | b"DO" => Class::Read,
            b"HANDLER" => self.handler(),
            b"INSERT" | b"UPDATE" | b"DELETE" | b"REPLACE" => {
                self.ordinary |= !self.behind_settings;
                Class::Write
            }
            b"COMMIT" | b"ROLLBACK" => self.end_of_transaction(),
            b"BEGIN" | b"START" | b"SAVEPOINT" | b"RELEASE" | b"XA" => self.transaction(verb),
            b"SET" => return self.set(),
            b"SHOW" | b"GRANT" | b"REVOKE" | b"CHECK" | b"CHECKSUM" | b"CACHE" | b"CHANGE"
            | b"STOP" | b"RESET" | b"PURGE" | b"INSTALL" | b"UNINSTALL" | b"SHUTDOWN"
            | b"RESTART" | b"HELP" => Class::Admin,
            b"WITH" => return self.with(),
            b"CREATE" | b"ALTER" | b"DROP" => self.definition(verb),
            b"TRUNCATE" | b"OPTIMIZE" | b"REPAIR" | b"IMPORT" => Class::Ddl,
            b"EXPLAIN" | b"DESCRIBE" | b"DESC" => return self.explain(false),
            b"ANALYZE" => return self.analyze(),
            b"CALL" => {
                self.calls.others = true;
                Class::Call
            }
            b"LOAD" => self.load(),
            b"PREPARE" | b"EXECUTE" | b"DEALLOCATE" => self.prepared(verb),
            b"SIGNAL" | b"RESIGNAL" | b"GET" => Class::Session,
            b"USE" => self.use_schema(),
            b"LOCK" | b"UNLOCK" | b"FLUSH" | b"RENAME" | b"CLONE" | b"BACKUP" | b"KILL" => {
                self.admin(verb)
            }
            _ => self.no_verb(token),
        })
    }

    /// What begins with no verb. Whether no server has such a statement: a label, an assignment and
    /// the call of a procedure begin with any word, in some mode of some release.
    fn no_verb(&mut self, first: Token) -> Class {
        let next = self.peek();
        let goes_on = match next.kind {
            Kind::Word | Kind::Text | Kind::Number | Kind::UserVar | Kind::SysVar => true,
            Kind::Punct(byte) => matches!(byte, b'*' | b'\''),
            Kind::Name | Kind::DollarText | Kind::Semicolon | Kind::End => false,
        };
        let is_one = OTHER_VERBS.iter().any(|verb| self.is(first, verb));
        self.effects.plain.no_statement = goes_on && !is_one;
        Class::Unknown
    }

    /// The statement is one that MariaDB has, and no release of MySQL that was looked at.
    fn note_of_mariadb(&mut self) {
        const NOT_LOOKED_AT: u32 = 90_800;
        self.effects.plain.no_statement = match self.lexer.mode().server {
            Server::MySql { version } => version < NOT_LOOKED_AT,
            Server::MariaDb { .. } | Server::Unknown => false,
        };
    }

    fn end_of_transaction(&mut self) -> Class {
        let (mut chain, mut denied, mut savepoint) = (false, false, false);
        loop {
            let token = self.token();
            if token.kind != Kind::Word {
                break;
            }
            savepoint |= self.is(token, "TO");
            chain |= self.is(token, "CHAIN") && !denied;
            denied = self.is(token, "NO");
        }
        if !savepoint {
            self.controls = true;
            self.effects.plain.ends_transaction = true;
            self.effects.plain.begins_transaction = chain;
        }
        Class::Transaction
    }

    fn transaction(&mut self, verb: &[u8]) -> Class {
        let next = self.token();
        let at_end = matches!(next.kind, Kind::Semicolon | Kind::End);
        let begins = match verb {
            b"BEGIN" => {
                if !at_end && !self.is(next, "WORK") {
                    // BEGIN NOT ATOMIC, or a block where sql_mode is ORACLE.
                    if self.is(next, "NOT") {
                        self.note_of_mariadb();
                    }
                    return Class::Unknown;
                }
                true
            }
            b"START" => {
                if !self.is(next, "TRANSACTION") {
                    let known = ["REPLICA", "SLAVE", "GROUP_REPLICATION", "ALL"];
                    let admin = known.iter().any(|word| self.is(next, word));
                    return if admin { Class::Admin } else { Class::Unknown };
                }
                true
            }
            b"XA" => {
                let ends = ["COMMIT", "ROLLBACK", "PREPARE"];
                if ends.iter().any(|word| self.is(next, word)) {
                    self.controls = true;
                    self.effects.plain.ends_transaction = true;
                }
                self.is(next, "START") || self.is(next, "BEGIN")
            }
            _ => false,
        };
        if begins {
            self.controls = true;
            self.effects.plain.begins_transaction = true;
            self.effects.plain.release(Locks { tables: true, ..Locks::default() });
        }
        Class::Transaction
    }

    /// The first verb behind the common table expressions, which all stand in brackets.
    fn with(&mut self) -> Step {
        const VERBS: [&str; 7] =
            ["SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE", "VALUES", "TABLE"];
        let mut depth = 0_u32;
        let mut closed = false;
        loop {
            let token = self.token();
            match token.kind {
                Kind::Semicolon | Kind::End => return Step::Class(Class::Unknown),
                // WITH x AS (…) (SELECT …): only a query may stand in brackets here.
                Kind::Punct(b'(') if depth == 0 && closed => return Step::Class(Class::Read),
                Kind::Punct(b'(') => depth = depth.saturating_add(1),
                Kind::Punct(b')') => depth = depth.saturating_sub(1),
                Kind::Word => {
                    if depth == 0 && VERBS.iter().any(|verb| self.is(token, verb)) {
                        return Step::Again(token);
                    }
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
            closed = token.kind == Kind::Punct(b')') && depth == 0;
        }
    }

    /// EXPLAIN and its synonyms; with ANALYZE they run what they explain.
    fn explain(&mut self, runs: bool) -> Step {
        const VERBS: [&str; 8] =
            ["SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE", "VALUES", "TABLE", "WITH"];
        let mut runs = runs;
        loop {
            let token = self.token();
            match token.kind {
                Kind::Semicolon | Kind::End => break,
                Kind::Word if self.is(token, "ANALYZE") => runs = true,
                Kind::Word if VERBS.iter().any(|verb| self.is(token, verb)) => {
                    if runs {
                        return Step::Again(token);
                    }
                    break;
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
        if runs {
            return Step::Class(Class::Unknown);
        }
        self.pass_over();
        Step::Class(Class::Read)
    }

    /// Passes over text that is not run: what it would lock is not locked.
    pub(super) fn pass_over(&mut self) {
        let effects = self.effects;
        self.rest();
        self.effects = effects;
        self.locking = false;
    }

    fn analyze(&mut self) -> Step {
        let next = self.token();
        let table = ["TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"];
        if table.iter().any(|word| self.is(next, word)) {
            self.spots = false;
            return Step::Class(Class::Admin);
        }
        self.unread(next);
        self.explain(true)
    }

    fn load(&mut self) -> Class {
        let next = self.token();
        if self.is(next, "INDEX") {
            Class::Admin
        } else if self.is(next, "DATA") || self.is(next, "XML") {
            Class::Load
        } else {
            Class::Unknown
        }
    }

    fn prepared(&mut self, verb: &[u8]) -> Class {
        let first = self.token();
        match verb {
            b"EXECUTE" => {
                let next = self.peek();
                let immediate = self.is(first, "IMMEDIATE")
                    && !matches!(next.kind, Kind::Semicolon | Kind::End)
                    && !self.is(next, "USING");
                if immediate {
                    self.note_of_mariadb();
                } else {
                    self.effects.execute = self.prepared_name(first);
                }
                Class::Unknown
            }
            b"PREPARE" => {
                self.prepare(first);
                Class::Session
            }
            _ => {
                if self.is(first, "PREPARE") {
                    let name = self.token();
                    self.effects.deallocate = self.prepared_name(name);
                }
                Class::Session
            }
        }
    }

    fn prepare(&mut self, first: Token) {
        let from = self.token();
        let (Some(name), true) = (self.prepared_name(first), self.is(from, "FROM")) else {
            self.effects.plain.forgets_prepared = true;
            return;
        };
        let value = self.token();
        let next = self.peek();
        let alone = matches!(next.kind, Kind::Semicolon | Kind::End);
        let text = if value.kind == Kind::Text && alone {
            SqlText::from_token(self.lexer.bytes(value), self.lexer.mode())
        } else {
            None
        };
        self.effects.prepare = Some(SqlPrepare { name, text });
    }

    fn use_schema(&mut self) -> Class {
        self.calls.changes_schema = true;
        let schema = self.token();
        let next = self.token();
        if matches!(next.kind, Kind::Semicolon | Kind::End) {
            self.effects.use_schema = self.lexer.name_of(schema);
            self.effects.plain.forgets_schema |= self.effects.use_schema.is_none();
        }
        Class::Session
    }

    fn admin(&mut self, verb: &[u8]) -> Class {
        match verb {
            b"LOCK" => {
                let next = self.token();
                let instance = self.is(next, "INSTANCE");
                self.effects.plain.take(Locks { tables: !instance, instance, ..Locks::default() });
            }
            b"UNLOCK" => {
                let next = self.token();
                if self.is(next, "INSTANCE") {
                    self.effects.plain.release(Locks { instance: true, ..Locks::default() });
                } else {
                    self.effects.plain.release(BY_UNLOCK_TABLES);
                }
            }
            b"FLUSH" => self.flush(),
            b"BACKUP" => self.backup(),
            b"KILL" => self.kill(),
            b"CLONE" => self.clone_instance(),
            _ => self.rename(),
        }
        Class::Admin
    }

    /// HANDLER … CLOSE only gives a lock back. OPEN is where a table is named that READ may have another name for.
    fn handler(&mut self) -> Class {
        self.token();
        let mut behind = self.token();
        while behind.kind == Kind::Punct(b'.') {
            self.token();
            behind = self.token();
        }
        if self.is(behind, "CLOSE") { Class::Admin } else { Class::Read }
    }

    /// CLONE INSTANCE replaces all data of the server; CLONE LOCAL only copies it elsewhere.
    fn clone_instance(&mut self) {
        let what = self.token();
        self.denied_as_ddl |= !self.is(what, "LOCAL");
    }

    /// RENAME USER is an account statement; whatever else there may be renames tables.
    fn rename(&mut self) {
        let what = self.token();
        if !self.is(what, "USER") {
            self.hints.rename = true;
            self.denied_as_ddl = true;
        }
    }

    /// FLUSH TABLES WITH READ LOCK takes the global read lock; with names, what LOCK TABLES does.
    fn flush(&mut self) {
        let mut previous = Token { kind: Kind::End, start: 0, end: 0 };
        // Whether names of tables follow; nothing ahead of TABLES.
        let mut named = None;
        loop {
            let token = self.token();
            if named.is_none() && (self.is(previous, "TABLES") || self.is(previous, "TABLE")) {
                named = Some(!self.is(token, "WITH"));
            }
            match token.kind {
                Kind::Semicolon | Kind::End => return,
                Kind::Word if self.is(previous, "READ") && self.is(token, "LOCK") => {
                    let global = named == Some(false);
                    self.effects.plain.take(Locks { tables: !global, global, instance: false });
                }
                Kind::Word if self.is(previous, "FOR") && self.is(token, "EXPORT") => {
                    self.effects.plain.take(Locks { tables: true, ..Locks::default() });
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
            previous = token;
        }
    }

    /// MariaDB: BACKUP LOCK t, BACKUP UNLOCK, BACKUP STAGE START … END.
    fn backup(&mut self) {
        let what = self.token();
        let stage = self.token();
        let locks = Locks { instance: true, ..Locks::default() };
        if self.is(what, "UNLOCK") || self.is(stage, "END") {
            self.effects.plain.release(locks);
        } else {
            self.effects.plain.take(locks);
        }
    }

    /// KILL [HARD | SOFT] [CONNECTION | QUERY] number: `5`, `'5'`, `0x5`, in parentheses or not.
    fn kill(&mut self) {
        let mut token = self.token();
        let mut query_only = false;
        if self.is(token, "HARD") || self.is(token, "SOFT") {
            token = self.token();
        }
        if self.is(token, "QUERY") || self.is(token, "CONNECTION") {
            query_only = self.is(token, "QUERY");
            token = self.token();
        }
        let mut opened: usize = 0;
        while token.kind == Kind::Punct(b'(') {
            opened = opened.saturating_add(1);
            token = self.token();
        }
        let mut next = self.token();
        while opened > 0 && next.kind == Kind::Punct(b')') {
            opened = opened.saturating_sub(1);
            next = self.token();
        }
        // What begins with `0x` is a word here.
        let is_value = matches!(token.kind, Kind::Number | Kind::Text | Kind::Word);
        if is_value && opened == 0 && matches!(next.kind, Kind::Semicolon | Kind::End) {
            self.effects.plain.kill = integer(self.lexer.bytes(token))
                .map(|connection_id| Kill { connection_id, query_only });
        }
    }
}

/// `760`, `'760'`, `"760"`, `0x2f8`.
fn integer(literal: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(literal).ok()?;
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let digits = quoted('\'').or_else(|| quoted('"')).unwrap_or(text);
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}
