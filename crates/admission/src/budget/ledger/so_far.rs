//! What statements that are at the server have used so far.
//!
//! What is foreseen of a statement may be far less than it takes: of a digest that nobody has seen, or
//! that was quick yesterday. What it has used more is owed while it runs, second by second, and its
//! digest would cost that at least if it ended now. So nobody is let in beside a statement of ten
//! minutes because nobody knows yet that it is one.

use std::time::Duration;

use super::{BudgetHold, Budgets};
use crate::MonoTime;
use crate::budget::elsewhere::BudgetDebt;

/// How often it is told.
const EVERY: Duration = Duration::from_secs(1);

impl BudgetHold {
    /// How much the statement will have used when that is to be told next
    /// ([`crate::Controller::note_used_so_far`]). `None`: it makes no difference.
    #[must_use]
    #[inline]
    pub fn next_told(&self) -> Option<Duration> {
        let told = self.watched?;
        Some(Duration::from_secs(u64::from(told)).saturating_add(EVERY))
    }
}

impl Budgets {
    /// A statement has had the server work for so long, and is not over.
    pub(crate) fn note_so_far(&mut self, now: MonoTime, hold: &mut BudgetHold, used: Duration) {
        hold.watched = hold.watched.map(|_| u32::try_from(used.as_secs()).unwrap_or(u32::MAX));
        let so_far = used.as_secs_f64();
        let (digest, finding) = (hold.asks.0, hold.finding);
        if self.predictions.note_so_far(now, digest, (so_far, finding))
            && let (Some(untold), Some(digest)) = (&mut self.untold, digest)
        {
            untold.learn(digest);
        }
        let more = so_far - hold.cost.seconds;
        if more <= 0.0 {
            return;
        }
        let Self { known, buckets, untold, .. } = self;
        for (slot, is_charged) in hold.taken() {
            let Some(stored) = buckets.get_mut(slot) else { continue };
            stored.bucket.foresee_more(more);
            let Some(terms) = known.terms(stored.budget).filter(|_| is_charged) else { continue };
            stored.bucket.drain(now, terms);
            let owed = BudgetDebt { seconds: more, ..BudgetDebt::default() };
            let owed = known.owed_by(stored.budget, hold.since, owed);
            stored.bucket.owe(owed);
            if let Some(untold) = untold {
                untold.owe(stored.at, owed);
            }
        }
        hold.cost.seconds = so_far;
    }
}
