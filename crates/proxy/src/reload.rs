//! The configuration file while Sluice runs: noticed, read, checked, applied.
//!
//! A change is noticed by watching the file's *directory*, because editors and ConfigMaps replace
//! files instead of writing them: a rename, or a swap of the `..data` link, shows there. Where the path
//! is a link, what it leads to is written in another directory, and a file that is mounted on it in
//! one that cannot be seen: that directory and the file itself are watched as well. Since no watch sees
//! everything (network mounts, a directory replaced as a whole, a link behind a link), the content is
//! compared every half second besides.
//!
//! Only a regular file is read, and for five seconds at most: a FIFO, or a filesystem that hangs, is a
//! fault like others, and one thread waits for it. So is a file that the content names, a secret or a
//! certificate, which does not answer. One that was in force before is read when an edit is to be put in
//! force that uses it otherwise, ahead of all changes; where it hangs, that holds up edits and nothing else.
//!
//! Content decides, never a time stamp. It is taken when two readings 50 ms apart agree, so
//! that half of a file being saved is seldom looked at, and not while the watch shows, before or behind
//! the readings, that somebody has begun to write it and has not closed it, for five seconds at most. A file with faults changes
//! nothing: what is in force stays, the faults are logged with their lines,
//! `sluice_config_last_reload_successful` is 0, and the next save is a new chance. Reading, checking and
//! applying run on a thread of their own, so that 10,000 rules hold nobody up.
//!
//! What is in force is not always the file: keys that cannot change live stay what they were, and
//! all else of the same save applies ([`policy::edit`]). The next save is held against what is in
//! force, so an edit that is taken back waits for nothing any more.
//!
//! A panic meanwhile, a fault of Sluice's own, may leave an edit in force in part. It is a failed reload
//! with a line in the log, and the next edit is put in force as a whole, also the one of before.

mod content;
mod telling;
mod waiting;
mod watching;

use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use policy::{Config, Edit, Fault};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::MissedTickBehavior;

use self::content::{FileContent, Secrets};
use self::waiting::{TRIED_AGAIN_EVERY_S, Waiting};
use self::watching::{Watch, Writing};
use crate::caught::caught;
use crate::telemetry::{Reload, Telemetry};

/// How often the content is compared whatever the watch says. With the settling it stays below the
/// second within which a change has to be in force.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Two readings this far apart must agree.
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// A file that never holds still is taken as it is after so many readings: half a second.
const SETTLE_READINGS_MAX: usize = 10;

/// A reading that takes longer is a fault; a network's filesystem answers by then, or hangs.
const READING_MAX: Duration = Duration::from_secs(5);

/// A check that takes longer waits for a file that the content names.
const CHECKING_MAX: Duration = Duration::from_secs(30);

/// Checks that wait so, beside which no further one is begun.
const HUNG_MAX: usize = 4;

/// Lines that one reload may log: more is not read.
const LOGGED_LINES_MAX: usize = 50;

/// A configuration that was read and found good, and the text it was.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the text says, with its defaults.
    pub config: Arc<Config>,
    content: FileContent,
    /// What in the text cannot work.
    pub warnings: Vec<Fault>,
    /// Files of certificates that cannot be used, where others stay in force.
    outlived: Vec<Fault>,
}

/// Why there is no configuration.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// It was read and is wrong: all its faults.
    Faults(Vec<Fault>),
    /// It is well but for files that it names, of secrets or certificates.
    Files(Vec<Fault>),
    /// A file that it names does not answer, or those of edits before it.
    NoAnswer(&'static str),
}

impl Loaded {
    /// What cannot work, in the log: once for each time that the text comes in force.
    fn log_warnings(&self, path: &Path) {
        let file = path.display();
        for warning in self.warnings.iter().take(LOGGED_LINES_MAX) {
            tracing::warn!(%file, %warning, "in force, but this cannot work as it stands");
        }
    }
}

impl LoadError {
    /// Every fault as a line of its own: `FILE:LINE: path: message`.
    pub fn lines(&self, path: &Path) -> Vec<String> {
        let file = path.display();
        match self {
            Self::Unreadable(error) => vec![format!("{file}: cannot read it: {error}")],
            Self::NoAnswer(why) => vec![format!("{file}: {why}")],
            Self::Faults(faults) | Self::Files(faults) => faults
                .iter()
                .map(|Fault { line, path, message }| match &**path {
                    "" => format!("{file}:{line}: {message}"),
                    path => format!("{file}:{line}: {path}: {message}"),
                })
                .collect(),
        }
    }
}

/// Reads and checks a configuration file. The secrets that it names are not looked for: whoever only
/// reads it does not have them.
///
/// # Errors
/// When it cannot be read, or has faults.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    FileContent::read(path).load(None, Secrets::Elsewhere)
}

