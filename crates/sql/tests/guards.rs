//! The corpus of guards, in which each statement has its verdict: the same file is parsed by real
//! servers in `integration/tests/rules/guards.rs`.

#![expect(clippy::panic, reason = "a corpus that cannot be read fails the test")]

use std::collections::BTreeSet;

use sql::{Accepts, LexMode, Server, Setting, Survey, Surveyor, Unfiltered, Whole};

const MYSQL: Server = Server::MySql { version: 90_704 };
const MARIADB: Server = Server::MariaDb { version: 101_119 };

#[test]
fn each_statement_of_the_corpus_has_its_verdict() {
    let corpus = include_str!("../../../integration/corpus/guards.txt");
    let mut statements = BTreeSet::new();
    let mut wrong = String::new();
    // One for all: nothing of a text is left for the next.
    let mut surveyor = Surveyor::default();
    for (number, line) in (1..).zip(corpus.lines()) {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let [on, verdict, text] = parts[..] else {
            assert!(line.is_empty() || line.starts_with('#'), "line {number}: {line}");
            continue;
        };
        statements.insert(text);
        let text = text.replace("\\n", "\n");
        for server in servers(on) {
            let found = words(&surveyor.survey(text.as_bytes(), mode(on, server), Whole::Yes));
            if found != verdict {
                wrong += &format!("line {number}: {server:?} {found}, not {verdict}: {text}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(statements.len() >= 400, "{}", statements.len());
}

fn servers(on: &str) -> Vec<Server> {
    match on.split(' ').next() {
        Some("both") => vec![MYSQL, MARIADB],
        Some("mysql") => vec![MYSQL],
        Some("mariadb") => vec![MARIADB],
        other => panic!("{other:?}"),
    }
}

fn mode(on: &str, server: Server) -> LexMode {
    let mode = LexMode { server, ..LexMode::default() };
    match on.split(' ').nth(1) {
        None | Some("multi") => mode,
        Some("ansi_quotes") => LexMode { ansi_quotes: Setting::On, ..mode },
        Some("no_backslash_escapes") => LexMode { no_backslash_escapes: Setting::On, ..mode },
        other => panic!("{other:?}"),
    }
}

/// The words of the file for what was found.
fn words(survey: &Survey) -> String {
    let mut words: Vec<String> = Vec::new();
    let strict = survey.unfiltered(Accepts::default());
    if let Some(Unfiltered { constant, .. }) = strict {
        let word = if constant { "const" } else { "where" };
        let accepting = Accepts { limit: true, constant: false };
        let limited = survey.unfiltered(accepting).is_none();
        words.push(format!("{word}{}", if limited { "+limit" } else { "" }));
    }
    words.extend(survey.cross_join.map(|_| "join".to_owned()));
    words.extend(survey.in_list.map(|list| format!("in={}", list.len)));
    let unjudged = survey.unjudged;
    for (word, is_unjudged) in
        [("?where", unjudged.filters), ("?join", unjudged.joins), ("?in", unjudged.lists)]
    {
        words.extend(is_unjudged.then(|| word.to_owned()));
    }
    if words.is_empty() { "ok".to_owned() } else { words.join(" ") }
}
