//! The session between a scripted client and a scripted server.

mod budgets;
mod certain;
mod clearing;
mod compressed;
mod confided;
mod cursors;
mod cut_over;
mod doubted;
mod driver;
mod facts;
mod fuzzed;
mod hostile;
mod leaving;
mod locks;
mod modes;
mod passwords;
mod recent;
mod secure;
mod shapes;
mod shared;
mod streams;
mod traced;

use session::{CloseReason, Denial, Reads};
use sql::Class;

use driver::*;

const BEGIN_STATUS: u16 = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
const COMPRESS_AND_SSL: u32 = 0x20 | 0x800;

#[test]
fn what_each_leg_has_of_its_own_does_not_pass_in_either_direction() {
    let keys =
        "client_tls: { mode: disabled }\n    client_compression: { algorithms: [uncompressed] }";
    let mut driver = Driver::with_cluster(keys);
    driver.backend.extend(greeting(0x0108_8200 | COMPRESS_AND_SSL));
    driver.run();
    let offered = driver.to_client.clone();
    assert_eq!(offered, greeting(0x0108_8200), "only the two bits differ");
    assert_eq!(driver.session.masked_capabilities().base, 0, "both are Sluice's own");
    driver.client.extend(response(0x0108_8200 | 0x20));
    driver.run();
    assert_eq!(driver.to_backend, response(0x0108_8200));
}

#[test]
fn a_servers_error_in_place_of_its_greeting_is_relayed_once() {
    let mut driver = Driver::new(UNGATED);
    let error = frame(0, b"\xff\x10\x04Too many connections");
    driver.backend.extend(&error);
    let stop = driver.run();
    assert!(matches!(stop, Stop::Close(CloseReason::LoginRefused)), "{stop:?}");
    assert_eq!(driver.to_client, error);
    assert!(!driver.session.is_greeted());
}

#[test]
fn a_tls_request_that_was_not_offered_ends_the_connection() {
    let mut driver = Driver::with_cluster("client_tls: { mode: disabled }");
    driver.backend.extend(greeting(0x0108_8200));
    driver.run();
    let mut request = (0x0108_8200_u32 | 0x800).to_le_bytes().to_vec();
    request.extend([0; 28]);
    driver.client.extend(frame(1, &request));
    let stop = driver.run();
    let denied = CloseReason::LoginDenied(Denial::BadHandshake);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
    assert!(driver.to_backend.is_empty());
}

#[test]
fn a_command_sent_before_the_login_is_over_does_not_cross_unseen() {
    let mut driver = Driver::new(GATED);
    driver.backend.extend(greeting(0x0108_8200));
    driver.run();
    driver.client.extend(response(0x0108_8200));
    driver.client.extend(frame(0, b"\x03INSERT INTO t VALUES (1)"));
    driver.run();
    let forwarded = driver.to_backend.len();
    driver.backend.extend(frame(2, b"\xfecaching_sha2_password\0saltsaltsaltsaltsalt\0"));
    let stop = driver.run();
    assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
    driver.backend.extend(ok(2, STATUS_AUTOCOMMIT));
    assert!(matches!(driver.run(), Stop::LoggedIn));
    assert_eq!(driver.to_backend.len(), forwarded);
    assert!(matches!(driver.run(), Stop::Ask(_)));
}

