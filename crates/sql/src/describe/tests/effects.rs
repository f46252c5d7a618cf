use super::*;
use crate::effects::{AppSetting, Kill};

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
        ("BEGIN NOT ATOMIC SELECT 1; END", false, false),
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
    let named = Locks { named: true, ..Locks::default() };
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
        ("SELECT GET_LOCK('a', 1)", named, Locks::default()),
        ("SELECT get_lock ('a', 1) FROM dual", named, Locks::default()),
        ("SET @x = GET_LOCK('a', 1)", named, Locks::default()),
        ("DO RELEASE_LOCK('a')", Locks::default(), named),
        ("SELECT db.GET_LOCK('a', 1)", Locks::default(), Locks::default()),
        ("SELECT 'GET_LOCK(1)', get_lock FROM t", Locks::default(), Locks::default()),
        ("EXPLAIN SELECT GET_LOCK('a', 1)", Locks::default(), Locks::default()),
        ("CREATE VIEW v AS SELECT GET_LOCK('a', 1)", Locks::default(), Locks::default()),
    ] {
        let found = effects(text);
        assert_eq!((found.plain.takes, found.plain.releases), (takes, releases), "{text}");
    }
    assert!(effects("SELECT RELEASE_ALL_LOCKS()").plain.releases_all_named);
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
    assert_eq!(effects("SET @sluice_app = 'x").set_app, None);
    for text in ["SET NAMES gbk", "SET NAMES 'gbk' COLLATE x", "SET CHARACTER SET gbk"] {
        assert_eq!(effects(text).plain.set_charset, Some(Charset::Gbk), "{text}");
    }
    assert_eq!(effects("SET @@character_set_client=gbk").plain.set_charset, Some(Charset::Gbk));
    assert_eq!(effects("SET GLOBAL character_set_client=gbk").plain.set_charset, None);
    assert_eq!(effects("SET NAMES DEFAULT").plain.set_charset, None);
    assert_eq!(effects("SET sql_mode='ANSI_QUOTES,X'").plain.sets_ansi_quotes, Some(true));
    assert_eq!(effects("SET @@SESSION.sql_mode=''").plain.sets_ansi_quotes, Some(false));
    assert_eq!(
        effects("SET sql_mode=CONCAT(@@sql_mode, ',ANSI_QUOTES')").plain.sets_ansi_quotes,
        Some(true)
    );
    assert_eq!(effects("SET sql_mode=CONCAT(@@sql_mode, ',X')").plain.sets_ansi_quotes, None);
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
