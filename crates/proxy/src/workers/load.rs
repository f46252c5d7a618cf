//! What one relaying thread has to do, and what its connections are told of it.

use std::future::Future as _;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

/// How often the threads are looked at: their share of a core is told over as long.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// All of a core, where parts of one are told.
pub(super) const CORE: u32 = 1_000_000;

/// What else a thread does takes less than this.
const RESTING: u32 = CORE / 100;

/// One thread, as its connections, the accepting tasks and whoever spreads the load see it.
#[derive(Debug, Default)]
pub(crate) struct Load {
    index: usize,
    connections: AtomicUsize,
    /// Of these, who has not logged in.
    arriving: AtomicUsize,
    /// Its CPU time of late: of [`CORE`].
    busy: AtomicU32,
    /// Looks so far.
    look: AtomicU32,
    /// Connections that have relayed something since the last look.
    relaying: AtomicU32,
    /// Of how many threads those are that connections are to move to, the first of them, and how many are to:
    /// 16, 16 and 32 bits.
    moving: AtomicU64,
    /// A connection has relayed something.
    stirred: Notify,
}

impl Load {
    pub(super) fn of(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    /// Its number, from zero.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Connections that live on it, or are on their way to it.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Of these, who has not logged in.
    pub(super) fn arriving(&self) -> usize {
        self.arriving.load(Ordering::Relaxed)
    }

    /// Counts one more, until that is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Counted {
        Counted::among(self.clone(), |load| &load.connections)
    }

    /// Counts one more that logs in, until that is dropped.
    pub(super) fn arrive(self: &Arc<Self>) -> Counted {
        Counted::among(self.clone(), |load| &load.arriving)
    }

    /// Resolves when something is relayed.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    /// Whether nothing has been relayed since this was asked last, and next to nothing done. Nothing is told to have
    /// been done then.
    pub(super) fn rests(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let has_stirred = pin!(self.stirred.notified()).poll(&mut cx).is_ready();
        let rests = !has_stirred && self.busy.load(Ordering::Relaxed) < RESTING;
        if rests {
            self.busy.store(0, Ordering::Relaxed);
        }
        rests
    }

    /// Looks so far.
    #[inline]
    pub(super) fn look(&self) -> u32 {
        self.look.load(Ordering::Relaxed)
    }

    /// A connection relays, and has not said so since the last look. Where it is to move, if it is.
    pub(super) fn report(&self) -> Option<usize> {
        self.relaying.fetch_add(1, Ordering::Relaxed);
        self.stirred.notify_one();
        let one_less = |moving: u64| (moving & COUNT != 0).then(|| moving - 1);
        let moving =
            self.moving.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok()?;
        let (among, first) = (moving >> AMONG_SHIFT, moving >> COUNT_BITS & FIRST);
        usize::try_from(first + (moving & COUNT) % among.max(1)).ok()
    }

    /// What it had to do since the last look.
    pub(super) fn take(&self) -> Seen {
        let relaying = self.relaying.swap(0, Ordering::Relaxed);
        let is_used = self.connections() > 0;
        let busy = if is_used { self.busy.load(Ordering::Relaxed) } else { 0 };
        Seen { busy, relaying }
    }

    /// So many of its connections move to these threads in turns: those that relay something next.
    pub(super) fn tell(&self, count: u32, to: &Range<usize>) {
        let bits = |number: usize| u64::from(u16::try_from(number).unwrap_or(u16::MAX));
        let (among, first) = (bits(to.len()), bits(to.start));
        let moving = among << AMONG_SHIFT | first << COUNT_BITS | u64::from(count);
        self.moving.store(moving, Ordering::Relaxed);
        self.look.fetch_add(1, Ordering::Relaxed);
    }
}

/// One that is counted, also when its task panics.
#[derive(Debug)]
pub(super) struct Counted {
    load: Arc<Load>,
    among: fn(&Load) -> &AtomicUsize,
}

impl Counted {
    fn among(load: Arc<Load>, among: fn(&Load) -> &AtomicUsize) -> Self {
        among(&load).fetch_add(1, Ordering::Relaxed);
        Self { load, among }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.among)(&self.load).fetch_sub(1, Ordering::Relaxed);
    }
}

const COUNT_BITS: u32 = 32;
const COUNT: u64 = 0xffff_ffff;
const FIRST: u64 = 0xffff;
const AMONG_SHIFT: u32 = 48;

/// What a thread had to do between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Of [`CORE`].
    pub(super) busy: u32,
    /// Connections that relayed.
    pub(super) relaying: u32,
}

/// Measures the CPU time of the thread that it was made on, and is asked by no other.
pub(super) struct Meter {
    at: Instant,
    cpu: Duration,
}

impl Meter {
    pub(super) fn start() -> Self {
        Self { at: Instant::now(), cpu: thread_cpu() }
    }

    /// Tells the load what was used since it was told last, if that is long enough ago.
    pub(super) fn tell(&mut self, load: &Load) {
        let now = Self::start();
        let wall = now.at.saturating_duration_since(self.at);
        if wall < LOOK / 2 {
            return;
        }
        let used = now.cpu.saturating_sub(self.cpu).as_nanos().saturating_mul(CORE.into());
        let busy = used.checked_div(wall.as_nanos()).and_then(|busy| u32::try_from(busy).ok());
        load.busy.store(busy.unwrap_or(CORE), Ordering::Relaxed);
        *self = now;
    }
}

/// See clock_gettime(2), CLOCK_THREAD_CPUTIME_ID.
fn thread_cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(used.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(used.tv_sec).unwrap_or_default(), nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_move_as_were_told_to_and_whoever_relays_is_counted() {
        let load = Load::of(2);
        assert_eq!((load.index(), load.report()), (2, None));
        load.tell(2, &(5..6));
        assert_eq!(load.take(), Seen { busy: 0, relaying: 1 });
        assert_eq!([load.report(), load.report(), load.report()], [Some(5), Some(5), None]);
        load.tell(5, &(1..4));
        let mut moved = [0; 4];
        while let Some(to) = load.report() {
            moved[to] += 1;
        }
        moved[1..].sort_unstable();
        assert_eq!(moved, [0, 1, 2, 2]);
        load.tell(0, &(0..0));
        assert_eq!((load.report(), load.look()), (None, 3));
        assert_eq!(load.take().relaying, 10);
    }

    #[test]
    fn a_thread_without_connections_has_nothing_to_do_whatever_it_had() {
        let load = Arc::<Load>::default();
        let mut meter = Meter::start();
        let counted = load.enter();
        meter.at = meter.at.checked_sub(LOOK).unwrap_or(meter.at);
        let until = thread_cpu() + LOOK / 10;
        while thread_cpu() < until {
            std::hint::spin_loop();
        }
        meter.tell(&load);
        let busy = load.take().busy;
        assert!(busy > 0 && busy <= CORE, "{busy}");
        drop(counted);
        assert_eq!((load.take().busy, load.connections()), (0, 0));
    }

    #[test]
    fn a_thread_rests_when_it_has_neither_relayed_nor_done_anything() {
        let load = Arc::new(Load::of(0));
        let _counted = load.enter();
        assert_eq!(load.report(), None);
        load.busy.store(RESTING - 1, Ordering::Relaxed);
        assert!(!load.rests() && load.take().busy > 0, "it has relayed");
        assert!(load.rests() && load.take().busy == 0);
        load.busy.store(RESTING, Ordering::Relaxed);
        assert!(!load.rests() && load.take().busy > 0, "it does something");
    }
}
