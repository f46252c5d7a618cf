//! The shell: a thread that looks a few times a second, and one that writes.
//!
//! Neither is in anybody's way. Looking takes the controller's lock for moments, as the metrics do;
//! what is to be written waits in memory for the disk, up to a bound, and beyond it the oldest is
//! given up and counted. The runtime of the traffic has no part in either.

mod ask;
mod costs;
mod gather;
mod insights;
mod quarantine;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use policy::HistoryLimits;
use proxy::cluster::Cluster;
use proxy::telemetry::Telemetry;

pub use self::ask::Query;
use self::costs::CostKeeper;
use self::gather::Gatherer;
use self::insights::{Keeper, Others, ToKeep};
pub use self::quarantine::FreedKept;
use self::quarantine::QuarantineKeeper;
use crate::book::Book;
use crate::disk::{Disk, Limits, Trouble, Written};
use crate::look::{Happened, Look};
use crate::record::{At, Writes};

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often it is written: what a process that is killed may lose. What changes in quarantine is as
/// soon as it is seen.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// How soon a disk is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// So many writes one after the other have to succeed until a disk is well again: on a full one a
/// small one does now and then, and nobody is to be told that every time.
const WELL_AFTER: u32 = 3;

/// Rows that wait for the disk: a day of fifty identities.
const WAITING_ROWS_MAX: usize = 100_000;

/// What the end of the process waits for the disk, while that works on the last write.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// How soon a last write is tried again in which something is freed from quarantine.
const LAST_RETRY: Duration = Duration::from_millis(100);

/// The history of this process: a handle.
#[derive(Debug, Clone, Default)]
pub struct History {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// None: nothing is to be kept.
    book: Mutex<Option<Book>>,
    state_dir: Option<PathBuf>,
    clusters: Arc<[Arc<Cluster>]>,
    disk: Mutex<DiskState>,
    /// There is something to write.
    wanted: Condvar,
    /// To the thread that looks.
    prompts: Mutex<Option<SyncSender<Prompt>>>,
}

/// What the thread that looks is told.
#[derive(Debug)]
enum Prompt {
    /// Somebody waits for a look.
    Look(SyncSender<()>),
    End,
}

/// Those who may wait for a look at once: as many as the door answers.
const PROMPTS_MAX: usize = 16;

/// What waits for the disk, and what is known of it.
#[derive(Debug, Default)]
struct DiskState {
    waiting: VecDeque<Writes>,
    rows: usize,
    trouble: Option<String>,
    /// Writes that have succeeded since the last that did not.
    well: u32,
    /// Writes that have not.
    failed: u64,
    bytes: u64,
    written: u64,
    lost: u64,
    /// Another process has kept its last windows of insights.
    others_are_wanted: bool,
    /// Somebody waits for what has failed.
    is_hurried: bool,
    is_over: bool,
    /// Nobody waits for it any more.
    is_given_up: bool,
    /// The writer has nothing left to do.
    is_idle: bool,
}

/// What the next process is to know beside the history.
#[derive(Debug)]
struct Keepers {
    insights: Keeper,
    quarantine: QuarantineKeeper,
    costs: CostKeeper,
}

impl Keepers {
    fn add(&mut self, writes: &mut Writes, now: At, ends: bool) {
        let ToKeep { windows, names } = self.insights.gather(now, ends);
        (writes.insights, writes.names) = (windows, names);
        self.quarantine.add_changes(writes, now);
        self.costs.add_changes(writes, now);
    }
}

/// Looks and writes for as long as it lives.
#[derive(Debug)]
pub struct Watch {
    stop: SyncSender<Prompt>,
    looker: Option<JoinHandle<()>>,
    history: History,
}

