//! The events of a simulated cluster, one after another.

mod agenda;
mod bounds;
mod clients;
mod measure;
mod probes;
mod proxies;
mod restarts;
mod rules;
mod servers;
mod shares;
mod signals;
mod told;

use std::time::Duration;

use admission::lag::{LagConfig, ReplicaKey};
use admission::{
    AdaptivePacing, BinaryPacing, ControllerConfig, GateConfig, GateKey, MonoTime, Pacing,
    SignalConfig, SignalKey,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use self::agenda::{Agenda, Event};
pub use self::bounds::{Bound, TooMuch, WORK_MAX};
pub(crate) use self::bounds::{RHYTHM_MAX, rhythm};
use self::bounds::{Spent, applying};
use self::clients::Session;
use self::measure::Measure;
use self::proxies::Proxy;
use self::servers::{Primary, Replica, Work};
use self::told::Lines;
use crate::report::{RefusedStatement, Report};
use crate::{LagLimits, Pace, RowCosts, Scenario, TICK};

/// Runs a scenario to its end.
///
/// # Errors
/// When it is more than one run may be.
pub fn simulate(scenario: &Scenario) -> Result<Report, TooMuch> {
    simulate_within(scenario, WORK_MAX)
}

/// The same with a bound of one's own on the steps that it may take.
///
/// # Errors
/// When it is more than that.
pub fn simulate_within(scenario: &Scenario, steps_max: u64) -> Result<Report, TooMuch> {
    let mut world = World::new(scenario, steps_max);
    world.run()?;
    let told = world.told();
    let fairness = world.fairness();
    Ok(world.measure.report(scenario, &told, &fairness))
}

/// The signal `lag`, the gate that has it alone, and the one that has nothing.
const LAG: SignalKey = SignalKey(1);
const LAG_GATE: GateKey = GateKey(1);
const OPEN_GATE: GateKey = GateKey(2);

/// A shell's timer does not wake in between.
const TIMER_GRAIN_NANOS: u64 = 1_000_000;

/// What is due already is done as soon as its task runs.
const TASK_DELAY: Duration = Duration::from_micros(50);

/// As in the proxy: without a committed heartbeat for so long, replicas that show all say nothing.
const WRITER_STALE_AFTER_MIN: Duration = Duration::from_secs(2);

/// What makes the draws of texts other than those of everything else.
const TEXTS: u64 = 0x7465_7874_0000_0000;

/// And those of when it is looked what appliers are at.
const LOOKS: u64 = 0x6c6f_6f6b_0000_0000;

/// Background transactions are of one row up to this many a second, and of more beyond.
const BACKGROUND_PER_S_MAX: f64 = 1_000.0;

/// The statements that are refused, in order.
///
/// # Errors
/// When it is more than one run may be.
pub fn refusals(scenario: &Scenario) -> Result<Vec<RefusedStatement>, TooMuch> {
    let mut world = World::new(scenario, WORK_MAX);
    world.run()?;
    Ok(world.refused)
}

struct World<'s> {
    scenario: &'s Scenario,
    now: MonoTime,
    end: MonoTime,
    agenda: Agenda,
    proxies: Vec<Proxy>,
    primary: Primary,
    replicas: Vec<Replica>,
    sessions: Vec<Session>,
    /// Statements at the primary.
    running: u32,
    /// Each its own, so that one more draw of one leaves the others as they were.
    jitter: StdRng,
    delays: StdRng,
    clients: StdRng,
    service: StdRng,
    texts: StdRng,
    looks: StdRng,
    measure: Measure,
    refused: Vec<RefusedStatement>,
    lines: Lines,
    spent: Spent,
}

impl<'s> World<'s> {
    fn new(scenario: &'s Scenario, steps_max: u64) -> Self {
        let seed = scenario.seed;
        let stream = |n: u64| StdRng::seed_from_u64(seed.wrapping_mul(4).wrapping_add(n));
        let keys: Vec<ReplicaKey> = (1..).take(scenario.replicas.len()).map(ReplicaKey).collect();
        let proxies = Proxy::all_of(scenario, &keys);
        let replicas = scenario.replicas.iter().zip(keys);
        let replica = |(plan, key)| Replica::new(plan, key, scenario.proxies);
        let mut world = Self {
            scenario,
            now: MonoTime::ZERO,
            end: MonoTime::ZERO.saturating_add(scenario.duration),
            agenda: Agenda::default(),
            proxies,
            primary: Primary::default(),
            replicas: replicas.map(replica).collect(),
            sessions: Session::all_of(scenario),
            running: 0,
            jitter: stream(1),
            delays: stream(2),
            clients: stream(3),
            service: stream(0),
            texts: StdRng::seed_from_u64(seed ^ TEXTS),
            looks: StdRng::seed_from_u64(seed ^ LOOKS),
            measure: Measure::new(scenario),
            refused: Vec::new(),
            lines: Lines::default(),
            spent: Spent::nothing_of(steps_max),
        };
        world.spent.keep(bounds::controllers(scenario));
        world.begin();
        world
    }

