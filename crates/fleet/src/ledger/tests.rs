use admission::{Mode, MonoTime};
use policy::RuntimeEffect;

use super::*;
use crate::draft::RuleDraft;

fn at(seconds: u64) -> Now {
    let mono = MonoTime::ZERO.saturating_add(Duration::from_secs(seconds));
    Now { mono, unix_ms: 1_000_000_000_000 + i64::try_from(seconds).unwrap() * 1_000 }
}

/// A Sluice, and the table that it reads and writes.
#[derive(Default)]
struct Table {
    rows: BTreeMap<String, (ReadRow, u64)>,
    counter: u64,
}

impl Table {
    /// What a Sluice does in one round: read, write.
    fn visit(&mut self, ledger: &mut Ledger, now: Now) {
        self.show(ledger, now);
        self.bring(ledger, now);
    }

    fn show(&self, ledger: &mut Ledger, now: Now) {
        let seconds = now.mono.as_nanos() / 1_000_000_000;
        let left = |ends: u64| Duration::from_secs(ends.saturating_sub(seconds));
        let rows = self.rows.values();
        let rows = rows.map(|(row, ends)| ReadRow { left: left(*ends), ..row.clone() }).collect();
        let _ = ledger.merge(Reading::Everything { rows, counter: self.counter }, now);
    }

    /// Writes what is in the outbox, as the statements do.
    fn bring(&mut self, ledger: &mut Ledger, now: Now) {
        let rows = ledger.outbox(100, now);
        let (_, highest) = ledger.position();
        let mut written = Vec::new();
        for row in rows {
            self.counter = self.counter.max(highest) + 1;
            let version = self.counter;
            let stands = self.rows.get(&row.name).map(|(row, _)| row.version);
            let ends = now.mono.as_nanos() / 1_000_000_000 + row.left.as_secs();
            if stands.is_none_or(|stands| row.over.is_none_or(|over| stands <= over)) {
                let WriteRow { name, lifted, author, body, .. } = row.clone();
                let left = Duration::ZERO;
                let read = ReadRow { name: name.clone(), version, left, lifted, author, body };
                self.rows.insert(name, (read, ends));
            }
            written.push(Written { name: row.name, change: row.change, version });
        }
        ledger.note_written(&written);
    }
}

fn make(ledger: &mut Ledger, app: &str, effect: RuntimeEffect, id: u64, now: Now) {
    let draft = RuleDraft::of_app(app, effect);
    let body = RuleBody::new(&draft, id, now.unix_ms);
    ledger.make(body, "ann", draft.lasts, now).unwrap();
}

fn lift(ledger: &mut Ledger, app: &str, now: Now) -> usize {
    let cluster = Arc::from("main");
    let about = About { cluster: &cluster, mode: Mode::Enforce, now };
    ledger.lift(&Lift::of_app(app), "bob", about).len()
}

fn stands(ledger: &Ledger, now: Now) -> Vec<String> {
    let cluster = Arc::from("main");
    let about = About { cluster: &cluster, mode: Mode::Enforce, now };
    let shown = ledger.standing(about);
    shown.iter().map(|rule| format!("{} {}", rule.name, rule.effect.as_str())).collect()
}

const HOLD: RuntimeEffect = RuntimeEffect::Hold;
const DENY: RuntimeEffect = RuntimeEffect::Deny;

#[test]
fn what_one_makes_the_other_has_after_reading_and_what_one_lifts_is_lifted_there() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(0));
    table.visit(&mut a, at(0));
    table.visit(&mut b, at(1));
    assert_eq!(stands(&b, at(1)), ["runtime:etl hold"]);
    assert_eq!(lift(&mut b, "etl", at(2)), 1);
    table.visit(&mut b, at(2));
    table.visit(&mut a, at(3));
    assert_eq!(stands(&a, at(3)), [""; 0]);
    assert_eq!(lift(&mut a, "etl", at(3)), 0, "it is told that there is none");
    assert_eq!(table.counter, 2, "nobody writes what is there");
}

#[test]
fn the_last_writer_wins_by_the_primarys_order() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(5));
    make(&mut b, "etl", DENY, 2, at(1));
    table.visit(&mut a, at(6));
    table.visit(&mut b, at(6));
    table.visit(&mut a, at(7));
    assert_eq!(stands(&a, at(7)), ["runtime:etl deny"], "b's was written last");
    assert_eq!(stands(&b, at(7)), ["runtime:etl deny"]);
}

