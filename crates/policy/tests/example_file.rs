//! The example that the repository ships.

use std::collections::BTreeSet;

const EXAMPLE: &str = include_str!("../../../proxy-config.yaml");

#[test]
fn the_example_loads() {
    let config = policy::load(EXAMPLE).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}", faults.join("\n"))
    });
    let cluster = config.cluster("main").expect("the cluster of the example");
    assert_eq!(cluster.replicas.len(), 2);
    assert_eq!(cluster.rules.len(), 10);
}

#[test]
fn the_examples_of_the_documentation_load() {
    let examples = [
        include_str!("../../../docs/examples/prioritise-by-its-rival.yaml"),
        include_str!("../../../docs/examples/prioritise-by-everybody-else.yaml"),
    ];
    for example in examples {
        let config = policy::load(example).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let rules = config.clusters.first().map(|cluster| cluster.rules.len());
        assert_eq!(rules, Some(2));
    }
}

#[test]
fn the_example_shows_most_keys() {
    let reference = policy::config_reference();
    let keys: BTreeSet<&str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key)
        .collect();
    let written = EXAMPLE.replace(['{', '\n'], " ");
    let missing: Vec<&&str> =
        keys.iter().filter(|key| !written.contains(&format!(" {key}:"))).collect();
    // What contradicts the example's other keys, and what its comments would only repeat.
    assert_eq!(missing, [&"attribute", &"cluster", &"hold", &"on"]);
}
