use proptest::prelude::*;

use crate::mode::{Charset, LexMode, Server, Setting};
use crate::survey::survey;
use crate::{Mould, Scratch, Statement, Whole, describe};

const MYSQL: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Plain,
    server: Server::MySql { version: 90_704 },
};
const MARIADB: LexMode = LexMode { server: Server::MariaDb { version: 101_119 }, ..MYSQL };

/// All that a statement says.
fn said(statement: &Statement<'_>) -> String {
    let tags: Vec<_> = statement.tags().collect();
    let Statement { class, classes, statement_count, effects, exemption, .. } = statement;
    let certain = statement.is_certain();
    let comments = statement.comment_bytes();
    let tool = statement.tool();
    let calls = (statement.callees(), statement.calls_others());
    let changes = statement.may_change_routines(MARIADB.server);
    let runs_other = statement.runs_other_text();
    format!(
        "{class:?} {classes:?} {statement_count} {effects:?} {exemption:?} {certain} {comments:?} \
         {tags:?} {tool:?} {calls:?} {changes} {runs_other}"
    )
}

/// A mould of `text` that knows what it says.
fn cast(text: &[u8], mode: LexMode) -> Option<Mould> {
    let mut mould = Mould::default();
    let statement_of = &mut Scratch::default();
    mould.cast(text, mode).then(|| {
        mould.note(&describe(text, mode, Whole::Yes, statement_of));
        mould
    })
}

/// What a mould says of another text that fits it is what reading it says; whether it says anything.
fn holds(mould: &Mould, other: &[u8], mode: LexMode) -> bool {
    if !mould.fits(other, mode) {
        return false;
    }
    // What was there before is forgotten.
    let mut scratch = Scratch::default();
    let _before = describe(b"/* app=old */ SELECT 1 /* b */", mode, Whole::Yes, &mut scratch).class;
    let Some(statement) = mould.describe(other, &mut scratch) else { return false };
    let again = said(&statement);
    let read = said(&describe(other, mode, Whole::Yes, &mut Scratch::default()));
    assert_eq!(again, read, "{:?} in {mode:?}", String::from_utf8_lossy(other));
    true
}

#[test]
fn what_differs_in_values_is_not_read_again() {
    for mode in [MYSQL, MARIADB] {
        for (one, other) in [
            ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = 234567"),
            ("SELECT c FROM t WHERE a = 'x'", "SELECT c FROM t WHERE a = 'it''s \\' /* y'"),
            ("SELECT c FROM t WHERE a = 'x' FOR UPDATE", "SELECT c FROM t WHERE a = '' FOR UPDATE"),
            ("DELETE FROM t WHERE a IN (1)", "DELETE FROM t WHERE a IN (-1, 'a', 2.5, NULL,3)"),
            ("INSERT INTO t (a) VALUES (1, 'a')", "INSERT INTO t (a) VALUES (2), (NULL,'b'), (3)"),
            ("UPDATE t SET a = 1 /* app=a */", "UPDATE t SET a = 2 /* app='b',trace='1' */"),
            ("COMMIT", "COMMIT"),
            ("BEGIN", "BEGIN"),
            ("SET NAMES utf8mb4", "SET NAMES utf8mb4"),
        ] {
            let mould = cast(one.as_bytes(), mode).unwrap();
            assert!(holds(&mould, other.as_bytes(), mode), "{one}");
        }
    }
}