#[test]
fn a_read_passes_and_a_write_is_asked_for() {
    let mut driver = Driver::logged_in(GATED, 0);
    let read = driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
    assert_eq!(read.statement.map(|statement| statement.class), Some(Class::Read));
    let write = driver.asks("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
    assert_eq!(write.statement.map(|statement| statement.class), Some(Class::Write));
    assert!(write.admission_over);
}

#[test]
fn a_refused_statement_never_reaches_the_server_and_the_client_gets_one_error() {
    let mut driver = Driver::logged_in(GATED, 0);
    assert!(matches!(driver.query("DELETE FROM t"), Stop::Ask(_)));
    driver.refuse();
    assert!(matches!(driver.run(), Stop::Finished(_)));
    assert!(driver.to_backend.is_empty());
    assert_eq!(driver.to_client, frame(1, b"\xff\xb5\x04#HY000no"));
    driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
}

#[test]
fn the_error_of_a_command_in_two_packets_has_sequence_two() {
    let mut driver = Driver::logged_in(GATED, 0);
    let mut text = b"\x03INSERT INTO t VALUES ('".to_vec();
    text.resize(0xff_ffff, b'x');
    driver.client.extend(frame(0, &text));
    driver.client.extend(frame(1, b"')"));
    assert!(matches!(driver.run(), Stop::Ask(_)));
    driver.refuse();
    assert!(matches!(driver.run(), Stop::Finished(_)));
    assert_eq!(driver.to_client, frame(2, b"\xff\xb5\x04#HY000no"));
    assert!(driver.client.is_empty() && driver.to_backend.is_empty());
}

#[test]
fn once_admitted_a_transaction_passes_to_its_end() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.passes("SELECT 1", BEGIN_STATUS);
    let first = driver.asks("UPDATE t SET a = 1", BEGIN_STATUS);
    assert!(!first.admission_over);
    driver.passes("UPDATE t SET a = 2", BEGIN_STATUS);
    let commit = driver.passes("COMMIT", STATUS_AUTOCOMMIT);
    assert!(commit.admission_over);
    driver.asks("UPDATE t SET a = 3", STATUS_AUTOCOMMIT);
}

#[test]
fn a_new_transaction_is_asked_for_however_it_begins() {
    for text in ["BEGIN", "COMMIT AND CHAIN", "START TRANSACTION"] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("BEGIN", BEGIN_STATUS);
        driver.asks("UPDATE t SET a = 1", BEGIN_STATUS);
        driver.passes(text, BEGIN_STATUS);
        driver.asks("UPDATE t SET a = 2", BEGIN_STATUS);
    }
}

#[test]
fn without_autocommit_the_first_write_is_asked_for_and_no_other() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("SET autocommit=0", 0);
    driver.asks("INSERT INTO t VALUES (1)", STATUS_IN_TRANS);
    driver.passes("INSERT INTO t VALUES (2)", STATUS_IN_TRANS);
    driver.passes("COMMIT", 0);
    driver.asks("INSERT INTO t VALUES (3)", STATUS_IN_TRANS);
}

#[test]
fn a_text_cannot_smuggle_a_second_transaction_behind_an_admitted_one() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.asks("INSERT INTO t VALUES (1)", BEGIN_STATUS);
    driver.asks("COMMIT; INSERT INTO t VALUES (2)", STATUS_AUTOCOMMIT);
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.asks("INSERT INTO t VALUES (1)", BEGIN_STATUS);
    driver.passes("INSERT INTO t VALUES (3); COMMIT; BEGIN", BEGIN_STATUS);
    driver.asks("INSERT INTO t VALUES (4)", BEGIN_STATUS);
}

#[test]
fn a_deadlock_ends_the_admission_and_another_error_does_not() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.asks("INSERT INTO t VALUES (1)", BEGIN_STATUS);
    driver.query("INSERT INTO t VALUES (1)");
    assert!(!driver.answer(&err(1, 1062)).admission_over);
    driver.query("INSERT INTO t VALUES (2)");
    assert!(driver.answer(&err(1, 1213)).admission_over);
    driver.asks("INSERT INTO t VALUES (3)", STATUS_AUTOCOMMIT);
    // MariaDB's innodb_snapshot_isolation rolls back as well.
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.asks("INSERT INTO t VALUES (1)", BEGIN_STATUS);
    driver.query("UPDATE t SET n = 2");
    assert!(driver.answer(&err(1, 1020)).admission_over);
    driver.asks("INSERT INTO t VALUES (3)", STATUS_AUTOCOMMIT);
}

