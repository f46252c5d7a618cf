//! Who waits for a bucket, in whose turn, and when it is looked at again.
//!
//! Theory. Who needs several buckets stands in one line at a time. Where others are busy too, none
//! of them has room when another has, for each has a line of those who need nothing else: whoever
//! needs two would go from one to the other for ever. So who has had its turn in each of them has a
//! *claim*: nobody else passes at any of its buckets until all have room for it. It is made at the
//! bucket that gives room least often, so what is kept free there is so for as long as the quicker
//! one takes to have room. One claim at a time stands at a bucket, so no two wait for each other.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use rand::rngs::StdRng;

use super::terms::{BudgetKey, BudgetSet, BudgetUse};
use crate::key_map::KeyMap;
use crate::request::Lane;
use crate::ring::{Joining, Place, Ring};
use crate::{IdentityKey, MonoTime, Ratio, Request, Ticket};

/// No two looks at a line are closer: at most 1,000 wake-ups a second.
const TICK: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct BudgetLines {
    lines: BTreeMap<BudgetUse, Line>,
    /// What waiters want of budgets, wherever they wait.
    sought: KeyMap<Ticket, Sought>,
    /// Who comes first at a bucket, wherever it stands in line.
    claims: KeyMap<BudgetUse, Ticket>,
    /// Buckets in whose line somebody may have room, and from when on.
    wakes: BTreeSet<(MonoTime, BudgetUse)>,
    /// Who is to be judged again, by when it arrived, and the budget that had no room for it.
    exceeded: HashSet<(MonoTime, IdentityKey, BudgetKey)>,
}

#[derive(Debug, Default)]
struct Line {
    ring: Ring,
    /// As in `wakes`.
    wake: Option<MonoTime>,
}

/// What a waiter wants of budgets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) set: BudgetSet,
    pub(crate) scope: BudgetScope,
    /// The longest wait that its rule wants.
    pub(crate) rule_delay: Duration,
    /// The bucket in whose line it stands.
    pub(crate) waits_at: Option<BudgetUse>,
    /// It has had its turn at its gate, and only its budgets were in the way.
    pub(crate) has_turn: bool,
    /// Where it has had its turn, and only its other buckets were in the way.
    pub(crate) had_turn: BudgetSet,
}

/// What a statement asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BudgetScope {
    /// The admission of its rule, and its budgets.
    WithRule,
    /// Its budgets; no rule holds it back.
    Alone,
}

impl BudgetLines {
    /// A statement waits, somewhere.
    pub(crate) fn note(&mut self, ticket: Ticket, sought: Sought) {
        self.sought.insert(ticket, sought);
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Sought> {
        self.sought.get(&ticket)
    }

    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Sought> {
        self.sought.get_mut(&ticket)
    }

    /// It waits for this budget and is to be judged again: that it did is counted.
    pub(crate) fn note_judged_again(&mut self, request: &Request, budget: BudgetKey) {
        self.exceeded.insert((request.arrived, request.identity, budget));
    }

    /// Whether who finds no room there is one of those.
    pub(crate) fn is_judged_again(&mut self, request: &Request, budget: BudgetKey) -> bool {
        let who = (request.arrived, request.identity, budget);
        !self.exceeded.is_empty() && self.exceeded.remove(&who)
    }

    /// It does not wait any more.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> Option<Sought> {
        self.sought.remove(&ticket)
    }

