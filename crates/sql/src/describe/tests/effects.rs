use super::*;
use crate::effects::{AppSetting, Kill, NamedLockUse, PlainEffects};

pub(super) fn effects(text: &'static str) -> Effects<'static> {
    let scratch = Box::leak(Box::default());
    describe(text.as_bytes(), MYSQL, Whole::Yes, scratch).effects
}

#[test]
fn locks_are_told_with_their_net_effect() {
    let tables = Locks { tables: true, ..Locks::default() };
    let global = Locks { global: true, ..Locks::default() };
    let instance = Locks { instance: true, ..Locks::default() };
    for (text, takes, releases) in [
        ("LOCK TABLES t WRITE", tables, Locks::default()),
        ("FLUSH TABLES t FOR EXPORT", tables, Locks::default()),
        ("FLUSH TABLES WITH READ LOCK", global, Locks::default()),
        ("FLUSH LOCAL TABLES WITH READ LOCK", global, Locks::default()),
        ("FLUSH LOCAL TABLES t WITH READ LOCK", tables, Locks::default()),
        ("FLUSH TABLE tables WITH READ LOCK", tables, Locks::default()),
        ("DROP TABLE t", Locks::default(), tables),
        ("LOCK TABLES t WRITE; DROP TABLES IF EXISTS t", Locks::default(), tables),
        ("DROP TEMPORARY TABLE t", Locks::default(), Locks::default()),
        ("DROP VIEW t", Locks::default(), Locks::default()),
        ("CREATE OR REPLACE TABLE t (n INT)", Locks::default(), tables),
        ("CREATE OR REPLACE TEMPORARY TABLE t (n INT)", Locks::default(), Locks::default()),
        ("CREATE TABLE t (n INT)", Locks::default(), Locks::default()),
        ("LOCK INSTANCE FOR BACKUP", instance, Locks::default()),
        ("UNLOCK INSTANCE", Locks::default(), instance),
        ("UNLOCK TABLES", Locks::default(), BY_UNLOCK_TABLES),
        ("LOCK TABLES t WRITE; UNLOCK TABLES", Locks::default(), BY_UNLOCK_TABLES),
        ("BEGIN", Locks::default(), tables),
    ] {
        let found = effects(text);
        assert_eq!((found.plain.takes, found.plain.releases), (takes, releases), "{text}");
    }
}

#[test]
fn set_tells_the_app_the_character_set_and_the_quotes() {
    let named = |text: &'static str| match effects(text).set_app {
        Some(AppSetting::Named(name)) => name.plain().map(<[u8]>::to_vec),
        Some(AppSetting::Cleared | AppSetting::Unreadable) | None => None,
    };
    for text in [
        "SET @sluice_app = 'etl:x'",
        "set @SLUICE_APP:='etl:x'",
        "SET @a=1, @`sluice_app`='etl:x', @b=(SELECT 1, 2)",
        "SET autocommit=1, @'sluice_app' = \"etl:x\";",
    ] {
        assert_eq!(named(text), Some(b"etl:x".to_vec()), "{text}");
    }
    for text in [
        "SET @sluice_app = CONCAT('a', 'b')",
        "SET @sluice_app = 'a' 'b'",
        "SET @sluice_app = _latin1'a'",
        "SET @sluice_app = @x",
        "SET @sluice_app = ('a')",
    ] {
        assert_eq!(effects(text).set_app, Some(AppSetting::Unreadable), "{text}");
    }
    assert_eq!(effects("SET @sluice_app = NULL").set_app, Some(AppSetting::Cleared));
    assert_eq!(effects("SET @a = '@sluice_app = 1'").set_app, None);
    assert_eq!(effects("SELECT @sluice_app := 'x'").set_app, None);
    assert_eq!(effects("SET @sluice_app = 'x").set_app, Some(AppSetting::Unreadable));
    assert_eq!(effects("SET @slu\u{ed}ce_app = 'x'").set_app, Some(AppSetting::Unreadable));
    for text in ["SET NAMES gbk", "SET NAMES 'gbk' COLLATE x", "SET CHARACTER SET gbk"] {
        assert_eq!(effects(text).plain.set_charset, Some(Charset::Gbk), "{text}");
    }
    assert_eq!(effects("SET @@character_set_client=gbk").plain.set_charset, Some(Charset::Gbk));
    assert_eq!(effects("SET GLOBAL character_set_client=gbk").plain.set_charset, None);
}

