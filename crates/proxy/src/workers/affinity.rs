//! On which thread a connection lives, and when it moves to another.

use std::io;
use std::sync::{Arc, Weak};

use super::Workers;
use super::load::Load;

/// A connection's place among the relaying threads.
#[derive(Debug)]
pub(crate) struct Affinity {
    load: Arc<Load>,
    /// The look that it has heeded.
    seen: u32,
    /// All threads. Weak: they end with the server, whoever is on them.
    workers: Weak<Workers>,
}

impl Affinity {
    pub(super) fn new(load: Arc<Load>, workers: Weak<Workers>) -> Self {
        Self { seen: load.look(), load, workers }
    }

    /// Where it never moves from.
    #[cfg(test)]
    pub(crate) fn alone() -> Self {
        Self::new(Arc::default(), Weak::new())
    }

    /// The number of its thread.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.load.index()
    }

    /// Where it is to move. Asked ahead of each read, it says so once.
    #[inline]
    pub(crate) fn moves_to(&mut self) -> Option<usize> {
        let look = self.load.look();
        if look == self.seen {
            return None;
        }
        self.seen = look;
        self.load.report()
    }

    /// Runs `register` so that what it registers is that thread's; `None`: there is no such thread.
    pub(crate) fn at<T>(&self, to: usize, register: impl FnOnce() -> io::Result<T>) -> Option<T> {
        let workers = self.workers.upgrade()?;
        let _context = workers.get(to)?.handle.enter();
        register().ok()
    }

    /// It lives there now.
    pub(crate) fn settle(&mut self, load: Arc<Load>) {
        self.seen = load.look();
        self.load = load;
    }

    pub(super) fn workers(&self) -> &Weak<Workers> {
        &self.workers
    }
}
