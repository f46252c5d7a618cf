use super::*;
use crate::load;

const FILE: &str = "\
version: 1
admin: { listen: 127.0.0.1:9307 }
clusters:
  a: { listen: 127.0.0.1:1, primary: a:3306 }
  b: { listen: 127.0.0.1:2, primary: b:3306 }
rules:
  - { name: first, permanent: true, match: { app: x } }
  - { name: second, permanent: true, ratio: 0.5 }
  - { name: third, permanent: true }
";

fn changes(edits: &[(&str, &str)]) -> Vec<String> {
    let mut edited = FILE.to_owned();
    for (from, to) in edits {
        assert!(edited.contains(from), "{from}");
        edited = edited.replace(from, to);
    }
    let new = load(&edited).unwrap_or_else(|faults| panic!("{faults:#?}"));
    diff(&load(FILE).unwrap(), &new).iter().map(ToString::to_string).collect()
}

#[test]
fn the_same_file_changes_nothing() {
    assert_eq!(changes(&[]), [""; 0]);
    assert_eq!(changes(&[("permanent: true", "permanent:   true")]), [""; 0]);
}

#[test]
fn what_becomes_of_the_statements_of_clients_that_leave_is_a_change() {
    let edits = [("ratio: 0.5", "ratio: 0.5, on_client_gone: finish")];
    assert_eq!(changes(&edits), ["rule second changed"]);
}

#[test]
fn what_cannot_change_live_comes_first() {
    let edits = [
        ("ratio: 0.5", "ratio: 0.6"),
        ("127.0.0.1:9307", "127.0.0.1:9308"),
        ("primary: a:3306", "primary: a:3307, check_interval: 200ms"),
        ("127.0.0.1:2", "127.0.0.1:3"),
    ];
    assert_eq!(
        changes(&edits),
        [
            "admin.listen cannot change without a restart",
            "clusters.a.primary cannot change without a restart",
            "clusters.b.listen cannot change without a restart",
            "clusters.a.check_interval changed",
            "rule second changed",
        ]
    );
}

#[test]
fn clusters_come_and_go_with_a_restart_only() {
    let renamed = changes(&[("  b: {", "  c: {")]);
    assert_eq!(
        renamed,
        [
            "clusters.b cannot change without a restart",
            "clusters.c cannot change without a restart"
        ]
    );
}

#[test]
fn rules_are_compared_by_name() {
    let added = ("  - { name: third", "  - { name: new, permanent: true }\n  - { name: third");
    assert_eq!(changes(&[added]), ["rule new added"]);
    let renamed = changes(&[("name: first", "name: other")]);
    assert_eq!(renamed, ["rule first removed", "rule other added"]);
    let swapped = changes(&[
        ("first", "x1"),
        ("third", "first"),
        ("x1, permanent: true, match: { app: x }", "third, permanent: true"),
        ("first, permanent: true", "first, permanent: true, match: { app: x }"),
    ]);
    assert_eq!(swapped, ["rules reordered"]);
    let identity = ("rules:", "identity: { claims: [] }\nrules:");
    assert_eq!(changes(&[identity]), ["identity changed"]);
}