#[test]
fn a_session_that_holds_locks_is_not_held_back() {
    let pairs = [
        ("LOCK TABLES t WRITE", ok(1, STATUS_AUTOCOMMIT), "UNLOCK TABLES"),
        ("SELECT GET_LOCK('a', 1)", one_value("1", STATUS_AUTOCOMMIT), "DO RELEASE_LOCK('a')"),
        ("FLUSH TABLES WITH READ LOCK", ok(1, STATUS_AUTOCOMMIT), "UNLOCK TABLES"),
    ];
    for (take, taken, release) in pairs {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.query(take);
        driver.answer(&taken);
        driver.passes("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
        driver.passes(release, STATUS_AUTOCOMMIT);
        driver.asks("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
    }
}

#[test]
fn a_lock_that_was_not_got_frees_nobody() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.query("LOCK TABLES t WRITE");
    driver.answer(&err(1, 1146));
    driver.asks("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
}

const EXECUTE_WITH_TYPES: &[u8] = b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x03abc";
const EXECUTE_WITHOUT: &[u8] = b"\x17\x07\0\0\0\0\x01\0\0\0\0\0\x03abc";

fn refuse_execution(driver: &mut Driver) {
    driver.refuse();
    let stop = driver.run();
    if let Stop::Reads(Reads::Backend) = stop {
        driver.backend.extend(ok(1, STATUS_AUTOCOMMIT));
        assert!(matches!(driver.run(), Stop::Finished(_)));
    } else {
        assert!(matches!(stop, Stop::Finished(_)), "{stop:?}");
    }
}

#[test]
fn an_execution_is_asked_for_by_the_class_of_its_text() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("SELECT ?", 6, 1);
    driver.prepare("INSERT INTO t VALUES (?)", 7, 1);
    let read = [&EXECUTE_WITH_TYPES[..1], &[6], &EXECUTE_WITH_TYPES[2..]].concat();
    assert!(matches!(driver.command(&read), Stop::Reads(Reads::Backend)));
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(matches!(driver.command(EXECUTE_WITH_TYPES), Stop::Ask(_)));
}

#[test]
fn an_execution_of_something_unknown_is_asked_for() {
    let mut driver = Driver::logged_in(GATED, 0);
    let stop = driver.command(EXECUTE_WITH_TYPES);
    let Stop::Ask(ask) = stop else { panic!("{stop:?}") };
    assert_eq!(ask.class, Class::Unknown);
}

#[test]
fn types_that_a_refused_execution_took_along_are_put_into_the_next() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("INSERT INTO t VALUES (?)", 7, 1);
    assert!(matches!(driver.command(EXECUTE_WITH_TYPES), Stop::Ask(_)));
    refuse_execution(&mut driver);
    assert!(driver.to_backend.is_empty());
    assert!(matches!(driver.command(EXECUTE_WITHOUT), Stop::Ask(_)));
    driver.admit();
    driver.run();
    assert_eq!(driver.to_backend, frame(0, EXECUTE_WITH_TYPES));
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    driver.to_backend.clear();
    assert!(matches!(driver.command(EXECUTE_WITHOUT), Stop::Ask(_)));
    driver.admit();
    driver.run();
    assert_eq!(driver.to_backend, frame(0, EXECUTE_WITHOUT), "the server knows them now");
}

#[test]
fn long_data_of_a_refused_execution_is_dropped_on_the_server() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("INSERT INTO t VALUES (?)", 7, 1);
    driver.client.extend(frame(0, b"\x18\x07\0\0\0\0\0OLD"));
    assert!(matches!(driver.run(), Stop::Finished(_)));
    driver.to_backend.clear();
    assert!(matches!(driver.command(EXECUTE_WITH_TYPES), Stop::Ask(_)));
    refuse_execution(&mut driver);
    assert_eq!(driver.to_backend, frame(0, b"\x1a\x07\0\0\0"), "COM_STMT_RESET");
    assert_eq!(driver.to_client, frame(1, b"\xff\xb5\x04#HY000no"), "its OK is swallowed");
}

#[test]
fn the_last_prepared_statement_may_be_named_by_its_alias() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("SELECT ?", 7, 1);
    let alias = [b"\x17\xff\xff\xff\xff", &EXECUTE_WITH_TYPES[5..]].concat();
    assert!(matches!(driver.command(&alias), Stop::Reads(Reads::Backend)));
}

#[test]
fn sql_prepare_is_followed() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("PREPARE r FROM 'SELECT 1'", STATUS_AUTOCOMMIT);
    driver.passes("PREPARE w FROM 'DELETE FROM t'", STATUS_AUTOCOMMIT);
    driver.passes("EXECUTE r", STATUS_AUTOCOMMIT);
    driver.asks("EXECUTE w", STATUS_AUTOCOMMIT);
    driver.asks("EXECUTE other", STATUS_AUTOCOMMIT);
    driver.passes("DEALLOCATE PREPARE r", STATUS_AUTOCOMMIT);
    driver.asks("EXECUTE r", STATUS_AUTOCOMMIT);
}

