//! The identities as a table, sorted by any of its columns.

use std::cmp::Ordering;

use admin::status::words::{Row, Table, Tone, span};

use super::course::{Identity, Rates};
use crate::cli::Column;

/// The heads, in the order of [`Column`]; what stands in the way comes last.
const HEADS: &[&str] = &[
    "app",
    "rule",
    "waiting",
    "oldest",
    "passed/s",
    "delayed/s",
    "refused/s",
    "passed",
    "delayed",
    "refused",
    "why",
];

/// By what identities are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sorting {
    pub(super) column: Column,
    pub(super) order: Order,
}

/// Which comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Names from A, numbers from the largest: what one looks for.
    Natural,
    Reversed,
}

/// Sorted; those with nothing between them in that column by what has most to do, then by name.
pub(super) fn sorted(identities: &[Identity], by: Sorting) -> Vec<&Identity> {
    let mut sorted: Vec<&Identity> = identities.iter().collect();
    sorted.sort_by(|a, b| {
        let natural = compare(a, b, by.column);
        let first = match by.order {
            Order::Natural => natural,
            Order::Reversed => natural.reverse(),
        };
        first
            .then_with(|| compare(a, b, Column::RefusedRate))
            .then_with(|| compare(a, b, Column::PassedRate))
            .then_with(|| a.app.cmp(&b.app))
            .then_with(|| a.rule.cmp(&b.rule))
    });
    sorted
}

fn compare(a: &Identity, b: &Identity, column: Column) -> Ordering {
    let rate = |pick: fn(&Rates) -> f64| {
        let of = |identity: &Identity| identity.rates.as_ref().map_or(-1.0, pick);
        of(b).total_cmp(&of(a))
    };
    let oldest = |identity: &Identity| identity.oldest_s.unwrap_or(-1.0);
    match column {
        Column::App => a.app.cmp(&b.app),
        Column::Rule => a.rule.cmp(&b.rule),
        Column::Waiting => b.waiting.cmp(&a.waiting),
        Column::Oldest => oldest(b).total_cmp(&oldest(a)),
        Column::PassedRate => rate(|rates| rates.passed),
        Column::DelayedRate => rate(|rates| rates.delayed),
        Column::RefusedRate => rate(|rates| rates.refused),
        Column::Passed => b.counts.passed.cmp(&a.counts.passed),
        Column::Delayed => b.counts.delayed.cmp(&a.counts.delayed),
        Column::Refused => b.counts.refused.cmp(&a.counts.refused),
    }
}

/// The table, with as many rows as there are identities.
pub(super) fn table(identities: &[&Identity], total: u64) -> Table {
    let rows: Vec<Row> = identities.iter().map(|identity| row(identity)).collect();
    let listed = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    Table { caption: "Identities", columns: HEADS, rows, total: total.max(listed) }
}

fn row(identity: &Identity) -> Row {
    let Identity { app, rule, waiting, oldest_s, counts, rates, why } = identity;
    let is_refused = rates.is_some_and(|rates| rates.refused > 0.0);
    let tone = if *waiting > 0 || is_refused { Tone::Bad } else { Tone::Plain };
    let rate = |pick: fn(&Rates) -> f64| {
        rates.as_ref().map_or_else(|| "–".to_owned(), |rates| rounded(pick(rates)))
    };
    let cells = vec![
        app.clone(),
        rule.clone(),
        waiting.to_string(),
        oldest_s.map_or_else(|| "–".to_owned(), span),
        rate(|rates| rates.passed),
        rate(|rates| rates.delayed),
        rate(|rates| rates.refused),
        counts.passed.to_string(),
        counts.delayed.to_string(),
        counts.refused.to_string(),
        why.clone(),
    ];
    Row { tone, cells }
}

/// A tenth counts below ten.
pub(super) fn rounded(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::super::course::Counts;
    use super::*;

    fn identity(app: &str, waiting: u64, passed: u64, rate: Option<f64>) -> Identity {
        Identity {
            app: app.to_owned(),
            waiting,
            counts: Counts { passed, ..Counts::default() },
            rates: rate.map(|passed| Rates { passed, ..Rates::default() }),
            ..Identity::default()
        }
    }

    fn order(column: Column, order: Order) -> String {
        let all = [
            identity("b", 0, 30, Some(1.0)),
            identity("a", 2, 10, None),
            identity("c", 1, 20, Some(7.0)),
        ];
        sorted(&all, Sorting { column, order }).iter().map(|one| &*one.app).collect()
    }

    #[test]
    fn names_come_from_a_and_numbers_from_the_largest() {
        assert_eq!(order(Column::App, Order::Natural), "abc");
        assert_eq!(order(Column::App, Order::Reversed), "cba");
        assert_eq!(order(Column::Waiting, Order::Natural), "acb");
        assert_eq!(order(Column::Passed, Order::Natural), "bca");
        assert_eq!(order(Column::PassedRate, Order::Natural), "cba");
        // With nothing between them, who does most comes first.
        assert_eq!(order(Column::Refused, Order::Natural), "cba");
    }

    #[test]
    fn each_column_has_its_head_and_its_cell() {
        assert_eq!(HEADS.len(), Column::value_variants().len() + 1);
        assert_eq!(row(&identity("a", 1, 2, Some(3.25))).cells.len(), HEADS.len());
        assert_eq!(row(&identity("a", 1, 2, Some(3.25))).cells[4], "3.2");
        let none = row(&identity("a", 0, 2, None));
        assert_eq!((&*none.cells[4], none.tone), ("–", Tone::Plain));
    }
}
