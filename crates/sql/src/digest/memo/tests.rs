use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::mode::{Charset, LexMode, Server, Setting};
use crate::{digest, digest_front};

const MYSQL: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Plain,
    server: Server::MySql { version: 90_704 },
};

fn key(text: &str) -> Option<TextKey> {
    TextKey::of(text.as_bytes(), MYSQL, Extent::Whole)
}

#[test]
fn texts_that_differ_in_values_alone_have_one_key() {
    for (one, two) in [
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = 234567"),
        ("SELECT c FROM t WHERE a = 'x'", "SELECT c FROM t WHERE a = 'it''s \\' /* y'"),
        ("SELECT 1 /* app='a' */", "SELECT 2 /* app='b', trace='00-1' */"),
        ("SELECT a FROM t LIMIT 1, 2", "SELECT a FROM t LIMIT 10, 20"),
        ("SELECT a FROM t WHERE x > 1.5", "SELECT a FROM t WHERE x > 12"),
        ("SELECT a FROM t WHERE x IN (1)", "SELECT a FROM t WHERE x IN (-1, 'a', 2.5, NULL,3)"),
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'a'), (NULL,'b','c'),(3)"),
        ("INSERT INTO t VALUES (1, NOW())", "INSERT INTO t VALUES (1, NOW()), (22, NOW())"),
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
    assert_eq!(TextKey::of(b"SELECT 1", gbk, Extent::Whole), None);
    assert_eq!(TextKey::of(b"SELECT 1", LexMode::unknown(MYSQL.server), Extent::Whole), None);
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
    memo.put(key, 42);
    assert_eq!(memo.get(key), Some(42));
    memo.forget_told();
    assert_eq!(memo.get(key), None);
    for digest in 1..=100 {
        memo.note_told(digest * STEP);
    }
    let told = (1..=100_u64).filter(|digest| memo.is_told(digest * STEP)).count();
    assert!(told >= 8, "those that share a place replace one another: {told}");
}

#[test]
fn what_is_not_a_row_like_the_one_before_counts() {
    for (one, two) in [
        ("SELECT (1, a)", "SELECT (1, 2, a)"),
        ("INSERT INTO t VALUES (1, a)", "INSERT INTO t VALUES (1, a), (1, b)"),
        ("SELECT f(1), (1)", "SELECT f(1) + (1)"),
        ("SELECT (1) (1)", "SELECT (1)"),
        ("SELECT (1),, (1)", "SELECT (1), (1)"),
        ("SELECT (- a)", "SELECT (a)"),
        ("SELECT (1-1)", "SELECT (1)"),
        ("SELECT (1, 'a' -1)", "SELECT (1, 'a')"),
        ("SELECT (2, NULL -1)", "SELECT (2, NULL)"),
        ("SELECT ()", "SELECT (1)"),
    ] {
        assert_ne!(key(one), key(two), "{one}");
    }
    let ids = vec!["12345"; 100].join(",");
    assert_eq!(key(&format!("SELECT 1 IN ({ids})")), key("SELECT 1 IN (1)"));
    assert_ne!(key(&format!("SELECT f({ids}, a)")), key("SELECT f(1, a)"));
    assert_eq!(front("SELECT f((1, 2", 14).0, None, "what is cut so deep is not folded");
    assert_eq!(key("SELECT (1; 2)"), None);
    assert_eq!(key("SELECT 1)"), None);
}

/// The key and the digest of the front of a long text.
fn front(text: &str, len: usize) -> (Option<TextKey>, u64) {
    let (text, mut out) = (&text.as_bytes()[..len], Vec::new());
    let hash = digest_front(text, MYSQL, &mut out);
    (TextKey::of(text, MYSQL, Extent::Front), hash)
}

#[test]
fn the_fronts_of_bulk_inserts_and_of_long_lists_have_one_key_wherever_they_are_cut() {
    let rows: Vec<String> = (0..50).map(|n| format!("({n}, 'it''s {n}', NULL, -{n}.5)")).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(","));
    let ids: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let list = format!("SELECT a FROM t WHERE i IN ({}", ids.join(", "));
    for (text, from) in [(&insert, 90), (&list, 40)] {
        let mut known = HashMap::new();
        for len in from..text.len() {
            let (Some(TextKey(key)), digest) = front(text, len) else { continue };
            assert_eq!(*known.entry(key).or_insert(digest), digest, "{len}");
        }
        assert!(known.len() < 12, "{} keys for {text}", known.len());
    }
    assert_ne!(front(&insert, insert.len()).0, key(&insert), "a front is no whole text");
}

