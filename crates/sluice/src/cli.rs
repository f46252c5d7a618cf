//! The command line.

mod app_load;
mod check;
mod history;
mod insights;
mod quarantine;
mod rules;
mod simulate;
mod suggest;
mod top;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use policy::UnixTime;

pub(crate) use self::app_load::{AppLoad, Text};
pub(crate) use self::check::Check;
pub(crate) use self::history::{History, Why};
pub(crate) use self::insights::{Insights, TableFormat};
pub(crate) use self::quarantine::Quarantine;
pub(crate) use self::rules::{Asked, Made, Rules, Throttle, Token, Unthrottle, Whom};
pub(crate) use self::simulate::{Load, Simulate};
pub(crate) use self::suggest::Suggest;
pub(crate) use self::top::{Column, Top};

/// An enforcement throttler for MySQL.
///
/// Sluice stands between clients and a MySQL or MariaDB server as a TCP proxy. For every statement
/// it learns who is asking, finds the rule for that identity, and forwards the statement, delays
/// it, or answers it with a MySQL error, so that replication lag and load stay within their limits.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy.
    #[command(long_about = RUN, after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Check a configuration file: all of its faults, and what in it cannot work.
    #[command(long_about = check::ABOUT, after_help = check::EXAMPLES)]
    Check(Check),
    /// Tell what would happen to one statement, and why.
    #[command(long_about = EXPLAIN, after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Show what rules or a pace do to clients and to lag, against a model.
    #[command(long_about = simulate::ABOUT, after_help = simulate::EXAMPLES)]
    Simulate(Simulate),
    /// Show what a running Sluice does: who waits, why, and for how long.
    #[command(long_about = STATUS, after_help = STATUS_EXAMPLES)]
    Status(Status),
    /// Tell what happened: who was held, when and why, and what changed.
    #[command(long_about = history::HISTORY, after_help = history::HISTORY_EXAMPLES)]
    History(History),
    /// Tell why a statement was refused, or what keeps an app.
    #[command(long_about = history::WHY, after_help = history::WHY_EXAMPLES)]
    Why(Why),
    /// Show what statements have cost, by digest, app, user or table.
    #[command(long_about = insights::ABOUT, after_help = insights::EXAMPLES)]
    Insights(Insights),
    /// Write a first rule file, that only observes, from what statements have cost.
    #[command(long_about = suggest::ABOUT, after_help = suggest::EXAMPLES)]
    Suggest(Suggest),
    /// Watch a running Sluice: lag, pace, queue, identities; hold, throttle and lift.
    #[command(long_about = top::ABOUT, after_help = top::EXAMPLES)]
    Top(Top),
    /// Have a part of an app's checks refused for a while.
    #[command(long_about = rules::THROTTLE, after_help = rules::THROTTLE_EXAMPLES)]
    Throttle(Throttle),
    /// Let nothing of an app pass for a while.
    #[command(long_about = rules::HOLD)]
    Hold(Made),
    /// Let everything of an app pass for a while.
    #[command(long_about = rules::EXEMPT)]
    Exempt(Made),
    /// Refuse everything of an app that changes something, for a while.
    #[command(long_about = rules::DENY)]
    Deny(Made),
    /// Lift what was made for an app while Sluice runs.
    #[command(long_about = rules::UNTHROTTLE)]
    Unthrottle(Unthrottle),
    /// Show all rules of a running Sluice, with their authors and ends.
    #[command(long_about = rules::RULES)]
    Rules(Rules),
    /// Show what is refused because its like ran away, or free it.
    #[command(long_about = quarantine::ABOUT, after_help = quarantine::EXAMPLES)]
    Quarantine(Quarantine),
    /// Show Sluice at work on real servers started for it.
    #[cfg(feature = "demo")]
    #[command(long_about = DEMO)]
    Demo(Demo),
}

/// `sluice demo`
#[cfg(feature = "demo")]
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How long to run, in seconds. Ctrl-C ends it earlier.
    #[arg(long, default_value_t = 60, value_name = "N",
        value_parser = clap::value_parser!(u64).range(10..=3600))]
    pub(crate) seconds: u64,
    /// Lines every other second instead of `sluice top`; the default when the output is no terminal.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Exit with status 1 unless the identities were told apart, the gated ones were delayed, and
    /// the web application was not.
    #[arg(long)]
    pub(crate) assert: bool,
}

/// `sluice run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The configuration file. It is applied again whenever it changes.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// How the log on standard error is written. RUST_LOG sets what is in it.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Threads that relay at most; the default is one for each core.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// How much of a core one of them uses before another joins: one that finds much to do costs less
    /// than two that find little. 0: all relay from the start.
    #[arg(long, value_name = "PERCENT", default_value_t = 60, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) worker_full: u8,
    /// Take the listeners over from the process that is running, which then drains: a restart
    /// without a refused connection. Needs takeover_socket in the file; with nobody running it is
    /// an ordinary start.
    #[arg(long)]
    pub(crate) takeover: bool,
}

