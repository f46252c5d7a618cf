//! `max_rows_expected`: how many rows the server expects to read. The text does not say that, so the
//! shell asks the server, by EXPLAIN.

use std::sync::Arc;
use std::time::Duration;

use sql::{Class, Exemption, Survey};

use super::{Finding, Guard, GuardHit, GuardMode, TextFault};
use crate::facts::Facts;

/// The check, as in the file.
pub(super) const CHECK: &str = "max_rows_expected";

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowsExpected {
    /// Most rows.
    pub(crate) most: u64,
    /// Longest wait for the server's word.
    pub(crate) timeout: Duration,
}

/// What a guard wants to know of the server before it says anything of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The guard's name.
    pub guard: Arc<str>,
    /// Whether it refuses a statement of more rows.
    pub mode: GuardMode,
    /// Most rows that the server may expect to read.
    pub most: u64,
    /// Longest wait for the server's word.
    pub timeout: Duration,
    /// The guard's place among the guards.
    index: usize,
}

impl RowsExpected {
    /// Whether the server has to be asked for a statement. Without facts: for any of this text.
    pub(super) fn finding(self, survey: &Survey, facts: Option<&Facts<'_>>) -> Finding {
        let Some(facts) = facts else { return Finding::Estimate(self) };
        let reads = match facts.class() {
            Class::Read => survey.has_from && facts.exemption != Some(Exemption::SystemSchema),
            // What a text calls nobody has read: that is counted as not judged.
            Class::LockingRead | Class::Write | Class::Call | Class::Unknown => true,
            Class::Transaction | Class::Session | Class::Admin | Class::Load | Class::Ddl => false,
        };
        if reads { Finding::Estimate(self) } else { Finding::Fine }
    }
}

impl Estimate {
    /// The check, as in the file.
    pub const CHECK: &'static str = CHECK;

    pub(super) fn of(guard: &Guard, mode: GuardMode, index: usize, expected: RowsExpected) -> Self {
        let RowsExpected { most, timeout } = expected;
        Self { guard: guard.name.clone(), mode, most, timeout, index }
    }

    /// What the guard says of a statement for which the server expects to read so many rows.
    #[must_use]
    pub fn hit(&self, rows: u64) -> Option<GuardHit> {
        (rows > self.most).then(|| GuardHit {
            guard: self.guard.clone(),
            check: CHECK,
            mode: self.mode,
            offset: 0,
            index: self.index,
            fault: TextFault::RowsExpected { rows, most: self.most },
        })
    }
}
