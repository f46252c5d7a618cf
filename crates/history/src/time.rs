//! Times as people ask for them: `10m ago`, `07:00`, `2026-11-22 07:00`, RFC 3339.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::record::At;

/// Reads a time. One of day is the last one that is not after `now`.
///
/// # Errors
/// What can be said instead.
pub fn parse(text: &str, now: At, zone: &TimeZone) -> Result<At, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("now") {
        return Ok(now);
    }
    let ago = text.strip_suffix("ago").map(str::trim);
    let length = policy::parse_duration(&ago.unwrap_or(text).replace(' ', ""));
    if let Some(length) = length {
        return Ok(before(now, length));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(At(time.as_millisecond()));
    }
    of_day(text, now, zone).or_else(|| of_date(text, zone)).ok_or_else(|| {
        format!("`{text}` is no time: say 10m ago, 07:00, 2026-11-22 07:00 or 2026-11-22T07:00:00Z")
    })
}

fn before(now: At, length: Duration) -> At {
    At(now.0.saturating_sub(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
}

fn of_day(text: &str, now: At, zone: &TimeZone) -> Option<At> {
    let time: Time = text.parse().ok().filter(|_| text.contains(':') && !text.contains('-'))?;
    let today = Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.clone()).date();
    let on = |date: Date| in_zone(date.to_datetime(time), zone);
    let at = on(today)?;
    if at <= now { Some(at) } else { on(today.checked_sub(1.day()).ok()?) }
}

fn of_date(text: &str, zone: &TimeZone) -> Option<At> {
    let at: Option<DateTime> = text.parse().ok();
    let at =
        at.or_else(|| text.parse::<Date>().ok().map(|date| date.to_datetime(Time::midnight())));
    in_zone(at?, zone)
}

/// A time that the clock shows twice is the first of both, one that it leaves out the next one.
fn in_zone(at: DateTime, zone: &TimeZone) -> Option<At> {
    let zoned = at.to_zoned(zone.clone()).ok()?;
    Some(At(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> At {
        At(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn times_are_read_as_people_say_them() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = at("2026-11-22T06:30:00Z");
        let read = |text| parse(text, now, &berlin).unwrap();
        assert_eq!(read("now"), now);
        assert_eq!(read("10m ago"), at("2026-11-22T06:20:00Z"));
        assert_eq!(read("90 m ago"), at("2026-11-22T05:00:00Z"));
        assert_eq!(read("07:00"), at("2026-11-22T06:00:00Z"));
        assert_eq!(read("07:31"), at("2026-11-21T06:31:00Z"), "yesterday's");
        assert_eq!(read("2026-11-22 07:00"), at("2026-11-22T06:00:00Z"));
        assert_eq!(read("2026-11-22"), at("2026-11-21T23:00:00Z"));
        assert_eq!(read("2026-11-22T07:00:00+03:00"), at("2026-11-22T04:00:00Z"));
        assert!(parse("yesterday", now, &berlin).unwrap_err().contains("10m ago"));
    }

    #[test]
    fn an_hour_that_comes_twice_is_its_first() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = at("2026-10-25T08:00:00Z");
        assert_eq!(parse("02:30", now, &berlin).unwrap(), at("2026-10-25T00:30:00Z"));
        // Between the two of them the last one is meant, whichever that was.
        let between = at("2026-10-25T00:45:00Z");
        assert_eq!(parse("02:30", between, &berlin).unwrap(), at("2026-10-25T00:30:00Z"));
        let now = at("2026-10-25T00:15:00Z");
        assert_eq!(parse("02:30", now, &berlin).unwrap(), at("2026-10-24T00:30:00Z"));
        let dated = parse("2026-10-25 02:30", now, &berlin).unwrap();
        assert_eq!(dated, at("2026-10-25T00:30:00Z"));
        let offset = parse("2026-10-25T02:30:00+01:00", now, &berlin).unwrap();
        assert_eq!(offset, at("2026-10-25T01:30:00Z"), "the second one, by its offset");
    }

    #[test]
    fn an_hour_that_is_left_out_is_the_next_one() {
        // At 01:00 UTC the clocks of Berlin go from 02:00 to 03:00.
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = at("2026-03-29T08:00:00Z");
        assert_eq!(parse("02:30", now, &berlin).unwrap(), at("2026-03-29T01:30:00Z"), "03:30");
        assert_eq!(parse("2026-03-29 02:30", now, &berlin).unwrap(), at("2026-03-29T01:30:00Z"));
        // Before that moment it is yesterday's.
        let now = at("2026-03-29T01:10:00Z");
        assert_eq!(parse("02:30", now, &berlin).unwrap(), at("2026-03-28T01:30:00Z"));
    }
}
