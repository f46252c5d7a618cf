use super::*;
use crate::load;

const FILE: &str = "\
version: 1
admin: { listen: 127.0.0.1:9307 }
clusters:
  a: { listen: 127.0.0.1:1, primary: a:3306, probe: { user: p } }
  b: { listen: 127.0.0.1:2, primary: b:3306 }
rules:
  - { name: first, permanent: true, match: { app: x } }
  - { name: second, permanent: true, ratio: 0.5 }
  - { name: third, permanent: true }
";

fn edited(edits: &[(&str, &str)]) -> Config {
    let mut edited = FILE.to_owned();
    for (from, to) in edits {
        assert!(edited.contains(from), "{from}");
        edited = edited.replace(from, to);
    }
    load(&edited).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn changes(edits: &[(&str, &str)]) -> Vec<String> {
    let edit = edit(&load(FILE).unwrap(), edited(edits));
    edit.changes.iter().map(ToString::to_string).collect()
}

/// The paths of the keys that wait for a restart.
fn waiting(edit: &Edit) -> Vec<String> {
    let waits = edit.fixed.iter().filter(|key| key.pending.is_some());
    waits.map(FixedKey::path).collect()
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
            "admin.listen (127.0.0.1:9307 runs, the file says 127.0.0.1:9308) cannot change without \
             a restart",
            "clusters.a.primary (a:3306 runs, the file says a:3307) cannot change without a restart",
            "clusters.b.listen (127.0.0.1:2 runs, the file says 127.0.0.1:3) cannot change without \
             a restart",
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
            "clusters.b (a cluster runs, the file says none) cannot change without a restart",
            "clusters.c (none runs, the file says a cluster) cannot change without a restart"
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

#[test]
fn what_needs_a_restart_stays_as_it_was_and_all_else_is_in_force() {
    let running = load(FILE).unwrap();
    let both = edited(&[
        ("primary: a:3306", "primary: x:3306, replicas: [y:3306], check_interval: 200ms"),
        ("127.0.0.1:9307", "127.0.0.1:9308"),
        (
            "version: 1",
            "version: 1\ntakeover_socket: /run/s.sock\nstate_dir: /var/s\ndrain_timeout: 7s",
        ),
        ("127.0.0.1:2", "unix:/run/b.sock"),
        ("b:3306 }", "b:3306, listen_mode: \"0700\" }\n  c: { listen: 127.0.0.1:9, primary: c:1 }"),
        ("ratio: 0.5", "ratio: 0.6"),
    ]);
    let edit = edit(&running, both);
    assert_eq!(
        waiting(&edit),
        [
            "admin.listen",
            "takeover_socket",
            "state_dir",
            "clusters.a.primary",
            "clusters.a.replicas",
            "clusters.b.listen",
            "clusters.b.listen_mode",
            "clusters.c",
        ]
    );
    let Edit { config, .. } = edit;
    let (a, b) = (&config.clusters[0], &config.clusters[1]);
    assert_eq!(config.clusters.len(), 2);
    assert_eq!(config.admin, running.admin);
    assert_eq!(config.takeover_socket, None);
    assert_eq!((&*a.primary, a.replicas.len()), ("a:3306", 0));
    assert_eq!(b.listen, running.clusters[1].listen);
    assert_eq!(b.network.listen_mode, running.clusters[1].network.listen_mode);
    // The rest of the same file.
    assert_eq!(config.drain_timeout, std::time::Duration::from_secs(7));
    assert_eq!(a.check_interval, std::time::Duration::from_millis(200));
    assert_ne!(a.rules.of_file()[1], running.clusters[0].rules.of_file()[1]);
}

#[test]
fn an_edit_that_is_taken_back_waits_for_nothing_and_changes_nothing() {
    let running = load(FILE).unwrap();
    let to_x = || edited(&[("primary: a:3306", "primary: x:3306, replicas: [y:3306]")]);
    let first = edit(&running, to_x());
    // Saved again: it is held against what runs, not against the file before.
    let second = edit(&first.config, to_x());
    assert_eq!(waiting(&second), ["clusters.a.primary", "clusters.a.replicas"]);
    let back = edit(&second.config, load(FILE).unwrap());
    assert_eq!(waiting(&back), [""; 0]);
    assert_eq!(back.changes, []);
    let keys = |edit: &Edit| edit.fixed.iter().map(|key| key.key).collect::<Vec<_>>();
    assert_eq!(keys(&back), keys(&first), "the keys are known whether they wait or not");
    // Without another primary the replicas change live.
    let replicas = edit(&running, edited(&[("a:3306", "a:3306, replicas: [y:3306]")]));
    assert_eq!(waiting(&replicas), [""; 0]);
    assert_eq!(replicas.config.clusters[0].replicas.len(), 1);
}

#[test]
fn a_cluster_that_the_file_does_not_name_any_more_goes_on_as_it_was() {
    let running = load(FILE).unwrap();
    let edit = edit(
        &running,
        edited(&[("  b: { listen: 127.0.0.1:2, primary: b:3306 }\n", ""), ("0.5", "0.6")]),
    );
    assert_eq!(waiting(&edit), ["clusters.b"]);
    assert_eq!(edit.config.clusters.len(), 2);
    assert_eq!(edit.config.clusters[1].rules.of_file()[1], running.clusters[1].rules.of_file()[1]);
}
