//! What outlives a controller.

use std::time::Duration;

use super::Controller;
use crate::lag::ReplicaKey;
use crate::pace::Pace;
use crate::row_work::Behind;
use crate::{Appliers, Learned, MonoTime, Pacing, RowWorkView, Written};

/// With a rate of another process every app that this knew may have as much on its way as that lets in
/// within this time, and within that of a statement.
const TRUSTED_WAY: Duration = Duration::from_secs(1);

impl Controller {
    /// What has been found out, with so many digests and apps at most; `None` where nothing is
    /// paced.
    #[must_use]
    pub fn learned(&self, most: usize) -> Option<Learned> {
        let pace = self.pace.as_ref()?;
        let (digests, apps) = self.costs.known(most);
        // What rows cost is not handed over.
        let rows_per_s = pace.found_rate().map(|rate| rate / self.row_work.evenly());
        Some(Learned { rows_per_s, service: pace.service(), digests, apps })
    }

    /// Begins with what another controller has found out, `age` ago. What this one has found out
    /// itself by now stays.
    pub fn begin_with(&mut self, learned: &Learned, age: Duration) {
        if let Some(pace) = &mut self.pace {
            let rate = learned.rate_after(age, pace.threshold());
            let way = TRUSTED_WAY.saturating_add(learned.service).as_secs_f64();
            let apps = learned.apps.iter().map(|&(app, ..)| app);
            self.slow_start.begin_with(self.clock, apps, rate.unwrap_or(0.0) * way);
            pace.begin_with(rate, learned.service);
        }
        self.costs.begin_with(&learned.digests, &learned.apps);
    }

    /// What rows cost is not known any more when nobody has looked for long.
    pub(super) fn lapse_row_costs(&mut self, now: MonoTime) {
        if self.row_work.lapses(now) {
            self.forget_row_costs();
        }
    }

    /// Rows count as rows from now on. For those there is less of the rate than was found.
    pub(super) fn forget_row_costs(&mut self) {
        let evenly = std::mem::take(&mut self.row_work).evenly();
        if let Some(pace) = self.pace.as_mut().filter(|_| evenly > 1.0) {
            pace.scale(1.0 / evenly);
        }
    }

    /// The appliers of a replica were looked at. To be called about ten times a second for each replica, also when none is at
    /// anything: what rows cost is learned from how often what is met, and how much more it can from how often nobody is. Without
    /// [`crate::AdaptivePacing::learns_row_costs`] nothing is.
    pub fn handle_appliers(&mut self, now: MonoTime, replica: ReplicaKey, seen: &Appliers<'_>) {
        let now = self.tick(now);
        let Pacing::Adaptive(adaptive) = self.pacing else { return };
        if adaptive.learns_row_costs {
            if let Some(pace) = &mut self.pace {
                pace.handle_appliers(now, replica, !seen.idle);
            }
            let lag = self.signal(adaptive.lag, now).and_then(|signal| signal.value);
            let lag = Duration::try_from_secs_f64(lag.unwrap_or(0.0)).unwrap_or_default();
            let applies_for = self.pace.as_ref().map_or(Duration::ZERO, Pace::applies_for);
            let dearer = self.row_work.looked(now, Behind { lag, applies_for }, seen);
            if let (Some(pace), Some(dearer)) = (&mut self.pace, dearer) {
                pace.scale(1.0 / dearer);
            }
        }
    }

    /// So many rows were applied by a replica since it was asked last, whoever wrote them; divided
    /// by the number of replicas that are asked.
    pub fn handle_applied_rows(&mut self, rows: &[(Written, f64)]) {
        for (written, rows) in rows {
            self.row_work.applied(*written, *rows);
        }
    }

    /// What a transaction was found to cost whatever it writes, in rows of the mean; 0 while that is not known.
    #[must_use]
    pub fn transaction_cost(&self) -> f64 {
        self.row_work.price(None).per_transaction
    }

    /// What rows were found to cost, by table and kind: so many at most, whoever costs most first.
    #[must_use]
    pub fn row_costs(&self, most: usize) -> Vec<RowWorkView> {
        self.row_work.view(most)
    }
}
