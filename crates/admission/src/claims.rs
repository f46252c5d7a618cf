//! What every app is sure of, whatever the others have on their way.
//!
//! Theory. A shared line goes by turns, and a turn helps nobody who comes while the room is taken:
//! a statement of 1,000 rows fills the window for a while, and a client that writes one row each
//! time it has its answer meets it full again and again. Its share would go to whoever always
//! waits. So every app has a *claim*: it is filled at its share of the pace, weight × (1 − ratio)
//! over the sum of those who ask, and spent by whatever the app is admitted. A head whose claim
//! covers it passes although tokens or window have no room, and is charged to both like any other,
//! so that the others wait for it and the sum stays what the pace allows.
//!
//! A claim is for who asks for less than its share. Whoever has had a line for
//! [`SPARSE_FOR`] asks for more, and takes turns like everybody: else a stall would find
//! every app's claim beside a full window.
//!
//! Sources: Floyd and Jacobson, Link-sharing and Resource Management Models for Packet Networks
//! (1995), for classes that borrow; RFC 8290 (2018) for flows that are sparse while their queue
//! empties.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::{AppKey, MonoTime, Request, Terms};

/// Who has had a line for so long asks for more than its share.
pub(crate) const SPARSE_FOR: Duration = Duration::from_secs(1);

/// Who has not asked for so long has no share: the time in which an absence is none for turns.
const ASKS_FOR: Duration = Duration::from_secs(1);

/// A claim that nobody uses is filled for so long: several sessions of an app ask at once. Time at
/// its share of the pace.
const SAVED: Duration = Duration::from_millis(100);

/// The same for who asks and does not wait: it comes again only after a while.
const SAVED_FOR_ASKERS: Duration = Duration::from_millis(250);

/// What was admitted beyond the claim is remembered for so long, as a debt.
const DEBT: Duration = Duration::from_secs(1);

/// Apps with claims; clients choose apps. Beyond, apps take turns.
const CLAIMS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    apps: BTreeMap<AppKey, Claim>,
    /// When each was seen first, or when it was last looked whether it still asks; oldest first.
    seen: VecDeque<(MonoTime, AppKey)>,
    /// The sum of the weights.
    weight: f64,
}

#[derive(Debug)]
struct Claim {
    weight: f64,
    /// In rows; below zero: debt.
    credit: f64,
    filled_at: MonoTime,
    seen_at: MonoTime,
    saved: Duration,
}

impl Claims {
    /// An app asks, or waits at the head.
    pub(crate) fn note(&mut self, now: MonoTime, request: &Request) {
        let weight = weight_of(request);
        if let Some(claim) = self.apps.get_mut(&request.app) {
            claim.seen_at = now;
            self.weight += weight - claim.weight;
            claim.weight = weight;
        } else if self.apps.len() < CLAIMS_MAX {
            let claim = Claim { weight, credit: 0.0, filled_at: now, seen_at: now, saved: SAVED };
            self.apps.insert(request.app, claim);
            self.seen.push_back((now, request.app));
            self.weight += weight;
        }
        self.forget(now);
    }

    /// The same of an app that asks and does not wait.
    pub(crate) fn note_asker(&mut self, now: MonoTime, request: &Request) {
        self.note(now, request);
        if let Some(claim) = self.apps.get_mut(&request.app) {
            claim.saved = SAVED_FOR_ASKERS;
        }
    }

    /// How long until the claim of this app covers so many rows at a pace of `per_s`; `None` if
    /// never: it is alone, or nothing is let through.
    pub(crate) fn covers_in(
        &mut self,
        now: MonoTime,
        app: AppKey,
        per_s: f64,
        cost: f64,
    ) -> Option<Duration> {
        let alone = self.apps.len() < 2;
        let claim = self.apps.get_mut(&app)?;
        let share = per_s * claim.weight / self.weight.max(claim.weight).max(f64::MIN_POSITIVE);
        let passed = now.saturating_since(claim.filled_at).as_secs_f64();
        let most = share.mul_add(claim.saved.as_secs_f64(), 1.0).max(cost);
        let least = -share * DEBT.as_secs_f64() - 1.0;
        claim.credit = share.mul_add(passed, claim.credit.max(least)).min(most);
        claim.filled_at = now;
        if alone || share <= 0.0 {
            return None;
        }
        Duration::try_from_secs_f64(((cost - claim.credit) / share).max(0.0)).ok()
    }

    /// Work of this app was admitted, or turns out to cost more, or less than nothing: a refund.
    pub(crate) fn spend(&mut self, app: AppKey, cost: f64) {
        if let Some(claim) = self.apps.get_mut(&app) {
            claim.credit -= cost;
        }
    }

