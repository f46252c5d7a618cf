//! Counts by a small number, such as an error's.

use serde::{Deserialize, Serialize};

/// The numbers that are counted apart; statements of one digest fail in a few ways.
const NUMBERS_MAX: usize = 16;

/// How often each number came. What comes after the first 16 is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    numbers: Vec<(u16, u64)>,
    others: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, number: u16, count: u64) {
        let has_room = self.numbers.len() < NUMBERS_MAX;
        match self.numbers.iter_mut().find(|(known, _)| *known == number) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None if has_room => self.numbers.push((number, count)),
            None => self.others = self.others.saturating_add(count),
        }
    }

    /// Adds some of which the number is not known.
    pub fn add_others(&mut self, count: u64) {
        self.others = self.others.saturating_add(count);
    }

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

    /// Each number with its count, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.numbers.iter().copied()
    }

    /// Those that are not counted by their numbers.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}