#[test]
fn what_a_set_does_to_the_mode_is_told_or_unknown() {
    use Setting::{Off, On, Unknown};
    for (text, charset) in [
        ("SET NAMES DEFAULT", Charset::Unknown),
        ("SET CHARACTER SET DEFAULT", Charset::Unknown),
        ("SET CHAR SET gbk", Charset::Gbk),
        ("SET x.y=1", Charset::Unknown),
        ("SET NAMES nonsense", Charset::Unknown),
        ("SET character_set_client=28", Charset::Unknown),
        ("SET character_set_client=@x", Charset::Unknown),
        ("SET character_set_client=DEFAULT", Charset::Unknown),
        ("SET character_set_client=('gbk')", Charset::Unknown),
        ("SET character_set_client='g' 'bk'", Charset::Unknown),
        ("SET LOCAL character_set_client=`gbk`", Charset::Gbk),
        ("SET @@session . character_set_client:=gbk", Charset::Gbk),
        ("SET NAMES gbk, character_set_client=latin1", Charset::Latin),
        ("SET GLOBAL max_connections=1, character_set_client=gbk", Charset::Unknown),
        ("SET @@GLOBAL.max_connections=1, character_set_client=gbk", Charset::Gbk),
        ("SET `character_set_client `=gbk", Charset::Unknown),
        ("SET NAMES gbk; SET NAMES utf8mb4", Charset::Plain),
        ("SET STATEMENT max_statement_time=1 FOR SET NAMES gbk", Charset::Gbk),
    ] {
        assert_eq!(effects(text).plain.set_charset, Some(charset), "{text}");
    }
    for (text, ansi, escapes) in [
        ("SET sql_mode='ANSI_QUOTES,IGNORE_SPACE'", On, Off),
        ("SET @@SESSION.sql_mode=''", Off, Off),
        ("SET sql_mode=ansi", On, Off),
        ("SET sql_mode='Oracle,NO_BACKSLASH_ESCAPES,'", On, On),
        ("SET sql_mode='TRADITIONAL '", Off, Off),
        ("SET sql_mode='ANSI_QUOTES,X'", Unknown, Unknown),
        ("SET sql_mode=4", Unknown, Unknown),
        ("SET sql_mode=DEFAULT", Unknown, Unknown),
        ("SET sql_mode='\\ANSI_QUOTES'", Unknown, Unknown),
        ("SET sql_mode='' 'ANSI_QUOTES'", Unknown, Unknown),
        ("SET \u{15b}ql_mode=''", Unknown, Unknown),
        ("SET GLOBAL a=1, sql_mode=''", Unknown, Unknown),
        ("SET GLOBAL a=1, SESSION b=2, sql_mode=''", Off, Off),
    ] {
        let found = effects(text).plain;
        assert_eq!(found.sets_ansi_quotes, Some(ansi), "{text}");
        assert_eq!(found.sets_no_backslash_escapes, Some(escapes), "{text}");
    }
    for text in ["SET GLOBAL sql_mode='ANSI'", "SET PERSIST sql_mode='ANSI'", "SET @sql_mode=1"] {
        assert_eq!(effects(text).plain, PlainEffects::default(), "{text}");
    }
}

