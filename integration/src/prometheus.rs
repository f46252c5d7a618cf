//! Debian's Prometheus, which scrapes a Sluice. `scripts/install-prometheus` brings it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{HarnessError, Result};
use crate::ports::{free_port, loopback};
use crate::scenario::wait_until;
use crate::server::binaries::cache_dir;
use crate::sluice::HttpResponse;
use crate::supervised::Supervised;

/// A Prometheus of its own, with its data in its folder. Dropping kills it.
#[derive(Debug)]
pub struct Prometheus {
    _process: Supervised,
    addr: SocketAddr,
}

impl Prometheus {
    /// Starts one that looks at `target` twice a second, under the job `sluice`, and evaluates the
    /// rules of a file as often.
    ///
    /// # Errors
    /// When it is not installed, or does not answer in time.
    pub async fn start(target: SocketAddr, rules: &Path) -> Result<Self> {
        let mut process = Supervised::new("prometheus")?;
        let addr = loopback(free_port()?);
        let file = process.dir().join("prometheus.yaml");
        let rules = rules.display();
        let text = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }}\n\
             rule_files: [\"{rules}\"]\n\
             scrape_configs:\n  \
             - job_name: sluice\n    \
             static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        std::fs::write(&file, text).map_err(HarnessError::io("cannot write prometheus.yaml"))?;
        let mut command = Command::new(program("prometheus")?);
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", process.dir().join("data").display()))
            .arg(format!("--web.listen-address={addr}"))
            .arg("--log.level=warn")
            .current_dir(process.dir());
        process.spawn(&mut command)?;
        let ready = || async {
            Ok(HttpResponse::of(addr, "/-/ready").await.is_ok_and(|answer| answer.status == 200))
        };
        wait_until("Prometheus is ready", READY_LIMIT, ready).await?;
        Ok(Self { _process: process, addr })
    }

    /// What a query gives now, as Prometheus writes it: JSON.
    ///
    /// # Errors
    /// When it does not answer; also an answer that is an error, with its words.
    pub async fn query(&self, expr: &str) -> Result<String> {
        self.get(&format!("/api/v1/query?query={}", encoded(expr))).await
    }

    /// The body at a path.
    ///
    /// # Errors
    /// As [`Prometheus::query`].
    pub async fn get(&self, path: &str) -> Result<String> {
        let answer = HttpResponse::of(self.addr, path).await?;
        if answer.status == 200 {
            return Ok(answer.body);
        }
        Err(HarnessError::Malformed(format!("{path}: {}: {}", answer.status, answer.body)))
    }
}

/// `prometheus` or `promtool`, where `scripts/install-prometheus` has put it.
///
/// # Errors
/// When it is not there.
pub fn program(name: &str) -> Result<PathBuf> {
    let path = cache_dir()?.join("prometheus").join(name);
    if path.is_file() {
        return Ok(path);
    }
    let what = format!("{}: run scripts/install-prometheus", path.display());
    Err(HarnessError::NotStarted { what, log_tail: String::new() })
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

const READY_LIMIT: Duration = Duration::from_secs(20);
