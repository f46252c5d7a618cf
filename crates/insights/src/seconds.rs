//! What an app did in each second: how many of its statements were at the server at once, how many
//! ended, and the rows of these.
//!
//! A record says how long its statement was there and, within half a second, when that was over. So
//! each second of the last two minutes has a bin in which the busy time of its statements is added
//! up: what is in it, by the second, is how many there were on average. When a bin is two minutes old
//! nothing is added to it any more, and it is counted into a histogram of its minute. What ran for
//! longer than two minutes counts for its last two.
//!
//! All of it happens where records are counted, beside the path of any statement.
//!
//! Minutes of other runs stand beside those of this one ([`crate::kept`]). Their seconds add up: where two
//! processes were there at once, as behind a takeover, each second is told of both, by what each had.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::hash::Seeded;
use crate::kept::{KeptMinute, KeptSeconds};
use crate::levels::{BySecond, LEVELS, Levels, SECOND_US, Second};
use crate::record::Record;
use crate::windows::Time;

/// Seconds that have a bin.
const BINS: usize = 128;

/// Apps of which this is known; the first that come in an hour.
const APPS_MAX: usize = 256;

/// Minutes that are kept.
const MINUTES_MAX: usize = 61;

/// What each app did in each second.
#[derive(Debug)]
pub(crate) struct Seconds {
    apps: Vec<App>,
    /// What other runs have kept, by minute and app.
    others: BTreeMap<(u64, u64), Levels>,
    /// Where each app is.
    index: HashMap<u64, usize, Seeded>,
    /// Where the app of the last statement is: that of the next is mostly the same.
    last: usize,
}

#[derive(Debug, Clone)]
struct App {
    app: u64,
    /// What there was in each second, at the second modulo their number.
    bins: [Second; BINS],
    /// The newest second that has a bin.
    newest: u64,
    /// Seconds by level, of each minute.
    minutes: VecDeque<(u64, Levels)>,
}

impl Seconds {
    /// Nothing has come.
    pub(crate) fn new(seed: u64) -> Self {
        let (apps, others) = (Vec::new(), BTreeMap::new());
        Self { apps, others, index: HashMap::with_hasher(Seeded(seed)), last: 0 }
    }

    /// Adds a statement that was over at about this time.
    pub(crate) fn observe(&mut self, record: &Record, at: Time) {
        let second = at.0 / 1_000;
        if !record.ending.is_executed() {
            return;
        }
        let is_last = self.apps.get(self.last).is_some_and(|last| last.app == record.app);
        if !is_last {
            let known = self.index.get(&record.app).copied();
            let Some(at) = known.or_else(|| self.begin(record.app, second)) else { return };
            self.last = at;
        }
        let Some(app) = self.apps.get_mut(self.last) else { return };
        app.go_to(second);
        app.add(record.server_ns / 1_000, at.0.saturating_mul(1_000));
        app.end(record, second);
    }

    /// Makes room for an app, if there is any.
    #[cold]
    fn begin(&mut self, app: u64, second: u64) -> Option<usize> {
        if self.apps.len() >= APPS_MAX {
            let oldest = second.saturating_sub(3_600);
            self.apps.retain(|app| app.newest >= oldest);
            self.index.clear();
            self.index.extend(self.apps.iter().enumerate().map(|(at, app)| (app.app, at)));
        }
        let at = self.apps.len();
        (at < APPS_MAX).then(|| {
            self.apps.push(App::new(app, second));
            self.index.insert(app, at);
            at
        })
    }