#[test]
fn what_is_joined_to_the_mode_in_force_leaves_the_rest_of_it() {
    use Setting::{On, Unknown};
    for (text, ansi, escapes) in [
        ("SET sql_mode=CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')", None, None),
        (
            "SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',TRADITIONAL'), ',NO_ZERO_DATE')",
            None,
            None,
        ),
        (
            "set autocommit=1, sql_mode = concat ( @@local.sql_mode , ',STRICT_TRANS_TABLES' )",
            None,
            None,
        ),
        ("SET sql_mode=CONCAT('NO_ZERO_DATE,', @@sql_mode, ',', 'IGNORE_SPACE')", None, None),
        ("SET sql_mode=@@sql_mode", None, None),
        ("SET sql_mode=CONCAT(@@sql_mode, ',ANSI_QUOTES')", Some(On), None),
        ("SET sql_mode=CONCAT('NO_BACKSLASH_ESCAPES,', @@sql_mode)", None, Some(On)),
        (
            "SET sql_mode='ANSI'; SET sql_mode=CONCAT(@@sql_mode, ',TRADITIONAL')",
            Some(On),
            Some(Setting::Off),
        ),
    ] {
        let found = effects(text).plain;
        let sets = (found.sets_ansi_quotes, found.sets_no_backslash_escapes);
        assert_eq!(sets, (ansi, escapes), "{text}");
        assert!(!found.sql_mode_by_flags, "{text}");
    }
    for text in [
        "SET sql_mode=CONCAT(@@sql_mode, 'STRICT_ALL_TABLES')",
        "SET sql_mode=CONCAT(@@sql_mode, ',AN', 'SI')",
        "SET sql_mode=CONCAT(@@sql_mode, ',AN' 'SI')",
        "SET sql_mode=CONCAT(@@sql_mode, ',NONSENSE')",
        "SET sql_mode=CONCAT(@@sql_mode, @@sql_mode)",
        "SET sql_mode=CONCAT(@@sql_mode, ',', @x)",
        "SET sql_mode=CONCAT(@@GLOBAL.sql_mode, ',ANSI')",
        "SET sql_mode=CONCAT(@@sql_mode.x, ',ANSI')",
        "SET sql_mode=CONCAT(@@x, ',ANSI')",
        "SET sql_mode=CONCAT('', ',ANSI')",
        "SET sql_mode=REPLACE(@@sql_mode, ',ANSI')",
        "SET sql_mode=@@sql_mode | 4",
        "SET sql_mode='ANSI', sql_mode=CONCAT(@@sql_mode, ',TRADITIONAL')",
        "SET \u{15b}ql_mode='ANSI', sql_mode=CONCAT(@@sql_mode, ',TRADITIONAL')",
        "SET sql_mode=(SELECT CONCAT(@@sql_mode, ',ANSI'))",
    ] {
        let found = effects(text).plain;
        let sets = (found.sets_ansi_quotes, found.sets_no_backslash_escapes);
        assert_eq!(sets, (Some(Unknown), Some(Unknown)), "{text}");
    }
}

#[test]
fn only_a_set_in_which_nothing_else_runs_is_told_by_its_flags() {
    for text in [
        "SET sql_mode=@x",
        "/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;",
        "SET @a=1, sql_mode=REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')",
        "SET @@SESSION.sql_mode=(SELECT REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', ''))",
        "SET sql_mode=1048576",
        "SET sql_mode=DEFAULT",
        "SET sql_mode='ANSI', sql_mode=@x",
    ] {
        assert!(effects(text).plain.sql_mode_by_flags, "{text}");
    }
    for text in [
        "SET sql_mode='ANSI'",
        "SET sql_mode=@x, sql_mode='ANSI'",
        "SET GLOBAL sql_mode=@x",
        "SET GLOBAL a=1, sql_mode=@x",
        "SET sql_mode=f()",
        "SET sql_mode=`concat`('ANSI')",
        "SET sql_mode=@x, @y=db.f()",
        "SET @y=f(), sql_mode=@x",
        "SET sql_mode=(SELECT m FROM v)",
        "SET sql_mode=(TABLE v)",
        "SET sql_mode=@x, \u{15b}ql_mode=@y",
        "SET sql_mode=@x; SELECT 1",
        "SELECT f(); SET sql_mode=@x",
        "SET STATEMENT max_statement_time=1 FOR SET sql_mode=@x",
        "SET sql_mode='x",
        "BEGIN NOT ATOMIC SET sql_mode=@x; END",
    ] {
        assert!(!effects(text).plain.sql_mode_by_flags, "{text}");
    }
}

