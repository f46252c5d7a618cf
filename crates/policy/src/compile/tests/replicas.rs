//! `replicas`: addresses, and what single ones have of their own.

use std::time::Duration;

use super::*;

fn replicas(list: &str) -> String {
    let cluster = format!(
        "    listen: 127.0.0.1:1\n    primary: db:3306\n    probe: {{user: p}}\n    \
         replicas: [{list}]\n"
    );
    with_cluster(&cluster)
}

#[test]
fn a_replica_is_an_address_or_a_mapping_with_a_threshold_and_a_group() {
    let text = replicas(
        "r1:3306, {host: r2}, {host: r3, port: 3307, threshold: 30s}, \
         {host: \"r4:3308\", group: analytics, threshold: 1m}, {host: \"::1\", group: analytics}, \
         {host: \"unix:/run/r.sock\", group: spare}",
    );
    let config = load(&text).unwrap();
    let cluster = &config.clusters[0];
    let servers: Vec<&str> = cluster.replicas.iter().map(|server| &**server).collect();
    let expected = ["r1:3306", "r2:3306", "r3:3307", "r4:3308", "[::1]:3306", "unix:/run/r.sock"];
    assert_eq!(servers, expected);
    let own: Vec<_> = servers
        .iter()
        .map(|server| {
            let terms = cluster.replica_terms.of(server)?;
            Some((terms.group.as_deref(), terms.threshold.map(|own| own.as_secs())))
        })
        .collect();
    let analytics = Some((Some("analytics"), Some(60)));
    let expected =
        [None, None, Some((None, Some(30))), analytics, analytics, Some((Some("spare"), None))];
    assert_eq!(own, expected, "all of a group have the threshold that one of it names");
    let thresholds: Vec<Duration> =
        cluster.replica_terms.thresholds().map(|(_, own)| own).collect();
    assert_eq!(thresholds.len(), 3);
}

#[test]
fn what_is_wrong_with_a_replica_is_told_with_its_place() {
    for (list, fault) in [
        ("r:1, {host: r, port: 1}", "replicas[1]: the replica is there twice"),
        ("{host: r}, r:3306", "replicas[1]: the replica is there twice"),
        ("r", "replicas[0]: must be a host and a port or a socket"),
        ("{group: a}", "replicas[0]: `host` is missing"),
        ("{host: 3306}", "replicas[0].host: must be a host and a port"),
        (
            "{host: \"r:1\", port: 2}",
            "replicas[0].port: `host` names the port, or a socket, already",
        ),
        ("{host: \"unix:/s\", port: 2}", "replicas[0].port: `host` names the port"),
        ("{host: r, port: 70000}", "replicas[0].port: must be from 1 to 65535"),
        ("{host: r, threshold: 30}", "replicas[0].threshold: expected a duration with its unit"),
        ("{host: r, threshold: 1ms}", "replicas[0].threshold: must be from 10ms to 1d"),
        ("{host: r, group: \"a b\"}", "replicas[0].group: a name has"),
        ("{host: r, weight: 2}", "replicas[0].weight: unknown key; known here: group, host, port"),
        ("[r]", "replicas[0]: expected host:port or {host: "),
        (
            "{host: r, group: a, threshold: 30s}, {host: q, group: a, threshold: 20s}",
            "replicas[1].threshold: the replicas of a group have one threshold, and `a` has 30s \
             already",
        ),
    ] {
        assert_fault(&replicas(list), fault);
    }
}

#[test]
fn another_threshold_is_another_way_to_probe() {
    let load = |list: &str| load(&replicas(list)).unwrap().clusters[0].clone();
    let before = load("r1:3306, {host: r2, threshold: 30s}");
    assert!(before.is_probed_like(&load("r1:3306, {host: r2, threshold: 30s}")));
    assert!(!before.is_probed_like(&load("r1:3306, {host: r2, threshold: 20s}")));
    assert!(!before.is_probed_like(&load("r1:3306, r2:3306")));
}