    /// The probes are at work before anybody asks: a proxy is not started under load.
    fn begin(&mut self) {
        self.begin_tick();
        self.agenda.add(MonoTime::ZERO.saturating_add(TICK), Event::Tick);
        self.agenda.add(MonoTime::ZERO, Event::Background { rows: 0.0 });
        for proxy in 0..self.proxies.len() {
            self.begin_probes(proxy);
        }
        self.begin_signals();
        self.begin_telling();
        for &at in &self.scenario.restarts {
            self.agenda.add(at, Event::Restart);
        }
        for session in 0..self.sessions.len() {
            self.plan_issue(session, MonoTime::ZERO);
        }
    }

    fn run(&mut self) -> Result<(), TooMuch> {
        loop {
            self.spend()?;
            let next = self.agenda.next_at();
            match self.next_wake() {
                Some((wake, _)) if wake > self.end && next.is_none_or(|next| wake < next) => {
                    return Ok(());
                }
                Some((wake, proxy)) if next.is_none_or(|next| wake < next) => {
                    self.now = wake;
                    self.wakes(proxy);
                }
                Some(_) | None => match self.agenda.take() {
                    Some((at, event)) if at <= self.end => {
                        self.now = at;
                        self.happens(event);
                    }
                    Some(_) | None => return Ok(()),
                },
            }
        }
    }

    /// The Sluice whose timer wakes next.
    fn next_wake(&self) -> Option<(MonoTime, usize)> {
        let wakes = self.proxies.iter().enumerate();
        wakes.filter_map(|(place, proxy)| Some((proxy.wake?, place))).min()
    }

    fn wakes(&mut self, place: usize) {
        let now = self.now;
        if let Some(proxy) = self.proxies.get_mut(place) {
            proxy.wake = None;
            proxy.controller.handle_time(now);
        }
        self.settle(place);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Tick => self.tick(),
            Event::Background { rows } => self.background(rows),
            Event::Issue { session } => self.issue(session),
            Event::Ask { session } => self.ask(session),
            Event::Commit { session } => self.commit(session),
            Event::HeartbeatDue { proxy, beat } => self.write_heartbeat(proxy, beat),
            Event::HeartbeatCommitted { proxy, seq } => self.heartbeat_committed(proxy, seq),
            Event::ProbeDue { proxy, replica, beat } => self.probe(proxy, replica, beat),
            Event::ProbeAnswered { proxy, replica, answer } => {
                self.probe_answered(proxy, replica, answer);
            }
            Event::Restart => self.restart(),
            Event::LookAtAppliers { proxy, replica } => self.look_at_appliers(proxy, replica),
            Event::Publish { proxy } => self.publish_lag(proxy),
            Event::LookAtTempo { proxy } => self.look_at_tempo(proxy),
            Event::LookAtSignals => self.look_at_signals(),
            Event::Tell { proxy } => self.tell(proxy),
            Event::Hear { from, demand } => self.hear(from, demand),
        }
    }

    /// The end of one tick, and the beginning of the next.
    fn tick(&mut self) {
        let now = self.now;
        for replica in &mut self.replicas {
            replica.advance(now);
        }
        let scanned = self.measure.tick(now, &self.replicas);
        self.spent.work(scanned);
        self.begin_tick();
        self.agenda.add(now.saturating_add(TICK), Event::Tick);
    }

    fn begin_tick(&mut self) {
        for (replica, plan) in self.replicas.iter_mut().zip(&self.scenario.replicas) {
            let jitter = self.jitter.random_range(-1.0..=1.0) * plan.jitter;
            let newest = self.proxies.iter().map(|proxy| proxy.probes.committed());
            replica.begin_tick(plan, self.now, 1.0 + jitter, newest);
        }
        self.measure.demand(
            self.scenario
                .apps
                .iter()
                .any(|app| app.active.iter().any(|window| window.contains(self.now))),
        );
    }

    /// Background rows are committed, and the next are drawn.
    fn background(&mut self, rows: f64) {
        self.append(rows, None);
        let amount = &self.scenario.background;
        let group = (amount.at(self.now) / BACKGROUND_PER_S_MAX).ceil().max(1.0);
        let spread = self.clients.random_range(0.5..1.5);
        let next = amount.passed_at(self.now, group * spread, self.end);
        self.agenda.add(next, Event::Background { rows: group });
    }

    /// A transaction has been committed: it is every replica's to apply.
    fn append(&mut self, rows: f64, app: Option<usize>) {
        if rows > 0.0 {
            for (replica, plan) in self.replicas.iter_mut().zip(&self.scenario.replicas) {
                let transit = plan.transit_at(self.now);
                self.spent.work(applying(plan.appliers));
                replica.append(self.now, transit, Work { rows, app });
            }
        }
    }

    /// What any call to the controller is followed by.
    fn settle(&mut self, place: usize) {
        self.wake_probes(place);
        while let Some(proxy) = self.proxies.get_mut(place)
            && let Some(resolution) = proxy.controller.poll_resolution(self.now)
        {
            self.spent.work(1);
            if let Some(session) = proxy.waiting.remove(&resolution.ticket) {
                self.resolved(session, resolution.outcome);
            }
        }
        let now = self.now;
        if let Some(proxy) = self.proxies.get_mut(place) {
            // As in the shell, a timer that is set is not put off: it only ever becomes earlier.
            let wanted = proxy.controller.poll_timeout().map(|at| timer(now, at));
            proxy.wake = [proxy.wake, wanted].into_iter().flatten().min();
        }
    }
}

