//! What the directory of the configuration file tells.

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

/// Tells of whatever happens in the directory of `path`, until the watch is dropped.
pub(super) fn watch(
    path: &Path,
    changed: Arc<Notify>,
    writing: Arc<Writing>,
) -> notify::Result<RecommendedWatcher> {
    let name = path.file_name().map(ToOwned::to_owned);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error may hide a change.
        if let Ok(event) = &event {
            let is_ours = |path: &PathBuf| path.file_name() == name.as_deref();
            if event.paths.iter().any(is_ours) {
                writing.note(event.kind, Instant::now());
            }
            if is_reading(event.kind) {
                return;
            }
        }
        changed.notify_one();
    })?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    watcher.watch(directory.unwrap_or(Path::new(".")), RecursiveMode::NonRecursive)?;
    Ok(watcher)
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