    /// Whether nobody waits for any bucket, nor comes first at one.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.claims.is_empty()
    }

    /// Whether whoever comes now has to go behind somebody.
    #[inline]
    pub(crate) fn has_line(&self, at: BudgetUse) -> bool {
        !self.is_empty() && self.has_line_at(at)
    }

    fn has_line_at(&self, at: BudgetUse) -> bool {
        self.lines.contains_key(&at) || self.claims.contains_key(&at)
    }

    /// Whether somebody else comes first there, wherever it stands.
    pub(crate) fn is_behind_claim(&self, at: BudgetUse, ticket: Ticket) -> bool {
        self.claims.get(&at).is_some_and(|first| *first != ticket)
    }

    /// Whether a waiter has to go behind somebody there: not where it comes first, and not where it
    /// has had its turn.
    pub(crate) fn is_behind(&self, at: BudgetUse, ticket: Ticket) -> bool {
        if self.claims.contains_key(&at) {
            return self.is_behind_claim(at, ticket);
        }
        let had_turn = || self.sought.get(&ticket).is_some_and(|one| one.had_turn.contains(at));
        self.lines.contains_key(&at) && !had_turn()
    }

    /// Whether this waiter comes first there.
    pub(crate) fn comes_first(&self, at: BudgetUse, ticket: Ticket) -> bool {
        self.claims.get(&at) == Some(&ticket)
    }

    /// From now on it comes first at all its buckets. False: another one does at one of them.
    pub(crate) fn claim(&mut self, ticket: Ticket) -> bool {
        let Some(set) = self.sought.get(&ticket).map(|sought| sought.set) else { return false };
        if set.iter().any(|at| self.claims.contains_key(&at)) {
            return false;
        }
        self.claims.extend(set.iter().map(|at| (at, ticket)));
        true
    }

    /// How many wait there.
    pub(crate) fn len(&self, at: BudgetUse) -> usize {
        self.lines.get(&at).map_or(0, |line| line.ring.len())
    }

    /// Stands in the line of a bucket from now on, which has no room for it until then, at least.
    pub(crate) fn join(
        &mut self,
        now: MonoTime,
        (at, until): (BudgetUse, Option<MonoTime>),
        (lane, place): (Lane, Place),
        (weight, dice): (u32, &mut StdRng),
    ) {
        // One statement is one turn. It is checked when it comes to its gate.
        let (cost, known, ratio, kept) = (1.0, 1.0, Ratio::ZERO, false);
        let joining = Joining { lane, place, weight, cost, known, ratio, kept };
        let line = self.lines.entry(at).or_default();
        line.ring.join(now, &joining, dice);
        let is_head = line.ring.is_head(place.1);
        if let Some(until) = until.filter(|_| is_head) {
            self.look_at(at, until.max(now.saturating_add(TICK)));
        }
        if let Some(sought) = self.sought.get_mut(&place.1) {
            sought.waits_at = Some(at);
        }
    }

    /// Leaves the line in which it stands.
    pub(crate) fn leave(&mut self, now: MonoTime, lane: Lane, place: Place, dice: &mut StdRng) {
        let Some(sought) = self.sought.get_mut(&place.1) else { return };
        let Some(at) = sought.waits_at.take() else { return };
        let set = sought.set;
        self.give_up_claims(now, place.1, &set);
        let Some(line) = self.lines.get_mut(&at) else { return };
        line.ring.leave(now, lane, place, dice);
        if line.ring.is_empty() {
            if let Some(wake) = line.wake {
                self.wakes.remove(&(wake, at));
            }
            self.lines.remove(&at);
        } else {
            self.look_at(at, now);
        }
    }

    fn give_up_claims(&mut self, now: MonoTime, ticket: Ticket, set: &BudgetSet) {
        for at in set.iter() {
            if self.comes_first(at, ticket) {
                self.claims.remove(&at);
                self.look_at(at, now);
            }
        }
    }

    /// Whose turn it is in this line; nobody's while one comes first who stands in another.
    pub(crate) fn head(&self, at: BudgetUse) -> Option<Ticket> {
        match self.claims.get(&at) {
            Some(first) => (self.sought.get(first)?.waits_at == Some(at)).then_some(*first),
            None => Some(self.lines.get(&at)?.ring.head()?.ticket),
        }
    }

    /// The turn of whoever is at the head is used up.
    pub(crate) fn take_turn(&mut self, at: BudgetUse, dice: &mut StdRng) {
        if let Some(line) = self.lines.get_mut(&at)
            && let Some(head) = line.ring.head()
        {
            line.ring.take(&head, head.cost, dice);
        }
    }

    /// Something of these buckets has become free.
    pub(crate) fn wake(&mut self, now: MonoTime, set: &BudgetSet) {
        for at in set.iter() {
            let first = self.claims.get(&at).and_then(|first| self.sought.get(first)?.waits_at);
            self.look_at(first.unwrap_or(at), now);
        }
    }

    /// The head of this line has no room before then, unless something becomes free.
    pub(crate) fn rest(&mut self, now: MonoTime, at: BudgetUse, until: Option<MonoTime>) {
        let Some(line) = self.lines.get_mut(&at) else { return };
        if let Some(wake) = line.wake.take() {
            self.wakes.remove(&(wake, at));
        }
        if let Some(until) = until {
            let wake = until.max(now.saturating_add(TICK));
            line.wake = Some(wake);
            self.wakes.insert((wake, at));
        }
    }

    /// The line is looked at then, or before.
    fn look_at(&mut self, at: BudgetUse, when: MonoTime) {
        let Some(line) = self.lines.get_mut(&at) else { return };
        if line.wake.is_some_and(|wake| wake <= when) {
            return;
        }
        if let Some(wake) = line.wake.replace(when) {
            self.wakes.remove(&(wake, at));
        }
        self.wakes.insert((when, at));
    }

    /// A line in which somebody may have room now.
    pub(crate) fn due(&self, now: MonoTime) -> Option<BudgetUse> {
        self.wakes.first().filter(|(wake, _)| *wake <= now).map(|(_, at)| *at)
    }

    /// When the first is.
    pub(crate) fn next_wake(&self) -> Option<MonoTime> {
        self.wakes.first().map(|(wake, _)| *wake)
    }

    /// How many wait for each budget.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (BudgetKey, usize)> + '_ {
        self.lines.iter().map(|(at, line)| (at.budget, line.ring.len()))
    }

    /// Everybody leaves. What is given back is only to be dropped, which takes its time.
    pub(crate) fn reset(&mut self) -> Self {
        std::mem::take(self)
    }
}
