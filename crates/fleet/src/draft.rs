//! What is asked for: a rule to be made, rules to be lifted, and why that cannot be.

use std::fmt;
use std::time::Duration;

use policy::{Fault, RUNTIME_PREFIX, RuntimeEffect};

/// How long a rule stands if nobody says.
pub const LASTS_DEFAULT: Duration = Duration::from_secs(3_600);

/// The longest that a rule may stand.
pub const LASTS_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The shortest.
pub const LASTS_MIN: Duration = Duration::from_secs(1);

/// Most rules that stand in one cluster: as many as are matched as fast as none.
pub const RULES_MAX: usize = 10_000;

/// Longest author, in bytes; more of it is cut.
const AUTHOR_LEN_MAX: usize = 64;

/// A rule that is to be made. What it replaces is the rule of the same app and user, in the same
/// cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDraft {
    /// `match.app`: a name, a prefix with `*`, or `*`. At least one of app and user is needed.
    pub app: Option<String>,
    /// `match.user`, in the same way.
    pub user: Option<String>,
    /// The cluster by its name in the file. `None`: every cluster of this process.
    pub cluster: Option<String>,
    /// The classes that it is about, by their names. Empty: what a rule of the file with this
    /// effect is about.
    pub classes: Vec<String>,
    /// What it does.
    pub effect: RuntimeEffect,
    /// How long it stands, from [`LASTS_MIN`] to [`LASTS_MAX`].
    pub lasts: Duration,
    /// Why, for people.
    pub reason: String,
}

impl RuleDraft {
    /// A rule for everything of an app, in every cluster, for [`LASTS_DEFAULT`].
    #[must_use]
    pub fn of_app(app: impl Into<String>, effect: RuntimeEffect) -> Self {
        Self {
            app: Some(app.into()),
            user: None,
            cluster: None,
            classes: Vec::new(),
            effect,
            lasts: LASTS_DEFAULT,
            reason: String::new(),
        }
    }
}

/// Which rules are to be lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lift {
    /// Those of this name.
    Named {
        /// As it is shown.
        name: String,
        /// Only in this cluster. `None`: in all.
        cluster: Option<String>,
    },
    /// Those of this app, whatever their user, of this user, or of both.
    Of {
        /// As it was said when the rule was made.
        app: Option<String>,
        /// As it was said when the rule was made. `None`: whatever it was.
        user: Option<String>,
        /// Only in this cluster. `None`: in all.
        cluster: Option<String>,
    },
}

impl Lift {
    /// The rules of an app in every cluster, whatever their user.
    #[must_use]
    pub fn of_app(app: impl Into<String>) -> Self {
        Self::Of { app: Some(app.into()), user: None, cluster: None }
    }

    pub(crate) fn cluster(&self) -> Option<&str> {
        match self {
            Self::Named { cluster, .. } | Self::Of { cluster, .. } => cluster.as_deref(),
        }
    }
}

/// Why a rule was not made. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MakeError {
    /// What is wrong with it: what a file would be told.
    Faults(Vec<Fault>),
    /// There is no such cluster.
    NoCluster(String),
    /// It is to stand for too short or too long.
    Lasts(Duration),
    /// [`RULES_MAX`] stand already in this cluster.
    TooMany(String),
    /// Another process has taken over; the rule is to be made there.
    TakenOver,
}

/// Why no rule was lifted. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiftError {
    /// No rule stands that is meant.
    NotThere,
    /// It says neither an app nor a user.
    NamesNobody,
    /// There is no such cluster.
    NoCluster(String),
    /// Another process has taken over; the rule is to be lifted there.
    TakenOver,
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faults(faults) => {
                for (index, fault) in faults.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    let colon = if fault.path.is_empty() { "" } else { ": " };
                    write!(f, "{separator}{}{colon}{}", fault.path, fault.message)?;
                }
                Ok(())
            }
            Self::NoCluster(name) => write!(f, "there is no cluster `{}`", name.escape_debug()),
            Self::Lasts(lasts) => {
                write!(f, "a runtime rule stands from 1s to 7d, not {}s", lasts.as_secs())
            }
            Self::TooMany(cluster) => {
                write!(f, "{RULES_MAX} runtime rules stand in `{cluster}`: lift some first")
            }
            Self::TakenOver => f.write_str(TAKEN_OVER),
        }
    }
}

