//! Rules made at runtime before those of a file: what is looked up is what a walk finds.

use super::*;
use crate::compile::{RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec};

/// One rule for each app and user, as whoever makes them has it.
fn name(app: &Option<String>, user: &Option<String>) -> String {
    let word = |pattern: &Option<String>| pattern.as_deref().unwrap_or("/").replace('*', "+");
    format!("runtime:{}@{}", word(app), word(user))
}

fn changes() -> impl Strategy<Value = Vec<RuntimeChange>> {
    let target = (prop::option::weighted(0.8, app()), prop::option::weighted(0.4, pattern()))
        .prop_filter("names somebody", |(app, user)| app.is_some() || user.is_some());
    let effect = prop::sample::select(vec![
        RuntimeEffect::Throttle { ratio: 0.5 },
        RuntimeEffect::Hold,
        RuntimeEffect::Exempt,
        RuntimeEffect::Deny,
    ]);
    let change = (target, effect, 0..3_i64, 0..5_i64, prop::bool::weighted(0.2));
    let change = change.prop_map(|((app, user), effect, made_at_ms, ends, is_gone)| {
        let name = name(&app, &user);
        if is_gone {
            return RuntimeChange::Gone(name.into());
        }
        let (classes, reason) = (Vec::new(), String::new());
        let spec = RuntimeSpec { name, app, user, classes, effect, reason, made_at_ms };
        let rule = RuntimeRule::new(spec, "ann".into(), UnixTime(ends));
        RuntimeChange::Stands(rule.unwrap_or_else(|faults| panic!("{faults:?}")))
    });
    prop::collection::vec(change, 0..24)
}

/// A pattern of the whole app, or of a level.
fn app() -> impl Strategy<Value = String> {
    let whole = (words(), pattern()).prop_map(|(first, rest)| format!("{first}:{rest}"));
    prop_oneof![3 => pattern(), 1 => whole.prop_filter("refused", |app| !app.ends_with(":*"))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_looked_up_among_runtime_rules_is_what_a_walk_through_them_finds(
        changes in changes(), rules in rules(), cases in prop::collection::vec(cases(), 1..24),
    ) {
        let file = policy(&rules);
        let policy = file.with_runtime_changes(changes.clone());
        let mut standing = std::collections::BTreeSet::new();
        for change in &changes {
            match change {
                RuntimeChange::Stands(rule) => standing.insert(rule.name().clone()),
                RuntimeChange::Gone(name) => standing.remove(name),
            };
        }
        let names: std::collections::BTreeSet<Arc<str>> =
            policy.rules.made.iter().map(|rule| rule.name.clone()).collect();
        prop_assert_eq!(&names, &standing);
        prop_assert_eq!(policy.rules.len(), standing.len().saturating_add(file.rules.len()));
        for case in cases {
            let (decides, walked) = case.with(&policy, |facts| {
                let first = policy.rules.first_match(facts, facts.class());
                (first.map(|rule| &rule.name), naive(&policy, facts).map(|rule| &rule.name))
            });
            prop_assert_eq!(decides, walked, "{:?}\n{:?}\n{}", case, changes, rules);
        }
        for now in 0..6 {
            let next = policy.rules.iter().filter_map(|rule| rule.expires_at);
            let next = next.filter(|end| *end > UnixTime(now)).min();
            prop_assert_eq!(policy.rules.next_change_after(UnixTime(now)), next);
        }
    }
}

/// A hold of this app.
fn hold(app: &str) -> RuntimeChange {
    made(app, RuntimeEffect::Hold)
}

fn made(app: &str, effect: RuntimeEffect) -> RuntimeChange {
    let spec = RuntimeSpec {
        name: format!("runtime:{}", app.replace(':', "-")),
        app: Some(app.to_owned()),
        user: None,
        classes: Vec::new(),
        effect,
        reason: String::new(),
        made_at_ms: 0,
    };
    RuntimeChange::Stands(RuntimeRule::new(spec, "ann".into(), UnixTime(9)).unwrap())
}

/// It is about names, whoever has come by then.
#[test]
fn a_hold_meets_whoever_comes_also_where_the_file_gates_nothing() {
    let ungated = "- {name: all, gate: none, permanent: true}\n";
    let open = file_of(ungated).replace("db:3306", "db:3306, default_gate: none");
    for file in [policy(ungated), load(&open).unwrap().clusters[0].clone()] {
        let held = file.with_runtime_changes(["online-ddl", "a:b"].map(hold));
        let id = "d666bbfc_169e_11ef_b0b3_0a43f95f28a3";
        for (app, is_held) in [
            ("online-ddl", true),
            ("vcopier:online-ddl", true),
            (&*format!("{id}:vcopier:online-ddl"), true),
            ("a:b", true),
            // As documented: a name with `:` is all of the app.
            (&*format!("{id}:a:b"), false),
            ("web", false),
        ] {
            let asks = Case::of(app).with(&held, |facts| {
                matches!(crate::decide(&held, facts), Verdict::Ask(rule) if rule.author.is_some())
            });
            assert_eq!(asks, is_held, "{app}");
            let read = Case { class: Class::Read, sql: "SELECT 1", ..Case::of(app) };
            assert_rule(&held, &read, "all");
        }
    }
}

#[test]
fn a_file_that_is_read_again_stands_behind_the_same_runtime_rules() {
    let before = policy("- {name: f, permanent: true}\n");
    let running = before.with_runtime_changes(["a", "b"].map(hold));
    let after = policy("- {name: g, permanent: true}\n- {name: h, permanent: true}\n");
    let reloaded = after.behind_runtime_rules_of(&running);
    let names: Vec<&str> = reloaded.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["runtime:a", "runtime:b", "g", "h"]);
    let shared = |rule: &Rule| reloaded.rules.iter().any(|other| std::ptr::eq(rule, other));
    assert_eq!(running.rules.made.iter().filter(|rule| shared(rule)).count(), 2, "not made anew");
    let file = file_of(" []\n").replace("primary: db:3306", "primary: db:3306, mode: observe");
    let observed = load(&file).unwrap().clusters[0].behind_runtime_rules_of(&reloaded);
    assert_eq!(observed.rules.len(), 2);
    assert!(observed.rules.iter().all(|rule| rule.mode == admission::Mode::Observe));
}

/// In a cluster that observes, a hold made at night let pass whom a rule of the file held.
#[test]
fn what_is_only_observed_frees_nobody_whom_an_enforced_rule_of_the_file_holds_back() {
    let rules = "- {name: gated, match: {app: job}, mode: enforce, permanent: true}\n\
                 - {name: ungated, match: {app: web}, mode: enforce, gate: none, permanent: true}\n\
                 - {name: rest, permanent: true}\n";
    let file = file_of(rules).replace("primary: db:3306", "primary: db:3306, mode: observe");
    let file = load(&file).unwrap().clusters[0].clone();
    let throttle = RuntimeEffect::Throttle { ratio: 0.5 };
    for effect in [throttle, RuntimeEffect::Hold, RuntimeEffect::Deny] {
        let changed = file.with_runtime_changes(["job", "web", "etl"].map(|app| made(app, effect)));
        for (app, decides) in [("job", "gated"), ("web", "runtime:web"), ("etl", "runtime:etl")] {
            assert_rule(&changed, &Case::of(app), decides);
        }
    }
    let exempted = file.with_runtime_changes([made("job", RuntimeEffect::Exempt)]);
    assert_rule(&exempted, &Case::of("job"), "runtime:job");
}
