//! `sluice run`: boot, serve, drain.

mod signals;

use std::io;
use std::net::TcpListener;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admin::{Access, AdminState, Door};
use fleet::RuntimeRules;
use history::{History, watch::Watch};
use policy::Config;
use proxy::cluster::Cluster;
use proxy::descriptors;
use proxy::follower::Follower;
use proxy::inherited::Inherited;
use proxy::probe::ClusterProbes;
use proxy::reload::{self, ConfigWatcher, Loaded, NotApplied};
use proxy::server::{Drained, Leaving, Patience, Server};
use proxy::takeover::budgets::Telling;
use proxy::takeover::{self, Confirmation, Offer, Offered};
use proxy::telemetry::{Telemetry, TelemetryConfig};
use proxy::unbound::cannot_listen;
use proxy::workers::Threads;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::signals::{Hangups, Signals, Told};
use super::door::{self, Failure};
use crate::cli::Run;
use crate::log::Log;

/// What threads for slow things get for finishing when the process ends.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(200);

pub(crate) fn run(run: &Run) -> ExitCode {
    let log = match Log::start(run.log_format) {
        Ok(log) => log,
        Err(error) => {
            return door::complain(&Failure::refused(format!("cannot log: {error}")));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let begun = runtime.and_then(|runtime| Ok((Hangups::take(&runtime)?, runtime)));
    let (hangups, runtime) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            tracing::error!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let loaded = match reload::load_to_run(&run.config) {
        Ok(loaded) => loaded,
        Err(error) => {
            for line in error.lines(&run.config) {
                tracing::error!("{line}");
            }
            return ExitCode::FAILURE;
        }
    };
    match serve(run, &loaded, &log, (runtime, hangups)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything but relaying and the admin port runs on one thread: accepting, timers, probes, the
/// file.
fn serve(
    run: &Run,
    loaded: &Loaded,
    log: &Log,
    (runtime, hangups): (Runtime, Hangups),
) -> Result<(), String> {
    let served = runtime.block_on(async {
        let (mut inherited, confirmation) = inherit(run, loaded).await?;
        let signals = Signals::new(hangups);
        let signals = signals.map_err(|error| format!("cannot take signals: {error}"))?;
        let running = Running::boot(run, loaded, &mut inherited, (log, signals))?;
        let left = inherited.left();
        if !left.is_empty() {
            tracing::warn!(?left, "inherited sockets on which nothing is configured to listen");
        }
        drop(inherited);
        confirm(confirmation, &running).await;
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
async fn confirm(confirmation: Option<Confirmation>, running: &Running) {
    let Some(confirmation) = confirmation else { return };
    let history = running.history.handle();
    match confirmation.confirm().await {
        // What it still has at the server counts here until it has ended.
        Ok(stream) => {
            let following = takeover::budgets::follow(stream, running.clusters.clone());
            drop(tokio::spawn(async move {
                following.await;
                history.predecessor_has_ended();
            }));
        }
        Err(error) => {
            tracing::warn!(%error, "the process before is gone; this one serves");
            history.predecessor_has_ended();
        }
    }
}

/// The proxy and what is around it.
struct Running {
    server: Server,
    clusters: Arc<[Arc<Cluster>]>,
    next: Successor,
    admin: Door,
    rules: RulesTask,
    watcher: ConfigWatcher,
    /// Until the last client has left.
    history: Watch,
    drain_timeout: watch::Receiver<Duration>,
    draining: Arc<AtomicBool>,
    signals: Signals,
}

/// The runtime rules, while they are kept.
struct RulesTask {
    handle: RuntimeRules,
    task: JoinHandle<()>,
}

impl RulesTask {
    fn spawn(rules: RuntimeRules) -> Self {
        Self { task: tokio::spawn(rules.clone().keep()), handle: rules }
    }
}

impl Drop for RulesTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The way by which another process gets the listeners.
struct Successor {
    /// Ends when another process has taken what is offered; `None` where it cannot ask.
    taken: Option<JoinHandle<Option<UnixStream>>>,
    offers: watch::Sender<Offered>,
    /// The admin's listener, which is on offer to the last. `None`: it has been taken.
    admin: Option<TcpListener>,
    /// What is said to that process.
    telling: Option<Telling>,
}

impl Running {
    fn boot(
        run: &Run,
        loaded: &Loaded,
        inherited: &mut Inherited,
        (log, signals): (&Log, Signals),
    ) -> Result<Self, String> {
        let config = &loaded.config;
        // Before anybody is let in: whatever may fail.
        let address = config.admin.listen;
        let admin = inherited
            .take_tcp(address)
            .map_or_else(|| TcpListener::bind(address), Ok)
            .map_err(|error| format!("admin: {}", cannot_listen(&address, &error)))?;
        descriptors::raise_limit(config);
        let telemetry = telemetry(config, log);
        let threads = Threads { max: run.workers.unwrap_or_else(cores), full: run.worker_full };
        let server =
            Server::start(config, &telemetry, threads, inherited).map_err(|e| e.to_string())?;
        let clusters: Arc<[Arc<Cluster>]> = server.clusters().into();
        // Nobody is let in before this thread waits: what stood before the restart stands by then.
        let rules = RuntimeRules::kept_in(config.state_dir.as_deref(), &clusters, &telemetry);
        let probes = ClusterProbes::start(&clusters)
            .map_err(|error| format!("the probes cannot log in: {error}"))?;
        let rules = RulesTask::spawn(rules);
        let state_dir = config.state_dir.as_deref();
        let (history, watch) = History::start(state_dir, &clusters, &telemetry)
            .map_err(|error| format!("history: {error}"))?;
        let draining = Arc::new(AtomicBool::new(false));
        let next =
            Successor::invite(config.takeover_socket.as_deref(), &server, &admin, inherited)?;
        let access = Arc::new(Access::new(&config.admin));
        let admin = serve_admin(
            admin,
            AdminState {
                clusters: clusters.clone(),
                telemetry: telemetry.clone(),
                access: access.clone(),
                rules: rules.handle.clone(),
                history,
                draining: draining.clone(),
            },
        )?;
        for (cluster, address) in clusters.iter().zip(server.addresses()) {
            tracing::info!(cluster = %cluster.name, %address, "accepting clients");
        }
        let (follower, drain_timeout) = Follower::new(config, clusters.clone(), probes);
        let watcher = watch_file(run.config.clone(), loaded, telemetry, follower, access);
        Ok(Self {
            server,
            clusters,
            next,
            admin,
            rules,
            watcher,
            history: watch,
            drain_timeout,
            draining,
            signals,
        })
    }

    /// Serves until a signal wants the end, or another process has the listeners; then drains.
    async fn until_told(mut self) -> Result<(), String> {
        let leaving = loop {
            tokio::select! {
                told = self.signals.next() => match told {
                    Told::Reload => self.watcher.reload_now(),
                    Told::End => break Leaving::Closed,
                },
                () = self.next.came(&self.clusters) => break Leaving::ToSuccessor,
            }
        };
        self.draining.store(true, Ordering::Relaxed);
        let patience = match leaving {
            Leaving::ToSuccessor => {
                // The next process answers there, and makes rules.
                self.admin.close();
                self.rules.handle.retire();
                Patience::WithWaiters
            }
            Leaving::Closed => {
                // It holds them open as well.
                self.next.withdraw();
                Patience::WithTransactions
            }
        };
        self.server.stop_accepting(leaving).await;
        if leaving == Leaving::Closed {
            self.next.offer_the_rest();
        }
        self.drain(leaving, patience).await
    }

    /// Waits for everybody to leave. Signals make it shorter, and the file is still followed: who
    /// waits may be let through by an edit.
    async fn drain(self, leaving: Leaving, patience: Patience) -> Result<(), String> {
        let Self {
            server,
            clusters,
            mut next,
            mut admin,
            rules,
            watcher,
            drain_timeout,
            mut signals,
            ..
        } = self;
        let timeout = *drain_timeout.borrow();
        let sessions = server.connected();
        tracing::info!(?timeout, ?leaving, sessions, "draining; {}", on_next_signal(patience));
        let (patient, heard) = watch::channel(patience);
        let drain = server.drain(timeout, heard);
        tokio::pin!(drain);
        loop {
            tokio::select! {
                drained = &mut drain => {
                    next.say_the_last().await;
                    return ended(drained, *patient.borrow());
                }
                () = next.came(&clusters) => {
                    admin.close();
                    rules.handle.retire();
                }
                told = signals.next() => match told {
                    Told::Reload => watcher.reload_now(),
                    Told::End => {
                        let Some(less) = lessened(*patient.borrow()) else {
                            return Err("ended by a signal while it closed what was left".into());
                        };
                        tracing::info!("told again to end; {}", on_next_signal(less));
                        patient.send_replace(less);
                    }
                },
            }
        }
    }
}

/// What a further signal makes of a drain. `None`: the process ends at once.
fn lessened(patience: Patience) -> Option<Patience> {
    match patience {
        Patience::WithWaiters => Some(Patience::WithTransactions),
        Patience::WithTransactions => Some(Patience::None),
        Patience::None => None,
    }
}

fn on_next_signal(patience: Patience) -> &'static str {
    match patience {
        Patience::WithWaiters => {
            "statements that wait may wait on, a signal to end has them refused"
        }
        Patience::WithTransactions => {
            "who waits is refused, transactions may finish, a further signal ends them"
        }
        Patience::None => "what is left is closed, a further signal ends the process at once",
    }
}

fn ended(drained: Drained, patience: Patience) -> Result<(), String> {
    match (drained, patience) {
        (Drained::Empty, _) => {
            tracing::info!("drained");
            Ok(())
        }
        (Drained::Cut { sessions }, Patience::None) => {
            Err(format!("a signal has ended the drain: {sessions} sessions were closed"))
        }
        (Drained::Cut { sessions }, Patience::WithWaiters | Patience::WithTransactions) => {
            tracing::warn!(
                sessions,
                "drained: drain_timeout was over, and what was left is closed"
            );
            Ok(())
        }
    }
}

impl Successor {
    /// Lets the next process ask for the listeners of this one, if the file says where.
    fn invite(
        path: Option<&Path>,
        server: &Server,
        admin: &TcpListener,
        inherited: &mut Inherited,
    ) -> Result<Self, String> {
        let Some(path) = path else {
            let (offers, _) = watch::channel(Offered::NotNow);
            return Ok(Self { taken: None, offers, admin: None, telling: None });
        };
        let fault = |error: io::Error| format!("takeover_socket {}: {error}", path.display());
        let offer = Offer::bind(path, inherited).map_err(fault)?.of(server);
        let mut sockets = server.share_listeners().map_err(fault)?;
        sockets.push(admin.try_clone().map_err(fault)?.into());
        let admin = Some(admin.try_clone().map_err(fault)?);
        let (offers, offered) = watch::channel(Offered::Sockets(sockets));
        let taken = Some(tokio::spawn(offer.taken(offered)));
        Ok(Self { taken, offers, admin, telling: None })
    }

    /// Resolves when another process has taken what was on offer; it is told what these have at
    /// their servers.
    async fn came(&mut self, clusters: &Arc<[Arc<Cluster>]>) {
        if let Some(task) = &mut self.taken {
            let ended = task.await;
            self.taken = None;
            if let Ok(next) = ended {
                // They are the next process's now: when that ends, nobody is to be left hanging.
                self.admin = None;
                self.offers.send_replace(Offered::NotNow);
                self.telling = next.map(|next| Telling::begin(next, clusters.clone()));
                return;
            }
        }
        std::future::pending().await
    }

    /// Nothing changes any more.
    async fn say_the_last(self) {
        if let Some(telling) = self.telling {
            telling.end().await;
        }
    }

    /// Who asks now has to wait until the listeners are closed.
    fn withdraw(&self) {
        self.offers.send_replace(Offered::NotNow);
    }

    /// The listeners of clients are closed. Who asks binds them anew, and gets the admin's, which
    /// this process answers at until then.
    fn offer_the_rest(&mut self) {
        if let Some(admin) = self.admin.take() {
            self.offers.send_replace(Offered::Sockets(vec![admin.into()]));
        }
    }
}

fn telemetry(config: &Config, log: &Log) -> Arc<Telemetry> {
    let max_apps = usize::try_from(config.metrics.max_apps).unwrap_or(usize::MAX);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps });
    log.count_in(telemetry.clone());
    telemetry
}

fn watch_file(
    path: PathBuf,
    loaded: &Loaded,
    telemetry: Arc<Telemetry>,
    mut follower: Follower,
    access: Arc<Access>,
) -> ConfigWatcher {
    ConfigWatcher::spawn(path, loaded, telemetry, move |config| {
        put_in_force(config, &mut follower, &access)
    })
}

/// All of a configuration, or nothing: files are read ahead of all changes.
fn put_in_force(
    config: &Config,
    follower: &mut Follower,
    access: &Access,
) -> Result<(), NotApplied> {
    let read = access.read(&config.admin)?;
    follower.apply(config)?;
    access.apply(read);
    Ok(())
}

fn serve_admin(listener: TcpListener, state: AdminState) -> Result<Door, String> {
    match listener.local_addr() {
        Ok(address) => tracing::info!(%address, "admin port: /metrics, /healthz, /readyz, /"),
        Err(error) => tracing::warn!(%error, "the admin port has no address"),
    }
    let ended = |error: io::Error| {
        tracing::error!(%error, "the admin port is gone; traffic is not affected");
    };
    Door::open(listener, state, ended).map_err(|error| format!("admin: {error}"))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests;
