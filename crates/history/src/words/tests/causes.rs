//! What is behind an interval is told by name, as `sluice status` tells it.

use proxy::cluster::GateSignal;

use super::*;

const BEGIN: &str = "2026-11-22T07:00:00Z";
const END: &str = "2026-11-22T07:01:00Z";

fn cause(reason: Reason, behind: &str) -> Vec<CauseLook> {
    let (app, rule) = ("etl".to_owned(), "nightly-etl".into());
    let (reason, behind) = (reason.as_str(), behind.to_owned());
    vec![CauseLook { app, rule, reason, behind, signal: None }]
}

fn refused(reason: Reason, behind: &str) -> Scene {
    let refused = Some((reason, 1, Duration::ZERO));
    Scene { refused, causes: cause(reason, behind), ..Scene::default() }
}

/// What is told of a minute in which that happens all the time.
fn said(scene: impl Fn() -> Scene) -> String {
    let mut world = World::new(BEGIN);
    world.until(END, |_| scene());
    world.says(Some("etl"), BEGIN, END, "UTC").remove(0)
}

#[test]
fn a_limit_of_the_rule_is_not_told_as_the_pace() {
    let waits = |behind| {
        said(|| Scene {
            waits_since: Some(Duration::ZERO),
            reason: "paced",
            behind: Some(behind),
            ..Scene::default()
        })
    };
    assert!(waits("speed").contains(": it goes at the speed of rule nightly-etl"));
    assert!(waits("max_in_flight").contains(": max_in_flight of rule nightly-etl was used up"));
    assert!(waits("").contains(": work came faster than its pace (rule nightly-etl)"));
    let refused = said(|| refused(Reason::Paced, "max_rate"));
    assert!(refused.contains("slowed down since 07:00:00"), "{refused}");
    assert!(refused.contains(": max_rate of rule nightly-etl was used up"), "{refused}");
}

#[test]
fn pauses_that_no_look_has_met_are_told_as_those_for_speed() {
    let mut world = World::new(BEGIN);
    world.rules = Some(vec![RuleLook { slows: true, ..rule("nightly-etl", None) }]);
    let delayed = Some((3, Duration::from_millis(40)));
    world.until(END, |_| Scene { delayed, ..Scene::default() });
    let said = world.says(Some("etl"), BEGIN, END, "UTC").remove(0);
    assert!(said.contains(": it goes at the speed of rule nightly-etl"), "{said}");
}

#[test]
fn the_budget_or_guard_that_decided_is_named() {
    let budget = said(|| refused(Reason::BudgetConcurrency, "reports"));
    assert!(budget.contains(": max_concurrency of budget reports was used up; "), "{budget}");
    let guard = said(|| refused(Reason::Guard, "where"));
    assert!(guard.contains(": guard where; "), "{guard}");
}

#[test]
fn the_signal_of_what_is_refused_at_once_is_named_with_its_value() {
    let said = said(|| Scene { lag: Some(3.2), ..refused(Reason::GateClosed, "lag") });
    assert!(said.contains(": lag 3.2 s at replica db3 (over 1 s for 1 min); "), "{said}");
}

#[test]
fn what_is_refused_at_once_between_two_looks_has_the_value_of_then() {
    let mut world = World::new(BEGIN);
    let mut scene = refused(Reason::GateClosed, "lag");
    scene.causes[0].signal = Some(GateSignal {
        name: "lag".into(),
        is_time: true,
        value: Some(1.9),
        threshold: 1.0,
        lets_through: false,
        server: Some("db3".into()),
        hindrance: None,
    });
    world.step(&scene);
    world.quiet_until(END);
    let said = world.says(Some("etl"), BEGIN, END, "UTC").remove(0);
    assert!(said.contains(": lag 1.9 s at replica db3 (over 1 s); 1 statement was"), "{said}");
}

/// 5 lost the dice and 290 were paced: the dice were the reason.
#[test]
fn a_reason_of_a_few_does_not_explain_the_many() {
    let mut world = World::new(BEGIN);
    for n in 0..59 {
        let reason = if n % 12 == 0 { Reason::Ratio } else { Reason::Paced };
        let count = if reason == Reason::Ratio { 1 } else { 5 };
        let refused = Some((reason, count, Duration::ZERO));
        world.step(&Scene { refused, ..Scene::default() });
    }
    let held = world.ask(Some("etl"), BEGIN, END).held.remove(0);
    assert_eq!((held.reason.as_str(), held.besides.as_deref()), ("paced", Some("ratio")));
}