/// When a shell's timer for `at` wakes.
fn timer(now: MonoTime, at: MonoTime) -> MonoTime {
    if at <= now {
        return now.saturating_add(TASK_DELAY);
    }
    let grains = at.as_nanos().div_ceil(TIMER_GRAIN_NANOS);
    MonoTime::from_nanos(grains.saturating_mul(TIMER_GRAIN_NANOS))
}

fn signal_config(scenario: &Scenario) -> SignalConfig {
    let LagLimits { open_at, close_at, stale_after, on_no_data, .. } = scenario.lag;
    SignalConfig {
        key: LAG,
        threshold: scenario.threshold.as_secs_f64(),
        open_at: open_at.as_secs_f64(),
        close_at: close_at.as_secs_f64(),
        stale_after,
        on_no_data,
        in_flight: None,
    }
}

fn controller_config(scenario: &Scenario, lag: SignalConfig) -> ControllerConfig {
    let binary = BinaryPacing { release_per_s: scenario.release_per_s };
    let pacing = match scenario.pacing {
        Pace::Adaptive => Pacing::Adaptive(AdaptivePacing {
            lag: lag.key,
            heartbeat_interval: scenario.heartbeat_interval,
            probe_interval: scenario.probe_interval,
            learns_row_costs: scenario.row_costs == RowCosts::Applied,
            otherwise: binary,
        }),
        Pace::Binary => Pacing::Binary(binary),
    };
    let mut gates = vec![
        GateConfig { key: LAG_GATE, signals: vec![lag.key] },
        GateConfig { key: OPEN_GATE, signals: Vec::new() },
    ];
    gates.extend(signals::gates(scenario));
    ControllerConfig {
        gates,
        signals: std::iter::once(lag).chain(signals::configs(scenario)).collect(),
        check_interval: scenario.check_interval,
        pacing,
        queue_len_max: scenario.queue_len_max,
        budgets: admission::BudgetBook::default(),
    }
}

fn lag_config(scenario: &Scenario, lag: &SignalConfig, replicas: Vec<ReplicaKey>) -> LagConfig {
    let own = replicas.iter().zip(&scenario.replicas);
    let thresholds = own.filter_map(|(key, plan)| Some((*key, plan.threshold?))).collect();
    LagConfig {
        replicas,
        thresholds,
        ignore_slowest: scenario.lag.ignore_slowest,
        min_replicas: scenario.lag.min_replicas,
        stale_after: lag.stale_after,
        caught_up_below: scenario.threshold,
        writer_stale_after: scenario
            .heartbeat_interval
            .saturating_mul(4)
            .max(WRITER_STALE_AFTER_MIN),
    }
}
