//! Other rules, or the end: everybody leaves, without the lock being held for all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CHECK_INTERVAL_MAX, CHECK_INTERVAL_MIN, Controller, Life};
use crate::budget::BudgetLines;
use crate::gate::Gate;
use crate::pace::Pace;
use crate::promises::Promises;
use crate::queue::Indexes;
use crate::rates::OldLines;
use crate::signal::Signal;
use crate::slow_start::SlowStart;
use crate::starvation::Pool;
use crate::{ControllerConfig, GateKey, MonoTime, Pacing};

impl Controller {
    /// Live reload. Values of signals that stay (same key) are kept, and so is how long a gate of
    /// the same signals has been open. Every waiter comes out as [`crate::Resolved::DecideAgain`],
    /// whoever began to wait first first. For one check interval statements queue at every gate with
    /// signals, also at an open one, so that the crowd that comes back is released at the pace like
    /// any other.
    ///
    /// Takes no longer for many waiters than for none. A shell drops what it is given without the
    /// lock that the controller is behind.
    pub fn reconfigure(&mut self, config: ControllerConfig, now: MonoTime) -> Remains {
        let now = self.tick(now);
        let is_anybody_there = self.queue.len() > 0;
        self.count_lost();
        let indexes = self.queue.evacuate();
        let lines = self.rates.reset_lines(now);
        let budgets = self.budget_lines.reset();
        let kept = |gate| config.gates.iter().any(|kept| kept.key == gate);
        let shares = self.starvation.as_mut().map(|watch| watch.forget_lines(kept));
        let gates = self.configure(&config, now);
        if is_anybody_there {
            for gate in self.gates.values_mut() {
                gate.expect_crowd(now, self.check_interval);
            }
        }
        Remains {
            _indexes: indexes,
            _lines: lines,
            _budgets: budgets,
            _shares: shares,
            _gates: gates,
        }
    }

    /// Gives the gates of before.
    pub(super) fn configure(
        &mut self,
        config: &ControllerConfig,
        now: MonoTime,
    ) -> BTreeMap<GateKey, Gate> {
        self.check_interval = config.check_interval.clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX);
        self.pacing = config.pacing;
        self.queue_len_max = config.queue_len_max;
        self.budgets.configure(now, &config.budgets);
        let mut old_signals = std::mem::take(&mut self.signals);
        for &limits in &config.signals {
            let signal = match old_signals.remove(&limits.key) {
                Some(mut signal) => {
                    signal.reconfigure(limits, now);
                    signal
                }
                None => Signal::new(limits, now),
            };
            self.signals.insert(limits.key, signal);
        }
        let old_gates = std::mem::take(&mut self.gates);
        for gate_config in &config.gates {
            let mut gate = Gate::new(gate_config, &self.signals, now);
            if let Some(old) = old_gates.get(&gate_config.key) {
                gate.inherit(old);
            }
            self.gates.insert(gate_config.key, gate);
        }
        let gates = self.gates.iter().map(|(key, gate)| (*key, gate.signals()));
        self.in_flight.configure(now, &config.signals, gates);
        self.configure_pace(now);
        for gate in self.gates.values_mut() {
            gate.by_room = gate.paced || self.in_flight.limits_any(gate.signals());
        }
        old_gates
    }

    fn configure_pace(&mut self, now: MonoTime) {
        if !matches!(self.pacing, Pacing::Adaptive(adaptive) if adaptive.learns_row_costs) {
            self.forget_row_costs();
        }
        let Pacing::Adaptive(adaptive) = self.pacing else {
            self.pace = None;
            self.slow_start = SlowStart::default();
            self.promises = Promises::default();
            return;
        };
        for gate in self.gates.values_mut() {
            gate.paced = gate.depends_on(adaptive.lag);
        }
        let threshold = self.signals.get(&adaptive.lag).map_or(0.0, Signal::closes_at);
        let threshold = Duration::try_from_secs_f64(threshold).unwrap_or(Duration::MAX);
        match &mut self.pace {
            Some(pace) => pace.reconfigure(adaptive, threshold),
            None => self.pace = Some(Pace::new(adaptive, threshold, now)),
        }
    }

    /// Refuses every waiter and every later request with [`crate::Reason::Shutdown`]. Permits stay
    /// to be completed. What it gives is dropped as that of [`Controller::reconfigure`].
    pub fn shutdown(&mut self, now: MonoTime) -> Remains {
        let now = self.tick(now);
        self.life = Life::ShuttingDown;
        self.count_lost();
        let indexes = self.queue.evacuate();
        let lines = self.rates.reset_lines(now);
        let budgets = self.budget_lines.reset();
        let shares = self.starvation.as_mut().map(|watch| watch.forget_lines(|_| true));
        let signals = &self.signals;
        let empty = |(key, gate): (&GateKey, &Gate)| (*key, gate.without_line(signals, now));
        let gates = self.gates.iter().map(empty).collect();
        let gates = std::mem::replace(&mut self.gates, gates);
        Remains {
            _indexes: indexes,
            _lines: lines,
            _budgets: budgets,
            _shares: shares,
            _gates: gates,
        }
    }
}

/// What is left of the lines of before: nothing that anybody asks for. To drop ten thousand places
/// takes a millisecond, which is not to be spent under a lock.
#[derive(Debug)]
pub struct Remains {
    _indexes: Indexes,
    _lines: OldLines,
    _budgets: BudgetLines,
    _shares: Option<Vec<Pool>>,
    _gates: BTreeMap<GateKey, Gate>,
}
