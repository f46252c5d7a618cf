//! What the probe has read of a cluster's primary for its sessions, and for how long that holds.
//!
//! The list of routines is emptied before a statement that may change them is sent, and none that
//! was read before such a statement has ended is shown to anybody again: nobody can replace a
//! function that writes nothing and run it by the list of before.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use policy::ClusterPolicy;
use session::ServerFacts;
use sql::Routines;
use tokio::time::Instant;

use crate::current::Current;

/// How long no list is believed after the connection of a statement that may change routines has
/// gone before its answer: the server may still be at it.
const ABANDONED: Duration = Duration::from_secs(60);

/// What is known, and of which server.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Its address in the file; empty: of none.
    server: Arc<str>,
    pub(crate) facts: ServerFacts,
}

/// What the probe knows of the primary. The pass path loads one pointer of it.
#[derive(Debug)]
pub(crate) struct FactsBoard {
    current: Current<Known>,
    nothing: Arc<Known>,
    changes: Mutex<Changes>,
}

/// The statements that may change routines.
#[derive(Debug, Default)]
struct Changes {
    /// How many have begun.
    begun: u64,
    /// How many are under way.
    running: u32,
    /// One that may still run has no connection of Sluice's any more.
    not_before: Option<Instant>,
}

impl Changes {
    fn are_over(&self) -> bool {
        self.running == 0 && self.not_before.is_none_or(|until| until <= Instant::now())
    }
}

/// A list of routines is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    begun: u64,
}

impl FactsBoard {
    pub(crate) fn new(policy: &ClusterPolicy) -> Self {
        Self {
            current: Current::new(Arc::new(Known {
                server: policy.primary.clone(),
                facts: at_first(policy),
            })),
            nothing: Arc::default(),
            changes: Mutex::default(),
        }
    }

    /// A policy is about to be in force: what is known of another primary holds no more, nor what a
    /// probe has read that is no more.
    pub(crate) fn follow(&self, before: &ClusterPolicy, policy: &ClusterPolicy) {
        if before.primary != policy.primary || before.probe.is_some() != policy.probe.is_some() {
            let changes = self.changes.lock();
            let server = policy.primary.clone();
            self.current.replace(Arc::new(Known { server, facts: at_first(policy) }));
            drop(changes);
        }
    }

    /// What is known of `server`, if it is something else than `known`. One load while it is not.
    pub(crate) fn newer(&self, known: &Arc<Known>, server: &str) -> Option<Arc<Known>> {
        if self.current.is(known) {
            return None;
        }
        let current = self.current.load();
        if *current.server == *server {
            Some(Arc::clone(&current))
        } else {
            // The connection goes to the primary of a policy before.
            (!Arc::ptr_eq(&self.nothing, known)).then(|| self.nothing.clone())
        }
    }

    /// Nothing is known yet.
    pub(crate) fn nothing(&self) -> Arc<Known> {
        self.nothing.clone()
    }

    /// A statement that may change routines is about to be sent.
    pub(crate) fn begin_change(self: &Arc<Self>) -> RoutineChange {
        let mut changes = self.changes.lock();
        changes.begun = changes.begun.wrapping_add(1);
        changes.running = changes.running.saturating_add(1);
        let known = self.current.load();
        if !known.facts.routines.is_empty() {
            let facts = ServerFacts { routines: Routines::default(), ..known.facts };
            self.current.replace(Arc::new(Known { server: known.server.clone(), facts }));
        }
        drop(changes);
        RoutineChange { board: self.clone(), ended: false }
    }

    /// A list of routines may be read now; none while it may be changing.
    pub(crate) fn begin_reading(&self) -> Option<Reading> {
        let changes = self.changes.lock();
        changes.are_over().then_some(Reading { begun: changes.begun })
    }

    /// The probe has read this of `server`. Without a reading that still holds its routines are
    /// passed over.
    pub(crate) fn publish(&self, server: &str, reading: Option<Reading>, facts: ServerFacts) {
        let changes = self.changes.lock();
        let known = self.current.load();
        if *known.server != *server {
            return;
        }
        let holds = changes.are_over() && reading == Some(Reading { begun: changes.begun });
        let routines = if holds { facts.routines } else { Routines::default() };
        let facts = ServerFacts { routines, ..facts };
        if known.facts != facts {
            self.current.replace(Arc::new(Known { server: known.server.clone(), facts }));
        }
        drop(changes);
    }
}

/// What is known of the primary before its probe has answered.
fn at_first(policy: &ClusterPolicy) -> ServerFacts {
    match policy.probe {
        Some(_) => ServerFacts::default(),
        None => ServerFacts::unasked(),
    }
}

/// A statement that may change routines is under way until this is dropped.
#[derive(Debug)]
#[must_use = "the list of routines is read again as soon as it is dropped"]
pub(crate) struct RoutineChange {
    board: Arc<FactsBoard>,
    ended: bool,
}

impl RoutineChange {
    /// The server has answered the statement.
    pub(crate) fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for RoutineChange {
    fn drop(&mut self) {
        let mut changes = self.board.changes.lock();
        changes.running = changes.running.saturating_sub(1);
        if !self.ended {
            changes.not_before = Instant::now().checked_add(ABANDONED);
        }
    }
}

#[cfg(test)]
mod tests;
