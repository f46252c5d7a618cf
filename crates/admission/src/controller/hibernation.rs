//! Signals that nobody needs are measured seldom. Who needs one again wakes all of them, and waits as
//! at a shut gate until there is a value that was asked for since: see [`crate::signal`].

use std::time::Duration;

use super::Controller;
use crate::gate::Gate;
use crate::signal::{Sample, Signal};
use crate::{GateKey, MonoTime, SignalKey};

impl Controller {
    /// These signals are measured seldom from now on, until somebody needs one:
    /// [`Controller::hibernates`] tells.
    pub fn hibernate(&mut self, signals: impl Iterator<Item = SignalKey>) {
        self.hibernates = true;
        for key in signals {
            if let Some(signal) = self.signals.get_mut(&key) {
                signal.hibernate();
            }
        }
    }

    /// Whether signals may be measured seldom. When that ends, all are to be measured at once.
    #[must_use]
    pub const fn hibernates(&self) -> bool {
        self.hibernates
    }

    /// Somebody needs signals.
    pub fn wake(&mut self, now: MonoTime) {
        let now = self.tick_quietly(now);
        self.last_gated = Some(now);
        if std::mem::take(&mut self.hibernates) {
            self.signals.values_mut().for_each(|signal| signal.wake(now));
            self.look_at_gates(now);
        }
    }

    /// [`Controller::handle_sample`] of what was asked of a server, and when.
    pub fn handle_answer(
        &mut self,
        now: MonoTime,
        asked_at: MonoTime,
        key: SignalKey,
        sample: Sample,
    ) {
        let value = match sample {
            Sample::Value(value) => Some((value, None)),
            Sample::Failed => None,
        };
        let value = self.counted(key, value, |since, _| asked_at >= since);
        self.record(now, now, key, value);
    }

    /// The value, if it counts for a signal that may be waking: `asked_since` is told since when,
    /// and at which value it shuts.
    pub(super) fn counted(
        &mut self,
        key: SignalKey,
        value: Option<(f64, Option<f64>)>,
        asked_since: impl FnOnce(MonoTime, Duration) -> bool,
    ) -> Option<(f64, Option<f64>)> {
        let signal = self.signals.get_mut(&key)?;
        let limit = Duration::try_from_secs_f64(signal.closes_at()).unwrap_or(Duration::MAX);
        value.filter(|value| signal.counts(*value, |since| asked_since(since, limit)))
    }

    /// Looks at a gate for somebody who needs its signals. Whether one of them is awaited.
    pub(super) fn need(&mut self, now: MonoTime, gate: GateKey) -> bool {
        if self.gates.get(&gate).is_some_and(Gate::has_signals) {
            self.wake(now);
        }
        if let Some(gate) = self.gates.get_mut(&gate) {
            gate.look(&self.signals, now);
        }
        self.awaits(now, gate)
    }

    /// Whether it is for a value that is awaited, and for nothing else, that a gate is shut.
    #[must_use]
    pub fn awaits(&self, now: MonoTime, gate: GateKey) -> bool {
        let Some(gate) = self.gates.get(&gate).filter(|gate| gate.open_since().is_none()) else {
            return false;
        };
        let awaited = |signal: &Signal| signal.is_awaited(now);
        let mut signals = gate.signals().iter().map(|key| self.signals.get(key));
        signals.all(|signal| signal.is_some_and(|it| it.lets_through(now) || awaited(it)))
    }
}
