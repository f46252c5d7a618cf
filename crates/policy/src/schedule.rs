//! When a rule is in force.
//!
//! Theory. A schedule says what the wall clock of some place must show, and is asked nothing else:
//! at every moment the time there is worked out from the zone's rules and looked up in days and
//! hours. So it stays right over daylight saving without any case of its own: hours that are
//! skipped do not occur, hours that occur twice are in force twice, and a span that ends at six
//! ends when the clock there shows six. A span over midnight belongs to the day on which it begins.
//!
//! Zones come from the database that is compiled in, so that a file means the same on every
//! machine.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::time::UnixTime;

/// When a rule is in force: within one of its windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub(crate) windows: Vec<Window>,
}

/// Days and hours of one time zone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) zone: TimeZone,
    pub(crate) days: Days,
    pub(crate) spans: Vec<Span>,
}

/// Days of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Days(u8);

/// Hours of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Minutes after midnight, below [`DAY_MINUTES`].
    pub(crate) from: u16,
    /// Minutes after midnight; not above `from`: of the next day. At most [`DAY_MINUTES`].
    pub(crate) to: u16,
}

/// Minutes of a day as the clock counts them.
pub(crate) const DAY_MINUTES: u16 = 1_440;

impl Schedule {
    /// Whether it is in force.
    #[must_use]
    pub fn is_in_force(&self, now: UnixTime) -> bool {
        self.windows.iter().any(|window| window.holds(now))
    }

    /// Whether it is in force at all of a time, or at none of it. Of more than a week it is not
    /// found out: then it is not.
    pub(crate) fn is_steady(&self, from: UnixTime, until: UnixTime) -> bool {
        let first = self.is_in_force(from);
        let mut at = from;
        for _ in 0..7 * u32::from(DAY_MINUTES) {
            at = Self::next_change_after(at);
            if at > until {
                return true;
            }
            if self.is_in_force(at) != first {
                return false;
            }
        }
        false
    }

    /// The first second after `now` in which it is not in force. `None`: that is more than three
    /// days away, which is further than anybody waits, and as far as is looked.
    pub(crate) fn end_after(&self, now: UnixTime) -> Option<UnixTime> {
        const LOOKS: u32 = 3 * 24 * 60;
        let mut at = now;
        (0..LOOKS).find_map(|_| {
            at = Self::next_change_after(at);
            (!self.is_in_force(at)).then_some(at)
        })
    }

    /// What is in force whenever one of these is.
    pub(crate) fn any_of<'s>(schedules: impl Iterator<Item = &'s Self>) -> Self {
        Self { windows: schedules.flat_map(|schedule| schedule.windows.clone()).collect() }
    }

    /// Whether it is in force whenever another one is; `None` is always. Hours of different zones
    /// are not compared: it may be, and the answer is no.
    pub(crate) fn covers(&self, other: Option<&Self>) -> bool {
        let holds = |zone: &TimeZone, day: u8, minute: u16| {
            let mut same = self.windows.iter().filter(|window| window.zone == *zone);
            same.any(|window| window.holds_at(day, minute))
        };
        let week = || (0..7_u8).flat_map(|day| (0..DAY_MINUTES).map(move |minute| (day, minute)));
        match other {
            None => self
                .windows
                .iter()
                .any(|own| week().all(|(day, minute)| holds(&own.zone, day, minute))),
            Some(other) => other.windows.iter().all(|window| {
                let mut times = week().filter(|(day, minute)| window.holds_at(*day, *minute));
                times.all(|(day, minute)| holds(&window.zone, day, minute))
            }),
        }
    }

    /// The first second after `now` in which a schedule, whichever it is, can begin or end: whole
    /// minutes, for spans are in minutes and so have been all offsets of time zones since 1972.
    pub(crate) fn next_change_after(now: UnixTime) -> UnixTime {
        UnixTime(now.0.div_euclid(60).saturating_add(1).saturating_mul(60))
    }
}

impl Window {
    fn holds(&self, now: UnixTime) -> bool {
        let Ok(instant) = Timestamp::from_second(now.0) else { return false };
        let offset_s = i64::from(self.zone.to_offset(instant).seconds());
        let local_s = now.0.saturating_add(offset_s);
        // 1970-01-01 was a Thursday.
        let day = local_s.div_euclid(86_400).saturating_add(3).rem_euclid(7);
        let minute = local_s.rem_euclid(86_400).div_euclid(60);
        let (Ok(day), Ok(minute)) = (u8::try_from(day), u16::try_from(minute)) else {
            return false;
        };
        self.holds_at(day, minute)
    }

    /// Whether it is in force when the clock there shows this minute of this day; Monday is 0.
    fn holds_at(&self, day: u8, minute: u16) -> bool {
        let yesterday = day.checked_sub(1).unwrap_or(6);
        self.spans.iter().any(|span| {
            let over_midnight = span.to <= span.from;
            let begun = minute >= span.from && (over_midnight || minute < span.to);
            let going_on = over_midnight && minute < span.to;
            (begun && self.days.contains(day)) || (going_on && self.days.contains(yesterday))
        })
    }
}

impl Days {
    pub(crate) const ALL: Self = Self(0b111_1111);

    /// Adds a day; Monday is 0.
    pub(crate) fn add(&mut self, day: u8) {
        self.0 |= 1_u8.checked_shl(day.into()).unwrap_or_default();
    }

    fn contains(self, day: u8) -> bool {
        self.0 & 1_u8.checked_shl(day.into()).unwrap_or_default() != 0
    }
}

#[cfg(test)]
mod tests;
