//! Which texts may be put behind EXPLAIN, on a connection that is not the session's.
//!
//! Servers run parts of what they explain: constant subqueries, derived tables of one row, and every
//! stored function in them, writes included (tried on MySQL 9.7 and MariaDB 10.11). So a text is
//! explained only if it is certain in every mode to be one statement, calls nothing that is not built
//! in, and nothing built in that waits, locks or counts. Values that only the session has (variables,
//! parameters) would be others there: such texts are not explained either.

mod first_rows;

use crate::{
    class::Class,
    comments::Scratch,
    describe::{Whole, describe},
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::{LexMode, Server},
};

/// What EXPLAIN can say of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explainable<'t> {
    /// Nothing: it reads no table.
    ReadsNothing,
    /// How many rows this text reads, which has no semicolon.
    Yes {
        /// What goes behind EXPLAIN.
        text: &'t str,
        /// Whether it would write or lock.
        writes: bool,
        /// The most rows that it reads, whatever the plan says; `None` where it tells nothing.
        at_most: Option<u64>,
    },
    /// Nobody knows.
    Unknown,
}

/// Finds out whether a text of a session at this server may be explained.
#[must_use]
pub fn explainable<'t>(text: &'t [u8], server: Server, scratch: &mut Scratch) -> Explainable<'t> {
    let Some(text) = plain(text) else { return Explainable::Unknown };
    let mode = LexMode::unknown(server);
    let statement = describe(text.as_bytes(), mode, Whole::Yes, scratch);
    let calls = statement.callees().is_none_or(|callees| !callees.is_empty());
    let is_known = statement.is_certain() && statement.statement_count == 1 && !calls;
    if !is_known || statement.calls_others() {
        return Explainable::Unknown;
    }
    let locks = match statement.class {
        Class::Read => false,
        Class::LockingRead | Class::Write => true,
        Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Unknown
        | Class::Admin
        | Class::Session
        | Class::Transaction => return Explainable::Unknown,
    };
    let Some(text) = measured(text, mode) else { return Explainable::Unknown };
    let at_most = first_rows::most_read(text.as_bytes(), mode);
    match verb(text.as_bytes(), mode) {
        Some(Verb::Reads) => Explainable::Yes { text, writes: locks, at_most },
        Some(Verb::Writes) => Explainable::Yes { text, writes: true, at_most: None },
        Some(Verb::Neither) => Explainable::ReadsNothing,
        None => Explainable::Unknown,
    }
}

/// The text without a semicolon at its end, if it has no other one: whatever a server makes of it, it
/// is one statement. Nothing in it is meant for some servers only, or is OR in one `sql_mode` and joins
/// texts in another: the session's is not the one in which it is explained.
fn plain(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let text = text.strip_suffix(';').unwrap_or(text).trim_ascii();
    let suspicious = [";", "/*!", "/*M!", "||", "\0"];
    (!suspicious.iter().any(|part| text.contains(part))).then_some(text)
}

/// What stands behind ANALYZE or EXPLAIN ANALYZE, which run it; all of any other text. `None`: nobody
/// knows what runs.
fn measured(text: &str, mode: LexMode) -> Option<&str> {
    let mut lexer = Lexer::new(text.as_bytes(), mode, Reading::first(mode), NoComments);
    let mut token = lexer.next();
    let is = |lexer: &Lexer<'_, NoComments>, token: Token, words: &[&str]| {
        let word = lexer.bytes(token);
        token.kind == Kind::Word
            && words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
    };
    if is(&lexer, token, &DESCRIBES) {
        token = lexer.next();
    }
    if !is(&lexer, token, &["ANALYZE"]) {
        return Some(text);
    }
    token = lexer.next();
    if is(&lexer, token, &["FORMAT"]) {
        lexer.next();
        lexer.next();
        token = lexer.next();
    }
    // Nothing there is behind it in brackets only.
    is(&lexer, token, &["SELECT", "WITH", "TABLE", "UPDATE", "DELETE", "INSERT", "REPLACE"])
        .then(|| text.get(token.start..))
        .flatten()
}

/// What tells of a statement, and does not run it.
const DESCRIBES: [&str; 3] = ["EXPLAIN", "DESCRIBE", "DESC"];

enum Verb {
    Reads,
    Writes,
    Neither,
}

