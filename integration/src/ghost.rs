//! A client of our own that plays gh-ost's part, for gh-ost is in no package registry.
//!
//! It is not gh-ost, and knows one table: `test.t (id INT PRIMARY KEY, k INT, pad VARCHAR)`. What a
//! proxy sees of it is what it would see of gh-ost 1.1.10: which sessions there are, what each
//! says, with which comments, in which order, what is tried again how often, and which locks are
//! held when.
//!
//! | session | what it does |
//! |---|---|
//! | inspector | reads the binary log as a replica does: COM_BINLOG_DUMP |
//! | lock | holds the migration's GET_LOCK from beginning to end |
//! | heartbeat | writes into `_t_ghc` each 100 ms; sixty failures in a row end the migration |
//! | writer | makes the tables, copies chunks, applies changes; each is tried sixty times |
//! | A and B | the cut-over: A locks `t`, B renames, A unlocks: see `cut_over` |
//!
//! With [`Migration::check`] it also asks over HTTP each 100 ms, with HEAD, and does nothing but
//! heartbeats unless the answer is 200; not so while it holds the cut-over's lock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use self::session::Session;
use self::tasks::Task;
use self::writer::Writer;
use crate::error::{HarnessError, Result};

mod binlog;
mod check;
mod cut_over;
mod session;
mod stream;
mod tasks;
mod writer;

/// What to migrate, and by which ways.
#[derive(Debug, Clone)]
pub struct Migration {
    /// Where it writes: `--assume-master-host`, or `--host` with `--allow-on-master`.
    pub applier: SocketAddr,
    /// Where it reads the binary log: `--host`.
    pub inspector: SocketAddr,
    /// An account of the harness.
    pub user: String,
    /// Other than every replica's.
    pub server_id: u32,
    /// `--throttle-http`: an address and a path that are asked before and during the copy.
    pub check: Option<(SocketAddr, String)>,
    /// Asked once the cut-over has locked the table, and only 200 lets it go on: by it somebody shuts
    /// the gate just then. Not of gh-ost's own.
    pub when_locked: Option<(SocketAddr, String)>,
    /// `--postpone-cut-over-flag-file`: no cut-over while it is set.
    pub postponed: Arc<AtomicBool>,
    /// What is read of it while it runs.
    pub progress: Arc<Progress>,
}

/// How far a migration is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Chunks that are copied.
    pub chunks: AtomicU64,
    /// Changes of the table that are applied.
    pub applied: AtomicU64,
    /// Cut-overs that have been begun.
    pub cut_overs: AtomicU64,
    /// How long the table has been locked, in all of them, in milliseconds.
    pub locked_ms: AtomicU64,
    /// Whether all that was there is copied.
    pub copied: AtomicBool,
}

impl Migration {
    /// Everything at one server: its binary log too, as with `--allow-on-master`.
    #[must_use]
    pub fn on_master(applier: SocketAddr, user: &str, server_id: u32) -> Self {
        Self {
            applier,
            inspector: applier,
            user: user.into(),
            server_id,
            check: None,
            when_locked: None,
            postponed: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// With another server to read the binary log of, a replica.
    #[must_use]
    pub fn reading(mut self, inspector: SocketAddr) -> Self {
        self.inspector = inspector;
        self
    }

    /// Adds the column `extra` to `test.t`, and gives when that is done. The old table is dropped.
    ///
    /// # Errors
    /// When what gh-ost would try again has failed as often as it tries.
    ///
    /// # Cancellation
    /// Dropping the future ends its sessions, and leaves the tables that it has made.
    pub async fn run(&self) -> Result<()> {
        let mut lock = Session::open(self.applier, &self.user).await?;
        let got = lock.text("SELECT /* gh-ost */ GET_LOCK('gh-ost::test.t', 0)").await?;
        if got.as_deref() != Some("1") {
            return Err(HarnessError::Protocol("another migration of test.t is under way".into()));
        }
        let (to_writer, events) = mpsc::channel(EVENTS_MAX);
        let (to_states, mut states) = watch::channel(String::new());
        let shared = Arc::new(Shared::default());
        let stream = stream::open(self).await?;
        let mut writer = Writer::open(self, events, to_states, shared.clone()).await?;
        writer.make_tables().await?;
        let mut tasks = vec![
            Task::spawn(stream::follow(stream, to_writer, shared.clone())),
            Task::spawn(tasks::keep_alive(lock)),
            Task::spawn(tasks::beat(self.clone())),
        ];
        if let Some(check) = self.check.clone() {
            let task = check::ask(check, shared.clone());
            shared.is_throttled.store(true, Ordering::Relaxed);
            tasks.push(Task::spawn(task));
        }
        tasks.push(Task::spawn(writer.run()));
        let cut_over = cut_over::when_copied(self, &mut states, &shared);
        tokio::select! {
            done = cut_over => done?,
            failed = tasks::first_failure(&mut tasks) => return Err(failed),
        }
        shared.is_finished.store(true, Ordering::Relaxed);
        drop(tasks);
        let mut last = Session::open(self.applier, &self.user).await?;
        last.run("DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_ghc`").await?;
        last.run("DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_del`").await
    }
}

/// What the tasks of one migration know of each other.
#[derive(Debug, Default)]
struct Shared {
    /// The last check did not say 200.
    is_throttled: AtomicBool,
    /// The table is locked: nothing throttles.
    is_critical: AtomicBool,
    /// The table has been renamed.
    is_finished: AtomicBool,
    /// How old the newest heartbeat was when it was read from the binary log, in milliseconds.
    heartbeat_lag_ms: AtomicU64,
}

/// gh-ost's `MaxEventsBatchSize`.
const EVENTS_MAX: usize = 1000;
/// `--default-retries`.
const TRIES: u32 = 60;
/// Between two of them.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);
