//! What another process has taken of the same budgets: the one before this, which still runs what it
//! has let through. That counts here until it says that it has ended, and what it owes is owed here.

use std::collections::HashMap;

use super::prediction::{Cost, DigestCost};
use super::terms::{BudgetKey, BudgetUse};
use crate::DigestKey;

/// What is owed to one bucket: each drains as its budget says. As a change of that it may be less
/// than nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetDebt {
    /// Statements.
    pub statements: f64,
    /// Rows changed, and rows sent.
    pub rows: f64,
    /// Server-seconds.
    pub seconds: f64,
}

/// What a process tells of its budgets to the one behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BudgetNews {
    /// How many statements are at the server, by bucket: all of them.
    pub there: HashMap<BudgetUse, u32>,
    /// What has been added to what is owed since it was told last.
    pub owed: Vec<(BudgetUse, BudgetDebt)>,
    /// What digests cost of which that was learned since.
    pub costs: Vec<(DigestKey, DigestCost)>,
}

impl BudgetDebt {
    pub(super) fn of(statements: f64, cost: Cost) -> Self {
        let Cost { seconds, rows } = cost;
        Self { statements, rows, seconds }
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            rows: self.rows + other.rows,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// Statements at the server that another process counts, by bucket.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    counts: HashMap<BudgetUse, u32>,
    sums: HashMap<BudgetKey, u64>,
}

impl Elsewhere {
    /// How many of one bucket.
    #[inline]
    pub(super) fn at(&self, at: BudgetUse) -> u32 {
        if self.counts.is_empty() {
            return 0;
        }
        self.counts.get(&at).copied().unwrap_or(0)
    }

    /// How many of one budget.
    pub(super) fn of(&self, budget: BudgetKey) -> u64 {
        self.sums.get(&budget).copied().unwrap_or(0)
    }

    /// How many, by bucket.
    pub(super) fn all(&self) -> &HashMap<BudgetUse, u32> {
        &self.counts
    }

    /// It is so many now. The buckets of which there are fewer than before.
    pub(super) fn replace(&mut self, mut counts: HashMap<BudgetUse, u32>) -> Vec<BudgetUse> {
        counts.retain(|_, count| *count > 0);
        self.sums.clear();
        for (at, count) in &counts {
            let sum = self.sums.entry(at.budget).or_default();
            *sum = sum.saturating_add(u64::from(*count));
        }
        let before = std::mem::replace(&mut self.counts, counts);
        let fewer = before.into_iter().filter(|(at, count)| self.at(*at) < *count);
        fewer.map(|(at, _)| at).collect()
    }
}
