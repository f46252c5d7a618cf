//! What was told of one kind of rows, what was seen of it, and how certain that is.

use super::{CERTAIN, FACTOR_MAX, MATTERED, MATTERS, MEMORY, STEP, UNCERTAIN};

/// Rows told, and the transactions that they came in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) rows: f64,
    pub(super) transactions: f64,
}

impl Sum {
    pub(super) fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.transactions += more.transactions;
    }

    pub(super) fn forget(&mut self) {
        self.rows *= MEMORY;
        self.transactions *= MEMORY;
    }
}

/// Looks that met a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Met {
    /// At its rows.
    pub(super) rows: f64,
    /// At what is done for a transaction, whatever it writes.
    pub(super) transactions: f64,
}

/// Looks that are believed beforehand: as many as rows of the mean would have had.
const BELIEVED: f64 = 4.0;

/// Rows and looks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) rows: f64,
    pub(super) looks: f64,
}

impl Totals {
    pub(super) fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, looks: self.looks + other.looks }
    }
}

/// Rows told, and applied whoever wrote them; of the latter 0: nobody counts them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) rows: f64,
    pub(super) applied: f64,
}

impl Part {
    /// The part of what was applied that was told.
    pub(super) fn told(self) -> f64 {
        if self.applied > self.rows { self.rows / self.applied } else { 1.0 }
    }
}

/// One look that met a table is remembered for two minutes: of rows that are cheap and few not many do.
const MET: f64 = 0.25;

#[derive(Debug)]
pub(super) struct Account {
    pub(super) rows: f64,
    pub(super) transactions: f64,
    pub(super) looks: f64,
    /// Looks at appliers that were met at its table, whosever rows these were at.
    met: f64,
    /// Rows that replicas applied, whoever wrote them. 0: nobody counts them.
    applied: f64,
    /// What the block just over has added.
    pub(super) block: Totals,
    /// The squares of what looks and rows of single blocks differ in.
    variance: f64,
    /// Whether it has been certain, and has not been uncertain since.
    certain: bool,
    pub(super) wanted: f64,
    pub(super) factor: f64,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            rows: 0.0,
            transactions: 0.0,
            looks: 0.0,
            met: 0.0,
            applied: 0.0,
            block: Totals::default(),
            variance: 0.0,
            certain: false,
            wanted: 1.0,
            factor: 1.0,
        }
    }
}

impl Account {
    /// A block's rows, and how many of its kind were applied.
    pub(super) fn tell(&mut self, Sum { rows, transactions }: Sum, applied: f64) {
        self.rows = self.rows * MEMORY + rows;
        self.transactions = self.transactions * MEMORY + transactions;
        self.applied = self.applied * MEMORY + applied;
        self.block = Totals { rows, looks: 0.0 };
    }

    /// A block's looks that met its table. Of those at its rows so large a part is ours: the rest is the work of others.
    pub(super) fn see(&mut self, met: Met, ours: f64) {
        self.block.looks = met.rows * ours;
        self.looks = self.looks * MEMORY + self.block.looks;
        self.met = self.met * MEMORY + met.rows + met.transactions;
    }

    pub(super) fn part(&self) -> Part {
        Part { rows: self.rows, applied: self.applied }
    }

    /// Whether looks can tell of it: some have met its table.
    pub(super) fn is_met(&self) -> bool {
        self.met >= MET
    }

    /// The part of all looks less the part of all rows is a sum over blocks of what looks and rows
    /// of each were off their means; so is its variance, whatever looks have to do with each other
    /// within a block.
    pub(super) fn end(&mut self, block: &Totals, all: &Totals) {
        let part = |own: f64, all: f64| if all > 0.0 { own / all } else { 0.0 };
        let looks = self.block.looks - part(self.looks, all.looks) * block.looks;
        let rows = self.block.rows - part(self.rows, all.rows) * block.rows;
        let off = looks - rows * part(all.looks, all.rows);
        // The means move less, the older they are: so does what is off them.
        self.variance = self.variance * MEMORY * MEMORY + off * off;
    }

    /// What a row of it seems to cost, in rows of the mean.
    pub(super) fn wants(&mut self, all: &Totals) -> f64 {
        let expected = all.looks * self.rows / all.rows.max(f64::MIN_POSITIVE);
        // Looks that were independent would vary by their number.
        let deviation = self.variance.max(self.looks.max(expected)).max(1.0).sqrt();
        let off = (self.looks - expected).abs() / deviation;
        self.certain = off >= if self.certain { UNCERTAIN } else { CERTAIN };
        let factor = (self.looks + BELIEVED) / (expected + BELIEVED);
        let least = if (self.wanted - 1.0).abs() > 0.0 { MATTERED } else { MATTERS };
        let matters = !(1.0 / least..=least).contains(&factor);
        if self.certain && matters { factor.clamp(1.0 / FACTOR_MAX, FACTOR_MAX) } else { 1.0 }
    }

    pub(super) fn move_to(&mut self, wanted: f64) {
        let wanted = wanted.clamp(1.0 / FACTOR_MAX, FACTOR_MAX);
        let moved = wanted.clamp(self.factor / STEP, self.factor * STEP);
        // What is next to one is one.
        self.factor = if (moved - 1.0).abs() < 1e-3 { 1.0 } else { moved };
    }
}
