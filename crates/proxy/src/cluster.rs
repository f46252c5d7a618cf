//! One cluster as the shell holds it: its policy, its admission controller behind a lock, and those
//! who wait for the controller's answers.
//!
//! The controller itself knows neither tasks nor locks. Here it is locked for one call at a time;
//! what it resolved is handed out after the lock is released, through a channel of each waiter. A
//! dropped [`Waiter`] leaves the queue, a dropped [`PermitGuard`] gives the place back.

mod budgets;
mod chains;
mod check;
mod held;
mod hibernation;
mod layers;
mod names;
mod news;
mod pauses;
mod permits;
mod refused;
mod rule_clock;
mod shares;
mod starvation;
mod taking_over;
pub(crate) mod telling;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::{Controller, Decision, MonoTime, Refusal, Request, Resolved, Ticket};
use parking_lot::{Mutex, MutexGuard};
use policy::ClusterPolicy;
use tokio::sync::{Notify, oneshot, watch};
use wire::capability::Capabilities;

use self::held::QueuedName;
use self::names::WatchedNames;
use self::rule_clock::{RuleClock, RuleTime};
use crate::auth::OwnKey;
use crate::board::ProbeBoard;
use crate::clock::Clock;
use crate::current::Current;
use crate::cut_overs::{CutOvers, PendingCutOver};
use crate::explain::Explainer;
use crate::facts::FactsBoard;
use crate::insights::InsightsBoard;
use crate::kill::Killer;
use crate::latency::LatencyBoard;
use crate::left_behind::LeftBehind;
use crate::registry::Registry;
use crate::rule_table::RuleKeeper;
use crate::stream::Codecs;
use crate::tls::TlsStore;

pub(crate) use self::budgets::{BudgetGuard, ask_budgets, ask_with_budgets};
pub(crate) use self::chains::{Asker, Verdict};
pub use self::chains::{Chain, ChainEnd, Chains, GateSignal, GuardStop, Line, Stop};
pub use self::check::{Check, CheckAnswer, CheckOutcome};
pub use self::held::{ClientName, Introduction, THROTTLED_MAX, Throttled, WaitingClient};
pub(crate) use self::layers::Caught;
pub use self::layers::QuarantineTimes;
pub(crate) use self::pauses::{PauseListed, Pauses, Pausing};
pub use self::permits::PermitGuard;
pub use self::refused::{KEPT as REFUSED_KEPT, Refused, RefusedBy};
pub use self::shares::AppReceived;
pub use self::starvation::{PassedApp, StarvedIdentity};
pub(crate) use self::taking_over::Neighbours;
pub use self::telling::Repeated;
pub(crate) use self::telling::TurnedAway;

/// One cluster: policy, controller, sessions.
pub struct Cluster {
    /// The name in the configuration file, and the `cluster` label.
    pub name: Arc<str>,
    /// The clients of this cluster.
    pub registry: Arc<Registry>,
    /// What its probes have seen.
    pub probes: ProbeBoard,
    /// The latencies that its signals are made of.
    pub(crate) latencies: LatencyBoard,
    /// What led to refusals and long waits.
    pub chains: Chains,
    /// What its statements have cost.
    pub insights: InsightsBoard,
    /// What its primary says of itself.
    pub(crate) facts: Arc<FactsBoard>,
    /// What its legs show and trust, as read last.
    pub(crate) tls: TlsStore,
    /// The cut-overs of gh-ost that are pending.
    pub(crate) cut_overs: Arc<CutOvers>,
    /// Ends statements whose clients have left.
    pub(crate) killer: Killer,
    /// Statements whose connections have ended before their answers.
    pub(crate) left_behind: LeftBehind,
    /// Other processes that have a part of its budgets.
    pub(crate) neighbours: Neighbours,
    /// Statements that are kept outside of the queue.
    pub(crate) pauses: Arc<Pauses>,
    /// What the primary expects of statements.
    pub(crate) explainer: Arc<Explainer>,
    /// What its connections compress with.
    pub(crate) codecs: Arc<Codecs>,
    own_key: OnceLock<Option<Arc<OwnKey>>>,
    clock: Clock,
    rule_time: RuleTime,
    policy: Current<ClusterPolicy>,
    /// Locked while another one is put in force, by time too. No file is read under it.
    changing: Mutex<()>,
    rule_keeper: OnceLock<Arc<dyn RuleKeeper>>,
    gatekeeper: Mutex<Gatekeeper>,
    /// Statements are held back, and it is watched who suffers from that: who passes is to be
    /// noted.
    contended: AtomicBool,
    driver: Notify,
    /// Other rules are in force, for those who wait outside of the controller.
    rule_changes: watch::Sender<()>,
    /// What is told of connections that come to nothing.
    pub(crate) turned_away: TurnedAway,
    /// What is masked in handshakes has been logged.
    masking_logged: AtomicBool,
}

