//! Several controllers with large statements in front of one primary: each lets them through in its
//! turn.
//!
//! Theory. A statement of half a threshold's work is no harm alone, nor one behind the other; two at
//! once are over the threshold. What others have let through is seen at the replica after a third of
//! a second, and by then all who saw it idle have let theirs through. Four such controllers were over
//! for 0.42 of the time. News are slower than that; but what comes back as regularly as large
//! statements do can be agreed on before. So those that press with large statements go round: with
//! wᵢ the weight of one of them, Lᵢ its usual large statement and C what all deliver together, a
//! round takes
//!
//! ```text
//!   P = max Lᵢ / (wᵢ/Σw · C)
//! ```
//!
//! in which each has as much as its due as it takes for one of its large statements, and has its turn
//! for a part of it, by its weight, in the order of their names. So each finds the one before it
//! just applied.
//!
//! Nobody agrees by asking. Where the round is, the first of them tells with its news, and the others
//! take it from there as it goes on by itself; it may only change slowly. A round that is too long
//! leaves the replica idle while everybody waits, so rates grow, and with C it becomes shorter; one
//! that is too short leaves a queue.
//!
//! Who has its turn is held to what is ahead of it, and to its tokens within a part of a statement.
//! Times are those of a clock that all have. Where it is wrong, turns meet, and each still goes no
//! more often than its tokens allow; who is given nothing in its turn within two rounds goes without it.

use std::time::Duration;

use super::share::Demand;
use crate::MonoTime;

/// What a round takes, in seconds.
const PERIOD_MIN: f64 = 0.05;
const PERIOD_MAX: f64 = 60.0;

/// Nobody has more rows a second than that.
const PER_S_MAX: f64 = 1e8;

/// It changes with this time constant, in seconds.
const PERIOD_FOLLOWS: f64 = 2.0;

/// Where the round is, by the clock of whoever tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Then
    pub at: MonoTime,
    /// it was at this part of it,
    pub phase: f64,
    /// and so many seconds it takes,
    pub period: f64,
    /// at so many rows a second of all together.
    pub per_s: f64,
}

/// A controller's turn for large statements, beside others who have some.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Where the round is.
    pub round: Round,
    /// Those who go round, one after the other.
    members: Vec<Member>,
    /// Which of them it is.
    own: usize,
    /// What the other controllers let through besides, in rows a second.
    small_per_s: f64,
    /// Of it, what those have who do not press.
    used_per_s: f64,
}

/// One who goes round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Member {
    /// Its turn begins and ends at these parts of the round.
    from: f64,
    to: f64,
    /// Its usual large statement, in rows.
    rows: f64,
}

/// What others have let through in their turns, as far as can be told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Others {
    pub(super) rows: f64,
    /// The first of it was committed so many seconds before.
    pub(super) since: f64,
}

/// Whether it is the turn of a controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Whose {
    /// Its own, since and for so many seconds.
    Own { since: f64, left: f64 },
    /// It is in so many seconds.
    Others { begins_in: f64 },
}