/// Why a good file was not put in force: something outside of it is missing.
#[derive(Debug)]
pub struct NotApplied(pub String);

/// The same for whoever is to run it: a secret that is not where the file says is a fault.
///
/// # Errors
/// As [`load`].
pub fn load_to_run(path: &Path) -> Result<Loaded, LoadError> {
    FileContent::read(path).load(None, Secrets::Here)
}

/// Applies the file's changes for as long as it lives.
#[derive(Debug)]
pub struct ConfigWatcher {
    now: Arc<Notify>,
    task: JoinHandle<()>,
}

impl ConfigWatcher {
    /// Watches `path`, whose content `loaded` is in force. What every good change makes of that goes to
    /// `apply`, which puts all of it in force or nothing.
    pub fn spawn(
        path: PathBuf,
        loaded: &Loaded,
        telemetry: Arc<Telemetry>,
        apply: impl FnMut(&Arc<Config>) -> Result<(), NotApplied> + Send + 'static,
    ) -> Self {
        telemetry.handle_config(&loaded.config);
        let unedited = policy::edit(&loaded.config, Config::clone(&loaded.config));
        telemetry.handle_fixed_keys(unedited.fixed);
        telemetry.reload(Reload::Applied, unix_seconds());
        loaded.log_warnings(&path);
        let (changed, writing) = (Arc::default(), Arc::<Writing>::default());
        let watch = Watch::new(path.clone(), Arc::clone(&changed), writing.clone());
        let reloader = Reloader {
            path,
            in_force: loaded.clone(),
            seen: loaded.content.clone(),
            telemetry,
            writing,
            watch: Arc::new(Mutex::new(watch)),
            reading: None,
            hung: Vec::new(),
            waiting: None,
            apply: Arc::new(Mutex::new(apply)),
            is_torn: false,
        };
        let now = Arc::new(Notify::new());
        let task = tokio::spawn(reloader.run(now.clone(), changed));
        Self { now, task }
    }

    /// Looks at the file now, and says in the log what came of it, also if it has not changed.
    pub fn reload_now(&self) {
        self.now.notify_one();
    }
}

impl Drop for ConfigWatcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task behind a [`ConfigWatcher`].
struct Reloader<A> {
    path: PathBuf,
    /// What runs, and the content that it was made of.
    in_force: Loaded,
    /// What was looked at last, good or not.
    seen: FileContent,
    telemetry: Arc<Telemetry>,
    writing: Arc<Writing>,
    /// Of whoever reads.
    watch: Arc<Mutex<Watch>>,
    /// One that goes on; there is no second one beside it.
    reading: Option<JoinHandle<FileContent>>,
    /// Checks that wait for a file, and of what.
    hung: Vec<(FileContent, JoinHandle<Result<Loaded, LoadError>>)>,
    /// What was looked at last waits for files that it names.
    waiting: Option<Waiting>,
    apply: Arc<Mutex<A>>,
    /// A panic may have left something else in force than `in_force`.
    is_torn: bool,
}

/// Why the file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    /// Something may have changed.
    Change,
    /// Somebody wants it.
    Request,
}