#[test]
fn names_numbers_and_prepared_text_are_told() {
    assert_eq!(effects("USE `my-db`;").use_schema, Some(&b"my-db"[..]));
    assert_eq!(effects("use db").use_schema, Some(&b"db"[..]));
    for (text, id, query_only) in [
        ("KILL 5", 5, false),
        ("KILL HARD QUERY 7;", 7, true),
        ("KILL CONNECTION 6", 6, false),
        ("KILL QUERY (( 760 ));", 760, true),
        ("KILL QUERY '760'", 760, true),
        ("KILL (0x2f8)", 760, false),
    ] {
        assert_eq!(
            effects(text).plain.kill,
            Some(Kill { connection_id: id, query_only }),
            "{text}"
        );
    }
    for text in [
        "KILL QUERY ID 5",
        "KILL CONNECTION_ID()",
        "KILL 5+1",
        "KILL USER x",
        "KILL (5",
        "KILL 5)",
        "KILL (5)+1",
        "KILL '7' '6'",
        "KILL ' 7'",
        "KILL '+7'",
        "KILL ''",
        "KILL -7",
        "KILL 7.0",
    ] {
        assert_eq!(effects(text).plain.kill, None, "{text}");
    }
    let prepare = effects("PREPARE `s` FROM 'SELECT \\'x\\''").prepare;
    let mut text = Vec::new();
    if let Some(literal) = prepare.and_then(|prepare| prepare.text) {
        literal.unescape_into(&mut text);
    }
    assert_eq!(text, b"SELECT 'x'");
    assert_eq!(prepare.map(|prepare| prepare.name), Some(&b"s"[..]));
    let from_variable = effects("PREPARE s FROM @x").prepare;
    assert!(from_variable.is_some_and(|prepare| prepare.text.is_none()));
    assert_eq!(effects("EXECUTE s USING @a").execute, Some(&b"s"[..]));
    assert_eq!(effects("EXECUTE IMMEDIATE 'x'").execute, None);
    assert_eq!(effects("DEALLOCATE PREPARE s").deallocate, Some(&b"s"[..]));
    assert_eq!(effects("DROP PREPARE s").deallocate, Some(&b"s"[..]));
    for text in ["PREPARE s FROM 'SELECT 1'", "DEALLOCATE PREPARE s", "SELECT 1", "USE d"] {
        assert!(!effects(text).plain.forgets_prepared, "{text}");
    }
}

#[test]
fn names_of_prepared_statements_that_cannot_be_followed_make_all_forgotten() {
    for text in [
        "PREPARE \u{15b} FROM 'SELECT 1'",
        "PREPARE `s ` FROM 'SELECT 1'",
        "PREPARE `a``b` FROM 'SELECT 1'",
        "DEALLOCATE PREPARE `s `",
        "DROP PREPARE \u{17f}",
        "PREPARE s FROM 'SELECT 1'; PREPARE t FROM 'SELECT 2'",
        "DEALLOCATE PREPARE s; PREPARE s FROM 'SELECT 2'",
        "PREPARE s FROM 'SELECT 1'; EXECUTE s",
        "SET sql_mode='ANSI'; PREPARE s FROM 'SELECT 1'",
        "PREPARE s FROM 'SELECT 1'; SET NAMES gbk",
        "CALL p()",
        "EXECUTE s",
        "EXECUTE IMMEDIATE 'DEALLOCATE PREPARE s'",
        "BEGIN NOT ATOMIC PREPARE s FROM 'SELECT 1'; END",
    ] {
        let found = effects(text);
        assert!(found.plain.forgets_prepared, "{text}");
        assert_eq!((found.prepare, found.deallocate), (None, None), "{text}");
    }
    for text in [
        "PREPARE s FROM 'SELECT' ' 1'",
        "PREPARE s FROM N'SELECT 1'",
        "PREPARE s FROM _latin1'SELECT 1'",
        "PREPARE s FROM x'53454c4543542031'",
        "PREPARE s FROM ('SELECT 1')",
    ] {
        let found = effects(text).prepare;
        assert!(found.is_some_and(|prepare| prepare.text.is_none()), "{text}");
    }
    for text in ["EXECUTE `s `", "EXECUTE \u{17f}", "SET @a=1; EXECUTE s", "EXECUTE s; SELECT 1"] {
        assert_eq!(effects(text).execute, None, "{text}");
    }
}

