//! When a link connects again.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

/// The first pause after a connection that failed; each further one doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(100);

/// The longest pause: a server that is back is seen within this and a quarter.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// When to connect again.
#[derive(Default)]
pub(super) struct Retry {
    failures: u32,
    not_before: Option<Instant>,
}

impl Retry {
    pub(super) fn not_before(&self) -> Instant {
        self.not_before.unwrap_or_else(Instant::now)
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self) {
        let pause =
            RETRY_FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        // A quarter more or less, so that many probes do not come back together.
        let jitter = rand::rng().random_range(0.75..=1.25);
        self.not_before = Instant::now().checked_add(pause.min(RETRY_MAX).mul_f64(jitter));
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_between_failures_grow_to_a_bound_and_a_success_ends_them() {
        let mut retry = Retry::default();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            retry.failed();
            pauses.push(retry.not_before().saturating_duration_since(Instant::now()));
        }
        assert!(pauses[0] <= RETRY_FIRST.mul_f64(1.25));
        assert!(pauses[39] >= RETRY_MAX.mul_f64(0.75) && pauses[39] <= RETRY_MAX.mul_f64(1.25));
        retry.succeeded();
        assert_eq!(retry.not_before(), Instant::now());
    }
}
