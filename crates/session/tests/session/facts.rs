//! What the server's own probe has read of it decides with the text.

use session::{Reads, ServerFacts};
use sql::{Charset, Class, Routine, RoutineKind, Routines, Server, Setting};

use crate::driver::*;

/// A server whose functions `a.peeks` and `a.other` write nothing.
fn knowing() -> ServerFacts {
    let row = |name: &'static [u8]| Routine {
        kind: RoutineKind::Function,
        schema: b"a",
        name,
        body: Some(b"CREATE FUNCTION f() RETURNS INT RETURN (SELECT COUNT(*) FROM t)"),
        sql_mode: b"",
    };
    let server = Server::MySql { version: 90_704 };
    let routines = Routines::read(server, [row(b"peeks"), row(b"other")]);
    ServerFacts { routines, ..ServerFacts::unasked() }
}

fn logged_in_to(schema: &str) -> Driver {
    let mut driver = Driver::logged_in(GATED, 0);
    learn(&mut driver, knowing());
    uses(&mut driver, schema);
    driver
}

fn learn(driver: &mut Driver, facts: ServerFacts) {
    driver.facts = facts;
    driver.session.handle_new_facts();
}

fn uses(driver: &mut Driver, schema: &str) {
    driver.command(&[b"\x02", schema.as_bytes()].concat());
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
}

const EXECUTE: &[u8] = b"\x17\x07\0\0\0\0\x01\0\0\0";

fn execution_passes(driver: &mut Driver) -> bool {
    let passes = matches!(driver.command(EXECUTE), Stop::Reads(Reads::Backend));
    if !passes {
        driver.admit();
        driver.run();
    }
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    passes
}

#[test]
fn a_function_that_writes_nothing_is_no_call_and_any_other_is() {
    let mut driver = logged_in_to("a");
    let read = driver.passes("SELECT peeks()", STATUS_AUTOCOMMIT);
    assert_eq!(read.statement.map(|statement| statement.class), Some(Class::Read));
    for held in ["SELECT writes()", "SELECT peeks() + writes()", "SELECT b.peeks()"] {
        let call = driver.asks(held, STATUS_AUTOCOMMIT);
        assert_eq!(call.statement.map(|statement| statement.class), Some(Class::Call), "{held}");
        driver.passes("SELECT peeks()", STATUS_AUTOCOMMIT);
    }
    driver.asks("INSERT INTO t VALUES (peeks())", STATUS_AUTOCOMMIT);
    driver.asks("CALL peeks()", STATUS_AUTOCOMMIT);
    learn(&mut driver, ServerFacts::default());
    driver.asks("SELECT peeks()", STATUS_AUTOCOMMIT);
}

/// While a statement ahead of it in the text waits, the function can be replaced.
#[test]
fn a_function_behind_another_statement_is_a_call() {
    let mut driver = logged_in_to("a");
    driver.asks("SELECT SLEEP(9); SELECT peeks()", STATUS_AUTOCOMMIT);
}

#[test]
fn a_function_is_looked_up_in_the_default_schema_if_that_is_certain() {
    let mut driver = logged_in_to("b");
    driver.asks("SELECT peeks()", STATUS_AUTOCOMMIT);
    driver.passes("SELECT a.peeks()", STATUS_AUTOCOMMIT);
    driver.passes("USE a", STATUS_AUTOCOMMIT);
    driver.passes("SELECT peeks()", STATUS_AUTOCOMMIT);
    driver.query("USE b; nonsense");
    driver.admit();
    driver.run();
    driver.answer(&err(1, 1064));
    driver.asks("SELECT peeks()", STATUS_AUTOCOMMIT);
    driver.passes("SELECT a.peeks()", STATUS_AUTOCOMMIT);
    uses(&mut driver, "a");
    driver.passes("SELECT peeks()", STATUS_AUTOCOMMIT);
    driver.asks("EXECUTE unknown", STATUS_AUTOCOMMIT);
    driver.asks("SELECT peeks()", STATUS_AUTOCOMMIT);
}

