//! Sums over a window of time that moves on.

/// Parts of a window: what leaves it leaves in steps of a sixtieth.
pub(super) const BUCKETS_MAX: u64 = 60;

/// So many sums, one for each part of the window. Buckets are numbered from the origin of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// The youngest that was added to.
    newest: u64,
    /// By number modulo [`BUCKETS_MAX`]; what is not there is 0.
    sums: Vec<u64>,
}

impl Buckets {
    /// Adds to a bucket. One that has left the window already is not counted.
    pub(super) fn add(&mut self, bucket: u64, amount: u64) {
        if self.sums.is_empty() {
            self.sums = vec![0; usize::try_from(BUCKETS_MAX).unwrap_or(0)];
            self.newest = bucket;
        }
        let skipped = bucket.saturating_sub(self.newest).min(BUCKETS_MAX);
        for passed in 0..skipped {
            if let Some(sum) = self.sums.get_mut(place(bucket.saturating_sub(passed))) {
                *sum = 0;
            }
        }
        self.newest = self.newest.max(bucket);
        if self.newest.saturating_sub(bucket) < BUCKETS_MAX
            && let Some(sum) = self.sums.get_mut(place(bucket))
        {
            *sum = sum.saturating_add(amount);
        }
    }

    /// The sum of those buckets of the window that ends with bucket `last` and are in the mask.
    pub(super) fn sum(&self, last: u64, wanted: Mask) -> u64 {
        self.filled(last)
            .filter(|(ago, _)| wanted.contains(*ago))
            .fold(0, |all, (_, sum)| all.saturating_add(sum))
    }

    /// Those that are not 0.
    pub(super) fn mask(&self, last: u64) -> Mask {
        self.filled(last).fold(Mask::NONE, |mask, (ago, _)| mask.with(ago))
    }

    /// Whether nothing is left in the window that ends with bucket `last`.
    pub(super) fn is_over(&self, last: u64) -> bool {
        self.sums.is_empty() || last.saturating_sub(self.newest) >= BUCKETS_MAX
    }

    /// How many buckets before `last`, and the sum there, of those that are not 0.
    fn filled(&self, last: u64) -> impl Iterator<Item = (u64, u64)> {
        (0..BUCKETS_MAX).filter_map(move |ago| {
            let bucket = last.checked_sub(ago)?;
            let is_kept = self.newest.checked_sub(bucket).is_some_and(|age| age < BUCKETS_MAX);
            let sum = self.sums.get(place(bucket)).copied().filter(|sum| is_kept && *sum > 0)?;
            Some((ago, sum))
        })
    }
}

fn place(bucket: u64) -> usize {
    usize::try_from(bucket.checked_rem(BUCKETS_MAX).unwrap_or(0)).unwrap_or(0)
}

/// A set of buckets, each by how many it is before the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mask(u64);

impl Mask {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(u64::MAX);

    pub(super) fn with(self, ago: u64) -> Self {
        let shift = u32::try_from(ago).unwrap_or(u32::MAX);
        Self(self.0 | 1_u64.checked_shl(shift).unwrap_or(0))
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn contains(self, ago: u64) -> bool {
        self.0 & Self::NONE.with(ago).0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut buckets = Buckets::default();
        for bucket in 100..220 {
            buckets.add(bucket, 1);
        }
        assert_eq!(buckets.sum(219, Mask::ALL), BUCKETS_MAX);
        assert_eq!(buckets.sum(239, Mask::ALL), 40);
        assert_eq!(buckets.sum(279, Mask::ALL), 0);
        buckets.add(159, 1);
        assert_eq!(buckets.sum(219, Mask::ALL), BUCKETS_MAX, "it came too late");
        buckets.add(160, 1);
        assert_eq!(buckets.sum(219, Mask::ALL), 61);
        buckets.add(10_000, 5);
        assert_eq!(buckets.sum(10_000, Mask::ALL), 5);
    }

    #[test]
    fn a_mask_chooses_what_is_summed() {
        let (mut some, mut other) = (Buckets::default(), Buckets::default());
        for bucket in 0..10 {
            some.add(bucket, bucket);
        }
        other.add(3, 1);
        other.add(9, 1);
        assert_eq!(some.sum(9, other.mask(9)), 12);
        assert_eq!(some.sum(9, Mask::NONE), 0);
        assert_eq!(Mask::NONE.with(64), Mask::NONE);
    }
}
