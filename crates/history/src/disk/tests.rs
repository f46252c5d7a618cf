//! What may happen to the file.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;

use super::scratch::Scratch;
use super::*;
use crate::record::{
    CostKey, CostRow, Counts, Event, InsightsName, MinuteRow, QuarantineKey, QuarantineRow, Run,
    Span, SpanFacts, SpanKind, StatementRow,
};

const NOW: At = At(1_800_000_000_000);

fn writes(run: i64, minutes: i64) -> Writes {
    let minute = |n: i64| MinuteRow {
        run,
        at: NOW.0 / 1_000 - 60 * (minutes - n),
        cluster: "main".to_owned(),
        app: format!("app-{n}-{}", "x".repeat(60)),
        user: "u".to_owned(),
        rule: "r".to_owned(),
        counts: Counts { asked: 1, rows: 2, ..Counts::default() },
        refused_by: [("hold".to_owned(), 1)].into(),
    };
    Writes {
        runs: vec![Run { run, began: NOW, seen: NOW, ended: None, version: "0".to_owned() }],
        minutes: (0..minutes).map(minute).collect(),
        events: vec![Event { run, n: 0, at: NOW, text: "x".to_owned(), ..Event::default() }],
        ..Writes::default()
    }
}

fn asked_total(directory: &Scratch) -> u64 {
    let reading = Reading::open(directory.path(), [].into()).unwrap();
    let asked = Asked { since: At(0), until: At(NOW.0 + 1), cluster: None, app: None };
    reading.counts(&asked, 60).unwrap().values().map(|counts| counts.asked).sum()
}

