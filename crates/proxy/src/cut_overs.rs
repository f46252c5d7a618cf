//! The cut-overs of gh-ost that are pending: while the lock of one is held, what other sessions of
//! the same migration do to its own tables passes dice, gate, pace, hold and queue, for everybody
//! who wants the user's table waits for it. What is such a statement [`session::CutOver`] says.
//!
//! Nobody but a statement of gh-ost's that is about to wait looks here, and while nothing is pending
//! looking is one load.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use policy::identity::{IdentityScratch, SessionIdentity, resolve};
use policy::{
    Action, ClusterPolicy, Facts, Rule, ShapeNeeds, ShapeScratch, ShapeText, UnixTime, Verdict,
    decide,
};
use session::{CutOver, MigrationWork};
use sql::{LexMode, Scratch, Tool, Whole, describe};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::printable::Printable;

/// The longest that a lock is taken for that of a cut-over. gh-ost gives up after its
/// `--cut-over-lock-timeout-seconds`, which is 10 at most, and its RENAME waits for twice that.
const LOCK_MAX: Duration = Duration::from_secs(60);

/// The cut-overs of one cluster.
#[derive(Debug)]
pub(crate) struct CutOvers {
    cluster: Arc<str>,
    /// How many there are.
    pending: AtomicUsize,
    held: Mutex<Vec<Arc<Held>>>,
    /// Raised with each that begins, for those who wait already.
    begun: watch::Sender<u64>,
}

/// The lock of one cut-over.
#[derive(Debug)]
struct Held {
    cut_over: CutOver,
    identity: SessionIdentity,
    connection_id: u32,
    since: Instant,
    /// Statements that have passed for it.
    passed: AtomicU64,
}

/// A cut-over that is pending, for people.
#[derive(Debug, Clone)]
pub struct PendingCutOver {
    /// Whose, and of which table.
    pub cut_over: CutOver,
    /// The server's id of the connection that holds the lock.
    pub connection_id: u32,
    /// For how long.
    pub age: Duration,
    /// Statements of other sessions that have passed for it.
    pub passed: u64,
}

impl CutOvers {
    pub(crate) fn new(cluster: Arc<str>) -> Self {
        Self {
            cluster,
            pending: AtomicUsize::new(0),
            held: Mutex::default(),
            begun: watch::Sender::new(0),
        }
    }

    /// A session holds the lock of a cut-over, until the guard is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        cut_over: &CutOver,
        identity: &SessionIdentity,
        connection_id: u32,
    ) -> CutOverGuard {
        let held = Arc::new(Held {
            cut_over: cut_over.clone(),
            identity: identity.clone(),
            connection_id,
            since: Instant::now(),
            passed: AtomicU64::new(0),
        });
        let mut all = self.held.lock();
        all.push(Arc::clone(&held));
        self.pending.store(all.len(), Ordering::Release);
        drop(all);
        self.begun.send_modify(|begun| *begun = begun.wrapping_add(1));
        CutOverGuard { board: Arc::clone(self), held }
    }

    /// Tells from now on when one begins.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.begun.subscribe()
    }

    /// Whether this belongs to a cut-over that is pending; counted if it does.
    pub(crate) fn let_pass(&self, work: &MigrationWork) -> bool {
        if self.pending.load(Ordering::Acquire) == 0 {
            return false;
        }
        let all = self.held.lock();
        let covers = |held: &&Arc<Held>| held.is_believed() && held.cut_over.covers(work);
        let Some(held) = all.iter().find(covers) else { return false };
        held.passed.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Those that are pending.
    pub(crate) fn pending(&self) -> Vec<PendingCutOver> {
        if self.pending.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let all = self.held.lock();
        let shown = all.iter().map(|held| PendingCutOver {
            cut_over: held.cut_over.clone(),
            connection_id: held.connection_id,
            age: held.since.elapsed(),
            passed: held.passed.load(Ordering::Relaxed),
        });
        shown.collect()
    }

    /// Other rules are in force: whoever has set a hold or a denial is told when it comes too late
    /// for a cut-over that is pending.
    pub(crate) fn tell_of_rules(
        &self,
        (before, then): (&ClusterPolicy, UnixTime),
        (policy, now): (&ClusterPolicy, UnixTime),
    ) {
        if self.pending.load(Ordering::Acquire) == 0 {
            return;
        }
        let all = self.held.lock().clone();
        for held in all {
            let stop = held.stopped_by(policy, now);
            let (Some((rule, stop)), cluster) = (&stop, &self.cluster) else { continue };
            if held.stopped_by(before, then).is_some_and(|(_, before)| before == *stop) {
                continue;
            }
            let Held { cut_over: CutOver { user, schema, table, .. }, connection_id, .. } = &*held;
            let (schema, table) = (Printable(schema), Printable(table));
            let effect = match stop {
                Stop::Hold => {
                    "the hold does not stop the swap: what follows it is held; to stop the \
                     swap, end gh-ost or use `deny`"
                }
                Stop::Deny => {
                    "the swap is denied while the table is locked: gh-ost gives the lock back \
                     when its time is over"
                }
            };
            tracing::warn!(
                %cluster, rule = %rule.name, table = %format_args!("{schema}.{table}"),
                connection_id, user = %Printable(user), effect,
                "a rule was set while a cut-over of gh-ost is pending"
            );
        }
    }

    fn end(&self, ended: &Arc<Held>) {
        let mut all = self.held.lock();
        all.retain(|held| !Arc::ptr_eq(held, ended));
        self.pending.store(all.len(), Ordering::Release);
    }
}

