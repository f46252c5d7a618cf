//! The class of each statement of `classes.tsv`, on MySQL, MariaDB and a server not known.
#![expect(clippy::expect_used, clippy::panic, reason = "a broken test file stops the test")]

use sql::{Class, LexMode, Scratch, Server, Whole, describe};

/// `class` or `mysql/mariadb/unknown`, a tab, the statement with `\n` and `\\` escaped.
const TABLE: &str = include_str!("classes.tsv");

const MYSQL: Server = Server::MySql { version: 90_704 };
const MARIADB: Server = Server::MariaDb { version: 101_119 };

fn class_of(text: &str, server: Server) -> Class {
    let mode = LexMode { server, ..LexMode::default() };
    describe(text.as_bytes(), mode, Whole::Yes, &mut Scratch::default()).class
}

fn lines() -> impl Iterator<Item = ([Class; 3], String)> {
    TABLE.lines().map(|line| {
        let (classes, text) = line.split_once('\t').expect("class, tab, statement");
        let mut classes = classes.split('/').map(|class| {
            Class::parse(class).unwrap_or_else(|| panic!("no class is called {class}"))
        });
        let first = classes.next().expect("a class");
        let second = classes.next().unwrap_or(first);
        let third = classes.next().unwrap_or(first);
        ([first, second, third], text.replace("\\n", "\n").replace("\\\\", "\\"))
    })
}

#[test]
fn every_statement_of_the_corpus_has_its_class_on_every_server() {
    let mut wrong = Vec::new();
    for (expected, text) in lines() {
        let found = [MYSQL, MARIADB, Server::Unknown].map(|server| class_of(&text, server));
        if found != expected {
            wrong.push((text, expected, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(lines().count(), 313);
}

#[test]
fn lower_case_a_leading_comment_brackets_and_a_semicolon_change_no_class() {
    for (expected, text) in lines() {
        let dressed = format!("\t/* app=x */ -- y\n{} ;", text.to_ascii_lowercase());
        if text.ends_with("# c") {
            continue;
        }
        assert_eq!(class_of(&dressed, MYSQL), expected[0], "{dressed}");
        if text.starts_with("SELECT") && !text.contains(';') {
            let bracketed = format!("(({text}\n))");
            assert_eq!(class_of(&bracketed, MYSQL), expected[0], "{bracketed}");
        }
    }
}

#[test]
fn a_statement_behind_another_is_never_lost() {
    for (expected, text) in lines() {
        if text.ends_with("# c") || class_of(&text, MYSQL) == Class::Unknown {
            continue;
        }
        let both = format!("{text}; DELETE FROM hidden");
        let strictest = expected[0].max(Class::Write);
        let found = class_of(&both, MYSQL);
        assert!(found == strictest || found == Class::Unknown, "{both}: {found:?}");
        let both = format!("DELETE FROM hidden; {text}");
        assert_eq!(class_of(&both, MYSQL), strictest, "{both}");
    }
}

#[test]
fn a_statement_in_a_literal_or_a_comment_has_no_class() {
    for (_, text) in lines() {
        let literal = text.replace('\\', "\\\\").replace('\'', "\\'");
        for quiet in
            [format!("SELECT '{literal}'"), format!("SELECT `{}`", text.replace('`', "``"))]
        {
            assert_eq!(class_of(&quiet, MYSQL), Class::Read, "{quiet}");
            assert_eq!(class_of(&quiet, Server::Unknown), Class::Read, "{quiet}");
        }
        if !text.contains("*/") {
            assert_eq!(class_of(&format!("SELECT /* {text} */ 1"), MYSQL), Class::Read, "{text}");
        }
    }
}

#[test]
fn a_cut_statement_is_never_waved_through() {
    for (_, text) in lines() {
        for cut in 0..text.len() {
            let Some(part) = text.get(..cut) else { continue };
            let mut scratch = Scratch::default();
            let mode = LexMode { server: MYSQL, ..LexMode::default() };
            let statement = describe(part.as_bytes(), mode, Whole::Truncated, &mut scratch);
            assert!(statement.class.is_covered_by_write(), "{part}");
            assert_eq!(statement.exemption, None, "{part}");
        }
    }
}
