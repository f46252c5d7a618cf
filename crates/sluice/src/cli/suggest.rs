//! `sluice suggest`

use std::path::PathBuf;

use clap::Args;

use super::Asked;

/// `sluice suggest`
#[derive(Debug, Args)]
pub(crate) struct Suggest {
    /// What `sluice insights --window 1h --format json` has written, instead of asking; `-` is
    /// standard input.
    #[arg(long, value_name = "INSIGHTS", conflicts_with_all = ["admin", "config", "ca"])]
    pub(crate) from: Option<PathBuf>,
    /// How far back it is asked for.
    #[arg(long, value_name = "TIME", default_value = "1h", conflicts_with = "from")]
    pub(crate) window: String,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
}

pub(super) const ABOUT: &str = "\
Write a first rule file from what statements have cost: the apps that were found, what each writes, a rule \
for each that writes, a budget at twice the statements that it had at the server at once, and guards. The \
file is on standard output, with a comment at every number that says where it comes from.

Nothing in it holds anything back: the cluster observes, budgets and guards warn. Addresses are to be filled \
in. It passes `sluice check --strict`; apps that a rule cannot name are said in comments. docs/AHEAD.md.

Exit status: 0 with a file, 1 if there are no insights to make it from, 2 if the command line is wrong.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice suggest > rules.yaml
  sluice suggest --admin http://10.0.0.5:9307 --window 30m
  sluice suggest --from insights.json
  sluice check --config rules.yaml --against insights.json";
