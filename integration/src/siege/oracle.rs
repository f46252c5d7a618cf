//! Whether anything has moved, as the server itself counts.
//!
//! Three questions, each finer than the one before: have transactions been added to the executed GTIDs;
//! have rows been written that no binary log shows (temporary tables); has a statement been run of a
//! kind that the rule denies, even in vain.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{HarnessError, Result};
use crate::raw::RawConn;
use crate::server::Flavour;

/// What the server has done by now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    gtids: String,
    counts: BTreeMap<String, u64>,
}

/// The end of the binary log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogEnd {
    file: String,
    position: String,
}

/// What has moved between two marks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// Transactions in the binary log that are of no class documented as never held, as their events.
    pub transactions: Vec<String>,
    /// Transactions of classes documented as never held.
    pub documented: Vec<String>,
    /// Rows written, by counter.
    pub rows: Vec<String>,
    /// Statements run, by counter.
    pub ran: Vec<String>,
}

/// What the rule on the attacker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Every class that a rule can hold, reads apart.
    All,
    /// The classes that `write` covers.
    AllButDefinitions,
}

impl Moved {
    /// Whether something moved that must not.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        !(self.transactions.is_empty() && self.rows.is_empty() && self.ran.is_empty())
    }

    /// How bad: a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match (self.transactions.is_empty(), self.rows.is_empty(), self.ran.is_empty()) {
            (false, _, _) => "transaction",
            (true, false, _) => "rows",
            (true, true, false) => "ran",
            (true, true, true) => "nothing",
        }
    }

    /// Whether the same sort of thing has moved.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [&self.transactions, &self.rows, &self.ran];
        let words: Vec<&str> =
            all.iter().flat_map(|part| part.iter().map(String::as_str)).collect();
        f.write_str(&words.join("; "))
    }
}

/// Reads the marks.
///
/// # Errors
/// When the server does not answer.
pub async fn marks(admin: &mut RawConn, flavour: Flavour) -> Result<Marks> {
    let gtids = match flavour {
        Flavour::MySql => "@@GLOBAL.gtid_executed",
        Flavour::MariaDb => "@@GLOBAL.gtid_binlog_pos",
    };
    let names: Vec<String> = ROWS.iter().chain(&RAN).map(|name| format!("'{name}'")).collect();
    let sql = format!(
        "SELECT 'gtids', {gtids}; SHOW GLOBAL STATUS WHERE Variable_name IN ({})",
        names.join(",")
    );
    let mut marks = Marks::default();
    for [name, value] in pairs(admin, &sql).await? {
        match value.parse() {
            Ok(count) if name != "gtids" => drop(marks.counts.insert(name, count)),
            _ => marks.gtids = value,
        }
    }
    Ok(marks)
}

