//! Over how many threads the load is spread: as few as it needs.
//!
//! Theory. A thread that is woken for one packet pays for the wake-up, the switch of context and the
//! look for events with it; one that finds several connections ready pays once. So connections
//! belong together until their thread has enough to do, and apart from there on: what they would
//! wait for one another grows with 1/(1 - busy). A thread joins when another is `full`, and the last
//! one to join goes when the others would not be near that without it for [`CALM`] looks. Whoever
//! has more to do than others, and enough to make them wait, gives them connections; another thread
//! joins only where that is not enough. What a look sees behind one that moved connections is in part
//! of before they moved, so nothing follows from it: a law that answered it would answer twice, which
//! sends connections back and forth and has threads join that nobody needs.
//!
//! Only connections that relay move: those that wait cost nothing wherever they are.

use std::ops::Range;

use super::load::{CORE, Seen};

/// Percent of a core: who is as busy shares with others, unless somebody says otherwise. At this a packet waits for
/// one and a half others on the average, were they to come by chance (M/M/1).
pub(super) const FULL: u8 = 60;

/// For how many looks less must be enough: ten seconds.
const CALM: u32 = 100;

/// The others may be as busy as this when a thread goes: percent of what makes one full.
const EASY: u64 = 60;

/// From this on nobody knows how much more a thread would have to do.
const EXHAUSTED: u32 = CORE / 10 * 9;

/// How many connections move from a thread to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) from: usize,
    pub(super) to: Range<usize>,
    pub(super) count: u32,
}

/// How many threads relay, the first ones.
#[derive(Debug)]
pub(super) struct Spread {
    /// Of [`CORE`]: who is busier shares with others.
    full: u32,
    used: usize,
    calm: u32,
    /// Connections were told to move at the last look: what it sees is in part of before.
    settles: bool,
}

impl Spread {
    /// One thread, or all that there are if none is ever to have enough to do.
    pub(super) fn new(full: u8, threads: usize) -> Self {
        // No thread is seen at all of a core, and from `EXHAUSTED` on nobody knows.
        let full = (CORE / 100 * u32::from(full)).min(EXHAUSTED);
        Self { full, used: if full > 0 { 1 } else { threads.max(1) }, calm: 0, settles: false }
    }

    /// The threads that new connections go to: so many, from the first.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// What follows from what all threads had to do, in their order.
    pub(super) fn look(&mut self, seen: &[Seen]) -> Vec<Transfer> {
        if std::mem::take(&mut self.settles) {
            return Vec::new();
        }
        let before = self.used;
        self.resize(seen);
        let grows = self.used > before;
        let transfers = if grows { self.share(seen, before) } else { self.level(seen) };
        self.settles = self.used != before || !transfers.is_empty();
        transfers
    }

    /// Who is full gives those that have joined their part.
    fn share(&self, seen: &[Seen], before: usize) -> Vec<Transfer> {
        let to = before..self.used;
        let part = |seen: &Seen| part_of(seen.relaying, to.len(), self.used);
        let givers = seen.iter().enumerate().take(before);
        let givers = givers.filter(|(_, seen)| seen.busy >= self.enough());
        let transfers =
            givers.map(|(from, seen)| Transfer { from, to: to.clone(), count: part(seen) });
        transfers.filter(|transfer| transfer.count > 0).collect()
    }

    /// Where everybody goes on who is on a thread that is not used: to who has least to do.
    pub(super) fn home(&self, seen: &[Seen]) -> Range<usize> {
        let ours = seen.iter().take(self.used).enumerate();
        let home = ours.min_by_key(|(_, seen)| seen.busy).map_or(0, |(index, _)| index);
        home..home + 1
    }

    /// The busiest that can gives to the least busy, the next to the next.
    fn level(&self, seen: &[Seen]) -> Vec<Transfer> {
        let ours = seen.get(..self.used).unwrap_or(seen);
        let busy = |index: &usize| ours.get(*index).map_or(0, |seen| seen.busy);
        let mut by_load: Vec<usize> = (0..ours.len()).collect();
        by_load.sort_by_key(busy);
        let relaying = |index: &usize| ours.get(*index).map_or(0, |seen| seen.relaying);
        let can_give = |index: &&usize| busy(index) >= self.enough() && relaying(index) > 1;
        let mut transfers = Vec::new();
        for (&to, from) in by_load.iter().zip(by_load.iter().rev().filter(can_give)) {
            let (more, less) = (busy(from), busy(&to));
            if differ(more, less) {
                let count = half_of_difference(relaying(from), more, less);
                transfers.push(Transfer { from: *from, to: to..to + 1, count });
            }
        }
        transfers.retain(|transfer| transfer.count > 0);
        transfers
    }

