//! Programs of others that work on a database: schema changes, archivers, dumps.
//!
//! `scripts/install-tools` brings them. Each runs in a folder of its own, and is killed with its
//! owner.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::{HarnessError, Result};
use crate::server::binaries;
use crate::supervised::Supervised;

/// A tool that runs, or has ended.
#[derive(Debug)]
pub struct ToolProcess {
    process: Supervised,
    name: String,
}

impl ToolProcess {
    /// Starts a program; its folder is also where it stands.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start<A: AsRef<OsStr>>(program: &Path, arguments: &[A]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::spawn(&mut command)
    }

    /// The same of a command that has more to it than arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        let path = Path::new(command.get_program());
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut process = Supervised::new(&name)?;
        command.current_dir(process.dir());
        process.spawn(command)?;
        Ok(Self { process, name })
    }

    /// The same of a program that starts others: all of them end with it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn_family(command: &mut Command) -> Result<Self> {
        let path = Path::new(command.get_program());
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut process = Supervised::new(&name)?;
        // What they leave in the folder for temporary files goes with it.
        command.current_dir(process.dir()).env("TMPDIR", process.dir());
        process.spawn_family(command)?;
        Ok(Self { process, name })
    }

    /// Its folder; gone with it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.process.dir()
    }

    /// The exit status, if it has ended.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.process.exited()
    }

    /// What it has said by now.
    #[must_use]
    pub fn output(&self) -> String {
        let said = std::fs::read(self.process.output_path()).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it has not ended within `limit`; it is killed when the owner drops it.
    pub async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.exited() {
                return Ok(status);
            }
            if started.elapsed() > limit {
                let what = format!("the end of {}, which has said:\n{}", self.name, self.output());
                return Err(HarnessError::TimedOut { what, after: limit });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits for its end, which must be a good one; gives what it has said.
    ///
    /// # Errors
    /// When it fails, or has not ended within `limit`.
    pub async fn succeeded(&mut self, limit: Duration) -> Result<String> {
        let status = self.ended(limit).await?;
        if status.success() {
            return Ok(self.output());
        }
        let what = format!("{}, {status}", self.name);
        Err(HarnessError::NotStarted { what, log_tail: self.output() })
    }
}

/// A tool by its name: of the host, or `mysqldump` and `mysql` of the MySQL that was unpacked.
///
/// # Errors
/// When it is not there.
pub fn program(name: &str) -> Result<PathBuf> {
    binaries::tool(name)
}

/// The gh-ost that `SLUICE_GHOST` names; the part is played by [`crate::ghost`] where there is
/// none.
#[must_use]
pub fn real_ghost() -> Option<PathBuf> {
    std::env::var_os("SLUICE_GHOST").map(PathBuf::from)
}

const POLL: Duration = Duration::from_millis(20);
