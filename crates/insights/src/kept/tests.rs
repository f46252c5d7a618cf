#![expect(clippy::arithmetic_side_effects, reason = "numbers of test data")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{By, Filter, Insights, Look, Record, View, name_hash};

const START: u64 = 1_700_000_000_000 / 600_000 * 600_000;
const DAY_S: u64 = 86_400;

/// What is on disk.
type Store = BTreeMap<(i64, Length, Time), String>;

/// A process.
struct Run {
    insights: Insights,
    run: i64,
    mark: Mark,
    past: Past,
    told: HashSet<u64>,
    names: Vec<(u64, KeptName)>,
}

impl Run {
    fn new(run: i64, now: u64) -> Self {
        let mut insights = Insights::new(100, 7, Time(now));
        insights.learn(Learned::Name { hash: name_hash(b"etl"), name: b"etl".as_slice().into() });
        let (mark, past) = <(Mark, Past)>::default();
        Self { insights, run, mark, past, told: HashSet::new(), names: Vec::new() }
    }

    fn observe(&mut self, count: u64, now: u64) {
        self.insights.advance(Time(now));
        let record = Record { digest: Some(1), server_ns: 5_000_000, ..Record::default() };
        (0..count).for_each(|_| self.insights.observe(&record.of(b"etl", b"shop", b"root")));
    }

    fn keep(&mut self, store: &mut Store, ends: bool) {
        let mut kept = self.insights.over(self.run, &mut self.mark);
        if ends {
            kept.extend(self.insights.unfinished(self.run));
        }
        self.names.extend(self.insights.names(&kept, &mut self.told));
        for Kept { run, length, begun, rows } in kept {
            store.insert((run, length, begun), serde_json::to_string(&rows).unwrap());
        }
    }

    fn take_in(&mut self, store: &Store, names: &[(u64, KeptName)]) {
        let kept = store.iter().filter(|((run, ..), _)| *run != self.run);
        let kept: Vec<Kept> = kept
            .map(|(&(run, length, begun), rows)| {
                let rows = serde_json::from_str(rows).unwrap();
                Kept { run, length, begun, rows }
            })
            .collect();
        let restored = self.past.take_in((&kept, Vec::new()), self.insights.places());
        self.insights.restore(restored, names.to_vec());
    }

    fn view(&self, window_s: u64) -> View {
        let filter = Filter::default();
        self.insights.look(&Look { tag: String::new(), by: By::App, window_s, ago_s: 0, filter })
    }

    /// Of minutes, or of ten minutes.
    fn seen(&self, window_s: u64) -> u64 {
        let view = self.view(window_s);
        assert!(view.rows.iter().all(|row| row.group.app.as_deref() == Some("etl")), "{view:?}");
        view.total.count
    }

    fn seen_both_ways(&self) -> [u64; 2] {
        [self.seen(3_600), self.seen(DAY_S)]
    }
}

#[test]
fn what_a_run_has_counted_is_there_after_it_and_is_kept_once() {
    let mut store = Store::new();
    let mut old = Run::new(1, START);
    for minute in 0..14 {
        old.observe(3, START + minute * 60_000);
        old.keep(&mut store, false);
    }
    old.keep(&mut store, true);
    let mut new = Run::new(2, START + 15 * 60_000);
    assert_eq!(new.view(3_600).counted_from, Time(START + 15 * 60_000));
    new.take_in(&store, &old.names);
    assert_eq!(new.seen_both_ways(), [42, 42]);
    assert_eq!(new.view(3_600).counted_from, Time(START), "the run before has counted");
    new.take_in(&store, &old.names);
    assert_eq!(new.seen_both_ways(), [42, 42], "once more is not twice");
    new.observe(5, START + 16 * 60_000);
    new.observe(0, START + 30 * 60_000);
    let before = store.len();
    new.keep(&mut store, true);
    assert_eq!(store.len(), before + 2, "a minute and ten: nothing of the run before");
    let mut third = Run::new(3, START + 31 * 60_000);
    third.take_in(&store, &old.names);
    assert_eq!(third.seen_both_ways(), [47, 47]);
}