impl<A: FnMut(&Arc<Config>) -> Result<(), NotApplied> + Send + 'static> Reloader<A> {
    async fn run(mut self, now: Arc<Notify>, changed: Arc<Notify>) {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let prompt = tokio::select! {
                () = now.notified() => Prompt::Request,
                () = changed.notified() => Prompt::Change,
                _ = poll.tick() => Prompt::Change,
            };
            if !self.is_half(prompt)
                && let Err(panic) = caught(self.look(prompt)).await
            {
                self.is_left(&panic);
            }
        }
    }

    /// Whether what a change leads to may be half of what is being saved; its end is a change too.
    fn is_half(&self, prompt: Prompt) -> bool {
        prompt == Prompt::Change && self.writing.goes_on(Instant::now())
    }

    async fn look(&mut self, prompt: Prompt) {
        let Some(content) = self.settled().await else { return };
        // It may have been begun since.
        if self.is_half(prompt) {
            return;
        }
        self.writing.is_read();
        if content != self.seen || prompt == Prompt::Request {
            self.waiting = None;
        } else if !self.is_to_be_tried_again(&content) {
            return;
        }
        self.seen = content.clone();
        if content == self.in_force.content && !self.is_torn {
            self.telemetry.reload(Reload::Applied, unix_seconds());
            tracing::info!(file = %self.path.display(), "the configuration in force, unchanged");
            return;
        }
        match self.check(content).await {
            Ok(loaded) => self.take(loaded).await,
            Err(error) => self.complain(&error),
        }
    }

    /// Whether what was looked at last waits for files, has waited for long enough, and no look of
    /// before still goes on.
    fn is_to_be_tried_again(&self, content: &FileContent) -> bool {
        let hangs = |(of, checking): &(FileContent, JoinHandle<_>)| {
            of == content && !checking.is_finished()
        };
        self.waiting.as_ref().is_some_and(|waiting| waiting.is_over(tokio::time::Instant::now()))
            && !self.hung.iter().any(hangs)
    }

    async fn check(&mut self, content: FileContent) -> Result<Loaded, LoadError> {
        self.hung.retain(|(_, checking)| !checking.is_finished());
        if self.hung.len() >= HUNG_MAX {
            return Err(LoadError::NoAnswer(
                "files that edits before this one named still do not answer, so that it is not \
                 looked at until one of them does",
            ));
        }
        let before = self.in_force.config.clone();
        let loaded = content.clone();
        let load = move || loaded.load(Some(&before), Secrets::Here);
        let mut checking = tokio::task::spawn_blocking(load);
        match tokio::time::timeout(CHECKING_MAX, &mut checking).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(error)) => Err(LoadError::Unreadable(io::Error::other(error))),
            Err(_) => {
                self.hung.push((content, checking));
                Err(LoadError::NoAnswer(
                    "a file that it names, of a secret or a certificate, does not answer",
                ))
            }
        }
    }

    /// The file's content once it holds still. None: this process is ending.
    async fn settled(&mut self) -> Option<FileContent> {
        let mut content = self.read().await?;
        for _ in 0..SETTLE_READINGS_MAX {
            if content == self.seen {
                break;
            }
            tokio::time::sleep(SETTLE_INTERVAL).await;
            let again = self.read().await?;
            if again == content {
                break;
            }
            content = again;
        }
        Some(content)
    }

    async fn read(&mut self) -> Option<FileContent> {
        let watch = self.watch.clone();
        let read = move || {
            let mut watch = watch.lock();
            watch.follow();
            FileContent::read_regular(watch.path())
        };
        let reading = self.reading.get_or_insert_with(|| tokio::task::spawn_blocking(read));
        match tokio::time::timeout(READING_MAX, reading).await {
            Ok(content) => {
                self.reading = None;
                content.ok()
            }
            Err(_) => Some(FileContent::Unreadable(io::ErrorKind::TimedOut, None)),
        }
    }

    async fn take(&mut self, loaded: Loaded) {
        let Loaded { config, content, warnings, outlived } = loaded;
        let edit = policy::edit(&self.in_force.config, Arc::unwrap_or_clone(config));
        let Edit { config, changes, fixed } = edit;
        let before = self.in_force.content.text();
        let config = Arc::new(config);
        if let Err(NotApplied(why)) = self.put_in_force(config.clone()).await {
            if self.waits(&why) {
                tracing::error!(
                    file = %self.path.display(), %why,
                    "the configuration cannot be applied; nothing is changed, and it is tried again \
                     every {TRIED_AGAIN_EVERY_S} s"
                );
            }
            return;
        }
        self.waiting = None;
        self.in_force = Loaded { config, content, warnings, outlived };
        self.is_torn = false;
        self.telemetry.handle_config(&self.in_force.config);
        self.telemetry.reload(Reload::Applied, unix_seconds());
        let waited = !self.telemetry.pending_keys().is_empty();
        self.telemetry.handle_fixed_keys(fixed);
        self.log(&changes, waited);
        let after = self.in_force.content.text();
        self.telemetry.edits.note(&self.path, before, after, &changes);
    }

    /// On another thread: whoever applies may read files, and traffic must not wait for those.
    async fn put_in_force(&mut self, config: Arc<Config>) -> Result<(), NotApplied> {
        let apply = self.apply.clone();
        let mut applying = tokio::task::spawn_blocking(move || {
            let mut apply = apply.lock();
            apply(&config)
        });
        let applied = match tokio::time::timeout(READING_MAX, &mut applying).await {
            Ok(applied) => applied,
            Err(_) => {
                self.telemetry.reload(Reload::Waiting, unix_seconds());
                tracing::error!(
                    file = %self.path.display(),
                    "the configuration is not in force yet: a file that it names, of a secret or a \
                     certificate, does not answer"
                );
                applying.await
            }
        };
        match applied.map_err(JoinError::try_into_panic) {
            Ok(applied) => applied,
            Err(Ok(panic)) => resume_unwind(panic),
            // The process is ending.
            Err(Err(cancelled)) => Err(NotApplied(cancelled.to_string())),
        }
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests;
