//! What holds for every text: no panic, tokens that stay within it, and nothing inside a literal,
//! a quoted name or a comment that could change the class or the identity.

#[path = "replay/dress.rs"]
mod dress;

use dress::{CHARSETS, SERVERS, escape, whole};
use proptest::prelude::*;
use sql::{
    Charset, Class, LexMode, NamedLockUse, PlainEffects, Scratch, Setting, Statement, TableRef,
    Whole, describe, digest, tables,
};

fn modes() -> impl Strategy<Value = LexMode> {
    let servers = prop::sample::select(SERVERS.to_vec());
    let charset = prop::sample::select(CHARSETS.to_vec());
    (any::<bool>(), any::<bool>(), charset, servers).prop_map(
        |(no_backslash_escapes, ansi_quotes, charset, server)| LexMode {
            no_backslash_escapes: no_backslash_escapes.into(),
            ansi_quotes: ansi_quotes.into(),
            charset,
            server,
        },
    )
}

/// Bytes made of pieces that mean something to the lexer, and of any bytes.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"'",
        b"\"",
        b"`",
        b"\\",
        b"/*",
        b"*/",
        b"/*!",
        b"/*!50000",
        b"/*!99999 ",
        b"/*M!",
        b"/*+",
        b"-- ",
        b"--",
        b"#",
        b"\n",
        b";",
        b"$$",
        b"$a$",
        b"(",
        b")",
        b",",
        b".",
        b"@",
        b"@@",
        b"=",
        b" app=x ",
        b"app='x'",
        b" FOR UPDATE ",
        b" DELETE FROM t ",
        b" SELECT ",
        b" INSERT INTO ",
        b" BEGIN ",
        b" END ",
        b" CREATE PROCEDURE p() ",
        b" performance_schema.x ",
        b" GET_LOCK(",
        b" SET NAMES gbk;",
        b" SET sql_mode='ANSI';",
        b" COMMIT ",
        b" KILL 5 ",
        b" EXECUTE s ",
        b" PREPARE s FROM 'SELECT 1'",
        b" LOCK TABLES t READ ",
        b"\x81`",
        b"\xFF",
        b"[",
        b"~",
        b"\x81",
        b"\xA0",
        b"\xE0\x5C",
        b"\0",
        b"1e5",
        b" SET @sluice_app=",
        b" NULL ",
        b"%3A",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        2 => prop::collection::vec(any::<u8>(), 1..4),
        1 => "[a-zA-Z_]{1,8}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Every mode in which a server may be, of the kind of `mode`'s.
fn concrete(mode: LexMode) -> impl Iterator<Item = LexMode> {
    let settings = [Setting::Off, Setting::On];
    CHARSETS.into_iter().flat_map(move |charset| {
        settings.into_iter().flat_map(move |no_backslash_escapes| {
            settings.into_iter().map(move |ansi_quotes| LexMode {
                no_backslash_escapes,
                ansi_quotes,
                charset,
                server: mode.server,
            })
        })
    })
}

/// Asserts that `loose` says nothing that holds less than what `strict` says.
fn assert_at_least_as_strict(strict: &Statement<'_>, loose: &Statement<'_>) {
    // What a rule for `write` covers is all the same to it: a text that cannot be read in one way
    // and writes in another is of the class that it has in the other.
    let covered = strict.class.is_covered_by_write();
    for class in Class::ALL {
        let read = strict.classes.contains(class) || strict.effects.plain.unread;
        assert!(!loose.classes.contains(class) || read);
    }
    assert!(strict.class >= loose.class || covered);
    assert!(strict.exemption.is_none() || strict.exemption == loose.exemption);
    let (strict, loose) = (strict.effects, loose.effects);
    assert!(strict.execute.is_none() || strict.execute == loose.execute);
    assert!(strict.prepare.is_none() || strict.prepare == loose.prepare);
    let drops = |one: Option<&[u8]>| one.is_some();
    assert!(!drops(loose.deallocate) || drops(strict.deallocate) || strict.plain.forgets_prepared);
    let unread = strict.plain.unread;
    assert!(unread || strict.set_app.is_some() || loose.set_app.is_none());
    assert_plain_is_at_least_as_strict(&strict.plain, &loose.plain);
}

