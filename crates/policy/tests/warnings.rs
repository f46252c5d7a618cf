//! What is warned of, file by file: `tests/warnings/*.yaml` name, on the line that each is about,
//! the warnings that they must give (`# warns: part | of another`), and no other may come. What the
//! repository shows as examples gives none.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use policy::{Fault, UnixTime};

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    files.sort();
    files
}

fn at(time: &str) -> UnixTime {
    let time: Timestamp = time.trim().parse().expect("an RFC 3339 time");
    UnixTime(time.as_second())
}

/// The warnings of a good file.
fn warnings(text: &str, now: UnixTime) -> Vec<Fault> {
    policy::load_with_warnings(text, now).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}")).1
}

/// Long before the dates of every example.
const WHEN_WRITTEN: &str = "2026-06-01T00:00:00Z";

/// What differs between the warnings that a file must give and those that it gives.
fn differences(text: &str) -> String {
    let now = text.lines().next().and_then(|line| line.strip_prefix("# now: "));
    let given = warnings(text, at(now.expect("the first line says when it is read")));
    let mut found = String::new();
    for (line, content) in (1_u32..).zip(text.lines()) {
        let expected = content.split_once("# warns: ").map(|(_, warnings)| warnings);
        let expected: Vec<&str> =
            expected.into_iter().flat_map(|all| all.split(" | ")).map(str::trim).collect();
        let here: Vec<&Fault> = given.iter().filter(|warning| warning.line == line).collect();
        let is_meant =
            |warning: &&Fault| expected.iter().any(|part| warning.message.contains(part));
        for warning in here.iter().filter(|warning| !is_meant(warning)) {
            writeln!(found, "too much: {warning}").expect("strings take everything");
        }
        for part in expected {
            if !here.iter().any(|warning| warning.message.contains(part)) {
                writeln!(found, "line {line} lacks: {part}").expect("strings take everything");
            }
        }
    }
    let lines = u32::try_from(text.lines().count()).expect("files are short");
    for warning in given.iter().filter(|warning| warning.line == 0 || warning.line > lines) {
        writeln!(found, "on no line: {warning}").expect("strings take everything");
    }
    found
}

#[test]
fn every_file_gives_the_warnings_that_it_names_and_no_others() {
    let files = files(&folder("tests/warnings"), "yaml");
    assert!(files.len() > 10, "{files:?}");
    for path in files {
        let text = read(&path);
        let loaded = policy::load(&text);
        assert!(loaded.is_ok(), "{}: {loaded:#?}", path.display());
        let differences = differences(&text);
        assert!(differences.is_empty(), "{}:\n{differences}", path.display());
    }
}

#[test]
fn a_file_with_faults_has_those() {
    for text in ["version: 1\nrules: [{ name: a, expires_at: 2020-01-01T00:00:00Z }]\n", "", "a: ["]
    {
        let faults = policy::load_with_warnings(text, at(WHEN_WRITTEN)).unwrap_err();
        assert_eq!(Err(faults), policy::load(text).map(|_| ()));
    }
}

#[test]
fn the_files_that_the_repository_shows_give_none() {
    let mut shown = files(&folder("../../docs/examples"), "yaml");
    shown.push(folder("../../proxy-config.yaml"));
    for path in shown {
        assert_eq!(warnings(&read(&path), at(WHEN_WRITTEN)), [], "{}", path.display());
    }
}

/// The YAML in a page.
fn examples(page: &str) -> impl Iterator<Item = &str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn the_examples_of_the_pages_give_none() {
    let mut pages = files(&folder("../../docs"), "md");
    pages.push(folder("../../README.md"));
    let mut loaded = 0;
    for path in pages {
        for example in examples(&read(&path)) {
            let text = completed(example);
            if policy::load(&text).is_ok() {
                loaded += 1;
                assert_eq!(warnings(&text, at(WHEN_WRITTEN)), [], "{}:\n{text}", path.display());
            } else {
                let is_part = PARTS.iter().any(|part| example.starts_with(part));
                assert!(is_part, "{} has faults:\n{text}", path.display());
            }
        }
    }
    assert!(loaded >= 2, "{loaded}");
}

/// How examples begin that are no files of this kind, or keys of a cluster alone.
const PARTS: [&str; 3] = ["    client_tls:", "clusters:\n  main:\n    proxy_protocol:", "name: "];

/// The example with what every file has.
fn completed(example: &str) -> String {
    if example.contains("version:") {
        return example.to_owned();
    }
    let cluster = "clusters: { main: { listen: 127.0.0.1:3307, primary: db1:3306, \
                   replicas: [db2:3306], probe: { user: sluice } } }\n";
    let clusters = if example.contains("clusters:") { "" } else { cluster };
    let rules = if example.trim_start().starts_with("- name:") { "rules:\n" } else { "" };
    format!("version: 1\n{clusters}{rules}{example}")
}

#[test]
fn ten_thousand_rules_are_compared_in_no_time() {
    let mut text = String::from(
        "version: 1\nclusters: { main: { listen: 127.0.0.1:3307, primary: db1:3306, \
         replicas: [db2:3306], probe: { user: sluice } } }\nrules:\n",
    );
    for rule in 0..10_000 {
        let condition = match rule % 3 {
            0 => format!("app: app-{rule}"),
            1 => format!("user: user-{rule}"),
            _ => format!("schema: schema-{rule}"),
        };
        writeln!(text, "  - {{ name: r{rule}, match: {{ {condition} }}, permanent: true }}")
            .expect("strings take everything");
    }
    text += "  - { name: last, match: { app: app-3 }, permanent: true }\n";
    let found = warnings(&text, at(WHEN_WRITTEN));
    // Whether there was time for the last one is another machine's business; no other is shadowed.
    assert!(found.iter().all(|warning| warning.path == "rules[10000]"), "{found:#?}");
}

#[test]
fn a_list_of_ten_thousand_values_is_taken_apart_in_no_time() {
    let mut text = String::from(
        "version: 1\nclusters: { main: { listen: 127.0.0.1:3307, primary: db1:3306, \
         replicas: [db2:3306], probe: { user: sluice } } }\nrules:\n",
    );
    let mut list = String::new();
    for app in 0..10_000 {
        writeln!(text, "  - {{ name: r{app}, match: {{ app: app-{app} }}, permanent: true }}")
            .expect("strings take everything");
        write!(list, "app-{app}, ").expect("strings take everything");
    }
    let users = list.replace("app-", "user-");
    writeln!(text, "  - {{ name: all, match: {{ app: [{list}] }}, permanent: true }}")
        .expect("strings take everything");
    writeln!(
        text,
        "  - {{ name: one-more, match: {{ app: [{list} b], user: [{users}] }}, permanent: true }}"
    )
    .expect("strings take everything");
    let found = warnings(&text, at(WHEN_WRITTEN));
    let [warning] = found.as_slice() else { panic!("{} warnings", found.len()) };
    assert_eq!(warning.path, "rules[10000]");
    assert!(
        warning.message.contains("`r2` (rules[2], line 6) and 9997 more match all"),
        "{warning}"
    );
}
