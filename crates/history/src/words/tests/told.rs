//! What is told of those who ask, of what there is no room for, and of nothing.

use super::*;

#[test]
fn who_asks_over_http_is_counted_by_identity_and_reason_also_over_a_restart() {
    let asks = |app: &str, refused: Option<&'static str>, count| {
        let (cluster, rule) = ("main".to_owned(), "schema-changes".to_owned());
        (CheckKey { cluster, app: app.to_owned(), rule, refused }, count)
    };
    let scene = || Scene {
        checks: vec![
            asks("gh-ost", None, 3),
            asks("gh-ost", Some("gate_closed"), 2),
            asks("loader", Some("ratio"), 1),
        ],
        ..Scene::default()
    };
    let directory = crate::disk::scratch::Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    let mut first = World::new("2026-11-22T07:00:00Z");
    first.step(&scene());
    first.step(&scene());
    disk.write(&[first.book.writes()], first.wall).unwrap();
    let mut second = World::new("2026-11-22T07:00:30Z");
    second.book = Book::new(7_000, "0.1.0", second.wall);
    second.step(&scene());
    disk.write(&[second.book.writes()], second.wall).unwrap();
    let (since, until) = ("2026-11-22T07:00:00Z", "2026-11-22T07:05:00Z");
    let recent = second.book.recent(utc(since), utc(until));
    let reading = Reading::open(directory.path(), recent.from).unwrap();
    let answer = second.ask_with(Some("gh-ost"), since, until, Some(&reading));
    let expected = BTreeMap::from([("gate_closed".to_owned(), 6)]);
    assert_eq!((answer.checks.asked, answer.checks.passed), (15, 9));
    assert_eq!(answer.checks.refused_by, expected);
    let said = sentences(&answer, &TimeZone::UTC);
    let sentence = "gh-ost asked 15 times over HTTP: 9 told to go on, 6 not to (gate_closed 6)";
    assert!(said.iter().any(|said| said == sentence), "{said:#?}");
    let all = second.ask_with(None, since, until, Some(&reading));
    assert_eq!((all.checks.asked, all.checks.refused), (18, 9));
}

/// It was told as a change by whoever had made it.
#[test]
fn a_rule_whose_end_has_another_name_behind_a_clock_that_was_set_is_not_changed() {
    let ending = |at: &str| RuleLook { ends: Some(utc(at)), ..rule("runtime:etl", Some("ann")) };
    let mut world = World::new("2026-11-22T07:00:00Z");
    world.rules = Some(Vec::new());
    world.quiet_until("2026-11-22T07:00:10Z");
    world.rules = Some(vec![ending("2026-11-22T08:00:10Z")]);
    world.quiet_until("2026-11-22T07:00:20Z");
    world.wall.0 -= 1_800_000;
    world.quiet_until("2026-11-22T06:30:21Z");
    // Another one is made before its end is named anew.
    let other = RuleLook { name: "runtime:web".into(), ..ending("2026-11-22T07:30:21Z") };
    world.rules = Some(vec![ending("2026-11-22T08:00:10Z"), other.clone()]);
    world.quiet_until("2026-11-22T06:30:22Z");
    world.rules = Some(vec![ending("2026-11-22T07:30:10Z"), other.clone()]);
    world.quiet_until("2026-11-22T06:31:00Z");
    let changed = |world: &World| {
        let said = world.says(None, "2026-11-22T06:00:00Z", "2026-11-22T08:00:00Z", "UTC");
        said.into_iter().filter(|said| said.contains("was changed")).collect::<Vec<_>>()
    };
    assert_eq!(changed(&world), [""; 0]);
    // For longer: that is a change.
    world.rules = Some(vec![ending("2026-11-22T07:31:00Z"), other]);
    world.quiet_until("2026-11-22T06:31:10Z");
    let said = "at 06:31:00 rule runtime:etl was changed by ann: hold (mornings)";
    assert_eq!(changed(&world), [said]);
}

/// A process that ends looks once more, and began what goes on anew behind its end: nothing ended that.
#[test]
fn what_goes_on_when_a_process_ends_is_one_interval_that_has_ended() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    let lag = |happened| Scene { lag: Some(3.0), happened, ..Scene::default() };
    for _ in 0..40 {
        world.step(&lag(Vec::new()));
    }
    world.step(&lag(vec![Happened::Stop]));
    let answer = world.ask(None, "2026-11-22T06:00:00Z", "2026-11-22T08:00:00Z");
    let shut = |state: &&crate::answer::State| state.kind == "signal" && state.subject == "lag";
    let ends: Vec<bool> =
        answer.states.iter().filter(shut).map(|state| state.ended.is_some()).collect();
    assert_eq!(ends, [true], "{:#?}", answer.states);
}