#[test]
fn texts_begin_alike_that_differ_behind_their_first_value_or_in_comments_ahead() {
    let head = |text: &str| TextHead::of(text.as_bytes(), MYSQL).unwrap();
    for (text, other, alike) in [
        ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 22 AND c = 3", true),
        ("/* a */ SELECT a FROM t", "/* bcd */ SELECT a FROM t", true),
        ("/* a */ /* b */ SELECT a FROM t", "/* c */ /* d */ SELECT a FROM t", true),
        ("SELECT COUNT(*) FROM t WHERE b = 1", "SELECT COUNT(*) FROM u WHERE b = 1", false),
        ("INSERT INTO t (a, b) VALUES (1, 2)", "INSERT INTO t (a, c) VALUES (1, 2)", false),
        ("INSERT INTO t (a) VALUES (1, 'x'), (2, 'y')", "INSERT INTO t (a) VALUES ()", true),
        ("DELETE FROM t WHERE a IN (1, 2, 3) OR b", "DELETE FROM t WHERE a IN (1)", true),
    ] {
        assert_eq!(head(text) == head(other), alike, "{text} and {other}");
    }
}

#[test]
fn a_mould_fits_what_differs_in_values_alone() {
    let mut mould = Mould::default();
    assert!(!mould.fits(b"", MYSQL), "nothing fits before it is cast");
    assert!(mould.cast(b"SELECT a1 FROM t WHERE b = 'x' AND c IN (1, 2.5) /* c */", MYSQL));
    for (text, fits) in [
        ("SELECT a1 FROM t WHERE b = 'it''s' AND c IN (77, 8) /* trace */", true),
        ("SELECT a1 FROM t WHERE b = '' AND c IN (0, 0.0) /**/", true),
        ("SELECT a2 FROM t WHERE b = 'x' AND c IN (1, 2.5) /* c */", false),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN (1, 2.5) /*! c */", false),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN (1, 2a) /* c */", false),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN (1, a) /* c */", false),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN (-1, 'a', NULL, 4) /* c */", true),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN () /* c */", false),
        ("SELECT a1 FROM t WHERE b = \"x\" AND c IN (1, 2) /* c */", false),
        ("SELECT a1 FROM t WHERE b = 'x", false),
        ("SELECT a1 FROM t WHERE b = 'x' AND c IN (1, 2) /* c */ ", false),
        ("", false),
    ] {
        assert_eq!(mould.fits(text.as_bytes(), MYSQL), fits, "{text}");
    }
    let other = LexMode { no_backslash_escapes: Setting::On, ..MYSQL };
    assert!(!mould.fits(b"SELECT a1 FROM t WHERE b = 'x' AND c IN (1, 2) /* c */", other));
    assert!(!mould.cast(b"SELECT 1 -- 2", MYSQL));
    assert!(!mould.fits(b"", MYSQL));
}

/// Pieces of which any text may consist, those that are nearly something else among them.
const PIECES: [&str; 56] = [
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
    "(1, 2)",
    "(3,4),",
    "(-1)",
    "(a, 1)",
    ",(",
    "), (",
    "NULL,",
    "IS",
    "VALUES",
    "ROW",
    "11, 222,3333, 44444,55,",
    "/",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]
    #[test]
    fn texts_of_one_key_have_one_digest(
        texts in prop::collection::vec(
            prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..8),
            2..12,
        ),
        is_front in any::<bool>(),
        plain_backslash in any::<bool>(),
        names_in_quotes in any::<bool>(),
        charset in prop::sample::select(vec![Charset::Plain, Charset::Euc, Charset::Latin, Charset::SingleByte]),
    ) {
        let mode = LexMode {
            no_backslash_escapes: plain_backslash.into(),
            ansi_quotes: names_in_quotes.into(),
            charset,
            ..MYSQL
        };
        let mut digests: HashMap<u64, (u64, String)> = HashMap::new();
        let mut out = Vec::new();
        // A fault shows where two texts differ by little: each is read without each of its pieces too.
        let fewer = texts.iter().flat_map(|pieces| {
            (0..=pieces.len()).map(|out| {
                let (head, tail) = pieces.split_at(out);
                [head, tail.get(1..).unwrap_or_default()].concat().concat()
            })
        });
        for text in fewer {
            let extent = if is_front { Extent::Front } else { Extent::Whole };
            let Some(TextKey(key)) = TextKey::of(text.as_bytes(), mode, extent) else { continue };
            let read = if is_front { digest_front } else { digest };
            let hash = read(text.as_bytes(), mode, &mut out);
            let (known, other) = digests.entry(key).or_insert((hash, text.clone()));
            prop_assert_eq!(*known, hash, "{:?} and {:?}", text, other);
        }
        let mut mould = Mould::default();
        for text in texts.iter().map(|pieces| pieces.concat()).take(5) {
            if !mould.cast(text.as_bytes(), mode) {
                continue;
            }
            prop_assert!(mould.fits(text.as_bytes(), mode), "{:?}", text);
            let hash = digest(text.as_bytes(), mode, &mut out);
            for other in texts.iter().map(|pieces| pieces.concat()) {
                if mould.fits(other.as_bytes(), mode) {
                    let head = TextHead::of(other.as_bytes(), mode);
                    prop_assert_eq!(head, Some(mould.head()), "{:?} and {:?}", other, text);
                    let other_hash = digest(other.as_bytes(), mode, &mut out);
                    prop_assert_eq!(other_hash, hash, "{:?} and {:?}", other, text);
                }
            }
        }
    }
}
