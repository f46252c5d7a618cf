//! What every app is sure of, whatever the others have on their way.
//!
//! Theory. A shared line goes by turns, and a turn helps nobody who comes while the room is taken:
//! a statement of 1,000 rows fills the window for a while, and a client that writes one row each
//! time it has its answer meets it full again and again. Its share would go to whoever always
//! waits. So every app has a *claim*: it is filled at its share of the pace, weight × (1 − ratio)
//! over the sum of those who ask, and spent by whatever the app is admitted. Whom its app's claim
//! covers passes although tokens or window have no room or others stand before it, and is charged to
//! both like any other, so that the others wait for it and the sum stays what the pace allows.
//!
//! Most apps use a part of their share. What they leave is the others', those who want more: a claim
//! is filled at the app's part of what they have between them. Else one eager client beside a batch
//! job would have half of the replica, and a quarter as soon as two apps come that write a row now
//! and then. (Max-min fairness. An app leaves its rest while its claim is full and it uses less than
//! [`SATED`] of its share.)
//!
//! A claim is for who asks for less than its share. Whoever has had a line for
//! [`SPARSE_FOR`] asks for more, and takes turns like everybody: else a stall would find
//! every app's claim beside a full window. Where a large statement fills the window for longer than
//! that, a line is no sign of it, and is given as long ([`crate::pace::Pace::full_for`]).
//!
//! Turns are between rules first, and so are claims: an app has its part of its rule's share, an
//! equal one beside the rule's other apps.
//!
//! Who asks beside the line and does not wait in it has a claim of another kind: see [`askers`].
//!
//! Sources: Floyd and Jacobson, Link-sharing and Resource Management Models for Packet Networks
//! (1995), for classes that borrow; RFC 8290 (2018) for flows that are sparse while their queue
//! empties.

mod askers;
mod sated;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use self::askers::{Asker, Part, STAYS};
pub(crate) use self::askers::{AskersTurn, Kept};
use self::sated::Sated;
use crate::{AppKey, MonoTime, Request, RuleKey, Terms};

/// Who has had a line for so long asks for more than its share, unless a large statement fills the
/// window for longer.
pub(crate) const SPARSE_FOR: Duration = Duration::from_secs(1);

/// Who has not asked for so long has no share. Longer than a turn is kept for whoever asks and does
/// not wait ([`askers::STAYS`]): who comes for it at the last moment is still known, and is owed
/// what it was owed. Forgotten then, an app that sleeps for a second in ten lost a tenth of its
/// share.
const ASKS_FOR: Duration = STAYS.saturating_add(Duration::from_millis(500));

/// A claim that nobody uses is filled for so long: several sessions of an app ask at once. Time at
/// its share of the pace.
const SAVED: Duration = Duration::from_millis(100);

/// The same for who asks and does not wait: it comes again only after a while.
const SAVED_FOR_ASKERS: Duration = Duration::from_millis(250);

/// What an app is admitted is its use for about so long.
const USES: Duration = Duration::from_secs(1);

/// Who uses more of its share than this part leaves nothing: a full claim may be chance.
const SATED: f64 = 0.8;

/// What was admitted beyond the claim is remembered for so long, as a debt.
const DEBT: Duration = Duration::from_secs(1);

/// Apps with claims; clients choose apps. Beyond, apps take turns.
const CLAIMS_MAX: usize = 4_096;

/// So many are looked at at once: it is done under a lock, each time that somebody asks.
const FORGOTTEN_MAX: usize = 16;

/// Apps whose turns are kept: all of them are looked at for each release.
const KEPT_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    apps: BTreeMap<AppKey, Claim>,
    rules: BTreeMap<RuleKey, RuleClaim>,
    /// When each was seen first, or when it was last looked whether it still asks; oldest first.
    seen: VecDeque<(MonoTime, AppKey)>,
    /// The sum of the weights of rules.
    weight: f64,
    /// What those have between them who leave a part of their shares.
    sated: Sated,
    /// All that was admitted, in rows.
    total: f64,
    /// Those that ask and do not wait, the last that came first: [`KEPT_MAX`] at most.
    askers: VecDeque<AppKey>,
}

#[derive(Debug)]
struct Claim {
    rule: RuleKey,
    /// In rows; below zero: debt.
    credit: f64,
    filled_at: MonoTime,
    seen_at: MonoTime,
    /// What it is admitted, in rows a second: the mean of about [`USES`].
    used: f64,
    /// Its part of [`Claims::sated`].
    sated: Sated,
    asker: Option<Asker>,
}

