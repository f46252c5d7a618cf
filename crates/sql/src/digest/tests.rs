use super::*;
use crate::mode::Server;

fn text_of(text: &str) -> String {
    let mode = LexMode { server: Server::MySql { version: 90_704 }, ..LexMode::default() };
    let mut out = Vec::new();
    digest(text.as_bytes(), mode, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn values_are_gone_and_the_shape_stays() {
    for (text, expected) in [
        ("select * from t where a=1 and b='x'", "SELECT * FROM t WHERE a = ? AND b = ?"),
        (
            "SELECT a FROM `t` WHERE `i` IN (1,2,3) LIMIT 5",
            "SELECT a FROM t WHERE i IN (...) LIMIT ?",
        ),
        ("SELECT a FROM t WHERE i IN (?)", "SELECT a FROM t WHERE i IN (...)"),
        ("INSERT INTO t VALUES (1,2),(3,4),(5,-6)", "INSERT INTO t VALUES (...)"),
        ("INSERT INTO t VALUES (1,NOW()), (2,NOW())", "INSERT INTO t VALUES (?, NOW())"),
        ("INSERT INTO t VALUES ROW(1), ROW(2)", "INSERT INTO t VALUES ROW (...)"),
        (
            "SELECT a FROM t ORDER BY FIELD(a, 1, -2, 'x')",
            "SELECT a FROM t ORDER BY FIELD(a, ?, ...)",
        ),
        ("SELECT f(a, 1), f(1, 2, a, N'3', 4, 5)", "SELECT f(a, ?), f(?, ..., a, ?, ...)"),
        ("SELECT f(a, 1, 2 + b, (3), 4, NULL)", "SELECT f(a, ?, ... + b, (...), ?, ...)"),
        ("INSERT INTO t VALUES (NOW(),1,2),(NOW(),3,4)", "INSERT INTO t VALUES (NOW(), ?, ...)"),
        ("SELECT 1, 2, 3 FROM t LIMIT 4, 5", "SELECT ?, ?, ? FROM t LIMIT ?, ?"),
        ("SELECT -1, a-1, -a, a IS NULL, a=NULL", "SELECT ?, a - ?, - a, a IS NULL, a = ?"),
        ("SELECT (-1, +2), (a, 1)", "SELECT (...), (a, ?)"),
        ("SELECT 0x4D, x'4D', N'a', _utf8mb4 'a' 'b', \\N", "SELECT ?, ?, ?, ?, ?"),
        ("SELECT a FROM t WHERE i IN (N'x', x'4D', B'01', 1)", "SELECT a FROM t WHERE i IN (...)"),
        ("INSERT INTO t VALUES (N'a', 1), ('b', 2)", "INSERT INTO t VALUES (...)"),
        ("SELECT a, n'x', f(b, x'4D', 2), X'4D' FROM t", "SELECT a, ?, f(b, ?, ...), ? FROM t"),
        ("SELECT 1 IN (_utf8mb4'x', 'y'), (N + 'x', x)", "SELECT ? IN (?, ...), (N + ?, x)"),
        ("SELECT f(-1, a, -2), f(+1, a), f(\\N, a)", "SELECT f(?, a, ?), f(?, a), f(?, a)"),
        ("INSERT INTO t VALUES (-1,NOW()), (2,NOW())", "INSERT INTO t VALUES (?, NOW())"),
        ("SELECT a\0", "SELECT a"),
        ("SELECT /* app=x */ 1 -- y", "SELECT ?"),
        ("SELECT 1; SELECT 2;", "SELECT ?; SELECT ?"),
        ("SELECT @a := @@global.x", "SELECT @a := @@GLOBAL.x"),
        ("SELECT `a b`, `select`, t.key FROM t", "SELECT `a b`, `select`, t.key FROM t"),
        ("SELECT a>=1, a<=>2, a||b", "SELECT a >= ?, a <=> ?, a || b"),
        ("SELECT /*!80000 a */ /*!99999 b */ FROM t", "SELECT a FROM t"),
        ("", ""),
    ] {
        assert_eq!(text_of(text), expected, "{text}");
    }
}

#[test]
fn the_front_of_a_long_insert_has_the_digest_of_a_short_one() {
    let mode = LexMode { server: Server::MySql { version: 90_704 }, ..LexMode::default() };
    let mut out = Vec::new();
    let insert = digest(b"INSERT INTO t VALUES (1, 'a')", mode, &mut out);
    let list = digest(b"SELECT a FROM t WHERE i IN (1, 2)", mode, &mut out);
    let (mut rows, mut ids) = ("INSERT INTO t VALUES (1, 'a')".to_owned(), "1, 2".to_owned());
    for n in 0..50 {
        rows.push_str(&format!(", ({n}, 'b''c{n}')"));
        ids.push_str(&format!(", {n}"));
    }
    let ids = format!("SELECT a FROM t WHERE i IN ({ids}");
    for len in 30..rows.len() {
        assert_eq!(digest_front(&rows.as_bytes()[..len], mode, &mut out), insert, "{len}");
    }
    for len in 30..ids.len() {
        assert_eq!(digest_front(&ids.as_bytes()[..len], mode, &mut out), list, "{len}");
    }
}

#[test]
fn the_front_of_a_long_list_of_arguments_has_the_digest_of_a_shorter_front() {
    let mode = LexMode { server: Server::MySql { version: 90_704 }, ..LexMode::default() };
    let mut out = Vec::new();
    let mut text = "SELECT a FROM t ORDER BY FIELD(a, 11, 12,".to_owned();
    let front = digest_front(text.as_bytes(), mode, &mut out);
    text.extend((0..50).map(|n| format!(" {n}, -{n}, 'x',")));
    for len in 43..text.len() {
        let front_of = digest_front(&text.as_bytes()[..len], mode, &mut out);
        let ends_in_sign = text.as_bytes()[len - 1] == b'-';
        assert!(front_of == front || ends_in_sign, "{len}: {}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn equal_shapes_have_equal_hashes_and_others_do_not() {
    let mode = LexMode::default();
    let mut out = Vec::new();
    let mut hash = |text: &str| digest(text.as_bytes(), mode, &mut out);
    assert_eq!(hash("SELECT 1 /* app=x */"), hash("select  'two'"));
    assert_eq!(hash("SELECT * FROM t WHERE a IN (1)"), hash("SELECT * FROM t WHERE a IN (1,2)"));
    assert_ne!(hash("SELECT a FROM t"), hash("SELECT b FROM t"));
}

#[test]
fn the_hash_is_the_published_fnv_1a() {
    assert_eq!(fnv1a(b""), 0xCBF2_9CE4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xAF63_DC4C_8601_EC8C);
    assert_eq!(fnv1a(b"foobar"), 0x8594_4171_F739_67E8);
}

#[test]
fn text_behind_the_bound_does_not_count() {
    let long = format!("SELECT '{}'", "x".repeat(DIGEST_TEXT_MAX));
    assert_eq!(text_of(&long), "SELECT ?");
    let deep = format!("SELECT {}1", "(".repeat(10_000));
    assert!(text_of(&deep).len() < 20_020);
}
