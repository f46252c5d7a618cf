//! One lane.

use std::collections::BTreeMap;

use super::ahead::Standing;
use super::{Place, Stake};
use crate::{MonoTime, Ticket};

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

impl Line {
    /// Those who first asked before this time, where they, or those behind them, are few.
    pub(super) fn in_front_of(&self, since: MonoTime) -> Option<Standing> {
        let at = (since, Ticket(0));
        let some = |stakes: &mut dyn Iterator<Item = &Stake>| {
            let mut sum = Standing::default();
            for _ in 0..COUNTED_MAX {
                match stakes.next() {
                    Some(stake) => sum.add(stake.standing()),
                    None => return Some(sum),
                }
            }
            None
        };
        if let Some(in_front) = some(&mut self.places.range(..at).map(|(_, stake)| stake)) {
            return Some(in_front);
        }
        let behind = some(&mut self.places.range(at..).map(|(_, stake)| stake))?;
        Some(Standing {
            statements: self.places.len().saturating_sub(behind.statements),
            cost: (self.cost - behind.cost).max(0.0),
        })
    }
}