impl fmt::Display for LiftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere => f.write_str("no such runtime rule stands"),
            Self::NamesNobody => f.write_str("names neither a rule, nor an app, nor a user"),
            Self::NoCluster(name) => write!(f, "there is no cluster `{}`", name.escape_debug()),
            Self::TakenOver => f.write_str(TAKEN_OVER),
        }
    }
}

const TAKEN_OVER: &str = "another process has taken over from this one: ask again";

impl std::error::Error for MakeError {}
impl std::error::Error for LiftError {}

/// The name of the rule for an app and a user: the same wherever and whenever it is made, of
/// characters that names have, and of bounded length. What cannot stand in a name is replaced, and
/// then a part of its hash keeps it apart from others.
pub(crate) fn rule_name(app: Option<&str>, user: Option<&str>) -> String {
    let mut readable = app.unwrap_or_default().to_owned();
    if let Some(user) = user {
        readable.push('@');
        readable.push_str(user);
    }
    let parts = [app, user];
    let is_plain = |part: &&str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/+".contains(c);
        !part.is_empty() && part.chars().all(allowed)
    };
    let len_max = NAME_LEN_MAX.saturating_sub(RUNTIME_PREFIX.len());
    if parts.iter().flatten().all(is_plain) && readable.len() <= len_max && !has_hash(&readable) {
        return format!("{RUNTIME_PREFIX}{readable}");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
    let stem_max = len_max.saturating_sub(HASH_LEN.saturating_add(1));
    let stem: String =
        readable.chars().map(|c| if allowed(c) { c } else { '_' }).take(stem_max).collect();
    let marks = [app.is_some(), user.is_some()].map(u8::from);
    let both = [app.unwrap_or_default().as_bytes(), user.unwrap_or_default().as_bytes()];
    let hash = checksum(&[&marks, both[0], b"\0", both[1]]);
    format!("{RUNTIME_PREFIX}{stem}.{:0HASH_LEN$x}", hash & HASH_MASK)
}

/// Longest name of a rule, as in the file.
const NAME_LEN_MAX: usize = 64;

/// Hexadecimal digits of a hash in a name.
const HASH_LEN: usize = 12;
const HASH_MASK: u64 = 0xffff_ffff_ffff;

/// Whether it ends as a name with a hash does.
fn has_hash(readable: &str) -> bool {
    readable.rsplit_once('.').is_some_and(|(_, end)| {
        end.len() == HASH_LEN && end.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// FNV-1a of 64 bits. Any one byte that is another gives another sum.
pub(crate) fn checksum(parts: &[&[u8]]) -> u64 {
    parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// An author as it is kept and shown: printable, and not too long.
pub(crate) fn author_name(author: &str) -> String {
    let printable = author.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut name = String::new();
    for c in printable {
        if name.len().saturating_add(c.len_utf8()) > AUTHOR_LEN_MAX {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whom_it_is_about() {
        assert_eq!(rule_name(Some("etl"), None), "runtime:etl");
        assert_eq!(rule_name(Some("etl"), Some("batch")), "runtime:etl@batch");
        assert_eq!(rule_name(None, Some("batch")), "runtime:@batch");
    }

    #[test]
    fn whatever_it_is_about_its_name_is_short_printable_and_its_own() {
        let long = "x".repeat(300);
        let targets: [(Option<&str>, Option<&str>); 12] = [
            (Some("etl"), None),
            (None, Some("etl")),
            (Some("a@b"), None),
            (Some("a"), Some("b")),
            (Some("a b"), None),
            (Some("a_b"), None),
            (Some("a\u{1b}[31m'\"\\"), None),
            (Some("日本語"), None),
            (Some(&long), None),
            (Some("etl-*"), None),
            (Some("*"), None),
            (Some("*"), Some("*")),
        ];
        let mut names: Vec<String> =
            targets.iter().map(|(app, user)| rule_name(*app, *user)).collect();
        // Whoever calls itself as a name of another with a hash gets one too.
        let copied = names[4].strip_prefix(RUNTIME_PREFIX).unwrap().to_owned();
        names.push(rule_name(Some(&copied), None));
        for name in &names {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
            assert!(name.len() <= NAME_LEN_MAX && name.chars().all(allowed), "{name}");
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_author_is_printable_and_cut() {
        assert_eq!(author_name("ann\n\u{1b}"), "ann??");
        assert!(author_name(&"é".repeat(100)).len() <= AUTHOR_LEN_MAX);
    }
}