#[test]
fn what_the_server_says_between_commands_is_relayed() {
    let mut driver = Driver::logged_in(GATED, 0);
    let timeout = err(0, 4031);
    driver.backend.extend(&timeout);
    assert!(matches!(driver.run(), Stop::Reads(Reads::Either)));
    assert_eq!(driver.to_client, timeout);
}

#[test]
fn pipelined_commands_are_taken_one_by_one() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.client.extend(frame(0, b"\x03SELECT 1"));
    driver.client.extend(frame(0, b"\x03DELETE FROM t"));
    assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)));
    assert_eq!(driver.to_backend, frame(0, b"\x03SELECT 1"));
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(matches!(driver.run(), Stop::Ask(_)));
}

#[test]
fn a_file_the_server_asks_for_is_no_command() {
    let mut driver = Driver::logged_in(GATED, 0);
    assert!(matches!(driver.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), Stop::Ask(_)));
    driver.admit();
    driver.run();
    driver.backend.extend(frame(1, b"\xfbx"));
    assert!(matches!(driver.run(), Stop::Reads(Reads::Client)));
    driver.client.extend(frame(2, b"\x03DROP TABLE t"));
    driver.client.extend(frame(3, b""));
    assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)));
    driver.answer(&ok(4, STATUS_AUTOCOMMIT));
}

#[test]
fn clone_and_group_replication_are_refused() {
    for command in [0x20, 0x21] {
        let mut driver = Driver::logged_in(UNGATED, 0);
        assert!(matches!(driver.command(&[command]), Stop::Finished(_)));
        assert!(driver.to_backend.is_empty());
        assert_eq!(driver.to_client[4..7], [0xff, 0x17, 0x04]);
    }
}

#[test]
fn a_statement_is_judged_again_from_its_bytes() {
    let mut driver = Driver::logged_in(GATED, 0);
    assert!(matches!(driver.query("DELETE FROM t"), Stop::Ask(_)));
    driver.policy = policy(UNGATED);
    driver.session.handle_new_policy();
    driver.judge_again();
    assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)));
    assert_eq!(driver.to_backend, frame(0, b"\x03DELETE FROM t"));
}

#[test]
fn a_kill_that_the_server_accepted_is_reported() {
    let mut driver = Driver::logged_in(UNGATED, 0);
    let kill = driver.passes("KILL QUERY 42", STATUS_AUTOCOMMIT).kill;
    assert_eq!(kill.map(|kill| (kill.connection_id, kill.query_only)), Some((42, true)));
    driver.query("KILL 43");
    assert_eq!(driver.answer(&err(1, 1095)).kill, None);
}

#[test]
fn whoever_must_leave_gets_an_error_that_fits() {
    let mut driver = Driver::logged_in(GATED, 0);
    assert!(matches!(driver.query("DELETE FROM t"), Stop::Ask(_)));
    assert!(driver.session.handle_told_to_leave(&driver.client, &refusal()));
    assert_eq!(driver.session.outbox(), frame(1, b"\xff\xb5\x04#HY000no"));
    assert!(matches!(driver.run(), Stop::Close(CloseReason::Told)));
}

#[test]
fn nothing_is_written_into_an_answer_that_has_begun() {
    let mut driver = Driver::logged_in(UNGATED, 0);
    driver.query("SELECT 1");
    driver.backend.extend(&frame(1, b"\x01")[..]);
    driver.run();
    assert!(!driver.session.handle_told_to_leave(&driver.client, &refusal()));
}

#[test]
fn cut_into_single_bytes_the_bytes_forwarded_are_the_same() {
    let commands = [
        frame(0, b"\x03SELECT 1 /*app=a*/"),
        frame(0, b"\x0e"),
        frame(0, b"\x03INSERT INTO t VALUES (1)"),
    ]
    .concat();
    let mut driver = Driver::logged_in(UNGATED, 0);
    for byte in &commands {
        driver.client.push(*byte);
        if let Stop::Reads(Reads::Backend) = driver.run() {
            for byte in ok(1, STATUS_AUTOCOMMIT) {
                driver.backend.push(byte);
                driver.run();
            }
        }
    }
    assert_eq!(driver.to_backend, commands);
    assert_eq!(driver.to_client, ok(1, STATUS_AUTOCOMMIT).repeat(3));
}

