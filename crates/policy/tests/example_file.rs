//! The example that the repository ships.

use std::collections::BTreeSet;

use policy::identity::{SessionIdentity, named};
use policy::{Facts, Shape, UnixTime, Verdict, decide};
use sql::{Class, ClassSet};

const EXAMPLE: &str = include_str!("../../../proxy-config.yaml");

#[test]
fn the_example_loads() {
    let config = policy::load(EXAMPLE).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}", faults.join("\n"))
    });
    let cluster = config.cluster("main").expect("the cluster of the example");
    assert_eq!(cluster.replicas.len(), 2);
    assert_eq!(cluster.rules.len(), 11);
}

/// Whoever asks by HTTP names no table, so none of its writes is denied for one.
#[test]
fn the_example_tells_nobody_who_asks_that_it_is_denied() {
    let config = policy::load(EXAMPLE).unwrap();
    let cluster = config.cluster("main").unwrap();
    let session = SessionIdentity::default();
    for app in ["etl", "gh-ost", "web", "import", "nobody-in-particular"] {
        let identity = named(&cluster.identity, &session, app.as_bytes()).unwrap();
        let facts = |shape| Facts {
            identity: &identity,
            session: &session,
            classes: ClassSet::default().with(Class::Write),
            exemption: None,
            shape,
            now: UnixTime(0),
        };
        let asked = facts(Shape::of_check());
        assert!(!matches!(decide(cluster, &asked), Verdict::Deny(_)), "{app}");
        let hidden = facts(Shape::default());
        assert!(matches!(decide(cluster, &hidden), Verdict::Deny(_)), "{app}: a table is hidden");
    }
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
fn the_files_of_the_first_hour_load() {
    let page = include_str!("../../../docs/FIRST-HOUR.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let [observed, rules] = blocks.collect::<Vec<&str>>()[..] else { panic!("two files: {page}") };
    let (cluster, _) = observed.split_once("rules:").expect("it has rules");
    for (file, count) in [(observed.to_owned(), 1), (format!("{cluster}{rules}"), 2)] {
        let config = policy::load(&file).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let rules = config.clusters.first().map(|cluster| cluster.rules.len());
        assert_eq!(rules, Some(count), "{file}");
    }
    assert_eq!(observed.lines().count(), 10, "ten lines, as it says");
}

#[test]
fn the_address_of_the_admin_port_is_known_whatever_else_is_wrong() {
    let listen = |text: &str| policy::admin_of(text).map(|admin| admin.listen.to_string());
    assert_eq!(listen("admin: { listen: 10.0.0.5:1 }\nrulez: 1").as_deref(), Ok("10.0.0.5:1"));
    assert_eq!(listen("version: 2").as_deref(), Ok("127.0.0.1:9307"));
    let fault = listen("version: 1\nadmin: { listen: here }").unwrap_err();
    assert_eq!((fault.line, &*fault.path), (2, "admin.listen"));
    assert!(listen("admin: [").is_err() && listen("admin: 5").is_err());
    assert!(listen("admin: { listen: 5 }").is_err());
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
