//! `sluice simulate`

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use policy::UnixTime;

use super::app_load::AppLoad;
use super::{Format, Pacing};

/// `sluice simulate`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["scenario", "config"])))]
pub(crate) struct Simulate {
    /// The scenario's file.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<PathBuf>,
    /// How the figures are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Where chance comes from, instead of the scenario's seed.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How contended gates let through, instead of what the file says.
    #[arg(long, value_enum)]
    pub(crate) pacing: Option<Pacing>,
    /// Write the scenario into a new file, `-` for standard output, instead of simulating it.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) load: Load,
}

/// A load under the rules of a configuration file, instead of a scenario.
#[derive(Debug, Args)]
#[command(next_help_heading = "Your rules under a load")]
pub(crate) struct Load {
    /// The configuration file whose rules are simulated.
    #[arg(long, short, value_name = "FILE", requires = "app")]
    pub(crate) config: Option<PathBuf>,
    /// Who asks; once for each app. See below for the keys.
    #[arg(long, value_name = "NAME[:KEY=VALUE,…]", requires = "config",
        value_parser = AppLoad::parse)]
    pub(crate) app: Vec<AppLoad>,
    /// One more rule, before those of the file, to be tried: the file's own keys, as in
    /// '{ match: { app: etl }, ratio: 0.9 }'.
    #[arg(long, value_name = "RULE", requires = "config")]
    pub(crate) rule: Option<String>,
    /// The cluster; needed when the file has several.
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(crate) cluster: Option<String>,
    /// The RFC 3339 time at which rules are looked at: some have schedules, some expire [default:
    /// now]
    #[arg(long, value_name = "TIME", requires = "config")]
    pub(crate) at: Option<UnixTime>,
    /// How many rows a second a replica applies; for several, in the order of the file, with commas.
    /// The last one is for all that follow.
    #[arg(long, value_name = "N", requires = "config", value_delimiter = ',',
        default_value = "1000", value_parser = rate)]
    pub(crate) replica_rows_per_second: Vec<f64>,
    /// How many rows a second the primary takes at most.
    #[arg(long, value_name = "N", requires = "config", default_value = "1000000",
        value_parser = rate)]
    pub(crate) primary_rows_per_second: f64,
    /// Rows a second that reach the replicas without passing through Sluice.
    #[arg(long, value_name = "N", requires = "config", default_value = "0", value_parser = rate)]
    pub(crate) background_rows_per_second: f64,
    /// How long it is simulated; the first tenth, 10 s at most, is counted in no figure.
    #[arg(long, value_name = "TIME", requires = "config", default_value = "120s",
        value_parser = span)]
    pub(crate) duration: Duration,
}

fn span(text: &str) -> Result<Duration, String> {
    let wanted = || "a duration with its unit is wanted, from 1s to 24h, as in 120s".to_owned();
    ::simulate::duration(text).filter(|span| *span >= DURATION_MIN).ok_or_else(wanted)
}

/// Shorter, there is nothing to see.
const DURATION_MIN: Duration = Duration::from_secs(1);

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=RATE_MAX).contains(rate));
    rate.ok_or_else(|| format!("a number of rows a second is wanted, from 0 to {RATE_MAX}"))
}

/// As in scenarios.
const RATE_MAX: f64 = 1e9;

pub(crate) const ABOUT: &str = "\
Show what rules or a pace do to clients and to lag, against a model of servers and clients.

The admission controller that ships is run against a model of a primary, its replicas and closed-loop \
clients, on a virtual clock: ten minutes take a second or two, and the same seed gives the same figures. \
The lag in them is the true one, which Sluice itself never sees.

With --config and --app, the rules are those of your file: each app's statement is looked at as `sluice run` \
would, and what is found (ratio, speed, gate, max_delay, hold and the rest) is simulated under the load that you describe. The \
same load without any rule is shown beside it. --rule tries a rule that the file does not have yet. What the model does not \
have is said in the answer. --write-scenario gives the scenario, to go on from.

With SCENARIO, everything is in that file. docs/SIMULATE.md describes it; scenarios/ has examples.

Exit status: 0 if every figure is as the scenario expects, 1 if one is not, 2 if a file has faults \
or the run is too long to be simulated.";

pub(crate) const EXAMPLES: &str = "\
Keys of --app:
  sessions=8      clients, each with one connection       [1]
  rows=100        rows that a statement writes, or 1-9    [1]
  statements=10   statements of a transaction             [1]
  think=5ms       from a result to the next statement     [0s]
  server=5ms      the least a statement takes there       [5ms]
  class=read      what kind of statement it is            [write]
  user=batch      the MySQL user; then the app's name is a claim, which identity.claims must
                  allow                                   [called as the app]
  client=10.0.0.7, schema=shop, priority=20, tag.KEY=VALUE, attribute.KEY=VALUE
  sql=STATEMENT   instead of class, tag and priority; the last key, it goes to the end

Examples:
  sluice simulate --config proxy-config.yaml --app etl:sessions=8,rows=100,think=5ms
  sluice simulate --config proxy-config.yaml --app etl --rule '{ match: { app: etl }, ratio: 0.9 }'
  sluice simulate --config proxy-config.yaml --app etl:rows=50 --app web:sessions=20,think=100ms \\
      --replica-rows-per-second 2000,800 --duration 5m --write-scenario mine.yaml
  sluice simulate scenarios/capacity-drop.yaml
  sluice simulate scenarios/steady.yaml --pacing binary --seed 11
  sluice simulate scenarios/steady.yaml --format json | jq .lag_s.p99";
