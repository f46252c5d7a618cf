//! The real binary, in front of real servers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::client;
use crate::error::{HarnessError, Result};
use crate::supervised::Supervised;

pub use checker::Checker;
pub use config::Config;
pub use http::HttpResponse;
pub use metrics::{Metrics, Sample};

mod checker;
mod config;
mod http;
mod metrics;

/// A running `sluice run --config FILE`. Dropping kills it; when a test panics, the end of its log is
/// shown.
#[derive(Debug)]
pub struct SluiceProcess {
    process: Supervised,
    listen: SocketAddr,
    admin: SocketAddr,
}

impl SluiceProcess {
    /// Starts Sluice on a file, and waits until `/readyz` says 200.
    ///
    /// # Errors
    /// When the binary is not built, ends at once, or is not ready in time.
    pub async fn start(config: &Config) -> Result<Self> {
        Self::start_with(config, &[]).await
    }

    /// As [`SluiceProcess::start`], with more environment variables.
    ///
    /// # Errors
    /// As [`SluiceProcess::start`].
    pub async fn start_with(config: &Config, environment: &[(&str, &str)]) -> Result<Self> {
        let mut sluice = Self::spawn(&config.render(), config.listen, config.admin, environment)?;
        sluice.wait_until_ready().await?;
        Ok(sluice)
    }

    /// Starts Sluice on a file that says to listen on these addresses, and does not wait: for files
    /// with faults, and backends that are not there.
    ///
    /// # Errors
    /// When the binary is not built or cannot be started.
    pub fn spawn(
        yaml: &str,
        listen: SocketAddr,
        admin: SocketAddr,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        Self::spawn_with(yaml, (listen, admin), environment, &[])
    }

    /// As [`SluiceProcess::spawn`], with more arguments of `sluice run`.
    ///
    /// # Errors
    /// As [`SluiceProcess::spawn`].
    pub fn spawn_with(
        yaml: &str,
        (listen, admin): (SocketAddr, SocketAddr),
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Self> {
        Self::spawn_binary(&binary()?, yaml, (listen, admin), environment, arguments)
    }

    /// As [`SluiceProcess::spawn_with`], of this program: to compare it with another build of Sluice.
    ///
    /// # Errors
    /// As [`SluiceProcess::spawn`].
    pub fn spawn_binary(
        program: &Path,
        yaml: &str,
        (listen, admin): (SocketAddr, SocketAddr),
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Self> {
        let mut process = Supervised::new("sluice")?;
        let mut command = run(program, &process, yaml)?;
        process.spawn(command.args(arguments).envs(environment.iter().copied()))?;
        Ok(Self { process, listen, admin })
    }

    /// Starts Sluice on a file, with its log written elsewhere than to [`SluiceProcess::log_path`].
    ///
    /// # Errors
    /// As [`SluiceProcess::start`].
    pub async fn start_logging_to(config: &Config, log: impl Into<Stdio>) -> Result<Self> {
        let mut process = Supervised::new("sluice")?;
        process.spawn_with(&mut run(&binary()?, &process, &config.render())?, log)?;
        let mut sluice = Self { process, listen: config.listen, admin: config.admin };
        sluice.wait_until_ready().await?;
        Ok(sluice)
    }

    /// Waits until `/readyz` says 200.
    ///
    /// # Errors
    /// When Sluice ends, or is not ready in time.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < READY_LIMIT {
            if self.process.exited().is_some() {
                let log_tail = Supervised::tail(&self.log_path());
                return Err(HarnessError::NotStarted { what: "sluice".into(), log_tail });
            }
            if self.http_get("/readyz").await.is_ok_and(|response| response.status == 200) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        let what = format!("sluice ready; its log ends:\n{}", self.log_tail());
        Err(HarnessError::TimedOut { what, after: READY_LIMIT })
    }

    /// Where clients connect.
    #[must_use]
    pub fn listen_addr(&self) -> SocketAddr {
        self.listen
    }

    /// Where the HTTP side listens.
    #[must_use]
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin
    }

