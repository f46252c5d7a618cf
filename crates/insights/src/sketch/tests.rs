#![expect(clippy::arithmetic_side_effects, reason = "numbers of test data")]

use proptest::prelude::*;

use super::*;

const NOW: Time = Time(0);

fn statement(digest: u64, micros: u64) -> Record {
    Record { digest: Some(digest), server_ns: micros * 1_000, rows_sent: 1, ..Record::default() }
}

fn sum(rows: &[(Key, Stats)]) -> Stats {
    let mut sum = Stats::default();
    rows.iter().for_each(|(_, stats)| sum.merge(stats));
    sum
}

#[test]
fn what_is_heavy_has_a_row_whatever_comes_between() {
    let mut sketch = Sketch::new(100, 7);
    for n in 0..200_000 {
        sketch.observe(&statement(n + 10, 100), NOW);
        if n % 40 == 0 {
            sketch.observe(&statement(1, 500), NOW);
        }
    }
    let rows = sketch.rows();
    let heavy = rows.iter().find(|(key, _)| key.digest == Digest::Of(1)).expect("it has a row");
    assert_eq!(heavy.1.count, 5_000, "and has kept its place from the beginning");
    let tracked = rows.iter().filter(|(key, _)| key.digest != Digest::Other).count();
    assert!(tracked < 10, "{tracked} rows are believed; each of the others has come once");
    assert_eq!(sum(&rows).count, 205_000);
}

proptest! {
    #[test]
    fn rows_and_rest_are_exact_and_every_heavy_one_has_a_row(
        places in 1_usize..20,
        stream in prop::collection::vec((0_u64..60, 0_u64..5_000), 1..600),
    ) {
        let mut sketch = Sketch::new(places, 3);
        let mut exact = Stats::default();
        let mut weights: HashMap<u64, u64> = HashMap::new();
        for (digest, micros) in &stream {
            let record = statement(*digest, *micros);
            exact.add(&record, NOW);
            *weights.entry(*digest).or_default() += micros + WEIGHT_MIN_US;
            sketch.observe(&record, NOW);
        }
        prop_assert_eq!(sum(&sketch.rows()), exact);
        prop_assert!(sketch.rows.len() <= places);
        let all: u64 = weights.values().sum();
        for (digest, weight) in weights {
            if weight > all / u64::try_from(places).unwrap() {
                let row = sketch.rows.iter().find(|row| row.key.digest == Digest::Of(digest));
                prop_assert!(row.is_some_and(|row| row.weight >= weight));
                prop_assert!(row.is_some_and(|row| row.weight - row.inherited <= weight));
            }
        }
    }
}
