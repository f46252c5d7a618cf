//! Times as people say them, in their zone, also where its offset changes in between.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::record::At;

/// How the times of one answer are shown.
#[derive(Debug, Clone)]
pub struct Times {
    zone: TimeZone,
    /// Whether all of them are on the day on which it was asked.
    is_today: bool,
    /// Whether the zone's offset is the same all the time.
    is_one_offset: bool,
}

impl Times {
    /// For an answer about this time.
    #[must_use]
    pub fn new(since: At, until: At, now: At, zone: &TimeZone) -> Self {
        let [since, until, now] = [since, until, now].map(|at| zoned(at, zone));
        let is_today = since.date() == now.date() && until.date() == now.date();
        let is_one_offset = since.offset() == until.offset();
        Self { zone: zone.clone(), is_today, is_one_offset }
    }

    /// A time to the second.
    #[must_use]
    pub fn show(&self, at: At) -> String {
        let zoned = zoned(At(at.0.saturating_add(500)), &self.zone);
        let day = if self.is_today { "" } else { "%Y-%m-%d " };
        let offset = if self.is_one_offset { "" } else { " %Z" };
        zoned.strftime(&format!("{day}%H:%M:%S{offset}")).to_string()
    }

    /// `07:00:00–07:25:00`, or `since 07:00:00` for what goes on.
    #[must_use]
    pub fn between(&self, began: At, ended: Option<At>) -> String {
        match ended {
            None => format!("since {}", self.show(began)),
            Some(ended) => {
                let (began, ended) = (self.show(began), self.show(ended));
                // The same day is said once.
                let short = match (began.split_once(' '), ended.split_once(' ')) {
                    (Some((a, _)), Some((b, time))) if !self.is_today && a == b => time.to_owned(),
                    _ => ended.clone(),
                };
                format!("{began}–{short}")
            }
        }
    }
}

fn zoned(at: At, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone())
}

/// A length of time with its two largest units.
#[must_use]
pub fn span(length: Duration) -> String {
    let rounded = length.saturating_add(Duration::from_millis(500)).as_secs();
    let (days, hours) = (rounded / 86_400, rounded / 3_600 % 24);
    let (minutes, seconds) = (rounded / 60 % 60, rounded % 60);
    let two = |large: u64, a: &str, small: u64, b: &str| match small {
        0 => format!("{large} {a}"),
        _ => format!("{large} {a} {small} {b}"),
    };
    if days > 0 {
        two(days, "d", hours, "h")
    } else if hours > 0 {
        two(hours, "h", minutes, "min")
    } else if minutes > 0 {
        two(minutes, "min", seconds, "s")
    } else if length < Duration::from_secs(10) {
        let tenths = format!("{:.1}", length.as_secs_f64());
        format!("{} s", tenths.trim_end_matches('0').trim_end_matches('.'))
    } else {
        format!("{seconds} s")
    }
}
