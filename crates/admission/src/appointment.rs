//! Who was refused and told when to come back, and does, or does not.
//!
//! Theory. A line that is longer than those in it may wait refuses whoever comes to its end at its
//! deadline, however often it has been refused before: some are served at once and some never. So
//! whoever comes back when it was told has kept its place: it stands where it stood, by the time
//! at which it first asked, and what is told is an appointment. Whoever comes sooner has not: its
//! statement is not looked at before it is due, or for [`SLOWED_MAX`] at most, and stands at the
//! end of the line. The shell keeps appointments, one for each session; a session that ends has
//! none.

use std::time::Duration;

use crate::{IdentityKey, Mode, MonoTime, OnRefusedCheck, Reason, Refusal, RuleKey, Terms};

/// Who comes too soon waits for so long at most before it is looked at.
const SLOWED_MAX: Duration = Duration::from_secs(1);

/// Who comes so much later than told has lost its place.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What a session was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appointment {
    rule: RuleKey,
    identity: IdentityKey,
    /// Since when it has stood in line.
    since: MonoTime,
    /// When it may come back.
    at: MonoTime,
}

/// How a statement is to ask that comes behind a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// Like any other.
    New,
    /// As told: its place is that of a statement that has stood in line since then.
    Kept {
        /// For [`crate::Request::since`].
        since: MonoTime,
    },
    /// Too soon: not before this time, and then like any other.
    Early {
        /// When it may ask.
        until: MonoTime,
    },
}

impl Appointment {
    /// What this refusal tells the session; `None` if it is about no line. `since` is what the
    /// statement had for [`crate::Request::since`].
    #[must_use]
    pub fn of(
        now: MonoTime,
        (rule, identity, terms): (RuleKey, IdentityKey, &Terms),
        since: MonoTime,
        refusal: &Refusal,
    ) -> Option<Self> {
        let at = now.saturating_add(refusal.retry_after);
        let appointment = Self { rule, identity, since, at };
        Self::is_made(refusal.reason, terms).then_some(appointment)
    }

    /// Whether who is refused for this is told when its turn comes, and keeps its place until then.
    pub(crate) fn is_made(reason: Reason, terms: &Terms) -> bool {
        let is_about_a_line = match reason {
            Reason::GateClosed | Reason::NoData | Reason::Paced | Reason::QueueFull => true,
            Reason::Ratio
            | Reason::Timeout
            | Reason::Hold
            | Reason::Deny
            | Reason::BudgetConcurrency
            | Reason::BudgetRate
            | Reason::BudgetShare
            | Reason::BudgetQuery
            | Reason::Guard
            | Reason::Quarantined
            | Reason::Shutdown => false,
        };
        let waits = terms.on_refused_check == OnRefusedCheck::Delay;
        is_about_a_line && waits && terms.mode == Mode::Enforce
    }

    /// Whose it is, since when it has stood in line, and when it is due.
    pub(crate) fn claim(self) -> ((RuleKey, IdentityKey), MonoTime, MonoTime) {
        ((self.rule, self.identity), self.since, self.at)
    }

    /// How the next statement of the session asks, if it comes now and under this rule.
    #[must_use]
    pub fn comes(self, now: MonoTime, rule: RuleKey) -> Return {
        if rule != self.rule || now > self.at.saturating_add(KEPT_FOR) {
            return Return::New;
        }
        if now >= self.at {
            return Return::Kept { since: self.since };
        }
        Return::Early { until: self.at.min(now.saturating_add(SLOWED_MAX)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RuleKey = RuleKey(1);

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// What a statement that asked at 1 s is told at 6 s: to come back in 3 s.
    fn told(reason: Reason, terms: &Terms) -> Option<Appointment> {
        let (waited, retry_after) = (Duration::from_secs(5), Duration::from_secs(3));
        let refusal =
            Refusal { reason, cause: None, budget: None, limit: None, waited, retry_after };
        Appointment::of(at(6_000), (RULE, IdentityKey(7), terms), at(1_000), &refusal)
    }

    #[test]
    fn who_comes_back_when_it_was_told_stands_where_it_stood() {
        let told = told(Reason::Paced, &Terms::default()).unwrap();
        assert_eq!(told.comes(at(9_000), RULE), Return::Kept { since: at(1_000) });
        assert_eq!(told.comes(at(69_000), RULE), Return::Kept { since: at(1_000) });
        assert_eq!(told.comes(at(69_001), RULE), Return::New, "it is not waited for for ever");
        assert_eq!(told.comes(at(9_000), RuleKey(2)), Return::New, "another line");
    }

    #[test]
    fn who_comes_back_sooner_waits_a_little_and_has_lost_its_place() {
        let told = told(Reason::GateClosed, &Terms::default()).unwrap();
        assert_eq!(told.comes(at(6_010), RULE), Return::Early { until: at(7_010) });
        assert_eq!(told.comes(at(8_500), RULE), Return::Early { until: at(9_000) });
        assert_eq!(told.comes(at(8_500), RuleKey(2)), Return::New);
    }

    #[test]
    fn only_lines_have_places() {
        let terms = Terms::default();
        for reason in [Reason::Ratio, Reason::Hold, Reason::Deny, Reason::Shutdown] {
            assert_eq!(told(reason, &terms), None);
        }
        let never_waits = Terms { on_refused_check: OnRefusedCheck::Reject, ..terms };
        assert_eq!(told(Reason::Paced, &never_waits), None);
    }
}
