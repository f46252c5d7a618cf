//! Records on their way from a relaying thread to the one that counts, without a lock.
//!
//! A bounded queue: whoever puts takes a turn, and with it a place; a record is words that are written
//! one by one, and the number of the turn, stored behind them, publishes them all. So whoever puts and
//! whoever takes never wait for one another, and whoever puts only writes to a place: to look at it
//! first would be to wait for the cache of whoever has read it. Whether there is room is told by how
//! many have been taken, which changes seldom.

use std::sync::atomic::{AtomicU64, Ordering};

use insights::RECORD_WORDS;

/// Records that may be on their way from one thread: 80 ms at 100,000 statements a second.
const PLACES: u64 = 8_192;

/// From so many on, whoever counts is woken.
const HALF: u64 = PLACES / 2;

/// The queue of one thread. Others may share it.
#[derive(Debug)]
pub(super) struct Ring {
    places: Box<[Place]>,
    /// The turn of whoever puts next.
    put: Apart,
    /// The turn of whoever takes next. It may lag behind.
    taken: Apart,
}

/// A number in a cache line of its own: one thread changes it, and another looks at its neighbour.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

#[derive(Debug, Default)]
struct Place {
    /// The turn after that in which it was filled; 0 if it never was.
    filled: AtomicU64,
    words: [AtomicU64; RECORD_WORDS],
}

/// So many places are free again at once.
const TAKEN_TOGETHER: u64 = 64;

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is on its way.
    Done,
    /// It is, and whoever counts should come.
    HalfFull,
    /// There is no place for it.
    Full,
}

impl Default for Ring {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| Place::default()).collect();
        Self { places, put: Apart::default(), taken: Apart::default() }
    }
}

impl Ring {
    #[inline]
    pub(super) fn put(&self, record: &[u64; RECORD_WORDS]) -> Put {
        let mut turn = self.put.0.load(Ordering::Relaxed);
        loop {
            // Pairs with the store in `take_all`: what was in the place has been read. A turn that
            // others have had meanwhile looks late, and is not won.
            let waiting = turn.saturating_sub(self.taken.0.load(Ordering::Acquire));
            let Some(place) = self.place(turn).filter(|_| waiting < PLACES) else {
                return Put::Full;
            };
            let next = turn.wrapping_add(1);
            let won =
                self.put.0.compare_exchange_weak(turn, next, Ordering::Relaxed, Ordering::Relaxed);
            match won {
                Ok(_) => {
                    for (to, word) in place.words.iter().zip(record) {
                        to.store(*word, Ordering::Relaxed);
                    }
                    place.filled.store(next, Ordering::Release);
                    return if waiting.saturating_add(1) == HALF {
                        Put::HalfFull
                    } else {
                        Put::Done
                    };
                }
                Err(is) => turn = is,
            }
        }
    }

    /// Takes what is on its way now, the oldest first. Whoever takes does it alone.
    pub(super) fn take_all(&self, mut take: impl FnMut(&[u64; RECORD_WORDS])) {
        let mut turn = self.taken.0.load(Ordering::Relaxed);
        // What comes meanwhile is left for the next time, so this ends.
        let end = self.put.0.load(Ordering::Relaxed);
        while turn < end
            && let Some(place) = self.place(turn)
            && place.filled.load(Ordering::Acquire) == turn.wrapping_add(1)
        {
            take(&place.words.each_ref().map(|word| word.load(Ordering::Relaxed)));
            turn = turn.wrapping_add(1);
            if turn.is_multiple_of(TAKEN_TOGETHER) {
                self.taken.0.store(turn, Ordering::Release);
            }
        }
        self.taken.0.store(turn, Ordering::Release);
    }

    /// How many records are on their way.
    #[cfg(test)]
    pub(super) fn len(&self) -> u64 {
        let put = self.put.0.load(Ordering::Relaxed);
        put.saturating_sub(self.taken.0.load(Ordering::Relaxed))
    }

    #[inline]
    fn place(&self, turn: u64) -> Option<&Place> {
        self.places.get(usize::try_from(turn.checked_rem(PLACES)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> [u64; RECORD_WORDS] {
        [n; RECORD_WORDS]
    }

    #[test]
    fn records_come_out_in_order_and_one_too_many_is_turned_away() {
        let ring = Ring::default();
        for n in 0..PLACES {
            let expected = if n + 1 == HALF { Put::HalfFull } else { Put::Done };
            assert_eq!(ring.put(&record(n)), expected, "{n}");
        }
        assert_eq!(ring.put(&record(0)), Put::Full);
        // There is room for those who come meanwhile before all have been taken.
        let mut taken = 0;
        ring.take_all(|is| {
            assert_eq!(*is, record(taken));
            taken += 1;
            let expected = if taken <= TAKEN_TOGETHER { Put::Full } else { Put::Done };
            assert_eq!(ring.put(&record(PLACES - 1 + taken - TAKEN_TOGETHER.min(taken))), expected);
        });
        assert_eq!((taken, ring.len()), (PLACES, PLACES - TAKEN_TOGETHER));
        ring.take_all(|is| {
            assert_eq!(*is, record(taken));
            taken += 1;
        });
        assert_eq!((taken, ring.len()), (2 * PLACES - TAKEN_TOGETHER, 0));
        ring.take_all(|_| panic!("nothing is left"));
    }

    fn put_at_last(ring: &Ring, n: u64) {
        while ring.put(&record(n)) == Put::Full {
            std::thread::yield_now();
        }
    }

    #[test]
    fn several_threads_put_and_one_takes_and_no_record_is_lost_or_torn() {
        const EACH: u64 = 50_000;
        let ring = Ring::default();
        let mut sum = 0;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (1..=EACH).for_each(|n| put_at_last(&ring, n)));
            }
            let mut taken = 0;
            while taken < 3 * EACH {
                let before = taken;
                ring.take_all(|record| {
                    assert!(record.iter().all(|word| *word == record[0]), "{record:?}");
                    sum += record[0];
                    taken += 1;
                });
                if taken == before {
                    std::thread::yield_now();
                }
            }
        });
        assert_eq!(sum, 3 * EACH * (EACH + 1) / 2);
    }
}
