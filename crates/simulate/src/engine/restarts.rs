//! The proxies are started anew: the next process knows what was handed over, or nothing.

use std::time::Duration;

use admission::Controller;

use super::agenda::Event;
use super::clients::Running;
use super::proxies::seed;
use super::{World, controller_config, shares, signal_config};

/// As in the proxy: what was learned is written down so often, so it is half as old in the mean.
const HANDED_OVER_AGE: Duration = Duration::from_millis(2_500);

/// Digests and apps that are handed over.
const HANDED_OVER_MAX: usize = 200;

impl World<'_> {
    /// Whoever waited asks the next process. What runs goes on, and nobody there knows of it.
    pub(super) fn restart(&mut self) {
        for session in &mut self.sessions {
            if matches!(session.running, Running::Admitted(_)) {
                session.running = Running::Passed;
            }
        }
        for proxy in 0..self.proxies.len() {
            self.restart_one(proxy);
        }
    }

    fn restart_one(&mut self, place: usize) {
        let (now, scenario) = (self.now, self.scenario);
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        let config = controller_config(scenario, signal_config(scenario));
        let seed = seed(scenario, place).wrapping_add(now.as_nanos());
        let mut next = Controller::new(config, seed, now);
        shares::watch(&mut next, scenario, now);
        let before = std::mem::replace(&mut proxy.controller, next);
        if scenario.handover
            && let Some(learned) = before.learned(HANDED_OVER_MAX)
        {
            proxy.controller.begin_with(&learned, HANDED_OVER_AGE);
        }
        for session in std::mem::take(&mut proxy.waiting).into_values() {
            self.spent.work(1);
            self.agenda.add(now, Event::Ask { session });
        }
        proxy.wake = None;
        self.publish_lag(place);
        self.settle(place);
    }
}
