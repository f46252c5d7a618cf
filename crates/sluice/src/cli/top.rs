//! `sluice top`.

use clap::{Args, ValueEnum};

use super::{Asked, Token};

/// `sluice top`
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Which Sluice is watched.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Who asks, where rules are made and lifted.
    #[command(flatten)]
    pub(crate) token: Token,
    /// The cluster to begin with; the default is the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Plain text instead of a screen; the default when the output is no terminal.
    #[arg(long)]
    pub(crate) plain: bool,
    /// End after so many seconds. Without it q ends the screen, and Ctrl-C the plain text.
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

#[cfg(feature = "demo")]
impl Top {
    /// That of the Sluice there, for so many seconds.
    pub(crate) fn of(admin: String, seconds: u64) -> Self {
        Self {
            asked: Asked { admin: Some(admin), config: None, ca: None },
            token: Token { token_env: None, token_file: None },
            cluster: None,
            plain: false,
            seconds: Some(seconds),
            every: 1,
            sort: Column::Waiting,
            reverse: false,
        }
    }
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
    /// Statements a second that waited, whatever became of them.
    DelayedRate,
    /// Statements a second that were refused.
    RefusedRate,
    /// Statements that passed since the start.
    Passed,
    /// Statements that waited since the start, whatever became of them.
    Delayed,
    /// Statements that were refused.
    Refused,
}

pub(super) const ABOUT: &str = "\
Watch a running Sluice: the lag with its threshold, the pace and the queue as they were and are, the identities \
with what is let through, delayed and refused a second and why, the servers, and the rules with the time they have \
left.

On a terminal it is a screen. Tab goes from table to table, the arrows move and choose the column that is sorted \
by, r turns the order round, c shows the next cluster. h holds the chosen identity for an hour, t throttles it \
for an hour, u lifts the rule that was made for it or that is chosen. Each says first what it will do, and does it \
when y is pressed; they need the token that `sluice hold` needs (docs/ADMIN.md). ? shows all keys, q ends.

With --plain, or where the output is no terminal, each look is some lines of text; a line that wants attention \
begins with an exclamation mark. Watching changes nothing, needs no token, and shows no statement's text.

Exit status: 0, or 1 if there is no answer at the beginning or at the end, 2 if the command line is wrong, 128 and the \
signal's number (143 for SIGTERM) if one ended the screen.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice top
  sluice top --config /etc/sluice/proxy-config.yaml --sort refused-rate
  SLUICE_ADMIN_TOKEN=… sluice top --admin http://10.0.0.5:9307
  sluice top --plain --seconds 60 --every 10 >> top.txt";
