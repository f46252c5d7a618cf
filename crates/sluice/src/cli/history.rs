//! The commands that look back.

use clap::Args;

use super::{Asked, Format};

/// `sluice history`
#[derive(Debug, Args)]
pub(crate) struct History {
    /// The app: its name as metrics show it, or one of its levels; without it, all of them.
    #[arg(value_name = "APP")]
    pub(crate) app: Option<String>,
    /// From when on: 10m ago, 07:00, 2026-11-22 07:00, or a time of RFC 3339.
    #[arg(long, value_name = "TIME", default_value = "1h ago")]
    pub(crate) since: String,
    /// Until when; the default is now.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only this cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// `sluice why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The id in the client's error (`[sluice id=…`), or an app.
    #[arg(value_name = "ID|APP")]
    pub(crate) what: String,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

pub(super) const HISTORY: &str = "\
Tell what happened: in sentences first (who was held from when to when, by what, who wrote meanwhile; what \
signals and servers did; which rules changed, and who did it), then in a table, and on a terminal in a plot.

Times of day are this machine's, and so are those in the answer; what is kept is in UTC. The history is in \
history.sqlite3 of state_dir, for a month or a quarter of a gigabyte (history.max_age and max_size of the file); \
without state_dir it is in memory, since Sluice has started (docs/HISTORY.md).

Exit status: 0 with an answer, 1 if there is none, 2 if the command line is wrong.";

pub(super) const HISTORY_EXAMPLES: &str = "\
Examples:
  sluice history etl --since 07:00
  sluice history --since '10m ago'
  sluice history etl --since 2026-11-22T07:00:00Z --until 2026-11-22T07:30:00Z --admin http://10.0.0.5:9307
  sluice history etl --format json | jq '.held[] | {began, ended, reason}'";

pub(super) const WHY: &str = "\
Tell why one statement was refused, by the id in its client's error: who it was taken for and where that came \
from, the rule, its dice, the signals of its gate with values and servers, its place in line and who was before \
it; or the guard, the budget or the quarantine that decided; and what would have let it through. Of an app, the same for that of its statements which waits longest, for \
the last that was refused, and for the longest wait of the last hour.

The last 1,000 refusals, the last of each app and cause, and the 100 longest waits of an hour are kept in memory, more in the history on disk. \
No statement's text or values are kept.

Exit status: 0 with an answer, 1 if nothing is known or nobody answers, 2 if the command line is wrong.";

pub(super) const WHY_EXAMPLES: &str = "\
Examples:
  sluice why 7f3a9c01
  sluice why etl --admin http://10.0.0.5:9307
  sluice why 7f3a9c01 --format json | jq '.statements[0].signals'";