    /// What there was between two times, as far as it is kept: for an hour.
    pub(crate) fn between(&self, from: Time, to: Time) -> Vec<(u64, BySecond)> {
        let (first, last) = (from.0 / MINUTE_MS, to.0 / MINUTE_MS);
        let mut sums: BTreeMap<u64, [u64; LEVELS]> = BTreeMap::new();
        let mut add = |app: u64, levels: &Levels| {
            let sum = sums.entry(app).or_insert([0; LEVELS]);
            for (sum, seconds) in sum.iter_mut().zip(levels) {
                *sum = sum.saturating_add(u64::from(*seconds));
            }
        };
        for app in &self.apps {
            let minutes = app.counted(app.newest.saturating_add(count(BINS)));
            let minutes = minutes.iter().filter(|(at, _)| (first..=last).contains(at));
            minutes.for_each(|(_, levels)| add(app.app, levels));
        }
        let others = self.others.range((first, 0)..=(last, u64::MAX));
        others.for_each(|((_, app), levels)| add(*app, levels));
        sums.iter().filter_map(|(app, levels)| Some((*app, BySecond::of(levels)?))).collect()
    }

    /// The apps of which something is known.
    pub(crate) fn apps(&self) -> impl Iterator<Item = u64> {
        let others = self.others.keys().map(|(_, app)| *app);
        self.apps.iter().map(|app| app.app).chain(others)
    }

    /// The minutes behind the mark in which nothing is added any more, and the mark moves on.
    pub(crate) fn over(&self, run: i64, now: Time, mark: &mut Time) -> Vec<KeptMinute> {
        let now = now.0 / 1_000;
        let last = (now.saturating_sub(count(BINS)) / 60).saturating_sub(1);
        let is_new = last > mark.0 / MINUTE_MS;
        if !is_new {
            return Vec::new();
        }
        let over = self.minutes(run, (*mark, last), now);
        *mark = Time(last.saturating_mul(MINUTE_MS));
        over
    }

    /// All minutes behind the mark, for a run that ends.
    pub(crate) fn unfinished(&self, run: i64, mark: Time) -> Vec<KeptMinute> {
        self.minutes(run, (mark, u64::MAX), u64::MAX)
    }

    fn minutes(&self, run: i64, (mark, last): (Time, u64), until: u64) -> Vec<KeptMinute> {
        let first = (mark.0 / MINUTE_MS).saturating_add(1);
        let mut kept: BTreeMap<u64, Vec<KeptSeconds>> = BTreeMap::new();
        for app in &self.apps {
            let until = until.min(app.newest.saturating_add(count(BINS).saturating_mul(2)));
            for (minute, levels) in app.counted(until) {
                if (first..=last).contains(&minute) {
                    kept.entry(minute).or_default().push(KeptSeconds::of(app.app, &levels));
                }
            }
        }
        let minute = |(minute, apps): (u64, _)| {
            let begun = Time(minute.saturating_mul(MINUTE_MS));
            KeptMinute { run, begun, apps }
        };
        kept.into_iter().map(minute).collect()
    }

    /// Takes in what other runs have kept, as far as it is to be shown yet.
    pub(crate) fn restore(&mut self, minutes: Vec<KeptMinute>, now: Time) {
        let oldest = (now.0 / MINUTE_MS).saturating_sub(count(MINUTES_MAX));
        for KeptMinute { begun, apps, .. } in minutes {
            let minute = begun.0 / MINUTE_MS;
            for seconds in apps.iter().take(APPS_MAX) {
                let levels = self.others.entry((minute, seconds.app())).or_insert([0; LEVELS]);
                seconds.add_to(levels);
            }
        }
        self.others = self.others.split_off(&(oldest, 0));
    }
}

impl App {
    fn new(app: u64, second: u64) -> Self {
        Self { app, bins: [Second::default(); BINS], newest: second, minutes: VecDeque::new() }
    }

    /// Makes bins up to this second, and counts those that are over.
    fn go_to(&mut self, second: u64) {
        let bins = count(BINS);
        if second.saturating_sub(self.newest) > bins {
            // Everything is over; the bins between were never there.
            for old in self.newest.saturating_add(1).saturating_sub(bins)..=self.newest {
                self.count(old);
            }
            self.newest = second;
            return;
        }
        while self.newest < second {
            self.newest = self.newest.saturating_add(1);
            self.count(self.newest.saturating_sub(bins));
        }
    }

    /// Counts the second whose bin is needed again.
    fn count(&mut self, second: u64) {
        let Some(bin) = self.bins.get_mut(place(second)) else { return };
        for level in std::mem::take(bin).levels() {
            put(&mut self.minutes, second / 60, level);
        }
    }

