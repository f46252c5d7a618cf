#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::window::WINDOWS_MAX;
use super::*;
use crate::{TableKey, WriteKind};

const A: Whose = Whose { app: AppKey(1), written: None };
const B: Whose = Whose { app: AppKey(2), written: None };

fn app_of(number: u64) -> Whose {
    Whose { app: AppKey(number), written: None }
}

fn at(ms: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
}

/// Heartbeats are shown from the first on.
fn beside_heartbeats() -> SlowStart {
    let mut apps = SlowStart::default();
    apps.heartbeat_begun(1);
    apps.shown(Some(1), false, 0.35);
    apps
}

fn admit(apps: &mut SlowStart, now: MonoTime, app: Whose, rows: f64) -> Charge {
    let charge = Charge::known_in(apps.begun, now, rows);
    apps.admit(now, app, charge);
    charge
}

/// Admits statements of so many rows for as long as the limit lets, completes them, and gives
/// how many there were.
fn fill(apps: &mut SlowStart, now: MonoTime, app: Whose, rows: f64) -> u32 {
    let mut some = 0;
    while some < 10_000 && apps.allows(now, app, rows) {
        let charge = admit(apps, now, app, rows);
        apps.complete(now, app, charge, rows);
        some += 1;
    }
    some
}

/// All that has completed by now is shown.
fn show(apps: &mut SlowStart, seq: u64, is_braked: bool) {
    apps.heartbeat_begun(seq);
    apps.shown(Some(seq), is_braked, 0.35);
}

#[test]
fn what_is_on_its_way_doubles_with_what_is_shown() {
    let mut apps = beside_heartbeats();
    let first = fill(&mut apps, at(0), A, 1.0);
    assert_eq!((first, fill(&mut apps, at(100), A, 1.0)), (35, 0), "nothing is shown yet");
    for (seq, rows) in [(2, 70), (3, 140), (4, 280)] {
        show(&mut apps, seq, false);
        assert_eq!(fill(&mut apps, at(seq * 250), A, 1.0), rows);
    }
    assert_eq!(fill(&mut apps, at(1_000), B, 1.0), 35, "another has its own");
}

#[test]
fn one_statement_always_passes_and_large_ones_go_one_by_one() {
    let mut apps = beside_heartbeats();
    assert_eq!(fill(&mut apps, at(0), A, 1e6), 1);
    show(&mut apps, 2, false);
    assert_eq!(fill(&mut apps, at(250), A, 1e6), 1, "two are more than the limit");
    show(&mut apps, 3, false);
    assert_eq!(fill(&mut apps, at(500), A, 1e6), 2);
}

#[test]
fn what_was_on_its_way_while_a_lag_was_braked_for_proves_little() {
    let mut apps = beside_heartbeats();
    assert_eq!(fill(&mut apps, at(0), A, 1.0), 35);
    apps.heartbeat_begun(2);
    apps.shown(Some(1), true, 0.35);
    show(&mut apps, 3, false);
    assert_eq!(fill(&mut apps, at(1_000), A, 1.0), 38);
    show(&mut apps, 4, false);
    assert_eq!(fill(&mut apps, at(1_250), A, 1.0), 76, "that is over");
}

#[test]
fn who_needs_no_more_has_no_more_and_who_has_no_room_at_the_pace_has() {
    let mut apps = beside_heartbeats();
    for seq in 2..20 {
        let charge = admit(&mut apps, at(seq * 250), A, 10.0);
        apps.complete(at(seq * 250), A, charge, 10.0);
        if seq >= 18 {
            apps.refused(at(seq * 250), A, 10.0);
        }
        show(&mut apps, seq, false);
    }
    assert_eq!(fill(&mut apps, at(5_000), A, 1.0), 45, "ten rows were shown with more wanted");
}

#[test]
fn who_was_away_for_minutes_begins_with_less() {
    let mut apps = beside_heartbeats();
    for seq in 2..8 {
        fill(&mut apps, at(seq * 250), A, 1.0);
        show(&mut apps, seq, false);
    }
    assert_eq!(fill(&mut apps, at(2_000), A, 1.0), 2_240);
    show(&mut apps, 8, false);
    assert!(apps.allows(at(2_100), A, 1.0), "it takes that in");
    let later = at(2_000 + 125_000);
    let charge = admit(&mut apps, later, A, 1.0);
    apps.take_back(A, charge);
    assert_eq!(fill(&mut apps, later, A, 1.0), 1_146, "35 and a quarter of what is beyond");
}

