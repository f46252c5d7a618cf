//! What apps leave of their shares.

/// Less than this part of the whole is nobody's.
const PART_MIN: f64 = 1e-6;

/// Who asks for less than its share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sated {
    /// A part of the whole.
    pub(super) share: f64,
    /// In rows a second.
    pub(super) used: f64,
}

impl Sated {
    pub(super) fn with(self, other: Self) -> Self {
        Self { share: self.share + other.share, used: self.used + other.used }
    }

    pub(super) fn without(self, other: Self) -> Self {
        let less = |all: f64, one: f64| (all - one).max(0.0);
        Self { share: less(self.share, other.share), used: less(self.used, other.used) }
    }

    /// How many times its share each of the others has by what these leave of a pace of `per_s`.
    pub(super) fn leaves(self, per_s: f64) -> f64 {
        let others = 1.0 - self.share;
        let unused = self.share - self.used / per_s;
        if others > PART_MIN && unused > 0.0 { 1.0 + unused / others } else { 1.0 }
    }
}
