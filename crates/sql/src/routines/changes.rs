//! Whether a text may make, change or drop a routine.

use crate::{
    class::{Class, ClassSet},
    describe::Statement,
    mode::Server,
};

impl Statement<'_> {
    /// Whether the text may change which functions `server` has, or what they do. A text that was
    /// not read may. So may a procedure: not with MySQL, which prepares no CREATE FUNCTION within
    /// a routine, but with MariaDB. An UPDATE of the server's own tables is not looked for.
    #[must_use]
    pub fn may_change_routines(&self, server: Server) -> bool {
        let (classes, plain) = (self.classes, &self.effects.plain);
        let may_run_text = !matches!(server, Server::MySql { .. });
        let calls = classes.contains(Class::Call) && self.calls_others() && may_run_text;
        let nothing = self.statement_count == 0 && self.is_certain() && !plain.unread;
        let unknown = classes.contains(Class::Unknown) && !nothing;
        plain.unread
            || calls
            || unknown
            || (classes.contains(Class::Ddl) && mentions(self.text(), &DEFINED))
            || (classes.intersects(ClassSet::from_iter([Class::Admin, Class::Session]))
                && mentions(self.text(), &LOADED))
    }
}

/// What CREATE, ALTER and DROP of a routine name. Keywords are written in plain letters, whatever
/// the character set is.
const DEFINED: [&[u8]; 4] = [b"FUNCTION", b"PROCEDURE", b"PACKAGE", b"INSTALL"];

/// Plugins and components may bring functions, which come before stored ones.
const LOADED: [&[u8]; 1] = [b"INSTALL"];

fn mentions(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LexMode, Scratch, Whole, describe};

    const MYSQL: Server = Server::MySql { version: 90_704 };
    const MARIADB: Server = Server::MariaDb { version: 101_119 };

    fn may(text: &str, server: Server) -> bool {
        may_of(text, server, Whole::Yes)
    }

    fn may_of(text: &str, server: Server, whole: Whole) -> bool {
        let mode = LexMode { server, ..LexMode::default() };
        describe(text.as_bytes(), mode, whole, &mut Scratch::default()).may_change_routines(server)
    }

    #[test]
    fn what_may_replace_a_function_is_told_and_what_cannot_is_not() {
        for text in [
            "CREATE FUNCTION f() RETURNS INT RETURN 1",
            "create /*!50000 definer=root@`%`*/ function f() returns int return 1",
            "SELECT 1; DROP FUNCTION IF EXISTS f",
            "ALTER FUNCTION f SQL SECURITY INVOKER",
            "DROP PROCEDURE p",
            "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
            "INSTALL COMPONENT 'file://x'",
            "INSTALL PLUGIN x SONAME 'x.so'",
            "EXECUTE s",
            "what is this",
        ] {
            assert!(may(text, MYSQL), "{text}");
            assert!(may(text, MARIADB), "{text}");
        }
        for text in [
            "SELECT f()",
            "INSERT INTO t VALUES (f())",
            "SHOW CREATE FUNCTION f",
            "CREATE TABLE t (i INT)",
            "SET @a = f()",
            "/* ping */",
            "PREPARE s FROM 'CREATE FUNCTION f() RETURNS INT RETURN 1'",
        ] {
            assert!(!may(text, MYSQL), "{text}");
            assert!(!may(text, MARIADB), "{text}");
        }
    }

    #[test]
    fn a_procedure_of_mariadb_may_run_any_text_and_one_of_mysql_may_not() {
        for text in ["CALL p()", "SELECT 1; CALL p()"] {
            assert!(
                !may(text, MYSQL) && may(text, MARIADB) && may(text, Server::Unknown),
                "{text}"
            );
        }
        assert!(may("CREATE OR REPLACE PACKAGE BODY p AS END", MARIADB));
        assert!(may("EXECUTE IMMEDIATE 'DROP FUNC\\TION f'", MARIADB));
        assert!(may("BEGIN NOT ATOMIC SELECT 1; END", MARIADB));
    }

    #[test]
    fn what_stands_behind_a_cut_may_be_anything() {
        assert!(may_of("INSERT INTO t VALUES (1)", MYSQL, Whole::Truncated));
        assert!(may_of("SELECT 1", MYSQL, Whole::Truncated));
    }
}