impl History {
    /// Begins to look and to write. The file is in `state_dir`; without that, the last hours are
    /// kept in memory.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        state_dir: Option<&Path>,
        clusters: &Arc<[Arc<Cluster>]>,
        telemetry: &Arc<Telemetry>,
    ) -> io::Result<(Self, Watch)> {
        let gatherer = Gatherer::new(clusters, telemetry);
        let is_kept = limits_of(clusters).is_none_or(|limits| limits.enabled);
        let book = is_kept.then(|| Book::new(new_run(), VERSION, gather::wall()));
        let (stop, prompts) = sync_channel(PROMPTS_MAX);
        let history = Self {
            inner: Arc::new(Inner {
                book: Mutex::new(book),
                state_dir: state_dir.map(Path::to_owned),
                clusters: clusters.clone(),
                disk: Mutex::default(),
                wanted: Condvar::new(),
                prompts: Mutex::new(Some(stop.clone())),
            }),
        };
        let run = new_run();
        let (mut freed, mut restored) = (Vec::new(), Vec::new());
        if let Some(directory) = state_dir.filter(|_| is_kept) {
            freed = quarantine::restore(directory, clusters, gather::wall());
            restored = costs::restore(directory, clusters, gather::wall());
        }
        if let Some(directory) = state_dir {
            let (inner, disk) = (history.inner.clone(), Disk::new(directory, Limits::default()));
            let others = Others::new(clusters, run);
            thread("history-disk", move || inner.keep_writing(disk, others))?;
        }
        let inner = history.inner.clone();
        let keepers = Keepers {
            insights: Keeper::new(clusters, run, gather::wall()),
            quarantine: QuarantineKeeper::new(clusters, freed),
            costs: CostKeeper::new(clusters, &restored),
        };
        let looker = thread("history", move || inner.keep_looking(gatherer, keepers, &prompts))?;
        let watch = Watch { stop, looker: Some(looker), history: history.clone() };
        Ok((history, watch))
    }

    /// The process before this one has ended: what it has counted last is there now.
    pub fn predecessor_has_ended(&self) {
        self.inner.disk.lock().others_are_wanted = true;
        self.inner.wanted.notify_all();
    }

    /// Why the history is not, or not all, on disk; for people.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.inner.disk.lock().trouble.clone()
    }

    /// Whether anything is kept, in memory or on disk: what `history.enabled` says.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.inner.limits().is_none_or(|limits| limits.enabled)
    }

    /// Its metrics, as Prometheus reads them.
    #[must_use]
    pub fn metrics(&self) -> String {
        let disk = self.inner.disk.lock();
        let is_meant = self.inner.state_dir.is_some() && self.is_kept();
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, value: u64| {
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
        };
        let help = "1 while the history is kept on disk, 0 while it cannot be. There is no series \
                    without state_dir, or where the file switches the history off.";
        if is_meant {
            family("sluice_history_on_disk", "gauge", help, u64::from(disk.trouble.is_none()));
        }
        let help = "The size of the history's file, without its write-ahead log.";
        family("sluice_history_bytes", "gauge", help, disk.bytes);
        let help = "Writes to the history's file that have succeeded.";
        family("sluice_history_writes_total", "counter", help, disk.written);
        let help = "Rows of the history that were given up because the disk did not take them.";
        family("sluice_history_rows_lost_total", "counter", help, disk.lost);
        text
    }
}

impl Watch {
    /// The history that it keeps.
    #[must_use]
    pub fn handle(&self) -> History {
        self.history.clone()
    }
}

impl Drop for Watch {
    /// What is known is written, if the disk takes it.
    fn drop(&mut self) {
        *self.history.inner.prompts.lock() = None;
        drop(self.stop.send(Prompt::End));
        if let Some(looker) = self.looker.take() {
            drop(looker.join());
        }
        let inner = &self.history.inner;
        let mut disk = inner.disk.lock();
        disk.is_over = true;
        // It has its file to close.
        disk.is_idle = false;
        inner.wanted.notify_all();
        if inner.state_dir.is_some() {
            let is_busy = |disk: &mut DiskState| !disk.is_idle;
            inner.wanted.wait_while_for(&mut disk, is_busy, LAST_WRITE);
        }
        disk.is_given_up = true;
        inner.wanted.notify_all();
    }
}

