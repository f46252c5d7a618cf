//! Fair turns between those who wait: start-time fair queueing, with dice.
//!
//! Theory. Everybody who waits has a *tag*, its virtual time: the cost it has been charged, divided
//! by its weight. The lowest tag has its turn, which is one check; whoever ties goes by who came
//! first. So over any time in which they wait together, charges are shared in proportion to the
//! weights, whatever a single turn costs, and nobody is ahead of its share by more than one turn.
//! The virtual time of the whole is the tag of the last turn. Who joins starts one charge of its
//! own behind it, as if it had just had a turn: a crowd of newcomers does not push those who wait
//! back.
//!
//! A check that is lost changes nothing but its loser's tag, and there may be thousands of them to
//! one that wins. So whoever waits throws ahead: how many checks it will lose before it wins is
//! drawn at once, which is geometrically distributed, and its place is that of the check that wins,
//! tag + (lost · charge). Between two turns nobody else can win, so the order of the wins, and how
//! many checks have been lost to each, are what one throw at a time gives, at O(log n) for each
//! win. A check counts as lost when the virtual time has passed it. The dice do not remember: what
//! is left of a draw is a draw, and whoever leaves, or asks under another ratio, only draws again.
//!
//! Clients wait for their answers, so a lane is often empty for the moment that takes. Who comes
//! back within [`GRACE`] never left: it keeps its tag, and so its claim on what others were given
//! meanwhile. It is no claim on more: who leaves behind the virtual time, and has been behind it for
//! longer than that, has asked for less than its share, and leaves with that time. For [`KEPT_FOR`] a tag ahead of the others' is kept, so
//! that leaving is no way to lose a charge. A turn that is taken while nobody waits is one like any
//! other, and the virtual time goes on to it: what nobody else wanted is owed to nobody, and who
//! comes then begins beside whoever had it, not behind.
//!
//! Who was told to come back, and does, takes its turn as of when it first asked ([`past`]).
//!
//! Source: Goyal, Vin and Cheng, Start-Time Fair Queueing (1996).

mod past;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand::Rng;

use self::past::{Past, WAITING_MIN};
use crate::{MonoTime, Ratio};

/// An absence that is none: a statement and its answer, over a wide network.
const GRACE: Duration = Duration::from_secs(1);

/// For how long a charge is remembered.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Of so many who have left; beyond, whoever left first is forgotten.
const ABSENT_MAX: usize = 4_096;

/// So many are forgotten at once: it is done under a lock, a few each time somebody leaves.
const FORGOTTEN_MAX: usize = 16;

/// Virtual time: micro-rows per weight. Thousands of lost checks of a million rows, at a thousand
/// wins a second, would wrap 64 bits within a day.
type Tag = u128;

#[derive(Debug)]
pub(crate) struct Turns<K> {
    waiting: BTreeMap<K, Waits>,
    /// Whose turn comes when; an entry for each that waits.
    order: BTreeSet<(Place, K)>,
    absent: BTreeMap<K, Absence>,
    /// In the order they left; those who came back since are still in it.
    left: VecDeque<(MonoTime, K)>,
    /// Who left last, and the last to leave that was somebody else.
    last_left: [Option<(MonoTime, K)>; 2],
    now: Tag,
    next_arrival: u64,
    past: Past,
}

/// A check of whoever waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bid {
    /// What its statement is expected to cost, in rows.
    pub(crate) cost: f64,
    pub(crate) weight: u32,
    /// The probability that the check is lost.
    pub(crate) ratio: Ratio,
}

#[derive(Debug, Clone, Copy)]
struct Waits {
    place: Place,
    /// When its next check comes.
    tag: Tag,
    /// What a check is charged.
    charge: u64,
    /// So many checks from `tag` on it loses.
    lost: u64,
    ratio: Ratio,
    /// So much earlier than its own its turn comes, once: of who has come back.
    lent: Tag,
    /// Since when it is behind the virtual time, as of when it came.
    owed_since: Option<MonoTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// When the check comes that wins.
    win: Tag,
    /// Who came first goes first.
    arrival: u64,
}

