//! Sessions of one thread beside sessions of which each reads every text for itself: whatever they
//! send, in whatever order and mode, both must find the same in it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of a test fail by panicking, as the test does"
)]

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use policy::ClusterPolicy;
use proptest::prelude::*;
use session::Reads;
use sql::DigestMemo;

use crate::driver::*;

/// Files that take turns: rules, guards and budgets that look at all that can be looked at.
const FILES: [&str; 4] = [
    "  - { name: writes, statements: [write, ddl, call, unknown], permanent: true }
  - { name: rest, gate: none, permanent: true }
",
    "  - { name: t, match: { table: [t, 'mysql.*', 'shop.u'] }, permanent: true }
  - { name: etl, match: { app: etl }, permanent: true }
  - { name: digest, match: { digest: ['SELECT c FROM t WHERE id = ?', 'DELETE FROM t'] },
      deny: true, statements: [read, write], permanent: true }
  - { name: slow, gate: none, permanent: true, runaway: { elapsed: 1s, action: kill, watch: { by: \
     digest, for: 1m } } }
guards:
  - { name: where, where_required: deny, no_cross_join: deny, max_in_list: 2,
      require_tag: [trace], max_statement_bytes: 90 }
budgets:
  - { name: all, per: digest, max_concurrency: 4 }
",
    "  - { name: all, permanent: true }
insights: { tags: [trace] }
",
    "  - { name: shop, match: { schema: shop }, permanent: true }
  - { name: rest, gate: none, permanent: true }
guards:
  - { name: ddl, no_ddl_hours: { hours: \"00:00-23:59\" }, match: { user: app } }
  - { name: joins, no_cross_join: warn, match: { table: [t, u] } }
budgets:
  - { name: per, match: { table: t }, per: app, rate: 5 }
",
];

/// Servers of different kinds behind one thread.
const SERVERS: [&str; 4] = ["9.7.4", "8.0.36", "5.5.5-10.11.19-MariaDB", "odd"];

/// What changes how texts are read, or who asks.
const SETTINGS: &[(&str, u16)] = &[
    ("SET sql_mode = ''", STATUS_AUTOCOMMIT),
    ("SET sql_mode = 'ANSI_QUOTES'", STATUS_AUTOCOMMIT),
    ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES),
    ("SET sql_mode = 'ANSI'", STATUS_AUTOCOMMIT),
    ("SET sql_mode = @x", STATUS_AUTOCOMMIT),
    ("SET NAMES latin1", STATUS_AUTOCOMMIT),
    ("SET NAMES utf8mb4", STATUS_AUTOCOMMIT),
    ("SET NAMES gbk", STATUS_AUTOCOMMIT),
    ("SET NAMES euckr", STATUS_AUTOCOMMIT),
    ("SET NAMES cp852", STATUS_AUTOCOMMIT),
    ("SET NAMES swe7", STATUS_AUTOCOMMIT),
    ("SET NAMES binary", STATUS_AUTOCOMMIT),
    ("SET character_set_client = @y", STATUS_AUTOCOMMIT),
    ("SET @sluice_app = 'etl'", STATUS_AUTOCOMMIT),
    ("SET @sluice_app = NULL", STATUS_AUTOCOMMIT),
    ("SET autocommit = 0", 0),
    ("SET autocommit = 1", STATUS_AUTOCOMMIT),
    ("BEGIN", STATUS_AUTOCOMMIT | STATUS_IN_TRANS),
    ("COMMIT", STATUS_AUTOCOMMIT),
    ("USE shop", STATUS_AUTOCOMMIT),
    ("USE `crm`", STATUS_AUTOCOMMIT),
    ("CREATE TEMPORARY TABLE t (a INT)", STATUS_AUTOCOMMIT),
    ("DROP TEMPORARY TABLE t", STATUS_AUTOCOMMIT),
    ("PREPARE p FROM 'DELETE FROM t'", STATUS_AUTOCOMMIT),
    ("PREPARE p FROM 'SELECT c FROM t WHERE id = 1'", STATUS_AUTOCOMMIT),
    ("DEALLOCATE PREPARE p", STATUS_AUTOCOMMIT),
];

const NO_BACKSLASH_ESCAPES: u16 = 0x200;

/// Texts of which many come again with other values.
const TEXTS: &[&str] = &[
    "SELECT c FROM t WHERE id = 1",
    "SELECT c FROM t WHERE id = 1 AND c1 = 1",
    "SELECT c FROM t WHERE id = 1 AND c2 = 1",
    "SELECT c FROM t WHERE id = 1 FOR UPDATE",
    "SELECT c FROM t WHERE id = 1 INTO OUTFILE 'x'",
    "SELECT c FROM t WHERE id = 1 LIMIT 1, 2",
    "SELECT c FROM t WHERE id IN (1, 2) OR c = 'x'",
    "SELECT c FROM t, u",
    "SELECT c FROM t JOIN u",
    "SELECT c FROM shop.t, crm.u WHERE t.a = u.b",
    "SELECT \"a\", 'b' FROM t WHERE c = \"; DELETE FROM t; SELECT \"",
    "SELECT '\\', a FROM t WHERE b = ' OR 'c'",
    "SELECT 'a' 'b', N'c', _latin1'd', x'4D', 0x4D, b'1', 0b1, 1e5, .5, -1 FROM t",
    "SELECT 'a\u{a0}b', a\u{a0}b FROM t\u{a0}u",
    "SELECT /*!80000 'a', */ 1 FROM t",
    "SELECT /*M! 'a', */ 1 FROM t",
    "SELECT /*+ MAX_EXECUTION_TIME(1) */ 1 FROM t",
    "SELECT $$a$$ FROM t",
    "SELECT 1 -- 2\n FROM t",
    "SELECT f(1, 'x') FROM t",
    "SELECT POINT(1, 2) FROM t",
    "SELECT GET_LOCK('a', 1)",
    "SELECT a || 'b', NOT 1 BETWEEN 2 AND 3, count (1) FROM t",
    "INSERT INTO t (a, b) VALUES (1, 'x')",
    "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
    "INSERT INTO t SELECT * FROM u WHERE a = 1",
    "REPLACE INTO t VALUES (1)",
    "UPDATE t SET a = 1",
    "UPDATE t SET a = 1 WHERE b = 'x'",
    "UPDATE t SET a = 1 WHERE 1",
    "DELETE FROM t",
    "DELETE FROM t WHERE a = 1",
    "DELETE FROM t LIMIT 1",
    "DELETE FROM `t` WHERE a = 'x' /* app=etl */",
    "CREATE TABLE n (a INT DEFAULT 1)",
    "ALTER TABLE t ADD a INT DEFAULT 1",
    "DROP TABLE u",
    "CALL p(1)",
    "KILL 5",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'DELETE FROM t'",
    "SET @a = 1",
    "SHOW TABLES",
    "EXPLAIN SELECT c FROM t WHERE id = 1",
    "SELECT a FROM mysql.user WHERE b = 'x'",
    "SELECT 1; DELETE FROM t WHERE a = 1",
    "WITH x AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT 1 FROM x)",
    "BEGIN NOT ATOMIC DELETE FROM t; END",
    "LOCK TABLES t WRITE",
    "UNLOCK TABLES",
    "TABLE t",
    "VALUES ROW(1), ROW(2)",
];

/// What stands ahead of a text or behind it.
const AROUND: &[(&str, &str)] = &[
    ("", ""),
    ("/* app=etl */ ", ""),
    ("/* app='shop', trace='1' */ ", ""),
    ("", " /* app='etl',trace='2' */"),
    ("", " /* app=\"web\" */"),
    ("/**/", "/**/"),
    ("/* a */ /* b */", ""),
    ("", ";"),
    (" ", " "),
    ("(", ")"),
    ("/*! ", " */"),
    ("EXPLAIN ", ""),
];

/// What takes the place of a byte, by which one it is.
fn instead_of(byte: u8) -> &'static [&'static str] {
    match byte {
        b'0'..=b'9' => {
            &["7", "99", "1.5", "-3", "1, 2", "'a'", "NULL", "0x1", "1e5", "a", "f(1)", "?", "(1)"]
        }
        b'\'' => &["'", "'a", "''", "\\''", "'; DELETE FROM t -- ", "\"", "N'", "'/*"],
        b'"' => &["\"", "'", "\"\"", "\"a"],
        b'*' => &["* app='b' *", "*!", "**", "*+"],
        b')' => &["), (6)", ", 5)", ", f(5))", ", NULL)", ", -1, 'x')"],
        b' ' => &["\n", "\t", "/* c */", "\u{a0}", " /* app=etl */ "],
        b't' => &["`t`", "u", "T", "mysql.t"],
        _ => &["", "\u{e9}"],
    }
}

