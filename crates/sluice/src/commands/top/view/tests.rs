use admin::status::{BudgetStatus, GuardStatus, QuarantineEntry, RefusedStatus};

use super::super::course::tests::{app, status};
use super::*;

pub(in crate::commands::top) const BY: Sorting =
    Sorting { column: Column::App, order: Order::Natural };

pub(in crate::commands::top) fn watched() -> Watched {
    let mut watched = Watched::default();
    let mut status = status(vec![app("alpha", 1, 0), app("beta", 2, 0), app("gamma", 3, 0)]);
    let rule = |name: &str, author: Option<&str>| RuleStatus {
        rule: name.to_owned(),
        does: "hold".to_owned(),
        standing: "in_force".to_owned(),
        expires_in_s: author.map(|_| 3_541),
        author: author.map(str::to_owned),
        ..RuleStatus::default()
    };
    status.clusters[0].rules = vec![rule("runtime:beta", Some("ann")), rule("r", None)];
    let second = ClusterStatus { cluster: "second".to_owned(), ..ClusterStatus::default() };
    status.clusters.push(second);
    watched.take(0.0, Ok(status));
    watched
}

/// The same, and somebody who was refused, a budget without room, a guard, and a quarantine.
pub(in crate::commands::top) fn refusing() -> Watched {
    let mut watched = watched();
    let mut status = watched.status.clone();
    let refused = |app: &str| RefusedStatus {
        app: app.to_owned(),
        user: "shop".to_owned(),
        rule: "none".to_owned(),
        reason: "guard".to_owned(),
        guard: Some("where".to_owned()),
        check: Some("where_required".to_owned()),
        count: 1_234,
        for_s: 130.0,
        last_s: 3.0,
        last_id: "7f3a9c01".to_owned(),
        ..RefusedStatus::default()
    };
    let budget = BudgetStatus {
        budget: "reports".to_owned(),
        allows: "4 at once".to_owned(),
        fill: Some(0.75),
        in_use: 3,
        ..BudgetStatus::default()
    };
    let guard = GuardStatus {
        guard: "where".to_owned(),
        check: "where_required".to_owned(),
        hits: 4_321,
        unjudged: 17,
        ..GuardStatus::default()
    };
    let like = QuarantineEntry { id: "main:1".to_owned(), ..QuarantineEntry::default() };
    let cluster = &mut status.clusters[0];
    cluster.refused = (0..30).map(|n| refused(&format!("late-{n:02}"))).collect();
    cluster.refused_total = 77;
    (cluster.budgets, cluster.guards, cluster.quarantine) = (vec![budget], vec![guard], vec![like]);
    watched.take(1.0, Ok(status));
    watched
}

pub(in crate::commands::top) fn press(view: &mut View, watched: &Watched, keys: &str) -> Effect {
    let code = |key| match key {
        '\t' => KeyCode::Tab,
        '\x1b' => KeyCode::Esc,
        '↓' => KeyCode::Down,
        '↑' => KeyCode::Up,
        '→' => KeyCode::Right,
        '←' => KeyCode::Left,
        '⇟' => KeyCode::End,
        key => KeyCode::Char(key),
    };
    let mut effect = Effect::Nothing;
    for key in keys.chars() {
        effect = view.press(KeyEvent::from(code(key)), watched);
    }
    effect
}

fn chosen(view: &View, watched: &Watched) -> String {
    let (all, at) = view.identities(watched);
    all[at].app.clone()
}

#[test]
fn the_chosen_identity_stays_chosen_wherever_it_is_sorted_to() {
    let (mut view, watched) = (View::new(None, BY), watched());
    assert_eq!(chosen(&view, &watched), "alpha");
    press(&mut view, &watched, "↓");
    assert_eq!(chosen(&view, &watched), "beta");
    press(&mut view, &watched, "r");
    assert_eq!((chosen(&view, &watched), view.identities(&watched).1), ("beta".to_owned(), 1));
    press(&mut view, &watched, "↓↓↓↓");
    assert_eq!(chosen(&view, &watched), "alpha", "no further than the last");
    press(&mut view, &watched, "r⇟");
    assert_eq!(chosen(&view, &watched), "gamma");
    press(&mut view, &watched, "k↑↑");
    assert_eq!(chosen(&view, &watched), "alpha");
}

