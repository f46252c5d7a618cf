use super::*;
use crate::mode::{Charset, Server, Setting};

const MYSQL: LexMode = mode(Server::MySql { version: 90_704 });
const MARIADB: LexMode = mode(Server::MariaDb { version: 101_119 });

const fn mode(server: Server) -> LexMode {
    LexMode {
        no_backslash_escapes: Setting::Off,
        ansi_quotes: Setting::Off,
        charset: Charset::Plain,
        server,
    }
}

fn of(text: &str) -> Survey {
    survey(text.as_bytes(), MYSQL, Whole::Yes)
}

#[test]
fn a_where_counts_only_at_the_depth_of_its_own_statement() {
    for (text, at) in [
        ("UPDATE t SET a = 1", Some(0)),
        ("UPDATE t SET a = 1 WHERE id = 1", None),
        ("UPDATE t SET a = (SELECT b FROM u WHERE id = 1)", Some(0)),
        ("UPDATE t SET t.where = 1", Some(0)),
        ("UPDATE t SET a = 1 /* WHERE id = 1 */", Some(0)),
        ("UPDATE t SET a = 1 /*! WHERE id = 1 */", None),
        ("SELECT 1; DELETE FROM t", Some(10)),
        ("DELETE FROM t WHERE 1", Some(0)),
        ("DELETE FROM t WHERE (1 = 1) AND NOT 'a' IS NULL", Some(0)),
        ("DELETE FROM t WHERE unknown = 1", None),
        ("DELETE FROM t WHERE x = 'x'", None),
        ("DELETE FROM t WHERE _a = 'x'", None),
        ("DELETE FROM t WHERE date > DATE '2020-01-01'", None),
        ("DELETE FROM t WHERE {d '2020-01-01'}", Some(0)),
        ("DELETE FROM t WHERE {ts '2020-01-01 10:00:00'} < a", None),
        ("DELETE FROM t WHERE _latin1 x'31' OR _utf8mb4 0x31 OR _binary b'1'", Some(0)),
        ("DELETE FROM t WHERE _latin1 x'31' = _a", None),
        (r"DELETE FROM t WHERE \N IS NULL", Some(0)),
        (r"DELETE FROM t WHERE \N IS NULL AND N = 1", None),
        ("DELETE FROM t LIMIT 5", Some(0)),
        ("EXPLAIN DELETE FROM t", None),
        ("EXPLAIN ANALYZE DELETE t FROM t JOIN u ON t.a = u.a", Some(16)),
        ("WITH c AS (SELECT 1 WHERE 1) DELETE FROM t", Some(29)),
        ("SELECT * FROM t FOR UPDATE", None),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", None),
        ("PREPARE s FROM 'DELETE FROM t'", Some(15)),
    ] {
        let found = of(text).unfiltered(Accepts::default()).map(|found| found.at);
        assert_eq!(found, at, "{text}");
    }
}

#[test]
fn a_join_is_loose_where_no_on_and_no_where_can_speak_for_it() {
    for (text, at) in [
        ("SELECT * FROM a, b", Some(15)),
        ("SELECT * FROM a JOIN b", Some(16)),
        ("SELECT * FROM a JOIN b ON a.x = b.x", None),
        ("SELECT * FROM a JOIN b USING (x) JOIN c", Some(33)),
        ("SELECT * FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x", None),
        ("SELECT * FROM a, b WHERE a.x = b.x", None),
        ("SELECT * FROM a, b WHERE 1", Some(15)),
        ("SELECT * FROM a NATURAL JOIN b", None),
        ("DELETE FROM a USING a JOIN b ON a.x = b.x", None),
        ("UPDATE a, b SET a.x = b.x", Some(8)),
        ("SELECT * FROM t USE INDEX FOR JOIN (i)", None),
        ("SELECT 1 FROM a WHERE x IN (SELECT y FROM b, c)", Some(43)),
    ] {
        let found = of(text);
        assert_eq!(found.cross_join, at, "{text}");
        assert!(!found.unjudged.joins, "{text}");
    }
    for text in [
        "SELECT * FROM a JOIN b JOIN c ON b.x = c.x",
        "SELECT * FROM a, (SELECT @r := 0) r",
        "SELECT * FROM a, JSON_TABLE(a.d, '$' COLUMNS (x INT PATH '$')) j",
        "SELECT * FROM (SELECT a.x FROM a, b) d WHERE d.x = 1",
    ] {
        let found = of(text);
        assert_eq!(found.cross_join, None, "{text}");
        assert_eq!(
            found.unjudged.joins,
            !text.contains("WHERE") || text.contains("d WHERE"),
            "{text}"
        );
    }
}

