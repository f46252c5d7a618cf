//! A child process in a folder of its own, both gone when the owner is.
//!
//! Dropping kills the child, waits for it and removes the folder, also when a test panics. When the
//! test process itself is killed, nothing is dropped: for that a small shell (the guard) holds the
//! reading end of a pipe whose writing end only this process has. The pipe closes however this
//! process dies, and then the guard kills the child and removes the folder.
//!
//! `SLUICE_IT_KEEP=1` in the environment keeps the folders, to look at logs afterwards.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::{HarnessError, Result};

/// A folder with at most one running child.
#[derive(Debug)]
pub(crate) struct Supervised {
    dir: PathBuf,
    child: Option<Child>,
    /// Whether what the child started ends with it.
    is_family: bool,
    guard: Child,
    to_guard: Option<ChildStdin>,
}

impl Supervised {
    /// Makes the folder `sluice-it-<pid>-<n>-<name>` under the system's temporary folder.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let dir = make_dir(name)?;
        let kept = std::env::var_os("SLUICE_IT_KEEP").is_some();
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "sluice-it-guard"])
            .arg(if kept { Path::new("") } else { &dir })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(HarnessError::io("cannot start sh"))?;
        let to_guard = guard.stdin.take();
        Ok(Self { dir, child: None, is_family: false, guard, to_guard })
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts the child, its output in `output.log` of the folder. One that still runs is killed first.
    pub(crate) fn spawn(&mut self, command: &mut Command) -> Result<()> {
        let log = self.open_output()?;
        self.spawn_with(command, log)
    }

    /// The same, with its standard error elsewhere.
    pub(crate) fn spawn_with(
        &mut self,
        command: &mut Command,
        stderr: impl Into<Stdio>,
    ) -> Result<()> {
        self.kill();
        let child = command
            .stdin(Stdio::null())
            .stdout(self.open_output()?)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(HarnessError::io(format!("cannot start {:?}", command.get_program())))?;
        let group = if self.is_family { "-" } else { "" };
        self.tell_guard(&format!("{group}{}", child.id()));
        self.child = Some(child);
        Ok(())
    }

    fn open_output(&self) -> Result<fs::File> {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.output_path())
            .map_err(HarnessError::io("cannot open output.log"))
    }

    /// The same of one that starts others, which are in its process group and end with it.
    pub(crate) fn spawn_family(&mut self, command: &mut Command) -> Result<()> {
        self.kill();
        self.is_family = true;
        self.spawn(command)
    }

    /// Where the child's output goes.
    pub(crate) fn output_path(&self) -> PathBuf {
        self.dir.join("output.log")
    }

    /// The process id, if a child was started and has not been waited for.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The exit status, if the child has ended by itself.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Sends a signal by name (`TERM`, `STOP`, `CONT`, `HUP`).
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let Some(pid) = self.pid() else {
            return Err(HarnessError::Protocol(format!("no process to send SIG{name} to")));
        };
        let status = Command::new("sh")
            .args(["-c", "kill -\"$1\" \"$2\"", "sh", name, &pid.to_string()])
            .stderr(Stdio::null())
            .status()
            .map_err(HarnessError::io("cannot run kill"))?;
        if status.success() {
            return Ok(());
        }
        let gone = io::Error::from(io::ErrorKind::NotFound);
        Err(HarnessError::Io { what: format!("cannot send SIG{name} to {pid}"), source: gone })
    }

    /// Sends SIGTERM and waits for the end; kills after `limit`.
    ///
    /// # Cancellation
    /// Dropping the future leaves a child that has been told to end and is killed on drop.
    pub(crate) async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal("TERM")?;
        let started = Instant::now();
        loop {
            if let Some(status) = self.exited() {
                self.forget();
                return Ok(status);
            }
            if started.elapsed() > limit {
                self.kill();
                return Err(HarnessError::TimedOut {
                    what: "end after SIGTERM".into(),
                    after: limit,
                });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills the child with SIGKILL and waits for its end.
    pub(crate) fn kill(&mut self) {
        if self.is_family
            && let Some(pid) = self.pid()
        {
            let group = format!("-{pid}");
            Command::new("sh").args(["-c", "kill -KILL \"$1\"", "sh", &group]).status().ok();
        }
        if let Some(child) = self.child.as_mut() {
            // It may have ended by itself: then there is nothing to kill, and wait only reaps it.
            child.kill().ok();
            child.wait().ok();
        }
        self.forget();
    }

    /// The last lines of a file of the folder, for a failure's message.
    pub(crate) fn tail(path: &Path) -> String {
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let skipped = lines.len().saturating_sub(TAIL_LINES);
        lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
    }

    fn forget(&mut self) {
        self.child = None;
        self.tell_guard("");
    }

    fn tell_guard(&mut self, pid: &str) {
        if let Some(pipe) = self.to_guard.as_mut() {
            // A guard that is gone cannot protect, but must not fail the test either.
            pipe.write_all(format!("{pid}\n").as_bytes()).ok();
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
        self.to_guard = None;
        self.guard.wait().ok();
    }
}

/// Lines of a log that a failure shows.
const TAIL_LINES: usize = 60;

/// Reads one process id a line (an empty one: nothing runs), and at the end of its input kills the
/// last one and removes the folder. A Ctrl-C meant for the tests must not end it.
const GUARD: &str = r#"
trap '' INT TERM HUP
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null && sleep 0.2; fi
if [ -n "$1" ]; then rm -rf "$1"; fi
"#;

/// A folder whose name this process has not given before: who looks whether one has gone must not
/// find the next one.
fn make_dir(name: &str) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::temp_dir();
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = base.join(format!("sluice-it-{}-{n}-{name}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                return Err(HarnessError::Io {
                    what: format!("cannot make {}", dir.display()),
                    source,
                });
            }
        }
    }
}
