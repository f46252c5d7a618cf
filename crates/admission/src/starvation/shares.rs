//! What everybody received of what was let through while it contended, against its fair share.
//!
//! Theory. In fair queueing with weights there is a virtual time V that grows by cost / ΣW with each
//! admission, W being the weights of those who contend at that moment: whoever contends from V₀ to
//! V₁ is entitled to its weight × (V₁ − V₀). Turns are given on three levels ([`crate::ring`]), and
//! so are entitlements: V of a gate gives to rules, V of a rule to its apps in equal parts, V of an
//! app to its identities. What a level is entitled to moves the next one's V when somebody of it is
//! looked at, so an admission costs a few looks into maps, whatever number contends.
//!
//! Who *contends*: who stands in line at the gate, and for [`LINGERS`] whoever was refused there.
//! Not: who waits for its own dice, for a cap or a budget of its own, for a hold; who runs; who
//! thinks. So who asks for little and gets it is entitled to little. What passes without asking (exempt,
//! not gated, observed) is no part of what is shared.
//!
//! The dice change a share on purpose. A rule's weight is weight × (1 − ratio), as its turns come,
//! so who is held by its own ratio is entitled to as much less, and is not below its share.
//!
//! A statement is put on the accounts when it is admitted, at what such statements are known to
//! write, and settled at what it wrote, while it writes and when it has run. Somebody's being
//! admitted counts as its contending.
//!
//! *Judged* is an identity over times that are long enough: [`StarvationConfig`]'s shortest spell,
//! and until its fair share is a few statements of the largest kind that passed, for who waits its
//! turn may be behind by one of its own and one of another's at any time, and again when it comes
//! back after a while. Who received less than [`BELOW`] of its share over such a time was *below
//! its share* for as long as it contended then and somebody was admitted at least every few
//! seconds: while a gate is shut nobody takes anything from anybody.
//!
//! Bounds: an account for each identity in line, and for [`REMEMBERED_MAX`] at each gate that were
//! there within [`REMEMBERED_FOR`]. If more are refused at once, nothing is put on any account
//! meanwhile: whoever is not known would make the share of all others look larger.
//!
//! Sources: Demers, Keshav and Shenker (1989); Parekh and Gallager (1993) for the bound of one
//! statement; Bennett and Zhang, Hierarchical Packet Fair Queueing Algorithms (1996).
//!
//! [`StarvationConfig`]: super::StarvationConfig

mod account;
mod clocks;
mod levels;
mod pool;

use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) use self::pool::Pool;
use crate::request::Lane;
use crate::{AppKey, GateKey, IdentityKey, MonoTime, Ratio, Request, RuleKey, Terms};

/// Below its share is who received less than this part of it. Turns keep everybody within one
/// statement of its share, and what is judged is some statements long: in the scenarios that are
/// shipped whoever waits for long receives 0.9 of its share and more over a minute. A fifth would
/// not see a job that gets a quarter for hours.
pub const BELOW: f64 = 0.5;

/// Who was refused contends for so long: a client that tries again has its next attempt about then.
/// As long as somebody who is absent from a line has never left it.
const LINGERS: Duration = Duration::from_secs(1);

/// Who was away for no longer comes back to the turn that it had.
const GRACE: Duration = Duration::from_secs(1);

/// Somebody's account is kept for so long after it contended.
const REMEMBERED_FOR: Duration = Duration::from_secs(90);

/// Accounts that are kept at a gate for those who contend no more, or were refused. Clients choose
/// identities (2 MiB).
pub(super) const REMEMBERED_MAX: usize = 4_096;

/// Judged when the share is so many times what one may be behind.
const STATEMENTS: f64 = 4.0;

/// And where dice are thrown, so many statements: chance alone then halves it once in a hundred
/// thousand times.
const STATEMENTS_DICED: f64 = 64.0;

/// An identity that was below its share, for so long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Below {
    pub(super) rule: RuleKey,
    pub(super) app: AppKey,
    pub(super) identity: IdentityKey,
    /// Between these.
    pub(super) from: MonoTime,
    pub(super) to: MonoTime,
    /// How long it contended meanwhile.
    pub(super) time: Duration,
    pub(super) entitled: f64,
    pub(super) received: f64,
}