#[test]
fn the_longest_list_of_in_is_found() {
    let longest = |text: &str| of(text).in_list.map(|list| (list.at, list.len));
    assert_eq!(
        longest("SELECT 1 FROM t WHERE a IN (1, 2) OR b NOT IN (1, (2), f(3, 4))"),
        Some((43, 3))
    );
    assert_eq!(longest("SELECT 1 FROM t WHERE a IN (SELECT b, c FROM u)"), None);
    assert_eq!(longest("SELECT 1 FROM t WHERE MATCH (a) AGAINST ('x' IN BOOLEAN MODE)"), None);
    assert_eq!(
        longest("CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1, 2))"),
        None
    );
}

#[test]
fn what_readings_differ_on_is_not_judged() {
    let unknown = LexMode::unknown(Server::Unknown);
    let text = b"DELETE FROM t /*!80000 WHERE a = 1 */";
    assert!(survey(text, unknown, Whole::Yes).unjudged.filters);
    assert!(survey(b"DELETE FROM t WHERE \"a\" = 'b'", unknown, Whole::Yes).unjudged.filters);
    assert!(!survey(b"DELETE FROM t WHERE a = \"b\"", unknown, Whole::Yes).unjudged.filters);
    assert!(survey(b"DELETE FROM t SET", MYSQL, Whole::Truncated).unjudged.filters);
    let history = survey(b"DELETE HISTORY FROM t", MARIADB, Whole::Yes);
    assert!(history.unjudged.filters && history.unfiltered(Accepts::default()).is_none());
    let block = survey(b"BEGIN NOT ATOMIC DELETE FROM t; END", MARIADB, Whole::Yes);
    assert!(block.unjudged.filters && block.unfiltered(Accepts::default()).is_none());
    let body = of("CREATE PROCEDURE p() BEGIN DELETE FROM t; END");
    assert!(body.unfiltered(Accepts::default()).is_none());
}

#[test]
fn what_changes_a_schema_is_found_and_what_only_looks_like_it_is_not() {
    for (text, at) in [
        ("CREATE TABLE t (a INT)", Some(0)),
        ("SELECT 1; ALTER TABLE t ADD b INT", Some(10)),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", Some(0)),
        ("ALTER VIEW v AS SELECT 1", Some(0)),
        ("DROP VIEW v", Some(0)),
        ("RENAME TABLE a TO b", Some(0)),
        ("TRUNCATE t", Some(0)),
        ("CREATE TEMPORARY TABLE t (a INT)", None),
        ("CREATE TEMPORARY TABLE t SELECT 1", None),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", None),
        ("DROP TEMPORARY TABLE IF EXISTS t", None),
        ("RENAME USER a TO b", None),
        ("CREATE USER a", None),
        ("CREATE RESOURCE GROUP event TYPE = USER", None),
        ("ALTER RESOURCE GROUP event DISABLE", None),
        ("DROP RESOURCE GROUP event FORCE", None),
        ("CREATE DEFINER=resource@localhost VIEW v AS SELECT 1", Some(0)),
        ("DROP TABLE resource", Some(0)),
        ("CREATE DEFINER = temporary@localhost VIEW v AS SELECT 1", Some(0)),
        ("CREATE DEFINER=user@localhost SQL SECURITY DEFINER VIEW v AS SELECT 1", Some(0)),
        ("ALTER DEFINER=server@localhost VIEW v AS SELECT 1", Some(0)),
        ("SELECT TRUNCATE(1.5, 0)", None),
    ] {
        let found = of(text);
        assert_eq!(found.ddl, at, "{text}");
        assert!(!found.unjudged.ddl, "{text}");
    }
    assert!(of("CREATE TEMPORARY TABLE t SELECT 1 FROM a, b").cross_join.is_some());
    for unjudged in ["PREPARE s FROM @v", "BEGIN NOT ATOMIC DROP TABLE t; END"] {
        assert!(survey(unjudged.as_bytes(), MARIADB, Whole::Yes).unjudged.ddl, "{unjudged}");
    }
    assert!(!survey(b"DELETE HISTORY FROM t", MARIADB, Whole::Yes).unjudged.ddl);
}