impl Turn {
    /// The turn of a controller of this name beside others of theirs, from what each of them told last:
    /// within seconds, for who is silent for longer has gone. All times are of one clock. `None`: it has no large statements, or is the only one of them.
    #[must_use]
    pub fn of<'a>(
        now: MonoTime,
        own: (u64, &'a Demand),
        others: impl IntoIterator<Item = (u64, &'a Demand)>,
    ) -> Option<Self> {
        // A name of one's own is that of a process that hands over.
        let mut all: Vec<(u64, &Demand)> =
            others.into_iter().filter(|(name, _)| *name != own.0).collect();
        all.push(own);
        all.sort_by_key(|(name, _)| *name);
        let per_s: f64 = all.iter().map(|(_, one)| one.has()).sum();
        let pressing: f64 =
            all.iter().filter(|(_, one)| one.presses).map(|(_, one)| one.weight()).sum();
        let others = all.iter().filter(|(name, _)| *name != own.0);
        let (mut small_per_s, mut used_per_s) = (0.0, 0.0);
        for (_, one) in others {
            small_per_s += one.small();
            used_per_s += if one.presses { 0.0 } else { one.has() };
        }
        all.retain(|(_, one)| one.goes_round());
        let place = all.iter().position(|(name, _)| *name == own.0)?;
        if all.len() < 2 {
            return None;
        }
        let divided = per_s - used_per_s;
        let wanted =
            |(_, one): &(u64, &Demand)| one.turn_rows * pressing / (one.weight() * divided);
        let wanted = all.iter().map(wanted).fold(0.0, f64::max).clamp(PERIOD_MIN, PERIOD_MAX);
        let told = all.iter().find_map(|(_, one)| one.round.and_then(Round::bounded));
        let round = match (place, told) {
            (0, None) => Round { at: now, phase: 0.0, period: wanted, per_s },
            (0, Some(round)) => round.moved(now, wanted, per_s),
            (_, told) => told?,
        };
        let weights: f64 = all.iter().map(|(_, one)| one.weight()).sum();
        let mut from = 0.0;
        let member = |(_, one): &(u64, &Demand)| {
            let to = from + one.weight() / weights;
            let member = Member { from, to, rows: one.turn_rows.max(1.0) };
            from = to;
            member
        };
        let members = all.iter().map(member).collect();
        Some(Self { round, members, own: place, small_per_s, used_per_s })
    }

    /// What those have who do not press, in rows a second: it is divided by nobody.
    pub(super) fn used_per_s(&self) -> f64 {
        self.used_per_s
    }

    /// The usual large statements of all, in rows.
    pub(super) fn all_rows(&self) -> f64 {
        self.members.iter().map(|member| member.rows).sum()
    }

    /// That of whoever comes next.
    pub(super) fn next_rows(&self) -> f64 {
        let next = self.members.get(self.own.saturating_add(1)).or(self.members.first());
        next.map_or(0.0, |member| member.rows)
    }

    /// Whose turn it is for what commits at such a time.
    pub(super) fn whose(&self, at: MonoTime) -> Whose {
        let Round { period, .. } = self.round;
        let phase = self.round.phase(at);
        let Some(own) = self.members.get(self.own) else {
            return Whose::Others { begins_in: 0.0 };
        };
        if (own.from..own.to).contains(&phase) {
            let (since, left) = (phase - own.from, own.to - phase);
            Whose::Own { since: since * period, left: left * period }
        } else {
            Whose::Others { begins_in: (own.from - phase).rem_euclid(1.0) * period }
        }
    }

    /// What the others have let through in the seconds before `at`, each as many of its usual large
    /// statements as its turn has time for at so many rows a second.
    pub(super) fn others(&self, at: MonoTime, seconds: f64, per_s: f64) -> Others {
        let Round { period, .. } = self.round;
        let phase = self.round.phase(at);
        let small = self.small_per_s * seconds;
        let since = if small > 0.0 { seconds } else { 0.0 };
        let mut all = Others { rows: small, since };
        for (place, member) in self.members.iter().enumerate() {
            let takes = member.rows / per_s.max(1.0);
            let most = ((member.to - member.from) * period / takes).round().max(1.0);
            let mut began = (phase - member.from).rem_euclid(1.0) * period;
            for _ in 0..ROUNDS_BACK {
                let first = ((began - seconds) / takes).ceil().max(0.0);
                let last = (began / takes).floor().min(most - 1.0);
                if place == self.own || last < first {
                    break;
                }
                all.rows += (last - first + 1.0) * member.rows;
                all.since = all.since.max(began - first * takes);
                began += period;
            }
        }
        all
    }
}

/// What was more rounds ago has been applied.
const ROUNDS_BACK: usize = 8;

impl Demand {
    fn goes_round(&self) -> bool {
        self.presses && self.turn_rows > 0.0 && self.turn_rows.is_finite()
    }

    /// What it has, in rows a second: within bounds, whoever tells it.
    fn has(&self) -> f64 {
        if self.rows_per_s.is_finite() { self.rows_per_s.clamp(0.0, PER_S_MAX) } else { 0.0 }
    }

    /// What it has that does not go by turns, in rows a second.
    fn small(&self) -> f64 {
        let has = self.has();
        if self.goes_round() { self.small_per_s.max(0.0).min(has) } else { has }
    }
}

impl Round {
    /// The same within bounds; `None`: it is nonsense.
    fn bounded(self) -> Option<Self> {
        let is_told = self.period.is_finite() && self.phase.is_finite() && self.per_s.is_finite();
        is_told.then(|| Self {
            at: self.at,
            phase: self.phase.rem_euclid(1.0),
            period: self.period.clamp(PERIOD_MIN, PERIOD_MAX),
            per_s: self.per_s.clamp(0.0, PER_S_MAX),
        })
    }