fn assert_plain_is_at_least_as_strict(strict: &PlainEffects, loose: &PlainEffects) {
    for (loose, strict) in [
        (loose.unread, strict.unread),
        (loose.begins_transaction, strict.begins_transaction),
        (loose.ends_transaction, strict.ends_transaction),
        (loose.transaction_control_before_other, strict.transaction_control_before_other),
        (loose.transaction_verbs.any(), strict.transaction_verbs.any()),
        (loose.releases.tables, strict.releases.tables),
        (loose.releases.global, strict.releases.global),
        (loose.releases.instance, strict.releases.instance),
        (loose.forgets_prepared, strict.forgets_prepared),
        (loose.forgets_schema, strict.forgets_schema),
        (strict.sql_mode_by_flags, loose.sql_mode_by_flags),
        (strict.takes.tables, loose.takes.tables),
        (strict.takes.global, loose.takes.global),
        (strict.takes.instance, loose.takes.instance),
    ] {
        assert!(!loose || strict);
    }
    let same_or = |same: bool, unknown: bool| assert!(same || unknown);
    same_or(strict.named_locks == loose.named_locks, strict.named_locks == NamedLockUse::Other);
    same_or(strict.set_charset == loose.set_charset, strict.set_charset == Some(Charset::Unknown));
    let unknown = Some(Setting::Unknown);
    let (one, two) = (strict.sets_ansi_quotes, loose.sets_ansi_quotes);
    same_or(one == two, one == unknown);
    let (one, two) = (strict.sets_no_backslash_escapes, loose.sets_no_backslash_escapes);
    same_or(one == two, one == unknown);
    same_or(strict.kill == loose.kill, strict.kill.is_none());
}