#[test]
fn what_runs_for_long_is_not_on_its_way_and_what_is_taken_back_neither() {
    let mut apps = beside_heartbeats();
    let first = admit(&mut apps, at(0), A, 1.0);
    let kept_open = Charge::known_in(first.epoch(), at(0), 1_000.0);
    apps.charge(at(500), A, first, kept_open);
    assert!(!apps.allows(at(500), A, 1.0));
    assert!(apps.allows(at(2_001), A, 35.0), "it sends nothing meanwhile");
    let charge = admit(&mut apps, at(2_001), A, 35.0);
    assert!(!apps.allows(at(2_002), A, 35.0));
    apps.take_back(A, charge);
    assert!(apps.allows(at(2_002), A, 35.0));
    apps.complete(at(9_000), A, kept_open, 1_000.0);
    assert!(!apps.allows(at(9_000), A, 1.0), "it is sent now");
}

#[test]
fn nobody_has_a_limit_without_heartbeats() {
    let mut apps = SlowStart::default();
    assert_eq!(fill(&mut apps, at(0), A, 1e6), 10_000);
    apps.heartbeat_begun(1);
    apps.shown(Some(1), false, 0.35);
    assert_eq!(fill(&mut apps, at(10), A, 1.0), 35, "what was before is not counted");
    apps.shown(None, false, 0.35);
    assert_eq!(fill(&mut apps, at(20), A, 1e6), 10_000);
}

#[test]
fn a_limit_goes_on_where_another_process_had_found_the_rate() {
    let mut apps = beside_heartbeats();
    apps.begin_with(at(0), [A.app].into_iter(), 500.0);
    assert_eq!((fill(&mut apps, at(0), A, 1.0), fill(&mut apps, at(0), B, 1.0)), (500, 35));
}

#[test]
fn apps_that_clients_make_up_are_forgotten() {
    let mut apps = beside_heartbeats();
    let most = u64::try_from(WINDOWS_MAX).unwrap();
    for app in 0..most + 10 {
        let charge = admit(&mut apps, at(2_000), app_of(app), 1.0);
        apps.complete(at(2_000), app_of(app), charge, 1.0);
    }
    assert_eq!(apps.apps.len(), WINDOWS_MAX);
    assert_eq!(
        fill(&mut apps, at(2_010), app_of(most + 20), 1.0),
        25,
        "ten of others are on their way"
    );
    admit(&mut apps, at(70_000), app_of(most + 1), 1.0);
    assert_eq!(apps.apps.len(), 1);
    assert_eq!(apps.held_back(at(70_000)), 0);
}

#[test]
fn what_has_completed_is_not_on_its_way_with_heartbeats_that_are_close() {
    let mut apps = beside_heartbeats();
    let app = A;
    let mut running = std::collections::VecDeque::new();
    for beat in 0..190 {
        let now = at(beat * 10);
        apps.heartbeat_begun(100 + beat);
        show(&mut apps, 99 + beat, false);
        running.push_back(admit(&mut apps, now, app, 1.0));
        if running.len() > 20
            && let Some(charge) = running.pop_front()
        {
            apps.complete(now, app, charge, 1.0);
        }
    }
    let out = apps.apps.get(app.app).map(|window| window.out(at(1_900)));
    assert!(out.is_some_and(|out| (20.0..=24.0).contains(&out)), "{out:?}");
}

#[test]
fn a_long_way_has_more_on_it() {
    let mut apps = beside_heartbeats();
    apps.shown(Some(1), false, 6.0);
    assert_eq!(fill(&mut apps, at(0), A, 1.0), 600);
}

/// Of such an app, into the one table of this test.
fn into_table(app: u64) -> Whose {
    let written = Written { table: TableKey(1), kind: WriteKind::Insert };
    Whose { written: Some(written), ..app_of(app) }
}

#[test]
fn who_writes_what_has_been_seen_of_others_begins_with_what_these_have() {
    let mut apps = beside_heartbeats();
    for seq in 2..6 {
        fill(&mut apps, at(seq * 250), into_table(1), 1.0);
        show(&mut apps, seq, false);
    }
    assert_eq!(fill(&mut apps, at(1_500), into_table(2), 1.0), 560, "as much as the first would");
    assert_eq!(fill(&mut apps, at(1_500), into_table(3), 1.0), 35, "that is on its way now");
    assert_eq!(fill(&mut apps, at(1_500), app_of(4), 1.0), 35, "what it writes is not known");
    let deletes = Written { table: TableKey(1), kind: WriteKind::Delete };
    let deletes = Whose { written: Some(deletes), ..app_of(5) };
    assert_eq!(fill(&mut apps, at(1_500), deletes, 1.0), 35, "these nobody has seen");
    assert_eq!(apps.held_back(at(2_300)), 4);
}
