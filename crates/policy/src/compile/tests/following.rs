//! Of a value that is wrong one fault tells, not also what would follow if it were not there.

use super::*;

fn in_rule(keys: &str) -> String {
    with_rules(&format!("- {{name: r, permanent: true, {keys}}}"))
}

fn in_list(list: &str, keys: &str) -> String {
    format!("{}\n{list}: [{{name: x, {keys}}}]\n", with_rules("- {name: r, permanent: true}"))
}

#[test]
fn a_value_that_cannot_be_read_has_one_fault() {
    let budgets = [
        ("max_concurrency: four", "budgets[0].max_concurrency: expected a whole number"),
        ("rate: [1]", "budgets[0].rate: expected a number"),
        ("share: much, burst: 2s", "budgets[0].share: expected a number"),
        ("max_query_cost: [5s]", "budgets[0].max_query_cost: expected"),
        ("rate: 1, match: {statements: [sho]}", "`sho` is not one of"),
        ("rate: 1, match: {app: [5]}", "budgets[0].match.app[0]: expected text"),
        ("rate: 1, match: {tag: {a: 5}}", "budgets[0].match.tag.a: expected text"),
    ];
    let guards = [
        ("where_required: true", "guards[0].where_required: `true` is not one of"),
        ("where_required: 5, limit_counts: true", "guards[0].where_required: `5` is not one of"),
        ("max_in_list: many", "guards[0].max_in_list: expected a whole number"),
        (
            "max_statement_bytes: 1MB",
            "guards[0].max_statement_bytes: expected a size with its unit",
        ),
        ("max_rows_expected: 1e, explain_timeout: 1s", "guards[0].max_rows_expected: expected"),
        ("require_tag: [5]", "guards[0].require_tag[0]: expected text"),
        ("no_ddl_hours: {hours: 9}", "guards[0].no_ddl_hours.hours: expected text"),
    ];
    let rules = [
        ("runaway: {elapsed: 5}", "rules[0].runaway.elapsed: expected a duration"),
        ("runaway: {bytes_sent: 1 MB}", "rules[0].runaway.bytes_sent: expected a size"),
        ("runaway: {rows_sent: lots}", "rules[0].runaway.rows_sent: expected a whole number"),
        (
            "runaway: {elapsed: 5s, action: 5, watch: {for: 1m}}",
            "rules[0].runaway.action: `5` is not one of",
        ),
        (
            "runaway: {elapsed: 5s, action: kil, watch: {for: 1m}}",
            "rules[0].runaway.action: `kil` is not one of",
        ),
        (
            "runaway: {elapsed: 5s, action: deprioritise, watch: yes}",
            "rules[0].runaway.watch: expected a mapping",
        ),
        ("match: {statements: ddl}, deny: 5", "rules[0].deny: expected `true` or `false`"),
        ("match: {statements: read}, gate: 5", "rules[0].gate: expected text"),
        ("match: {statements: read}, statements: 5", "rules[0].statements: expected text"),
        ("match: {statements: read}, statements: [raed]", "`raed` is not one of"),
        ("match: {statements: [read, 5]}, statements: [read, ddl]", "statements[1]: expected text"),
        ("min_rate: 5, max_rate: 0", "rules[0].max_rate: must be from 1"),
    ];
    let files = budgets.map(|(keys, fault)| (in_list("budgets", keys), fault));
    let files =
        files.into_iter().chain(guards.map(|(keys, fault)| (in_list("guards", keys), fault)));
    for (file, fault) in files.chain(rules.map(|(keys, fault)| (in_rule(keys), fault))) {
        let [only] = &faults(&file)[..] else { panic!("{file}: {:#?}", faults(&file)) };
        assert!(only.contains(fault), "{file}: {only}");
    }
}

#[test]
fn what_says_when_a_rule_ends_has_one_fault() {
    for (rules, fault) in [
        ("- {name: r, expires_at: 5}", "rules[0].expires_at: expected text"),
        ("- {name: r, permanent: 1}", "rules[0].permanent: expected"),
        (
            "- {name: r, exempt: true, permanent: true, essential: 1}",
            "rules[0].essential: expected",
        ),
    ] {
        let [only] = &faults(&with_rules(rules))[..] else {
            panic!("{rules}: {:#?}", faults(&with_rules(rules)))
        };
        assert!(only.contains(fault), "{rules}: {only}");
    }
}

#[test]
fn rules_whose_names_cannot_be_read_are_not_of_one_name() {
    let file = with_rules("- {name: 1, permanent: true}\n- {name: 2, permanent: true}");
    let faults = faults(&file);
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(faults.iter().all(|fault| fault.contains("expected text")), "{faults:#?}");
}

#[test]
fn a_fault_of_another_key_hides_nothing() {
    let file = in_list("budgets", "max_delay: 5, burst: 1s");
    let faults = faults(&file);
    assert_eq!(faults.len(), 3, "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("limits nothing")), "{faults:#?}");
}

/// Whoever stops the kills in a hurry changes one word, and a fault kept them going.
#[test]
fn what_is_only_logged_may_say_what_a_kill_would_watch() {
    let watch = |action: &str| {
        let runaway = format!("runaway: {{elapsed: 5s, action: {action}, watch: {{for: 1m}}}}");
        let config = load(&in_rule(&runaway)).unwrap_or_else(|faults| panic!("{faults:#?}"));
        config.clusters[0].rules.of_file()[0].runaway.and_then(|runaway| runaway.watch)
    };
    assert_eq!(watch("log"), None, "and nothing is quarantined");
    assert!(watch("kill").is_some());
    assert_fault(
        &in_rule("runaway: {elapsed: 5s, action: log, watch: {by: it, for: 1m}}"),
        "`it` is not one of",
    );
}

#[test]
fn sizes_have_units_wherever_they_stand() {
    for size in ["1MiB", "1048576", "1024 KiB"] {
        let file = in_list("guards", &format!("max_statement_bytes: {size}"));
        assert_eq!(faults(&file), [""; 0], "{size}");
        let file = in_rule(&format!("runaway: {{bytes_sent: {size}}}"));
        let config = load(&file).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let rule = &config.clusters[0].rules.of_file()[0];
        assert_eq!(rule.runaway.and_then(|runaway| runaway.bytes_sent), Some(1 << 20), "{size}");
    }
    for size in ["0", "2GiB"] {
        let file = in_list("guards", &format!("max_statement_bytes: {size}"));
        assert_fault(&file, "guards[0].max_statement_bytes: must be from 1 byte to 1GiB");
    }
    assert_fault(&in_rule("runaway: {bytes_sent: 0}"), "must be at least a byte");
}
