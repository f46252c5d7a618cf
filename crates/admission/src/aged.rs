//! What a rate is worth that was not in use for a while: after a pause, a restart or a takeover.
//!
//! An old rate is a worse one. It counts for half with every [`HALVED_AFTER`] of its age, three
//! times at most, as one does that was not in use (RFC 7661): what was true ten minutes ago is then
//! soon found again, and is no flood if it is not true any more.
//!
//! Too high a rate is seen within about a second, and by then makes a lag of as many seconds as it is
//! too high by. Where the threshold leaves room for that there is nothing to be careful about. And
//! what is known of a replica, however long ago, is no worse than what is guessed of one that nobody
//! knows.

use std::time::Duration;

/// Where nothing is known: rows a second.
pub(crate) const RATE_FIRST: f64 = 100.0;

/// The age at which a rate is half of what it was, and how often it is halved at most.
const HALVED_AFTER: Duration = Duration::from_secs(10);
const HALVINGS_MAX: f64 = 3.0;

/// A replica is not slower than so many times than it was: a threshold of so many seconds has room for
/// what that makes.
const SLOWER_MAX: f64 = 30.0;

/// What is left of a rate, in rows a second, `age` after it was found or in use.
pub(crate) fn aged(rate: f64, age: Duration, threshold: Duration) -> f64 {
    let halvings = age.as_secs_f64() / HALVED_AFTER.as_secs_f64();
    let room = SLOWER_MAX / threshold.as_secs_f64().max(1.0);
    let most = room.log2().clamp(0.0, HALVINGS_MAX);
    (rate * 0.5_f64.powf(halvings.min(most))).max(rate.min(RATE_FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_worth_the_less_the_older_it_is() {
        let after = |s| aged(8_000.0, Duration::from_secs(s), Duration::from_secs(1));
        assert_eq!((after(0), after(10), after(20)), (8_000.0, 4_000.0, 2_000.0));
        assert_eq!((after(30), after(86_400)), (1_000.0, 1_000.0), "three times at most");
    }

    #[test]
    fn it_is_not_below_what_is_guessed_of_a_replica_that_nobody_knows() {
        let hour = |rate| aged(rate, Duration::from_secs(3_600), Duration::from_secs(1));
        assert_eq!((hour(124.0), hour(7.0)), (100.0, 7.0));
    }

    #[test]
    fn a_threshold_with_room_for_a_slower_replica_trusts_it_for_longer() {
        let hour = |s| aged(8_000.0, Duration::from_secs(3_600), Duration::from_secs(s));
        assert_eq!((hour(3), hour(30), hour(60)), (1_000.0, 8_000.0, 8_000.0));
        assert!((hour(10) - 8_000.0 / 3.0).abs() < 1e-6);
    }
}
