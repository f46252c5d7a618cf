//! Who was refused and comes back: as it was told, with its place, or too soon, after a pause.

use admission::{Appointment, Mode, Refusal, Return};
use policy::{Action as RuleAction, identity_key};
use session::Ask;
use tokio::time::Instant;

use super::Connection;
use super::pausing::Pause;

impl Connection {
    /// It is refused: what it is told is kept for the session.
    pub(super) fn appoint(&mut self, asked: &Ask, refused: &Refusal) {
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let terms = rule.and_then(|rule| match &rule.action {
            RuleAction::Throttle { terms, .. } => {
                Some((rule.key, identity_key(rule, self.session.app()), terms))
            }
            RuleAction::Exempt | RuleAction::Deny => None,
        });
        let now = self.shared.cluster.now();
        let since = self.admission.since().unwrap_or(now);
        self.debt.told = terms.and_then(|terms| Appointment::of(now, terms, since, refused));
    }

    /// The pause before a statement that comes sooner than told after a refusal, while others are
    /// held back. One that comes as told has its place.
    pub(super) fn pause_of_early(&mut self, asked: &Ask) -> Option<Pause> {
        let rule = self.policy.rule(asked.rule?)?;
        if self.leaving.refuses() || self.admission.has_been_asked_for() {
            return None;
        }
        let told = self.debt.told.take()?;
        self.shared.cluster.control(|controller, _| controller.come_back(told));
        if rule.mode == Mode::Observe || !self.shared.cluster.is_contended() {
            return None;
        }
        let now = self.shared.cluster.now();
        match told.comes(now, rule.key) {
            Return::New => None,
            Return::Kept { since } => {
                self.admission.note_place(since);
                None
            }
            Return::Early { until } => {
                self.admission.note_pause();
                let since = Instant::now();
                let over = since.checked_add(until.saturating_since(now))?;
                let listed = self.list_pause(asked, rule, None, over);
                Some(self.pause_until(over, since, listed))
            }
        }
    }
}
