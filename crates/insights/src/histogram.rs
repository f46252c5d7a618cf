//! How long something took, as counts in buckets.
//!
//! Times are taken in microseconds. Below 8 µs each has a bucket of its own; above, each power of
//! two is divided into eight buckets of equal width, so a bucket is at most an eighth of its lower
//! bound wide. A percentile is the middle of its bucket, which is off by at most 1/16 (6.25 %),
//! apart from the half microsecond of rounding. This is the layout of HdrHistogram (Gil Tene) with
//! three significant bits.
//!
//! Only buckets that hold something are kept: a digest's times fill ten or twenty.

use serde::{Deserialize, Serialize};

/// Bits of a value that are kept below its highest one.
const SUB_BITS: u32 = 3;

/// Values below this have a bucket of their own.
const EXACT: u64 = 1 << SUB_BITS;

/// Counts of times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Bucket and count, by bucket.
    buckets: Vec<(u16, u32)>,
}

impl Histogram {
    pub(crate) fn add(&mut self, nanos: u64) {
        self.add_to(bucket_of(nanos / 1_000), 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            self.add_to(*bucket, *count);
        }
    }

    fn add_to(&mut self, bucket: u16, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => {
                if let Some((_, sum)) = self.buckets.get_mut(at) {
                    *sum = sum.saturating_add(count);
                }
            }
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    /// The time in seconds below which this share of all lies (0.99 for the 99th percentile), with
    /// the error that the module tells. `None`: there are none.
    #[must_use]
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let all = self.buckets.iter().map(|(_, count)| f64::from(*count)).sum::<f64>();
        // What rounding may have added is not another statement.
        let wanted = (all * share.clamp(0.0, 1.0) - 1e-6).max(1.0);
        let mut below = 0.0;
        for (bucket, count) in &self.buckets {
            below += f64::from(*count);
            if below >= wanted {
                return Some(middle_us(*bucket) / 1e6);
            }
        }
        self.buckets.last().map(|(bucket, _)| middle_us(*bucket) / 1e6)
    }

    pub(crate) fn shrink(&mut self) {
        self.buckets.shrink_to_fit();
    }
}

/// The bucket of a time.
fn bucket_of(micros: u64) -> u16 {
    if micros < EXACT {
        return u16::try_from(micros).unwrap_or(u16::MAX);
    }
    let shift = micros.ilog2().saturating_sub(SUB_BITS);
    let within = micros.wrapping_shr(shift) & EXACT.saturating_sub(1);
    let octave = u64::from(shift).saturating_add(1).saturating_mul(EXACT);
    u16::try_from(octave.saturating_add(within)).unwrap_or(u16::MAX)
}

/// The middle of a bucket.
fn middle_us(bucket: u16) -> f64 {
    let bucket = u64::from(bucket);
    if bucket < EXACT {
        return u32::try_from(bucket).map(f64::from).unwrap_or_default();
    }
    let within = u32::try_from(bucket.wrapping_rem(EXACT)).map(f64::from).unwrap_or_default();
    let shift = i32::try_from(bucket.wrapping_div(EXACT).saturating_sub(1)).unwrap_or(i32::MAX);
    let eight = u32::try_from(EXACT).map(f64::from).unwrap_or_default();
    (eight + within + 0.5) * 2_f64.powi(shift)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::arithmetic_side_effects, reason = "numbers of test data")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_one_has_no_percentile() {
        assert_eq!(Histogram::default().quantile_s(0.5), None);
    }

    proptest! {
        #[test]
        fn a_percentile_is_off_by_a_sixteenth_at_most(
            mut times in prop::collection::vec(1_u64..200_000_000, 1..200),
            percent in 1_u32..=100,
        ) {
            let mut histogram = Histogram::default();
            for micros in &times {
                histogram.add(micros * 1_000);
            }
            times.sort_unstable();
            let rank = (times.len() * usize::try_from(percent).unwrap()).div_ceil(100);
            let exact = f64::from(u32::try_from(times[rank - 1]).unwrap());
            let told = histogram.quantile_s(f64::from(percent) / 100.0).unwrap() * 1e6;
            prop_assert!((told - exact).abs() <= exact / 16.0 + 0.5, "{told} for {exact}");
        }

        #[test]
        fn merged_ones_are_as_if_counted_together(
            one in prop::collection::vec(0_u64..10_000_000_000, 0..50),
            two in prop::collection::vec(0_u64..10_000_000_000, 0..50),
        ) {
            let (mut a, mut b, mut both) = <(Histogram, Histogram, Histogram)>::default();
            one.iter().for_each(|nanos| { a.add(*nanos); both.add(*nanos); });
            two.iter().for_each(|nanos| { b.add(*nanos); both.add(*nanos); });
            a.merge(&b);
            prop_assert_eq!(a, both);
        }
    }
}
