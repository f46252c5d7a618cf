use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::digest;
use crate::mode::Server;

const MYSQL: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Plain,
    server: Server::MySql { version: 90_704 },
};

fn key(text: &str) -> Option<TextKey> {
    TextKey::of(text.as_bytes(), MYSQL)
}

#[test]
fn texts_that_differ_in_values_alone_have_one_key() {
    for (one, two) in [
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = 234567"),
        ("SELECT c FROM t WHERE a = 'x'", "SELECT c FROM t WHERE a = 'it''s \\' /* y'"),
        ("SELECT 1 /* app='a' */", "SELECT 2 /* app='b', trace='00-1' */"),
        ("SELECT a FROM t LIMIT 1, 2", "SELECT a FROM t LIMIT 10, 20"),
    ] {
        assert_eq!(key(one), key(two), "{one}");
        assert!(key(one).is_some(), "{one}");
    }
}

#[test]
fn digits_of_names_count() {
    for (one, two) in [
        ("SELECT a1 FROM t", "SELECT a2 FROM t"),
        ("SELECT 1a FROM t", "SELECT 2a FROM t"),
        ("SELECT `1` FROM t", "SELECT `2` FROM t"),
        ("SELECT t.1a FROM t", "SELECT t.2a FROM t"),
        ("SELECT @1", "SELECT @2"),
        ("SELECT 'a' FROM t", "SELECT \"a\" FROM u"),
        ("SELECT é1", "SELECT é2"),
    ] {
        assert_ne!(key(one), key(two), "{one}");
    }
}

#[test]
fn where_a_glance_does_not_tell_there_is_no_key() {
    for text in [
        "SELECT /*!80000 1 */",
        "SELECT /*M!100000 1 */",
        "SELECT /*+ MAX_EXECUTION_TIME(1) */ 1",
        "SELECT 1 -- 2",
        "SELECT 1 # 2",
        "SELECT $$a$$",
        "SELECT 'a",
        "SELECT `a",
        "SELECT /* a",
        "CREATE USER 'a'@'b'",
    ] {
        assert_eq!(key(text), None, "{text}");
    }
    let gbk = LexMode { charset: Charset::Gbk, ..MYSQL };
    assert_eq!(TextKey::of(b"SELECT 1", gbk), None);
    assert_eq!(TextKey::of(b"SELECT 1", LexMode::unknown(MYSQL.server)), None);
}

/// Digests that are so far apart have few places.
const STEP: u64 = 1 << 40;

#[test]
fn a_digest_is_remembered_once_it_was_told() {
    let memo = DigestMemo::default();
    let key = key("SELECT 1").unwrap();
    memo.put(key, 42);
    assert_eq!(memo.get(key), None, "nobody knows what it stands for");
    memo.note_told(42);
    assert_eq!(memo.get(key), Some(42));
    memo.forget_told();
    assert_eq!(memo.get(key), None);
    for digest in 1..=100 {
        memo.note_told(digest * STEP);
    }
    let told = (1..=100_u64).filter(|digest| memo.is_told(digest * STEP)).count();
    assert!(told >= 8, "those that share a place replace one another: {told}");
}

/// Pieces of which any text may consist, those that are nearly something else among them.
const PIECES: [&str; 44] = [
    "SELECT",
    "select",
    "FROM t",
    "a",
    "a1",
    "1",
    "23",
    "0",
    "1.5",
    "1e5",
    "0x1F",
    "0b1",
    "'x'",
    "'y'",
    "'it''s'",
    "'\\''",
    "\"q\"",
    "\"r\"",
    "`n`",
    "`n 1`",
    "``",
    "/* c 1 */",
    "/**/",
    "/*/ d */",
    "(",
    ")",
    ",",
    ", ",
    ".",
    "@",
    "@1",
    "@@x",
    "-",
    "+",
    "--",
    "=",
    " ",
    "\n",
    ";",
    "N",
    "_utf8",
    "NULL",
    "é",
    "\u{a0}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn texts_of_one_key_have_one_digest(
        texts in prop::collection::vec(
            prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..6),
            2..40,
        ),
        plain_backslash in any::<bool>(),
        names_in_quotes in any::<bool>(),
        charset in prop::sample::select(vec![Charset::Plain, Charset::Latin, Charset::SingleByte]),
    ) {
        let mode = LexMode {
            no_backslash_escapes: plain_backslash.into(),
            ansi_quotes: names_in_quotes.into(),
            charset,
            ..MYSQL
        };
        let mut digests: HashMap<u64, (u64, String)> = HashMap::new();
        let mut out = Vec::new();
        for text in texts.iter().map(|pieces| pieces.concat()) {
            let Some(TextKey(key)) = TextKey::of(text.as_bytes(), mode) else { continue };
            let hash = digest(text.as_bytes(), mode, &mut out);
            let (known, other) = digests.entry(key).or_insert((hash, text.clone()));
            prop_assert_eq!(*known, hash, "{:?} and {:?}", text, other);
        }
    }
}
