//! `sluice quarantine`.

use clap::Args;

use super::{Asked, Format, Token};

/// `sluice quarantine`
#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    /// Frees this one, as it is listed (main:8d21f06b3ac9), as often as there are; `all` frees all.
    #[arg(long = "free", value_name = "ID")]
    pub(crate) freed: Vec<String>,
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

pub(super) const ABOUT: &str = "\
Show what is in quarantine: statements that are refused (kill), or come one at a time (deprioritise), because \
one like them ran away from a rule with `runaway: { watch: … }`. With --free they may come again; reading \
needs no token, this does (docs/ADMIN.md).

It is kept by each Sluice by itself: others know nothing of it.

Exit status: 0 with an answer, 1 if there is none or nothing of that id, 2 if the command line is wrong.";

pub(super) const EXAMPLES: &str = "\
Examples:
  sluice quarantine
  sluice quarantine --free main:8d21f06b3ac9 --free main:41c0aa97e512
  sluice quarantine --free all --admin https://db1.example:9307 --token-file ~/.sluice-token";