#[test]
fn a_statement_is_not_carried_past_its_rule_by_another() {
    let rules = "  - { name: ddl, statements: [ddl], gate: [lag], permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
    driver.asks("DROP TABLE t; INSERT INTO u VALUES (1)", STATUS_AUTOCOMMIT);
    driver.asks("INSERT INTO u VALUES (1); DROP TABLE t", STATUS_AUTOCOMMIT);
    driver.passes("INSERT INTO t VALUES (1)", STATUS_AUTOCOMMIT);
}

#[test]
fn the_changelog_of_gh_ost_passes_and_a_table_of_that_name_does_not() {
    let mut driver = Driver::logged_in(GATED, 0);
    let heartbeat = "INSERT INTO test._t_ghc (id, hint) VALUES (1, 'heartbeat')";
    driver.asks(heartbeat, STATUS_AUTOCOMMIT);
    driver.asks("INSERT /* gh-ost `test`.`t` */ INTO test._t_gho VALUES (1)", STATUS_AUTOCOMMIT);
    driver.passes("INSERT /* gh-ost */ INTO test._t_ghc (id) VALUES (1)", STATUS_AUTOCOMMIT);
    driver.passes(heartbeat, STATUS_AUTOCOMMIT);
    driver.command(b"\x1f");
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    driver.asks(heartbeat, STATUS_AUTOCOMMIT);
}

#[test]
fn a_connection_that_lhm_borrows_stays_the_applications() {
    let rules = "  - { name: tool, match: { app: [lhm, gh-ost] }, gate: [lag], permanent: true }\n  \
                 - { name: rest, gate: none, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.asks("INSERT INTO lhmn_t SELECT * FROM t /*maintenance:lhm*/", STATUS_AUTOCOMMIT);
    driver.passes("INSERT INTO orders VALUES (1)", STATUS_AUTOCOMMIT);
    driver.asks("INSERT /* gh-ost */ INTO _t_gho VALUES (1)", STATUS_AUTOCOMMIT);
    driver.asks("INSERT INTO orders VALUES (1)", STATUS_AUTOCOMMIT);
}

#[test]
fn types_of_a_refused_bulk_execution_are_put_into_the_next() {
    const WITH_TYPES: &[u8] = b"\xfa\x07\0\0\0\x80\0\x03\0\0\x01\0\0\0";
    const WITHOUT: &[u8] = b"\xfa\x07\0\0\0\0\0\0\x01\0\0\0";
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("INSERT INTO t VALUES (?)", 7, 1);
    assert!(matches!(driver.command(WITH_TYPES), Stop::Ask(_)));
    refuse_execution(&mut driver);
    for expected in [WITH_TYPES, WITHOUT] {
        driver.to_backend.clear();
        assert!(matches!(driver.command(WITHOUT), Stop::Ask(_)));
        driver.admit();
        driver.run();
        assert_eq!(driver.to_backend, frame(0, expected));
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    }
}

#[test]
fn a_change_of_user_that_is_refused_leaves_the_user_before_in_an_emptied_session() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", BEGIN_STATUS);
    driver.asks("UPDATE t SET a = 1", BEGIN_STATUS);
    let stop = driver.command(b"\x11etl\0\0\0\x2d\0mysql_native_password\0");
    assert!(matches!(stop, Stop::Reads(Reads::Either)), "{stop:?}");
    driver.backend.extend(err(1, 1045));
    let stop = driver.run();
    assert!(
        matches!(stop, Stop::LoggedIn),
        "one server closes by itself, the other goes on: {stop:?}"
    );
    assert_eq!((driver.session.user(), driver.session.in_transaction()), (&b"app"[..], false));
    driver.asks("UPDATE t SET a = 2", STATUS_AUTOCOMMIT);
}

#[test]
fn whatever_both_sides_say_a_refused_statement_does_not_reach_the_server() {
    testkit::replay("session", fuzzed::check);
}

#[test]
fn whatever_a_server_says_no_password_crosses_a_leg_that_others_hear() {
    testkit::replay("passwords", passwords::check);
}
