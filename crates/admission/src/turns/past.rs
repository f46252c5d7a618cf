//! Which turn somebody would have that had begun to wait earlier.
//!
//! Theory. Who is told to come back, and does, has waited since it first asked, elsewhere. So it
//! takes its turn as of then: behind what the virtual time was, and among those who came then. That
//! is lent for one turn, and given back with it: what follows is charged as if it had come now. Else
//! whoever is refused at its deadline begins anew each time it comes back, and where many take
//! turns, and none waits for long enough, some are served at once and some never.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Place, Tag, Turns, charge_of};
use crate::MonoTime;

/// No two samples are closer.
const GRAIN: Duration = Duration::from_millis(500);

/// About a minute, some 5 KiB. Who has waited for longer goes behind those who came a minute ago.
const SAMPLES_MAX: usize = 128;

/// Among fewer the order says little.
pub(super) const WAITING_MIN: usize = 8;

/// Where those stood who began to wait at some times, the newest last.
#[derive(Debug, Default)]
pub(super) struct Past {
    samples: VecDeque<(MonoTime, Place)>,
}

impl Past {
    /// Somebody begins to wait here now, and so many wait.
    pub(super) fn note(&mut self, now: MonoTime, here: Place, waiting: usize) {
        if waiting < WAITING_MIN {
            self.samples.clear();
            return;
        }
        let last = self.samples.back().map(|(at, _)| *at);
        if last.is_some_and(|at| now < at.saturating_add(GRAIN)) {
            return;
        }
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((now, here));
    }

    /// Where somebody stood who began at this time, if now it would be here.
    pub(super) fn at(&self, since: MonoTime, now: MonoTime, here: Place) -> Place {
        let after = self.samples.partition_point(|(at, _)| *at <= since);
        let next = self.samples.get(after).copied().unwrap_or((now, here));
        let Some(before) = after.checked_sub(1).and_then(|n| self.samples.get(n)) else {
            return next.1;
        };
        between(*before, next, since)
    }
}

fn between((from, first): (MonoTime, Place), (to, last): (MonoTime, Place), at: MonoTime) -> Place {
    let span = to.saturating_since(from).as_nanos();
    let part = |whole: Tag| {
        let passed = at.saturating_since(from).as_nanos().min(span);
        whole.saturating_mul(passed).checked_div(span).unwrap_or(whole)
    };
    let arrived = u128::from(last.arrival.saturating_sub(first.arrival));
    Place {
        win: first.win.saturating_add(part(last.win.saturating_sub(first.win))),
        arrival: first.arrival.saturating_add(u64::try_from(part(arrived)).unwrap_or(u64::MAX)),
    }
}

impl<K: Copy + Ord> Turns<K> {
    /// By how much whoever does not wait has had more than its turn, in rows at a weight of one, if
    /// its next costs so much.
    pub(crate) fn owes(&self, who: K, cost: f64) -> f64 {
        let new = self.now.saturating_add(u128::from(charge_of(cost, 1)));
        let tag = self.absent.get(&who).map_or(0, |absence| absence.tag);
        let micros = u64::try_from(tag.saturating_sub(new)).unwrap_or(u64::MAX);
        Duration::from_micros(micros).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    #[test]
    fn who_began_between_two_samples_stands_between_them() {
        let mut past = Past::default();
        let place = |win, arrival| Place { win, arrival };
        for n in 0..4_u64 {
            past.note(at(1_000 * n), place(Tag::from(100 * n), 10 * n), 50);
            past.note(at(1_000 * n + 1), place(9_999, 9_999), 50);
        }
        let here = place(400, 40);
        let of = |ms| past.at(at(ms), at(4_000), here);
        assert_eq!(of(1_000), place(100, 10));
        assert_eq!(of(2_500), place(250, 25));
        assert_eq!(of(3_500), place(350, 35));
        assert_eq!(of(4_000), here);
        past.note(at(5_000), here, 7);
        assert_eq!(past.at(at(0), at(5_000), here), here, "the line was gone");
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_began_before_goes_behind_the_oldest() {
        let mut past = Past::default();
        for n in 0..1_000 {
            past.note(at(500 * n), Place { win: Tag::from(n), arrival: n }, 8);
        }
        assert_eq!(past.samples.len(), SAMPLES_MAX);
        let here = Place { win: 1_000, arrival: 1_000 };
        assert_eq!(past.at(at(0), at(500_000), here), Place { win: 872, arrival: 872 });
    }
}