#[test]
fn what_is_written_twice_counts_once_and_runs_add_up() {
    let directory = Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    disk.write(&[writes(1, 3), writes(1, 3)], NOW).unwrap();
    disk.write(&[writes(1, 3), writes(2, 3)], NOW).unwrap();
    assert_eq!(asked_total(&directory), 6);
    let mode = fs::metadata(directory.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others cannot read who asks");
}

#[test]
fn what_statements_cost_is_known_until_it_is_not_believed_any_more() {
    let directory = Scratch::new();
    assert_eq!(known_costs(directory.path(), NOW).unwrap(), []);
    let row = |digest, left_ms| CostRow {
        key: CostKey { cluster: "main".to_owned(), digest },
        seconds: 2.5,
        rows: 7.0,
        until: At(NOW.0 + left_ms),
    };
    let mut disk = Disk::new(directory.path(), Limits::default());
    let costs = vec![row(u64::MAX, 600_000), row(2, 1), row(3, 9_000)];
    disk.write(&[Writes { costs, ..Writes::default() }], NOW).unwrap();
    let cheaper = vec![row(3, 0).key];
    disk.write(&[Writes { cheaper, ..Writes::default() }], NOW).unwrap();
    assert_eq!(known_costs(directory.path(), NOW).unwrap().len(), 2);
    let later = At(NOW.0 + 1_000);
    assert_eq!(known_costs(directory.path(), later).unwrap(), [row(u64::MAX, 600_000)]);
    let sql =
        "INSERT INTO costs VALUES ('main', 'abc', 'many', 1, 9e15), ('main', 'x', 1, 1, 9e15)";
    Connection::open(directory.path().join(FILE)).unwrap().execute(sql, []).unwrap();
    let found = known_costs(directory.path(), later).unwrap();
    assert_eq!(found, [row(u64::MAX, 600_000)], "what cannot be read leaves the others");
    Connection::open(directory.path().join(FILE))
        .unwrap()
        .execute("DELETE FROM costs WHERE until_ms > 8e15", [])
        .unwrap();
    disk.write(&[], later).unwrap();
    assert_eq!(known_costs(directory.path(), NOW).unwrap().len(), 1, "the other is deleted");
}

/// One of them freed all.
#[test]
fn a_row_of_the_quarantine_that_cannot_be_read_leaves_the_others() {
    let directory = Scratch::new();
    let row = QuarantineRow {
        key: QuarantineKey { cluster: "main".into(), rule: "slow".into(), by: "digest", hash: 7 },
        action: "kill",
        app: "etl".to_owned(),
        since: NOW,
        until: At(NOW.0 + 9_000),
    };
    let mut disk = Disk::new(directory.path(), Limits::default());
    let quarantined = vec![row.clone()];
    disk.write(&[Writes { quarantined, ..Writes::default() }], NOW).unwrap();
    let sql = "INSERT INTO quarantine VALUES ('main', 'odd', 'text', '1', 0, 'kill', 'x', 'then', 9e15), \
               (x'00ff', 'slow', 'digest', '2', 0, 'kill', x'00ff', 1, 9e15), \
               ('main', 'slow', 'digest', 'no hash', 0, 'kill', 'x', 1, 'for ever')";
    Connection::open(directory.path().join(FILE)).unwrap().execute(sql, []).unwrap();
    assert_eq!(standing(directory.path(), NOW).unwrap(), [row]);
}

#[test]
fn a_file_that_is_removed_or_replaced_is_begun_anew() {
    let directory = Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    disk.write(&[writes(1, 3)], NOW).unwrap();
    fs::remove_file(directory.path().join(FILE)).unwrap();
    let written = disk.write(&[writes(1, 1)], NOW).unwrap();
    assert!(written.note.unwrap().contains("removed or replaced"));
    assert_eq!(asked_total(&directory), 1, "nothing of the old log has come into the new file");
    // With everything around it.
    fs::remove_dir_all(directory.path()).unwrap();
    disk.write(&[writes(1, 2)], NOW).unwrap();
    assert_eq!(asked_total(&directory), 2);
}

#[test]
fn a_damaged_file_is_put_aside_and_named() {
    let directory = Scratch::new();
    Disk::new(directory.path(), Limits::default()).write(&[writes(1, 300)], NOW).unwrap();
    let path = directory.path().join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[4_096..middle].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let written = Disk::new(directory.path(), Limits::default()).write(&[writes(2, 1)], NOW);
    let note = written.unwrap().note.unwrap();
    assert!(note.contains("damaged") && note.contains("history.sqlite3.damaged"), "{note}");
    assert_eq!(asked_total(&directory), 1);
    assert!(directory.path().join("history.sqlite3.damaged").exists());
    // Bytes that never were a database.
    fs::write(&path, "not a database, by far, whatever its name may say of it".repeat(90)).unwrap();
    let mut disk = Disk::new(directory.path(), Limits::default());
    disk.insights(("main", 1), NOW).unwrap();
    let written = disk.write(&[writes(3, 1)], NOW);
    assert!(written.unwrap().note.unwrap().contains("damaged"), "whoever has met it first");
    assert_eq!(disk.write(&[writes(3, 1)], NOW).unwrap().note, None);
}

#[test]
fn a_file_of_a_newer_sluice_or_of_somebody_else_is_left_alone() {
    let directory = Scratch::new();
    Disk::new(directory.path(), Limits::default()).write(&[writes(1, 3)], NOW).unwrap();
    let path = directory.path().join(FILE);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let error = Disk::new(directory.path(), Limits::default()).write(&[writes(2, 3)], NOW);
    let Trouble(why) = error.unwrap_err();
    assert!(why.contains("newer Sluice (version 7; this one knows 1)"), "{why}");
    assert!(Reading::open(directory.path(), [].into()).is_none(), "nobody guesses what it says");
    let connection = Connection::open(&path).unwrap();
    let rows: i64 =
        connection.query_row("SELECT COUNT(*) FROM minutes", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3, "untouched");
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection.pragma_update(None, "application_id", 42).unwrap();
    drop(connection);
    let error = Disk::new(directory.path(), Limits::default()).write(&[writes(2, 3)], NOW);
    assert!(error.unwrap_err().0.contains("no history of Sluice's"));
}

#[test]
fn the_size_is_bounded_and_the_oldest_goes_first() {
    let directory = Scratch::new();
    let limits = Limits { bytes_max: 512 << 10, ..Limits::default() };
    let mut disk = Disk::new(directory.path(), limits);
    for run in 0..40 {
        let written = disk.write(&[writes(run, 100)], NOW).unwrap();
        assert!(written.bytes <= limits.bytes_max, "{}", written.bytes);
    }
    let reading = Reading::open(directory.path(), [].into()).unwrap();
    let asked = Asked { since: At(0), until: At(NOW.0 + 1), cluster: None, app: None };
    let minutes = reading.counts(&asked, 60).unwrap();
    let last = NOW.0 / 1_000 - 60;
    let (oldest, newest) = (minutes.values().next().unwrap(), &minutes[&last]);
    assert!(oldest.asked < newest.asked, "{oldest:?} {newest:?}");
}

/// It was said that no statement came then, and of what a process that is gone had left open that it
/// went on.
#[test]
fn of_what_had_to_go_nothing_is_said() {
    let directory = Scratch::new();
    let limits = Limits { bytes_max: 512 << 10, ..Limits::default() };
    let mut disk = Disk::new(directory.path(), limits);
    let hour = |n: i64| At(NOW.0 + n * 3_600_000);
    let open = |run: i64, began: At| Span {
        run,
        n: 0,
        kind: SpanKind::Signal,
        cluster: "main".to_owned(),
        subject: "lag".to_owned(),
        state: "closed".to_owned(),
        began,
        ended: None,
        lasted_ms: 5_000,
        facts: SpanFacts::default(),
    };
    for n in 0..40 {
        // Each is killed within its hour; the first goes on.
        let mut written = writes(n * 10_000, 100);
        let seen = if n == 0 { hour(40) } else { hour(n) };
        written.runs[0] = Run { began: hour(n), seen, ..written.runs[0].clone() };
        written.minutes.iter_mut().for_each(|row| row.at += n * 3_600);
        written.spans = vec![open(n * 10_000, hour(n))];
        disk.write(&[written], hour(n)).unwrap();
    }
    let reading = Reading::open(directory.path(), [].into()).unwrap();
    let asked = Asked { since: At(0), until: hour(50), cluster: None, app: None };
    let oldest = *reading.counts(&asked, 60).unwrap().keys().next().unwrap() * 1_000;
    let since = reading.since().unwrap().unwrap();
    assert!((oldest - since.0).abs() <= 3_600_000, "{oldest} {since:?}");
    let spans = reading.spans(&asked).unwrap();
    assert!(spans.iter().all(|span| span.ended.is_some()), "{spans:?}");
    let ancient = spans.iter().filter(|span| span.run != 0 && span.began < since);
    assert_eq!(ancient.count(), 0, "{spans:?}");
    assert!(spans.iter().any(|span| span.run == 0), "its process goes on");
}

#[test]
fn what_is_too_large_for_the_bound_is_refused_in_words_and_harms_nothing() {
    let directory = Scratch::new();
    let limits = Limits { bytes_max: 256 << 10, ..Limits::default() };
    let mut disk = Disk::new(directory.path(), limits);
    disk.write(&[writes(1, 3)], NOW).unwrap();
    let Trouble(why) = disk.write(&[writes(2, 3_000)], NOW).unwrap_err();
    assert!(why.contains("full"), "{why}");
    assert_eq!(asked_total(&directory), 3, "all of it or nothing");
    disk.write(&[writes(3, 3)], NOW).unwrap();
    assert_eq!(asked_total(&directory), 6);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = Scratch::new();
    fs::create_dir_all(directory.path()).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o500)).unwrap();
    let may_all_the_same = fs::write(directory.path().join("x"), "").is_ok();
    let written = Disk::new(directory.path(), Limits::default()).write(&[writes(1, 1)], NOW);
    // Root may write everywhere: a file in the directory's place stops root as well.
    if !may_all_the_same {
        assert!(written.unwrap_err().0.contains("history.sqlite3"));
    }
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    let blocked = directory.path().join("file");
    fs::write(&blocked, "").unwrap();
    let written = Disk::new(&blocked, Limits::default()).write(&[writes(1, 1)], NOW);
    assert!(written.unwrap_err().0.contains("history.sqlite3"));
}