#[test]
fn what_depends_on_a_value_is_read_again() {
    for (one, other) in [
        ("SET autocommit = 0", "SET autocommit = 1"),
        ("SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'"),
        ("SET STATEMENT sql_mode = '' FOR SELECT 1", "SET STATEMENT sql_mode = 'x' FOR SELECT 1"),
        ("SET @sluice_app = 'a'", "SET @sluice_app = 'b'"),
        ("SET character_set_client = 'gbk'", "SET character_set_client = 'latin1'"),
        ("KILL 5", "KILL 6"),
        ("KILL QUERY 5", "KILL QUERY 77"),
        ("PREPARE p FROM 'SELECT 1'", "PREPARE p FROM 'DELETE FROM t'"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE IMMEDIATE 'DROP TABLE t'"),
        ("SELECT GET_LOCK('a', 1)", "SELECT GET_LOCK('b', 10)"),
        ("SELECT f(1)", "SELECT f(22)"),
        ("CALL p(1)", "CALL p(22)"),
        ("SELECT 1; DELETE FROM t WHERE a = 1", "SELECT 2; DELETE FROM t WHERE a = 1"),
        ("SELECT a FROM sys.x WHERE a = 'b'", "SELECT a FROM sys.x WHERE a = 'c'"),
    ] {
        for mode in [MYSQL, MARIADB] {
            let Some(mould) = cast(one.as_bytes(), mode) else { continue };
            assert!(!holds(&mould, other.as_bytes(), mode), "{one}");
            let survey = survey(one.as_bytes(), mode, Whole::Yes);
            assert_eq!(mould.clean(&survey), None, "{one}");
        }
    }
}

#[test]
fn how_many_values_a_function_has_is_part_of_the_text() {
    // MariaDB has a POINT of two coordinates, and calls what has another number of them.
    let mould = cast(b"SELECT POINT(1, 2)", MARIADB).unwrap();
    assert!(holds(&mould, b"SELECT POINT(33, 4)", MARIADB));
    for other in ["SELECT POINT(1)", "SELECT POINT(1, 2, 3)", "SELECT POINT (1, 2)"] {
        assert!(!mould.fits(other.as_bytes(), MARIADB), "{other}");
    }
    let mould = cast(b"SELECT (POINT(1) IN (1))", MARIADB);
    assert!(mould.is_some_and(|mould| !mould.fits(b"SELECT (POINT(1) IN (1, 2))", MARIADB)));
    let mould = cast(b"SELECT min(1)", MYSQL).unwrap();
    assert!(!mould.fits(b"SELECT min(1, 2)", MYSQL), "IN is a word of its own");
}

#[test]
fn a_point_in_a_value_qualifies_nothing() {
    let unknown = LexMode { server: Server::Unknown, ..MYSQL };
    for mode in [MYSQL, MARIADB, unknown] {
        for text in ["SELECT 1 /* a */ nextval(s)", "SELECT 'a' nextval(s)", "SELECT 1, f (2)"] {
            let whole =
                describe(text.as_bytes(), mode, Whole::Yes, &mut Scratch::default()).classes;
            let with_point = text.replace('1', "1.5").replace("'a'", "'a.b'");
            let other = with_point.as_bytes();
            let other = describe(other, mode, Whole::Yes, &mut Scratch::default()).classes;
            assert_eq!(whole, other, "{text} in {mode:?}");
        }
    }
}

#[test]
fn rows_are_no_tables_where_nothing_is_read() {
    for (text, is_clean) in [
        ("INSERT INTO t (a) VALUES (1)", true),
        ("replace into t values (1, 2), (3, 4)", true),
        ("SELECT a FROM t VALUES (1)", false),
        ("INSERT INTO t SELECT a FROM u VALUES (1)", false),
        ("DELETE FROM t WHERE a VALUES (1)", false),
        ("SELECT a FROM t WHERE b = 1", true),
        ("SELECT a FROM t WHERE b IN (1)", false),
        ("DELETE FROM t", false),
    ] {
        let mould = cast(text.as_bytes(), MYSQL).unwrap();
        let clean = mould.clean(&survey(text.as_bytes(), MYSQL, Whole::Yes));
        assert_eq!(clean.is_some(), is_clean, "{text}");
    }
}

#[test]
fn a_text_of_another_mode_is_another_text() {
    let text = br"SELECT '\'; DELETE FROM t -- '";
    let plain = LexMode { no_backslash_escapes: Setting::On, ..MYSQL };
    assert!(cast(text, plain).is_none(), "two dashes");
    let text = br"SELECT '\', a FROM t WHERE b = ' OR 'c'";
    let mould = cast(text, MYSQL).unwrap();
    assert!(mould.fits(text, MYSQL));
    for mode in [
        plain,
        LexMode { ansi_quotes: Setting::On, ..MYSQL },
        LexMode { ansi_quotes: Setting::Unknown, ..MYSQL },
        LexMode { charset: Charset::Gbk, ..MYSQL },
        LexMode { charset: Charset::Latin, ..MYSQL },
        LexMode { server: Server::Unknown, ..MYSQL },
        MARIADB,
    ] {
        assert!(!mould.fits(text, mode), "{mode:?}");
    }
}

#[test]
fn a_long_text_fits_nothing_however_few_of_its_bytes_are_no_values() {
    let rows = |count: usize| format!("INSERT INTO t VALUES (1){}", ", (22)".repeat(count));
    let mould = cast(rows(1).as_bytes(), MYSQL).unwrap();
    assert!(holds(&mould, rows(600).as_bytes(), MYSQL));
    assert!(!mould.fits(rows(700).as_bytes(), MYSQL), "over 4 KiB");
    assert!(cast(rows(700).as_bytes(), MYSQL).is_none());
}

/// What texts mostly begin with.
const VERBS: [&str; 8] = [
    "SELECT ",
    "SELECT a FROM t WHERE b = ",
    "INSERT INTO t VALUES ",
    "UPDATE t SET a = ",
    "DELETE FROM t WHERE ",
    "EXPLAIN ANALYZE SELECT ",
    "SET STATEMENT max_statement_time = 1 FOR SELECT ",
    "",
];

/// Pieces that mean something to a server, to the reader of classes, or to the one of values.
const PIECES: &[&str] = &[
    "SELECT ",
    "INSERT INTO t ",
    "UPDATE t SET a = ",
    "DELETE FROM t ",
    "REPLACE INTO t ",
    "EXPLAIN ",
    "ANALYZE ",
    "WITH x AS (SELECT ",
    "SET ",
    "SET STATEMENT ",
    "SET @sluice_app = ",
    "autocommit = ",
    "sql_mode = ",
    "NAMES ",
    "KILL ",
    "PREPARE p FROM ",
    "EXECUTE IMMEDIATE ",
    "EXECUTE p",
    "CALL p",
    "COMMIT",
    "BEGIN",
    "BEGIN NOT ATOMIC ",
    "EXECUTE ",
    "USE ",
    "DO ",
    "LOCK TABLES ",
    "GET_LOCK(",
    "GET_LOCK('a', 1)",
    "POINT(",
    "POINT(1, 2)",
    "POINT (1)",
    "POLYGON(1)",
    "f(1, 'x')",
    "LAST_INSERT_ID(5)",
    "JSON_TABLE(",
    " COLUMNS (",
    "f(",
    "NEXT VALUE FOR s",
    "nextval(",
    "VALUES ",
    "VALUES(",
    " IN (",
    " in(",
    "FROM t ",
    "FROM mysql.t ",
    "FROM sys.t ",
    "INTO OUTFILE ",
    "INTO @a ",
    " WHERE a = ",
    " FOR UPDATE",
    " LIMIT ",
    " LOCK IN SHARE MODE",
    " ON DUPLICATE KEY UPDATE a = ",
    "1",
    "0",
    "42",
    "1.5",
    ".5",
    "1.",
    "1e5",
    "0x1F",
    "'x'",
    "'it''s'",
    "'\\''",
    "'\\'",
    "\"q\"",
    "`n`",
    "@x",
    "@@y",
    "N",
    "_utf8",
    "x",
    "NULL",
    "(1, 2)",
    "(3), (4)",
    "(-1, NULL)",
    "(",
    ")",
    ",",
    ", ",
    ".",
    "-",
    "/* app=a */",
    "/**/",
    "/*!80000 1 */",
    "/*+ x */",
    "-- a\n",
    "#",
    ";",
    " ",
    "é\u{a0}",
];

fn modes() -> impl Strategy<Value = LexMode> {
    let charsets =
        vec![Charset::Plain, Charset::Euc, Charset::Latin, Charset::SingleByte, Charset::Gbk];
    let servers = vec![MYSQL.server, MARIADB.server, Server::Unknown];
    let settings = (any::<bool>(), any::<bool>());
    (settings, prop::sample::select(charsets), prop::sample::select(servers)).prop_map(
        |((escapes, quotes), charset, server)| LexMode {
            no_backslash_escapes: escapes.into(),
            ansi_quotes: quotes.into(),
            charset,
            server,
        },
    )
}

/// Texts that differ from `text` by little, mostly in values.
fn variants(text: &[u8]) -> Vec<Vec<u8>> {
    let mut variants = vec![text.to_vec()];
    for at in 0..text.len() {
        let (head, tail) = text.split_at(at);
        let Some((byte, behind)) = tail.split_first() else { continue };
        let insides: &[&[u8]] = match byte {
            b'0'..=b'9' => &[b"", b"7", b"99", b"1.5", b"1, 2", b"'a'", b"0x1"],
            b'\'' => &[b"'", b"'a", b"'; DELETE FROM t -- ", b"'\\", b"''", b"\""],
            b'*' => &[b"* app='b' *", b"*!", b"**"],
            b')' => &[b")", b", 5)", b"), (6)", b", NULL)"],
            _ => &[b""],
        };
        variants.extend(insides.iter().map(|inside| [head, inside, behind].concat()));
    }
    variants
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_fits_a_mould_says_what_reading_it_says(
        verb in prop::sample::select(VERBS.as_slice()),
        pieces in prop::collection::vec(prop::sample::select(PIECES), 1..6),
        mode in modes(),
    ) {
        let text = [verb, &pieces.concat()].concat().into_bytes();
        let Some(mould) = cast(&text, mode) else { return Ok(()) };
        let own = mould.clean(&survey(&text, mode, Whole::Yes));
        for other in variants(&text) {
            holds(&mould, &other, mode);
            if own.is_some() && mould.fits(&other, mode) {
                prop_assert_eq!(own, survey(&other, mode, Whole::Yes).clean(), "{:?}", other);
            }
        }
    }
}
