//! `sluice top`.

use clap::{Args, ValueEnum};

use super::Asked;

/// `sluice top`
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Which Sluice is watched.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The cluster to begin with; the default is the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Plain text, as always in this version.
    #[arg(long)]
    pub(crate) plain: bool,
    /// End after so many seconds. Without it Ctrl-C ends it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    /// Seconds from one look to the next.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) every: u64,
    /// The column that identities are sorted by.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Column::Waiting)]
    pub(crate) sort: Column,
    /// Turn the order round: the smallest numbers first.
    #[arg(long)]
    pub(crate) reverse: bool,
}

/// A column of the identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// The app.
    App,
    /// The rule it comes under.
    Rule,
    /// How many of its statements wait.
    Waiting,
    /// How long the longest of them has.
    Oldest,
    /// Statements a second that passed.
    PassedRate,
    /// Statements a second that passed after a wait.
    DelayedRate,
    /// Statements a second that were refused.
    RefusedRate,
    /// Statements that passed since the start.
    Passed,
    /// Those that waited before that.
    Delayed,
    /// Statements that were refused.
    Refused,
}

pub(super) const ABOUT: &str = "\
Watch a running Sluice: the lag with its threshold, the pace and the queue as they were and are, the identities \
with what is let through, delayed and refused a second and why, the servers, and the rules with the time they have \
left.

Each look is some lines of text; a line that wants attention begins with an exclamation mark. Watching changes nothing, needs no token, and shows no statement's text.

Exit status: 0, or 1 if there is no answer at the beginning or at the end, 2 if the command line is wrong.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice top
  sluice top --config /etc/sluice/proxy-config.yaml --sort refused-rate
  sluice top --admin http://10.0.0.5:9307
  sluice top --plain --seconds 60 --every 10 >> top.txt";
