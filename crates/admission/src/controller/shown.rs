//! Who waits and what the pace goes by, for people. The queue may be long: a shell that holds a lock meanwhile takes it in
//! pieces, and puts them together without the lock.

use std::collections::BTreeMap;

use super::Controller;
use crate::decision::{Ticket, Waiting, WaitingStatement};
use crate::gate::Obstacle;
use crate::queue::Waiter;
use crate::{IdentityKey, MonoTime, PaceView, RuleKey};

impl Controller {
    /// What the adaptive pace goes by; `None` where nothing is paced by the lag.
    #[must_use]
    pub fn pace_view(&self, now: MonoTime) -> Option<PaceView> {
        let now = self.clock.max(now);
        let view = self.pace.as_ref()?.view(now);
        Some(PaceView { slow_starts: self.slow_start.held_back(now), ..view })
    }

    /// The waiters with later tickets than `after`, in the order of their tickets, and why each
    /// waits. Take as many as there is time for, and go on behind the last.
    pub fn waiters_after(
        &self,
        after: Option<Ticket>,
    ) -> impl Iterator<Item = WaitingStatement> + '_ {
        self.queue.after(after).map(|(ticket, waiter)| self.shown(ticket, waiter))
    }

    /// The waiter with this ticket; `None` if it has its answer.
    #[must_use]
    pub fn waiter(&self, ticket: Ticket) -> Option<WaitingStatement> {
        Some(self.shown(ticket, self.queue.of(ticket)?))
    }

    fn shown(&self, ticket: Ticket, waiter: &Waiter) -> WaitingStatement {
        let Obstacle { reason, cause, budget, limit } = self.obstacle_of(ticket, waiter);
        let request = &waiter.request;
        WaitingStatement {
            ticket: Some(ticket),
            rule: request.rule,
            identity: request.identity,
            arrived: request.arrived,
            deadline: request.deadline(),
            reason,
            cause,
            budget: budget.map(|at| at.budget),
            limit,
        }
    }
}

impl Waiting {
    /// Puts waiters together, per rule and identity, in order of their keys.
    #[must_use]
    pub fn groups(waiters: impl IntoIterator<Item = WaitingStatement>) -> Vec<Self> {
        let mut groups: BTreeMap<(RuleKey, IdentityKey), (usize, WaitingStatement)> =
            BTreeMap::new();
        for waiter in waiters {
            let (depth, oldest) =
                groups.entry((waiter.rule, waiter.identity)).or_insert((0, waiter));
            *depth = depth.saturating_add(1);
            if waiter.arrived < oldest.arrived {
                *oldest = waiter;
            }
        }
        let group = |((rule, identity), (depth, oldest))| {
            let WaitingStatement { arrived, reason, cause, budget, limit, .. } = oldest;
            Self { rule, identity, depth, oldest: arrived, reason, cause, budget, limit }
        };
        groups.into_iter().map(group).collect()
    }
}
