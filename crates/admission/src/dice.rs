//! The dice: a rule's ratio is the probability that one check is refused, whatever the metrics say.

use std::time::Duration;

use rand::{Rng, RngExt as _};

/// A probability, 0 to 1 inclusive.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

impl Ratio {
    /// No check is ever refused.
    pub const ZERO: Self = Self(0.0);
    /// Every check is refused.
    pub const ONE: Self = Self(1.0);

    /// `value` as a ratio, or `None` if it is not a number from 0 to 1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The probability, 0 to 1.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0
    }

    /// Whether no check can ever win.
    #[must_use]
    pub fn is_certain(self) -> bool {
        self.0 >= 1.0
    }

    /// Throws once, and says whether this check is refused.
    ///
    /// Always exactly one throw, also at 0 and 1, so that a sequence of checks depends on the seed
    /// and not on the ratios of others.
    pub fn loses<R: Rng + ?Sized>(self, rng: &mut R) -> bool {
        // `random` gives [0, 1): ZERO never loses, ONE always does.
        rng.random::<f64>() < self.0
    }

    /// How many checks in a row are refused before one is not: with the distribution of as many
    /// throws, drawn at once. Nothing is drawn at 0; 1 gives the bound.
    pub(crate) fn losses<R: Rng + ?Sized>(self, rng: &mut R) -> u64 {
        if self.0 <= 0.0 {
            return 0;
        }
        if self.is_certain() {
            return LOSSES_MAX;
        }
        // P(losses ≥ k) = rᵏ = P(u ≤ rᵏ), with u in (0, 1].
        let u = 1.0 - rng.random::<f64>();
        let losses = Duration::try_from_secs_f64(u.ln() / self.0.ln());
        losses.map_or(LOSSES_MAX, |losses| losses.as_secs()).min(LOSSES_MAX)
    }
}

/// More checks are not lost in a row: at the fastest, that many take a year.
const LOSSES_MAX: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn only_probabilities_are_ratios() {
        for bad in [-0.001, 1.001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Ratio::new(bad), None, "{bad}");
        }
        assert_eq!(Ratio::new(0.0), Some(Ratio::ZERO));
        assert_eq!(Ratio::new(1.0), Some(Ratio::ONE));
    }

    #[test]
    fn zero_never_loses_and_one_always_does() {
        let mut rng = StdRng::seed_from_u64(1);
        assert!((0..10_000).all(|_| !Ratio::ZERO.loses(&mut rng)));
        assert!((0..10_000).all(|_| Ratio::ONE.loses(&mut rng)));
    }

    #[test]
    fn every_check_costs_one_throw_whatever_the_ratio() {
        let mut a = StdRng::seed_from_u64(7);
        let mut b = StdRng::seed_from_u64(7);
        for ratio in [0.0, 0.3, 1.0] {
            Ratio::new(ratio).unwrap().loses(&mut a);
            Ratio::ZERO.loses(&mut b);
        }
        assert_eq!(a.random::<u64>(), b.random::<u64>());
    }

    #[test]
    fn a_ratio_is_met_within_sampling_error() {
        let mut rng = StdRng::seed_from_u64(42);
        for ratio in [0.1, 0.5, 0.9] {
            let die = Ratio::new(ratio).unwrap();
            let lost = (0..100_000).filter(|_| die.loses(&mut rng)).count();
            let share = f64::from(u32::try_from(lost).unwrap()) / 100_000.0;
            // Four standard deviations of the worst ratio: 4 * sqrt(0.25 / 1e5) = 0.0063.
            assert!((share - ratio).abs() < 0.0064, "{ratio} gave {share}");
        }
    }
}
