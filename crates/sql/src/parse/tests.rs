use super::*;
use crate::digest;

/// Runs as a caller has to: on a thread of its own, with the stack asked for.
fn on_a_large_stack(text: String) -> Result<Vec<TableName>, ParseRefused> {
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || table_names(&text))
        .expect("a thread")
        .join()
        .expect("the parser neither panics nor overflows the stack")
}

fn names(text: &str) -> Result<Vec<String>, ParseRefused> {
    let mut normalised = Vec::new();
    digest(text.as_bytes(), LexMode::default(), &mut normalised);
    let tables = on_a_large_stack(String::from_utf8_lossy(&normalised).into_owned())?;
    let name = |table: TableName| match table.schema {
        Some(schema) => format!("{schema}.{}", table.name),
        None => table.name,
    };
    Ok(tables.into_iter().map(name).collect())
}

#[test]
fn tables_of_a_normalised_statement_are_named_once_each() {
    assert_eq!(
        names("SELECT * FROM d.a JOIN b ON a.i=b.i WHERE x IN (SELECT 1 FROM c, b) AND y IN (1,2)"),
        Ok(vec!["d.a".into(), "b".into(), "c".into()])
    );
    assert_eq!(names("INSERT INTO t (a) VALUES (1),(2)"), Ok(vec!["t".into()]));
    assert_eq!(names("UPDATE t SET a=1 WHERE b=-2"), Ok(vec!["t".into()]));
}

#[test]
fn what_the_parser_does_not_know_is_refused() {
    assert_eq!(names("XA START 'x'"), Err(ParseRefused::NotUnderstood));
    assert_eq!(names("SELECT FROM WHERE"), Err(ParseRefused::NotUnderstood));
}

#[test]
fn hostile_text_is_refused_or_survived() {
    let repeat = |head: &str, unit: &str, times: usize, tail: &str| {
        on_a_large_stack(format!("{head}{}{tail}", unit.repeat(times)))
    };
    for times in [JOINS_MAX, 300, 1_000, 100_000] {
        let joins = repeat("SELECT * FROM t", " JOIN t", times, "");
        assert_eq!(joins.is_err(), times > JOINS_MAX, "{times} {joins:?}");
        assert!(
            repeat("SELECT * FROM t", " STRAIGHT_JOIN t", times, "").is_err() || times == JOINS_MAX
        );
    }
    for unit in
        ["+1", " OR a", " AND a", "||a", " UNION ALL SELECT 1", " BETWEEN 1 AND 2", " IS NULL"]
    {
        for times in [OPERATORS_MAX / 4, OPERATORS_MAX, 5_000, 100_000] {
            let found = repeat("SELECT 1", unit, times, "");
            assert!(found.is_err() || times <= OPERATORS_MAX, "{unit} {times}");
        }
    }
    for (open, close) in [("(", ")"), ("f(", ")"), ("(SELECT ", ")"), ("{fn ", "}"), ("[", "]")] {
        for times in [24, BRACKETS_MAX, 100, 1_000, 8_000] {
            let closed = repeat(&format!("SELECT {}1", open.repeat(times)), close, times, "");
            let unclosed = repeat("SELECT ", open, times, "");
            assert!(unclosed.is_err());
            assert!(closed.is_err() || times <= BRACKETS_MAX, "{open} {times}");
        }
    }
    for unit in ["NOT ", "- ", "CASE WHEN ", "a.", "SELECT ", "EXPLAIN ", "WITH x AS ", "; "] {
        for times in [100, 500, 5_000, 100_000] {
            assert!(
                repeat("SELECT ", unit, times, "1").is_err() || times <= OPERATORS_MAX,
                "{unit}"
            );
            assert!(repeat("", unit, times, "SELECT 1").is_err() || times <= 5_000, "{unit}");
        }
    }
    assert_eq!(on_a_large_stack("x".repeat(TEXT_MAX + 1)), Err(ParseRefused::TooLong));
    assert_eq!(on_a_large_stack("a ".repeat(TOKENS_MAX + 1)), Err(ParseRefused::TooManyTokens));
}

/// Why guards have no second reader: decision 0055 has these numbers.
#[test]
fn of_what_guards_leave_unjudged_the_parser_reads_little_that_could_be_judged() {
    let corpus = include_str!("../../../../integration/corpus/guards.txt");
    let (mut statements, mut unknown, mut joins) = (0, 0, 0);
    let mut others = Vec::new();
    for line in corpus.lines() {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let [_, verdict, text] = parts[..] else { continue };
        statements += 1;
        match (read(text.replace("\\n", "\n")), verdict) {
            (None, _) => unknown += i32::from(!verdict.contains('?')),
            (Some(_), "?join") => joins += 1,
            (Some(_), verdict) if verdict.contains('?') => others.push(text),
            (Some(_), _) => {}
        }
    }
    assert!(statements >= 600 && unknown >= 50, "{unknown} of {statements}");
    assert!((10..=20).contains(&joins), "{joins}");
    let expected = [
        "DELETE HISTORY FROM v_t",
        "IF 1 THEN DELETE FROM t; END IF",
        "CASE 1 WHEN 1 THEN DELETE FROM t; END CASE",
        "EXECUTE IMMEDIATE @v",
        "EXECUTE IMMEDIATE CONCAT('DELETE', ' FROM t')",
        "EXECUTE IMMEDIATE 'DELETE ' 'FROM t'",
    ];
    assert_eq!(others, expected);
    // What it reads it does not read as a server of a known version and mode does.
    let wrong = read("UPDATE t SET a = 1 /*!99999 WHERE id = 1 */".to_owned());
    assert_eq!(wrong.as_deref(), Some("UPDATE t SET a = 1 WHERE id = 1"));
}

/// How the parser reads a text.
fn read(text: String) -> Option<String> {
    let parse = move || Parser::parse_sql(&MySqlDialect {}, &text).ok();
    let thread =
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(parse).expect("a thread");
    let statements = thread.join().expect("the parser neither panics nor overflows the stack")?;
    Some(statements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
