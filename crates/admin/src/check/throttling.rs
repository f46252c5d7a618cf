//! What the dialects' `throttle-app` and its family have in common.

use std::time::Duration;

use axum::handler::Handler;
use axum::routing::{MethodRouter, post};
use fleet::StandingRule;
use policy::RuntimeEffect;

use crate::Shown;

/// A minute, for dialects that count in them.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Which of the two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Throttle,
    Unthrottle,
}

/// The methods by which something is changed. Whether a GET may, `answer` asks
/// [`crate::access::Access`].
pub(crate) fn methods<T: 'static>(way: Way, answer: impl Handler<T, Shown>) -> MethodRouter<Shown> {
    let routes = post(answer.clone()).get(answer.clone());
    match way {
        Way::Throttle => routes,
        // Whoever deletes something does not mean to throttle.
        Way::Unthrottle => routes.delete(answer),
    }
}

/// A ratio, as text.
pub(crate) fn ratio(text: &str) -> Option<f64> {
    text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))
}

/// The ratio that says what a rule does, and whether it exempts.
pub(crate) fn effect(rule: &StandingRule) -> (f64, bool) {
    match rule.effect {
        RuntimeEffect::Throttle { ratio } => (ratio, false),
        RuntimeEffect::Hold | RuntimeEffect::Deny => (1.0, false),
        RuntimeEffect::Exempt => (0.0, true),
    }
}
