//! Medians and other quantiles: the machine is shared, and a mean follows its worst moment.

use std::time::Duration;

/// The middle value; of an even number, the upper of the two. NaN of nothing.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that this part of the sorted ones does not exceed. NaN of nothing.
#[must_use]
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let last = u32::try_from(sorted.len().saturating_sub(1)).unwrap_or(u32::MAX);
    // Whole seconds are the way from a float to an integer that has no cast in it.
    let index = Duration::try_from_secs_f64(f64::from(last) * part).unwrap_or_default().as_secs();
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn the_median_ignores_one_bad_round() {
        assert!((median(vec![2.0, 1.0, 900.0]) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_median_of_nothing_is_not_a_number() {
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_hundredth_is_above_the_99th_percentile() {
        let values: Vec<f64> = (0..=1_000).map(f64::from).collect();
        assert!((quantile(&values, 0.99) - 990.0).abs() < f64::EPSILON);
        assert!((quantile(&values, 1.0) - 1_000.0).abs() < f64::EPSILON);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