/// What the identities of an app received while they contended, of late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AppShare {
    /// The gate where they contended.
    pub gate: GateKey,
    /// The rule.
    pub rule: RuleKey,
    /// The app.
    pub app: AppKey,
    /// Their fair share, in rows.
    pub entitled: f64,
    /// What they received, in rows.
    pub received: f64,
}

/// One gate, rule and app: where a reader of [`AppShare`]s goes on.
pub type AppShareKey = (GateKey, RuleKey, AppKey);

/// Who asks, and what its statement says about turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimant {
    pub(super) lane: Lane,
    pub(super) weight: f64,
    pub(super) ratio: Ratio,
}

impl Claimant {
    pub(super) fn of(request: &Request) -> Self {
        let weight = f64::from(request.terms.weight.clamp(1, Terms::WEIGHT_MAX));
        Self { lane: request.lane(), weight, ratio: request.terms.ratio }
    }

    /// The part of its checks that are won.
    fn won(&self) -> f64 {
        (1.0 - self.ratio.as_f64()).max(WON_MIN)
    }
}

/// Nobody wins less often in line: a ratio of 1 does not stand there.
const WON_MIN: f64 = 1e-6;

/// The accounts of one cluster.
#[derive(Debug)]
pub(super) struct Shares {
    pools: BTreeMap<GateKey, Pool>,
    /// Nobody is judged by less.
    spell_min: Duration,
}

impl Shares {
    pub(super) fn new(spell_min: Duration) -> Self {
        Self { pools: BTreeMap::new(), spell_min }
    }

    /// A statement stands in line at its gate.
    pub(super) fn joins(&mut self, now: MonoTime, request: &Request) -> Option<Below> {
        let pool = self.pools.entry(request.gate).or_insert_with(|| Pool::new(now, self.spell_min));
        pool.joins(now, &Claimant::of(request))
    }

    /// It does not any more.
    pub(super) fn leaves(&mut self, now: MonoTime, request: &Request) {
        if let Some(pool) = self.pools.get_mut(&request.gate) {
            pool.leaves(now, request.lane());
        }
    }

    /// A statement was refused that would have stood in line.
    pub(super) fn refused(&mut self, now: MonoTime, request: &Request) -> Option<Below> {
        let pool = self.pools.entry(request.gate).or_insert_with(|| Pool::new(now, self.spell_min));
        pool.refused(now, &Claimant::of(request))
    }

    /// Whether it matters what is admitted to this statement: somebody contends, or it has itself
    /// until now.
    pub(super) fn counts(&self, now: MonoTime, request: &Request) -> bool {
        let pool = self.pools.get(&request.gate);
        pool.is_some_and(|pool| pool.counts(now, request.lane()))
    }

    /// A statement was admitted, of which so many rows are expected.
    pub(super) fn admitted(
        &mut self,
        now: MonoTime,
        request: &Request,
        rows: f64,
    ) -> Option<Below> {
        let pool = self.pools.get_mut(&request.gate)?;
        pool.admitted(now, &Claimant::of(request), rows)
    }

    /// What was admitted has cost so much more, or less than nothing: so much less.
    pub(super) fn settled(
        &mut self,
        now: MonoTime,
        (gate, lane): (GateKey, Lane),
        more: f64,
    ) -> Option<Below> {
        self.pools.get_mut(&gate)?.settled(now, lane, more)
    }

    /// All lines are gone, for they are made anew; the accounts stay, but those of gates that are
    /// not to be kept: to be dropped, which takes its time.
    pub(super) fn forget_lines(&mut self, kept: impl Fn(GateKey) -> bool) -> Vec<Pool> {
        let gone: Vec<GateKey> = self.pools.keys().copied().filter(|gate| !kept(*gate)).collect();
        for pool in self.pools.values_mut() {
            pool.forget_line();
        }
        gone.iter().filter_map(|gate| self.pools.remove(gate)).collect()
    }

    /// What the next apps received, from behind `after` on: so many at most.
    pub(super) fn apps_after(
        &mut self,
        now: MonoTime,
        after: Option<AppShareKey>,
        most: usize,
    ) -> Vec<AppShare> {
        let mut found = Vec::new();
        let from = after.map_or(GateKey(0), |(gate, ..)| gate);
        for (&gate, pool) in self.pools.range_mut(from..) {
            let after = after.filter(|(of, ..)| *of == gate).map(|(_, rule, app)| (rule, app));
            pool.apps_after(now, (gate, after), (most, &mut found));
            if found.len() >= most {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
