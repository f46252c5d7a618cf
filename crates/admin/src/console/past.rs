//! The last hour, so that plots have a past when the page opens: a reading a second for ten
//! minutes, and before that one for ten seconds. Bounded, and gone with the process.

use std::collections::VecDeque;

use super::reading::{Reading, SignalReading};

/// Readings that are kept as they are: ten minutes of them.
const FINE_LEN: usize = 600;

/// Readings that become one.
const MERGED_LEN: usize = 10;

/// Merged readings that are kept: with the fine ones an hour.
const COARSE_LEN: usize = 300;

/// What was read of one cluster, oldest first.
#[derive(Debug, Default)]
pub(super) struct Past {
    coarse: VecDeque<Reading>,
    /// Those that are not enough to be merged yet.
    leaving: Vec<Reading>,
    fine: VecDeque<Reading>,
}

impl Past {
    pub(super) fn push(&mut self, reading: Reading) {
        self.fine.push_back(reading);
        if self.fine.len() <= FINE_LEN {
            return;
        }
        self.leaving.extend(self.fine.pop_front());
        if self.leaving.len() < MERGED_LEN {
            return;
        }
        self.coarse.extend(merge(&std::mem::take(&mut self.leaving)));
        if self.coarse.len() > COARSE_LEN {
            self.coarse.pop_front();
        }
    }

    pub(super) fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.coarse.iter().chain(&self.leaving).chain(&self.fine)
    }
}

/// One for all: what is worst stays to be seen, rates are their means.
fn merge(readings: &[Reading]) -> Option<Reading> {
    let last = readings.last()?;
    let signal = |last: &SignalReading| {
        let same = || {
            let signals = readings.iter().flat_map(|reading| &reading.signals);
            signals.filter(|signal| signal.name == last.name)
        };
        SignalReading {
            name: last.name.clone(),
            value: highest(same().filter_map(|signal| signal.value)),
            threshold: last.threshold,
            open: same().all(|signal| signal.open),
        }
    };
    let most = |of: fn(&Reading) -> u64| readings.iter().map(of).max().unwrap_or_default();
    let high = |of: fn(&Reading) -> Option<f64>| highest(readings.iter().filter_map(of));
    let mean = |of: fn(&Reading) -> Option<f64>| mean(readings.iter().filter_map(of));
    Some(Reading {
        at_s: last.at_s,
        signals: last.signals.iter().map(signal).collect(),
        pace: mean(|reading| reading.pace),
        applied: mean(|reading| reading.applied),
        written: mean(|reading| reading.written),
        served: mean(|reading| reading.served),
        refused: mean(|reading| reading.refused),
        waiting: most(|reading| reading.waiting),
        in_flight: most(|reading| reading.in_flight),
        oldest: high(|reading| reading.oldest),
        p50: high(|reading| reading.p50),
        p99: high(|reading| reading.p99),
    })
}

fn highest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(second: u32) -> Reading {
        let signal = |name: &str, open| SignalReading {
            name: name.into(),
            value: Some(f64::from(second)),
            threshold: 1.0,
            open,
        };
        Reading {
            at_s: f64::from(second),
            signals: vec![signal("lag", second % 10 != 4)],
            pace: second.is_multiple_of(2).then_some(100.0),
            waiting: u64::from(second % 10),
            served: Some(f64::from(second % 10)),
            ..Reading::default()
        }
    }

    #[test]
    fn it_is_an_hour_and_no_more() {
        let mut past = Past::default();
        for second in 0..20_000 {
            past.push(reading(second));
        }
        let times: Vec<f64> = past.readings().map(|reading| reading.at_s).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        let (first, last) = (times.first().unwrap(), times.last().unwrap());
        assert!((3_590.0..=3_620.0).contains(&(last - first)), "{first} to {last}");
        assert!(times.len() <= FINE_LEN + MERGED_LEN + COARSE_LEN, "{}", times.len());
        assert_eq!(*last, 19_999.0);
    }

    #[test]
    fn nothing_is_lost_on_the_way_from_fine_to_coarse() {
        let mut past = Past::default();
        for second in 0..615 {
            past.push(reading(second));
            let last = past.readings().last().unwrap();
            assert_eq!(last.at_s, f64::from(second));
        }
        // Fifteen have left: ten of them merged, five still as they were.
        let times: Vec<f64> = past.readings().take(7).map(|reading| reading.at_s).collect();
        assert_eq!(times, [9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
    }

    #[test]
    fn a_merged_reading_shows_the_worst_and_rates_as_means() {
        let ten: Vec<Reading> = (10..20).map(reading).collect();
        let merged = merge(&ten).unwrap();
        assert_eq!((merged.at_s, merged.waiting), (19.0, 9));
        assert_eq!((merged.pace, merged.served, merged.p99), (Some(100.0), Some(4.5), None));
        let [lag] = &*merged.signals else { panic!("{merged:?}") };
        assert_eq!((lag.value, lag.open), (Some(19.0), false), "it was shut for a second");
        assert_eq!(merge(&[]), None);
    }

    #[test]
    fn a_signal_that_is_new_has_only_its_own_values() {
        let mut ten: Vec<Reading> = (10..20).map(reading).collect();
        let fresh =
            SignalReading { name: "fresh".into(), value: Some(7.0), threshold: 9.0, open: true };
        ten.last_mut().unwrap().signals.push(fresh.clone());
        assert_eq!(merge(&ten).unwrap().signals[1], fresh);
    }
}
