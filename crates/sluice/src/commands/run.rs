//! `sluice run`: boot, serve, drain.

use std::io;
use std::net::TcpListener;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admin::AdminState;
use proxy::cluster::Cluster;
use proxy::descriptors;
use proxy::follower::Follower;
use proxy::inherited::Inherited;
use proxy::probe::ClusterProbes;
use proxy::reload::{self, ConfigWatcher, Loaded};
use proxy::server::{Leaving, Server};
use proxy::takeover::{self, Confirmation, Offer};
use proxy::telemetry::{Telemetry, TelemetryConfig};
use proxy::unbound::cannot_listen;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

use crate::cli::{LogFormat, Run};
use crate::log;

/// What is logged unless RUST_LOG says otherwise.
const LOG_FILTER: &str = "info";

/// What threads for slow things get for finishing when the process ends.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200);

pub(crate) fn run(run: &Run) -> ExitCode {
    start_log(run.log_format);
    let loaded = match reload::load_to_run(&run.config) {
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
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).fmt_fields(log::one_line()).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

/// Everything but relaying runs on one thread: accepting, timers, probes, the file, the admin port.
fn serve(run: &Run, loaded: &Loaded) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let served = runtime.block_on(async {
        let (mut inherited, confirmation) = inherit(run, loaded).await?;
        let running = Running::boot(run, loaded, &mut inherited)?;
        let left = inherited.left();
        if !left.is_empty() {
            tracing::warn!(?left, "inherited sockets on which nothing is configured to listen");
        }
        drop(inherited);
        confirm(confirmation).await;
        running.until_told().await
    });
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    served
}

/// Listening sockets that are open already: the service manager's, or those of the process before.
async fn inherit(run: &Run, loaded: &Loaded) -> Result<(Inherited, Option<Confirmation>), String> {
    if !run.takeover {
        let inherited = Inherited::from_service_manager()
            .map_err(|error| format!("a socket of the service manager: {error}"))?;
        return Ok((inherited, None));
    }
    let Some(path) = &loaded.config.takeover_socket else {
        return Err("--takeover needs the key takeover_socket in the configuration".to_owned());
    };
    let shown = path.display();
    match takeover::ask(path).await {
        Ok(Some((inherited, confirmation))) => {
            tracing::info!(path = %shown, "taking over the listeners of the running process");
            Ok((inherited, Some(confirmation)))
        }
        Ok(None) => {
            tracing::info!(path = %shown, "nobody to take over from");
            Ok((Inherited::default(), None))
        }
        Err(error) => Err(format!("cannot take over by {shown}: {error}")),
    }
}

/// Tells the process before that this one serves.
async fn confirm(confirmation: Option<Confirmation>) {
    if let Some(confirmation) = confirmation
        && let Err(error) = confirmation.confirm().await
    {
        tracing::warn!(%error, "the process before is gone; this one serves");
    }
}

/// The proxy and what is around it.
struct Running {
    server: Server,
    /// Ends when another process has the listeners; `None` where it cannot ask.
    taken: Option<JoinHandle<()>>,
    admin: JoinHandle<()>,
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
    fn boot(run: &Run, loaded: &Loaded, inherited: &mut Inherited) -> Result<Self, String> {
        let config = &loaded.config;
        // Before anybody is let in: whatever may fail.
        let signals = Signals::new().map_err(|error| format!("cannot take signals: {error}"))?;
        let address = config.admin.listen;
        let admin = inherited
            .take_tcp(address)
            .map_or_else(|| TcpListener::bind(address), Ok)
            .map_err(|error| format!("admin: {}", cannot_listen(&address, &error)))?;
        descriptors::raise_limit(config);
        let max_apps = usize::try_from(config.metrics.max_apps).unwrap_or(usize::MAX);
        let telemetry = Telemetry::new(TelemetryConfig { max_apps });
        let workers = run.workers.unwrap_or_else(cores);
        let server =
            Server::start(config, &telemetry, workers, inherited).map_err(|e| e.to_string())?;
        let clusters: Arc<[Arc<Cluster>]> = server.clusters().into();
        let probes = ClusterProbes::start(&clusters)
            .map_err(|error| format!("the probes cannot log in: {error}"))?;
        let draining = Arc::new(AtomicBool::new(false));
        let taken = match &config.takeover_socket {
            Some(path) => Some(offer(path, &server, &admin, inherited)?),
            None => None,
        };
        let admin = serve_admin(
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
        let (follower, drain_timeout) = Follower::new(config, clusters, probes);
        let watcher = watch_file(run.config.clone(), loaded, telemetry, follower);
        Ok(Self { server, taken, admin, watcher, drain_timeout, draining, signals })
    }

    /// Serves until a signal wants the end, then drains.
    async fn until_told(self) -> Result<(), String> {
        let Self { server, mut taken, admin, watcher, drain_timeout, draining, mut signals } = self;
        let leaving = loop {
            tokio::select! {
                told = signals.next() => match told {
                    Told::Reload => watcher.reload_now(),
                    Told::End => break Leaving::Closed,
                },
                () = successor(&mut taken) => break Leaving::ToSuccessor,
            }
        };
        match leaving {
            // The next process answers there.
            Leaving::ToSuccessor => admin.abort(),
            // It holds the listeners open.
            Leaving::Closed => taken.iter().for_each(JoinHandle::abort),
        }
        draining.store(true, Ordering::Relaxed);
        let timeout = *drain_timeout.borrow();
        tracing::info!(?timeout, ?leaving, "draining; a second signal ends it");
        let hurried = async { while signals.next().await == Told::Reload {} };
        tokio::select! {
            () = server.drain(timeout, leaving) => {
                tracing::info!("drained");
                Ok(())
            }
            () = hurried => Err("ended by a second signal, before all transactions were".to_owned()),
        }
    }
}

/// Resolves when another process has taken the listeners.
async fn successor(taken: &mut Option<JoinHandle<()>>) {
    if let Some(task) = taken {
        let ended = task.await;
        *taken = None;
        if ended.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

/// Lets the next process ask for the listeners of this one.
fn offer(
    path: &Path,
    server: &Server,
    admin: &TcpListener,
    inherited: &mut Inherited,
) -> Result<JoinHandle<()>, String> {
    let fault = |error: io::Error| format!("takeover_socket {}: {error}", path.display());
    let offer = Offer::bind(path, inherited).map_err(fault)?;
    let mut sockets = server.share_listeners().map_err(fault)?;
    sockets.push(admin.try_clone().map_err(fault)?.into());
    Ok(tokio::spawn(offer.taken(sockets)))
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

fn watch_file(
    path: PathBuf,
    loaded: &Loaded,
    telemetry: Arc<Telemetry>,
    mut follower: Follower,
) -> ConfigWatcher {
    ConfigWatcher::spawn(path, loaded, telemetry, move |config| follower.apply(config))
}

fn serve_admin(listener: TcpListener, state: AdminState) -> JoinHandle<()> {
    let address = listener.local_addr();
    tokio::spawn(async move {
        match address {
            Ok(address) => tracing::info!(%address, "admin port: /metrics, /healthz, /readyz, /"),
            Err(error) => tracing::warn!(%error, "the admin port has no address"),
        }
        if let Err(error) = admin::serve(listener, state).await {
            tracing::error!(%error, "the admin port is gone; traffic is not affected");
        }
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
