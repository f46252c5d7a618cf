//! Counts by a small number, such as an error's.

use std::cmp::Reverse;

use serde::{Deserialize, Deserializer, Serialize};

/// The numbers that a row of a window has apart; statements of one digest fail in a few ways.
const NUMBERS_KEPT: usize = 16;

/// The same while it counts: so one that comes often has its number, whichever came first.
const NUMBERS_MAX: usize = 64;

/// How often each number came. Where a row has too many, those that came least are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// In order.
    #[serde(deserialize_with = "in_order")]
    numbers: Vec<(u16, u64)>,
    others: u64,
}

fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u16, u64)>, D::Error> {
    let mut numbers = Vec::<(u16, u64)>::deserialize(from)?;
    numbers.sort_unstable();
    Ok(numbers)
}

impl Counts {
    pub(crate) fn add(&mut self, number: u16, count: u64) {
        match self.numbers.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(at) => {
                if let Some((_, sum)) = self.numbers.get_mut(at) {
                    *sum = sum.saturating_add(count);
                }
            }
            Err(at) => self.numbers.insert(at, (number, count)),
        }
    }

    /// Has no more numbers than one that counts may have.
    pub(crate) fn bound(&mut self) {
        if self.numbers.len() > NUMBERS_MAX {
            self.shrink();
        }
    }

    /// Has no more numbers than are kept.
    pub(crate) fn shrink(&mut self) {
        if self.numbers.len() > NUMBERS_KEPT {
            self.numbers.sort_unstable_by_key(|(number, count)| (Reverse(*count), *number));
            let rare = self.numbers.drain(NUMBERS_KEPT..).map(|(_, count)| count);
            self.others = rare.fold(self.others, u64::saturating_add);
            self.numbers.sort_unstable();
        }
        self.numbers.shrink_to_fit();
    }

    /// Adds some of which the number is not known.
    pub fn add_others(&mut self, count: u64) {
        self.others = self.others.saturating_add(count);
    }

    /// Adds another's, each number apart.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (number, count) in &other.numbers {
            self.add(*number, *count);
        }
        self.others = self.others.saturating_add(other.others);
    }

    /// All together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.numbers.iter().map(|(_, count)| *count).fold(self.others, u64::saturating_add)
    }

    /// Each number with its count, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.numbers.iter().copied()
    }

    /// Those that are not counted by their numbers.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_has_its_number_whatever_came_before() {
        let mut counts = Counts::default();
        for number in (0..60_000).chain([1062; 300]) {
            counts.add(number, 1);
            counts.bound();
            assert!(counts.numbers.len() <= NUMBERS_MAX);
        }
        counts.shrink();
        assert_eq!(counts.iter().count(), NUMBERS_KEPT);
        let of_1062 = counts.iter().find(|(number, _)| *number == 1062);
        assert!(of_1062.is_some_and(|(_, count)| count >= 300), "{counts:?}");
        assert_eq!(counts.sum(), 60_300);
    }

    #[test]
    fn numbers_that_were_kept_in_another_order_are_added_up() {
        let kept = r#"{"numbers":[[1205,3],[1062,1],[1146,2]],"others":4}"#;
        let mut counts: Counts = serde_json::from_str(kept).unwrap();
        counts.merge(&counts.clone());
        let all: Vec<_> = counts.iter().collect();
        assert_eq!((all, counts.others()), (vec![(1062, 2), (1146, 4), (1205, 6)], 8));
    }
}
