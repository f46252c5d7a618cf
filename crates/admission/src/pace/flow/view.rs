//! A flow, for people.

use super::{Aim, Flow, acknowledging, counts_for};
use crate::MonoTime;
use crate::lag::ReplicaKey;
use crate::pace::FlowView;
use crate::pace::ledger::Ledger;

impl Flow {
    pub(in crate::pace) fn view(
        &self,
        replica: ReplicaKey,
        (ledger, aim, now): (&Ledger, &Aim, MonoTime),
    ) -> FlowView {
        let aim = &self.own(aim);
        let on_its_way = ledger.outstanding(self.acked, now, counts_for(aim));
        FlowView {
            replica,
            rate: self.rate,
            window_fill: self.shown.map(|_| on_its_way / self.window(aim)),
            base: self.base.seconds(acknowledging(aim)),
            alone: self.alone(aim),
        }
    }

    /// Seconds from an admission to its acknowledgement without any queue, beside what it runs for.
    pub(in crate::pace) fn way_at_least(&self, aim: &Aim) -> f64 {
        let aim = &self.own(aim);
        acknowledging(aim) + self.commit + self.base.seconds(acknowledging(aim))
    }

    /// Whether it may lag for longer than the others.
    pub(in crate::pace) fn is_lenient(&self, aim: &Aim) -> bool {
        self.own(aim).lenient.is_some()
    }

    /// Whether one statement of this cost fills more than the window.
    pub(in crate::pace) fn is_oversize(&self, cost: f64, aim: &Aim) -> bool {
        self.shown.is_some() && cost > self.window(&self.own(aim))
    }
}
