//! The windows: one that counts, and those that are over.
//!
//! A minute is counted in a sketch; when it is over its rows are sealed, and added to the sketch of
//! its ten minutes. An hour of minutes and a day of ten minutes are kept. Windows without a
//! statement are not kept. A clock that is put back goes on in the window that counts.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kept::{Kept, KeptRow, Mark, Restored};
use crate::record::Record;
use crate::sketch::{Key, Sketch};
use crate::stats::Stats;

/// A time of the wall clock, in milliseconds since 1970.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Time(pub u64);

impl Time {
    /// So many seconds earlier.
    #[must_use]
    pub fn before(self, seconds: u64) -> Self {
        Self(self.0.saturating_sub(seconds.saturating_mul(1_000)))
    }

    fn window(self, len_ms: u64) -> u64 {
        self.0.checked_div(len_ms).unwrap_or_default()
    }
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Length {
    /// Kept for an hour.
    Minute,
    /// Kept for a day.
    TenMinutes,
}

impl Length {
    /// In minutes.
    #[must_use]
    pub fn minutes(self) -> u8 {
        match self {
            Self::Minute => 1,
            Self::TenMinutes => 10,
        }
    }

    /// Of so many minutes.
    #[must_use]
    pub fn of_minutes(minutes: i64) -> Option<Self> {
        [Self::Minute, Self::TenMinutes].into_iter().find(|it| i64::from(it.minutes()) == minutes)
    }

    fn ms(self) -> u64 {
        u64::from(self.minutes()).saturating_mul(MINUTE_MS)
    }

    /// When the window began that this time is in.
    pub(crate) fn begin(self, time: Time) -> Time {
        start_of(time, self.ms())
    }

    /// How many places one of these has.
    pub(crate) fn places(self, of_a_minute: usize) -> usize {
        match self {
            Self::Minute => of_a_minute,
            Self::TenMinutes => places_of_ten(of_a_minute),
        }
    }
}

/// Milliseconds of the short windows.
pub(crate) const MINUTE_MS: u64 = 60_000;

/// How far back minutes go.
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Milliseconds of the long ones.
pub(crate) const TEN_MINUTES_MS: u64 = 600_000;

/// Short windows that are kept: an hour, and the minute that has begun before it.
pub(crate) const MINUTES_MAX: usize = 61;

/// Long windows that are kept: a day, and the one that has begun before it.
const TENS_MAX: usize = 145;

/// Of the places of a minute, the part that ten minutes have.
const PLACES_OF_TEN: usize = 4;

/// Places that ten minutes have at least.
const PLACES_OF_TEN_MIN: usize = 100;

/// A window that is over.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) begun: Time,
    pub(crate) rows: Vec<(Key, Stats)>,
    /// Another run's.
    is_others: bool,
}

impl Sealed {
    fn of(begun: Time, sketch: &Sketch) -> Self {
        let mut rows = sketch.rows();
        rows.iter_mut().for_each(|(_, stats)| stats.shrink());
        rows.shrink_to_fit();
        Self { begun, rows, is_others: false }
    }

    /// What others have counted.
    pub(crate) fn of_others(begun: Time, sketch: &Sketch) -> Self {
        Self { is_others: true, ..Self::of(begun, sketch) }
    }

    fn kept(&self, run: i64, length: Length) -> Kept {
        let rows = self.rows.iter().map(|(key, stats)| KeptRow(*key, stats.clone())).collect();
        Kept { run, length, begun: self.begun, rows }
    }
}

/// All windows.
#[derive(Debug)]
pub(crate) struct Windows {
    places: usize,
    seed: u64,
    /// When the first statement that is known of was counted, or could have been.
    since: Time,
    minute: Current,
    ten: Current,
    minutes: VecDeque<Arc<Sealed>>,
    tens: VecDeque<Arc<Sealed>>,
}

#[derive(Debug)]
struct Current {
    begun: Time,
    sketch: Sketch,
}

impl Windows {
    pub(crate) fn new(places: usize, seed: u64, now: Time) -> Self {
        let current = |places: usize, len_ms: u64| Current {
            begun: start_of(now, len_ms),
            sketch: Sketch::new(places, seed),
        };
        Self {
            places,
            seed,
            since: now,
            minute: current(places, MINUTE_MS),
            ten: current(places_of_ten(places), TEN_MINUTES_MS),
            minutes: VecDeque::new(),
            tens: VecDeque::new(),
        }
    }

    /// Other windows have so many places.
    pub(crate) fn set_places(&mut self, places: usize) {
        self.places = places;
    }

    pub(crate) fn observe(&mut self, record: &Record, at: Time) {
        self.minute.sketch.observe(record, at);
    }

    /// Adds what nobody knows more of.
    pub(crate) fn observe_rest(&mut self, key: Key, stats: &Stats) {
        self.minute.sketch.merge_rest(key, stats);
    }

    /// Seals what is over by now.
    pub(crate) fn advance(&mut self, now: Time) {
        if now.window(MINUTE_MS) <= self.minute.begun.window(MINUTE_MS) {
            return;
        }
        let Self { places, seed, .. } = *self;
        let next = |places: usize, len_ms: u64| Current {
            begun: start_of(now, len_ms),
            sketch: Sketch::new(places, seed),
        };
        let minute = std::mem::replace(&mut self.minute, next(places, MINUTE_MS));
        if !minute.sketch.is_empty() {
            let sealed = Sealed::of(minute.begun, &minute.sketch);
            for (key, stats) in &sealed.rows {
                self.ten.sketch.merge(*key, stats);
            }
            self.minutes.push_back(Arc::new(sealed));
        }
        if now.window(TEN_MINUTES_MS) > self.ten.begun.window(TEN_MINUTES_MS) {
            let following = next(places_of_ten(places), TEN_MINUTES_MS);
            let ten = std::mem::replace(&mut self.ten, following);
            if !ten.sketch.is_empty() {
                self.tens.push_back(Arc::new(Sealed::of(ten.begun, &ten.sketch)));
            }
        }
        let kept = |len_ms: u64, max: usize| {
            let count = u64::try_from(max).unwrap_or(u64::MAX);
            now.window(len_ms).saturating_sub(count)
        };
        let (minute, ten) = (kept(MINUTE_MS, MINUTES_MAX), kept(TEN_MINUTES_MS, TENS_MAX));
        self.minutes.retain(|sealed| sealed.begun.window(MINUTE_MS) >= minute);
        self.tens.retain(|sealed| sealed.begun.window(TEN_MINUTES_MS) >= ten);
    }