/// In rows a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speeds {
    /// At which work is admitted now.
    pub(crate) pace: f64,
    /// That of the replicas.
    pub(crate) rate: f64,
}

/// What the apps of a rule share.
#[derive(Debug)]
struct RuleClaim {
    weight: f64,
    apps: u32,
}

impl Claims {
    /// An app asks, or waits at the head. Others that wait are told by `waits`.
    pub(crate) fn note(
        &mut self,
        now: MonoTime,
        request: &Request,
        waits: impl Fn(RuleKey, AppKey) -> bool,
    ) {
        let weight = weight_of(request);
        let has_place = self.apps.len() < CLAIMS_MAX;
        let before = match self.apps.get_mut(&request.app) {
            Some(claim) => {
                claim.seen_at = now;
                Some(std::mem::replace(&mut claim.rule, request.rule))
            }
            None if has_place => {
                self.apps.insert(request.app, Claim::new(now, request.rule));
                self.seen.push_back((now, request.app));
                None
            }
            None => return self.forget(now, waits),
        };
        let rule = self.rules.entry(request.rule).or_insert(RuleClaim { weight: 0.0, apps: 0 });
        self.weight += weight - rule.weight;
        rule.weight = weight;
        if before != Some(request.rule) {
            rule.apps = rule.apps.saturating_add(1);
            before.into_iter().for_each(|before| self.leave_rule(before));
        }
        self.forget(now, waits);
    }

