//! The classes that a rule matches and those that it covers.

use sql::{Class, ClassSet};

use super::*;

fn covered(rule: &str) -> ClassSet {
    let text = with_rules(&format!("- {{name: r, permanent: true, {rule}}}"));
    load(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}")).clusters[0].rules.of_file()
        [0]
    .statements
}

#[test]
fn a_rule_that_denies_covers_whatever_changes_data_or_schema() {
    let whatever: ClassSet =
        Class::ALL.into_iter().filter(|class| class.is_covered_by_write()).collect();
    let whatever = whatever.with(Class::Ddl);
    assert_eq!(covered("deny: true"), whatever);
    assert_eq!(covered("deny: true, match: {statements: [write, load, ddl]}"), whatever);
    assert_eq!(covered("deny: true, match: {statements: [ddl]}"), whatever);
    assert!(!covered("deny: true, statements: [write]").contains(Class::Ddl));
    assert!(!covered("ratio: 0.5").contains(Class::Ddl));
}

#[test]
fn what_a_rule_matches_and_does_not_cover_is_a_fault_that_names_the_remedy() {
    for (rule, remedy) in [
        ("match: {statements: read}", "matches `read`, which the rule does not cover"),
        ("match: {statements: read}", "say `statements: [read]` beside `match`"),
        ("match: {statements: [write, ddl]}", "matches `ddl`, which the rule does not cover"),
        ("match: {statements: [write, ddl]}", "say `statements: [write, ddl]` beside `match`"),
        ("gate: none, speed: 0.5, match: {statements: read}", "matches `read`"),
        ("deny: true, match: {statements: [write, read]}", "matches `read`"),
        ("deny: true, match: {statements: admin}", "leave out what no rule delays or refuses"),
        ("deny: true, statements: [write], match: {statements: [write, ddl]}", "matches `ddl`"),
        ("statements: [write, ddl], match: {statements: write}", "covers `ddl`"),
        ("statements: [write], match: {statements: load}", "covers `write`"),
        (
            "statements: [write, read, ddl], match: {statements: [ddl, read]}",
            "covers `write`, which",
        ),
    ] {
        assert_rule_fault(rule, remedy);
    }
}

#[test]
fn such_a_fault_names_both_lines() {
    let text = with_rules(
        "- name: r
  permanent: true
  deny: true
  match:
    table: payroll
    statements: [write, load, ddl]
  statements: [write, read]",
    );
    let faults = faults(&text);
    let [matches, covers] = faults.as_slice() else { panic!("{faults:#?}") };
    let line = |text: &str| {
        text.strip_prefix("line ").and_then(|rest| rest.split(':').next()).map(str::to_owned)
    };
    let (first, second) = (line(matches).unwrap(), line(covers).unwrap());
    assert!(matches.contains("rules[0].match.statements: matches `ddl`"), "{matches}");
    assert!(matches.contains(&format!("`statements` (line {second})")), "{matches}");
    assert!(covers.contains("rules[0].statements: covers `read`"), "{covers}");
    assert!(covers.contains(&format!("`match.statements` (line {first})")), "{covers}");
}

#[test]
fn what_says_the_same_in_both_places_or_holds_nothing_is_none() {
    for rule in [
        "match: {statements: write}",
        "match: {statements: load}",
        "statements: [ddl, read], match: {statements: [read, ddl]}",
        "statements: [write], match: {statements: [locking_read, write, load, call, unknown]}",
        "gate: none, match: {statements: read}",
        "gate: none, ratio: 0, match: {statements: [read, admin]}, on_client_gone: finish",
        "exempt: true, essential: true, match: {statements: [read, admin]}",
        "deny: true, match: {statements: ddl}",
    ] {
        let text = with_rules(&format!("- {{name: r, permanent: true, {rule}}}"));
        assert_eq!(faults(&text), [""; 0], "{rule}");
    }
}

#[test]
fn a_speed_is_a_part_of_a_whole_and_makes_a_rule_ask() {
    assert_rule_fault("speed: 0", "that is `hold: true`");
    assert_rule_fault("speed: 1.5", "must be above 0, and up to 1");
    assert_rule_fault("speed: -0.1", "must be above 0, and up to 1");
    assert_rule_fault("speed: .nan", "must be above 0, and up to 1");
    assert_rule_fault("speed: 0.5, max_delay: 0s", "has no effect with `max_delay: 0s`");
    assert_rule_fault("speed: 0.5, deny: true", "speed: has no effect together with `deny`");
    let rule = |rule: &str| {
        let text = with_rules(&format!("- {{name: r, permanent: true, gate: none, {rule}}}"));
        load(&text).unwrap().clusters[0].rules.of_file()[0].clone()
    };
    let slow = rule("speed: 0.1");
    assert!(matches!(slow.action, Action::Throttle { gated: Gated::Yes, .. }));
    assert_eq!(slow.speed_to_expect().as_deref(), Some("runs at 10 % of its own speed"));
    let full = rule("speed: 1");
    assert!(matches!(full.action, Action::Throttle { gated: Gated::No, .. }));
    assert_eq!(full.speed_to_expect(), None);
}