    /// Adds so many microseconds up to this one.
    fn add(&mut self, busy_us: u64, end_us: u64) {
        let passed_us = end_us.wrapping_sub(self.newest.wrapping_mul(SECOND_US));
        if busy_us <= passed_us && passed_us < SECOND_US {
            // Nearly always: all of it was in the newest second.
            if let Some(bin) = self.bins.get_mut(place(self.newest)) {
                bin.busy_us = bin.busy_us.saturating_add(busy_us);
            }
            return;
        }
        self.add_over_seconds(busy_us, end_us);
    }

    fn add_over_seconds(&mut self, busy_us: u64, end_us: u64) {
        let oldest = self.newest.saturating_add(1).saturating_sub(count(BINS));
        let mut left = busy_us;
        let mut end = end_us;
        while left > 0 {
            // A whole second ends where the next begins.
            let second = end.saturating_sub(1) / SECOND_US;
            if second < oldest {
                return;
            }
            let part = left.min(end.saturating_sub(second.saturating_mul(SECOND_US)));
            if let Some(bin) = self.bins.get_mut(place(second)) {
                bin.busy_us = bin.busy_us.saturating_add(part);
            }
            left = left.saturating_sub(part);
            end = end.saturating_sub(part);
            if part == 0 {
                return;
            }
        }
    }

    /// Counts a statement in the second in which it was over, and the rows of what is more of one.
    fn end(&mut self, record: &Record, second: u64) {
        if self.newest.saturating_sub(second) >= count(BINS) {
            return;
        }
        let Some(bin) = self.bins.get_mut(place(second)) else { return };
        bin.statements = bin.statements.saturating_add(u64::from(!record.ending.is_more_of_one()));
        let rows = record.rows_sent.saturating_add(record.rows_affected);
        bin.rows = bin.rows.saturating_add(rows);
    }

    /// Its minutes as they are when everything up to this second has been counted that has no bin.
    fn counted(&self, until: u64) -> VecDeque<(u64, Levels)> {
        let mut counted = self.clone();
        counted.go_to(until);
        counted.minutes
    }
}

const MINUTE_MS: u64 = 60_000;

fn put(minutes: &mut VecDeque<(u64, Levels)>, minute: u64, level: usize) {
    if minutes.back().is_none_or(|(last, _)| *last < minute) {
        minutes.push_back((minute, [0; LEVELS]));
        if minutes.len() > MINUTES_MAX {
            minutes.pop_front();
        }
    }
    let seconds = minutes.back_mut().and_then(|(_, levels)| levels.get_mut(level));
    if let Some(seconds) = seconds {
        *seconds = seconds.saturating_add(1);
    }
}