    /// The same of an app that asks and does not wait.
    pub(crate) fn note_asker(
        &mut self,
        now: MonoTime,
        request: &Request,
        waits: impl Fn(RuleKey, AppKey) -> bool,
    ) {
        self.note(now, request, waits);
        let Some(claim) = self.apps.get_mut(&request.app) else { return };
        match &mut claim.asker {
            Some(asker) => asker.note(now),
            None => claim.asker = Some(Asker::new(now, self.total)),
        }
        if !self.askers.contains(&request.app) {
            self.askers.push_front(request.app);
            self.askers.truncate(KEPT_MAX);
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
        let part = self.share(app)?;
        let claim = self.apps.get_mut(&app)?;
        let others = self.sated.without(claim.sated);
        let share = per_s * part;
        let fills = share * others.leaves(per_s);
        let passed = now.saturating_since(claim.filled_at).as_secs_f64();
        let saved = if claim.asker.is_some() { SAVED_FOR_ASKERS } else { SAVED };
        let most = share.mul_add(saved.as_secs_f64(), 1.0).max(cost);
        let least = -share * DEBT.as_secs_f64() - 1.0;
        let filled = fills.mul_add(passed, claim.credit.max(least));
        claim.credit = filled.min(most);
        claim.filled_at = now;
        claim.used *= (-passed / USES.as_secs_f64()).exp();
        let used = claim.used;
        let is_sated = filled >= most && used < SATED * share;
        claim.sated = if is_sated { Sated { share: part, used } } else { Sated::default() };
        self.sated = others.with(claim.sated);
        if alone || fills <= 0.0 {
            return None;
        }
        Duration::try_from_secs_f64(((cost - claim.credit) / fills).max(0.0)).ok()
    }

    /// Whether it is the turn of an app that asks beside a line for so many rows.
    pub(crate) fn turn_of_asker(
        &mut self,
        now: MonoTime,
        app: AppKey,
        speed: Speeds,
        cost: f64,
    ) -> AskersTurn {
        let covered_in = self.covers_in(now, app, speed.pace, cost);
        let part = self.part(app, speed.rate);
        let asker = self.apps.get_mut(&app).and_then(|claim| claim.asker.as_mut());
        let (Some(part), Some(asker), Some(covered_in)) = (part, asker, covered_in) else {
            return AskersTurn::NotYet;
        };
        asker.turn(part, cost, covered_in.is_zero())
    }

    /// It was refused for its turn: that is kept once it has come.
    pub(crate) fn refuse_asker(&mut self, now: MonoTime, app: AppKey, cost: f64) {
        if let Some(asker) = self.apps.get_mut(&app).and_then(|claim| claim.asker.as_mut()) {
            asker.refuse(now, cost);
        }
    }

    /// The turn that is kept now for an app that asks, other than this one.
    pub(crate) fn kept_from(&mut self, now: MonoTime, app: AppKey, rate: f64) -> Option<Kept> {
        let others = self.askers.iter().copied().filter(|asker| *asker != app);
        let others: [Option<AppKey>; KEPT_MAX] = first_of(others);
        others.into_iter().flatten().find_map(|app| {
            let part = self.part(app, rate)?;
            self.apps.get_mut(&app)?.asker.as_mut()?.kept(now, part)
        })
    }

    /// Work of this app was admitted, or turns out to cost more, or less than nothing: a refund.
    pub(crate) fn spend(&mut self, app: AppKey, cost: f64) {
        self.total += cost;
        if let Some(claim) = self.apps.get_mut(&app) {
            claim.credit -= cost;
            claim.used += cost / USES.as_secs_f64();
            if let Some(asker) = &mut claim.asker {
                asker.spend(cost);
            }
        }
    }

    fn part(&self, app: AppKey, rate: f64) -> Option<Part> {
        Some(Part { share: self.share(app)?, rate, total: self.total })
    }

    /// The part of all that is let through that is this app's.
    fn share(&self, app: AppKey) -> Option<f64> {
        let rule = self.rules.get(&self.apps.get(&app)?.rule)?;
        let of_rule = rule.weight / self.weight.max(rule.weight).max(f64::MIN_POSITIVE);
        Some(of_rule / f64::from(rule.apps.max(1)))
    }

    fn forget(&mut self, now: MonoTime, waits: impl Fn(RuleKey, AppKey) -> bool) {
        for _ in 0..FORGOTTEN_MAX {
            let Some(&(at, app)) = self.seen.front() else { break };
            if now.saturating_since(at) <= ASKS_FOR {
                return;
            }
            self.seen.pop_front();
            let Some(claim) = self.apps.get_mut(&app) else { continue };
            // Whoever waits behind others asks for as long as that takes.
            if waits(claim.rule, app) {
                claim.seen_at = now;
            }
            if now.saturating_since(claim.seen_at) <= ASKS_FOR {
                self.seen.push_back((claim.seen_at, app));
                continue;
            }
            self.remove(app);
        }
        if self.seen.is_empty() {
            // Sums of floats drift; nothing is left to be summed.
            (self.weight, self.total, self.sated) = (0.0, 0.0, Sated::default());
        }
    }

    fn remove(&mut self, app: AppKey) {
        let Some(Claim { rule, sated, .. }) = self.apps.remove(&app) else { return };
        self.sated = self.sated.without(sated);
        self.askers.retain(|asker| *asker != app);
        self.leave_rule(rule);
    }

    /// An app of this rule has gone, or asks under another one.
    fn leave_rule(&mut self, rule: RuleKey) {
        if let Some(claim) = self.rules.get_mut(&rule) {
            claim.apps = claim.apps.saturating_sub(1);
            if claim.apps == 0 {
                self.weight -= claim.weight;
                self.rules.remove(&rule);
            }
        }
    }
}

impl Claim {
    fn new(now: MonoTime, rule: RuleKey) -> Self {
        let (used, sated) = (0.0, Sated::default());
        Self { rule, credit: 0.0, filled_at: now, seen_at: now, used, sated, asker: None }
    }
}

fn first_of<T, const N: usize>(items: impl Iterator<Item = T>) -> [Option<T>; N] {
    let mut items = items;
    std::array::from_fn(|_| items.next())
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
            rule: RuleKey(app.0),
            identity: IdentityKey(1),
            app,
            digest: None,
            written: None,
            gate: GateKey(1),
            terms,
            arrived: at(0),
            since: at(0),
        }
    }

    fn nobody(_: RuleKey, _: AppKey) -> bool {
        false
    }

    fn both() -> Claims {
        let mut claims = Claims::default();
        claims.note(at(0), &of(A, 1, 0.0), nobody);
        claims.note(at(0), &of(B, 3, 0.0), nobody);
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
        diced.note(at(0), &of(A, 1, 0.9), nobody);
        diced.note(at(0), &of(B, 1, 0.1), nobody);
        assert_eq!(ms(diced.covers_in(at(0), A, 1_000.0, 1.0)), Some(10));
    }

    #[test]
    fn the_apps_of_a_rule_share_its_part() {
        let mut claims = both();
        let of_b = Request { app: AppKey(3), ..of(B, 3, 0.0) };
        claims.note(at(0), &of_b, nobody);
        assert_eq!(ms(claims.covers_in(at(0), A, 1_000.0, 1.0)), Some(4), "a quarter, as before");
        for app in [B, AppKey(3)] {
            assert_eq!(ms(claims.covers_in(at(0), app, 1_000.0, 3.0)), Some(8), "3/8 each");
        }
    }

    #[test]
    fn an_app_that_another_rule_is_about_has_the_share_of_that_one() {
        let mut claims = both();
        let throttled = Request { rule: RuleKey(9), ..of(B, 1, 0.5) };
        claims.note(at(0), &throttled, nobody);
        assert_eq!(ms(claims.covers_in(at(0), A, 1_000.0, 2.0)), Some(3), "two thirds of it");
        assert_eq!(ms(claims.covers_in(at(0), B, 1_000.0, 1.0)), Some(3), "one third");
        claims.note(at(0), &of(B, 3, 0.0), nobody);
        assert_eq!(ms(claims.covers_in(at(0), A, 1_000.0, 1.0)), Some(4), "a quarter, as before");
        assert_eq!(claims.rules.len(), 2);
        assert!((claims.weight - 4.0).abs() < 1e-9, "{}", claims.weight);
    }

    #[test]
    fn what_an_app_leaves_of_its_share_is_the_others() {
        let mut claims = Claims::default();
        let fourth = AppKey(4);
        for app in [A, B, AppKey(3), fourth] {
            claims.note(at(0), &of(app, 1, 0.0), nobody);
        }
        // Two that use 50 of their 250 rows a second, and two that have used theirs.
        for step in 0..=500 {
            for app in [AppKey(3), fourth] {
                claims.covers_in(at(step * 20), app, 1_000.0, 1.0);
                claims.spend(app, 1.0);
            }
            for app in [A, B] {
                claims.covers_in(at(step * 20), app, 1_000.0, 1.0);
                claims.spend(app, 20.0);
            }
        }
        let fills_at = |claims: &mut Claims, per_s: f64| {
            let mut wait = |cost| claims.covers_in(at(10_000), A, per_s, cost).unwrap();
            let (one, more) = (wait(1.0), wait(101.0));
            100.0 / (more - one).as_secs_f64()
        };
        let half = fills_at(&mut claims, 1_000.0);
        assert!((440.0..=460.0).contains(&half), "half of the 900 that are left: {half}");
        let slow = fills_at(&mut claims, 200.0);
        assert!((49.0..=51.0).contains(&slow), "nothing is left at a fifth of the pace: {slow}");
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
        claims.note(at(0), &of(A, 1, 0.0), nobody);
        assert_eq!(claims.covers_in(at(0), A, 1_000.0, 1.0), None);
        claims.note(at(0), &of(B, 1, 0.0), nobody);
        assert_eq!(claims.covers_in(at(0), A, 0.0, 1.0), None);
        claims.note(at(2_000), &of(A, 1, 0.0), nobody);
        assert_eq!(claims.covers_in(at(2_000), A, 1_000.0, 1.0), None, "the other has left");
        assert_eq!(claims.covers_in(at(2_000), B, 1_000.0, 1.0), None);
    }

    #[test]
    fn whoever_waits_behind_others_is_not_forgotten() {
        let mut claims = both();
        let b_waits = |_, app| app == B;
        for ms in [2_000, 9_000] {
            claims.note(at(ms), &of(A, 1, 0.0), b_waits);
            assert!(claims.covers_in(at(ms), A, 1_000.0, 1.0).is_some(), "a quarter, as before");
        }
        claims.note(at(9_100), &of(A, 1, 0.0), nobody);
        claims.note(at(10_501), &of(A, 1, 0.0), nobody);
        assert_eq!(claims.covers_in(at(10_501), A, 1_000.0, 1.0), None, "the other has left");
    }

    #[test]
    fn apps_that_clients_make_up_are_forgotten() {
        let mut claims = Claims::default();
        for app in 0..10_000 {
            claims.note(at(0), &of(AppKey(app), 1, 0.0), nobody);
        }
        assert_eq!((claims.apps.len(), claims.seen.len()), (CLAIMS_MAX, CLAIMS_MAX));
        for _ in 0..=CLAIMS_MAX / FORGOTTEN_MAX {
            claims.note(at(1_501), &of(A, 1, 0.0), nobody);
        }
        assert_eq!((claims.apps.len(), claims.seen.len()), (1, 1));
        assert!((claims.weight - 1.0).abs() < 1e-6);
    }
}