#[test]
fn an_execution_is_judged_by_the_list_of_its_time_and_the_schema_of_its_preparation() {
    let mut driver = logged_in_to("a");
    learn(&mut driver, ServerFacts::unasked());
    driver.prepare("SELECT peeks()", 7, 0);
    driver.passes("PREPARE s FROM 'SELECT peeks()'", STATUS_AUTOCOMMIT);
    assert!(!execution_passes(&mut driver));
    driver.asks("EXECUTE s", STATUS_AUTOCOMMIT);
    learn(&mut driver, knowing());
    uses(&mut driver, "b");
    for _ in 0..2 {
        assert!(execution_passes(&mut driver), "servers look in the schema of then");
        driver.passes("EXECUTE s", STATUS_AUTOCOMMIT);
    }
    learn(&mut driver, ServerFacts::unasked());
    assert!(!execution_passes(&mut driver));
    driver.asks("EXECUTE s", STATUS_AUTOCOMMIT);
    // In the other schema it is another function.
    learn(&mut driver, knowing());
    driver.prepare("SELECT peeks()", 7, 0);
    assert!(!execution_passes(&mut driver));
}

#[test]
fn the_shell_hears_of_a_change_of_routines_once_and_before_it_is_sent() {
    let rules = "  - { name: ddl, statements: [ddl], gate: [lag], permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
    driver.passes("CALL p()", STATUS_AUTOCOMMIT);
    assert_eq!(driver.routine_changes, 0);
    assert!(matches!(driver.query("DROP FUNCTION f"), Stop::Ask(_)));
    assert_eq!(driver.routine_changes, 0, "what waits changes nothing");
    driver.refuse();
    assert!(matches!(driver.run(), Stop::Finished(_)));
    assert_eq!(driver.routine_changes, 0, "nor does what is refused");
    driver.asks("DROP FUNCTION f", STATUS_AUTOCOMMIT);
    assert_eq!(driver.routine_changes, 1);
    driver.prepare("CREATE FUNCTION f() RETURNS INT RETURN 1", 7, 0);
    assert_eq!(driver.routine_changes, 1);
    execution_passes(&mut driver);
    assert_eq!(driver.routine_changes, 2);
}

/// One statement, unless double quotes are those of names: then it is two.
const HIDING: &str = r#"SELECT "\"; INSERT INTO t VALUES (1); -- ""#;

#[test]
fn a_session_of_mysql_begins_with_the_servers_own_ansi_quotes() {
    for (ansi_quotes, held) in
        [(Setting::Off, false), (Setting::On, true), (Setting::Unknown, true)]
    {
        let facts = ServerFacts { ansi_quotes, ..ServerFacts::default() };
        let mut driver = Driver::logged_in_with(GATED, facts);
        for reset in [false, true] {
            if reset {
                driver.command(b"\x1f");
                driver.answer(&ok(1, STATUS_AUTOCOMMIT));
            }
            let asks = matches!(driver.query(HIDING), Stop::Ask(_));
            assert_eq!(asks, held, "{ansi_quotes:?} {reset}");
            if asks {
                driver.admit();
                driver.run();
            }
            driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        }
    }
}

/// To gbk the two bytes are one character, and the quote behind them ends the literal.
#[test]
fn a_reset_session_of_mysql_reads_in_the_servers_own_character_set() {
    const TEXT: &[u8] = b"\x03SELECT '\xe5\\'; INSERT INTO t VALUES (1); -- '";
    for (charset_client, held) in
        [(Charset::Plain, false), (Charset::Gbk, true), (Charset::Unknown, true)]
    {
        let facts = ServerFacts { charset_client, ..ServerFacts::unasked() };
        let mut driver = Driver::logged_in_with(GATED, facts);
        assert!(matches!(driver.command(TEXT), Stop::Reads(Reads::Backend)));
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        driver.command(b"\x1f");
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        assert_eq!(matches!(driver.command(TEXT), Stop::Ask(_)), held, "{charset_client:?}");
    }
}