/// `sluice status`
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How many waiting statements of each cluster are listed, those that have waited longest.
    #[arg(long, default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) waiting: u16,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// `sluice explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The configuration file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The cluster; needed when the file has several.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// The MySQL user who asks.
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: String,
    /// A connection attribute, as many as there are.
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) attribute: Vec<(String, String)>,
    /// The session's default schema.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,
    /// The client's address.
    #[arg(long, value_name = "IP")]
    pub(crate) client: Option<IpAddr>,
    /// The statement, which may begin with a dash; `-` reads it from standard input.
    #[arg(long, short, value_name = "STATEMENT", allow_hyphen_values = true)]
    pub(crate) sql: String,
    /// When: a time of RFC 3339, for rules that end or have a schedule. The default is now.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<UnixTime>,
    /// Which server reads the statement, where their grammars differ. Without it every reading is
    /// made, and the strictest counts.
    #[arg(long, value_enum)]
    pub(crate) server: Option<ServerKind>,
    /// The HTTP side of a running Sluice, whose runtime rules are to count: they stand before the
    /// file's. Without it the file alone does.
    #[arg(long, value_name = "http://HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// For https://: the certificates that may have signed that of the HTTP side, or that one
    /// itself, in PEM. The default is the system's.
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) ca: Option<PathBuf>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// How contended gates let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pacing {
    /// Work in flight is kept within what the replicas apply.
    Adaptive,
    /// The plain gate.
    Binary,
}

/// Whose grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerKind {
    /// Oracle MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected KEY=VALUE".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  sluice check --config proxy-config.yaml
  sluice run --config proxy-config.yaml
  sluice status
  sluice insights --by app
  sluice top
  sluice throttle etl --ratio 0.9 --for 1h
  sluice rules
  sluice explain --config proxy-config.yaml --user etl --sql 'UPDATE t SET a = 1'
  sluice simulate --config proxy-config.yaml --app etl:sessions=8,rows=100

Each command has its own --help.";

const STATUS: &str = "\
Show what a running Sluice does: its signals with their thresholds, the replicas, the pace, who is throttled \
and since when, the connections that wait with user, address and reason, who is starved and by whom, what \
became of each app's statements, and the rules with the time they have left. It is what the page at /plain of \
admin.listen shows, from the same source. A line that wants attention begins with an exclamation mark; there \
is colour only on a terminal, and none if NO_COLOR is set.

Nothing is changed by it, and no statement's text is shown. With --format json the answer is what \
/api/v1/status says; docs/OPERATIONS.md lists its fields.

Exit status: 0 with an answer, 1 if there is none: nothing listens there, or it is not a Sluice, or one that is too old; 2 if --admin or --config says no address.";

const STATUS_EXAMPLES: &str = "\
Examples:
  sluice status
  sluice status --config /etc/sluice/proxy-config.yaml
  sluice status --admin http://10.0.0.5:9307 --waiting 200
  sluice status --format json | jq '.clusters[].waiting[] | {user, client, app, reason, waited_s}'
  watch -n 1 sluice status";

const RUN: &str = "\
Run the proxy.

Listens where each cluster of the file says and relays to its primary. The file is watched: saving it \
applies it within a second, a file with faults changes nothing and is reported in the log with the line \
of each fault. What needs a restart is named in the log. The files of certificates and keys are read again \
when they change, too: one that cannot be used is reported, and the one before stays in force.

Signals: SIGHUP reads the file at once. SIGTERM and SIGINT drain: no new connections, who waits is \
refused, open transactions may finish within drain_timeout, what is left is closed with error 1053. \
A second one closes it at once, a third one ends the process.

With --takeover the listening sockets come from the running process, by takeover_socket of the file; that \
process drains as soon as this one serves, lets statements that wait there wait on, and ends with status 0. Sockets that systemd passes on (socket activation) are used where \
the file says to listen on their address.

Passwords come from the environment or from files, as the file's password_env and password_file say.

Exit status: 0 after a drain, 1 if a signal cut it short, 1 if the file has faults or a listener cannot be opened.";

const RUN_EXAMPLES: &str = "\
Examples:
  SLUICE_PROBE_PASSWORD=… sluice run --config /etc/sluice/proxy-config.yaml
  sluice run --config /etc/sluice/proxy-config.yaml --takeover
  RUST_LOG=debug sluice run --config proxy-config.yaml --log-format json
  curl -s http://127.0.0.1:9307/metrics      (admin.listen of the file)";

const EXPLAIN: &str = "\
Tell what would happen to one statement, and why: its class, whom it is taken for, the rule that decides, \
what it does in words, and whether it is at an admission point. Nothing is connected to. The outcome is pass, \
deny or ask: with ask the rule's dice, the signals of its gate and the queue decide when the statement comes.
--at asks for another time than now: rules end, and some have a schedule.

With --format json the answer is one object; its keys are app, class, tags, rule, admission_point, outcome \
and some more.

Exit status: 0 with an answer, 2 if the file has faults or has no such cluster, or if standard \
input cannot be read. A statement that Sluice cannot read is an answer: its class is unknown, and it is gated as a write.";

#[cfg(feature = "demo")]
const DEMO: &str = "\
Starts a MySQL primary with two replicas and Sluice in front of them, all on 127.0.0.1, and three kinds of \
clients: a nightly ETL (ratio 0.9), an online schema change (ratio 0.1) and a web application that is never \
gated; half-way one replica stops applying for a while. On a terminal `sluice top` shows it, with its keys, and \
the console is at the address that is printed first; elsewhere lines say who is admitted, delayed and refused. The configuration file can be edited meanwhile. The servers come from scripts/install-servers \
(`make demo` runs it), or from SLUICE_MYSQLD.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  sluice explain --config proxy-config.yaml --user etl --sql 'DELETE FROM t LIMIT 100'
  sluice explain --config proxy-config.yaml --user app --client 10.0.0.7 --schema shop \\
      --attribute program_name=pt-archiver --sql 'DELETE FROM orders WHERE id < 100'
  sluice explain --config proxy-config.yaml --user app --format json \\
      --sql \"/* app='backfill' */ UPDATE t SET a = 1\"
  sluice explain --config proxy-config.yaml --user import --at 2026-12-01T08:30:00+01:00 \\
      --sql 'INSERT INTO t VALUES (1)'
  sluice explain --config proxy-config.yaml --user app --sql - < statement.sql";
