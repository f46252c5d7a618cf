use super::*;
use crate::effects::{AppSetting, Kill, PlainEffects};

fn effects(text: &'static str) -> Effects<'static> {
    let scratch = Box::leak(Box::default());
    describe(text.as_bytes(), MYSQL, Whole::Yes, scratch).effects
}

#[test]
fn transaction_control_is_told() {
    for (text, begins, ends) in [
        ("BEGIN", true, false),
        ("begin work;", true, false),
        ("START TRANSACTION READ ONLY", true, false),
        ("START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */", true, false),
        ("XA START 'x'", true, false),
        ("XA BEGIN 'x'", true, false),
        ("COMMIT", false, true),
        ("COMMIT AND CHAIN NO RELEASE", true, true),
        ("COMMIT AND NO CHAIN", false, true),
        ("ROLLBACK AND CHAIN", true, true),
        ("ROLLBACK TO SAVEPOINT a", false, false),
        ("ROLLBACK WORK TO `a`", false, false),
        ("XA PREPARE 'x'", false, true),
        ("XA COMMIT 'x' ONE PHASE", false, true),
        ("XA END 'x'", false, false),
        ("SAVEPOINT a", false, false),
        ("BEGIN NOT ATOMIC SELECT 1; END", true, true),
        ("START REPLICA", false, false),
        ("SELECT 'BEGIN'", false, false),
    ] {
        let found = effects(text);
        assert_eq!(
            (found.plain.begins_transaction, found.plain.ends_transaction),
            (begins, ends),
            "{text}"
        );
    }
    assert!(effects("COMMIT; INSERT INTO t VALUES (1)").plain.transaction_control_before_other);
    assert!(!effects("INSERT INTO t VALUES (1); COMMIT").plain.transaction_control_before_other);
    assert!(!effects("BEGIN; COMMIT").plain.transaction_control_before_other);
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
        ("FLUSH LOCAL TABLES t WITH READ LOCK", global, Locks::default()),
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
        ("SET sql_mode=CONCAT(@@sql_mode, ',ANSI_QUOTES')", Unknown, Unknown),
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
fn names_numbers_and_prepared_text_are_told() {
    assert_eq!(effects("USE `my-db`;").use_schema, Some(&b"my-db"[..]));
    assert_eq!(effects("use db").use_schema, Some(&b"db"[..]));
    for (text, id, query_only) in
        [("KILL 5", 5, false), ("KILL HARD QUERY 7;", 7, true), ("KILL CONNECTION 6", 6, false)]
    {
        assert_eq!(
            effects(text).plain.kill,
            Some(Kill { connection_id: id, query_only }),
            "{text}"
        );
    }
    for text in ["KILL QUERY ID 5", "KILL CONNECTION_ID()", "KILL 5+1", "KILL USER x"] {
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
}
