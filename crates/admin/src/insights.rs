//! `/api/v1/insights`: what every digest, app and schema has cost. What a proxy cannot see (rows
//! examined, locks, CPU) is not in it.

mod asked;
mod gather;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use ::insights::{most, p99};

pub(crate) use self::gather::insights;

/// What a window shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Insights {
    /// Whether statements are counted, by `insights.enabled` of the file. If not, what is shown was
    /// counted before, or there is nothing.
    #[serde(default = "counted")]
    pub enabled: bool,
    /// When the window begins: at a whole minute, or ten.
    pub from: String,
    /// When it ends.
    pub to: String,
    /// The part of the window, in seconds, from the first statement in it on: before, Sluice may not
    /// have been there.
    pub window_s: f64,
    /// What makes a row.
    pub by: String,
    /// The tags of which senders have their values: `insights.tags` of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What the rows are sorted by, the largest first.
    pub sort: String,
    /// When the window begins that rows are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_from: Option<String>,
    /// When that ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_to: Option<String>,
    /// The part of that, in seconds, from the first statement in it on; 0 if nothing was counted then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_window_s: Option<f64>,
    /// Everything of the clusters and the filter, whether it has a row or not.
    pub total: Cost,
    /// What each app did in each second, whatever the filter; for the last hour of the window, and the
    /// first 256 apps.
    pub apps: Vec<AppSeconds>,
    /// Rows that there are.
    pub rows_total: usize,
    /// Those that are shown.
    pub rows: Vec<Row>,
}

/// What an older Sluice does not say.
fn counted() -> bool {
    true
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The cluster.
    pub cluster: String,
    /// The app; `other` for statements that have no row of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The default schema; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The MySQL user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The table, with its schema; empty for statements that name none, `unknown` where theirs
    /// cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The tag's value; empty for none, `other` where values are too many to be told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The digest, 16 hexadecimal digits; `other`, or `unknown` for texts that are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The digest's text; empty if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_text: Option<String>,
    /// The digest's tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Whether these are all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables_complete: Option<bool>,
    /// The class that the digest counts as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// All classes of its text, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Why no rule may hold it back: `system_schema`, `ghost_changelog`, `advisory_lock`,
    /// `rename_table`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exemption: Option<String>,
    /// Who sent the statements, of rows by digest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<Sender>,
    /// A statement of the digest as it came, if the file wants samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_text: Option<String>,
    /// What it has cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// What is different from the window before: `new`, `slower`, `grown`, `shrunk`, `gone`, `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// What it has cost in the window before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Cost>,
}

/// What an app did in each second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppSeconds {
    /// The cluster.
    pub cluster: String,
    /// The app.
    pub app: String,
    /// How many statements were at the server at once, in 99 of 100 of the seconds in which there was
    /// one: no more than so many on average.
    pub concurrency_p99: f64,
    /// In the fullest second.
    pub concurrency_max: f64,
    /// Its seconds by how many there were at once: pairs of the most, and of how many seconds had no
    /// more, and more than the pair before.
    pub by_concurrency: Vec<(f64, u64)>,
    /// The same by how many statements ended in them.
    pub by_statements: Vec<(f64, u64)>,
    /// The same by how many rows these sent and changed.
    pub by_rows: Vec<(f64, u64)>,
}

/// Whose statements a row is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sender {
    /// The MySQL user; absent if the name is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The values of the tags that the file names, where they had one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Statements that reached the server.
    pub count: u64,
    /// Statements that were refused and never reached it.
    pub refused: u64,
    /// Time at the server.
    pub time_total_s: f64,
    /// Rows of result sets.
    pub rows_sent: u64,
    /// Rows changed.
    pub rows_affected: u64,
}

/// What statements have cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Statements that reached the server.
    pub count: u64,
    /// Of these, those that the server answered with an error.
    pub errors: u64,
    /// The same by the error's number; `other` for those beyond the first sixteen numbers.
    pub errors_by_number: BTreeMap<String, u64>,
    /// Statements whose connection ended before the answer did.
    pub lost: u64,
    /// Warnings, as the server counts them.
    pub warnings: u64,
    /// Time at the server.
    pub time_total_s: f64,
    /// Its part of all time at the server in the window, 0 to 1.
    pub share: f64,
    /// The mean; null where no statement reached the server, as are the next four.
    pub time_mean_s: Option<f64>,
    /// Half of the statements took less; off by a sixteenth at most, as are the next two.
    pub time_p50_s: Option<f64>,
    /// 95 of 100 took less.
    pub time_p95_s: Option<f64>,
    /// 99 of 100 took less.
    pub time_p99_s: Option<f64>,
    /// The longest.
    pub time_max_s: Option<f64>,
    /// Time that statements were kept waiting before, also those that were refused in the end.
    pub queued_total_s: f64,
    /// Statements that were refused and never reached the server.
    pub refused: u64,
    /// The same by reason.
    pub refused_by_reason: BTreeMap<String, u64>,
    /// Statements whose clients left, or that were killed, while they waited.
    pub client_gone: u64,
    /// Rows of result sets.
    pub rows_sent: u64,
    /// Rows changed.
    pub rows_affected: u64,
    /// Bytes of commands.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
    /// When the first of them was over, within half a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// When the last was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
}