    /// What makes connections of one thread wait for one another.
    fn enough(&self) -> u32 {
        if self.full > 0 { self.full } else { CORE / 100 * u32::from(FULL) }
    }

    fn resize(&mut self, seen: &[Seen]) {
        if self.full == 0 {
            return;
        }
        let total: u64 = seen.iter().map(|seen| u64::from(seen.busy)).sum();
        let can_share = |seen: &&Seen| seen.busy >= self.full && seen.relaying > 1;
        let ours = seen.iter().take(self.used);
        let most = ours.filter(can_share).max_by_key(|seen| seen.busy);
        let fewer = self.used.saturating_sub(1);
        let others = u64::try_from(fewer).unwrap_or(u64::MAX).saturating_mul(self.full.into());
        let is_easy = fewer > 0 && total * 100 < others.saturating_mul(EASY);
        self.calm = if is_easy { self.calm.saturating_add(1) } else { 0 };
        if let Some(most) = most.filter(|most| !self.has_room(seen, most)) {
            let more =
                if most.busy >= EXHAUSTED { self.used.saturating_mul(4) } else { self.used + 1 };
            self.used = more.min(seen.len()).max(1);
        } else if self.calm >= CALM {
            self.used = fewer;
            self.calm = 0;
        }
    }

    /// Whether it is enough that whoever has so much to do gives some of it to others who are used.
    fn has_room(&self, seen: &[Seen], most: &Seen) -> bool {
        let ours = seen.get(..self.used).unwrap_or(seen);
        let least = ours.iter().map(|seen| seen.busy).min().unwrap_or(most.busy);
        let total: u64 = ours.iter().map(|seen| u64::from(seen.busy)).sum();
        let full = u64::from(self.full).saturating_mul(u64::try_from(ours.len()).unwrap_or(0));
        let gives = half_of_difference(most.relaying, most.busy, least) > 0;
        gives && differ(most.busy, least) && total < full
    }
}

/// Whether one has enough more to do than the other that connections move.
fn differ(more: u32, less: u32) -> bool {
    more.saturating_sub(less) > more / 4
}

/// How many of the connections that have `more` to do are to do `less` elsewhere. Rounded, a half down: who has
/// one thing to do keeps it, and what was given is not given back.
fn half_of_difference(relaying: u32, more: u32, less: u32) -> u32 {
    let whole = u64::from(relaying).saturating_mul(more.saturating_sub(less).into());
    let of = u64::from(more).saturating_mul(2);
    let rounded = whole.saturating_mul(2).saturating_add(of.saturating_sub(1));
    let part = rounded.checked_div(of.saturating_mul(2)).unwrap_or_default();
    u32::try_from(part).unwrap_or(u32::MAX)
}

