//! Whether a replica's own filters leave out the heartbeat (manual, "How Servers Evaluate Replication
//! Filtering Rules").

use mysql_async::Row;
use policy::TableName;

use super::super::answer::{column, text};
use super::super::logging::Logging;

/// The filters of one channel, as `SHOW REPLICA STATUS` lists them. A server with names in lower case
/// lists them so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    do_schemas: Vec<String>,
    ignore_schemas: Vec<String>,
    do_tables: Vec<String>,
    ignore_tables: Vec<String>,
    do_patterns: Vec<String>,
    ignore_patterns: Vec<String>,
    /// From and to.
    rewrites: Vec<(String, String)>,
}

const DO_SCHEMAS: &str = "Replicate_Do_DB";
const IGNORE_SCHEMAS: &str = "Replicate_Ignore_DB";
const DO_TABLES: &str = "Replicate_Do_Table";
const IGNORE_TABLES: &str = "Replicate_Ignore_Table";
const DO_PATTERNS: &str = "Replicate_Wild_Do_Table";
const IGNORE_PATTERNS: &str = "Replicate_Wild_Ignore_Table";
const REWRITES: &str = "Replicate_Rewrite_DB";

impl Filter {
    pub(super) fn of_channel(row: &Row) -> Self {
        let told = |name: &str| column(row, &[name]).and_then(text).unwrap_or_default();
        let list = |name: &str| -> Vec<String> {
            let listed = told(name);
            let names = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        Self {
            do_schemas: list(DO_SCHEMAS),
            ignore_schemas: list(IGNORE_SCHEMAS),
            do_tables: list(DO_TABLES),
            ignore_tables: list(IGNORE_TABLES),
            do_patterns: list(DO_PATTERNS),
            ignore_patterns: list(IGNORE_PATTERNS),
            rewrites: rewrites(&told(REWRITES)),
        }
    }

    /// Which of them leaves out this table; none if none does, or nobody knows.
    pub(super) fn leaves_out(&self, table: &TableName, logging: Logging) -> Option<&'static str> {
        let by_schema = match logging {
            Logging::Rows => self.schema_of_rows(&table.schema),
            Logging::Statements => self.schema_of_statements(),
            Logging::Unknown => {
                self.schema_of_rows(&table.schema).filter(|_| self.schema_of_statements().is_some())
            }
        };
        by_schema.or_else(|| self.table(table))
    }

    /// Which leaves out rows of this schema.
    fn schema_of_rows(&self, schema: &String) -> Option<&'static str> {
        let is_rewritten = |(from, to): &(String, String)| from == schema && to != schema;
        if self.rewrites.iter().any(is_rewritten) {
            return Some(REWRITES);
        }
        if !self.do_schemas.is_empty() {
            if !self.do_schemas.contains(schema) {
                return Some(DO_SCHEMAS);
            }
        } else if self.ignore_schemas.contains(schema) {
            return Some(IGNORE_SCHEMAS);
        }
        None
    }

    /// Which leaves out statements of a session without a default schema, whatever they write to.
    fn schema_of_statements(&self) -> Option<&'static str> {
        (!self.do_schemas.is_empty()).then_some(DO_SCHEMAS)
    }

    fn table(&self, TableName { schema, table }: &TableName) -> Option<&'static str> {
        let name = format!("{schema}.{table}");
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| is_like(&name, pattern));
        if self.do_tables.contains(&name) {
            None
        } else if self.ignore_tables.contains(&name) {
            Some(IGNORE_TABLES)
        } else if fits(&self.do_patterns) {
            None
        } else if fits(&self.ignore_patterns) {
            Some(IGNORE_PATTERNS)
        } else if !self.do_tables.is_empty() {
            Some(DO_TABLES)
        } else if !self.do_patterns.is_empty() {
            Some(DO_PATTERNS)
        } else {
            None
        }
    }
}

/// `(from,to),(from,to)`; MariaDB: `from->to,from->to`.
fn rewrites(listed: &str) -> Vec<(String, String)> {
    let (end, between) = if listed.contains("->") { (',', "->") } else { (')', ",") };
    let pairs = listed.split(end).filter_map(|pair| {
        let (from, to) = pair.trim_start_matches([',', '(', ' ']).split_once(between)?;
        Some((from.trim().to_owned(), to.trim().to_owned()))
    });
    pairs.collect()
}