struct Gatekeeper {
    controller: Controller,
    waiters: HashMap<Ticket, QueuedRequest>,
    /// Whom the watch for starvation may name.
    names: WatchedNames,
    /// As in the cluster.
    contended: bool,
    /// When the driver will wake of itself.
    wake_at: Option<MonoTime>,
    /// How often its servers are asked.
    tempo: watch::Sender<crate::probe::Tempo>,
}

/// Somebody in the queue.
struct QueuedRequest {
    sender: oneshot::Sender<Settled>,
    name: Arc<QueuedName>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Judgement {
    /// It may run now.
    Admitted(PermitGuard),
    /// Forward it anyway (mode `observe`); the refusal is what would have happened.
    Observed(PermitGuard, Option<Refusal>),
    /// Its place in the queue: the answer comes there.
    Queued(Waiter),
    /// The client is told why.
    Refused(Refusal),
}

/// How a wait ended.
#[derive(Debug)]
pub enum Settled {
    /// Its turn has come.
    Admitted(PermitGuard),
    /// It has waited in vain.
    Refused(Refusal),
    /// The rules changed meanwhile: ask again under the new ones.
    JudgeAgain,
}

impl Cluster {
    /// A cluster with nobody waiting.
    pub fn new(policy: Arc<ClusterPolicy>, clock: Clock, seed: u64) -> Arc<Self> {
        let probes = ProbeBoard::default();
        let killer = Killer::new(&probes);
        let explainer = Explainer::new(policy.name.clone(), &probes.own_links);
        let mut controller = Controller::new(policy.controller_config(), seed, clock.now());
        controller.watch_starvation(clock.now(), starvation::config(&policy));
        Arc::new(Self {
            name: policy.name.clone(),
            registry: Arc::default(),
            probes,
            latencies: LatencyBoard::new(&policy),
            chains: Chains::default(),
            insights: InsightsBoard::new(&policy, seed),
            facts: Arc::new(FactsBoard::new(&policy)),
            tls: TlsStore::new(&policy),
            cut_overs: Arc::new(CutOvers::new(policy.name.clone())),
            killer,
            left_behind: LeftBehind::default(),
            turned_away: TurnedAway::new(clock.now()),
            neighbours: Neighbours::default(),
            pauses: Arc::default(),
            explainer,
            codecs: Arc::default(),
            own_key: OnceLock::new(),
            rule_time: RuleTime::new(&clock),
            clock,
            changing: Mutex::new(()),
            policy: Current::new(policy),
            rule_keeper: OnceLock::new(),
            gatekeeper: Mutex::new(Gatekeeper {
                controller,
                waiters: HashMap::new(),
                names: WatchedNames::default(),
                contended: false,
                wake_at: None,
                tempo: watch::Sender::default(),
            }),
            contended: AtomicBool::new(false),
            driver: Notify::new(),
            rule_changes: watch::Sender::new(()),
            masking_logged: AtomicBool::new(false),
        })
    }

    /// The policy in force now.
    pub fn policy(&self) -> Arc<ClusterPolicy> {
        Arc::clone(&self.policy.load())
    }

    /// The policy in force, if it is another than `known`. One load while it is not.
    pub fn newer_policy(&self, known: &Arc<ClusterPolicy>) -> Option<Arc<ClusterPolicy>> {
        if self.policy.is(known) { None } else { Some(self.policy()) }
    }

    /// The clock all of this cluster's times come from.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Logs once what the server offers and clients are not told of.
    pub(crate) fn note_masked(&self, masked: Capabilities) {
        if masked == Capabilities::default()
            || self.masking_logged.load(Ordering::Relaxed)
            || self.masking_logged.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let names: Vec<&str> = masked.names().collect();
        tracing::info!(
            cluster = %self.name,
            capabilities = names.join(" "),
            "masked in handshakes: what this version cannot relay is offered to neither side"
        );
    }

