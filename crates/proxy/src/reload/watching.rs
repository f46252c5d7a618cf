//! What the configuration file and its directories tell.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a file that is being written is waited for: whoever keeps it open has saved it by then.
const WRITING_MAX: Duration = Duration::from_secs(5);

/// Whether somebody writes the file in place.
#[derive(Debug, Default)]
pub(super) struct Writing(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    /// It has been begun, and not closed.
    writing: Option<Instant>,
    /// The first time since the last reading that was taken that one was not.
    put_off: Option<Instant>,
}

impl Writing {
    /// Whether what is in the file may be half of what it is to be, and is waited for: somebody who
    /// opens it again and again must not keep it from being read for ever.
    pub(super) fn goes_on(&self, now: Instant) -> bool {
        let Since { writing, put_off } = &mut *self.0.lock();
        let lately = |since: Instant| now.saturating_duration_since(since) < WRITING_MAX;
        writing.is_some_and(lately) && lately(*put_off.get_or_insert(now))
    }

    /// A reading has been taken for the file.
    pub(super) fn is_read(&self) {
        self.0.lock().put_off = None;
    }

    pub(super) fn note(&self, kind: EventKind, now: Instant) {
        let Since { writing, .. } = &mut *self.0.lock();
        match kind {
            EventKind::Modify(ModifyKind::Data(_)) => {
                writing.get_or_insert(now);
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Create(_)
            | EventKind::Remove(_) => *writing = None,
            EventKind::Any | EventKind::Access(_) | EventKind::Modify(_) | EventKind::Other => {}
        }
    }
}

/// The watch of a path, which goes where that leads.
pub(super) struct Watch {
    path: PathBuf,
    changed: Arc<Notify>,
    writing: Arc<Writing>,
    target: Option<Target>,
    watcher: Option<RecommendedWatcher>,
}

/// The file that a path led to when it was last watched.
#[derive(PartialEq, Eq)]
struct Target {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Watch {
    pub(super) fn new(path: PathBuf, changed: Arc<Notify>, writing: Arc<Writing>) -> Self {
        Self { path, changed, writing, target: None, watcher: None }
    }

    /// Watches what the path leads to now. While that is nothing, its directories are still watched.
    pub(super) fn follow(&mut self) {
        let Ok(target) = Target::of(&self.path) else { return };
        if self.target.as_ref() == Some(&target) {
            return;
        }
        match self.watch(&target) {
            // The one before sees what happens until this one does.
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => tracing::warn!(
                file = %self.path.display(), %error,
                "cannot watch the configuration; it is compared every half second"
            ),
        }
        self.target = Some(target);
    }

    /// Tells of whatever happens in the directory of the path and in that of its file, and to the file
    /// itself: one that is mounted there is written elsewhere.
    fn watch(&self, target: &Target) -> notify::Result<RecommendedWatcher> {
        let beside = directory(&self.path);
        let names = self.path.file_name().map(|name| beside.join(name));
        let ours: Vec<PathBuf> =
            names.into_iter().chain([self.path.clone(), target.path.clone()]).collect();
        let (changed, writing) = (self.changed.clone(), self.writing.clone());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An error may hide a change.
            if let Ok(event) = &event {
                if event.paths.iter().any(|path| ours.contains(path)) {
                    writing.note(event.kind, Instant::now());
                }
                if is_reading(event.kind) {
                    return;
                }
            }
            changed.notify_one();
        })?;
        for watched in [beside, directory(&target.path), &target.path] {
            watcher.watch(watched, RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let file = fs::metadata(&path)?;
        Ok(Self { path, device: file.dev(), inode: file.ino() })
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether somebody, perhaps this process, has only looked.
fn is_reading(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}