    /// The windows that have a part between the two times, the one that counts last. Those are
    /// minutes where they go back that far, and ten minutes else.
    pub(crate) fn between(&self, from: Time, to: Time) -> (Time, Vec<Arc<Sealed>>) {
        let now = self.minute.begun;
        let in_minutes = now.0.saturating_sub(from.0) <= HOUR_MS;
        let mut pieces: Vec<Arc<Sealed>> = Vec::new();
        let len_ms = if in_minutes { MINUTE_MS } else { TEN_MINUTES_MS };
        let overlaps = |begun: Time| begun <= to && begun.0.saturating_add(len_ms) > from.0;
        if in_minutes {
            pieces.extend(self.minutes.iter().filter(|piece| overlaps(piece.begun)).cloned());
        } else {
            pieces.extend(self.tens.iter().filter(|piece| overlaps(piece.begun)).cloned());
            if overlaps(self.ten.begun) && !self.ten.sketch.is_empty() {
                pieces.push(Arc::new(Sealed::of(self.ten.begun, &self.ten.sketch)));
            }
        }
        if now <= to && !self.minute.sketch.is_empty() {
            pieces.push(Arc::new(Sealed::of(now, &self.minute.sketch)));
        }
        (start_of(from, len_ms), pieces)
    }

    /// The same of a time that is over, which ends before the window that `to` is in: who looks from
    /// then on to now sees all of that one, and nothing shall be in both.
    pub(crate) fn over(&self, from: Time, to: Time) -> (Time, Time, Vec<Arc<Sealed>>) {
        let in_minutes = self.minute.begun.0.saturating_sub(from.0) <= HOUR_MS;
        let len_ms = if in_minutes { MINUTE_MS } else { TEN_MINUTES_MS };
        let end = start_of(to, len_ms);
        let begin = from.min(Time(end.0.saturating_sub(len_ms)));
        let (begin, pieces) = self.between(begin, Time(end.0.saturating_sub(1)));
        (begin, end, pieces)
    }

    /// What is over, began behind the mark, and was counted here.
    pub(crate) fn to_keep(&self, run: i64, mark: &mut Mark) -> Vec<Kept> {
        let behind = |sealed: &&Arc<Sealed>, mark: Time| !sealed.is_others && sealed.begun > mark;
        let minutes = self.minutes.iter().filter(|sealed| behind(sealed, mark.minute));
        let tens = self.tens.iter().filter(|sealed| behind(sealed, mark.ten));
        let kept: Vec<Kept> = minutes
            .map(|sealed| sealed.kept(run, Length::Minute))
            .chain(tens.map(|sealed| sealed.kept(run, Length::TenMinutes)))
            .collect();
        for Kept { length, begun, .. } in &kept {
            let mark = match length {
                Length::Minute => &mut mark.minute,
                Length::TenMinutes => &mut mark.ten,
            };
            *mark = (*mark).max(*begun);
        }
        kept
    }

    /// What has begun and is not over.
    pub(crate) fn unfinished(&self, run: i64) -> Vec<Kept> {
        let minute = Sealed::of(self.minute.begun, &self.minute.sketch);
        let mut ten = Sketch::new(places_of_ten(self.places), self.seed);
        let rows = self.ten.sketch.rows().into_iter().chain(minute.rows.iter().cloned());
        rows.for_each(|(key, stats)| ten.merge(key, &stats));
        let ten = Sealed::of(self.ten.begun, &ten);
        let both = [minute.kept(run, Length::Minute), ten.kept(run, Length::TenMinutes)];
        both.into_iter().filter(|kept| !kept.rows.is_empty()).collect()
    }

    /// Windows of other runs. What is too old goes with the next minute.
    pub(crate) fn restore(&mut self, restored: Restored) {
        let is_past = |sealed: &Sealed| sealed.begun <= self.minute.begun;
        let Restored { minutes, tens, at_once: _ } = restored;
        let rows = minutes.iter().chain(&tens).flat_map(|sealed| &sealed.rows);
        let first = rows.filter_map(|(_, stats)| stats.first_seen).min();
        self.since = first.map_or(self.since, |first| first.min(self.since));
        self.minutes.extend(minutes.into_iter().filter(is_past).map(Arc::new));
        self.tens.extend(tens.into_iter().filter(is_past).map(Arc::new));
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// From when on statements are counted.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Every key that some window has.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let sealed = self.minutes.iter().chain(&self.tens).flat_map(|sealed| &sealed.rows);
        let current = self.minute.sketch.keys().chain(self.ten.sketch.keys());
        sealed.map(|(key, _)| *key).chain(current)
    }
}

fn start_of(time: Time, len_ms: u64) -> Time {
    Time(time.window(len_ms).saturating_mul(len_ms))
}

fn places_of_ten(places: usize) -> usize {
    (places / PLACES_OF_TEN).max(PLACES_OF_TEN_MIN.min(places))
}