/// What a session does next.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// It sends this text, whose byte at a place, if any, is another.
    Sends {
        text: usize,
        around: usize,
        change: Option<(usize, usize)>,
    },
    /// The same, prepared and executed.
    Prepares {
        text: usize,
    },
    /// It changes something of itself.
    Sets(usize),
    Resets,
    /// The file is another for all.
    Reloads(usize),
    /// What was told of digests is forgotten.
    Forgets,
    /// It sends more texts that begin alike than have room, from this one on.
    Floods(usize),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Does)>> {
    // A case has few texts, so that they come again.
    let texts =
        prop::collection::vec(prop::sample::select((0..TEXTS.len()).collect::<Vec<_>>()), 1..6);
    texts.prop_flat_map(|texts| {
        let text = prop::sample::select(texts);
        let around = prop_oneof![3 => Just(0), 1 => 0..AROUND.len()];
        let change = prop::option::of((any::<usize>(), any::<usize>()));
        let does = prop_oneof![
            40 => (text.clone(), around, change)
                .prop_map(|(text, around, change)| Does::Sends { text, around, change }),
            2 => text.prop_map(|text| Does::Prepares { text }),
            4 => (0..SETTINGS.len()).prop_map(Does::Sets),
            1 => Just(Does::Resets),
            1 => (0..FILES.len()).prop_map(Does::Reloads),
            1 => Just(Does::Forgets),
            1 => (0..60_usize).prop_map(Does::Floods),
        ];
        prop::collection::vec((0..SERVERS.len(), does), 40..160)
    })
}

