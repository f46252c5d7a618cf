//! `sluice insights`

use clap::{Args, ValueEnum};

use super::Asked;

/// `sluice insights`
#[derive(Debug, Args)]
pub(crate) struct Insights {
    /// What makes a row: digest, app, user, table, or tag:NAME for a tag that insights.tags names.
    #[arg(long, value_name = "WHAT", default_value = "digest")]
    pub(crate) by: String,
    /// What rows are sorted by, the largest first: time, count, mean, p50, p95, p99, max, errors, lost,
    /// warnings, queued, refused, client_gone, rows_sent, rows_affected, bytes_in, bytes_out,
    /// first_seen, last_seen.
    #[arg(long, value_name = "KEY", default_value = "time")]
    pub(crate) sort: String,
    /// How far back: up to an hour by minutes, up to a day by ten minutes.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) window: String,
    /// Compare with the window of the same length that ended so long ago; without a TIME, with the one
    /// just before.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "previous")]
    pub(crate) compare: Option<String>,
    /// How many rows; the default is 20, and 10000 (all that there are, as good as always) with
    /// --format json and csv, which other programs read.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: Option<u16>,
    /// Only statements of this app.
    #[arg(long, value_name = "APP")]
    pub(crate) app: Option<String>,
    /// Only statements with this default schema.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,
    /// Only statements of this MySQL user.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only statements of this digest.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
    /// Only statements with this value of a tag.
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) tag: Option<String>,
    /// Only this cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub(crate) format: TableFormat,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For people.
    #[value(alias = "table")]
    Text,
    /// One JSON object, as `/api/v1/insights` says it.
    Json,
    /// A line for each row, and one with the names of the columns.
    Csv,
}

pub(super) const ABOUT: &str = "\
Show what statements have cost, by digest, app, user or table: how often they ran, how long the server took, \
how long Sluice kept them waiting, errors, refusals, rows and bytes. A digest is a statement without its \
values. Everything that passes through Sluice is counted, whether a rule gates it or not.

What a proxy cannot see (rows examined, locks, CPU) is not there. Percentiles are off by a sixteenth at most. \
Digests that have no row of their own are in the row `other`; totals are exact. docs/INSIGHTS.md has every \
field.

With --compare the rows are those of both windows: new, gone, slower (a statement takes half as long again), \
grown or shrunk (in time at the server).

Exit status: 0 with an answer, 1 if there is none, 2 if the command line is wrong.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice insights
  sluice insights --by app --window 1h
  sluice insights --sort p99 --limit 50 --app reports
  sluice insights --compare                 what is different from the ten minutes before
  sluice insights --window 10m --compare 1h from the ten minutes of an hour ago
  sluice insights --by tag:tenant           with insights: { tags: [tenant] } in the file
  sluice insights --tag tenant:acme --sort count
  sluice insights --by table --sort rows_affected --format csv
  sluice insights --window 1d --format json > insights.json      for sluice check --against
  sluice insights --format json | jq '.rows[] | {app, digest_text, count, time_p99_s}'";