fn tags(statement: &Statement<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    statement.tags().map(|tag| (tag.key.to_vec(), tag.value.to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_anything_panic(text in hostile(), mode in modes(), cut in any::<bool>()) {
        let whole = if cut { Whole::Truncated } else { Whole::Yes };
        let mut scratch = Scratch::default();
        let statement = describe(&text, mode, whole, &mut scratch);
        prop_assert_eq!(statement.classes.strictest(), Some(statement.class));
        for tag in statement.tags() {
            prop_assert!((1..=255).contains(&tag.key.len()));
            prop_assert!((1..=255).contains(&tag.value.len()));
        }
        if cut {
            prop_assert!(statement.class.is_covered_by_write());
        }
        let mut out = Vec::new();
        digest(&text, mode, &mut out);
        let mut found: Vec<TableRef<'_>> = Vec::new();
        tables(&text, mode, |table| found.push(table));
    }

    #[test]
    fn random_bytes_make_nothing_panic(text in prop::collection::vec(any::<u8>(), 0..300), mode in modes()) {
        let mut scratch = Scratch::default();
        let statement = describe(&text, mode, Whole::Yes, &mut scratch);
        prop_assert_eq!(statement.classes.strictest(), Some(statement.class));
        let mut out = Vec::new();
        digest(&text, mode, &mut out);
        let mut found: Vec<TableRef<'_>> = Vec::new();
        tables(&text, mode, |table| found.push(table));
    }

    #[test]
    fn a_value_of_a_literal_changes_neither_class_nor_identity(
        value in hostile(),
        mode in modes(),
        double in any::<bool>(),
    ) {
        let quote = if double && mode.ansi_quotes == Setting::Off { b'"' } else { b'\'' };
        let literal = escape(&value, quote, mode);
        let mut scratch = Scratch::default();
        for (head, tail, class) in [
            (&b"INSERT INTO t (a, b) VALUES (1, "[..], &b") /* app=real */"[..], Class::Write),
            (b"SELECT * FROM t WHERE a = ", b" AND 1 /* app=real */", Class::Read),
            (b"/* app=real */ SET @a = ", b", @b = 1", Class::Session),
        ] {
            let text = [head, &literal, tail].concat();
            let statement = describe(&text, mode, Whole::Yes, &mut scratch);
            prop_assert_eq!(statement.class, class, "{}", String::from_utf8_lossy(&text));
            prop_assert_eq!(statement.statement_count, 1);
            prop_assert_eq!(tags(&statement), vec![(b"app".to_vec(), b"real".to_vec())]);
            prop_assert_eq!(statement.exemption, None);
            prop_assert_eq!(statement.effects.set_app, None);
            prop_assert!(!statement.effects.plain.takes.any());
        }
    }

    #[test]
    fn a_quoted_name_changes_neither_class_nor_identity(value in hostile(), mode in modes()) {
        let plain = LexMode { no_backslash_escapes: Setting::On, ..mode };
        let name = escape(&whole(&value, mode.charset), b'`', plain);
        let mut scratch = Scratch::default();
        let text = [b"UPDATE t SET ", &name[..], b" = 1 /* app=real */"].concat();
        let statement = describe(&text, mode, Whole::Yes, &mut scratch);
        prop_assert_eq!(statement.class, Class::Write);
        prop_assert_eq!(tags(&statement), vec![(b"app".to_vec(), b"real".to_vec())]);
        prop_assert_eq!(statement.exemption, None);
    }

    #[test]
    fn a_comment_changes_no_class(value in hostile(), mode in modes()) {
        prop_assume!(!value.windows(2).any(|pair| pair == b"*/"));
        prop_assume!(!value.ends_with(b"*"));
        let text = [b"UPDATE t /* ", &value[..], b" */ SET a = 1"].concat();
        let mut scratch = Scratch::default();
        let statement = describe(&text, mode, Whole::Yes, &mut scratch);
        prop_assert_eq!(statement.class, Class::Write);
        prop_assert_eq!(statement.statement_count, 1);
    }

    #[test]
    fn a_scratch_that_was_used_gives_what_a_fresh_one_gives(
        texts in prop::collection::vec((hostile(), modes()), 1..6),
    ) {
        let mut used = Scratch::default();
        for (text, mode) in &texts {
            let again = tags(&describe(text, *mode, Whole::Yes, &mut used));
            let mut fresh = Scratch::default();
            prop_assert_eq!(again, tags(&describe(text, *mode, Whole::Yes, &mut fresh)));
        }
    }

    #[test]
    fn an_unknown_mode_is_at_least_as_strict_as_each_mode(
        text in hostile(),
        mode in modes(),
        kept in 0_u8..8,
    ) {
        let mut scratch = Scratch::default();
        let mut other_scratch = Scratch::default();
        let unknown = LexMode::unknown(mode.server);
        // Some settings are known: those are the same in every mode that is compared.
        let unknown = LexMode {
            no_backslash_escapes: if kept & 1 == 0 { Setting::Unknown } else { mode.no_backslash_escapes },
            ansi_quotes: if kept & 2 == 0 { Setting::Unknown } else { mode.ansi_quotes },
            charset: if kept & 4 == 0 { Charset::Unknown } else { mode.charset },
            ..unknown
        };
        let strict = describe(&text, unknown, Whole::Yes, &mut scratch);
        let strict_tags = tags(&strict);
        for mode in concrete(mode) {
            let within = |known: Setting, one: Setting| known == Setting::Unknown || known == one;
            if !within(unknown.no_backslash_escapes, mode.no_backslash_escapes)
                || !within(unknown.ansi_quotes, mode.ansi_quotes)
                || (unknown.charset != Charset::Unknown && unknown.charset != mode.charset)
            {
                continue;
            }
            let loose = describe(&text, mode, Whole::Yes, &mut other_scratch);
            // To a server that reads nothing there, the text is an error and does nothing.
            if loose.statement_count == 0 {
                continue;
            }
            assert_at_least_as_strict(&strict, &loose);
            prop_assert!(strict_tags.is_empty() || strict_tags == tags(&loose));
        }
    }

    #[test]
    fn the_value_of_a_literal_changes_no_digest(value in hostile(), mode in modes()) {
        let text = [b"SELECT ", &escape(&value, b'\'', mode)[..], b" FROM t"].concat();
        let mut out = Vec::new();
        digest(&text, mode, &mut out);
        prop_assert_eq!(out, b"SELECT ? FROM t");
    }
}

/// A text that repeats any unit is read in one go: were the time not linear, this would not end.
#[test]
fn a_long_text_of_any_unit_is_read_in_linear_time() {
    const BYTES: usize = 256 * 1024;
    let units: [&[u8]; 34] = [
        b"'",
        b"''",
        b"\\",
        b"\"",
        b"`",
        b"/*",
        b"*/",
        b"/* */",
        b"/*! ",
        b"/*!99999 */",
        b"/*!99999 /* */",
        b"/*+ '",
        b"-- \n",
        b"#",
        b";",
        b"$a$ ",
        b"$$ ",
        b"(",
        b")",
        b"(1),",
        b"(1,a),",
        b"a.",
        b"1.5",
        b"1e",
        b"@",
        b"FOR ",
        b"LOCK IN ",
        b"GET_LOCK ",
        b"FROM a, ",
        b"JOIN ",
        b"BEGIN ",
        b"CASE ",
        b"EXPLAIN ANALYZE ",
        b"\x81",
    ];
    let heads: [&[u8]; 6] = [
        b"",
        b"SELECT ",
        b"INSERT INTO performance_schema.t VALUES ",
        b"CREATE PROCEDURE p() BEGIN ",
        b"SET @a=",
        b"WITH x AS (",
    ];
    let mode = LexMode { charset: Charset::Gbk, ..LexMode::default() };
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    for unit in units {
        for head in heads {
            let mut text = head.to_vec();
            text.extend(unit.iter().cycle().take(BYTES));
            let statement = describe(&text, mode, Whole::Yes, &mut scratch);
            assert!(statement.tags().count() <= 64);
            digest(&text, mode, &mut out);
            let mut found: Vec<TableRef<'_>> = Vec::new();
            tables(&text, mode, |table| found.push(table));
        }
    }
}
