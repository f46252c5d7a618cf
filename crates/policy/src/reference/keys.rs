//! What the reference says about one key.

use std::time::Duration;

use crate::compile::limits::{Limits, show};

/// Keys that stand together.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) limits: Shown,
    /// The effect of raising it; empty where there is nothing to raise.
    pub(super) raising: &'static str,
    pub(super) live: Live,
}

/// Default and range.
#[derive(Debug)]
pub(super) enum Shown {
    /// In words.
    Words(&'static str, &'static str),
    Time(Limits<Duration>),
    Count(Limits<u32>),
}

/// Whether a change applies without a restart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Live {
    Yes,
    No,
}

impl Shown {
    pub(super) fn show(&self) -> (String, String) {
        match self {
            Self::Words(default, range) => ((*default).to_owned(), (*range).to_owned()),
            Self::Time(limits) => {
                (show(limits.default), format!("{} to {}", show(limits.min), show(limits.max)))
            }
            Self::Count(limits) => {
                (limits.default.to_string(), format!("{} to {}", limits.min, limits.max))
            }
        }
    }
}

impl Live {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
        }
    }
}

/// A key that changes live.
pub(super) const fn live(
    name: &'static str,
    meaning: &'static str,
    limits: Shown,
    raising: &'static str,
) -> Key {
    Key { name, meaning, limits, raising, live: Live::Yes }
}

/// A key that does not.
pub(super) const fn fixed(name: &'static str, meaning: &'static str, limits: Shown) -> Key {
    Key { name, meaning, limits, raising: "", live: Live::No }
}

/// The default of what has none.
pub(super) const REQUIRED: &str = "required";
/// The range of values that are matched.
pub(super) const NAMES: &str = "`*`, `prefix*` or a value, one or a list";