#[test]
fn arrows_choose_the_column_and_come_round() {
    let (mut view, watched) = (View::new(None, BY), watched());
    press(&mut view, &watched, "←");
    assert_eq!(view.sorting.column, Column::Refused);
    press(&mut view, &watched, "→→→");
    assert_eq!(view.sorting.column, Column::Waiting);
}

#[test]
fn nothing_is_changed_before_somebody_has_said_yes() {
    let (mut view, watched) = (View::new(None, BY), watched());
    assert_eq!(press(&mut view, &watched, "h"), Effect::Nothing);
    let Mode::Asking(asked) = view.mode.clone() else { panic!("{view:?}") };
    assert!(asked.words()[0].starts_with("Hold alpha on cluster main"));
    for no in ["n", "q", "\x1b"] {
        assert_eq!(press(&mut view, &watched, no), Effect::Nothing);
        assert_eq!(
            (&view.mode, view.message.as_deref()),
            (&Mode::Watching, Some("nothing was changed"))
        );
        press(&mut view, &watched, "h");
    }
    // What is no answer leaves the question.
    assert_eq!(press(&mut view, &watched, "↓h t"), Effect::Nothing);
    assert_eq!(press(&mut view, &watched, "y"), Effect::Make(asked));
    assert_eq!(press(&mut view, &watched, "ty"), Effect::Nothing, "one at a time");
    assert_eq!(view.mode, Mode::Watching);
    view.done("held".to_owned());
    assert_eq!(view.message.as_deref(), Some("held"));
    assert!(matches!(press(&mut view, &watched, "t5y"), Effect::Make(_)));
}

#[test]
fn who_was_asked_about_is_held_also_when_the_list_has_changed_meanwhile() {
    let (mut view, before) = (View::new(None, BY), watched());
    press(&mut view, &before, "h");
    let mut after = watched();
    after.take(1.0, Ok(status(vec![app("aaa", 1, 0), app("alpha", 1, 0)])));
    let Effect::Make(made) = press(&mut view, &after, "y") else { panic!("{view:?}") };
    assert!(made.request().2.contains("\"alpha\""), "{made:?}");
    assert_eq!(chosen(&view, &after), "alpha");
}

#[test]
fn a_rule_made_while_sluice_runs_is_lifted_and_one_of_the_file_is_not() {
    let (mut view, watched) = (View::new(None, BY), watched());
    press(&mut view, &watched, "3u");
    let Mode::Asking(asked) = view.mode.clone() else { panic!("{view:?}") };
    assert_eq!(asked, Change::lift("main", "runtime:beta").unwrap());
    press(&mut view, &watched, "n↓u");
    assert_eq!(view.mode, Mode::Watching);
    assert!(view.message.as_deref().unwrap().contains("the file's"), "{view:?}");
    press(&mut view, &watched, "1u");
    assert!(view.message.as_deref().unwrap().contains("the file's"), "that of the identity");
}

#[test]
fn c_shows_the_next_cluster_and_ctrl_c_ends() {
    let (mut view, watched) = (View::new(None, BY), watched());
    let name = |view: &View| view.cluster(&watched).unwrap().cluster.clone();
    press(&mut view, &watched, "c");
    assert_eq!(name(&view), "second");
    assert_eq!(press(&mut view, &watched, "h"), Effect::Nothing);
    assert_eq!(view.message.as_deref(), Some("there is nobody yet"));
    press(&mut view, &watched, "c");
    assert_eq!(name(&view), "main");
    press(&mut view, &watched, "h");
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(end, &watched), Effect::Quit, "also from a question");
    assert_eq!(press(&mut view, &watched, "?q"), Effect::Nothing, "it closes the help");
    assert_eq!(press(&mut view, &watched, "q"), Effect::Quit);
}

#[test]
fn in_a_table_of_which_nothing_is_chosen_one_goes_row_by_row_and_begins_anew_in_the_next() {
    let (mut view, watched) = (View::new(None, BY), refusing());
    press(&mut view, &watched, "4↓↓");
    assert_eq!(view.place(30), 2);
    press(&mut view, &watched, "⇟");
    assert_eq!((view.place(30), view.place(3), view.place(0)), (29, 2, 0));
    press(&mut view, &watched, "u");
    assert!(view.message.as_deref().unwrap().contains("key 3"), "{view:?}");
    press(&mut view, &watched, "\t");
    assert_eq!((view.panel, view.place(30)), (Panel::Budgets, 0));
    press(&mut view, &watched, "\t\t\t\t");
    assert_eq!(view.panel, Panel::Servers, "round once");
}
