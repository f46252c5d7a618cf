//! How many rows a replica has applied to the tables that its appliers were met at, whoever wrote them.
//!
//! Asked for by name: `performance_schema` looks these up, and would have to look through all tables of the server
//! else (8,000 of them: 25 ms).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use admission::{TableKey, WriteKind, Written};
use mysql_async::Row;
use policy::table_key;

use crate::probe::answer::{number, text};

/// Tables whose rows are counted.
const TABLES_MAX: usize = 256;

/// A table that was not met in so many counts is forgotten: a minute, while somebody is gated.
const KEPT: u32 = 30;

/// The kinds in the order of the columns.
const KINDS: [WriteKind; 3] = [WriteKind::Insert, WriteKind::Update, WriteKind::Delete];

/// The tables that one replica's appliers were met at.
#[derive(Debug, Default)]
pub(super) struct AppliedRows(BTreeMap<TableKey, Counted>);

#[derive(Debug)]
struct Counted {
    schema: String,
    name: String,
    /// Counts since it was met.
    unmet: u32,
    /// What it was at when it was counted last.
    rows: Option<[u64; 3]>,
}

impl AppliedRows {
    /// An applier holds the lock of this one.
    pub(super) fn meet(&mut self, schema: &str, name: &str) {
        let key = table_key(schema.as_bytes(), name.as_bytes());
        if let Some(known) = self.0.get_mut(&key) {
            known.unmet = 0;
        } else if self.0.len() < TABLES_MAX {
            let (schema, name) = (schema.to_owned(), name.to_owned());
            self.0.insert(key, Counted { schema, name, unmet: 0, rows: None });
        }
    }

    /// What to ask now; `None` if no table was met for long.
    pub(super) fn question(&mut self) -> Option<String> {
        self.0.retain(|_, table| {
            table.unmet = table.unmet.saturating_add(1);
            table.unmet <= KEPT
        });
        if self.0.is_empty() {
            return None;
        }
        let mut sql =
            "SELECT OBJECT_SCHEMA, OBJECT_NAME, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE \
            FROM performance_schema.table_io_waits_summary_by_table \
            WHERE (OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME) IN ("
                .to_owned();
        for (index, table) in self.0.values().enumerate() {
            sql.push_str(if index == 0 { "('TABLE', " } else { ", ('TABLE', " });
            push_literal(&mut sql, &table.schema);
            sql.push_str(", ");
            push_literal(&mut sql, &table.name);
            sql.push(')');
        }
        sql.push(')');
        Some(sql)
    }

    /// The rows since it was asked last. What was there the first time was applied before anybody was told.
    pub(super) fn take_in(&mut self, answer: &[Row]) -> Vec<(Written, f64)> {
        let mut applied = Vec::new();
        for row in answer {
            let word = |index| row.as_ref(index).and_then(text);
            let (Some(schema), Some(name)) = (word(0), word(1)) else { continue };
            let table = table_key(schema.as_bytes(), name.as_bytes());
            let Some(counted) = self.0.get_mut(&table) else { continue };
            let now = [2, 3, 4]
                .map(|index| row.as_ref(index).and_then(number::<u64>).unwrap_or_default());
            let before = counted.rows.replace(now).unwrap_or(now);
            for ((kind, now), before) in KINDS.into_iter().zip(now).zip(before) {
                let rows = u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
                if rows > 0 {
                    applied.push((Written { table, kind }, f64::from(rows)));
                }
            }
        }
        applied
    }
}

/// By its bytes: nothing in a name can end it, whatever the session's `sql_mode`.
fn push_literal(sql: &mut String, name: &str) {
    sql.push_str("_utf8mb4 X'");
    for byte in name.bytes() {
        write!(sql, "{byte:02x}").ok();
    }
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_by_their_bytes_and_forgotten_when_nobody_is_at_them() {
        let mut rows = AppliedRows::default();
        assert_eq!(rows.question(), None);
        rows.meet("shop", "it's");
        rows.meet("shop", "it's");
        let asked = rows.question().unwrap();
        assert!(
            asked.ends_with(" IN (('TABLE', _utf8mb4 X'73686f70', _utf8mb4 X'69742773'))"),
            "{asked}"
        );
        for _ in 1..KEPT {
            assert!(rows.question().is_some());
        }
        assert_eq!(rows.question(), None);
    }

    #[test]
    fn so_many_tables_and_no_more() {
        let mut rows = AppliedRows::default();
        for table in 0..2 * TABLES_MAX {
            rows.meet("shop", &table.to_string());
        }
        assert_eq!(rows.0.len(), TABLES_MAX);
    }
}
