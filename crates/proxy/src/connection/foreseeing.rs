//! What guards ask the server about a text before they say anything.

use policy::{Estimate, GuardReport};
use session::GuardedText;

use super::Connection;
use crate::explain::{Foreseen, Subject};

impl Connection {
    /// Asks how many rows the server expects to read, and has the guards that wanted to know speak.
    /// It takes no longer than the shortest of their `explain_timeout`.
    pub(super) async fn foresee(&mut self, report: &mut GuardReport) {
        let estimates = std::mem::take(&mut report.estimates);
        // What is refused anyway, and what has been asked before, is not asked.
        if report.refusal().is_some() || self.admission.is_guarded() {
            return;
        }
        let timeout = estimates.iter().map(|estimate| estimate.timeout).min().unwrap_or_default();
        let most = estimates.iter().map(|estimate| estimate.most).min().unwrap_or(u64::MAX);
        let foreseen = match self.session.guarded_text(self.client.bytes()) {
            None | Some(GuardedText { of_session: true, .. }) => Foreseen::NotExplained,
            Some(GuardedText { text, schema, of_session: false, server }) => {
                let explainer = &self.shared.cluster.explainer;
                match Subject::of(text, schema, server, most) {
                    Ok(subject) => explainer.foresee(&self.policy, subject, timeout).await,
                    Err(foreseen) => foreseen,
                }
            }
        };
        self.shared.telemetry.guard_explain(&self.shared.cluster.name, foreseen.as_str());
        match foreseen {
            Foreseen::Cached(rows) | Foreseen::Asked(rows) => {
                report.hits.extend(estimates.iter().filter_map(|estimate| estimate.hit(rows)));
            }
            Foreseen::NothingRead => {}
            Foreseen::NotExplained
            | Foreseen::TimedOut
            | Foreseen::Busy
            | Foreseen::Denied
            | Foreseen::Failed => {
                let unjudged = estimates.into_iter().map(|one| (one.guard, Estimate::CHECK));
                report.unjudged.extend(unjudged);
            }
        }
    }
}
