//! The names behind the keys of tables that appliers were seen at.

use std::collections::BTreeMap;

use admission::TableKey;
use parking_lot::Mutex;
use policy::table_key;

/// Names kept; of tables that come later only the keys are known, and no metric is given.
const TABLES_MAX: usize = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct TableNames(Mutex<BTreeMap<TableKey, Box<str>>>);

impl TableNames {
    pub(crate) fn note(&self, schema: &str, table: &str) {
        let key = table_key(schema.as_bytes(), table.as_bytes());
        let mut names = self.0.lock();
        if names.len() < TABLES_MAX {
            names.entry(key).or_insert_with(|| format!("{schema}.{table}").into());
        }
    }

    /// Schema and table, with a dot between.
    pub(crate) fn of(&self, key: TableKey) -> Option<Box<str>> {
        self.0.lock().get(&key).cloned()
    }
}
