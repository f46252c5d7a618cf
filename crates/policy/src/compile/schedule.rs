//! `schedule` of a rule.

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::checks::list;
use crate::fault::{Faults, Place};
use crate::raw::{self, Maybe, OneOrMany, Spanned};
use crate::schedule::{DAY_MINUTES, Days, Schedule, Span, Window};

/// Most windows of one rule, and most spans of one window: each is looked at for each statement.
const PARTS_MAX: usize = 32;

pub(super) fn compile(
    schedule: Spanned<OneOrMany<raw::Schedule>>,
    zones: &TimeZoneDatabase,
    faults: &mut Faults,
) -> Schedule {
    let Spanned { value: OneOrMany(windows), place } = schedule;
    if windows.is_empty() || windows.len() > PARTS_MAX {
        faults
            .add(&place, format!("must be from 1 to {PARTS_MAX} windows; leave it out for always"));
    }
    let windows = windows.into_iter().map(|window| compile_window(window, zones, faults));
    Schedule { windows: windows.collect() }
}

fn compile_window(
    window: Spanned<raw::Schedule>,
    zones: &TimeZoneDatabase,
    faults: &mut Faults,
) -> Window {
    let Spanned { value: raw::Schedule { days, hours, time_zone }, place } = window;
    if days.is_none() && hours.is_none() {
        let message = "`days` or `hours` is missing; leave the schedule out for always";
        faults.add_unless_of((&place, &["days", "hours"]), &place, message);
    }
    Window {
        zone: compile_zone(time_zone, zones, faults),
        days: days.map_or(Days::ALL, |days| compile_days(&days, faults)),
        spans: compile_hours(hours, faults),
    }
}

fn compile_zone(name: Maybe<String>, zones: &TimeZoneDatabase, faults: &mut Faults) -> TimeZone {
    let Some(Spanned { value, place }) = name else { return TimeZone::UTC };
    zones.get(&value).unwrap_or_else(|_| {
        let message = format!("`{value}` is no time zone: they are like Europe/Berlin or UTC");
        faults.add(&place, message);
        TimeZone::UTC
    })
}

const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn compile_days(days: &Spanned<OneOrMany<String>>, faults: &mut Faults) -> Days {
    if days.value.0.is_empty() {
        faults.add(&days.place, "an empty list is never; leave the key out for every day");
    }
    let mut compiled = Days::default();
    for Spanned { value, place } in &days.value.0 {
        let (first, last) = value.split_once('-').unwrap_or((value, value));
        let (Some(first), Some(last)) = (day(first), day(last)) else {
            let known = list(DAY_NAMES.iter());
            faults.add(place, format!("`{value}` is not one of {known} or a range like `mon-fri`"));
            continue;
        };
        let mut next = first;
        loop {
            compiled.add(next);
            if next == last {
                break;
            }
            next = next.saturating_add(1).rem_euclid(7);
        }
    }
    compiled
}

fn day(name: &str) -> Option<u8> {
    u8::try_from(DAY_NAMES.iter().position(|known| known.eq_ignore_ascii_case(name.trim()))?).ok()
}

fn compile_hours(hours: Maybe<OneOrMany<String>>, faults: &mut Faults) -> Vec<Span> {
    let Some(Spanned { value: OneOrMany(hours), place }) = hours else {
        return vec![Span { from: 0, to: DAY_MINUTES }];
    };
    if hours.is_empty() || hours.len() > PARTS_MAX {
        faults.add(&place, format!("must be from 1 to {PARTS_MAX} spans"));
    }
    hours.iter().filter_map(|hours| compile_span(&hours.value, &hours.place, faults)).collect()
}

fn compile_span(text: &str, place: &Place, faults: &mut Faults) -> Option<Span> {
    let ends = text.split_once('-').map(|(from, to)| (minutes(from), minutes(to)));
    match ends {
        Some((Some(from), Some(to))) if from != to && from < DAY_MINUTES => Some(Span { from, to }),
        Some((Some(_), Some(_))) => {
            faults.add(place, "begins when it ends; a whole day is 00:00-24:00");
            None
        }
        Some(_) | None => {
            faults.add(place, "must be a span like 07:00-19:30, or 22:00-06:00 over midnight");
            None
        }
    }
}

/// `7:05` and `07:05`; at most `24:00`.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) || minutes.len() != 2 || hours.len() > 2 {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let all = hours.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && all <= DAY_MINUTES).then_some(all)
}
