//! How long a large statement waits for those who are before it and away for a moment.
//!
//! Theory. Turns are shared by those who wait ([`crate::turns`]), and thirty clients that write a
//! row each do not wait while all of them have their answers under way. A statement of 10,000 rows
//! behind them in line meets such a moment soon, takes the window for seconds, and the next meets
//! one as soon as the gate opens again: the thirty have a tenth of their share. So a large one is
//! *patient*: while somebody who is away for a moment has its turn first, it goes only when it has
//! been at the head of the line for longer than
//!
//! ```text
//!     OWN · what it takes itself  +  what the others were given meanwhile / (USED · rate)
//! ```
//!
//! Who uses the room has it until its turn is over. Who asks for little, from far away, delays a
//! large statement by a part of what that takes, so that the replica stays in use. Beside one that
//! alone takes half of the threshold, little is as good as shut a gate: there the others come first
//! also if they use less.

use std::time::Duration;

use crate::{MonoTime, Ticket};

/// Of one gate: of whoever is at its head.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    whose: Option<Ticket>,
    /// How long the gate has been open since it was at the head first.
    held: Duration,
    /// What was given to others since, in rows.
    given: f64,
    seen_at: Option<MonoTime>,
}

/// What patience depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// What the statement is expected to cost, in rows.
    pub(crate) cost: f64,
    /// What replicas apply, in rows a second.
    pub(crate) rate: f64,
    /// The threshold of the lag.
    pub(crate) threshold: Duration,
}

impl Size {
    /// Whether a statement is large enough to wait for anybody.
    pub(crate) fn is_large(&self) -> bool {
        self.patience(0.0) >= TICK
    }

    /// How long it waits if others are given so many rows meanwhile.
    fn patience(&self, given: f64) -> Duration {
        let takes = self.cost / self.rate;
        let is_oversize = takes >= self.threshold.as_secs_f64() / 2.0;
        let used = if is_oversize { USED_BESIDE_OVERSIZE } else { USED };
        let secs = OWN * takes + given / (used * self.rate);
        Duration::try_from_secs_f64(secs).unwrap_or_default()
    }
}

impl Patience {
    /// Until when this head leaves the room to others; `None`: it goes. There is room, and the
    /// gate is open since `open_since`.
    pub(crate) fn holds(
        &mut self,
        (now, open_since): (MonoTime, MonoTime),
        head: Ticket,
        size: &Size,
    ) -> Option<MonoTime> {
        if self.whose != Some(head) {
            *self = Self { whose: Some(head), ..Self::default() };
        }
        if let Some(seen_at) = self.seen_at.replace(now) {
            let open = now.saturating_since(seen_at.max(open_since));
            self.held = self.held.saturating_add(open);
        }
        let left = size.patience(self.given).saturating_sub(self.held);
        (left >= TICK).then(|| now.saturating_add(left))
    }

    /// Others were given so many rows.
    pub(crate) fn gave(&mut self, rows: f64) {
        self.given += rows;
    }
}

/// What a large statement leaves to others, of the time that it takes itself.
const OWN: f64 = 0.02;

/// The part of the rate that others use for whom it waits on.
const USED: f64 = 0.97;

/// The same of a statement that takes half of the threshold or more.
const USED_BESIDE_OVERSIZE: f64 = 0.6;

/// No two looks are closer.
const TICK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn size(cost: f64) -> Size {
        Size { cost, rate: 1_000.0, threshold: Duration::from_secs(1) }
    }

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    const HEAD: Ticket = Ticket(1);

    #[test]
    fn a_small_statement_waits_for_nobody() {
        assert!(!size(49.0).is_large());
        assert!(size(50.0).is_large());
        let unknown = Size { rate: 0.0, ..size(50.0) };
        assert!(!unknown.is_large(), "of no rate nothing is known");
    }

    #[test]
    fn a_large_one_waits_for_a_part_of_what_it_takes() {
        let (mut patience, large) = (Patience::default(), size(10_000.0));
        let holds = |patience: &mut Patience, ms| patience.holds((at(ms), at(0)), HEAD, &large);
        assert_eq!(holds(&mut patience, 100), Some(at(300)));
        assert_eq!(holds(&mut patience, 250), Some(at(300)));
        assert_eq!(holds(&mut patience, 300), None);
        let next = patience.holds((at(300), at(0)), Ticket(2), &large);
        assert_eq!(next, Some(at(500)), "the next begins anew");
    }

    #[test]
    fn it_waits_on_for_those_who_use_the_room() {
        // Row by row, one in a millisecond and one in two.
        for (cost, every_ms, held_ms) in
            [(10_000.0, 1, None), (10_000.0, 2, Some(1_200)), (400.0, 2, Some(16))]
        {
            let mut patience = Patience::default();
            let ended = (0..9_000_u64).find(|ms| {
                if ms % every_ms == 0 {
                    patience.gave(1.0);
                }
                patience.holds((at(*ms), at(0)), HEAD, &size(cost)).is_none()
            });
            let near = match (ended, held_ms) {
                (None, None) => true,
                (Some(ended), Some(held)) => (held - held / 4..=held + held / 4).contains(&ended),
                _ => false,
            };
            assert!(near, "{cost} rows, one every {every_ms} ms: until {ended:?}");
        }
    }

    #[test]
    fn a_shut_gate_takes_no_patience() {
        let (mut patience, large) = (Patience::default(), size(10_000.0));
        patience.holds((at(0), at(0)), HEAD, &large);
        let opened = patience.holds((at(9_050), at(9_000)), HEAD, &large);
        assert_eq!(opened, Some(at(9_200)));
    }
}