#[test]
fn what_was_not_read_may_have_done_anything() {
    for text in [
        "EXECUTE s",
        "EXECUTE IMMEDIATE 'SET NAMES gbk'",
        "BEGIN NOT ATOMIC SET NAMES gbk; END",
        "BEGIN NOT ATOMIC IF 0 THEN SELECT 1; KILL 5; END IF; END",
        "IF 0 THEN KILL 5; END IF",
        "SET STATEMENT sql_mode='' FOR KILL 5",
        "SELECT 1; WHAT",
        "SELECT 'x",
        "SET sql_mode='ANSI'; SELECT \"x\"",
    ] {
        let found = effects(text).plain;
        let expected = PlainEffects {
            transaction_control_before_other: found.transaction_control_before_other,
            no_statement: found.no_statement,
            ..PlainEffects::unread()
        };
        assert_eq!(found, expected, "{text}");
    }
    let text = b"INSERT INTO t VALUES (1), (2";
    let found = describe(text, MYSQL, Whole::Truncated, &mut Scratch::default()).effects.plain;
    assert!(found.unread && found.transaction_control_before_other);
    for text in ["", "-- only a comment", "SELECT 1", "DELETE FROM t", "SHOW TABLES"] {
        assert!(!effects(text).plain.unread, "{text}");
    }
}

#[test]
fn a_call_may_do_anything_but_change_the_mode() {
    let found = effects("CALL p()").plain;
    assert!(found.begins_transaction && found.ends_transaction && found.transaction_verbs.any());
    assert_eq!(found.named_locks, NamedLockUse::Other);
    assert_eq!((found.set_charset, found.sets_ansi_quotes), (None, None));
    assert!(!found.unread && !found.forgets_schema);
    assert!(!found.transaction_control_before_other, "it begins in its caller's transaction");
    let mut scratch = Scratch::default();
    assert!(describe(b"CALL p()", MARIADB, Whole::Yes, &mut scratch).effects.plain.forgets_schema);
    assert_eq!(effects("SET NAMES gbk; CALL p()").plain.set_charset, Some(Charset::Gbk));
    assert!(effects("CALL p(); DELETE FROM t").plain.transaction_control_before_other);
}

#[test]
fn a_kill_counts_when_it_is_all_there_is() {
    assert!(effects("/* x */ KILL 5 ;").plain.kill.is_some());
    for text in [
        "KILL 5; KILL 6",
        "SELECT 1; KILL 5",
        "KILL 5; SELECT 1",
        "CREATE PROCEDURE p() KILL 5",
        "CREATE PROCEDURE p() BEGIN IF 0 THEN KILL 5; END IF; END",
        "EXPLAIN KILL 5",
    ] {
        assert_eq!(effects(text).plain.kill, None, "{text}");
    }
}

