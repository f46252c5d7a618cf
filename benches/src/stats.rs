//! Medians: the machine is shared, and a mean follows its worst moment.

/// The middle value; of an even number, the upper of the two. NaN of nothing.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_ignores_one_bad_round() {
        assert!((median(vec![2.0, 1.0, 900.0]) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_median_of_nothing_is_not_a_number() {
        assert!(median(Vec::new()).is_nan());
    }
}