async fn pairs(admin: &mut RawConn, sql: &str) -> Result<Vec<[String; 2]>> {
    let rows = admin.query(sql).await?.accepted()?.text_rows()?;
    let text =
        |value: Option<Vec<u8>>| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
    let pair = |row: Vec<Option<Vec<u8>>>| {
        let mut values = row.into_iter().map(text);
        Some([values.next()?, values.next()?])
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Where the binary log ends now.
///
/// # Errors
/// When the server does not say.
pub async fn log_end(admin: &mut RawConn, flavour: Flavour) -> Result<LogEnd> {
    let sql = match flavour {
        Flavour::MySql => "SHOW BINARY LOG STATUS",
        Flavour::MariaDb => "SHOW MASTER STATUS",
    };
    let first = pairs(admin, sql).await?.into_iter().next();
    let [file, position] =
        first.ok_or_else(|| HarnessError::Malformed("there is no binary log".into()))?;
    Ok(LogEnd { file, position })
}

/// What lies between two marks; the binary log is read only when its GTIDs have moved.
///
/// # Errors
/// When the server does not answer.
pub async fn moved(
    admin: &mut RawConn,
    from: (&Marks, &LogEnd),
    to: &Marks,
    held: Held,
) -> Result<Moved> {
    let (before, log) = from;
    let mut moved = Moved::default();
    if before.gtids != to.gtids {
        for transaction in transactions(admin, log).await? {
            match is_documented(&transaction, held) {
                true => moved.documented.push(transaction),
                false => moved.transactions.push(transaction),
            }
        }
        if moved.transactions.is_empty() && moved.documented.is_empty() {
            moved.transactions.push(format!("{} became {}", before.gtids, to.gtids));
        }
    }
    for (name, count) in &to.counts {
        let was = before.counts.get(name).copied().unwrap_or(0);
        let by = count.saturating_sub(was);
        let may_run = held == Held::AllButDefinitions && !DATA.contains(&name.as_str());
        if by > 0 && !(may_run && RAN.contains(&name.as_str())) {
            let part = if ROWS.contains(&name.as_str()) { &mut moved.rows } else { &mut moved.ran };
            part.push(format!("{name} +{by}"));
        }
    }
    Ok(moved)
}

/// The transactions behind a place in the binary log, each as the text of its events.
async fn transactions(admin: &mut RawConn, from: &LogEnd) -> Result<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let files = admin.query("SHOW BINARY LOGS").await?.accepted()?.text_rows()?;
    let names = files.into_iter().filter_map(|row| row.into_iter().next().flatten());
    let names: Vec<String> =
        names.map(|name| String::from_utf8_lossy(&name).into_owned()).collect();
    for name in names.iter().filter(|name| **name >= from.file) {
        let start = if *name == from.file { from.position.as_str() } else { "4" };
        let sql = format!("SHOW BINLOG EVENTS IN '{name}' FROM {start}");
        for row in admin.query(sql).await?.accepted()?.text_rows()? {
            let mut values = row.into_iter().map(Option::unwrap_or_default).skip(2);
            let kind = String::from_utf8_lossy(&values.next().unwrap_or_default()).into_owned();
            let info = String::from_utf8_lossy(&values.nth(2).unwrap_or_default()).into_owned();
            match kind.as_str() {
                "Gtid" => all.push(Vec::new()),
                "Query" if info != "BEGIN" => push_last(&mut all, info),
                "Table_map" => push_last(&mut all, info),
                other if other.contains("rows") => push_last(&mut all, other.to_owned()),
                "XA_prepare" => push_last(&mut all, format!("XA PREPARE {info}")),
                _ => {}
            }
        }
    }
    Ok(all.into_iter().map(|events| events.join(", ")).collect())
}

fn push_last(all: &mut [Vec<String>], event: String) {
    if let Some(last) = all.last_mut() {
        last.push(event);
    }
}

/// Whether a transaction is a statement of a class that no rule holds.
fn is_documented(transaction: &str, held: Held) -> bool {
    let statement = match transaction.split_once("; ") {
        Some((first, rest)) if first.starts_with("use ") => rest,
        _ => transaction,
    };
    if held == Held::AllButDefinitions && !transaction.contains("table_id:") {
        // In the row format, what writes no rows defines something.
        return true;
    }
    let statement = after_comments(statement).to_ascii_uppercase();
    // MariaDB logs a transaction in which nothing but savepoints was set.
    if statement.starts_with("SAVEPOINT ") && !transaction.contains("table_id:") {
        return true;
    }
    DOCUMENTED.iter().any(|verb| statement.starts_with(verb))
}

/// What follows blanks, comments and the marks of executable comments.
fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(inside) = rest.strip_prefix("/*!").or(rest.strip_prefix("/*M!")) {
            Some(inside.trim_start_matches(|c: char| c.is_ascii_digit()))
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map(|(_, after)| after)
        } else if rest.starts_with("--") || rest.starts_with('#') {
            rest.split_once('\n').map(|(_, after)| after)
        } else {
            None
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

const DOCUMENTED: [&str; 12] = [
    "ANALYZE ",
    "FLUSH ",
    "GRANT ",
    "REVOKE ",
    "SET PASSWORD",
    "SET DEFAULT ROLE",
    "ALTER USER",
    "CREATE USER",
    "DROP USER",
    "CREATE ROLE",
    "DROP ROLE",
    "RENAME USER",
];

/// Those of `RAN` that are no definitions.
const DATA: [&str; 11] = [
    "Com_insert",
    "Com_insert_select",
    "Com_replace",
    "Com_replace_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_load",
    "Com_call_procedure",
    "Com_compound_sql",
];

/// User tables' rows, temporary tables among them.
const ROWS: [&str; 3] = ["Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"];

/// Statements by what they are, counted when the server begins to run one; those of classes that rules hold.
const RAN: [&str; 48] = [
    "Com_insert",
    "Com_insert_select",
    "Com_replace",
    "Com_replace_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_load",
    "Com_call_procedure",
    "Com_truncate",
    "Com_create_db",
    "Com_create_table",
    "Com_create_temporary_table",
    "Com_create_index",
    "Com_create_view",
    "Com_create_trigger",
    "Com_create_procedure",
    "Com_create_function",
    "Com_create_event",
    "Com_create_sequence",
    "Com_create_package",
    "Com_create_package_body",
    "Com_create_udf",
    "Com_create_server",
    "Com_alter_db",
    "Com_alter_table",
    "Com_alter_procedure",
    "Com_alter_function",
    "Com_alter_event",
    "Com_alter_sequence",
    "Com_alter_server",
    "Com_alter_tablespace",
    "Com_drop_db",
    "Com_drop_table",
    "Com_drop_temporary_table",
    "Com_drop_index",
    "Com_drop_view",
    "Com_drop_trigger",
    "Com_drop_procedure",
    "Com_drop_function",
    "Com_drop_event",
    "Com_drop_sequence",
    "Com_drop_server",
    "Com_optimize",
    "Com_repair",
    "Com_compound_sql",
    "Com_execute_immediate",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_rule_holds_is_known_behind_comments() {
        let rename = "use `w`; /* x */ -- y\n/*!50000 rename user a to b */";
        assert!(is_documented(rename, Held::All));
        assert!(!is_documented(&rename.replace("user", "table"), Held::All));
        assert!(!is_documented("use `w`; /* RENAME */ DROP TABLE a", Held::All));
        assert!(is_documented("use `w`; /* x */ DROP TABLE a", Held::AllButDefinitions));
        assert!(is_documented("SAVEPOINT `s`, COMMIT", Held::All));
        assert!(!is_documented("SAVEPOINT `s`, table_id: 7 (w.a), Write_rows, COMMIT", Held::All));
        let rows = "CREATE TABLE a (b int), table_id: 7 (w.a), Write_rows";
        assert!(!is_documented(rows, Held::AllButDefinitions));
    }
}
