//! `sluice run`: boot, serve, drain.

use std::io;
use std::net::TcpListener;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admin::AdminState;
use policy::Config;
use proxy::cluster::Cluster;
use proxy::probe::ClusterProbes;
use proxy::reload::{self, ConfigWatcher, Loaded};
use proxy::server::Server;
use proxy::telemetry::{Telemetry, TelemetryConfig};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::cli::{LogFormat, Run};

/// What is logged unless RUST_LOG says otherwise.
const LOG_FILTER: &str = "info";

/// What threads for slow things get for finishing when the process ends.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200);

pub(crate) fn run(run: &Run) -> ExitCode {
    start_log(run.log_format);
    let loaded = match reload::load(&run.config) {
        Ok(loaded) => loaded,
        Err(error) => {
            for line in error.lines(&run.config) {
                tracing::error!("{line}");
            }
            return ExitCode::FAILURE;
        }
    };
    match serve(run, &loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// Everything but relaying runs on one thread: accepting, timers, probes, the file, the admin port.
fn serve(run: &Run, loaded: &Loaded) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let served = runtime.block_on(async {
        let running = Running::boot(run, loaded)?;
        running.until_told().await
    });
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    served
}

/// The proxy and what is around it.
struct Running {
    server: Server,
    watcher: ConfigWatcher,
    drain_timeout: watch::Receiver<Duration>,
    draining: Arc<AtomicBool>,
    signals: Signals,
}

/// What the operator may send.
struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Running {
    fn boot(run: &Run, loaded: &Loaded) -> Result<Self, String> {
        let config = &loaded.config;
        // Before anybody is let in: whatever may fail.
        let signals = Signals::new().map_err(|error| format!("cannot take signals: {error}"))?;
        let address = config.admin.listen;
        let admin = TcpListener::bind(address)
            .map_err(|error| format!("admin: cannot listen on {address}: {error}"))?;
        let max_apps = usize::try_from(config.metrics.max_apps).unwrap_or(usize::MAX);
        let telemetry = Telemetry::new(TelemetryConfig { max_apps });
        let workers = run.workers.unwrap_or_else(cores);
        let server =
            Server::start(config, &telemetry, workers).map_err(|error| error.to_string())?;
        let clusters: Arc<[Arc<Cluster>]> = server.clusters().into();
        let probes = ClusterProbes::start(&clusters)
            .map_err(|error| format!("the probes cannot log in: {error}"))?;
        let draining = Arc::new(AtomicBool::new(false));
        serve_admin(
            admin,
            AdminState {
                clusters: clusters.clone(),
                telemetry: telemetry.clone(),
                draining: draining.clone(),
            },
        );
        for (cluster, address) in clusters.iter().zip(server.addresses()) {
            tracing::info!(cluster = %cluster.name, %address, "accepting clients");
        }
        let (drain_timeout, listener) = watch::channel(config.drain_timeout);
        let watcher = watch_file(run.config.clone(), loaded, telemetry, {
            Follower { clusters, probes, drain_timeout }
        });
        Ok(Self { server, watcher, drain_timeout: listener, draining, signals })
    }

    /// Serves until a signal wants the end, then drains.
    async fn until_told(self) -> Result<(), String> {
        let Self { server, watcher, drain_timeout, draining, mut signals } = self;
        while signals.next().await == Told::Reload {
            watcher.reload_now();
        }
        draining.store(true, Ordering::Relaxed);
        let timeout = *drain_timeout.borrow();
        tracing::info!(?timeout, "draining; a second signal ends it");
        let hurried = async { while signals.next().await == Told::Reload {} };
        tokio::select! {
            () = server.drain(timeout) => {
                tracing::info!("drained");
                Ok(())
            }
            () = hurried => Err("ended by a second signal, before all transactions were".to_owned()),
        }
    }
}

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Reload,
    End,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.hangup.recv() => Told::Reload,
            _ = self.interrupt.recv() => Told::End,
            _ = self.terminate.recv() => Told::End,
        }
    }
}

/// What a new configuration goes to.
struct Follower {
    clusters: Arc<[Arc<Cluster>]>,
    probes: ClusterProbes,
    drain_timeout: watch::Sender<Duration>,
}

impl Follower {
    fn apply(&mut self, config: &Config) {
        for cluster in self.clusters.iter() {
            if let Some(policy) = config.cluster(&cluster.name) {
                cluster.apply(policy.clone());
            }
        }
        self.probes.follow();
        self.drain_timeout.send_replace(config.drain_timeout);
    }
}

fn watch_file(
    path: PathBuf,
    loaded: &Loaded,
    telemetry: Arc<Telemetry>,
    mut follower: Follower,
) -> ConfigWatcher {
    ConfigWatcher::spawn(path, loaded, telemetry, move |config| follower.apply(config))
}

fn serve_admin(listener: TcpListener, state: AdminState) {
    let address = listener.local_addr();
    tokio::spawn(async move {
        match address {
            Ok(address) => tracing::info!(%address, "admin port: /metrics, /healthz, /readyz, /"),
            Err(error) => tracing::warn!(%error, "the admin port has no address"),
        }
        if let Err(error) = admin::serve(listener, state).await {
            tracing::error!(%error, "the admin port is gone; traffic is not affected");
        }
    });
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