/// The text, with another byte.
fn written(text: usize, around: usize, change: Option<(usize, usize)>) -> Vec<u8> {
    let (ahead, behind) = AROUND[around];
    let text = [ahead, TEXTS[text], behind].concat();
    let Some((at, by)) = change else { return text.into_bytes() };
    let values: Vec<usize> = (0..text.len())
        .filter(|at| {
            matches!(text.as_bytes()[*at], b'0'..=b'9' | b'\'' | b'"' | b'*' | b')' | b' ')
        })
        .collect();
    // Mostly a value, and any byte now and then.
    let at = match values.get(at % (values.len() + 3)) {
        Some(at) => *at,
        None => at % text.len(),
    };
    let (head, tail) = text.as_bytes().split_at(at);
    let (byte, tail) = tail.split_first().unwrap();
    let others = instead_of(*byte);
    let other = others[by % others.len()];
    // A byte from 0x80 up is one, in most character sets.
    let latin: Vec<u8> = other.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    [head, &latin, tail].concat()
}

/// A session of the thread, and one that knows nothing of what came before.
struct Both {
    known: Driver,
    alone: Driver,
    status: u16,
}

/// What both found in a statement, but for whom it was told.
fn found(driver: &mut Driver, payload: &[u8], status: u16) -> String {
    let was_prepared = payload.first() == Some(&0x16);
    driver.report = None;
    driver.to_backend.clear();
    driver.to_client.clear();
    driver.client.extend(frame(0, payload));
    let mut stops = Vec::new();
    let mut rounds = 0;
    loop {
        rounds += 1;
        assert!(rounds < 20, "{stops:?}");
        let stop = driver.run();
        stops.push(format!("{stop:?}"));
        match stop {
            Stop::Ask(_) => driver.admit(),
            Stop::Deny => driver.refuse(),
            Stop::Reads(Reads::Backend) if was_prepared => {
                driver.backend.extend(frame(1, &[0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
            }
            Stop::Reads(Reads::Backend) => driver.backend.extend(ok(1, status)),
            _ => break,
        }
    }
    let session = &driver.session;
    let about = session.about();
    format!(
        "{stops:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {}",
        driver.report,
        session.budgets(),
        session.app(),
        session.app_source(),
        session.trace_id(),
        (about.digest, about.schema, about.tags),
        session.in_transaction(),
        session.holds_table_locks(),
        session.identity().schema(),
        driver.to_backend.escape_ascii(),
        driver.to_client.escape_ascii(),
    )
}

fn begin(server: &str, file: &Arc<ClusterPolicy>, digests: &Rc<DigestMemo>) -> Driver {
    let mut driver = Driver::logged_in_to(UNGATED, server);
    driver.policy = Arc::clone(file);
    driver.session.handle_new_policy();
    driver.digests = Some(Rc::clone(digests));
    driver
}

impl Both {
    /// Sends it to both.
    fn send(&mut self, payload: &[u8], told: &mut HashSet<u64>) {
        let Self { known, alone, status } = self;
        alone.texts = Rc::default();
        alone.digests = Some(Rc::default());
        // What the rules said last is asked again.
        alone.session.handle_new_policy();
        let known_found = found(known, payload, *status);
        let alone_found = found(alone, payload, *status);
        assert_eq!(known_found, alone_found, "{}", payload.escape_ascii());
        // Behind another command that is the last statement still.
        let is_statement = matches!(payload.first(), Some(3 | 0x17));
        let Some(digest) = known.session.about().digest.filter(|_| is_statement) else { return };
        match (known.session.about().news, alone.session.about().news) {
            // What is told is what everybody would tell.
            (Some(news), Some(others)) => {
                assert_eq!(news, others, "{}", payload.escape_ascii());
                told.insert(digest);
                known.digests.as_ref().unwrap().note_told(digest);
            }
            (None, _) => assert!(told.contains(&digest), "{}", payload.escape_ascii()),
            (Some(_), None) => panic!("{}", payload.escape_ascii()),
        }
        let memo = known.digests.as_ref().unwrap();
        if known.session.about().tags != 0 {
            memo.note_told(known.session.about().tags);
        }
    }
}

/// Everybody does what the steps say.
fn check(steps: &[(usize, Does)]) {
    let files: Vec<_> = FILES.iter().map(|file| policy(file)).collect();
    let digests = Rc::<DigestMemo>::default();
    let texts = Rc::default();
    let mut told = HashSet::new();
    let mut all: Vec<Both> = SERVERS
        .iter()
        .map(|server| {
            let mut known = begin(server, &files[0], &digests);
            known.texts = Rc::clone(&texts);
            Both { known, alone: begin(server, &files[0], &digests), status: STATUS_AUTOCOMMIT }
        })
        .collect();
    for (who, does) in steps {
        let both = &mut all[*who];
        match *does {
            Does::Sends { text, around, change } => {
                both.send(&[b"\x03", written(text, around, change).as_slice()].concat(), &mut told);
            }
            Does::Prepares { text } => {
                both.send(&[b"\x16", TEXTS[text].as_bytes()].concat(), &mut told);
                both.send(b"\x17\x09\0\0\0\0\x01\0\0\0", &mut told);
            }
            Does::Sets(setting) => {
                let (text, status) = SETTINGS[setting];
                both.status = status;
                both.send(&[b"\x03", text.as_bytes()].concat(), &mut told);
            }
            Does::Floods(from) => {
                for column in from..from + 40 {
                    let text = format!("\x03SELECT c FROM t WHERE id = 1 AND c{column} = 1");
                    both.send(text.as_bytes(), &mut told);
                }
            }
            Does::Resets => {
                both.status = STATUS_AUTOCOMMIT;
                both.send(b"\x1f", &mut told);
            }
            Does::Reloads(file) => {
                for Both { known, alone, .. } in &mut all {
                    for driver in [known, alone] {
                        driver.policy = Arc::clone(&files[file]);
                        driver.session.handle_new_policy();
                    }
                }
            }
            Does::Forgets => {
                digests.forget_told();
                told.clear();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn what_sessions_share_of_texts_says_what_each_would_read(steps in steps()) {
        check(&steps);
    }
}
