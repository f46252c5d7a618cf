//! What was told of one kind of rows, what was seen of it, and how certain that is.

use super::{CERTAIN, FACTOR_MAX, MATTERS, MEMORY, STEP, UNCERTAIN};

/// Looks that are believed beforehand: as many as rows of the mean would have had.
const BELIEVED: f64 = 4.0;

/// Rows and looks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) rows: f64,
    pub(super) looks: f64,
}

#[derive(Debug)]
pub(super) struct Account {
    pub(super) rows: f64,
    pub(super) statements: f64,
    pub(super) looks: f64,
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
            statements: 0.0,
            looks: 0.0,
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
    pub(super) fn begin(&mut self, (rows, statements): (f64, f64), (looks, applied): (f64, f64)) {
        self.rows = self.rows * MEMORY + rows;
        self.statements = self.statements * MEMORY + statements;
        self.applied = self.applied * MEMORY + applied;
        // The rest is the work of others.
        let looks = if self.applied > self.rows { looks * self.rows / self.applied } else { looks };
        self.block = Totals { rows, looks };
        self.looks = self.looks * MEMORY + looks;
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
        let matters = !(1.0 / MATTERS..=MATTERS).contains(&factor);
        if self.certain && matters { factor.clamp(1.0 / FACTOR_MAX, FACTOR_MAX) } else { 1.0 }
    }

    pub(super) fn move_to(&mut self, wanted: f64) {
        let wanted = wanted.clamp(1.0 / FACTOR_MAX, FACTOR_MAX);
        let moved = wanted.clamp(self.factor / STEP, self.factor * STEP);
        // What is next to one is one.
        self.factor = if (moved - 1.0).abs() < 1e-3 { 1.0 } else { moved };
    }
}
