//! The time zone of whoever reads.

use jiff::tz::TimeZone;

/// This machine's zone, or TZ's; UTC if there is none.
pub(super) fn local() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}