#[test]
fn a_rule_made_while_the_primary_was_away_is_written_when_it_is_back() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(0));
    assert_eq!(stands(&a, at(600)), ["runtime:etl hold"]);
    table.visit(&mut a, at(600));
    table.visit(&mut b, at(601));
    assert_eq!(stands(&b, at(601)), ["runtime:etl hold"]);
    assert_eq!(stands(&b, at(3_599)), ["runtime:etl hold"]);
    let _ = b.pass_time(at(3_600));
    assert_eq!(b.len(), 0, "an hour after it was made");
}

#[test]
fn a_failover_to_a_replica_that_was_behind_loses_neither_rules_nor_liftings() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "old", HOLD, 1, at(0));
    table.visit(&mut a, at(0));
    let (behind, counter) = (table.rows.clone(), table.counter);
    make(&mut a, "new", HOLD, 2, at(1));
    assert_eq!(lift(&mut a, "old", at(1)), 1);
    table.visit(&mut a, at(1));
    table.visit(&mut b, at(1));
    // The new primary has only the first of it.
    let mut table = Table { rows: behind, counter };
    make(&mut b, "other", DENY, 3, at(2));
    table.visit(&mut b, at(3));
    table.visit(&mut a, at(3));
    table.visit(&mut b, at(4));
    table.visit(&mut a, at(4));
    for ledger in [&a, &b] {
        assert_eq!(stands(ledger, at(4)), ["runtime:new hold", "runtime:other deny"]);
    }
    let mut third = Ledger::default();
    table.show(&mut third, at(5));
    assert_eq!(stands(&third, at(5)), ["runtime:new hold", "runtime:other deny"]);
    assert!(table.counter > 3, "versions never go back");
    let settled = table.counter;
    table.visit(&mut a, at(6));
    table.visit(&mut b, at(6));
    assert_eq!(table.counter, settled, "and it comes to rest");
}

#[test]
fn what_is_written_again_does_not_replace_what_came_meanwhile() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(0));
    table.visit(&mut a, at(0));
    table.show(&mut b, at(0));
    // All is lost; both see it, and b lifts before a has written.
    let mut table = Table::default();
    table.show(&mut a, at(1));
    table.show(&mut b, at(1));
    assert_eq!(lift(&mut b, "etl", at(1)), 1);
    table.bring(&mut b, at(1));
    table.bring(&mut a, at(1));
    table.visit(&mut a, at(2));
    table.visit(&mut b, at(2));
    assert_eq!((stands(&a, at(2)), stands(&b, at(2))), (vec![], vec![]));
}

#[test]
fn a_write_whose_answer_was_lost_is_known_by_its_row_and_a_lifting_of_it_counts() {
    let (mut table, mut a, mut b) = (Table::default(), Ledger::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(0));
    let unanswered = a.clone();
    table.visit(&mut a, at(0));
    let mut a = unanswered;
    table.show(&mut b, at(1));
    assert_eq!(lift(&mut b, "etl", at(1)), 1);
    table.bring(&mut b, at(1));
    table.visit(&mut a, at(2));
    table.visit(&mut b, at(3));
    assert_eq!((stands(&a, at(3)), stands(&b, at(3))), (vec![], vec![]));
}

#[test]
fn the_primarys_clock_says_how_long_a_rule_stands() {
    let (mut table, mut a) = (Table::default(), Ledger::default());
    make(&mut a, "etl", HOLD, 1, at(0));
    table.visit(&mut a, at(0));
    // A restart with a clock that is forty minutes ahead.
    let kept = a.all(at(0)).remove(0);
    let mut restarted = Ledger::default();
    let late = Kept { left: Duration::from_secs(1_200), ..kept };
    let _ = restarted.restore(late, at(10));
    table.show(&mut restarted, at(10));
    let cluster = Arc::from("main");
    let about = About { cluster: &cluster, mode: Mode::Enforce, now: at(10) };
    assert_eq!(restarted.standing(about)[0].left, Duration::from_secs(3_590));
}