/// Of a time of before it was said that no statement came.
#[test]
fn of_minutes_that_memory_had_no_room_for_nothing_is_said() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    let asks = |minute: usize| {
        let names = (0..3_000).map(|n| (format!("app-{minute}-{n}"), 1_u64));
        let key = |app: String| CheckKey {
            cluster: "main".to_owned(),
            app,
            rule: "r".to_owned(),
            refused: None,
        };
        Scene { checks: names.map(|(app, count)| (key(app), count)).collect(), ..Scene::default() }
    };
    for minute in 0..10 {
        world.step(&asks(minute));
        world.quiet_until(&format!("2026-11-22T07:{:02}:00Z", minute + 1));
    }
    let said = world.says(None, "2026-11-22T07:00:00Z", "2026-11-22T07:01:00Z", "UTC");
    assert!(said.contains(&"nothing is kept of 07:00:00–07:01:00".to_owned()), "{said:?}");
    let answer = world.ask(None, "2026-11-22T07:00:00Z", "2026-11-22T07:10:00Z");
    assert!(answer.kept.since > utc("2026-11-22T07:01:00Z"), "{:?}", answer.kept);
}

#[test]
fn what_an_answer_has_no_room_for_is_counted() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    for minute in 0..250 {
        world.step(&Scene {
            happened: vec![Happened::File {
                path: format!("file-{minute}"),
                changes: vec!["x".to_owned()],
                diff: String::new(),
            }],
            ..Scene::default()
        });
    }
    let answer = world.ask(None, "2026-11-22T07:00:00Z", "2026-11-22T08:00:00Z");
    // With the start.
    assert_eq!((answer.events.len(), answer.left_out.events), (200, 51));
    let said = sentences(&answer, &TimeZone::UTC);
    assert!(said.contains(&"243 changes before these".to_owned()), "{said:#?}");
}

#[test]
fn nothing_and_nobody_are_told_apart() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    world.until("2026-11-22T07:01:00Z", |_| Scene { rows: &[("web", 1)], ..Scene::default() });
    let (since, until) = ("2026-11-22T07:00:00Z", "2026-11-22T07:02:00Z");
    let said = world.says(Some("web"), since, until, "UTC");
    assert_eq!(said[0], "nothing of web was held 07:00:00–07:02:00: 240 statements passed");
    let said = world.says(Some("wbe"), since, until, "UTC");
    assert!(said[0].starts_with("no statement of wbe came 07:00:00–07:02:00; "), "{said:?}");
    let said = world.says(Some("web"), "2026-11-22T06:00:00Z", until, "UTC");
    assert!(said.contains(&"the history begins at 07:00:00".to_owned()), "{said:?}");
    // Of the time before it nobody can say that nothing came.
    assert!(said[0].starts_with("nothing of web was held 07:00:00–07:02:00: "), "{said:?}");
    let said = world.says(Some("wbe"), "2026-11-22T06:00:00Z", until, "UTC");
    assert!(said[0].starts_with("no statement of wbe came 07:00:00–07:02:00; "), "{said:?}");
    let said = world.says(None, "2026-11-22T05:00:00Z", "2026-11-22T06:00:00Z", "UTC");
    assert_eq!(said[0], "nothing is kept of 05:00:00–06:00:00", "{said:?}");
}

#[test]
fn numbers_are_written_for_people() {
    assert_eq!(figures(8_112), "8,112");
    assert_eq!(figures(1_234_567), "1,234,567");
    assert_eq!(figures(12), "12");
    assert_eq!(quantity(3.2, "s"), "3.2 s");
    assert_eq!(quantity(100.0, ""), "100");
    assert_eq!(quantity(0.25, "s"), "0.25 s");
    assert_eq!(span(Duration::from_secs(22 * 60)), "22 min");
    assert_eq!(span(Duration::from_secs(3_725)), "1 h 2 min");
    assert_eq!(span(Duration::from_millis(1_200)), "1.2 s");
}
