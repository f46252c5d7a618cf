//! The wall clock's seconds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// Seconds since 1970, on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixTime(pub i64);

/// As RFC 3339 writes it, in UTC.
impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}

/// No time of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTime;

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be an RFC 3339 time, like 2026-12-01T07:00:00Z")
    }
}

impl std::error::Error for NoTime {}

/// A time of RFC 3339, in any zone; parts of a second do not count.
impl FromStr for UnixTime {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        text.parse::<Timestamp>().map(|time| Self(time.as_second())).map_err(|_| NoTime)
    }
}
