//! The budgets that are in force or were, each at a place of its own: what it allows now, and what
//! has been counted of it.

use super::elsewhere::BudgetDebt;
use super::terms::{BudgetBook, BudgetKey, BudgetTerms};
use crate::MonoTime;
use crate::key_map::KeyMap;

/// All of them: as many as files have had.
#[derive(Debug, Default)]
pub(super) struct KnownBudgets {
    list: Vec<KnownBudget>,
    indexes: KeyMap<BudgetKey, usize>,
}

#[derive(Debug)]
pub(super) struct KnownBudget {
    pub(super) key: BudgetKey,
    /// `None`: it is not in force any more.
    pub(super) terms: Option<BudgetTerms>,
    /// `None`: nobody has met it.
    pub(super) counts: Option<Counts>,
    rows: Limited,
    seconds: Limited,
}

/// Whether it limits something, or did when it was in force last, and since when.
#[derive(Debug, Clone, Copy)]
enum Limited {
    No,
    Since(MonoTime),
}

impl Limited {
    /// It does, or does not, from now on.
    fn follow(&mut self, now: MonoTime, limit: Option<f64>) {
        *self = match (*self, limit) {
            (_, None) => Self::No,
            (Self::No, Some(_)) => Self::Since(now),
            (Self::Since(since), Some(_)) => Self::Since(since),
        };
    }

    /// Whether it did already when somebody came.
    fn was_there(self, came: MonoTime) -> bool {
        match self {
            Self::No => false,
            Self::Since(since) => since <= came,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) in_use: u64,
    pub(super) exceeded: u64,
    pub(super) warned: u64,
}

impl KnownBudgets {
    /// Others are in force. What was counted stays.
    pub(super) fn configure(&mut self, now: MonoTime, book: &BudgetBook) {
        for known in &mut self.list {
            known.follow(now, book.get(known.key));
        }
        for (key, terms) in book.iter() {
            if !self.indexes.contains_key(&key) {
                self.indexes.insert(key, self.list.len());
                let (rows, seconds) = (Limited::No, Limited::No);
                let mut known = KnownBudget { key, terms: None, counts: None, rows, seconds };
                known.follow(now, Some(terms));
                self.list.push(known);
            }
        }
    }

    /// Whether what is owed drains otherwise by these than by those in force.
    pub(super) fn drains_otherwise(&self, book: &BudgetBook) -> bool {
        let drains = |terms: &BudgetTerms| (terms.rate, terms.rows_per_s, terms.share);
        let in_force = self.list.iter().filter_map(|known| Some((known.key, known.terms?)));
        let mut differs =
            in_force.map(|(key, was)| book.get(key).is_none_or(|is| drains(is) != drains(&was)));
        differs.any(|differs| differs)
    }

    /// Where a budget is that is in force, or was.
    pub(super) fn find(&self, key: BudgetKey) -> Option<usize> {
        self.indexes.get(&key).copied()
    }

    /// What the one at this place allows; `None`: it is not in force.
    pub(super) fn terms(&self, index: usize) -> Option<&BudgetTerms> {
        self.list.get(index)?.terms.as_ref()
    }

    /// What those in force allow.
    pub(super) fn all_terms(&self) -> impl Iterator<Item = &BudgetTerms> {
        self.list.iter().filter_map(|known| known.terms.as_ref())
    }

    /// What a budget allows; `None`: it is not in force.
    pub(super) fn terms_of(&self, key: BudgetKey) -> Option<&BudgetTerms> {
        self.terms(self.find(key)?)
    }

    /// What of this is owed by a statement that came then: what limits it only since an edit limited
    /// nothing when it began.
    pub(super) fn owed_by(&self, index: usize, came: MonoTime, owed: BudgetDebt) -> BudgetDebt {
        let Some(KnownBudget { rows, seconds, .. }) = self.list.get(index) else { return owed };
        BudgetDebt {
            statements: owed.statements,
            rows: if rows.was_there(came) { owed.rows } else { 0.0 },
            seconds: if seconds.was_there(came) { owed.seconds } else { 0.0 },
        }
    }

    /// Terms and counts of the one at this place, if it is in force.
    pub(super) fn met(&mut self, index: usize) -> Option<(&BudgetTerms, &mut Counts)> {
        let KnownBudget { terms, counts, .. } = self.list.get_mut(index)?;
        Some((terms.as_ref()?, counts.get_or_insert_default()))
    }

    /// What is counted of the one at this place.
    pub(super) fn counts(&mut self, index: usize) -> Option<&mut Counts> {
        Some(self.list.get_mut(index)?.counts.get_or_insert_default())
    }

    /// Those that anybody has met.
    pub(super) fn all_met(&self) -> impl Iterator<Item = (BudgetKey, Counts)> + '_ {
        self.list.iter().filter_map(|known| Some((known.key, known.counts?)))
    }
}

impl KnownBudget {
    /// This is in force from now on.
    fn follow(&mut self, now: MonoTime, terms: Option<&BudgetTerms>) {
        self.terms = terms.copied();
        if let Some(BudgetTerms { rows_per_s, share, .. }) = terms {
            self.rows.follow(now, *rows_per_s);
            self.seconds.follow(now, *share);
        }
    }
}
