//! What a statement counts as: so much for its transaction, whatever that writes, and so much for each row.

use super::MEMORY;

/// In rows of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    pub(crate) per_transaction: f64,
    pub(crate) per_row: f64,
}

impl Price {
    /// A row counts as a row.
    #[cfg(test)]
    pub(crate) const ROW: Self = Self { per_transaction: 0.0, per_row: 1.0 };

    /// Of so many rows on the mean: where that is less than one, not every statement is a transaction.
    pub(crate) fn of(self, rows: f64) -> f64 {
        self.per_transaction * rows.min(1.0) + self.per_row * rows
    }

    /// Whoever has a turn has one, also if nothing comes of it.
    pub(crate) fn turn(self) -> f64 {
        self.of(1.0).min(1.0)
    }

    pub(crate) fn of_a_turn(self, rows: f64) -> f64 {
        self.of(rows).max(self.turn())
    }

    /// How many rows cost so much.
    pub(crate) fn rows_for(self, cost: f64) -> f64 {
        let of_one = self.of(1.0);
        if cost < of_one { cost / of_one } else { (cost - self.per_transaction) / self.per_row }
    }
}

/// Looks at what is done for transactions, whatever these write.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AtTransactions {
    /// That met tables, and of these such as are told, by the part of their rows that is.
    pub(super) seen: f64,
    pub(super) ours: f64,
    /// That met none: nobody knows whose they are.
    pub(super) between: f64,
}

impl AtTransactions {
    /// A block's.
    pub(super) fn take_in(&mut self, block: Self) {
        self.seen = self.seen * MEMORY + block.seen;
        self.ours = self.ours * MEMORY + block.ours;
        self.between = self.between * MEMORY + block.between;
    }

    /// At those that are told.
    pub(super) fn ours(&self) -> f64 {
        if self.seen > 0.0 { self.ours * (1.0 + self.between / self.seen) } else { 0.0 }
    }
}

/// The most that goes by transactions: a row costs something.
const PART_MAX: f64 = 0.98;

/// Of the difference to what was found, in one block.
const NEWEST: f64 = 0.5;

/// What of the work for all that is told goes by transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ByTransaction {
    part: f64,
    /// Rows of one, on the mean of all that are told.
    rows_each: f64,
}

impl ByTransaction {
    pub(super) fn is_known(self) -> bool {
        self.part > 0.0
    }

    /// In rows of the mean.
    pub(super) fn per_transaction(self) -> f64 {
        self.part * self.rows_each
    }

    pub(super) fn per_row(self) -> f64 {
        1.0 - self.part
    }

    /// Transactions have so many rows now. Their price stays what it is; only the mean row is another. By how much that
    /// is dearer than the one before.
    pub(super) fn come_with(&mut self, rows_each: f64) -> f64 {
        let by_transaction = self.per_transaction() / rows_each;
        let dearer = self.per_row() + by_transaction;
        *self = Self { part: by_transaction / dearer, rows_each };
        dearer
    }

    /// So much of the work was found to go by transactions.
    pub(super) fn approach(&mut self, part: f64) {
        self.part += NEWEST * (part.min(PART_MAX) - self.part);
    }
}