    fn phase(&self, at: MonoTime) -> f64 {
        let passed = at.saturating_since(self.at).as_secs_f64();
        let passed = passed - self.at.saturating_since(at).as_secs_f64();
        let phase = (self.phase + passed / self.period).rem_euclid(1.0);
        if phase.is_finite() { phase } else { 0.0 }
    }

    /// The same round, on its way to another period.
    fn moved(&self, now: MonoTime, wanted: f64, per_s: f64) -> Self {
        let since = now.saturating_since(self.at).as_secs_f64();
        let moved = 1.0 - (-since / PERIOD_FOLLOWS).exp();
        let period = self.period + moved * (wanted - self.period);
        let per_s = self.per_s + moved * (per_s - self.per_s);
        Self { at: now, phase: self.phase(now), period, per_s }
    }
}

/// Who has waited for its turn for so many rounds goes without it.
const ROUNDS_MAX: f64 = 2.0;

/// Large statements of a controller that goes round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    /// Since when, and until when, they were held back for the turn alone.
    held: Option<(MonoTime, MonoTime)>,
    /// What was given in the turn, and when last, in rows.
    given: f64,
    given_at: MonoTime,
}

impl Held {
    /// It has its turn, and what was given more than so many seconds ago was in another: how many rows
    /// were given in it.
    pub(super) fn has_turn(&mut self, at: MonoTime, since: f64) -> f64 {
        if at.saturating_since(self.given_at).as_secs_f64() > since {
            self.given = 0.0;
        }
        self.given
    }

    /// So many rows are given in it.
    pub(super) fn gave(&mut self, at: MonoTime, rows: f64) {
        self.held = None;
        self.given += rows;
        self.given_at = at;
    }

    /// So many of them were taken back.
    pub(super) fn takes_back(&mut self, rows: f64) {
        self.given = (self.given - rows).max(0.0);
    }

    /// Another is held back: whether it was for too long.
    pub(super) fn holds(&mut self, now: MonoTime, turn: &Turn) -> bool {
        let rounds = Duration::try_from_secs_f64(ROUNDS_MAX * turn.round.period);
        let rounds = rounds.unwrap_or_default();
        let of_late = self.held.filter(|(_, last)| now.saturating_since(*last) <= rounds);
        let since = of_late.map_or(now, |(since, _)| since);
        self.held = Some((since, now));
        now.saturating_since(since) <= rounds
    }
}

/// What is given in statements that are not large, while large ones go by turns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Small {
    per_s: f64,
    at: MonoTime,
}

/// It is the mean of about so many seconds.
const SMALL_MEMORY: f64 = 4.0;

impl Small {
    pub(super) fn per_s(&self, now: MonoTime) -> f64 {
        self.per_s * (-now.saturating_since(self.at).as_secs_f64() / SMALL_MEMORY).exp()
    }