#[test]
fn a_call_of_a_named_lock_is_sole_or_anything() {
    use NamedLockUse::{None, Other, SoleGet, SoleRelease};
    for (text, expected) in [
        ("SELECT GET_LOCK('a', 1)", SoleGet),
        ("select /* x */ get_lock ('a', -1) AS `l`;", SoleGet),
        ("SELECT GET_LOCK(?, ?) l", SoleGet),
        ("SELECT GET_LOCK(@a, 1) 'l'", SoleGet),
        ("SELECT RELEASE_LOCK('a')", SoleRelease),
        ("SELECT IS_FREE_LOCK('a')", None),
        ("SELECT IF(0, GET_LOCK('a', 1), 1)", Other),
        ("SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)", Other),
        ("SELECT GET_LOCK('a', 1), 2", Other),
        ("SELECT 2, GET_LOCK('a', 1)", Other),
        ("SELECT GET_LOCK('a', 1) FROM dual", Other),
        ("SELECT GET_LOCK('a', 1) WHERE 0", Other),
        ("SELECT GET_LOCK('a', 1) LIMIT 0", Other),
        ("SELECT GET_LOCK('a', 1) HAVING 0", Other),
        ("SELECT GET_LOCK('a', 1) INTO @a", Other),
        ("SELECT GET_LOCK('a', 1) UNION SELECT 1", Other),
        ("SELECT GET_LOCK('a', 1) + 1", Other),
        ("SELECT -GET_LOCK('a', 1)", Other),
        ("SELECT GET_LOCK(f(), 1)", Other),
        ("SELECT GET_LOCK((SELECT 1), 1)", Other),
        ("SELECT GET_LOCK(NEXT VALUE FOR s, 1)", Other),
        ("SELECT DISTINCT GET_LOCK('a', 1)", Other),
        ("SELECT GET_LOCK('a', 1); SELECT GET_LOCK('b', 1)", Other),
        ("SELECT GET_LOCK('a', 1); COMMIT", Other),
        ("DO GET_LOCK('a', 1)", Other),
        ("SET @x = GET_LOCK('a', 1)", Other),
        ("DO RELEASE_LOCK('a')", Other),
        ("SELECT RELEASE_ALL_LOCKS()", Other),
        ("INSERT INTO t VALUES (GET_LOCK('a', 1))", Other),
        ("CALL p()", Other),
        ("SELECT db.GET_LOCK('a', 1)", Other),
        ("SELECT 'GET_LOCK(1)'", None),
        ("EXPLAIN SELECT GET_LOCK('a', 1)", None),
        ("CREATE VIEW v AS SELECT GET_LOCK('a', 1)", None),
    ] {
        assert_eq!(effects(text).plain.named_locks, expected, "{text}");
    }
}

#[test]
fn a_nul_that_ends_the_text_is_no_part_of_it() {
    let mut differ = Vec::new();
    for text in [
        "USE shop",
        "SET NAMES gbk",
        "SET NAMES 'gbk' COLLATE gbk_bin",
        "SET CHARACTER SET gbk",
        "SET character_set_client = gbk",
        "SET sql_mode = ANSI_QUOTES",
        "SET sql_mode = 'ANSI_QUOTES'",
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "SET autocommit = 0",
        "SET autocommit = 1",
        "SET @sluice_app = 'etl'",
        "SET @sluice_app = NULL",
        "PREPARE s FROM 'SELECT 1'",
        "PREPARE s FROM @a",
        "DEALLOCATE PREPARE s",
        "EXECUTE s",
        "BEGIN",
        "START TRANSACTION",
        "COMMIT",
        "COMMIT AND CHAIN",
        "ROLLBACK TO a",
        "ROLLBACK",
        "XA START 'a'",
        "XA END 'a'",
        "XA COMMIT 'a'",
        "LOCK TABLES t WRITE",
        "UNLOCK TABLES",
        "FLUSH TABLES WITH READ LOCK",
        "DROP TABLE t",
        "KILL 5",
        "SELECT GET_LOCK('a', 0)",
        "SELECT RELEASE_LOCK('a')",
        "DO RELEASE_LOCK('a')",
        "CALL p",
        "CALL p()",
        "SELECT 1",
        "SELECT f",
    ] {
        for end in ["\0", "\0 ; \n"] {
            let with: &'static str = Box::leak(format!("{text}{end}").into());
            if effects(with) != effects(text) {
                differ.push(with);
            }
        }
    }
    assert!(differ.is_empty(), "{differ:?}");
}