#[derive(Debug, Clone, Copy)]
struct Absence {
    tag: Tag,
    arrival: u64,
    since: MonoTime,
    /// When it left first of those times that it has been behind since.
    owed_since: MonoTime,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            order: BTreeSet::new(),
            absent: BTreeMap::new(),
            left: VecDeque::new(),
            last_left: [None, None],
            now: 0,
            next_arrival: 0,
            past: Past::default(),
        }
    }
}

impl<K: Copy + Ord> Turns<K> {
    /// How many wait, or are remembered.
    pub(crate) fn known(&self) -> usize {
        self.waiting.len().saturating_add(self.absent.len())
    }

    /// Whether it waits, or is remembered.
    pub(crate) fn knows(&self, who: K) -> bool {
        self.waiting.contains_key(&who) || self.absent.contains_key(&who)
    }

    /// Starts waiting, as of `since`, which is now or earlier; nothing happens if it waits already.
    pub(crate) fn join_as_of(
        &mut self,
        (since, now): (MonoTime, MonoTime),
        who: K,
        bid: &Bid,
        dice: &mut impl Rng,
    ) {
        if self.waiting.contains_key(&who) {
            return;
        }
        let charge = charge_of(bid.cost, bid.weight);
        let here = Place { win: self.now, arrival: self.next_arrival };
        self.past.note(now, here, self.waiting.len());
        let stood = if since < now { self.past.at(since, now, here) } else { here };
        let new = stood.win.saturating_add(u128::from(charge));
        let known = self.absent.remove(&who);
        let owed_since = known.map(|absence| absence.owed_since);
        let (tag, arrival, lent) = match known {
            Some(absence) if now.saturating_since(absence.since) <= GRACE => {
                // Who has had its turn of this round stands in the next by when it asks for it: of
                // many, the last of a round may not wait for long enough.
                let is_new = absence.tag > here.win && self.waiting.len() >= WAITING_MIN;
                let arrival = if is_new { here.arrival } else { absence.arrival };
                (absence.tag, arrival, 0)
            }
            absence => {
                let tag = absence.map_or(new, |absence| absence.tag.max(new));
                (tag, stood.arrival, here.win.saturating_sub(tag))
            }
        };
        self.next_arrival = self.next_arrival.saturating_add(1);
        let lost = bid.ratio.losses(dice);
        let waits = Waits::new(tag, charge, lost, bid.ratio, arrival);
        self.place(who, Waits { lent, owed_since, ..waits });
    }

    /// Stops waiting. How many of its checks the virtual time has passed, and were lost.
    pub(crate) fn leave(&mut self, now: MonoTime, who: K) -> u64 {
        let passed = self.account(who);
        let Some(waits) = self.waiting.remove(&who) else { return 0 };
        self.order.remove(&(waits.place, who));
        let Waits { tag, place: Place { arrival, .. }, owed_since, .. } = waits;
        let owed_since = owed_since.filter(|_| tag < self.now).unwrap_or(now);
        let (tag, owed_since) = if now.saturating_since(owed_since) > GRACE {
            (tag.max(self.now), now)
        } else {
            (tag, owed_since)
        };
        self.absent.insert(who, Absence { tag, arrival, since: now, owed_since });
        self.left.push_back((now, who));
        match &mut self.last_left {
            [Some((at, last)), _] if *last == who => *at = now,
            [last, before] => *before = last.replace((now, who)),
        }
        self.forget(now);
        passed
    }

    /// Who wins the next check that is won.
    pub(crate) fn first(&self) -> Option<K> {
        self.order.first().map(|&(_, who)| who)
    }