/// Rounded down: who has one thing to do keeps it.
fn part_of(number: u32, part: usize, of: usize) -> u32 {
    let wide = |number: usize| u128::try_from(number).unwrap_or_default();
    let part = u128::from(number).saturating_mul(wide(part)).checked_div(wide(of));
    u32::try_from(part.unwrap_or_default()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hundredths of a core, and connections.
    fn seen(all: &[(u32, u32)]) -> Vec<Seen> {
        all.iter().map(|(busy, of)| Seen { busy: CORE / 100 * busy, relaying: *of }).collect()
    }

    #[test]
    fn one_thread_relays_until_it_is_full_and_then_gives_half_of_its_connections_to_another() {
        let mut spread = Spread::new(FULL, 4);
        assert!(spread.look(&seen(&[(59, 64), (0, 0), (0, 0), (0, 0)])).is_empty());
        assert_eq!(spread.used(), 1);
        let transfers = spread.look(&seen(&[(60, 64), (0, 0), (0, 0), (0, 0)]));
        assert_eq!(transfers, [Transfer { from: 0, to: 1..2, count: 32 }]);
        assert_eq!(spread.used(), 2);
        assert!(spread.look(&seen(&[(31, 32), (29, 32), (0, 0), (0, 0)])).is_empty());
    }

    #[test]
    fn threads_that_can_do_no_more_become_four_times_as_many_and_share_with_all_of_them() {
        let mut spread = Spread::new(FULL, 10);
        let transfers = spread.look(&[&seen(&[(100, 90)])[..], &[Seen::default(); 9]].concat());
        assert_eq!(spread.used(), 4);
        assert_eq!(transfers, [Transfer { from: 0, to: 1..4, count: 67 }]);
        let as_before = [&seen(&[(100, 90)])[..], &[Seen::default(); 9]].concat();
        assert!(spread.look(&as_before).is_empty(), "it has not seen them move");
        assert_eq!(spread.used(), 4);
        let four = seen(&[(98, 23), (97, 22), (20, 22), (95, 1)]);
        let transfers = spread.look(&[&four[..], &[Seen::default(); 6]].concat());
        assert_eq!(spread.used(), 10, "there are no more");
        let moves = [
            Transfer { from: 0, to: 4..10, count: 13 },
            Transfer { from: 1, to: 4..10, count: 13 },
        ];
        assert_eq!(transfers, moves);
    }

    #[test]
    fn one_connection_that_fills_a_thread_keeps_it_and_the_others_leave() {
        let mut spread = Spread::new(FULL, 2);
        assert!(spread.look(&seen(&[(100, 1), (0, 0)])).is_empty());
        assert_eq!(spread.used(), 1, "it cannot share");
        let mut on_first = 5;
        for _ in 0..8 {
            let moved = spread.look(&seen(&[(100, on_first), (0, 5 - on_first)]));
            on_first -= moved.iter().map(|transfer| transfer.count).sum::<u32>();
        }
        assert_eq!(on_first, 1);
    }

    #[test]
    fn a_thread_goes_when_the_others_are_enough_for_ten_seconds() {
        let mut spread = Spread::new(FULL, 2);
        spread.look(&seen(&[(70, 8), (0, 0)]));
        for _ in 1..CALM {
            assert!(spread.look(&seen(&[(10, 4), (20, 4)])).is_empty());
        }
        // Two thirds of what is easy for one.
        spread.look(&seen(&[(30, 4), (30, 4)]));
        for _ in 1..CALM {
            assert!(spread.look(&seen(&[(10, 4), (20, 4)])).is_empty());
        }
        assert_eq!(spread.used(), 2);
        assert!(spread.look(&seen(&[(10, 4), (20, 4)])).is_empty());
        assert_eq!(spread.used(), 1);
        assert_eq!(spread.home(&seen(&[(10, 4), (2, 4)])), 0..1);
    }

    #[test]
    fn all_threads_relay_from_the_start_where_none_is_to_be_full() {
        let mut spread = Spread::new(0, 3);
        assert_eq!(spread.used(), 3);
        for _ in 0..2 * CALM {
            assert!(spread.look(&seen(&[(0, 0); 3])).is_empty());
        }
        assert_eq!(spread.used(), 3);
        let transfers = spread.look(&seen(&[(90, 10), (10, 10), (40, 10)]));
        assert_eq!(transfers, [Transfer { from: 0, to: 1..2, count: 4 }]);
    }

    /// Whatever the threads had to do: nobody moves to where it is or to a thread that is not used.
    #[test]
    fn connections_move_to_used_threads_only() {
        let mut state = 7_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut spread = Spread::new(FULL, 7);
        for _ in 0..20_000 {
            let all: Vec<_> = (0..7).map(|_| (random() % 101, random() % 5)).collect();
            for Transfer { from, to, count } in spread.look(&seen(&all)) {
                assert!(!to.contains(&from) && !to.is_empty() && count > 0, "{all:?}");
                assert!(to.end <= spread.used(), "{all:?}");
            }
            assert!((1..=7).contains(&spread.used()));
        }
    }

    /// Connections that relay all the time, each with what it asks of a core in hundredths, and where it is.
    struct Model {
        spread: Spread,
        all: Vec<(u32, usize)>,
        /// How much of the time that a thread's CPU time is told of was before the last look: hundredths.
        late: u32,
        /// What the threads had to do before the last look, and since.
        busy: [Vec<u32>; 2],
        relayed: Vec<u32>,
        moves: usize,
    }

    impl Model {
        fn new(threads: usize, late: u32, all: Vec<(u32, usize)>) -> Self {
            let spread = Spread::new(FULL, threads);
            let mut model = Self {
                spread,
                all,
                late,
                busy: [vec![0; threads], vec![0; threads]],
                relayed: Vec::new(),
                moves: 0,
            };
            model.busy = [model.busy(), model.busy()];
            model.relayed = model.each(|_| 1);
            model
        }

        fn each(&self, what: impl Fn(u32) -> u32) -> Vec<u32> {
            let of = |on| self.all.iter().filter(move |(_, at)| *at == on);
            let all = 0..self.busy[0].len();
            all.map(|on| of(on).map(|(asks, _)| what(*asks)).sum()).collect()
        }

        fn busy(&self) -> Vec<u32> {
            self.each(|asks| asks).into_iter().map(|busy| busy.min(100)).collect()
        }

        fn look(&mut self) {
            let seen = |on: usize| {
                let [before, since] = [self.busy[0][on], self.busy[1][on]];
                let busy = before * self.late + since * (100 - self.late);
                Seen { busy: CORE / 10_000 * busy, relaying: self.relayed[on] }
            };
            let all: Vec<_> = (0..self.relayed.len()).map(seen).collect();
            let mut transfers = self.spread.look(&all);
            // Who moves was counted where it was.
            self.relayed = self.each(|_| 1);
            for (_, on) in &mut self.all {
                let told = transfers.iter_mut().find(|told| told.from == *on && told.count > 0);
                if let Some(Transfer { to, count, .. }) = told {
                    *on = to.start + usize::try_from(*count).unwrap() % to.len();
                    *count -= 1;
                    self.moves += 1;
                }
            }
            self.busy = [std::mem::take(&mut self.busy[1]), self.busy()];
        }
    }

    #[test]
    fn no_more_threads_join_than_the_load_needs_and_nobody_moves_for_ever() {
        let like = |count: u32, asks: u32| (0..count).map(|_| (asks, 0)).collect();
        let uneven = (0..40).map(|n| (1 + n * 7 % 13, 0)).collect();
        let loads: [(Vec<_>, usize); 5] =
            [(like(48, 2), 4), (like(64, 5), 6), (like(8, 10), 2), (like(8, 20), 4), (uneven, 6)];
        for (all, enough) in loads {
            for late in [0, 20, 50, 80, 100] {
                let mut model = Model::new(64, late, all.clone());
                for _ in 0..40 {
                    model.look();
                    assert!(model.spread.used() <= enough, "{late} {all:?}");
                }
                assert!(model.busy[1].iter().all(|busy| *busy < 60), "{late} {:?}", model.busy);
                let moves = model.moves;
                (0..40).for_each(|_| model.look());
                assert_eq!(model.moves, moves, "{late} {all:?}");
            }
        }
    }

    #[test]
    fn a_burst_has_every_thread_it_needs_within_six_looks() {
        for late in [0, 50, 100] {
            let mut model = Model::new(64, late, (0..1_000).map(|_| (5, 0)).collect());
            (0..6).for_each(|_| model.look());
            assert_eq!(model.spread.used(), 64);
        }
    }

    #[test]
    fn two_that_fill_one_thread_part_also_where_the_other_has_something_to_do() {
        let mut spread = Spread::new(0, 2);
        let transfers = spread.look(&seen(&[(100, 2), (10, 1)]));
        assert_eq!(transfers, [Transfer { from: 0, to: 1..2, count: 1 }]);
        // A half of one is not given back.
        assert!(spread.look(&seen(&[(100, 2), (10, 1)])).is_empty());
        assert!(spread.look(&seen(&[(40, 1), (80, 2)])).is_empty());
    }

    #[test]
    fn connections_that_are_all_on_one_thread_go_to_those_that_are_used_before_another_joins() {
        let mut spread = Spread::new(FULL, 64);
        spread.look(&[&seen(&[(100, 40)])[..], &[Seen::default(); 63]].concat());
        let uneven = [&seen(&[(100, 30), (5, 1), (5, 1), (5, 1)])[..], &[Seen::default(); 60]];
        spread.look(&uneven.concat());
        let transfers = spread.look(&uneven.concat());
        assert_eq!(transfers, [Transfer { from: 0, to: 1..2, count: 14 }]);
        assert_eq!(spread.used(), 4);
    }

    #[test]
    fn who_is_busy_gives_beside_threads_that_cannot() {
        let mut spread = Spread::new(0, 5);
        let transfers = spread.look(&seen(&[(100, 1), (0, 0), (100, 1), (0, 0), (90, 20)]));
        assert_eq!(transfers, [Transfer { from: 4, to: 1..2, count: 10 }]);
    }

    #[test]
    fn a_thread_that_can_do_no_more_is_full_whatever_was_asked_for() {
        let mut spread = Spread::new(100, 2);
        assert!(spread.look(&seen(&[(89, 20), (0, 0)])).is_empty());
        assert!(!spread.look(&seen(&[(99, 20), (0, 0)])).is_empty());
        assert_eq!(spread.used(), 2);
    }

    #[test]
    fn a_thread_joins_where_those_that_are_used_have_no_room_for_one_of_two() {
        let mut spread = Spread::new(FULL, 64);
        spread.look(&[&seen(&[(100, 90)])[..], &[Seen::default(); 63]].concat());
        let all = [&seen(&[(80, 2), (50, 4), (50, 4), (50, 4)])[..], &[Seen::default(); 60]];
        assert!(spread.look(&all.concat()).is_empty(), "it settles");
        assert!(spread.look(&all.concat()).is_empty());
        assert_eq!(spread.used(), 5);
        assert!(spread.look(&all.concat()).is_empty(), "it settles");
        assert_eq!(spread.look(&all.concat()), [Transfer { from: 0, to: 4..5, count: 1 }]);
        assert_eq!(spread.used(), 5);
    }
}
