//! The rows that a rule is sure of while its gate is open.
//!
//! Whoever waits for a floor keeps its place in the gate's line meanwhile. The dice hold here too:
//! everybody who waits has one check in a check interval, as at a gate where nobody waits. How many
//! are lost before one wins is drawn at once, as in [`crate::turns`]; who came first wins it.

use std::collections::BTreeMap;

use rand::rngs::StdRng;

use super::Bucket;
use crate::ring::Place;
use crate::{MonoTime, Ratio, Ticket};

/// A floor, with the dice of those who wait for it.
#[derive(Debug, Default)]
pub(super) struct Floor {
    pub(super) bucket: Option<Bucket>,
    /// Who waits at a gate, by who came first, and what each is expected to cost.
    at_gate: BTreeMap<Place, f64>,
    cost: f64,
    /// Checks that are lost yet before one wins; `None`: not drawn.
    to_lose: Option<u64>,
    /// Checks that are left until `round_ends`.
    left: u64,
    round_ends: MonoTime,
    /// All of them were lost.
    is_round_lost: bool,
}

/// What came of the checks of those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thrown {
    /// After so many were lost, one was won.
    Won { lost: u64 },
    /// So many were lost, and there are no more for now.
    Lost { lost: u64 },
}

impl Floor {
    pub(super) fn waiting(&self) -> u64 {
        u64::try_from(self.at_gate.len()).unwrap_or(u64::MAX)
    }

    /// What all of them are expected to cost.
    pub(super) fn cost(&self) -> f64 {
        self.cost
    }

    /// What the one is expected to cost that came first.
    pub(super) fn first_cost(&self) -> f64 {
        self.at_gate.first_key_value().map_or(0.0, |(_, cost)| *cost)
    }

    pub(super) fn join(&mut self, place: Place, cost: f64) {
        if self.at_gate.insert(place, cost).is_none() {
            self.cost += cost;
            self.left = self.left.saturating_add(1);
            self.is_round_lost = false;
        }
    }

    pub(super) fn leave(&mut self, place: Place) {
        let Some(cost) = self.at_gate.remove(&place) else { return };
        self.cost = (self.cost - cost).max(0.0);
        if self.at_gate.is_empty() {
            // Sums of floats drift; nothing is left to be summed.
            self.cost = 0.0;
        }
    }

    /// Who has the next check that wins, if one may be thrown now and there are tokens for it.
    pub(super) fn first(&mut self, now: MonoTime) -> Option<Ticket> {
        if self.is_round_lost && now < self.round_ends {
            return None;
        }
        let covered = self.bucket.as_mut().is_some_and(|bucket| bucket.collect(now) > 0.0);
        self.at_gate.first_key_value().filter(|_| covered).map(|((_, ticket), _)| *ticket)
    }

    /// Has those checked who wait, until one wins.
    pub(super) fn throw(
        &mut self,
        now: MonoTime,
        ratio: Ratio,
        next_check: MonoTime,
        dice: &mut StdRng,
    ) -> Thrown {
        if ratio == Ratio::ZERO {
            return Thrown::Won { lost: 0 };
        }
        if now >= self.round_ends {
            self.round_ends = next_check;
            self.left = self.waiting();
        }
        let to_lose = self.to_lose.take().unwrap_or_else(|| ratio.losses(dice));
        let lost = to_lose.min(self.left);
        self.is_round_lost = lost == self.left;
        if self.is_round_lost {
            self.left = 0;
            self.to_lose = Some(to_lose.saturating_sub(lost));
            return Thrown::Lost { lost };
        }
        self.left = self.left.saturating_sub(lost).saturating_sub(1);
        Thrown::Won { lost }
    }

    /// When something may change by the passing of time alone. Whoever is covered waits for the
    /// gate.
    pub(super) fn next_change(&self, now: MonoTime) -> Option<MonoTime> {
        let bucket = self.bucket.filter(|_| !self.at_gate.is_empty())?;
        let covered = bucket.covers_in(now, 0.0).map(|wait| now.saturating_add(wait));
        let round = Some(self.round_ends).filter(|at| self.is_round_lost && *at > now);
        [covered, round].into_iter().flatten().max()
    }

    /// Nobody waits any more. Gives who did.
    pub(super) fn reset(&mut self) -> BTreeMap<Place, f64> {
        self.cost = 0.0;
        self.to_lose = None;
        self.left = 0;
        self.is_round_lost = false;
        std::mem::take(&mut self.at_gate)
    }
}
