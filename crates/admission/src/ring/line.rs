//! One lane, and a place in it.

use std::collections::BTreeMap;

use super::{Place, Stake};
use crate::request::Lane;
use crate::{MonoTime, Ratio, Ticket};

/// Who waits in one lane.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) places: BTreeMap<Place, Stake>,
    /// What they are known to cost.
    pub(super) cost: f64,
    /// Those of them who have come back as told.
    pub(super) kept: Standing,
}

/// Statements of one lane that are counted one by one.
const COUNTED_MAX: usize = 64;

/// Some who stand in line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Standing {
    pub(super) statements: usize,
    /// What they are known to cost, in rows.
    pub(super) cost: f64,
}

/// A place in line, of a statement that does not stand there now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stands {
    pub(crate) lane: Lane,
    pub(crate) weight: u32,
    pub(crate) ratio: Ratio,
    /// What it is known to cost.
    pub(crate) cost: f64,
    /// By what its place goes.
    pub(crate) since: MonoTime,
    /// What those of its lane cost who are to come back and stand before it.
    pub(crate) away: f64,
}

/// What is ahead of a place, in rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ahead {
    /// In its own lane, with what the others are given meanwhile, and its own.
    pub(crate) about: f64,
    /// The same of those who are to come back.
    pub(crate) away: f64,
    /// Statements that stand before it in its lane.
    pub(crate) statements: usize,
    /// When the first in its lane arrived.
    pub(crate) since: Option<MonoTime>,
}

impl Line {
    /// Those who first asked before this time. Exact where they, or those behind them, are few;
    /// of many in front and many behind it is those who have come back: who is at its deadline for
    /// the first time stands between them and those who came new.
    pub(super) fn in_front_of(&self, since: MonoTime) -> Standing {
        let at = (since, Ticket(0));
        let some = |stakes: &mut dyn Iterator<Item = &Stake>| {
            let mut sum = Standing::default();
            for _ in 0..COUNTED_MAX {
                match stakes.next() {
                    Some(stake) => sum.add(stake),
                    None => return Some(sum),
                }
            }
            None
        };
        if let Some(in_front) = some(&mut self.places.range(..at).map(|(_, stake)| stake)) {
            return in_front;
        }
        match some(&mut self.places.range(at..).map(|(_, stake)| stake)) {
            Some(behind) => Standing {
                statements: self.places.len().saturating_sub(behind.statements),
                cost: self.cost - behind.cost,
            },
            None => self.kept,
        }
    }
}

impl Standing {
    pub(super) fn add(&mut self, stake: &Stake) {
        self.statements = self.statements.saturating_add(1);
        self.cost += stake.known;
    }
}
