//! The rows of a plan, as `EXPLAIN` tells them in its table.

use mysql_async::Row;

use crate::probe::answer::{column, number};

/// A line of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// The query block.
    id: Option<u64>,
    rows: Option<f64>,
    /// Percent of the rows that are left.
    filtered: f64,
}

/// How many rows the server expects to read. In each query block the tables stand in the order in which
/// they are read, each once for every row that the ones before it leave; what is in a block once is not
/// multiplied by the blocks around it.
pub(super) fn rows_expected(plan: &[Row]) -> Option<u64> {
    let step = |row: &Row| Step {
        id: column(row, &["id"]).and_then(number),
        rows: column(row, &["rows"]).and_then(number),
        filtered: column(row, &["filtered"]).and_then(number).unwrap_or(ALL),
    };
    sum(plan.iter().map(step))
}

/// `filtered` of a plan that does not say it.
const ALL: f64 = 100.0;

fn sum(steps: impl Iterator<Item = Step>) -> Option<u64> {
    let mut all = 0.0;
    let (mut block, mut left) = (None, 1.0);
    for Step { id, rows, filtered } in steps {
        if block != Some(id) {
            (block, left) = (Some(id), 1.0);
        }
        // Lines without: a table that is only written, the result of a union, no table at all.
        let Some(rows) = rows else { continue };
        all += left * rows;
        left *= (rows * filtered / ALL).max(1.0);
    }
    // Digits alone make a whole number of it, however large.
    format!("{:.0}", f64::min(all, ROWS_MAX)).parse().ok()
}

/// What a plan says at most: MySQL multiplies without a bound.
const ROWS_MAX: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: u64, rows: f64, filtered: f64) -> Step {
        Step { id: Some(id), rows: Some(rows), filtered }
    }

    #[test]
    fn a_join_reads_for_each_row_that_is_left() {
        let join = [step(1, 1_000.0, 10.0), step(1, 5.0, 100.0), step(2, 7.0, 100.0)];
        assert_eq!(sum(join.into_iter()), Some(1_000 + 500 + 7));
        let cross = [step(1, 1e6, ALL), step(1, 1e6, ALL)];
        assert_eq!(sum(cross.into_iter()), Some(1_000_001_000_000));
        let none = Step { id: Some(1), rows: None, filtered: ALL };
        assert_eq!(sum([none, step(1, 3.0, 0.0), step(1, 4.0, ALL)].into_iter()), Some(7));
        assert_eq!(
            sum([step(1, f64::MAX, ALL), step(1, 9.0, ALL)].into_iter()),
            Some(10_u64.pow(18))
        );
    }
}
