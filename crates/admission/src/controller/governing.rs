//! Whose pace holds a statement: `paced` alone does not say what to look at. It is a signal's, the
//! one that has the smallest room, or one of the rule's own limits.

use std::time::Duration;

use super::Controller;
use crate::gate::Obstacle;
use crate::signal::Signal;
use crate::{GateKey, MonoTime, Reason, Request, RuleKey, SignalKey};

/// Who had no room within this time was held back by what governs now.
const GOVERNS_FOR: Duration = Duration::from_secs(2);

impl Controller {
    /// The signal whose pace had no room for somebody within the last seconds; `None`: nobody had
    /// to wait for any.
    #[must_use]
    pub fn governing(&self, now: MonoTime) -> Option<SignalKey> {
        let (signal, at) = self.governing?;
        (self.clock.max(now).saturating_since(at) <= GOVERNS_FOR).then_some(signal)
    }

    /// The pace of this signal has no room for somebody at this gate.
    pub(super) fn note_governing(&mut self, now: MonoTime, gate: GateKey, signal: SignalKey) {
        self.governing = Some((signal, now));
        if let Some(gate) = self.gates.get_mut(&gate) {
            gate.held_by = Some(signal);
        }
    }

    /// What a statement meets that waits for the limits of its own rule.
    pub(super) fn by_own_limit(&self, now: MonoTime, rule: RuleKey) -> Obstacle {
        Obstacle { limit: self.rates.short_of(now, rule), ..Obstacle::plain(Reason::Paced) }
    }

    /// The obstacle with the signal whose pace it is, if it is a signal's. Behind a reload nobody
    /// knows until somebody has had no room.
    pub(super) fn with_pace(&self, request: &Request, obstacle: Obstacle) -> Obstacle {
        if obstacle.reason != Reason::Paced || obstacle.limit.is_some() {
            return obstacle;
        }
        let Some(gate) = self.gates.get(&request.gate) else { return obstacle };
        let held_by = gate.held_by.filter(|_| gate.by_room);
        let signal = held_by.and_then(|key| self.signals.get(&key));
        // Behind others of its rule that wait at a gate which is shut.
        let cause = gate.cause().or_else(|| signal.map(Signal::cause));
        Obstacle { cause, ..obstacle }
    }
}
