//! What outlives a controller.

use std::time::Duration;

use super::Controller;
use crate::Learned;

impl Controller {
    /// What has been found out, with so many digests and apps at most; `None` where nothing is
    /// paced.
    #[must_use]
    pub fn learned(&self, most: usize) -> Option<Learned> {
        let pace = self.pace.as_ref()?;
        let (digests, apps) = self.costs.known(most);
        Some(Learned { rows_per_s: pace.found_rate(), service: pace.service(), digests, apps })
    }

    /// Begins with what another controller has found out, `age` ago. What this one has found out
    /// itself by now stays.
    pub fn begin_with(&mut self, learned: &Learned, age: Duration) {
        if let Some(pace) = &mut self.pace {
            pace.begin_with(learned.rate_after(age), learned.service);
        }
        self.costs.begin_with(&learned.digests, &learned.apps);
    }
}