impl Inner {
    /// Takes a look now, so that what has just happened is in the answer: without it that is a quarter of
    /// a second old.
    fn look_now(&self) {
        self.look_within(LOOK_EVERY);
    }

    /// Whether it was taken.
    fn look_within(&self, limit: Duration) -> bool {
        let prompts = self.prompts.lock().clone();
        let Some(prompts) = prompts else { return false };
        let (taken, look) = sync_channel(1);
        prompts.try_send(Prompt::Look(taken)).is_ok() && look.recv_timeout(limit).is_ok()
    }

    fn keep_looking(
        &self,
        mut gatherer: Gatherer,
        mut keepers: Keepers,
        prompts: &Receiver<Prompt>,
    ) {
        let (mut unwritten, mut before) = (Duration::ZERO, Duration::ZERO);
        loop {
            let prompt = match prompts.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => None,
                Ok(prompt) => Some(prompt),
                Err(RecvTimeoutError::Disconnected) => Some(Prompt::End),
            };
            let is_over = matches!(prompt, Some(Prompt::End));
            let mut look = gatherer.look();
            if is_over {
                look.happened.push(Happened::Stop);
            }
            unwritten = unwritten.saturating_add(look.mono.saturating_sub(before));
            before = look.mono;
            let noted = self.note_look(look, unwritten, &mut gatherer, &mut keepers);
            if let Some(writes) = noted {
                unwritten = Duration::ZERO;
                self.enqueue(writes);
            }
            if let Some(Prompt::Look(taken)) = prompt {
                taken.try_send(()).ok();
            }
            if is_over {
                return;
            }
        }
    }

    /// Takes a look in, if anything is to be kept; what is to be written, if it is time.
    fn note_look(
        &self,
        mut look: Look,
        unwritten: Duration,
        gatherer: &mut Gatherer,
        keepers: &mut Keepers,
    ) -> Option<Writes> {
        let at = look.at;
        let is_kept = self.limits().is_none_or(|limits| limits.enabled);
        let mut kept = self.book.lock();
        if !is_kept {
            look.happened.push(Happened::Off);
        } else if kept.is_none() {
            gatherer.forget();
            keepers.insights.forget(at);
            let book = kept.insert(Book::again(new_run(), VERSION, look.at));
            book.look(&look);
            return None;
        }
        let ends = look.happened.iter().any(|it| matches!(it, Happened::Stop | Happened::Off));
        let is_time = ends || unwritten >= WRITE_EVERY || keepers.quarantine.has_changed();
        let is_due = is_time && self.state_dir.is_some();
        let writes = kept.as_mut().and_then(|book| {
            book.look(&look);
            is_due.then(|| book.writes())
        });
        if !is_kept {
            *kept = None;
        }
        drop(kept);
        let mut writes = writes?;
        writes.statements = gatherer.statements();
        keepers.add(&mut writes, at, ends);
        Some(writes)
    }

    fn limits(&self) -> Option<HistoryLimits> {
        limits_of(&self.clusters)
    }

    fn enqueue(&self, writes: Writes) {
        let mut disk = self.disk.lock();
        if let Some(last) = disk.waiting.back_mut() {
            let before = last.rows();
            last.give_way_to(&writes);
            let given_up = before.saturating_sub(last.rows());
            disk.rows = disk.rows.saturating_sub(given_up);
        }
        disk.rows = disk.rows.saturating_add(writes.rows());
        disk.waiting.push_back(writes);
        disk.is_idle = false;
        while disk.rows > WAITING_ROWS_MAX && disk.waiting.len() > 1 {
            if let Some(old) = disk.waiting.pop_front() {
                let lost = old.rows();
                disk.rows = disk.rows.saturating_sub(lost);
                disk.lost = disk.lost.saturating_add(u64::try_from(lost).unwrap_or(u64::MAX));
            }
        }
        self.wanted.notify_all();
    }

    fn keep_writing(&self, mut disk: Disk, mut others: Others) {
        self.take_in(&mut disk, &mut others);
        loop {
            let mut state = self.disk.lock();
            if std::mem::take(&mut state.others_are_wanted) {
                drop(state);
                self.take_in(&mut disk, &mut others);
                continue;
            }
            while state.waiting.is_empty() && !state.others_are_wanted {
                if state.is_over {
                    drop(state);
                    // What is in the log goes into the file, so that whoever copies that has it all.
                    drop(disk);
                    self.note_idle();
                    return;
                }
                state.is_idle = true;
                self.wanted.notify_all();
                self.wanted.wait(&mut state);
            }
            let writes: Vec<Writes> = state.waiting.drain(..).collect();
            state.rows = 0;
            drop(state);
            if let Some(limits) = self.limits() {
                disk.limit(limits.into());
            }
            let written = disk.write(&writes, gather::wall());
            let mut state = self.disk.lock();
            let has_failed = written.is_err();
            note(&mut state, written);
            if has_failed {
                state.rows =
                    writes.iter().map(Writes::rows).sum::<usize>().saturating_add(state.rows);
                writes.into_iter().rev().for_each(|writes| state.waiting.push_front(writes));
                if !self.tries_again(&mut state) {
                    drop(state);
                    self.note_idle();
                    return;
                }
            }
        }
    }
}