/// What the statement begins with. `None`: something in it is not to be explained.
fn verb(text: &[u8], mode: LexMode) -> Option<Verb> {
    let mut lexer = Lexer::new(text, mode, Reading::first(mode), NoComments);
    let mut first = None;
    let mut selects = false;
    loop {
        let token = lexer.next();
        let word = lexer.bytes(token);
        let is_one =
            |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
        match token.kind {
            Kind::End if lexer.broken || lexer.unsure => return None,
            Kind::End => break,
            Kind::Punct(b'?') | Kind::UserVar | Kind::Semicolon => return None,
            Kind::Word if is_one(&NOT_EXPLAINED) => return None,
            Kind::Word => {
                if is_one(&["ANALYZE"]) && matches!(first, Some(First::Describes)) {
                    return None;
                }
                selects |= is_one(&["SELECT", "TABLE"]);
                // Only INSERT and REPLACE may have an INTO.
                let inserts = || matches!(first, Some(First::Inserts));
                if is_one(&["INTO"]) && !inserts() {
                    return None;
                }
                if first.is_none() {
                    first = Some(First::of(is_one)?);
                }
            }
            Kind::Punct(b'(') => {}
            _ if first.is_none() => return None,
            Kind::Name | Kind::Text | Kind::DollarText | Kind::Number | Kind::SysVar => {}
            Kind::Punct(_) => {}
        }
    }
    Some(match first? {
        First::Reads => Verb::Reads,
        First::Changes => Verb::Writes,
        First::Inserts if selects => Verb::Writes,
        First::Computes if selects => return None,
        First::Inserts | First::Computes | First::Describes => Verb::Neither,
    })
}

#[derive(Clone, Copy)]
enum First {
    Reads,
    Changes,
    Inserts,
    /// It may select in what it works out, and not every server explains it.
    Computes,
    /// It tells of another statement, unless it has it run.
    Describes,
}

impl First {
    /// `None`: what follows may be anything.
    fn of(is_one: impl Fn(&[&str]) -> bool) -> Option<Self> {
        Some(if is_one(&["SELECT", "WITH", "TABLE"]) {
            Self::Reads
        } else if is_one(&["UPDATE", "DELETE"]) {
            Self::Changes
        } else if is_one(&["INSERT", "REPLACE"]) {
            Self::Inserts
        } else if is_one(&["VALUES", "DO"]) {
            Self::Computes
        } else if is_one(&DESCRIBES) {
            Self::Describes
        } else {
            return None;
        })
    }
}