    /// The pair of keys that clients without TLS encrypt passwords with, made when the first needs
    /// it. Blocks for as long as that takes; none when this machine cannot.
    pub(crate) fn own_key(&self) -> Option<Arc<OwnKey>> {
        self.own_key.get_or_init(|| OwnKey::make().map(Arc::new)).clone()
    }

    /// The cut-overs of gh-ost whose lock is held now.
    pub fn cut_overs(&self) -> Vec<PendingCutOver> {
        self.cut_overs.pending()
    }

    /// Monotonic time now.
    pub fn now(&self) -> MonoTime {
        self.clock.now()
    }

    /// Has the probes keep the table of runtime rules for `keeper`: to be called before they start.
    pub fn keep_rules(&self, keeper: Arc<dyn RuleKeeper>) {
        // The first stays: a cluster has one.
        drop(self.rule_keeper.set(keeper));
    }

    /// Who keeps its runtime rules.
    pub(crate) fn rule_keeper(&self) -> Option<Arc<dyn RuleKeeper>> {
        self.rule_keeper.get().cloned()
    }

    /// Tells from now on when other rules are in force.
    pub(crate) fn rule_changes(&self) -> watch::Receiver<()> {
        self.rule_changes.subscribe()
    }

    /// Locks the controller, runs `f`, then hands out what it resolved: a few hundred answers at a
    /// time, the lock being free in between. Never call it from inside another `control`.
    pub fn control<R>(self: &Arc<Self>, f: impl FnOnce(&mut Controller, MonoTime) -> R) -> R {
        let mut gatekeeper = self.gatekeeper.lock();
        let now = self.clock.now();
        let result = f(&mut gatekeeper.controller, now);
        self.follow_up(gatekeeper, now);
        result
    }

    /// The same for what mostly concerns nobody else: then there is nothing to hand out.
    fn control_quietly<R>(self: &Arc<Self>, f: impl FnOnce(&mut Controller, MonoTime) -> R) -> R {
        let mut gatekeeper = self.gatekeeper.lock();
        let now = self.clock.now();
        let before = gatekeeper.controller.changes();
        let result = f(&mut gatekeeper.controller, now);
        if gatekeeper.controller.changes() != before {
            self.follow_up(gatekeeper, now);
        }
        result
    }

    /// Hands out what has been resolved, and has the driver wake earlier if that is wanted now.
    fn follow_up<'c>(
        self: &'c Arc<Self>,
        mut gatekeeper: MutexGuard<'c, Gatekeeper>,
        now: MonoTime,
    ) {
        loop {
            let resolved = gatekeeper.collect(now);
            self.note_contention(&mut gatekeeper);
            let wake_driver = gatekeeper.wakes_earlier();
            drop(gatekeeper);
            if wake_driver {
                self.driver.notify_one();
            }
            let all = resolved.len() < COLLECTED_MAX;
            self.hand_out(resolved);
            if all {
                return;
            }
            gatekeeper = self.gatekeeper.lock();
        }
    }

    fn hand_out(self: &Arc<Self>, resolved: Vec<(Option<QueuedRequest>, Resolved)>) {
        for (waiting, outcome) in resolved {
            let settled = match outcome {
                Resolved::Admit(permit) => Settled::Admitted(PermitGuard::new(self, permit)),
                Resolved::Reject(refusal) => Settled::Refused(refusal),
                Resolved::DecideAgain => Settled::JudgeAgain,
            };
            // A waiter that has just left lets the answer drop; a permit in it goes back by its
            // guard.
            if let Some(waiting) = waiting {
                drop(waiting.sender.send(settled));
            }
        }
    }

    /// Who waits, with the app each identity stands for; for metrics and people.
    pub fn waiting(&self) -> Vec<(admission::Waiting, Box<[u8]>)> {
        held::groups(&self.waiters())
    }

    /// Keeps the controller's timers, watches the files of certificates, says who is starved, and
    /// what shuts gates. Runs until the task is dropped.
    pub async fn drive(self: Arc<Self>) {
        tokio::join!(
            self.keep_timers(),
            self.tls.watch(),
            self.watch_starvation(),
            self.watch_latencies(),
            self.tell_news(),
            self.watch_left_behind()
        );
    }

