//! `sluice check`

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `sluice check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Fail on warnings too: what is valid and cannot work.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Log in to every server as the probe does, and name each missing grant. Changes nothing.
    #[arg(long)]
    pub(crate) connect: bool,
    /// Tell what the file would have done to the statements of these insights: what `sluice insights
    /// --format json` has written; `-` is standard input.
    #[arg(long, value_name = "INSIGHTS")]
    pub(crate) against: Option<PathBuf>,
    /// How the answer to --against is written; with json nothing else is on standard output.
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "against")]
    pub(crate) format: Format,
}

pub(super) const ABOUT: &str = "\
Check a configuration file: all of its faults, and what in it cannot work.

Each fault is a line FILE:LINE: path: message on standard error. A password that is not where the file says \
is one of them, so check with the environment that `sluice run` will have. A good file gives a summary of its \
clusters, signals and rules, with the classes that each rule can hold back, in the order in which rules are \
tried; they are numbered as in the faults' paths.

A good file may still say what cannot work: a rule behind one that takes all of its statements, an end that is \
over, a value that looks like a regular expression. Each is a line FILE:LINE: warning: path: message on \
standard error, and a line in the log of a running Sluice. With --strict they make the check fail.

With --connect every server of the file is logged in to as the probe does, and asked what the file needs: \
whether the probe's account may do it (each missing grant is named as the statement that gives it), and \
whether replicas are of use: replicas of this primary, applying, not delayed, read only. Nothing is changed \
on any server. Of state_dir it is said if this user cannot write it. A server that does not answer is waited for four times connect_timeout at most.

With --against the statements that Sluice has counted go through the file's rules, budgets and guards, by the \
code that decides about statements that come: how many each rule would have denied, held or asked at its gate, \
and whose; how full each budget would have been; which statements each guard would have refused. Insights do \
not keep values, addresses and connection attributes: what depends on them is said to be unknown, and is \
never counted as passing. docs/AHEAD.md.

Exit status: 0 if the file is good and, with --connect, everything that it needs works; 1 if not, or with \
--strict if there are warnings, or if there are no insights in what --against names.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice check --config proxy-config.yaml
  SLUICE_PROBE_PASSWORD=… sluice check --config proxy-config.yaml --connect
  sluice check --strict --config new.yaml && mv new.yaml proxy-config.yaml
  sluice insights --window 1d --format json > insights.json
  sluice check --config new.yaml --against insights.json
  sluice check --config new.yaml --against insights.json --format json | jq '.clusters[].rules'";