fn place(second: u64) -> usize {
    usize::try_from(second.checked_rem(count(BINS)).unwrap_or_default()).unwrap_or_default()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::arithmetic_side_effects, reason = "numbers of test data")]

    use super::*;
    use crate::Ending;
    use crate::levels::{most, p99};

    fn record(app: u64, millis: u64) -> Record {
        Record { app, server_ns: millis * 1_000_000, ..Record::default() }
    }

    fn at_once(seconds: &Seconds, to: u64) -> Vec<(u64, f64, f64)> {
        let apps = seconds.between(Time(0), Time(to * 1_000));
        let mut apps: Vec<(u64, f64, f64)> = apps
            .into_iter()
            .map(|(app, told)| (app, p99(&told.at_once), most(&told.at_once)))
            .collect();
        apps.sort_by_key(|(app, ..)| *app);
        apps
    }

    #[test]
    fn forty_reports_at_once_are_forty_and_one_after_the_other_is_one() {
        let mut seconds = Seconds::new(7);
        for _ in 0..40 {
            seconds.observe(&record(1, 10_000), Time(1_000_000));
        }
        for n in 0..40 {
            seconds.observe(&record(2, 10_000), Time(600_000 + n * 10_000));
        }
        let told = at_once(&seconds, 1_100);
        assert_eq!(told.len(), 2);
        let (app, p99, max) = told[0];
        assert!(app == 1 && (39.0..=48.0).contains(&p99) && p99 == max, "{told:?}");
        assert_eq!(told[1], (2, 1.0, 1.0));
    }

    #[test]
    fn what_came_is_counted_where_it_ended_and_rows_of_a_cursor_without_a_statement() {
        let mut seconds = Seconds::new(7);
        let ended = |rows_sent, ending| Record { rows_sent, ending, ..record(1, 3_000) };
        for second in 0..10_u64 {
            for _ in 0..=second {
                seconds.observe(&ended(2, Ending::Done), Time((10_000 + second) * 1_000));
            }
        }
        seconds.observe(&ended(100, Ending::Fetched), Time(10_020_000));
        seconds.observe(&ended(0, Ending::Refused(1)), Time(10_021_000));
        let (_, told) = &seconds.between(Time(0), Time(10_100_000))[0];
        assert_eq!(told.statements.iter().map(|(_, seconds)| seconds).sum::<u64>(), 10);
        assert_eq!((told.statements[0], most(&told.statements)), ((1.0, 1), 12.0));
        assert_eq!((told.rows[0], most(&told.rows)), ((2.0, 1), 108.0));
    }

    #[test]
    fn a_rare_peak_is_the_most_and_not_the_99th_percentile() {
        let mut seconds = Seconds::new(7);
        for second in 0..1_000_u64 {
            let each = if second == 500 { 20 } else { 3 };
            for _ in 0..each {
                seconds.observe(&record(1, 900), Time((10_000 + second) * 1_000));
            }
        }
        let (_, p99, max) = at_once(&seconds, 11_100)[0];
        assert!((2.0..=3.0).contains(&p99), "{p99}");
        assert!((18.0..=20.0).contains(&max), "{max}");
    }

    #[test]
    fn what_another_run_has_kept_stands_beside_what_came_here() {
        let mut old = Seconds::new(7);
        for _ in 0..4 {
            old.observe(&record(1, 50_000), Time(110_000));
        }
        let mut mark = Time(0);
        assert_eq!(old.over(1, Time(200_000), &mut mark), [], "the minute has bins yet");
        let kept = old.over(1, Time(310_000), &mut mark);
        assert_eq!(kept.iter().map(|minute| minute.begun).collect::<Vec<_>>(), [Time(60_000)]);
        assert_eq!(old.over(1, Time(310_000), &mut mark), [], "once");
        old.observe(&record(2, 20_000), Time(330_000));
        let ends = old.unfinished(1, mark);
        assert_eq!(ends.iter().map(|minute| minute.begun).collect::<Vec<_>>(), [Time(300_000)]);

        let mut new = Seconds::new(8);
        new.observe(&record(1, 500), Time(400_000));
        new.restore([kept, ends].concat(), Time(401_000));
        assert_eq!(at_once(&new, 400), [(1, 4.0, 4.0), (2, 1.0, 1.0)]);
        assert_eq!(at_once(&new, 401).len(), 2);
        assert_eq!(new.unfinished(2, Time(0)).len(), 1, "what is taken in is never kept again");
        new.restore(Vec::new(), Time(9_000_000));
        assert_eq!(at_once(&new, 9_000), [(1, 1.0, 1.0)], "what is too old is gone");
    }

    #[test]
    fn what_was_an_hour_ago_and_the_257th_app_are_not_kept() {
        let mut seconds = Seconds::new(7);
        for app in 0..300 {
            seconds.observe(&record(app, 100), Time(1_000_000));
        }
        assert_eq!(seconds.apps().count(), APPS_MAX);
        seconds.observe(&record(7_000, 100), Time(9_000_000));
        assert_eq!(seconds.apps().collect::<Vec<_>>(), [7_000]);
        assert!(seconds.between(Time(0), Time(2_000_000)).is_empty());
        // A clock that is put back, and a statement of a year.
        seconds.observe(&record(7_000, 31_000_000_000), Time(8_999_000));
        assert_eq!(at_once(&seconds, 9_000), [(7_000, 1.0, 1.0)]);
    }
}
