//! The tables that a text names, by rule of thumb, and whether the rule of thumb is certain.
//!
//! A table stands behind FROM, JOIN, INTO, UPDATE, TABLE, or behind a comma in such a list. The
//! list at one depth of brackets is not the list at another, so two bits are kept for each depth.
//! Only words that are reserved in both MySQL and MariaDB end a list: any other may be an alias.

mod definition;
mod session;
mod words;

use crate::{
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::{Charset, LexMode},
};
use words::{BEFORE_TABLE, RESERVED};

/// Deepest nesting of brackets that is followed, one bit each.
const DEPTH_MAX: u32 = 63;

/// A table as the text names it, names as written between their quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRef<'t> {
    /// The schema, if the name is qualified.
    pub schema: Option<&'t [u8]>,
    /// The table; it may also be the name of a common table expression. Empty: every table of the
    /// schema, which is made or dropped as a whole.
    pub name: &'t [u8],
}

/// Whether a list of tables is certain to hold every table of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// No table is missing.
    Complete,
    /// The text defines, drops or loads tables, and names all that exist already.
    Definition,
    /// There may be others.
    Partial,
}

/// Shows the tables that `text` names to `found`, in order, each as often as it is named.
pub fn tables<'t>(text: &'t [u8], mode: LexMode, found: impl FnMut(TableRef<'t>)) -> Completeness {
    find_tables(text, mode, Reading::first(mode), found)
}

/// The same, in one way to read the text.
pub(crate) fn find_tables<'t>(
    text: &'t [u8],
    mode: LexMode,
    reading: Reading,
    found: impl FnMut(TableRef<'t>),
) -> Completeness {
    let mut finder = Finder {
        lexer: Lexer::new(text, mode, reading, NoComments),
        found,
        verb: Verb::None,
        depth: 0,
        lists: 0,
        selects: 0,
        expects: false,
        joined: false,
        engine: false,
        named: usize::MAX,
        utf8: mode.charset == Charset::Plain,
        swe7: mode.charset == Charset::Swe7,
        before: [Token { kind: Kind::End, start: 0, end: 0 }; 2],
        object: Object::Known,
        defines: false,
        sure: true,
    };
    loop {
        let token = finder.lexer.next();
        if token.kind == Kind::End {
            break;
        }
        finder.token(token);
    }
    finder.end_of_statement();
    match (finder.sure && !finder.lexer.broken, finder.defines) {
        (true, false) => Completeness::Complete,
        (true, true) => Completeness::Definition,
        (false, _) => Completeness::Partial,
    }
}

/// What a statement does with its tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// The statement has not begun.
    None,
    Query,
    /// Behind WITH, before the verb.
    With,
    Insert,
    Update,
    Delete,
    Truncate,
    /// A list of tables behind TABLE or TABLES.
    List,
    /// CREATE, ALTER.
    Define,
    Load,
    /// BEGIN, COMMIT and the like, which name no table.
    Transaction,
    Set,
    Other,
}

/// What a definition is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    /// CREATE, ALTER, DROP, LOAD has been seen: TABLE or INDEX must come.
    Awaited,
    /// An index: its table stands behind ON.
    Index,
    /// A schema: its name comes next.
    Schema,
    Known,
}

struct Finder<'t, F> {
    lexer: Lexer<'t, NoComments>,
    found: F,
    verb: Verb,
    depth: u32,
    /// A bit for each depth: commas separate tables here.
    lists: u64,
    /// A bit for each depth: a SELECT has been seen here, so FROM begins a list.
    selects: u64,
    /// A table comes next.
    expects: bool,
    /// A DELETE has a JOIN outside of brackets: USING names columns from here on.
    joined: bool,
    /// ENGINE of a definition: its value comes next.
    engine: bool,
    /// Where the last table began.
    named: usize,
    /// The bytes of names from 0x80 up are UTF-8.
    utf8: bool,
    swe7: bool,
    /// The two tokens before this one, the nearer first.
    before: [Token; 2],
    object: Object,
    /// Some statement defines, drops or loads.
    defines: bool,
    sure: bool,
}

