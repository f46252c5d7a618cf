//! What a rule is to the controller, and what needs no controller.

use std::time::Duration;

use admission::{GateKey, Mode, Reason, Refusal, RuleKey};

use super::clients::Running;
use super::{LAG_GATE, OPEN_GATE, World};
use crate::{Gate, Scenario};

/// A client that a rule denies tries again after so long: nothing advises it.
const DENIED_COMES_BACK_AFTER: Duration = Duration::from_secs(1);

/// The key of a gate with signals is this and its set.
const SIGNAL_GATES: u32 = 0x8000_0000;

pub(super) fn gate_key(gate: Gate) -> GateKey {
    match gate {
        Gate::Lag => LAG_GATE,
        Gate::Open => OPEN_GATE,
        Gate::Signals(set) => GateKey(SIGNAL_GATES | set.bits()),
    }
}

/// The first app that meets the same rule stands for it; a rule without a name is the app's own.
pub(super) fn rule_key(scenario: &Scenario, app: usize) -> RuleKey {
    let name_of = |app: usize| scenario.apps.get(app).and_then(|app| app.rule.name.as_deref());
    let same = name_of(app).and_then(|name| (0..app).find(|other| name_of(*other) == Some(name)));
    RuleKey(u64::try_from(same.unwrap_or(app)).unwrap_or(u64::MAX))
}

impl World<'_> {
    pub(super) fn denied(&mut self, index: usize, mode: Mode) {
        match mode {
            Mode::Enforce => {
                let denial = Refusal {
                    budget: None,
                    limit: None,
                    reason: Reason::Deny,
                    cause: None,
                    waited: Duration::ZERO,
                    retry_after: DENIED_COMES_BACK_AFTER,
                };
                self.refused(index, denial);
            }
            Mode::Observe => {
                self.would_be_held(index);
                self.begin_statement(index, Running::Passed);
            }
        }
    }

    /// A rule that only observes would have held this statement.
    pub(super) fn would_be_held(&mut self, index: usize) {
        let now = self.now;
        if let Some((session, ..)) = self.session(index) {
            let app = session.app;
            self.measure.observed(now, app);
        }
    }
}
