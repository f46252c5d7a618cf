//! Vitess' `PRIORITY` directive: `/*vt+ PRIORITY=70 */`.
//!
//! There a request of priority p, 0 the highest and 100 the lowest and the default, is subject to
//! the transaction throttler with a probability of p/100 (Vitess manual, "Transaction throttler").
//! Here the dice are the part of a rule that is chance, so p scales them: a rule that honours
//! priorities has the ratio `ratio × p/100` for this statement. Priority 0 throws no dice, 100
//! throws those of the rule. The gate, a hold and the queue are for everybody.
//!
//! A client says this of itself, so a rule must ask for it (`honour_priority: true`). For other
//! rules it is a tag like any other: 100 is the default, so no directive could lower its sender's
//! own standing.

use admission::Ratio;

use crate::identity::Identity;

/// How much of a rule's ratio applies, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

/// The tag, as the directive is read.
const TAG: &[u8] = b"priority";

impl Priority {
    /// What statements have that name none: the whole ratio applies.
    pub const LOWEST: Self = Self(100);

    /// The priority that a statement names; what is not a number from 0 to 100 is none.
    #[must_use]
    pub fn of(identity: &Identity<'_>) -> Self {
        identity.tag(TAG).and_then(Self::parse).unwrap_or(Self::LOWEST)
    }

    /// Hundredths, 0 to 100.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.0
    }

    /// The ratio of a statement with this priority.
    #[must_use]
    pub fn scale(self, ratio: Ratio) -> Ratio {
        if self == Self::LOWEST {
            return ratio;
        }
        Ratio::new(ratio.as_f64() * f64::from(self.0) / 100.0).unwrap_or(ratio)
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let percent = digits.then(|| text.parse::<u8>().ok()).flatten()?;
        (percent <= Self::LOWEST.0).then_some(Self(percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_number_up_to_100() {
        for (text, percent) in [("0", 0), ("70", 70), ("100", 100), ("007", 7)] {
            assert_eq!(Priority::parse(text.as_bytes()), Some(Priority(percent)), "{text}");
        }
        for text in ["", "101", "-1", "+1", "high", "1.5", "1000", " 1", "\u{0661}"] {
            assert_eq!(Priority::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_priority_scales_the_dice() {
        let ratio = |value| Ratio::new(value).unwrap();
        assert_eq!(Priority(0).scale(Ratio::ONE), Ratio::ZERO);
        assert_eq!(Priority(50).scale(ratio(0.5)), ratio(0.25));
        assert_eq!(Priority::LOWEST.scale(ratio(0.3)), ratio(0.3));
    }
}