    fn forget(&mut self, now: MonoTime) {
        while let Some(&(at, app)) = self.seen.front() {
            if now.saturating_since(at) <= ASKS_FOR {
                return;
            }
            self.seen.pop_front();
            let Some(claim) = self.apps.get(&app) else { continue };
            if now.saturating_since(claim.seen_at) <= ASKS_FOR {
                self.seen.push_back((claim.seen_at, app));
                continue;
            }
            self.weight -= claim.weight;
            self.apps.remove(&app);
        }
        if self.apps.is_empty() {
            // Sums of floats drift; nothing is left to be summed.
            self.weight = 0.0;
        }
    }
}

/// Shares are in proportion to weight × (1 − ratio).
pub(crate) fn weight_of(request: &Request) -> f64 {
    let weight = request.terms.weight.clamp(1, Terms::WEIGHT_MAX);
    f64::from(weight) * (1.0 - request.terms.ratio.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GateKey, IdentityKey, Ratio, RuleKey};

    const A: AppKey = AppKey(1);
    const B: AppKey = AppKey(2);

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn of(app: AppKey, weight: u32, ratio: f64) -> Request {
        let terms = Terms { weight, ratio: Ratio::new(ratio).unwrap(), ..Terms::default() };
        Request {
            rule: RuleKey(1),
            identity: IdentityKey(1),
            app,
            digest: None,
            gate: GateKey(1),
            terms,
            arrived: at(0),
        }
    }

    fn both() -> Claims {
        let mut claims = Claims::default();
        claims.note(at(0), &of(A, 1, 0.0));
        claims.note(at(0), &of(B, 3, 0.0));
        claims
    }

    fn ms(wait: Option<Duration>) -> Option<u128> {
        wait.map(|wait| wait.as_micros().div_ceil(1_000))
    }

    #[test]
    fn a_claim_fills_at_the_apps_share_of_the_pace() {
        let mut claims = both();
        assert_eq!(ms(claims.covers_in(at(0), A, 1_000.0, 1.0)), Some(4), "a quarter of it");
        assert_eq!(ms(claims.covers_in(at(2), A, 1_000.0, 1.0)), Some(2));
        assert_eq!(ms(claims.covers_in(at(4), A, 1_000.0, 1.0)), Some(0));
        let mut diced = Claims::default();
        diced.note(at(0), &of(A, 1, 0.9));
        diced.note(at(0), &of(B, 1, 0.1));
        assert_eq!(ms(diced.covers_in(at(0), A, 1_000.0, 1.0)), Some(10));
    }

    #[test]
    fn what_was_admitted_is_owed_and_what_was_not_used_is_kept_for_a_moment() {
        let mut claims = both();
        assert_eq!(ms(claims.covers_in(at(900), A, 1_000.0, 26.0)), Some(0));
        claims.spend(A, 26.0);
        assert_eq!(ms(claims.covers_in(at(900), A, 1_000.0, 26.0)), Some(104), "nothing is left");
        claims.spend(A, 1e9);
        assert_eq!(ms(claims.covers_in(at(900), A, 1_000.0, 1.0)), Some(1_008), "a second's debt");
    }

    #[test]
    fn nobody_has_a_claim_alone_or_while_nothing_is_let_through() {
        let mut claims = Claims::default();
        claims.note(at(0), &of(A, 1, 0.0));
        assert_eq!(claims.covers_in(at(0), A, 1_000.0, 1.0), None);
        claims.note(at(0), &of(B, 1, 0.0));
        assert_eq!(claims.covers_in(at(0), A, 0.0, 1.0), None);
        claims.note(at(2_000), &of(A, 1, 0.0));
        assert_eq!(claims.covers_in(at(2_000), A, 1_000.0, 1.0), None, "the other has left");
        assert_eq!(claims.covers_in(at(2_000), B, 1_000.0, 1.0), None);
    }

    #[test]
    fn apps_that_clients_make_up_are_forgotten() {
        let mut claims = Claims::default();
        for app in 0..10_000 {
            claims.note(at(0), &of(AppKey(app), 1, 0.0));
        }
        assert_eq!((claims.apps.len(), claims.seen.len()), (CLAIMS_MAX, CLAIMS_MAX));
        claims.note(at(1_001), &of(A, 1, 0.0));
        assert_eq!((claims.apps.len(), claims.seen.len()), (1, 1));
        assert!((claims.weight - 1.0).abs() < 1e-6);
    }
}