/// How a rule stands in the way of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Hold,
    Deny,
}

impl Held {
    fn is_believed(&self) -> bool {
        self.since.elapsed() <= LOCK_MAX
    }

    /// The rule that holds or denies what the migration does to its own table, if one does.
    fn stopped_by<'p>(&self, policy: &'p ClusterPolicy, now: UnixTime) -> Option<(&'p Rule, Stop)> {
        let (schema, copy) = (&self.cut_over.schema, self.cut_over.copy_name());
        // The names have no backtick: see `session::CutOver`.
        let text = [b"DELETE FROM `".as_slice(), schema, b"`.`", &copy, b"`"].concat();
        let mut texts = Scratch::default();
        let mode = LexMode::default();
        let statement = describe(&text, mode, Whole::Yes, &mut texts);
        let mut shapes = ShapeScratch::default();
        let shape = shapes.read(&ShapeText::new(&text, mode, schema, &statement), ShapeNeeds::ALL);
        let mut scratch = IdentityScratch::default();
        let (none, tool) = (std::iter::empty, Some(Tool::GhOst));
        let session = &self.identity;
        let identity = resolve(&policy.identity, session, none(), none(), tool, &mut scratch);
        let (classes, exemption) = (statement.classes, statement.exemption);
        let facts = Facts { identity: &identity, session, classes, exemption, shape, now };
        match decide(policy, &facts) {
            Verdict::Deny(rule) => Some((rule, Stop::Deny)),
            Verdict::Ask(rule) => match &rule.action {
                Action::Throttle { terms, .. } if terms.hold => Some((rule, Stop::Hold)),
                Action::Throttle { .. } | Action::Exempt | Action::Deny => None,
            },
            Verdict::Pass { .. } => None,
        }
    }
}

impl fmt::Display for PendingCutOver {
    /// `a cut-over of gh-ost is pending: connection 17 (user ghost) has locked shop.orders`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CutOver { user, schema, table, .. } = &self.cut_over;
        let [user, schema, table] = [user, schema, table].map(|name| Printable(name));
        let id = self.connection_id;
        write!(f, "a cut-over of gh-ost is pending: connection {id} (user {user}) ")?;
        write!(f, "has locked {schema}.{table}")
    }
}

/// The lock of a cut-over is held until this is dropped.
#[derive(Debug)]
#[must_use = "the cut-over is over when this is dropped"]
pub(crate) struct CutOverGuard {
    board: Arc<CutOvers>,
    held: Arc<Held>,
}

impl Drop for CutOverGuard {
    fn drop(&mut self) {
        self.board.end(&self.held);
        let Held { cut_over, connection_id, since, passed, .. } = &*self.held;
        let CutOver { user, schema, table, .. } = cut_over;
        let (schema, table) = (Printable(schema), Printable(table));
        tracing::info!(
            cluster = %self.board.cluster, table = %format_args!("{schema}.{table}"),
            connection_id, user = %Printable(user), held_ms = since.elapsed().as_millis(),
            passed = passed.load(Ordering::Relaxed),
            "the lock of a cut-over of gh-ost was given back; what it had waiting has passed"
        );
    }
}

#[cfg(test)]
mod tests;