impl Inner {
    /// What insights have counted in other runs.
    fn take_in(&self, disk: &mut Disk, others: &mut Others) {
        if self.limits().is_none_or(|limits| limits.enabled)
            && let Err(Trouble(why)) = others.take_in(disk, gather::wall())
        {
            tracing::warn!(%why, "what insights have counted before cannot be read");
        }
    }

    /// Waits until what has failed is to be tried again; false: nobody wants that.
    fn tries_again(&self, state: &mut MutexGuard<'_, DiskState>) -> bool {
        let is_left =
            |state: &mut DiskState| !state.is_over && !std::mem::take(&mut state.is_hurried);
        self.wanted.wait_while_for(state, is_left, RETRY_AFTER);
        // The next process would have in quarantine what somebody was told is free.
        if state.is_over && state.waiting.iter().any(|writes| !writes.freed.is_empty()) {
            self.wanted.wait_while_for(state, |state| !state.is_given_up, LAST_RETRY);
            return !state.is_given_up;
        }
        !state.is_over
    }

    /// The writer has nothing left to do.
    fn note_idle(&self) {
        self.disk.lock().is_idle = true;
        self.wanted.notify_all();
    }
}

/// What has come of a write. It is told once for as long as it stays so.
fn note(state: &mut DiskState, written: Result<Written, Trouble>) {
    match written {
        Ok(Written { bytes, note }) => {
            state.bytes = bytes;
            state.written = state.written.saturating_add(1);
            if let Some(note) = note {
                tracing::warn!(%note, "the history's file");
            }
            state.well = state.well.saturating_add(1);
            if state.well >= WELL_AFTER && state.trouble.take().is_some() {
                tracing::info!("the history is kept on disk again");
            }
        }
        Err(Trouble(why)) => {
            state.well = 0;
            state.failed = state.failed.saturating_add(1);
            if state.trouble.as_ref() != Some(&why) {
                tracing::warn!(
                    %why,
                    "the history is not kept on disk; traffic is not affected, and what happens is \
                     kept in memory until it can be written"
                );
            }
            state.trouble = Some(why);
        }
    }
}

/// They are the file's, and so those of each cluster.
fn limits_of(clusters: &[Arc<Cluster>]) -> Option<HistoryLimits> {
    clusters.first().map(|cluster| cluster.policy().history)
}

/// A number that no other run has; the next ones are those of clocks that are set.
fn new_run() -> i64 {
    i64::from(rand::random::<u32>()) << 20
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// The time by the wall clock.
#[must_use]
pub fn wall() -> At {
    gather::wall()
}