    /// The process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// The file it runs on.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.process.dir().join(CONFIG_FILE)
    }

    /// What it writes to its standard output and error.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.process.output_path()
    }

    /// The whole log by now: of whatever has happened, once Sluice's thread for it sleeps.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        let asked = Instant::now();
        while self.pid().is_some_and(is_writing_its_log) && asked.elapsed() < LOG_LIMIT {
            std::thread::yield_now();
        }
        let bytes =
            std::fs::read(self.log_path()).map_err(HarnessError::io("cannot read the log"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces the file as careful editors do: a new file, renamed over the old one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_config(&self, yaml: &str) -> Result<()> {
        let path = self.config_path();
        let beside = path.with_extension("new");
        std::fs::write(&beside, yaml).map_err(HarnessError::io("cannot write the config"))?;
        std::fs::rename(&beside, &path).map_err(HarnessError::io("cannot replace the config"))
    }

    /// Overwrites the file where it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_config_in_place(&self, yaml: &str) -> Result<()> {
        std::fs::write(self.config_path(), yaml)
            .map_err(HarnessError::io("cannot write the config"))
    }

    /// `/metrics`, read.
    ///
    /// # Errors
    /// When it is not answered or not in the Prometheus text format.
    pub async fn metrics(&self) -> Result<Metrics> {
        Metrics::of(self.admin).await
    }

    /// Waits until the metrics satisfy a condition, and gives them.
    ///
    /// # Errors
    /// When they do not within `limit`; `what` then says what was waited for.
    pub async fn wait_for_metrics(
        &self,
        what: &str,
        limit: Duration,
        condition: impl Fn(&Metrics) -> bool,
    ) -> Result<Metrics> {
        let started = Instant::now();
        loop {
            let metrics = self.metrics().await?;
            if condition(&metrics) {
                return Ok(metrics);
            }
            if started.elapsed() > limit {
                return Err(HarnessError::TimedOut { what: what.into(), after: limit });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// GET of a path on the admin address.
    ///
    /// # Errors
    /// When nothing answers.
    pub async fn http_get(&self, path: &str) -> Result<HttpResponse> {
        http::request(self.admin, "GET", path).await
    }

    /// POST without a body.
    ///
    /// # Errors
    /// When nothing answers.
    pub async fn http_post(&self, path: &str) -> Result<HttpResponse> {
        http::request(self.admin, "POST", path).await
    }

    /// Sends a signal by name: `HUP`, `TERM`, `STOP`, `CONT`.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.signal(name)
    }

    /// The exit status, if it has ended by itself.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.process.exited()
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Errors
    /// When it does not end within `limit`; it is killed then.
    pub async fn stop(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.terminate(limit).await
    }

    /// SIGKILL, and waits until it is gone: its ports are free then.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Waits until it has ended by itself.
    ///
    /// # Errors
    /// When it has not within `limit`.
    pub async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.exited() {
                return Ok(status);
            }
            if started.elapsed() > limit {
                let what = format!("the end of sluice; its log ends:\n{}", self.log_tail());
                return Err(HarnessError::TimedOut { what, after: limit });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn log_tail(&self) -> String {
        Supervised::tail(&self.log_path())
    }
}

impl Drop for SluiceProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (path, tail) = (self.log_path(), self.log_tail());
            eprintln!("--- the end of {} (SLUICE_IT_KEEP=1 keeps it) ---\n{tail}", path.display());
        }
    }
}

/// `sluice run` of a file in the process's folder.
fn run(program: &Path, process: &Supervised, yaml: &str) -> Result<Command> {
    let file = process.dir().join(CONFIG_FILE);
    std::fs::write(&file, yaml).map_err(HarnessError::io("cannot write the config"))?;
    let mut command = Command::new(program);
    command
        .arg("run")
        .arg("--config")
        .arg(&file)
        .env("SLUICE_PROBE_PASSWORD", client::PROBE_PASSWORD)
        .current_dir(process.dir());
    Ok(command)
}

/// Whether the thread `log` of a process does anything but wait for lines.
fn is_writing_its_log(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.split_once(" (log) ").is_some_and(|(_, state)| !state.starts_with('S'))
    })
}

/// `SLUICE_BIN`, else the binary that cargo built beside the test that is running.
///
/// # Errors
/// When there is none.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SLUICE_BIN") {
        return Ok(PathBuf::from(path));
    }
    let this = std::env::current_exe().map_err(HarnessError::io("cannot find this program"))?;
    // target/debug/deps/test-…: the same profile first, then the other one.
    let profiles = this.ancestors().skip(1).take(2);
    let others = this.ancestors().skip(3).take(1);
    profiles
        .map(Path::to_owned)
        .chain(others.flat_map(|target| ["debug", "release"].map(|p| target.join(p))))
        .map(|dir| dir.join("sluice"))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| HarnessError::Missing {
            what: "the binary sluice".into(),
            remedy: "run cargo build -p sluice, or set SLUICE_BIN",
        })
}

const CONFIG_FILE: &str = "sluice.yaml";
const READY_LIMIT: Duration = Duration::from_secs(30);
const LOG_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