#[test]
fn what_is_old_goes() {
    let directory = Scratch::new();
    let limits = Limits { keep: Duration::from_secs(3_600), ..Limits::default() };
    let mut disk = Disk::new(directory.path(), limits);
    disk.write(&[writes(1, 120)], NOW).unwrap();
    disk.write(&[], At(NOW.0 + 60_000)).unwrap();
    assert_eq!(asked_total(&directory), 59);
    assert!(disk.write(&[], At(NOW.0 + 60_000)).unwrap().bytes > 0);
}

#[test]
fn a_level_of_an_app_is_meant_and_a_part_of_one_is_not() {
    let asked = Asked { since: At(0), until: At(1), cluster: None, app: Some("ddl") };
    assert!(asked.is_of("ddl") && asked.is_of("a:ddl") && asked.is_of("ddl:b"));
    assert!(!asked.is_of("online-ddl") && !asked.is_of("ddl2") && !asked.is_of("a:ddl-x"));
}

fn window(run: i64, (minutes, age_s): (i64, i64), len: usize) -> InsightsWindow {
    let at = NOW.0 / 1_000 - age_s;
    let rows = "x".repeat(len);
    InsightsWindow { run, at, minutes, cluster: "main".to_owned(), count: 1, rows }
}

#[test]
fn windows_of_insights_are_there_for_other_runs_for_as_long_as_they_are_shown() {
    let directory = Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    let name = |hash, at| InsightsName {
        cluster: "main".to_owned(),
        hash,
        at,
        name: format!("name of {hash}"),
    };
    let hour = 3_600;
    let windows = [(1, 60), (1, hour), (1, 3 * hour), (10, 3 * hour), (10, 26 * hour)];
    let insights = windows.map(|of| window(1, of, 10)).to_vec();
    let now = NOW.0 / 1_000;
    let names = vec![name(u64::MAX, now), name(7, now - 37 * hour), name(8, now - 39 * hour)];
    let own = Writes { insights: vec![window(2, (1, 60), 10)], ..Writes::default() };
    disk.write(&[Writes { insights, names, ..Writes::default() }, own], NOW).unwrap();
    disk.write(&[], NOW).unwrap();
    let (mut windows, mut names) = disk.insights(("main", 2), NOW).unwrap();
    windows.sort_by_key(|window| -window.at);
    let found: Vec<(i64, i64)> = windows.iter().map(|it| (it.minutes, now - it.at)).collect();
    assert_eq!(found, [(1, 60), (1, hour), (10, 3 * hour)]);
    names.sort();
    let named = [(7, "name of 7".to_owned()), (u64::MAX, format!("name of {}", u64::MAX))];
    assert_eq!(names, named);
    assert_eq!(disk.insights(("other", 2), NOW).unwrap(), (Vec::new(), Vec::new()));
}

