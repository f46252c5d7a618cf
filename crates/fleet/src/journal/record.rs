//! What a journal consists of: a head that says its format, then a line for each group of changes
//! that were made together, with a checksum.
//!
//! ```text
//! sluice runtime rules 1
//! 8f0c…e1 [{"cluster":"main","author":"ann","ends_at_ms":…,"left_ms":…,"body":{…}}]
//! ```
//!
//! The last record of a rule counts. A last line that is not whole is a write that the process did
//! not live to finish: nobody was told that it is kept, and it is cut. Anything else that is not
//! whole is damage.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::body::{EffectName, RuleBody};
use crate::draft::checksum;
use crate::ledger::Kept;

/// What the first line begins with; its format follows.
const HEAD: &str = "sluice runtime rules ";

/// The format that this version writes.
const FORMAT: u32 = 1;

/// A rule of one cluster as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) cluster: String,
    pub(crate) author: String,
    #[serde(default)]
    pub(crate) lifted: bool,
    /// When it ends, by the wall clock when it was written, in milliseconds since 1970.
    pub(crate) ends_at_ms: i64,
    /// How long that was then: it cannot be longer now, whatever the clock says.
    pub(crate) left_ms: u64,
    pub(crate) version: Option<u64>,
    pub(crate) body: RuleBody,
}

/// What was found in a journal.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// What can be read, in its order.
    pub(crate) records: Vec<Record>,
    /// What is the matter with the rest.
    pub(crate) state: State,
}

/// Whether a journal is as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Every line is whole.
    #[default]
    Whole,
    /// The last line is not.
    Torn,
    /// So many lines before the last are not whole, or the head is none.
    Damaged {
        /// Those that cannot be read.
        lines: usize,
    },
    /// A later version has written it.
    Newer {
        /// Its format.
        format: u32,
    },
}

impl Record {
    pub(crate) fn new(cluster: &str, kept: &Kept, now_ms: i64) -> Self {
        let left_ms = u64::try_from(kept.left.as_millis()).unwrap_or(u64::MAX);
        let Kept { body, author, lifted, version, left: _ } = kept.clone();
        Self {
            cluster: cluster.to_owned(),
            author,
            lifted,
            ends_at_ms: now_ms.saturating_add_unsigned(left_ms),
            left_ms,
            version,
            body,
        }
    }

    /// The rule as it is now. A clock that was set back does not make it longer.
    pub(crate) fn kept(&self, now_ms: i64) -> Kept {
        let left_ms = self.ends_at_ms.saturating_sub(now_ms);
        let left_ms = u64::try_from(left_ms).unwrap_or(0).min(self.left_ms);
        Kept {
            body: self.body.clone(),
            author: self.author.clone(),
            lifted: self.lifted,
            left: Duration::from_millis(left_ms),
            version: self.version,
        }
    }

    fn exempts(&self) -> bool {
        match self.body.effect {
            EffectName::Exempt => true,
            EffectName::Throttle | EffectName::Hold | EffectName::Deny => false,
        }
    }
}

/// The first line.
pub(crate) fn head() -> String {
    format!("{HEAD}{FORMAT}\n")
}

/// The line of one group.
pub(crate) fn line(records: &[Record]) -> String {
    // Strings, numbers and lists of them always are JSON, which has no line ends.
    let json = serde_json::to_string(records).unwrap_or_default();
    format!("{:016x} {json}\n", checksum(&[json.as_bytes()]))
}

/// Reads a journal. From one that is damaged nothing is taken that exempts: what is missing may
/// have lifted it.
pub(crate) fn parse(content: &[u8]) -> Found {
    let mut lines = content.split_inclusive(|byte| *byte == b'\n');
    let Some(first) = lines.next() else { return Found::default() };
    let mut damaged: usize = 0;
    match format(first) {
        Some(FORMAT) => {}
        Some(format) => return Found { records: Vec::new(), state: State::Newer { format } },
        None => damaged = 1,
    }
    let mut records = Vec::new();
    let mut torn = false;
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        match group(line) {
            Some(group) => records.extend(group),
            None if lines.peek().is_none() => torn = true,
            None => damaged = damaged.saturating_add(1),
        }
    }
    let state = match (damaged, torn) {
        (0, false) => State::Whole,
        (0, true) => State::Torn,
        (lines, _) => State::Damaged { lines },
    };
    if damaged > 0 {
        records.retain(|record: &Record| !record.exempts());
    }
    Found { records, state }
}

fn format(line: &[u8]) -> Option<u32> {
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix(HEAD)?.strip_suffix('\n')?.parse().ok()
}

fn group(line: &[u8]) -> Option<Vec<Record>> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, json) = line.split_once(' ')?;
    let sum = u64::from_str_radix(sum, 16).ok()?;
    if sum != checksum(&[json.as_bytes()]) {
        return None;
    }
    serde_json::from_str(json).ok()
}