    /// All who wait, whoever is next first.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = K> + '_ {
        self.order.iter().map(|&(_, who)| who)
    }

    /// How many checks the next winner loses before.
    pub(crate) fn losses_before_win(&self) -> u64 {
        let first = self.first().and_then(|who| self.waiting.get(&who));
        first.map_or(0, |waits| waits.lost.saturating_sub(waits.passed_by(self.now)))
    }

    /// Whether anybody else waits, or is absent for a moment only.
    pub(crate) fn has_rival(&self, now: MonoTime, who: K) -> bool {
        let waits = self.waiting.len() > usize::from(self.waiting.contains_key(&who));
        let others = self.last_left.iter().flatten().filter(|(_, other)| *other != who);
        waits || others.into_iter().any(|(at, _)| now.saturating_since(*at) <= GRACE)
    }

    /// Whether somebody who is absent for a moment only would have its turn before this one, who
    /// waits or is about to with a statement of this cost.
    pub(crate) fn rival_is_ahead(&self, now: MonoTime, who: K, (cost, weight): (f64, u32)) -> bool {
        let joins_at = || self.now.saturating_add(u128::from(charge_of(cost, weight)));
        let known = || self.absent.get(&who).map(|absence| absence.tag);
        let waits = self.waiting.get(&who).map(|waits| waits.place.win);
        let turn = waits.or_else(known).unwrap_or_else(joins_at);
        self.last_left.iter().flatten().any(|(at, other)| {
            let is_away = *other != who && now.saturating_since(*at) <= GRACE;
            is_away && self.absent.get(other).is_some_and(|absence| absence.tag < turn)
        })
    }

    /// Whether somebody who waits is ahead of the virtual time by so many rows at most, with what
    /// stands at its head.
    pub(crate) fn is_due(&self, who: K, (ahead, weight): (f64, u32)) -> bool {
        let until = self.now.saturating_add(u128::from(charge_of(ahead, weight)));
        let due = |waits: &Waits| waits.place.win <= until.saturating_add(u128::from(waits.charge));
        self.waiting.get(&who).is_some_and(due)
    }

    /// Somebody has won its check, the next of its turns is for such a statement again. How many
    /// checks it has lost since those that were counted.
    pub(crate) fn take(&mut self, who: K, bid: &Bid, dice: &mut impl Rng) -> u64 {
        let Some(waits) = self.waiting.get(&who).copied() else {
            self.charge(who, bid.cost, bid.weight);
            return 0;
        };
        self.order.remove(&(waits.place, who));
        let win = waits.place.win;
        let first = self.order.first().map_or(win, |(place, _)| place.win);
        self.now = self.now.max(win.min(first));
        let charge = charge_of(bid.cost, bid.weight);
        let tag = win.saturating_add(waits.lent).saturating_add(u128::from(charge));
        let lost = bid.ratio.losses(dice);
        let next = Waits::new(tag, charge, lost, bid.ratio, waits.place.arrival);
        self.place(who, Waits { owed_since: waits.owed_since, ..next });
        waits.lost
    }

    /// Who is absent has had a turn without waiting. If nobody waits it is the turn of the whole.
    pub(crate) fn charge(&mut self, who: K, cost: f64, weight: u32) {
        if let Some(absence) = self.absent.get(&who).filter(|_| self.waiting.is_empty()) {
            self.now = self.now.max(absence.tag);
        }
        self.move_by(who, u128::from(charge_of(cost, weight)), true);
    }

    /// Somebody waits and may not have its turn, and `other` has one instead: of that it is owed so many
    /// rows at most, as if it had had the rest.
    pub(crate) fn bring_along(&mut self, who: K, other: K, (rows, weight): (f64, u32)) {
        let waits = self.waiting.get(&other).map(|waits| waits.place.win);
        let turn = waits.or_else(|| self.absent.get(&other).map(|absence| absence.tag));
        let least = turn.unwrap_or(0).saturating_sub(u128::from(charge_of(rows, weight)));
        let behind = self.waiting.get(&who).map(|waits| least.saturating_sub(waits.place.win));
        if let Some(behind) = behind.filter(|behind| *behind > 0) {
            self.move_by(who, behind, true);
        }
    }

    /// Another statement is at its head. How many checks the one before has lost.
    pub(crate) fn rebid(&mut self, who: K, bid: &Bid, dice: &mut impl Rng) -> u64 {
        let charge = charge_of(bid.cost, bid.weight);
        let unchanged = |waits: &Waits| {
            let certain = waits.ratio == Ratio::ZERO && bid.ratio == Ratio::ZERO;
            certain || (waits.ratio, waits.charge) == (bid.ratio, charge)
        };
        if self.waiting.get(&who).is_none_or(unchanged) {
            return 0;
        }
        let passed = self.account(who);
        let Some(waits) = self.waiting.get(&who).copied() else { return passed };
        let lost = if waits.ratio == bid.ratio { waits.lost } else { bid.ratio.losses(dice) };
        self.order.remove(&(waits.place, who));
        let anew = Waits::new(waits.tag, charge, lost, bid.ratio, waits.place.arrival);
        let (lent, owed_since) = (waits.lent, waits.owed_since);
        self.place(who, Waits { lent, owed_since, ..anew });
        passed
    }

    /// Puts those checks on its account that the virtual time has passed, and gives their number.
    /// Its place is what it was.
    pub(crate) fn account(&mut self, who: K) -> u64 {
        let now = self.now;
        let Some(waits) = self.waiting.get_mut(&who) else { return 0 };
        let passed = waits.passed_by(now);
        waits.lose(passed);
        passed
    }

    /// So many checks of those that it loses were thrown now.
    pub(crate) fn lose(&mut self, who: K, checks: u64) {
        if let Some(waits) = self.waiting.get_mut(&who) {
            waits.lose(checks.min(waits.lost));
        }
    }

    /// Whether whoever waits has lost a check by now that was not counted.
    pub(crate) fn has_lost(&self, who: K) -> bool {
        self.waiting.get(&who).is_some_and(|waits| waits.passed_by(self.now) > 0)
    }

    /// An earlier turn has cost so much more than was charged, or so much less. Nobody is charged
    /// less than nothing: what is given back was charged before.
    pub(crate) fn settle(&mut self, who: K, more: f64, weight: u32) {
        if more != 0.0 {
            self.move_by(who, u128::from(charge_of(more.abs(), weight)), more > 0.0);
        }
    }

    fn move_by(&mut self, who: K, difference: Tag, later: bool) {
        let moved = |tag: Tag| {
            if later { tag.saturating_add(difference) } else { tag.saturating_sub(difference) }
        };
        if let Some(waits) = self.waiting.get(&who).copied() {
            self.order.remove(&(waits.place, who));
            let place = Place { win: moved(waits.place.win), ..waits.place };
            self.place(who, Waits { place, tag: moved(waits.tag), ..waits });
        } else if let Some(absence) = self.absent.get_mut(&who) {
            absence.tag = moved(absence.tag);
        }
    }

    fn place(&mut self, who: K, waits: Waits) {
        self.waiting.insert(who, waits);
        self.order.insert((waits.place, who));
    }

    /// Forgets who left long ago, and who left first if there are too many.
    fn forget(&mut self, now: MonoTime) {
        for _ in 0..FORGOTTEN_MAX {
            let Some(&(at, who)) = self.left.front() else { return };
            if self.left.len() <= ABSENT_MAX && now.saturating_since(at) < KEPT_FOR {
                return;
            }
            self.left.pop_front();
            // Who has come back and left again since has a later entry.
            if self.absent.get(&who).is_some_and(|absence| absence.since == at) {
                self.absent.remove(&who);
            }
        }
    }
}

