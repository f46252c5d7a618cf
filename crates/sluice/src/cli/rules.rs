//! The commands that make rules while Sluice runs.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// Which Sluice is asked, and how it is known to be the one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Asked {
    /// Where the HTTP side of the running Sluice listens; the default is 127.0.0.1:9307.
    #[arg(long, value_name = "http://HOST:PORT", conflicts_with = "config")]
    pub(crate) admin: Option<String>,
    /// The configuration file that Sluice runs on: its admin.listen says where to ask.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// For https://: the certificates that may have signed that of the HTTP side, or that one
    /// itself, in PEM. The default is admin.tls.cert of the file, or else the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// Where the token comes from. It is never an argument: others see those.
#[derive(Debug, Clone, Args)]
pub(crate) struct Token {
    /// The environment variable with the token; the default is SLUICE_ADMIN_TOKEN.
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub(crate) token_env: Option<String>,
    /// The file with the token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Whom a rule is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct Whom {
    /// The app: a name, any level of one, a prefix like etl-*, or * for all.
    #[arg(value_name = "APP", required_unless_present = "user")]
    pub(crate) app: Option<String>,
    /// Only statements of this MySQL user.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only this cluster; the default is all of that Sluice.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
}

/// What all rules have.
#[derive(Debug, Args)]
pub(crate) struct Made {
    /// Whom it is about.
    #[command(flatten)]
    pub(crate) whom: Whom,
    /// Only this class of statements, as often as there are: read, locking_read, write, load, call,
    /// ddl or unknown. The default is what a rule of the file with the same effect is about: write,
    /// which covers all but read and ddl; with deny also ddl; with exempt everything.
    #[arg(long = "class", value_name = "CLASS")]
    pub(crate) classes: Vec<String>,
    /// How long it stands, up to 7d; the default is 1h.
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasts: Option<String>,
    /// Why: it stands wherever the rule does.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Who asks.
    #[command(flatten)]
    pub(crate) token: Token,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// `sluice throttle`
#[derive(Debug, Args)]
pub(crate) struct Throttle {
    /// The part of checks that are refused, from 0 to 1.
    #[arg(long, value_name = "R", default_value_t = 1.0, value_parser = ratio)]
    pub(crate) ratio: f64,
    /// What all rules have.
    #[command(flatten)]
    pub(crate) made: Made,
}

/// `sluice unthrottle`
#[derive(Debug, Args)]
pub(crate) struct Unthrottle {
    /// Whose rules.
    #[command(flatten)]
    pub(crate) whom: Whom,
    /// Which Sluice is asked.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Who asks.
    #[command(flatten)]
    pub(crate) token: Token,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// `sluice rules`
#[derive(Debug, Args)]
pub(crate) struct Rules {
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

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        Ok(_) | Err(_) => Err("must be a number from 0 to 1".to_owned()),
    }
}

pub(super) const THROTTLE: &str = "\
Have a part of an app's checks refused for a while, beside what its gate does: with --ratio 0.9 it goes at a \
tenth of what its rivals get at a contended gate. Without --ratio all of them are, as `throttle-app` of Vitess \
does.

The rule stands before those of the file, on every Sluice of the cluster within a second, and it ends: after \
--for, or with `sluice unthrottle APP`. It replaces the rule that was made like this for the same app and user. \
Reading needs no token, this does (docs/ADMIN.md).

Exit status: 0 when it is in force, 1 if it was refused or nobody answers, 2 if the command line is wrong.";

pub(super) const THROTTLE_EXAMPLES: &str = "\
Examples:
  sluice throttle etl --ratio 0.9 --for 1h --reason 'reports are late'
  SLUICE_ADMIN_TOKEN=… sluice throttle etl --ratio 1 --for 10m --reason TEXT --admin http://10.0.0.5:9307
  sluice throttle --user batch --class write --class ddl --config proxy-config.yaml
  sluice throttle etl --admin https://db1.example:9307 --ca ca.pem --token-file ~/.sluice-token";

pub(super) const HOLD: &str = "\
Let nothing of an app pass until that is lifted or ends: its statements wait up to the rule's max_delay (5 s), \
and are refused then. Everything else is as in `sluice throttle --help`.";

pub(super) const EXEMPT: &str = "\
Let everything of an app pass, whatever the lag, for a while. It is still counted, and whoever is starved \
meanwhile is reported with it. Everything else is as in `sluice throttle --help`.";

pub(super) const DENY: &str = "\
Refuse everything of an app that changes data or schema, at once. Everything else is as in `sluice throttle \
--help`.";

pub(super) const UNTHROTTLE: &str = "\
Lift what was made for an app while Sluice runs, whatever its effect: a throttle, a hold, an exemption, a \
denial. Rules of the file stay.

Exit status: 0 when it is lifted, 1 if there was none or nobody answers, 2 if the command line is wrong.";

pub(super) const RULES: &str = "\
Show all rules of a running Sluice in the order in which they are tried: first those that were made while it \
runs, with their authors, then the file's, each with the time it has left.

Exit status: 0 with an answer, 1 if there is none, 2 if the command line is wrong.";
