//! What apps received of their fair share of what was let through.

use std::time::Duration;

use admission::{AppKey, Controller, MonoTime, StarvationConfig, StarvedKind};

use super::World;
use crate::{Expectation, Scenario};

/// Who was below its share for less is not told of.
const BELOW_MIN: Duration = Duration::from_secs(5);

/// Of one app.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fairness {
    /// Of late; `None`: it has waited for nothing.
    pub(super) received_of_share: Option<f64>,
    /// The part of the time for which the worst of its identities was below its share; `None`: nobody
    /// looked.
    pub(super) below_share: Option<f64>,
}

/// Has a controller see to it, if the scenario asks for it: that takes a third of the time more.
pub(super) fn watch(controller: &mut Controller, scenario: &Scenario, now: MonoTime) {
    if !scenario.expect.iter().any(Expectation::is_about_fairness) {
        return;
    }
    let window = scenario.duration;
    let share = BELOW_MIN.div_duration_f64(window).min(1.0);
    drop(controller.watch_starvation(now, Some(StarvationConfig { share, window })));
}

impl World<'_> {
    /// App by app, over all Sluices.
    pub(super) fn fairness(&mut self) -> Vec<Fairness> {
        let mut sums = vec![(0.0, 0.0); self.scenario.apps.len()];
        let looked = self.scenario.expect.iter().any(Expectation::is_about_fairness);
        let below_share = looked.then_some(0.0);
        let mut found = vec![Fairness { received_of_share: None, below_share }; sums.len()];
        let place = |app: AppKey| usize::try_from(app.0).unwrap_or(usize::MAX);
        for proxy in &mut self.proxies {
            for share in proxy.controller.app_shares_after(self.now, None, usize::MAX) {
                if let Some((entitled, received)) = sums.get_mut(place(share.app)) {
                    *entitled += share.entitled;
                    *received += share.received;
                }
            }
            for starved in proxy.controller.starved(self.now) {
                let is_below = starved.kind == StarvedKind::BelowShare;
                if let (Some(of), true) = (found.get_mut(place(starved.app)), is_below) {
                    of.below_share = of.below_share.map(|worst| worst.max(starved.share));
                }
            }
        }
        for (of, (entitled, received)) in found.iter_mut().zip(sums) {
            of.received_of_share = (entitled > 0.0).then(|| received / entitled);
        }
        found
    }
}