#[test]
fn a_query_block_that_names_tables_in_any_way_has_a_from() {
    for (text, has_from) in [
        ("SELECT 1", false),
        ("SELECT 1 UNION SELECT 2", false),
        ("SELECT 1 FROM dual", false),
        ("SELECT 1 FROM DUAL WHERE 1 LIMIT 1", false),
        ("SELECT 1 FROM /* one row */ dual", false),
        ("SELECT 1 FROM dual UNION SELECT 2 FROM DUAL", false),
        ("SELECT (SELECT 1 FROM dual)", false),
        ("VALUES ROW(1)", false),
        ("SELECT 1 FROM t", true),
        ("TABLE t", true),
        ("(TABLE t)", true),
        ("SELECT 1 UNION ALL TABLE t", true),
        ("VALUES ROW(1) UNION TABLE t", true),
        ("SELECT (SELECT 1 UNION TABLE t)", true),
        ("DO (SELECT 1 FROM t)", true),
        ("SELECT 1 FROM `dual`", true),
        ("SELECT 1 FROM dual.t", true),
        ("SELECT 1 FROM dual . t", true),
        ("SELECT 1 FROM t.dual", true),
        ("SELECT 1 FROM dual UNION SELECT 1 FROM t", true),
        ("SELECT 1 FROM dual WHERE EXISTS (SELECT 1 FROM t)", true),
    ] {
        assert_eq!(of(text).has_from, has_from, "{text}");
    }
}

/// MySQL 9.7 converts the text of a PREPARE: in euckr it reads `"?` where `"\x81"` stands.
#[test]
fn what_is_prepared_is_not_judged_where_the_server_reads_other_bytes_than_stand_there() {
    let prepared = |charset, bytes: &[u8]| {
        let text = [b"PREPARE s FROM 'UPDATE t SET a = \"".as_slice(), bytes, b"\"'"].concat();
        survey(&text, LexMode { charset, ..MYSQL }, Whole::Yes)
    };
    let accepts = Accepts::default();
    for (charset, bytes) in [
        (Charset::Plain, b"a".as_slice()),
        (Charset::Plain, "\u{e9}".as_bytes()),
        (Charset::Latin, b"\xe9"),
        (Charset::Gbk, b"a"),
        (Charset::Euc, b"a"),
    ] {
        let found = prepared(charset, bytes);
        assert!(found.unfiltered(accepts).is_some(), "{charset:?} {bytes:x?}");
    }
    for (charset, bytes) in [
        (Charset::Plain, b"\x81".as_slice()),
        (Charset::Gbk, b"\xbf\x40"),
        (Charset::Big5, b"\xc3\xa9"),
        (Charset::Euc, "\u{e9}".as_bytes()),
    ] {
        let found = prepared(charset, bytes);
        assert!(found.unfiltered(accepts).is_none(), "{charset:?} {bytes:x?}");
        assert!(found.unjudged.filters, "{charset:?} {bytes:x?}");
    }
}