/// LIKE: `%` is any text, `_` any character, and a backslash takes either as it is.
fn is_like(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Whether the pattern up to here is that much of the name.
    let mut reached: Vec<bool> = std::iter::once(true).chain(name.iter().map(|_| false)).collect();
    let mut pattern = pattern.chars();
    while let Some(part) = pattern.next() {
        let expected = match part {
            '%' => {
                let mut any = false;
                for reached in &mut reached {
                    any |= *reached;
                    *reached = any;
                }
                continue;
            }
            '_' => None,
            '\\' => pattern.next(),
            part => Some(part),
        };
        let fits = |c: &char| expected.is_none_or(|expected| expected == *c);
        let further = reached.iter().zip(&name).map(|(reached, c)| *reached && fits(c));
        reached = std::iter::once(false).chain(further).collect();
    }
    reached.last().is_some_and(|whole| *whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat() -> TableName {
        TableName { schema: "sluice".into(), table: "heartbeat".into() }
    }

    fn some(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn schemas_come_before_tables_and_a_table_that_is_named_before_patterns() {
        let left_out = |filter: Filter| filter.leaves_out(&heartbeat(), Logging::Rows);
        let all = Filter::default();
        assert_eq!(left_out(all.clone()), None);
        let ignored = Filter { ignore_schemas: some(&["a", "sluice"]), ..all.clone() };
        assert_eq!(left_out(ignored.clone()), Some(IGNORE_SCHEMAS));
        // With any Do_DB nobody looks at Ignore_DB.
        let both = Filter { do_schemas: some(&["sluice"]), ..ignored.clone() };
        assert_eq!(left_out(both), None);
        assert_eq!(left_out(Filter { do_schemas: some(&["shop"]), ..ignored }), Some(DO_SCHEMAS));
        let wild = Filter { ignore_patterns: some(&["s_uice.%"]), ..all.clone() };
        assert_eq!(left_out(wild.clone()), Some(IGNORE_PATTERNS));
        let named = Filter { do_tables: some(&["sluice.heartbeat"]), ..wild.clone() };
        assert_eq!(left_out(named), None);
        let other = Filter { do_patterns: some(&["shop.%"]), ..all.clone() };
        assert_eq!(left_out(other), Some(DO_PATTERNS));
        let table = Filter { ignore_tables: some(&["sluice.heartbeat"]), ..all.clone() };
        assert_eq!(left_out(table), Some(IGNORE_TABLES));
        assert_eq!(left_out(Filter { do_tables: some(&["a.b"]), ..all.clone() }), Some(DO_TABLES));
        let renamed = |listed: &str| Filter { rewrites: rewrites(listed), ..all.clone() };
        assert_eq!(left_out(renamed("(sluice,old)")), Some(REWRITES));
        assert_eq!(left_out(renamed("(shop,sluice)")), None);
    }

    /// A replica that only lagged was said to leave out heartbeats, which came.
    #[test]
    fn of_statements_no_schema_but_that_of_their_session_counts() {
        let left_out = |filter: &Filter| {
            [Logging::Rows, Logging::Statements, Logging::Unknown]
                .map(|logging| filter.leaves_out(&heartbeat(), logging))
        };
        let all = Filter::default();
        let ignored = Filter { ignore_schemas: some(&["sluice"]), ..all.clone() };
        assert_eq!(left_out(&ignored), [Some(IGNORE_SCHEMAS), None, None]);
        let renamed = Filter { rewrites: rewrites("sluice->old"), ..all.clone() };
        assert_eq!(left_out(&renamed), [Some(REWRITES), None, None]);
        let named = Filter { do_schemas: some(&["sluice"]), ..all.clone() };
        assert_eq!(left_out(&named), [None, Some(DO_SCHEMAS), None]);
        let other = Filter { do_schemas: some(&["shop"]), ..all.clone() };
        assert_eq!(left_out(&other), [Some(DO_SCHEMAS); 3]);
        let wild = Filter { ignore_patterns: some(&["sluice.%"]), ..ignored };
        let by_table = Some(IGNORE_PATTERNS);
        assert_eq!(left_out(&wild), [Some(IGNORE_SCHEMAS), by_table, by_table]);
    }

    /// Of MariaDB's only the first was seen.
    #[test]
    fn each_of_several_rewrites_is_read() {
        let expected = [("shop", "old"), ("sluice", "new")];
        let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
        for listed in ["(shop,old),(sluice,new)", "shop->old,sluice->new"] {
            assert_eq!(rewrites(listed), expected, "{listed}");
        }
        assert_eq!(rewrites(""), []);
    }

    #[test]
    fn a_pattern_is_likes_and_takes_no_longer_for_many_wildcards() {
        for pattern in ["%", "sluice.%", "%.heart_eat", "sl%ce.h%t", r"sluice.heart\beat"] {
            assert!(is_like("sluice.heartbeat", pattern), "{pattern}");
        }
        for pattern in ["", "sluice", "sluice_", r"sluice\_heartbeat", "_%_.x", "sluice.heartbeat_"]
        {
            assert!(!is_like("sluice.heartbeat", pattern), "{pattern}");
        }
        assert!(is_like("a_b.c", r"a\_b.%") && !is_like("axb.c", r"a\_b.%"));
        assert!(!is_like(&"a".repeat(500), &format!("{}b", "%a".repeat(200))));
    }
}
