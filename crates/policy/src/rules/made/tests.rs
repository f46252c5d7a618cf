use std::collections::HashSet;

use super::*;
use crate::compile::{RuntimeEffect, RuntimeSpec};

const BASIS: Basis = Basis { gate: GateKey(1), gate_is_always_open: false, mode: Mode::Enforce };

/// The last second that can be written.
const YEAR_9999: i64 = 253_402_207_199;

fn rule(app: &str, user: Option<&str>, ends: i64) -> RuntimeRule {
    let spec = RuntimeSpec {
        name: format!("runtime:{app}{}", user.map(|user| format!("@{user}")).unwrap_or_default()),
        app: Some(app.to_owned()),
        user: user.map(str::to_owned),
        classes: Vec::new(),
        effect: RuntimeEffect::Hold,
        reason: String::new(),
        made_at_ms: 0,
    };
    RuntimeRule::new(spec, "ann".into(), UnixTime(ends)).unwrap()
}

fn many(count: u32) -> Made {
    let mut made = Made::default();
    for n in 0..count {
        made.put(
            rule(&format!("etl-{n}"), None, 1_000_i64.saturating_add(i64::from(n / 100))),
            BASIS,
        );
    }
    made
}

/// What one has that the other does not share: rules that were compiled, and nodes of its maps.
fn made_beside(made: &Made, before: &Made) -> (usize, usize) {
    let rules = |made: &Made| -> HashSet<*const MadeRule> {
        made.names.values().map(Arc::as_ptr).collect()
    };
    let compiled = rules(made).difference(&rules(before)).count();
    let apps = |made: &Made| made.targets.of_anybody().cloned().unwrap_or_default();
    let nodes = [
        made.names.made_beside(&before.names),
        made.targets.made_beside(&before.targets),
        apps(made).made_beside(&apps(before)),
        made.numbers.made_beside(&before.numbers),
        made.ends.made_beside(&before.ends),
    ];
    let nodes = nodes.into_iter().sum();
    (compiled, nodes)
}

#[test]
fn one_more_or_less_of_ten_thousand_compiles_one_and_copies_a_few_nodes() {
    for count in [10, 100, 10_000] {
        let before = many(count);
        let mut more = before.clone();
        more.put(rule("one-more", None, 1_050), BASIS);
        let (compiled, nodes) = made_beside(&more, &before);
        assert_eq!(compiled, 1);
        assert!(nodes <= 40, "{count}: {nodes}");
        let mut fewer = before.clone();
        fewer.remove("runtime:etl-7");
        let (compiled, nodes) = made_beside(&fewer, &before);
        assert_eq!((compiled, fewer.len()), (0, before.len() - 1));
        assert!(nodes <= 40, "{count}: {nodes}");
        let mut again = before.clone();
        again.put(rule("etl-7", None, 2_000), BASIS);
        let (compiled, nodes) = made_beside(&again, &before);
        assert_eq!((compiled, again.len()), (1, before.len()));
        assert!(nodes <= 80, "{count}: {nodes}");
    }
}

#[test]
fn nothing_is_left_of_rules_that_are_gone() {
    let mut made = many(300);
    for n in 0..300 {
        assert_eq!(made.next_end_after(UnixTime(0)), Some(UnixTime(1_000 + n / 100)));
        made.remove(&format!("runtime:etl-{n}"));
    }
    assert!(made.targets.is_empty() && made.names.is_empty() && made.numbers.is_empty());
    assert!(made.ends.is_empty() && made.first_end.is_none() && made.len() == 0);
}

#[test]
fn ends_are_found_in_their_order() {
    let mut made = many(300);
    made.put(rule("last", None, YEAR_9999), BASIS);
    let next = |now| made.next_end_after(UnixTime(now)).map(|end| end.0);
    assert_eq!(
        [next(0), next(999), next(1_000), next(1_001)],
        [1_000, 1_000, 1_001, 1_002].map(Some)
    );
    assert_eq!(next(1_002), Some(YEAR_9999));
    assert_eq!(made.ending_after(UnixTime(1_000)).count(), 201);
    assert_eq!(made.ending_after(UnixTime(1_002)).count(), 1);
}

#[test]
fn a_number_is_a_rules_own_for_as_long_as_it_stands() {
    let mut made = many(3);
    let number = |made: &Made, name: &str| made.named(name).unwrap().index;
    let first = number(&made, "runtime:etl-0");
    made.last_number = first.wrapping_sub(1) & !MADE;
    made.put(rule("etl-1", Some("bob"), 1_000), BASIS);
    let numbers: HashSet<u32> = made.names.values().map(|made| made.rule.index).collect();
    assert_eq!((numbers.len(), number(&made, "runtime:etl-0")), (4, first));
    for made_rule in made.names.values() {
        assert_eq!(made.at(made_rule.rule.index), Some(&made_rule.rule));
    }
}

#[test]
fn another_mode_of_the_cluster_is_every_rules() {
    let made = many(5).on(Basis { mode: Mode::Observe, ..BASIS });
    assert_eq!(made.len(), 5);
    assert!(made.iter().all(|rule| rule.mode == Mode::Observe));
}