#[test]
fn ten_minutes_of_a_run_that_was_killed_are_made_of_its_minutes() {
    let mut store = Store::new();
    let mut old = Run::new(1, START);
    for minute in 0..4 {
        old.observe(1, START + minute * 60_000);
        old.keep(&mut store, false);
    }
    // Killed in its fourth minute, which is lost; the next begins in the next ten minutes.
    let mut new = Run::new(2, START + 12 * 60_000);
    new.take_in(&store, &old.names);
    assert_eq!(new.seen_both_ways(), [3, 3]);
}

#[test]
fn a_window_of_the_future_is_not_taken_in() {
    let mut store = Store::new();
    let mut old = Run::new(1, START + 7_200_000);
    old.observe(1, START + 7_200_000);
    old.keep(&mut store, true);
    let mut new = Run::new(2, START);
    new.take_in(&store, &old.names);
    assert_eq!(new.seen_both_ways(), [0, 0], "the clock was ahead");
}

#[test]
fn a_sample_is_learned_where_only_the_text_is_known() {
    let mut run = Run::new(1, START);
    let name = KeptName::Digest {
        text: "SELECT ?".into(),
        tables: "\0t\0".into(),
        all_tables: true,
        classes: vec!["read".into()],
        exemption: None,
    };
    run.take_in(&Store::new(), &[(1, name.clone())]);
    run.observe(1, START);
    let look = |run: &Run| {
        let filter = Filter::default();
        let look = Look { tag: String::new(), by: By::Digest, window_s: 60, ago_s: 0, filter };
        run.insights.look(&look).rows.remove(0)
    };
    let row = look(&run);
    assert_eq!((row.text.as_deref(), row.sample), (Some("SELECT ?"), None));
    assert_eq!((row.tables, row.kind.classes), (vec!["t".to_owned()], vec!["read".into()]));
    run.insights.learn(match name.learned(1) {
        Learned::Digest { hash, text, tables, all_tables, kind, sample: _ } => {
            let sample = Some(b"SELECT 1".as_slice().into());
            Learned::Digest { hash, text, tables, all_tables, kind, sample }
        }
        other => other,
    });
    assert_eq!(look(&run).sample.as_deref(), Some("SELECT 1"));
    let mut told = HashSet::new();
    let kept = run.insights.unfinished(1);
    let names = run.insights.names(&kept, &mut told);
    assert!(!format!("{names:?}").contains("SELECT 1"), "values are data: {names:?}");
}

/// How one process gives way to the next.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    /// It ends, and then the next begins.
    Ends,
    /// The next begins, and it goes on for so many statements, so many seconds apart.
    TakenOver(u8, u16),
}

fn leaving() -> impl Strategy<Value = Leaving> {
    prop_oneof![
        Just(Leaving::Ends),
        (0_u8..6, 1_u16..400).prop_map(|(count, gap)| Leaving::TakenOver(count, gap)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_and_nothing_counts_twice(
        runs in prop::collection::vec((leaving(), prop::collection::vec(1_u64..300, 0..12)), 1..8),
    ) {
        let (mut store, mut names) = (Store::new(), Vec::new());
        let (mut now, mut all) = (START, 0);
        let mut run = Run::new(0, now);
        for (number, (leaving, gaps)) in (1..).zip(runs) {
            for gap in gaps {
                now += gap * 1_000;
                run.observe(1, now);
                all += 1;
                run.keep(&mut store, false);
            }
            let mut next = Run::new(number, now);
            if let Leaving::TakenOver(count, gap) = leaving {
                next.take_in(&store, &run.names);
                for _ in 0..count {
                    now += u64::from(gap) * 1_000;
                    for run in [&mut run, &mut next] {
                        run.observe(1, now);
                        run.keep(&mut store, false);
                        all += 1;
                    }
                }
            }
            run.keep(&mut store, true);
            names.append(&mut run.names);
            next.take_in(&store, &names);
            prop_assert_eq!(next.seen(DAY_S), all);
            if now - START < 3_500_000 {
                prop_assert_eq!(next.seen(3_600), all);
            }
            run = next;
        }
    }
}
