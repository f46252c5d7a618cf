//! What is white space in one character set and a letter in another.

use sql::{
    Charset, LexMode, Scratch, Server, Setting, Statement, Survey, Whole, describe, digest, survey,
};

const LATIN: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Latin,
    server: Server::MySql { version: 90_704 },
};

/// Texts in which much hangs on what stands next to what.
const TEXTS: &[&str] = &[
    "DELETE FROM t WHERE a = 1",
    "DELETE FROM t WHERE 1 = 1 LIMIT 1",
    "DELETE t FROM t JOIN u WHERE a = b",
    "UPDATE t SET a = 1",
    "SELECT a FROM t WHERE b IN (1, 2, 3)",
    "SELECT a FROM t, u FOR UPDATE",
    "SELECT a FROM t JOIN u LOCK IN SHARE MODE",
    "SELECT a FROM mysql.user INTO OUTFILE 'x'",
    "SELECT f (1), GET_LOCK ('a', 1), d . f (2), NEXT VALUE FOR s, nextval (s)",
    "INSERT INTO t (a) VALUES (1, NULL), (2, NULL)",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "CREATE TEMPORARY TABLE t (a INT)",
    "ALTER TABLE t ADD a INT",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
    "EXPLAIN ANALYZE DELETE FROM t",
    "ANALYZE DELETE FROM t",
    "SET STATEMENT max_statement_time = 1 FOR DELETE FROM t",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET autocommit = 0",
    "USE mysql",
    "PREPARE p FROM 'DELETE_FROM_t'",
    "EXECUTE IMMEDIATE 'DELETE_FROM_t'",
    "EXECUTE p USING @a",
    "LOCK TABLES t WRITE",
    "START TRANSACTION READ ONLY",
    "COMMIT AND CHAIN",
    "KILL QUERY 5",
    "CALL p (1)",
    "SELECT 1 ; DELETE FROM t",
];

/// All that is found in a text.
fn found(text: &[u8], mode: LexMode) -> (String, Survey, Vec<u8>) {
    let (mut scratch, mut written) = (Scratch::default(), Vec::new());
    let statement = describe(text, mode, Whole::Yes, &mut scratch);
    digest(text, mode, &mut written);
    let Statement { class, classes, statement_count, effects, exemption, .. } = &statement;
    let certain = statement.is_certain();
    let said =
        format!("{class:?} {classes:?} {statement_count} {effects:?} {exemption:?} {certain}");
    (said, survey(text, mode, Whole::Yes), written)
}

/// `text` with another space for the one at a place, or behind its end for all.
fn with(space: u8, at: usize, text: &[u8]) -> Vec<u8> {
    let is_there = |here: usize| here == at || at == text.len();
    let of = |(here, byte): (usize, &u8)| match byte {
        b' ' if is_there(here) => space,
        byte => *byte,
    };
    text.iter().enumerate().map(of).collect()
}

/// `IN` before such a byte was no list to a guard, EXECUTE before one no IMMEDIATE, and a digest had
/// the byte in it.
#[test]
fn white_space_of_a_character_set_is_like_any_other() {
    let everywhere = [b'\t', b'\n', 0x0B, 0x0C, b'\r'].map(|space| (Charset::Plain, space));
    let charsets = [(Charset::Latin, 0xA0), (Charset::Armscii8, 0xA0), (Charset::Dos, 0xFF)];
    let charsets = charsets.into_iter().chain(everywhere);
    let servers = [LATIN.server, Server::MariaDb { version: 101_119 }];
    for ((charset, space), server) in charsets.flat_map(|c| servers.map(|s| (c, s))) {
        let mode = LexMode { charset, server, ..LATIN };
        for text in TEXTS.iter().map(|text| text.as_bytes()) {
            let expected = found(text, mode);
            for other in (0..=text.len()).map(|at| with(space, at, text)) {
                assert_eq!(found(&other, mode), expected, "{charset:?} {}", other.escape_ascii());
            }
        }
    }
}