/// Words that make EXPLAIN wait, lock or count where it works something out, that have a statement
/// answer elsewhere than to its client, or that mean another session's tables.
const NOT_EXPLAINED: [&str; 25] = [
    "SLEEP",
    "BENCHMARK",
    "GET_LOCK",
    "RELEASE_LOCK",
    "RELEASE_ALL_LOCKS",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LOAD_FILE",
    "MASTER_POS_WAIT",
    "SOURCE_POS_WAIT",
    "MASTER_GTID_WAIT",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
    "NEXTVAL",
    "LASTVAL",
    "SETVAL",
    "NEXT",
    "PREVIOUS",
    "LAST_INSERT_ID",
    "UUID_SHORT",
    "FOUND_ROWS",
    "ROW_COUNT",
    "OUTFILE",
    "DUMPFILE",
    "PROCEDURE",
];

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: Server = Server::MySql { version: 90_700 };

    fn of(text: &str) -> Explainable<'_> {
        explainable(text.as_bytes(), MYSQL, &mut Scratch::default())
    }

    #[test]
    fn one_statement_that_reads_tables_is_explained() {
        for (text, writes) in [
            ("SELECT * FROM t WHERE a = 1;", false),
            ("/* app=etl */ select count(*) from t, u where t.a = u.a -- so", false),
            ("(SELECT 1 FROM t) UNION (SELECT 2 FROM u)", false),
            ("WITH c AS (SELECT a FROM t) SELECT * FROM c", false),
            ("SELECT * FROM t FOR UPDATE", true),
            ("UPDATE t SET a = 1 WHERE b > 2", true),
            ("DELETE FROM t WHERE b > 2", true),
            ("INSERT INTO t SELECT * FROM u", true),
            ("REPLACE INTO t (a) SELECT a FROM u", true),
            ("TABLE t", false),
            ("TABLE t ORDER BY a LIMIT 5", false),
            ("INSERT INTO t TABLE u", true),
        ] {
            let Explainable::Yes { text: explained, writes: found, at_most } = of(text) else {
                panic!("{text}");
            };
            assert_eq!((found, at_most), (writes, None), "{text}");
            assert!(text.starts_with(explained));
        }
        let first =
            Explainable::Yes { text: "SELECT a FROM t LIMIT 5", writes: false, at_most: Some(5) };
        assert_eq!(of("SELECT a FROM t LIMIT 5;"), first);
        let first = Explainable::Yes { text: "TABLE t LIMIT 5", writes: false, at_most: Some(5) };
        assert_eq!(of("TABLE t LIMIT 5"), first);
        for text in
            ["INSERT INTO t VALUES (1, 2)", "REPLACE INTO t SET a = 1", "VALUES ROW(1)", "DO 1"]
        {
            assert_eq!(of(text), Explainable::ReadsNothing, "{text}");
        }
        for text in ["EXPLAIN SELECT * FROM t", "DESC t", "EXPLAIN FORMAT=JSON DELETE FROM t"] {
            assert_eq!(of(text), Explainable::ReadsNothing, "{text}");
        }
        for text in ["VALUES ROW((SELECT MAX(a) FROM t))", "DO (SELECT MAX(a) FROM t)"] {
            assert_eq!(of(text), Explainable::Unknown, "{text}");
        }
    }

    /// They counted as statements that read nothing, and went on to read all.
    #[test]
    fn what_runs_all_the_same_is_explained_by_what_it_runs_or_not_at_all() {
        const MARIADB: Server = Server::MariaDb { version: 101_119 };
        for (text, server, runs) in [
            ("ANALYZE SELECT * FROM t WHERE a = 1", MARIADB, "SELECT * FROM t WHERE a = 1"),
            ("analyze format=json UPDATE t SET a = 1;", MARIADB, "UPDATE t SET a = 1"),
            ("ANALYZE DELETE FROM t WHERE a > 1", MARIADB, "DELETE FROM t WHERE a > 1"),
            ("EXPLAIN ANALYZE SELECT * FROM t", MYSQL, "SELECT * FROM t"),
            ("DESC ANALYZE FORMAT = TREE SELECT 1 FROM t", MYSQL, "SELECT 1 FROM t"),
        ] {
            let found = explainable(text.as_bytes(), server, &mut Scratch::default());
            let Explainable::Yes { text: explained, writes, .. } = found else {
                panic!("{text}: {found:?}");
            };
            assert_eq!((explained, writes), (runs, !runs.starts_with("SELECT")), "{text}");
        }
        for (text, server) in [
            ("EXPLAIN FORMAT=TREE ANALYZE SELECT * FROM t", MYSQL),
            ("EXPLAIN ANALYZE FOR CONNECTION 5", MYSQL),
            ("EXPLAIN ANALYZE INTO @v SELECT * FROM t", MYSQL),
            ("EXPLAIN ANALYZE (SELECT * FROM t)", MYSQL),
            ("CREATE TABLE u SELECT * FROM t", MYSQL),
            ("CREATE TEMPORARY TABLE u AS SELECT * FROM t", MARIADB),
            ("HANDLER t READ FIRST WHERE a = 5", MYSQL),
            ("SET STATEMENT max_statement_time = 1 FOR SELECT * FROM t", MARIADB),
        ] {
            let found = explainable(text.as_bytes(), server, &mut Scratch::default());
            assert_eq!(found, Explainable::Unknown, "{text}");
        }
    }

    #[test]
    fn what_may_run_something_or_mean_something_else_elsewhere_is_not() {
        for text in [
            "SELECT 1 FROM t; DELETE FROM t",
            "SELECT ';' FROM t",
            "SELECT /*!80000 1 */ FROM t",
            "SELECT /*M! 1 */ FROM t",
            "SELECT f() FROM t",
            "SELECT s.f(1) FROM t",
            "SELECT * FROM t WHERE a = (SELECT SLEEP(1))",
            "SELECT * FROM t WHERE a = (SELECT GET_LOCK('a', 1))",
            "SELECT * FROM t WHERE a = ?",
            "SELECT * FROM t WHERE a = @a",
            "SELECT a FROM t INTO OUTFILE '/tmp/a'",
            "SELECT a INTO b FROM t",
            "SELECT * FROM t WHERE a = 'b' || 'c'",
            "SELECT * FROM t WHERE a = \"b\"",
            "SELECT * FROM t WHERE a = 'b\\' OR 1'",
            "SELECT NEXTVAL(s) FROM t",
            "SELECT NEXT VALUE FOR s FROM t",
            "SET STATEMENT max_statement_time = 1 FOR SELECT * FROM t",
            "CALL p()",
            "EXECUTE IMMEDIATE 'DELETE FROM t'",
            "SELECT * FROM t WHERE a = 'b",
            "",
        ] {
            assert!(!matches!(of(text), Explainable::Yes { .. }), "{text}");
        }
        let latin = b"SELECT * FROM t WHERE a = 'caf\xe9'";
        assert_eq!(
            explainable(latin, MYSQL, &mut Scratch::default()),
            Explainable::Unknown,
            "only UTF-8 arrives as it was sent"
        );
    }
}
