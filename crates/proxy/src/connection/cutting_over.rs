//! gh-ost's cut-over, as its sessions' connections see it: the one that holds the lock says so, and
//! what the others are about to wait with passes meanwhile.

use tokio::sync::watch;

use super::Connection;

/// Tells when a cut-over begins.
pub(super) type CutOverWatch = watch::Receiver<u64>;

/// Waits for the next cut-over to begin; for ever where nobody watches for one.
///
/// # Cancellation
/// Safe: what has begun since the last call is told by the next.
pub(super) async fn next_cut_over(watch: &mut Option<CutOverWatch>) {
    let told = match watch {
        Some(watch) => watch.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending::<()>().await;
    }
}

impl Connection {
    /// A command is over: it may have been the one that takes the lock.
    pub(super) fn note_cut_over(&mut self) {
        let Self { session, shared, cut_over, .. } = self;
        if cut_over.is_none()
            && let Some(locked) = session.cut_over()
        {
            let (identity, id) = (session.identity(), session.connection_id());
            let guard = shared.cluster.cut_overs.begin(locked, identity, id);
            *cut_over = Some(Box::new(guard));
        }
    }

    /// Before anything goes to the server that may give the lock back, nobody passes for it any
    /// more.
    pub(super) fn give_up_cut_over(&mut self) {
        if self.cut_over.is_some() && self.session.cut_over().is_none() {
            self.cut_over = None;
        }
    }

    /// Whether what is asked for belongs to a cut-over that is pending.
    pub(super) fn is_of_cut_over(&self) -> bool {
        let work = self.session.migration_work();
        work.is_some_and(|work| self.shared.cluster.cut_overs.let_pass(work))
    }

    /// Tells of further cut-overs whoever is about to wait with what may belong to one. To be had
    /// before it is looked for the last time whether one is pending.
    pub(super) fn watch_cut_overs(&self) -> Option<CutOverWatch> {
        let work = self.session.migration_work();
        work.map(|_| self.shared.cluster.cut_overs.watch())
    }
}
