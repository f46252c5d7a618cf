//! The wall clock's seconds.

use jiff::Timestamp;

/// Seconds since 1970, on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// As RFC 3339 writes it, in UTC: `2027-01-01T07:00:00Z`. A time beyond the year 9999 is
    /// shown as the last one that can be written.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let Self(seconds) = self;
        let clamped = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_second(seconds).unwrap_or(clamped).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_files_and_people_write_it() {
        assert_eq!(UnixTime(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(UnixTime(1_798_786_800).rfc3339(), "2027-01-01T07:00:00Z");
        assert!(UnixTime(i64::MAX).rfc3339().starts_with("9999-12-3"));
    }
}