    pub(super) fn gave(&mut self, now: MonoTime, rows: f64) {
        self.per_s = self.per_s(now) + rows / SMALL_MEMORY;
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn large(weight: f64, large_rows: f64, round: Option<Round>) -> Demand {
        Demand {
            weight,
            rows_per_s: 250.0,
            presses: true,
            large_rows,
            beside_per_s: 0.0,
            given_per_s: 0.0,
            owed_rows: 0.0,
            turn_rows: large_rows,
            small_per_s: 0.0,
            round,
        }
    }

    fn has_turn(turn: &Turn, ms: u64) -> bool {
        matches!(turn.whose(at(ms)), Whose::Own { .. })
    }

    /// The turns of all of these, named by their places.
    fn turns(now: MonoTime, all: &[Demand]) -> Vec<Option<Turn>> {
        let named: Vec<(u64, &Demand)> = (0..).zip(all).collect();
        let of = |own: (u64, &Demand)| {
            let others = named.iter().copied().filter(|(name, _)| *name != own.0);
            Turn::of(now, own, others)
        };
        named.iter().map(|own| of(*own)).collect()
    }

    #[test]
    fn one_after_the_other_has_its_turn_for_a_part_of_the_time_by_its_weight() {
        let round = Round { at: at(500), phase: 0.25, period: 4.0, per_s: 750.0 };
        let all = [large(2.0, 500.0, Some(round)), large(1.0, 400.0, None), large(1.0, 9.0, None)];
        let turns: Vec<Turn> = turns(at(500), &all).into_iter().flatten().collect();
        let mut had = [0; 3];
        for ms in (0..40_000).step_by(10) {
            let whose: Vec<usize> = (0..3).filter(|n| has_turn(&turns[*n], ms)).collect();
            assert_eq!(whose.len(), 1, "at {ms}: {whose:?}");
            had[whose[0]] += 1;
        }
        assert_eq!(had, [2_000, 1_000, 1_000]);
        assert_eq!(
            turns.iter().map(|turn| turn.next_rows()).collect::<Vec<_>>(),
            [400.0, 9.0, 500.0]
        );
        assert_eq!(turns[1].whose(at(500)), Whose::Others { begins_in: 1.0 });
    }

    #[test]
    fn a_round_has_time_for_a_large_statement_of_each() {
        let all = [large(1.0, 500.0, None), large(3.0, 500.0, None), large(1.0, 50.0, None)];
        let round = turns(at(0), &all)[0].as_ref().unwrap().round;
        assert!((round.period - 500.0 / (0.2 * 750.0)).abs() < 1e-9, "{round:?}");
    }

    #[test]
    fn nobody_has_turns_beside_who_has_no_large_statements() {
        let small = Demand { turn_rows: 0.0, ..large(1.0, 1.0, None) };
        let idle = Demand { presses: false, ..large(1.0, 500.0, None) };
        let all = [large(1.0, 500.0, None), small, idle];
        assert_eq!(turns(at(0), &all), [None, None, None]);
    }

    #[test]
    fn the_first_tells_where_the_round_is_and_the_next_once_it_has_gone() {
        let silent = large(1.0, 500.0, None);
        assert_eq!(turns(at(0), &[silent; 3]).iter().flatten().count(), 1, "nobody has told it");
        let of_first = Round { at: at(0), phase: 0.5, period: 2.0, per_s: 750.0 };
        let others = Round { at: at(0), phase: 0.0, period: 9.0, per_s: 750.0 };
        let told = [Some(of_first), Some(others), None].map(|round| large(1.0, 500.0, round));
        let rounds = |all: &[Demand]| -> Vec<Round> {
            turns(at(0), all).into_iter().flatten().map(|turn| turn.round).collect()
        };
        assert_eq!(rounds(&told), [of_first; 3]);
        assert_eq!(rounds(&told[1..]), [others; 2]);
    }

    #[test]
    fn a_round_changes_slowly_and_is_where_it_was() {
        let mut round = Round { at: at(0), phase: 0.0, period: 1.0, per_s: 750.0 };
        for ms in (0..10_000).step_by(250) {
            let moved = round.moved(at(ms), 2.0, 750.0);
            assert!((moved.phase - round.phase(at(ms))).abs() < 1e-9);
            assert!((1.0..=1.13).contains(&(moved.period / round.period)), "{moved:?}");
            round = moved;
        }
        assert!((1.98..2.0).contains(&round.period), "{round:?}");
    }

    #[test]
    fn who_is_given_nothing_within_two_rounds_goes_without_a_turn() {
        let round = Round { at: at(0), phase: 0.0, period: 1.0, per_s: 750.0 };
        let (from, to) = (0.5, 1.0);
        let member = Member { from, to, rows: 1.0 };
        let turn = Turn { round, members: vec![member], own: 0, small_per_s: 0.0, used_per_s: 0.0 };
        let mut held = Held::default();
        let let_go = (0..9_000).step_by(100).find(|ms| !held.holds(at(*ms), &turn));
        assert_eq!(let_go, Some(2_100));
        assert!(!held.holds(at(2_200), &turn), "and the next as well");
        held.has_turn(at(2_250), 1.0);
        assert!(!held.holds(at(2_250), &turn), "there was no room in it");
        held.gave(at(2_300), 1.0);
        assert!(held.holds(at(2_400), &turn));
        assert!(held.holds(at(60_000), &turn), "nobody has waited meanwhile");
    }
}
