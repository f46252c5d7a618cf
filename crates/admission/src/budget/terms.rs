//! What the policy says of budgets, and which of them meet a statement.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Mode;

/// A budget, as a number that only the policy can read. The same over reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BudgetKey(pub u64);

/// One bucket of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BudgetUse {
    /// The budget.
    pub budget: BudgetKey,
    /// Whose bucket, as a number that only the policy can read; 0 where all share one.
    pub instance: u64,
}

/// The budgets that meet one statement, in the order of the file.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct BudgetSet {
    /// In one cache line with the first of them.
    len: usize,
    /// What is behind `len` means nothing.
    uses: [BudgetUse; Self::LEN_MAX],
}

impl fmt::Debug for BudgetSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl PartialEq for BudgetSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for BudgetSet {}

/// What a budget allows. What is `None` is not limited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetTerms {
    /// Statements at the server at once.
    pub max_concurrency: Option<u32>,
    /// Statements a second.
    pub rate: Option<f64>,
    /// Rows changed or sent a second.
    pub rows_per_s: Option<f64>,
    /// Server-seconds a second.
    pub share: Option<f64>,
    /// Server-seconds that may be owed to `share`.
    pub burst: f64,
    /// Server-seconds that one statement is foreseen to take at most.
    pub max_query_cost: Option<f64>,
    /// What becomes of a statement without room.
    pub on_exceeded: OnExceeded,
    /// Longest wait for room.
    pub max_delay: Duration,
    /// [`Mode::Observe`] counts only.
    pub mode: Mode,
}

/// What becomes of a statement without room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnExceeded {
    /// It waits.
    Delay,
    /// It is refused at once.
    Refuse,
}

/// The budgets of a cluster. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BudgetBook(Arc<HashMap<BudgetKey, BudgetTerms>>);

impl BudgetSet {
    /// Budgets of the file that one statement is held to at most: it is copied with every statement
    /// they meet, and five ways to divide a budget do not need more.
    pub const MET_MAX: usize = 8;

    /// Those, and the line of a statement that comes last.
    pub const LEN_MAX: usize = Self::MET_MAX + 1;

    /// Adds a bucket of a budget that meets the statement, unless it is there. False: there is no room
    /// for another one.
    pub fn add_met(&mut self, budget_use: BudgetUse) -> bool {
        self.contains(budget_use) || self.len < Self::MET_MAX && self.add(budget_use)
    }

    /// Adds any bucket, in the same way.
    pub fn add(&mut self, budget_use: BudgetUse) -> bool {
        if self.contains(budget_use) {
            return true;
        }
        match self.uses.get_mut(self.len) {
            Some(free) => {
                *free = budget_use;
                self.len = self.len.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Makes it these. Most statements meet few, and only those are moved.
    pub fn assign(&mut self, these: &Self) {
        self.len = these.len;
        for (to, from) in self.uses.iter_mut().zip(these.iter()) {
            *to = from;
        }
    }

    /// The buckets.
    pub fn iter(&self) -> impl Iterator<Item = BudgetUse> + '_ {
        self.uses.get(..self.len).unwrap_or_default().iter().copied()
    }

    /// Whether this bucket is one of them.
    #[must_use]
    pub fn contains(&self, budget_use: BudgetUse) -> bool {
        self.iter().any(|known| known == budget_use)
    }

    /// Whether no budget meets the statement.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl BudgetBook {
    /// The budgets by their keys.
    #[must_use]
    pub fn new(terms: HashMap<BudgetKey, BudgetTerms>) -> Self {
        Self(Arc::new(terms))
    }

    pub(crate) fn get(&self, key: BudgetKey) -> Option<&BudgetTerms> {
        self.0.get(&key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BudgetKey, &BudgetTerms)> {
        self.0.iter().map(|(key, terms)| (*key, terms))
    }
}