    /// Deadlines, retries, releases; has waiters judged again at the second at which a rule
    /// expires, or its schedule begins or ends.
    async fn keep_timers(self: &Arc<Self>) {
        let mut rule_clock = RuleClock::new(&self.policy(), self.pass_rule_time());
        loop {
            self.follow_rule_clock(&mut rule_clock, self.pass_rule_time());
            let wake_at = self.control(|controller, now| {
                controller.handle_time(now);
                controller.poll_timeout()
            });
            let sleep = async {
                match wake_at {
                    Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => {}
                () = tokio::time::sleep(CHANGE_POLL), if rule_clock.can_change() => {}
                () = self.lane_ends() => self.leave_lanes(),
                () = self.driver.notified() => {}
            }
        }
    }
}

/// Answers taken from the controller at a time: some tens of microseconds.
const COLLECTED_MAX: usize = 256;

/// How often the wall clock is looked at while some rule has yet to expire, or has a schedule. It
/// can jump, so its next second is not waited for by the monotonic clock.
const CHANGE_POLL: Duration = Duration::from_millis(100);

/// Asks the cluster's controller whether a statement of `app` may run.
pub fn ask(cluster: &Arc<Cluster>, request: &Request, app: &[u8]) -> Judgement {
    ask_for(cluster, request, app, |controller, now| controller.request(now, request))
}

fn ask_for(
    cluster: &Arc<Cluster>,
    request: &Request,
    app: &[u8],
    decide: impl FnOnce(&mut Controller, MonoTime) -> Decision,
) -> Judgement {
    let mut gatekeeper = cluster.gatekeeper.lock();
    let now = cluster.clock.now();
    let decision = decide(&mut gatekeeper.controller, now);
    gatekeeper.keep_names(now, request, app, &decision);
    let judgement = match decision {
        Decision::Admit(permit) => Judgement::Admitted(PermitGuard::new(cluster, permit)),
        Decision::Observed(permit, refusal) => {
            Judgement::Observed(PermitGuard::new(cluster, permit), refusal)
        }
        Decision::Reject(refusal) => Judgement::Refused(refusal),
        Decision::Queue(ticket) => {
            let (sender, receiver) = oneshot::channel();
            let name = Arc::new(QueuedName::of(app, gatekeeper.waiters.len()));
            let waiting = QueuedRequest { sender, name: Arc::clone(&name) };
            gatekeeper.waiters.insert(ticket, waiting);
            Judgement::Queued(Waiter { cluster: cluster.clone(), ticket, receiver, name })
        }
    };
    cluster.note_contention(&mut gatekeeper);
    let wake_driver = gatekeeper.wakes_earlier();
    drop(gatekeeper);
    if wake_driver {
        cluster.driver.notify_one();
    }
    judgement
}

impl Gatekeeper {
    fn collect(&mut self, now: MonoTime) -> Vec<(Option<QueuedRequest>, Resolved)> {
        // Allocates only when there is something to hand out.
        let mut resolved = Vec::new();
        while resolved.len() < COLLECTED_MAX
            && let Some(resolution) = self.controller.poll_resolution(now)
        {
            resolved.push((self.waiters.remove(&resolution.ticket), resolution.outcome));
        }
        resolved
    }

    /// Whether the controller now wants to be called before the driver wakes; notes that it will.
    fn wakes_earlier(&mut self) -> bool {
        self.wake_probes();
        let wanted = self.controller.poll_timeout();
        let earlier = match (wanted, self.wake_at) {
            (Some(wanted), Some(planned)) => wanted < planned,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.wake_at = wanted;
        earlier
    }
}

/// A place in the queue. Dropping it leaves the queue.
#[derive(Debug)]
#[must_use]
pub struct Waiter {
    cluster: Arc<Cluster>,
    ticket: Ticket,
    receiver: oneshot::Receiver<Settled>,
    name: Arc<QueuedName>,
}

impl Waiter {
    /// Waits for the answer.
    ///
    /// # Cancellation
    /// Safe: nothing is lost until the waiter itself is dropped.
    pub async fn settled(&mut self) -> Settled {
        // The sender is dropped unanswered only when the cluster goes away with the process.
        (&mut self.receiver).await.unwrap_or(Settled::JudgeAgain)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut gatekeeper = self.cluster.gatekeeper.lock();
        if gatekeeper.waiters.remove(&self.ticket).is_some() {
            let now = self.cluster.clock.now();
            gatekeeper.controller.cancel(now, self.ticket);
        }
        // Who was behind it in a line may have room now.
        let wake_driver = gatekeeper.wakes_earlier();
        drop(gatekeeper);
        if wake_driver {
            self.cluster.driver.notify_one();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
