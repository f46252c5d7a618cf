//! Whatever a file says: it has a fault with its place, or its run ends and its figures are numbers.

use std::fs;
use std::path::Path;

use policy::reading::{Node, Value, parse};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value as Json;
use simulate::{Bound, Scenario, simulate_within};

/// What is put in the place of a value, as it stands in a file.
const HOSTILE: [&str; 44] = [
    "0",
    "1",
    "-1",
    "0.5",
    "1e9",
    "1e300",
    "1e-300",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "-9223372036854775808",
    ".nan",
    ".inf",
    "-.inf",
    "true",
    "~",
    "text",
    "\"\"",
    "\"\\n\"",
    "0s",
    "1us",
    "1ms",
    "1s",
    "24h",
    "25h",
    "-1s",
    "1e3s",
    "5",
    "[]",
    "[[]]",
    "{}",
    "[0s, 0]",
    "[[0s, 1], [0s, 2]]",
    "[[0s, 1e9], [1us, 0]]",
    "[[1s, 0s]]",
    "[1, 0]",
    "[.nan, .nan]",
    "[0, 0, 0]",
    "{ sine: { min: 0, max: 1e-300, period: 24h } }",
    "{ sine: { min: 9, max: 1, period: 1us } }",
    "{ min: 9, max: 1 }",
    "{ hold_last: 0s }",
    "[lag, lag]",
    "{ sine: { min: 0, max: 1e9, period: 100ms } }",
];

/// Values that are put elsewhere for each file: all of them take some ten seconds.
const CHANGES: usize = 30;

/// Steps that a run may take here. It is bounded all the same, by more.
const STEPS_MAX: u64 = 400_000;

/// The files, run for so long.
const SECONDS: f64 = 3.0;

#[test]
fn one_hostile_value_is_a_fault_with_its_place_or_the_run_ends_with_numbers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut chance = StdRng::seed_from_u64(20_261_125);
    let (mut faults, mut ended, mut runs) = (0, 0, 0);
    for path in paths {
        let mut short = parse(&fs::read_to_string(&path).unwrap()).unwrap();
        shorten(&mut short);
        let text = written(&short);
        assert!(Scenario::parse(&text).is_ok(), "{:?}\n{text}", Scenario::parse(&text).err());
        let leaves = leaves(&short);
        for _ in 0..CHANGES {
            let mut node = short.clone();
            let leaf = chance.random_range(0..leaves);
            let hostile = HOSTILE[chance.random_range(0..HOSTILE.len())];
            replace(&mut node, &mut leaf.clone(), hostile);
            match outcome(&written(&node)) {
                Outcome::Faults => faults += 1,
                Outcome::Ended => ended += 1,
                Outcome::Ran => runs += 1,
            }
        }
    }
    assert!(faults > 500 && runs > 100, "{faults} with faults, {ended} ended, {runs} ran");
}

enum Outcome {
    Faults,
    Ended,
    Ran,
}

#[track_caller]
fn outcome(text: &str) -> Outcome {
    let scenario = match Scenario::parse(text) {
        Ok(scenario) => scenario,
        Err(error) => {
            let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
            assert!(!error.faults.is_empty(), "{text}");
            for fault in error.faults {
                assert!((1..=lines).contains(&fault.line) && !fault.message.is_empty(), "{fault}");
            }
            return Outcome::Faults;
        }
    };
    match simulate_within(&scenario, STEPS_MAX) {
        Ok(report) => {
            assert_finite(&serde_json::to_value(&report).unwrap_or_default(), text);
            assert!(!report.to_string().contains("NaN"), "{text}");
            Outcome::Ran
        }
        Err(ended) => {
            assert_eq!(ended.what, Bound::Work(STEPS_MAX), "{text}");
            Outcome::Ended
        }
    }
}

/// What is no number is null in JSON.
#[track_caller]
fn assert_finite(json: &Json, text: &str) {
    match json {
        Json::Number(number) => assert!(number.as_f64().is_some_and(f64::is_finite), "{text}"),
        Json::Null => assert!(!json.is_null(), "a figure is no number\n{text}"),
        Json::Array(list) => list.iter().for_each(|json| assert_finite(json, text)),
        Json::Object(map) => map.values().for_each(|json| assert_finite(json, text)),
        Json::Bool(_) | Json::String(_) => {}
    }
}

/// The same for a few seconds: what begins later is left out.
fn shorten(node: &mut Node) {
    match &mut node.value {
        Value::Mapping(entries) => {
            for entry in entries.iter_mut() {
                match entry.key.as_str() {
                    "duration" => entry.node.value = Value::Text(format!("{SECONDS}s")),
                    "warmup" => entry.node.value = Value::Text("0s".to_owned()),
                    "restarts" => entry.node = parse("[1s]").unwrap_or_else(|_| nothing()),
                    _ => shorten(&mut entry.node),
                }
            }
            entries.retain(|entry| {
                !matches!(&entry.node.value, Value::List(l) if l.is_empty()
                && matches!(entry.key.as_str(), "active" | "away" | "silent"))
            });
        }
        Value::List(list) => {
            list.retain(|element| !is_late(element));
            list.iter_mut().for_each(shorten);
        }
        Value::Nothing | Value::Flag(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}

fn is_late(element: &Node) -> bool {
    let Value::List(pair) = &element.value else { return false };
    let Some(Value::Text(from)) = pair.first().map(|first| &first.value) else { return false };
    simulate::duration(from).is_some_and(|from| from.as_secs_f64() >= SECONDS)
}

fn nothing() -> Node {
    Node { line: 1, value: Value::Nothing }
}

/// How many values can be changed: scalars, lists and mappings alike.
fn leaves(node: &Node) -> usize {
    let below: usize = match &node.value {
        Value::Mapping(entries) => entries.iter().map(|entry| leaves(&entry.node)).sum(),
        Value::List(list) => list.iter().map(leaves).sum(),
        Value::Nothing | Value::Flag(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => 0,
    };
    below + 1
}

/// Puts the text in the place of a value, counted as `leaves` does. It is written as it is.
fn replace(node: &mut Node, left: &mut usize, hostile: &str) -> bool {
    if *left == 0 {
        node.value = Value::Text(format!("{RAW}{hostile}"));
        return true;
    }
    *left -= 1;
    match &mut node.value {
        Value::Mapping(entries) => {
            entries.iter_mut().any(|entry| replace(&mut entry.node, left, hostile))
        }
        Value::List(list) => list.iter_mut().any(|node| replace(node, left, hostile)),
        Value::Nothing | Value::Flag(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {
            false
        }
    }
}

/// What marks a text that is not to be quoted.
const RAW: &str = "raw:";

/// The node as YAML, in one line where it is not the root's mapping.
fn written(root: &Node) -> String {
    match &root.value {
        Value::Mapping(entries) => {
            entries.iter().map(|entry| format!("{}: {}\n", entry.key, flow(&entry.node))).collect()
        }
        Value::List(_)
        | Value::Nothing
        | Value::Flag(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Text(_) => format!("{}\n", flow(root)),
    }
}

fn flow(node: &Node) -> String {
    match &node.value {
        Value::Nothing => "~".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => match text.strip_prefix(RAW) {
            Some(raw) => raw.to_owned(),
            None => format!("{text:?}"),
        },
        Value::List(list) => {
            let list: Vec<String> = list.iter().map(flow).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Mapping(entries) => {
            let pair = |entry: &policy::reading::MappingEntry| {
                format!("{}: {}", entry.key, flow(&entry.node))
            };
            let pairs: Vec<String> = entries.iter().map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}