#[test]
fn a_wall_clock_that_jumps_moves_the_second_and_not_the_end() {
    let mut ledger = Ledger::default();
    let _ = ledger.pass_time(at(0));
    make(&mut ledger, "etl", HOLD, 1, at(0));
    let jumped = Now { unix_ms: at(0).unix_ms + 86_400_000, ..at(10) };
    assert_eq!(ledger.pass_time(jumped), Changed::Yes);
    let rule = ledger.entries["runtime:etl"].rule.clone();
    assert_eq!(rule.expires_at(), jumped.after(Duration::from_secs(3_590)));
    assert_eq!(ledger.pass_time(jumped), Changed::No);
}

#[test]
fn the_closest_rule_comes_first_and_of_those_the_newest() {
    let mut ledger = Ledger::default();
    for (second, app) in [(0, "etl"), (1, "*"), (2, "et*"), (3, "web")] {
        make(&mut ledger, app, HOLD, second, at(second));
    }
    let file = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\n";
    let file = policy::load(file).unwrap();
    let policy = file.clusters[0].with_runtime_changes(ledger.take_changes());
    let names: Vec<String> = policy.rules.iter().map(|rule| rule.name.to_string()).collect();
    assert_eq!(names[..2], ["runtime:web", "runtime:etl"]);
    assert!(names[2].starts_with("runtime:et_.") && names[3].starts_with("runtime:_."));
}

#[test]
fn only_what_stands_otherwise_is_put_in_force_again() {
    let mut ledger = Ledger::default();
    let changes = |ledger: &mut Ledger| -> Vec<String> {
        let name = |change: RuntimeChange| match change {
            RuntimeChange::Stands(rule) => format!("+{}", rule.name()),
            RuntimeChange::Gone(name) => format!("-{name}"),
        };
        let mut changes: Vec<String> = ledger.take_changes().into_iter().map(name).collect();
        changes.sort();
        changes
    };
    let _ = ledger.pass_time(at(0));
    make(&mut ledger, "etl", HOLD, 1, at(0));
    make(&mut ledger, "web", HOLD, 2, at(60));
    assert_eq!(changes(&mut ledger), ["+runtime:etl", "+runtime:web"]);
    assert_eq!(changes(&mut ledger), [""; 0]);
    make(&mut ledger, "etl", RuntimeEffect::Deny, 3, at(61));
    assert_eq!(changes(&mut ledger), ["+runtime:etl"]);
    let cluster: Arc<str> = "a".into();
    let about = About { cluster: &cluster, mode: admission::Mode::Enforce, now: at(62) };
    assert_eq!(ledger.lift(&Lift::of_app("etl"), "bob", about).len(), 1);
    assert_eq!(changes(&mut ledger), ["-runtime:etl"]);
    assert_eq!(ledger.pass_time(at(60 + 3_600)), Changed::Yes);
    assert_eq!(changes(&mut ledger), ["-runtime:web"]);
}

