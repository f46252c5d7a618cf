//! Sluice in front of the servers, and the ways in which one process follows another.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use benches::Result;
use benches::way::Way;
use integration::scenario::wait_for_signal;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use crate::weathers::Weather;

/// The process that runs, and the file for the next one.
pub(crate) struct Sluice {
    config: Config,
    process: SluiceProcess,
    /// What those before it have logged.
    before: String,
}

impl Sluice {
    /// Starts it, unless the way is one without it.
    pub(crate) async fn start(
        servers: &Topology,
        weather: &Weather,
        way: Way,
    ) -> Result<Option<Self>> {
        match way {
            Way::Adaptive | Way::Binary => {}
            Way::Direct => return Ok(None),
        }
        let rules = format!(
            "- {{ name: job, match: {{ app: etl }}, max_delay: {}, permanent: true }}\n\
             - {{ name: online, match: {{ app: web }}, max_delay: 120s, permanent: true }}",
            weather.max_delay
        );
        let pacing = format!("pacing: {}", way.as_str());
        let mut config = Config::new(servers)?.cluster(&pacing).rules(&rules);
        let socket = servers.primary.dir().join("takeover.sock");
        config.top = format!("takeover_socket: {}", socket.display());
        let process = spawn(&config, &[]).await?;
        wait_for_signal(&process, "lag", 1.0).await?;
        Ok(Some(Self { config, process, before: String::new() }))
    }

    pub(crate) fn listen(&self) -> SocketAddr {
        self.config.listen
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.config.admin
    }

    /// As an update does it: the next process takes over what the running one listens on.
    pub(crate) async fn take_over(&mut self) -> Result<()> {
        let next = spawn(&self.config, &["--takeover"]).await?;
        let mut before = std::mem::replace(&mut self.process, next);
        before.ended(ENDS_WITHIN).await?;
        self.before += &before.log()?;
        Ok(())
    }

    /// As a crash does it.
    pub(crate) async fn kill_and_start(&mut self) -> Result<()> {
        self.process.signal("KILL")?;
        self.process.ended(ENDS_WITHIN).await?;
        self.before += &self.process.log()?;
        self.process = spawn(&self.config, &[]).await?;
        Ok(())
    }

    pub(crate) fn keep_log(&self, file: &Path) -> Result<()> {
        Ok(std::fs::write(file, format!("{}{}", self.before, self.process.log()?))?)
    }
}

async fn spawn(config: &Config, arguments: &[&str]) -> Result<SluiceProcess> {
    let addresses = (config.listen, config.admin);
    let environment = [("RUST_LOG", "info")];
    let mut process =
        SluiceProcess::spawn_with(&config.render(), addresses, &environment, arguments)?;
    process.wait_until_ready().await?;
    Ok(process)
}

const ENDS_WITHIN: Duration = Duration::from_secs(30);
