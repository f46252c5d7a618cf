//! A rule that is said never to decide does not.

use super::*;

/// The places of the rules that are said never to decide, in a file of these.
fn never_decide(rules: &str, now: i64) -> Vec<u32> {
    let found = crate::load_with_warnings(&file_of(rules), UnixTime(now)).unwrap().1.into_iter();
    let paths = found.filter(|warning| warning.message.starts_with("never decides"));
    paths
        .filter_map(|warning| warning.path.strip_prefix("rules[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_rule_that_is_said_never_to_decide_does_not(
        rules in rules(), cases in prop::collection::vec(cases(), 1..24),
    ) {
        let policy = policy(&rules);
        let shadowed: Vec<Vec<u32>> = (0..4).map(|now| never_decide(&rules, now)).collect();
        for case in cases {
            let decides = case.with(&policy, |facts| naive(&policy, facts).map(|rule| rule.index));
            let now = usize::try_from(case.now).unwrap();
            if let Some(rule) = decides {
                prop_assert!(!shadowed[now].contains(&rule), "{}: {:?}\n{}", rule, case, rules);
            }
        }
    }
}
