//! When the controller wants to be called, and whether anything of that has changed.

use super::Controller;
use crate::MonoTime;
use crate::gate::Gate;

impl Controller {
    /// Counts the calls that may have resolved a wait, shut or opened a gate, or moved
    /// [`Controller::poll_timeout`]. While it stands still, what was polled last is so yet.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// When [`Controller::handle_time`] must be called next; `None` if nothing happens by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoTime> {
        let signals = self.signals.values().filter_map(|signal| signal.next_change(self.clock));
        let releases = self.gates.values().filter_map(Gate::next_run);
        let line = self.gates.values().any(|gate| gate.paced && gate.has_line());
        let paced = self.pace.as_ref().filter(|_| line).and_then(|pace| pace.next_room(self.clock));
        let line = line || self.gates.values().any(|gate| gate.by_room && gate.has_line());
        let paused = self.pause_until.filter(|_| line);
        let leaving = self.queue.is_leaving().then_some(self.clock);
        let diced = self.gates.values().filter_map(Gate::next_win);
        let claimed = self.claimed_at.filter(|_| line);
        let place = self.in_flight.next_change(self.clock).filter(|_| line);
        signals
            .chain(releases)
            .chain(paced)
            .chain(paused)
            .chain(diced)
            .chain(leaving)
            .chain(claimed)
            .chain(place)
            .chain(self.rates.next_room(self.clock))
            .chain(self.budget_lines.next_wake())
            .chain(self.queue.next_event())
            .min()
    }
}