impl Waits {
    fn new(tag: Tag, charge: u64, lost: u64, ratio: Ratio, arrival: u64) -> Self {
        let losses = u128::from(charge).saturating_mul(u128::from(lost));
        let place = Place { win: tag.saturating_add(losses), arrival };
        Self { place, tag, charge, lost, ratio, lent: 0, owed_since: None }
    }

    /// How many of its lost checks come before this virtual time.
    fn passed_by(&self, now: Tag) -> u64 {
        if self.lost == 0 {
            return 0;
        }
        let passed = now.saturating_sub(self.tag).div_ceil(u128::from(self.charge.max(1)));
        u64::try_from(passed).unwrap_or(u64::MAX).min(self.lost)
    }

    fn lose(&mut self, checks: u64) {
        let charge = u128::from(self.charge).saturating_mul(u128::from(checks));
        self.tag = self.tag.saturating_add(charge);
        self.lost = self.lost.saturating_sub(checks);
    }
}

/// A charge in micro-rows per weight, at least one.
fn charge_of(cost: f64, weight: u32) -> u64 {
    // A duration is the one safe way from a float to whole millionths.
    let cost = Duration::try_from_secs_f64(cost.max(0.0) / f64::from(weight.max(1)));
    let micros = cost.map_or(u128::from(CHARGE_MAX), |cost| cost.as_micros());
    u64::try_from(micros).unwrap_or(CHARGE_MAX).clamp(1, CHARGE_MAX)
}

/// The largest single charge: a million million rows.
const CHARGE_MAX: u64 = 1_000_000_000_000_000_000;

#[cfg(test)]
mod tests;