#[test]
fn insights_leave_half_of_a_small_file_to_the_history() {
    let directory = Scratch::new();
    let limits = Limits { bytes_max: 1 << 20, ..Limits::default() };
    let mut disk = Disk::new(directory.path(), limits);
    disk.write(&[writes(1, 100)], NOW).unwrap();
    for n in 0..100 {
        let insights = vec![window(1, (1, n), 60_000), window(1, (10, n), 200_000)];
        disk.write(&[Writes { insights, ..Writes::default() }], NOW).unwrap();
    }
    assert_eq!(asked_total(&directory), 100, "nothing of the history has gone for them");
    let (windows, _) = disk.insights(("main", 2), NOW).unwrap();
    assert!(windows.len() >= 4 && windows.iter().all(|it| it.minutes == 1), "one was too large");
}

#[test]
fn of_an_app_the_last_refusal_and_its_longest_wait_are_found() {
    let directory = Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    let statement = |(id, app, ago_s, end, waited_s): (u32, &str, i64, &str, f64)| StatementRow {
        id,
        at: At(NOW.0 - ago_s * 1_000),
        cluster: "main".to_owned(),
        app: app.to_owned(),
        why: format!(r#"{{"id":"{id}","end":"{end}","waited_s":{waited_s}}}"#),
    };
    let statements = [
        (1, "a:ddl", 90, "refused", 0.0),
        (2, "ddl", 60, "refused", 0.0),
        (3, "ddl2", 10, "refused", 0.0),
        (4, "ddl", 7_200, "admitted", 9.0),
        (5, "ddl", 50, "admitted", 3.0),
        (6, "ddl", 40, "admitted", 1.0),
    ];
    let statements = statements.map(statement).to_vec();
    disk.write(&[Writes { statements, ..Writes::default() }], NOW).unwrap();
    let reading = Reading::open(directory.path(), [].into()).unwrap();
    let found = |app| {
        let since = At(NOW.0 - 3_600_000);
        let found = reading.statements(&Asked { since, until: NOW, cluster: None, app: Some(app) });
        let ids = found.unwrap().into_iter().map(|why| why.get(7..8).unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    assert_eq!(found("ddl"), ["2", "5"]);
    assert_eq!(found("a"), ["1"]);
    assert_eq!(found("dd"), [""; 0]);
}
