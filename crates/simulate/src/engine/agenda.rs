//! What will happen, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use admission::{Demand, MonoTime};

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A tick is over.
    Tick,
    /// So many background rows are committed.
    Background { rows: f64 },
    /// A session has a new statement.
    Issue { session: usize },
    /// A session asks for the statement it has.
    Ask { session: usize },
    /// A session's statement is committed.
    Commit { session: usize },
    /// A heartbeat is to be written, unless another beat has been planned since.
    HeartbeatDue { proxy: usize, beat: u64 },
    /// A heartbeat is committed.
    HeartbeatCommitted { proxy: usize, seq: u64 },
    /// A replica is to be probed, unless another beat has been planned since.
    ProbeDue { proxy: usize, replica: usize, beat: u64 },
    /// A probe's answer arrives.
    ProbeAnswered { proxy: usize, replica: usize, answer: Answer },
    /// It is looked what a replica's appliers are at.
    LookAtAppliers { proxy: usize, replica: usize },
    /// The lag grows while an answer is awaited.
    Publish { proxy: usize },
    /// The proxies are started anew.
    Restart,
    /// It is looked whether somebody needs fresh values.
    LookAtTempo { proxy: usize },
    /// The signals other than the lag are looked at.
    LookAtSignals,
    /// A Sluice tells the others what it wants.
    Tell { proxy: usize },
    /// The others have read it.
    Hear { from: usize, demand: Demand },
}

/// What a probe has seen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// The newest heartbeat.
    Shows(Option<u64>),
    /// The replica is not there.
    Unreachable,
}

/// Events by time, and in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    planned: BinaryHeap<Planned>,
    next_n: u64,
}

#[derive(Debug)]
struct Planned {
    at: MonoTime,
    n: u64,
    event: Event,
}

impl Agenda {
    pub(super) fn add(&mut self, at: MonoTime, event: Event) {
        self.planned.push(Planned { at, n: self.next_n, event });
        self.next_n = self.next_n.saturating_add(1);
    }

    pub(super) fn next_at(&self) -> Option<MonoTime> {
        self.planned.peek().map(|planned| planned.at)
    }

    pub(super) fn take(&mut self) -> Option<(MonoTime, Event)> {
        self.planned.pop().map(|planned| (planned.at, planned.event))
    }
}

/// The heap gives the greatest first: that is the earliest.
impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.n).cmp(&(self.at, self.n))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}
