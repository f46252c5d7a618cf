//! The rows of a plan, as `EXPLAIN` tells them in its table.

use mysql_async::Row;
use sql::Server;

use crate::probe::answer::{column, number, text};

/// How often the server works out a subquery that depends on the block around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependents {
    /// For each row of that.
    ForEachRow,
    /// Nobody can say: it counts once.
    Unknown,
}

impl Dependents {
    /// In this text. A LIMIT, which the plan does not know of, may be what few rows there are of, and MariaDB
    /// keeps what such a subquery gave for the same values (`subquery_cache`).
    pub(super) fn of(text: &str, server: Server) -> Self {
        let has_limit = text.as_bytes().windows(5).any(|word| word.eq_ignore_ascii_case(b"LIMIT"));
        match server {
            Server::MySql { .. } if !has_limit => Self::ForEachRow,
            Server::MySql { .. } | Server::MariaDb { .. } | Server::Unknown => Self::Unknown,
        }
    }
}

/// A line of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// The query block.
    id: Option<u64>,
    /// It depends on the rows of a block around it.
    depends: bool,
    rows: Option<f64>,
    /// Percent of the rows that are left.
    filtered: f64,
}

/// How many rows the server expects to read. In each query block the tables stand in the order in which
/// they are read, each once for every row that the ones before it leave. A block that depends on one
/// around it is read for each row of that. The plan does not say which it is: of those that it may be
/// that of the fewest rows.
pub(super) fn rows_expected(plan: &[Row], dependents: Dependents) -> Option<u64> {
    let depends = |row: &Row| {
        let kind = column(row, &["select_type"]).and_then(text).unwrap_or_default();
        dependents == Dependents::ForEachRow && DEPENDS.iter().any(|word| kind.starts_with(word))
    };
    let step = |row: &Row| Step {
        id: column(row, &["id"]).and_then(number),
        depends: depends(row),
        rows: column(row, &["rows"]).and_then(number),
        filtered: column(row, &["filtered"]).and_then(number).unwrap_or(ALL),
    };
    sum(plan.iter().map(step))
}

/// What the `select_type` of such a block begins with: `DEPENDENT UNION`, `UNCACHEABLE SUBQUERY`.
const DEPENDS: [&str; 2] = ["DEPENDENT", "UNCACHEABLE"];

/// `filtered` of a plan that does not say it.
const ALL: f64 = 100.0;

fn sum(steps: impl Iterator<Item = Step>) -> Option<u64> {
    let mut all = 0.0;
    let mut blocks: Vec<Block> = Vec::new();
    for Step { id, depends, rows, filtered } in steps {
        if blocks.last().is_none_or(|block| block.id != id) {
            let left = if depends { around(&blocks, id) } else { 1.0 };
            blocks.push(Block { id, left });
        }
        // Lines without: a table that is only written, the result of a union, no table at all.
        let (Some(rows), Some(block)) = (rows, blocks.last_mut()) else { continue };
        all += block.left * rows;
        block.left *= (rows * filtered / ALL).max(1.0);
    }
    // Digits alone make a whole number of it, however large.
    format!("{:.0}", f64::min(all, ROWS_MAX)).parse().ok()
}

/// A query block, and how many rows it has given in all.
struct Block {
    id: Option<u64>,
    left: f64,
}

/// The fewest rows of a block that may be around this one: those have lower numbers.
fn around(blocks: &[Block], id: Option<u64>) -> f64 {
    let may_be = blocks.iter().filter(|block| block.id < id).map(|block| block.left);
    may_be.reduce(f64::min).unwrap_or(1.0)
}

/// What a plan says at most: MySQL multiplies without a bound.
const ROWS_MAX: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: u64, rows: f64, filtered: f64) -> Step {
        Step { id: Some(id), depends: false, rows: Some(rows), filtered }
    }

    fn dependent(id: u64, rows: f64) -> Step {
        Step { depends: true, ..step(id, rows, ALL) }
    }

    #[test]
    fn a_join_reads_for_each_row_that_is_left() {
        let join = [step(1, 1_000.0, 10.0), step(1, 5.0, 100.0), step(2, 7.0, 100.0)];
        assert_eq!(sum(join.into_iter()), Some(1_000 + 500 + 7));
        let cross = [step(1, 1e6, ALL), step(1, 1e6, ALL)];
        assert_eq!(sum(cross.into_iter()), Some(1_000_001_000_000));
        let none = Step { rows: None, ..step(1, 0.0, ALL) };
        assert_eq!(sum([none, step(1, 3.0, 0.0), step(1, 4.0, ALL)].into_iter()), Some(7));
        assert_eq!(
            sum([step(1, f64::MAX, ALL), step(1, 9.0, ALL)].into_iter()),
            Some(10_u64.pow(18))
        );
    }

    /// One that read millions of rows counted as those of its two tables.
    #[test]
    fn what_depends_on_a_block_is_read_for_each_row_of_that() {
        let each = [step(1, 400.0, 50.0), dependent(2, 30.0)];
        assert_eq!(sum(each.into_iter()), Some(400 + 200 * 30));
        let inner = [step(1, 10.0, ALL), dependent(2, 100.0), dependent(3, 5.0)];
        assert_eq!(sum(inner.into_iter()), Some(10 + 1_000 + 50), "of the outermost at least");
        let union = [step(1, 10.0, ALL), dependent(2, 3.0), dependent(3, 4.0)];
        assert_eq!(sum(union.into_iter()), Some(10 + 30 + 40));
        let within_one_row = [step(1, 900.0, ALL), step(2, 1.0, ALL), dependent(3, 50.0)];
        assert_eq!(sum(within_one_row.into_iter()), Some(900 + 1 + 50));
        assert_eq!(sum([dependent(2, 50.0)].into_iter()), Some(50));
    }

    #[test]
    fn a_limit_or_a_cache_may_leave_few_rows_for_which_it_is_read() {
        let (mysql, mariadb) =
            (Server::MySql { version: 90_704 }, Server::MariaDb { version: 101_119 });
        let text = "SELECT (SELECT COUNT(*) FROM u WHERE u.a = t.a) FROM t";
        assert_eq!(Dependents::of(text, mysql), Dependents::ForEachRow);
        assert_eq!(Dependents::of(text, mariadb), Dependents::Unknown);
        assert_eq!(Dependents::of(&format!("{text} limit 5"), mysql), Dependents::Unknown);
        assert_eq!(Dependents::of("", mysql), Dependents::ForEachRow);
    }
}
