//! The tables of CREATE, ALTER and DROP.

use super::{Finder, Object, TableRef, Verb};
use crate::lexer::{Kind, Token};

impl<'t, F: FnMut(TableRef<'t>)> Finder<'t, F> {
    /// A word between CREATE, ALTER, DROP and what it is of. Triggers, routines and the like have
    /// tables in places that are not looked for.
    pub(super) fn object(&mut self, token: Token) {
        const BEFORE_OBJECT: [&str; 19] = [
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
            "DEFINER",
            "INVOKER",
        ];
        let is = |word: &str| self.is(token, word);
        if is("TABLE") || is("TABLES") {
            self.object = Object::Known;
            self.keyword(token);
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

    /// The name of a schema, or what stands before it.
    pub(super) fn schema(&mut self, token: Token) {
        if ["IF", "NOT", "EXISTS"].iter().any(|word| self.is(token, word)) {
            return;
        }
        self.object = Object::Known;
        match self.lexer.name_of(token) {
            Some(schema) => (self.found)(TableRef { schema: Some(schema), name: b"" }),
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

    /// The tables behind the UNION of a MERGE table are not looked for.
    pub(super) fn union_of_definition(&mut self) {
        let next = self.lexer.peeked().kind;
        self.fault_if(matches!(next, Kind::Punct(b'=' | b'(')));
    }
}
