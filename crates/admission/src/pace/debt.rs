//! Tokens that are owed, for what was admitted without them or turned out larger.
//!
//! Theory. Who is alone owes no more than a second: a large statement is held back by the window
//! while the replica applies it, and must not be paid twice. Beside other controllers the window
//! does so while the *whole* of the replica applies it, which is a part of the time that one's own
//! part would need; whoever has the smallest part and the largest statements would have several
//! parts. So there all of it is paid, at one's own pace.
//!
//! A debt is owed to those who want the replica. While no queue stands there, it is paid
//! [`PAID_IDLE`] times as fast: else the replica is idle as long as all are in debt. At what all
//! have together instead, a moment between two large statements paid for most of one. Where most of the
//! way is work at the primary a replica without a queue is not idle for long: what was let in seconds ago
//! is about to commit, and what is let in twice as fast comes seconds later, as a queue with a hole behind it.

use std::time::Duration;

use super::Pace;
use super::flow::acknowledging;

/// Debt at most, as time at the present pace.
const DEBT: Duration = Duration::from_secs(1);

/// The same beside others: a statement of millions is not waited for by hours.
const DEBT_BESIDE_OTHERS: Duration = Duration::from_secs(60);

/// How many times as fast a debt beside others is paid while no queue stands, at most.
const PAID_IDLE: f64 = 2.0;

impl Pace {
    /// What may be owed at such a pace, in rows.
    pub(super) fn debt_max(&self, per_s: f64) -> f64 {
        let debt = if self.share.is_some() { DEBT_BESIDE_OTHERS } else { DEBT };
        per_s * debt.as_secs_f64() + 1.0
    }

    /// At how many rows a second it is paid.
    pub(super) fn pays(&self, per_s: f64) -> f64 {
        let aim = self.aim();
        match aim.others {
            Some(others) if self.flows_that_count().all(|flow| flow.is_idle(&aim)) => {
                let seen = acknowledging(&aim);
                let faster = (PAID_IDLE - 1.0) * seen / (seen + aim.service);
                (per_s + others).min((1.0 + faster) * per_s)
            }
            Some(_) | None => per_s,
        }
    }
}
