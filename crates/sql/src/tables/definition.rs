//! The tables of CREATE, ALTER and DROP.

use super::{Finder, Object, TableRef, Verb, words::OWN_ENGINES};
use crate::lexer::{Kind, Token};

impl<'t, F: FnMut(TableRef<'t>)> Finder<'t, F> {
    /// A word between CREATE, ALTER, DROP and what it is of. Triggers, routines and the like have
    /// tables in places that are not looked for.
    pub(super) fn object(&mut self, token: Token) {
        const BEFORE_OBJECT: [&str; 18] = [
            "TEMPORARY",
            "OR",
            "REPLACE",
            "ONLINE",
            "OFFLINE",
            "IGNORE",
            "UNIQUE",
            "FULLTEXT",
            "SPATIAL",
            "NO_WRITE_TO_BINLOG",
            "LOCAL",
            "ALGORITHM",
            "UNDEFINED",
            "MERGE",
            "TEMPTABLE",
            "SQL",
            "SECURITY",
            "INVOKER",
        ];
        let is = |word: &str| self.is(token, word);
        if is("TABLE") || (is("TABLES") && self.verb == Verb::List) {
            self.object = Object::Known;
            self.expects = true;
            self.set_list(self.verb == Verb::List);
        } else if is("DEFINER") {
            self.definer();
        } else if (is("VIEW") || is("SEQUENCE")) && self.verb != Verb::Load {
            self.object = Object::Known;
            self.expects = true;
            self.set_list(self.verb == Verb::List);
        } else if (is("DATABASE") || is("SCHEMA")) && self.verb != Verb::Load {
            self.object = Object::Schema;
            // Without a name it is the default schema that is altered.
            self.fault_if(self.is(self.before[0], "ALTER"));
        } else if is("INDEX") && self.verb != Verb::Load {
            self.object = Object::Index;
        } else if self.verb != Verb::Load && !BEFORE_OBJECT.iter().any(|word| is(word)) {
            self.fault_if(true);
            self.object = Object::Known;
        }
    }

    /// Skips what stands behind DEFINER, any word of which may be a name. SQL SECURITY DEFINER has
    /// nothing behind it.
    fn definer(&mut self) {
        if self.lexer.peeked().kind != Kind::Punct(b'=') {
            return;
        }
        self.lexer.next();
        let name = self.lexer.next();
        self.fault_if(!matches!(name.kind, Kind::Word | Kind::Name | Kind::Text));
        let host = self.lexer.peeked();
        if host.kind == Kind::UserVar {
            self.lexer.next();
            self.fault_if(host.end.saturating_sub(host.start) < 2);
        } else if host.kind == Kind::Punct(b'(') {
            // CURRENT_USER().
            self.lexer.next();
            let close = self.lexer.next();
            self.fault_if(close.kind != Kind::Punct(b')'));
        }
        let next = self.lexer.peeked();
        self.fault_if(next.kind != Kind::Word);
    }

    /// The name of a schema, or what stands before it.
    pub(super) fn schema(&mut self, token: Token) {
        if ["IF", "NOT", "EXISTS"].iter().any(|word| self.is(token, word)) {
            return;
        }
        self.object = Object::Known;
        match self.lexer.name_of(token) {
            Some(schema) => {
                self.check_bytes(schema);
                (self.found)(TableRef { schema: Some(schema), name: b"" });
            }
            None => self.fault_if(true),
        }
    }

    /// A word behind RENAME in a definition, ALTER TABLE … RENAME [TO | AS] t, if it is not the
    /// table. RENAME COLUMN, INDEX and KEY rename something else.
    pub(super) fn renames(&mut self, token: Token) -> bool {
        if self.verb != Verb::Define {
            return false;
        }
        let is_one_of = |words: &[&str]| words.iter().any(|word| self.is(token, word));
        let renames_other = is_one_of(&["COLUMN", "INDEX", "KEY"]);
        let before_table = is_one_of(&["TO", "AS"]);
        self.expects = !renames_other;
        renames_other || before_table
    }

    /// A word of a definition behind which a table may stand.
    pub(super) fn keyword_of_definition(&mut self, token: Token) {
        let is = |word: &str| self.is(token, word);
        let [near, far] = self.before;
        // CREATE TABLE a LIKE b, CREATE TABLE a (LIKE b).
        let behind_name =
            near.start == self.named || (near.kind == Kind::Punct(b'(') && far.start == self.named);
        let expects = (is("LIKE") && behind_name) || is("REFERENCES") || is("RENAME");
        let option = self.selects & self.bit() == 0;
        let leads_elsewhere = ["CONNECTION", "TABLE_TYPE", "TABNAME"].iter().any(|word| is(word));
        let is_engine = is("ENGINE");
        self.expects = expects;
        let in_brackets = matches!(near.kind, Kind::Punct(b'(' | b',')) && self.depth > 0;
        if self.is(token, "UNION") {
            // The tables behind the UNION of a MERGE table are not looked for.
            let next = self.lexer.peeked().kind;
            self.fault_if(next == Kind::Punct(b'='));
        } else if option && leads_elsewhere {
            let next = self.lexer.peeked().kind;
            self.fault_if(matches!(next, Kind::Punct(b'=') | Kind::Text));
        } else if option && is_engine && !in_brackets {
            self.engine = true;
        }
    }

    /// Any token of a definition.
    pub(super) fn defined(&mut self, token: Token) {
        let [near, far] = self.before;
        // UNION ( of a MERGE table, not of a query.
        if near.kind == Kind::Punct(b'(') && self.is(far, "UNION") {
            let queries = ["SELECT", "WITH", "VALUES", "TABLE"];
            let query =
                token.kind == Kind::Punct(b'(') || queries.iter().any(|word| self.is(token, word));
            self.fault_if(!query);
        }
        if self.engine && token.kind != Kind::Punct(b'=') {
            self.engine = false;
            let bytes = self.lexer.bytes(token);
            let name = if token.kind == Kind::Text {
                bytes.get(1..bytes.len().saturating_sub(1))
            } else {
                self.lexer.name_of(token)
            };
            let own = |name: &[u8]| OWN_ENGINES.iter().any(|own| name.eq_ignore_ascii_case(own));
            self.fault_if(!name.is_some_and(own));
        }
    }
}
