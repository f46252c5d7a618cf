use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::course::tests::{app, status};
use super::super::view::tests::{BY, press, refusing, watched};
use super::*;

fn drawn(watched: &Watched, view: &View, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, watched, view, Style::Coloured)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn lag_pace_queue_identities_and_rules_are_there() {
    let (watched, mut view) = (watched(), View::new(None, BY));
    let text = drawn(&watched, &view, (80, 24));
    for part in [
        "Sluice 1.0",
        "lag: 0.5 s of 1 s, open",
        "pace: 120 rows/s",
        "queue: 2 wait",
        "app▼",
        "gamma",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    press(&mut view, &watched, "3");
    let text = drawn(&watched, &view, (80, 24));
    assert!(text.contains("59:01") && text.contains("ann") && !text.contains("gamma"), "{text}");
}

#[test]
fn a_tall_terminal_has_all_tables_and_a_wide_one_all_columns() {
    let (watched, view) = (watched(), View::new(None, BY));
    let text = drawn(&watched, &view, (160, 50));
    for part in
        ["1 Identities: 3", "2 Servers", "3 Rules", "passed/s", "delayed ", "59:01", "gamma"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn what_will_be_done_stands_over_everything_until_it_is_answered() {
    let (watched, mut view) = (watched(), View::new(None, BY));
    press(&mut view, &watched, "t");
    let text = drawn(&watched, &view, (80, 24));
    for part in ["Shall this be done?", "Throttle alpha on cluster main", "y does it"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    press(&mut view, &watched, "n");
    assert!(!drawn(&watched, &view, (80, 24)).contains("Throttle alpha"));
    press(&mut view, &watched, "?");
    assert!(drawn(&watched, &view, (80, 24)).contains("the next cluster"));
}

#[test]
fn no_name_of_a_client_is_a_command_to_the_terminal() {
    let mut watched = Watched::default();
    let mut hostile = status(vec![app("a\x1b[2J\n\u{202e}b\u{9b}", 1, 0)]);
    hostile.clusters[0].cluster = "m\x1b]0;x\x07".to_owned();
    hostile.clusters[0].signals[0].signal = "lag\x1b[1m".to_owned();
    watched.take(0.0, Ok(hostile));
    let mut view = View::new(None, BY);
    for keys in ["", "h", "n"] {
        press(&mut view, &watched, keys);
        let text = drawn(&watched, &view, (120, 50));
        let is_hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(text.contains("\\u{1b}[2J") && !text.contains(is_hostile), "{text:?}");
    }
}

#[test]
fn a_sluice_that_is_lost_is_said_to_be_and_what_was_known_stays() {
    let (mut watched, view) = (watched(), View::new(None, BY));
    watched.take(1.0, Err("nothing listens there".to_owned()));
    let text = drawn(&watched, &view, (80, 24));
    assert!(text.contains("NO ANSWER since") && text.contains("gamma"), "{text}");
}

#[test]
fn no_size_of_a_terminal_is_too_small_nor_is_anything_missing_too_much() {
    let (watched, mut view) = (watched(), View::new(None, BY));
    press(&mut view, &watched, "h");
    for size in [(1, 1), (5, 3), (20, 10), (40, 12), (300, 100)] {
        drawn(&watched, &view, size);
        drawn(&Watched::default(), &View::new(None, BY), size);
    }
}

#[test]
fn what_is_left_runs_down_in_seconds() {
    let shown = [-1, 59, 3_541, 86_399, 172_800].map(countdown);
    assert_eq!(shown, ["0:00", "0:59", "59:01", "23:59:59", "2 d"]);
}

#[test]
fn who_was_refused_is_named_and_its_table_has_the_id_for_sluice_why() {
    let (watched, mut view) = (refusing(), View::new(None, BY));
    let text = drawn(&watched, &view, (80, 24));
    assert!(text.contains("77 refused lately: 4"), "{text}");
    press(&mut view, &watched, "4");
    let text = drawn(&watched, &view, (80, 24));
    for part in
        ["4 Refused in the last ten minutes: 77", "late-00", "shop", "1234", "2 min", "3.00 s"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(text.contains("7f3a9c01") && text.contains("guard where: where_req"), "{text}");
    assert!(!text.contains("late-29"), "there is no room for all\n{text}");
    press(&mut view, &watched, "⇟");
    assert!(drawn(&watched, &view, (80, 24)).contains("late-29"), "one goes to the last");
    for (keys, parts) in [
        ("5", ["5 Budgets: 1", "reports", "4 at once", "75 %"]),
        ("6", ["6 Guards", "where_required", "4321", "17"]),
        ("7", ["7 Quarantine", "main:1", "one at a time", "left"]),
    ] {
        press(&mut view, &watched, keys);
        let text = drawn(&watched, &view, (80, 24));
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} are not in\n{text}");
    }
}

#[test]
fn on_a_tall_terminal_who_was_refused_stands_between_and_other_tables_in_place_of_the_rules() {
    let (watched, mut view) = (refusing(), View::new(None, BY));
    let text = drawn(&watched, &view, (160, 50));
    for part in ["1 Identities", "4 Refused", "late-00", "2 Servers", "3 Rules"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    press(&mut view, &watched, "5");
    let text = drawn(&watched, &view, (160, 50));
    assert!(text.contains("5 Budgets") && !text.contains("3 Rules"), "{text}");
    // With nobody refused its table is there for who asks.
    let (quiet, mut view) = (super::super::view::tests::watched(), View::new(None, BY));
    assert!(!drawn(&quiet, &view, (160, 50)).contains("Refused"));
    press(&mut view, &quiet, "4");
    assert!(drawn(&quiet, &view, (160, 50)).contains("4 Refused in the last ten minutes: 0"));
}
