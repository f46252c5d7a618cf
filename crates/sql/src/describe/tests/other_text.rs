//! Which texts run another one that is not in them.

use super::*;

const ANSI: LexMode = LexMode { ansi_quotes: Setting::On, ..MARIADB };
const UNSURE: LexMode =
    LexMode { ansi_quotes: Setting::Unknown, no_backslash_escapes: Setting::Unknown, ..MARIADB };

fn runs(text: &[u8], mode: LexMode, whole: Whole) -> bool {
    describe(text, mode, whole, &mut Scratch::default()).runs_other_text()
}

#[test]
fn an_execute_runs_a_text_of_elsewhere_wherever_it_stands() {
    for text in [
        "EXECUTE p",
        "execute p USING @a",
        "EXECUTE `p`",
        "EXECUTE/**/p",
        "EXECUTE -- x\n p",
        "/*!50600 EXECUTE*/ p",
        "/*M!100100 EXECUTE*/ p",
        "/*!EXECUTE p*/",
        "/*!EXECUTE*/ /*! p */",
        "EXECUTE IMMEDIATE @a",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "EXECUTE rank",
        "SET STATEMENT max_statement_time = 9 FOR EXECUTE IMMEDIATE @a",
        "PREPARE p FROM @a; EXECUTE p",
        "SELECT 'EXECUTE'; EXECUTE p",
        "BEGIN NOT ATOMIC EXECUTE IMMEDIATE @a; END",
        "BEGIN NOT ATOMIC SELECT 1; IF @b THEN EXECUTE p; END IF; END",
        "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLSTATE '45000' EXECUTE p; END",
        "IF 1 THEN EXECUTE IMMEDIATE @a; END IF",
        "l: LOOP EXECUTE p; LEAVE l; END LOOP",
        "SET sql_mode = 'ANSI_QUOTES'; EXECUTE \"p\"",
    ] {
        assert!(runs(text.as_bytes(), MARIADB, Whole::Yes), "{text}");
        assert!(runs(text.as_bytes(), UNKNOWN, Whole::Yes), "{text}");
        assert!(runs(text.as_bytes(), UNSURE, Whole::Yes), "{text}");
    }
    for text in ["EXECUTE \"p\"", "BEGIN NOT ATOMIC EXECUTE \"p\"; END"] {
        assert!(runs(text.as_bytes(), ANSI, Whole::Yes), "{text}");
        assert!(runs(text.as_bytes(), UNSURE, Whole::Yes), "{text}");
    }
    for mode in [MYSQL, UNKNOWN] {
        assert!(runs(b"/*!80000 EXECUTE*/ /*!90000 p*/", mode, Whole::Yes));
    }
    assert!(runs(b"EXECUTE IMMEDIATE @a; SELECT 'cut", MARIADB, Whole::Truncated));
    assert!(runs(b"EXECUTE\xa0p", LexMode { charset: Charset::Latin, ..MARIADB }, Whole::Yes));
}

/// Whoever had the word in a comment, a value or a name was not quarantined, and held to no
/// `max_query_cost`.
#[test]
fn the_word_alone_runs_nothing_of_elsewhere() {
    for text in [
        "BEGIN NOT ATOMIC /* execute p */ DELETE FROM t; END",
        "BEGIN NOT ATOMIC DELETE FROM t; END -- EXECUTE p",
        "BEGIN NOT ATOMIC DELETE FROM t WHERE a = 'EXECUTE p'; END",
        "BEGIN NOT ATOMIC DELETE FROM t WHERE a = \"it's; EXECUTE p\"; END",
        "BEGIN NOT ATOMIC DELETE FROM executes WHERE `execute` = 1; END",
        "BEGIN NOT ATOMIC SELECT execute FROM t WHERE t.execute = 1 AND execute IS NULL; END",
        "BEGIN NOT ATOMIC SELECT @execute, @@execute x, f.execute(1), execute(2); END",
        "IF 1 THEN SELECT ' execute '; END IF",
        "what is this /*EXECUTE p*/",
        "what 'executes p'",
    ] {
        assert!(!runs(text.as_bytes(), MARIADB, Whole::Yes), "{text}");
    }
    assert!(!runs(b"what /*!99999 EXECUTE p*/", MARIADB, Whole::Yes));
    assert!(!runs(b"what /*M!EXECUTE p*/ is", MYSQL, Whole::Yes));
    assert!(runs(b"what /*!99999 EXECUTE p*/", UNKNOWN, Whole::Yes));
    assert!(!runs(b"SELECT c FROM t WHERE a IN ('executes p', 'cut", MARIADB, Whole::Truncated));
    assert!(!runs(b"SELECT c /* executor */ FROM t WHERE a = 'cut", UNSURE, Whole::Truncated));
}

#[test]
fn what_cannot_be_read_may_run_a_text_of_elsewhere() {
    for text in ["what 'execute p", "SET sql_mode = @a; what \"execute p\"", "what /*! execute p"] {
        assert!(runs(text.as_bytes(), MARIADB, Whole::Yes), "{text}");
    }
}