#[test]
fn a_row_that_is_not_understood_has_no_effect_and_nothing_else_suffers() {
    let mut ledger = Ledger::default();
    let row = |name: &str, version, body: &str| ReadRow {
        name: name.to_owned(),
        version,
        left: Duration::from_secs(60),
        lifted: false,
        author: "eve".to_owned(),
        body: body.to_owned(),
    };
    let draft = RuleDraft::of_app("etl", HOLD);
    let good = RuleBody::new(&draft, 1, 0).text();
    let rows = vec![
        row("runtime:a", 1, "no JSON"),
        row("runtime:b", 2, r#"{"format":2,"new":true}"#),
        row("runtime:c", 3, &good),
        row("runtime:etl", 4, &good),
        row("", 5, &good.replace("\"etl\"", "\"\"")),
        row("runtime:x", 6, &good.replace("\"etl\"", "\"x\"").replace("hold", "explode")),
        row(
            "runtime:y",
            7,
            &good.replace("\"etl\"", "\"y\"").replace("\"id\"", "\"tenant\":1,\"id\""),
        ),
    ];
    let _ = ledger.merge(Reading::Everything { rows, counter: 7 }, at(0));
    assert_eq!(stands(&ledger, at(0)), ["runtime:etl hold"]);
    assert_eq!(ledger.position(), (7, 7));
}

#[test]
fn a_cluster_has_a_bound_and_lifted_rules_do_not_count() {
    let mut ledger = Ledger::default();
    for number in 0..RULES_MAX {
        make(&mut ledger, &format!("app{number}"), HOLD, 1, at(0));
    }
    assert!(!ledger.has_room_for("runtime:one-more"));
    assert!(ledger.has_room_for("runtime:app7"), "it replaces one");
    assert_eq!(lift(&mut ledger, "app7", at(0)), 1);
    assert!(ledger.has_room_for("runtime:one-more"));
    for number in 0..RULES_MAX {
        let app = format!("b{number}");
        let body = RuleBody::new(&RuleDraft::of_app(app, HOLD), 1, 0);
        let left = Duration::from_secs(60);
        let kept = Kept { body, author: String::new(), lifted: true, left, version: Some(1) };
        let _ = ledger.restore(kept, at(0));
    }
    assert_eq!(ledger.len(), ENTRIES_MAX);
    make(&mut ledger, "last", HOLD, 1, at(0));
    assert_eq!(ledger.len(), ENTRIES_MAX);
    assert!(stands(&ledger, at(0)).contains(&"runtime:last hold".to_owned()));
}

#[test]
fn a_row_that_stands_longer_than_a_rule_may_has_no_effect_and_ends_no_later() {
    let mut table = Table::default();
    let mut ledger = Ledger::default();
    make(&mut ledger, "etl", HOLD, 1, at(0));
    table.visit(&mut ledger, at(0));
    let far = 100 * 365 * 24 * 3_600;
    let (mut forged, _) = table.rows["runtime:etl"].clone();
    table.rows.get_mut("runtime:etl").unwrap().1 = far;
    forged.name = "runtime:job".to_owned();
    forged.body = forged.body.replace("\"etl\"", "\"job\"");
    forged.version = 2;
    table.counter = 2;
    table.rows.insert(forged.name.clone(), (forged, far));
    table.show(&mut ledger, at(10));
    assert_eq!(stands(&ledger, at(10)), ["runtime:etl hold"]);
    table.show(&mut ledger, at(3_599));
    let _ = ledger.pass_time(at(3_601));
    table.show(&mut ledger, at(3_601));
    assert_eq!(stands(&ledger, at(3_601)), Vec::<String>::new());
}

#[test]
fn a_table_with_more_rows_than_rules_may_be_fills_no_memory_and_no_log() {
    let mut ledger = Ledger::default();
    let row = |app: usize, body: &RuleBody| ReadRow {
        name: body.name(),
        version: u64::try_from(app).unwrap(),
        left: Duration::from_secs(60),
        lifted: false,
        author: "x".to_owned(),
        body: body.text(),
    };
    let rows: Vec<ReadRow> = (0..ENTRIES_MAX + 500)
        .map(|app| {
            let draft = RuleDraft::of_app(format!("app{app}"), HOLD);
            row(app, &RuleBody::new(&draft, 1, 0))
        })
        .collect();
    let counter = 1_000_000;
    let _ = ledger.merge(Reading::Everything { rows: rows.clone(), counter }, at(0));
    assert_eq!(ledger.len(), ENTRIES_MAX);
    let bad = |row: &ReadRow| ReadRow { body: String::new(), ..row.clone() };
    let bad: Vec<ReadRow> = rows.iter().take(500).map(bad).collect();
    let mut ledger = Ledger::default();
    for _ in 0..3 {
        let reading = Reading::Everything { rows: bad.clone(), counter };
        assert_eq!(ledger.merge(reading, at(0)), Changed::No);
        assert_eq!(ledger.told.len(), TOLD_MAX);
    }
    let _ = ledger.merge(Reading::Everything { rows: Vec::new(), counter }, at(0));
    assert!(ledger.told.is_empty());
}

#[test]
fn the_last_version_there_is_does_not_outlive_a_restart() {
    for version in [u64::MAX >> 1, (u64::MAX >> 1) - 7] {
        let mut ledger = Ledger::default();
        let body = RuleBody::new(&RuleDraft::of_app("etl", DENY), 1, 0);
        let left = Duration::from_secs(60);
        let kept =
            Kept { body, author: "x".to_owned(), lifted: false, left, version: Some(version) };
        let _ = ledger.restore(kept, at(0));
        assert_eq!((stands(&ledger, at(0)), ledger.position()), (vec![denied()], (0, 0)));
        // It is written anew, at the beginning of a table that is new.
        let mut table = Table::default();
        table.visit(&mut ledger, at(0));
        assert_eq!(table.rows["runtime:etl"].0.version, 1);
    }
}

fn denied() -> String {
    "runtime:etl deny".to_owned()
}