impl<'t, F: FnMut(TableRef<'t>)> Finder<'t, F> {
    fn token(&mut self, token: Token) {
        match self.verb {
            Verb::Define => self.defined(token),
            Verb::Transaction | Verb::Set => self.quiet(token),
            Verb::None
            | Verb::Query
            | Verb::With
            | Verb::Insert
            | Verb::Update
            | Verb::Delete
            | Verb::Truncate
            | Verb::List
            | Verb::Load
            | Verb::Other => {}
        }
        self.any_token(token);
        self.before = [token, self.before[0]];
    }

    fn any_token(&mut self, token: Token) {
        match token.kind {
            // `{oj a …}`: any name is taken for OJ.
            Kind::Word | Kind::Name if self.before[0].kind == Kind::Punct(b'{') => {
                self.fault_if(self.verb == Verb::None || self.object != Object::Known);
            }
            Kind::Semicolon => self.end_of_statement(),
            Kind::Punct(b'(') => self.open(),
            Kind::Punct(b')') => self.close(),
            Kind::Punct(b',') => {
                self.fault_if(self.expects);
                self.expects = self.in_list();
            }
            Kind::Punct(byte) => {
                self.fault_if(byte >= 0x80 || (self.expects && byte != b'{'));
            }
            Kind::Word => self.word(token),
            Kind::Name if self.object == Object::Schema => self.schema(token),
            Kind::Name if self.expects => self.table(token),
            Kind::Text
            | Kind::DollarText
            | Kind::Number
            | Kind::UserVar
            | Kind::SysVar
            | Kind::Name
            | Kind::End => {
                self.fault_if(self.expects);
                self.expects = false;
            }
        }
    }

    fn end_of_statement(&mut self) {
        self.fault_if(self.expects || self.depth != 0 || self.object != Object::Known);
        self.lexer.end_statement();
        self.object = Object::Known;
        self.verb = Verb::None;
        self.depth = 0;
        self.lists = 0;
        self.selects = 0;
        self.expects = false;
        self.joined = false;
        self.engine = false;
    }

    fn fault_if(&mut self, fault: bool) {
        self.sure &= !fault;
    }

    fn open(&mut self) {
        let [near, far] = self.before;
        // A stored function of some schema: what it reads is not in the text.
        self.fault_if(
            !self.expects
                && matches!(near.kind, Kind::Word | Kind::Name)
                && far.kind == Kind::Punct(b'.'),
        );
        self.fault_if(self.depth >= DEPTH_MAX);
        self.depth = self.depth.saturating_add(1).min(DEPTH_MAX);
        self.set_list(self.expects);
        self.selects &= !self.bit();
    }

    fn close(&mut self) {
        self.fault_if(self.expects || self.depth == 0);
        self.expects = false;
        self.depth = self.depth.saturating_sub(1);
    }

    fn word(&mut self, token: Token) {
        if self.before[0].kind == Kind::Punct(b'.') && !self.expects {
            // `s.nextval` moves a sequence on where `sql_mode` is ORACLE.
            self.fault_if(self.is(token, "NEXTVAL"));
            return;
        }
        if self.verb == Verb::None || (self.verb == Verb::With && self.is_main_verb(token)) {
            self.verb(token);
        } else if self.object == Object::Awaited {
            self.object(token);
        } else if self.object == Object::Schema {
            self.schema(token);
        } else if self.expects {
            self.expected(token);
        } else {
            self.keyword(token);
        }
    }

    fn verb(&mut self, token: Token) {
        let is = |words: &[&str]| words.iter().any(|word| self.is(token, word));
        self.verb = if is(&["SELECT", "DO", "VALUES", "TABLE"]) {
            Verb::Query
        } else if is(&["WITH"]) {
            Verb::With
        } else if is(&["INSERT", "REPLACE"]) {
            Verb::Insert
        } else if is(&["UPDATE"]) {
            Verb::Update
        } else if is(&["DELETE"]) {
            Verb::Delete
        } else if is(&["TRUNCATE"]) {
            Verb::Truncate
        } else if is(&["DROP", "LOCK", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "RENAME"]) {
            Verb::List
        } else if is(&["CREATE", "ALTER"]) {
            Verb::Define
        } else if is(&["LOAD"]) {
            Verb::Load
        } else {
            self.quiet_verb(token).unwrap_or(Verb::Other)
        };
        let sure = match self.verb {
            Verb::Query
            | Verb::With
            | Verb::Insert
            | Verb::Update
            | Verb::Delete
            | Verb::Truncate
            | Verb::Transaction
            | Verb::Set => true,
            Verb::List | Verb::Define | Verb::Load => {
                self.defines = true;
                self.object = Object::Awaited;
                true
            }
            Verb::None | Verb::Other => false,
        };
        self.fault_if(!sure);
        match self.verb {
            Verb::Query => {
                if self.is(token, "SELECT") {
                    self.selects |= self.bit();
                }
                self.expects = self.is(token, "TABLE");
            }
            Verb::Insert | Verb::Truncate => self.expects = true,
            Verb::Update => {
                self.expects = true;
                self.set_list(true);
            }
            Verb::None
            | Verb::With
            | Verb::Delete
            | Verb::List
            | Verb::Define
            | Verb::Load
            | Verb::Transaction
            | Verb::Set
            | Verb::Other => {}
        }
    }

    /// Whether `token` is the verb behind the common table expressions, which stand in brackets.
    fn is_main_verb(&self, token: Token) -> bool {
        const VERBS: [&str; 7] =
            ["SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE", "VALUES", "TABLE"];
        self.depth == 0 && VERBS.iter().any(|verb| self.is(token, verb))
    }

    /// A word where a table is expected.
    fn expected(&mut self, token: Token) {
        if BEFORE_TABLE.iter().any(|word| self.is(token, word)) {
            return;
        }
        if self.is(self.before[0], "RENAME") && self.renames(token) {
            return;
        }
        if ["SELECT", "WITH", "VALUES"].iter().any(|word| self.is(token, word)) {
            // A subquery: the list is the one outside its bracket.
            self.fault_if(self.before[0].kind != Kind::Punct(b'('));
            self.set_list(false);
            self.selects |= self.bit();
            self.expects = false;
        } else if self.is(token, "DUAL") {
            let next = self.lexer.peeked().kind;
            self.fault_if(next == Kind::Punct(b'.'));
            self.expects = false;
        } else if self.opens_derived_table(token) {
            self.expects = self.is(token, "LATERAL");
        } else if RESERVED.iter().any(|word| self.is(token, word)) {
            self.fault_if(true);
            self.expects = false;
        } else {
            self.table(token);
        }
    }

    /// LATERAL ( and JSON_TABLE ( in a list of tables to read. Both words are names in MariaDB.
    fn opens_derived_table(&mut self, token: Token) -> bool {
        let before = self.before[0];
        let in_list = matches!(before.kind, Kind::Punct(b',' | b'(' | b'{'))
            || ["FROM", "JOIN", "STRAIGHT_JOIN", "LATERAL"].iter().any(|w| self.is(before, w));
        (self.is(token, "LATERAL") || self.is(token, "JSON_TABLE"))
            && in_list
            && self.lexer.peeked().kind == Kind::Punct(b'(')
    }

    /// A table that begins with `first`; what follows its name is looked at next.
    fn table(&mut self, first: Token) {
        self.expects = false;
        self.named = first.start;
        let Some(name) = self.lexer.name_of(first) else { return };
        self.check_bytes(name);
        let rest = self.lexer.peeked();
        if rest.kind != Kind::Punct(b'.') {
            // A function that gives a table; only JSON_TABLE is known. A list of columns may stand
            // behind the table of an INSERT.
            let columns = matches!(self.verb, Verb::Insert | Verb::Define | Verb::Load);
            self.fault_if(rest.kind == Kind::Punct(b'(') && !columns);
            return (self.found)(TableRef { schema: None, name });
        }
        self.lexer.next();
        let second = self.lexer.next();
        match self.lexer.name_of(second) {
            Some(table) => {
                self.check_bytes(table);
                (self.found)(TableRef { schema: Some(name), name: table });
            }
            None => {
                // `t.*` in a DELETE.
                self.fault_if(second.kind != Kind::Punct(b'*'));
                (self.found)(TableRef { schema: None, name });
            }
        }
    }

    /// Names are compared byte by byte, so they must be in the character set of the rules.
    fn check_bytes(&mut self, name: &[u8]) {
        let ascii = if self.swe7 {
            name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        } else {
            name.is_ascii()
        };
        let known = ascii || (self.utf8 && std::str::from_utf8(name).is_ok());
        self.fault_if(!known);
    }

    fn keyword(&mut self, token: Token) {
        let is = |word: &str| self.is(token, word);
        let after_for = self.is(self.before[0], "FOR");
        if is("FROM") {
            if self.selects & self.bit() != 0 || (self.verb == Verb::Delete && self.depth == 0) {
                self.set_list(true);
                self.expects = true;
            }
        } else if is("SELECT") {
            self.selects |= self.bit();
            self.set_list(false);
        } else if is("JOIN") || is("STRAIGHT_JOIN") {
            self.joined |= self.verb == Verb::Delete && self.depth == 0 && !after_for;
            self.expects = self.in_list() && !after_for;
        } else if is("TABLE") {
            self.expects = true;
            self.set_list(self.verb == Verb::List);
        } else if is("USING") {
            if self.verb == Verb::Delete && self.depth == 0 && !self.joined {
                self.set_list(true);
                self.expects = true;
            }
        } else if is("ON") && self.object == Object::Index {
            self.object = Object::Known;
            self.expects = true;
        } else if is("NEXTVAL") || is("SETVAL") {
            // MariaDB's sequences are tables.
            self.expects = self.lexer.peeked().kind == Kind::Punct(b'(');
        } else if is("FOR") && self.is(self.before[0], "VALUE") {
            self.expects = self.is(self.before[1], "NEXT");
        } else if self.ends_list(token, after_for) {
            self.set_list(false);
        } else {
            self.expects = match self.verb {
                Verb::Define => return self.keyword_of_definition(token),
                Verb::List => is("TO"),
                Verb::None
                | Verb::Query
                | Verb::With
                | Verb::Insert
                | Verb::Update
                | Verb::Delete
                | Verb::Truncate
                | Verb::Load
                | Verb::Transaction
                | Verb::Set
                | Verb::Other => false,
            };
        }
    }

    /// Words behind which a comma separates something else. Behind FOR they belong to an index
    /// hint.
    fn ends_list(&self, token: Token, after_for: bool) -> bool {
        const ENDS: [&str; 8] =
            ["WHERE", "SET", "GROUP", "ORDER", "HAVING", "LIMIT", "INTO", "PROCEDURE"];
        let locks = self.is(token, "UPDATE") || self.is(token, "SHARE");
        // ON DUPLICATE KEY UPDATE.
        if self.is(token, "UPDATE") && self.is(self.before[0], "KEY") {
            return true;
        }
        if after_for { locks } else { ENDS.iter().any(|word| self.is(token, word)) }
    }

    fn is(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Word && self.lexer.bytes(token).eq_ignore_ascii_case(word.as_bytes())
    }

    fn bit(&self) -> u64 {
        1_u64.wrapping_shl(self.depth)
    }

    fn in_list(&self) -> bool {
        self.lists & self.bit() != 0
    }

    fn set_list(&mut self, list: bool) {
        if list {
            self.lists |= self.bit();
        } else {
            self.lists &= !self.bit();
        }
    }
}

#[cfg(test)]
mod tests;
