//! For how long the lock of admission is held: the longest of each kind of call, with 10,000 who
//! wait under 5,000 identities.
//!
//! The runs of a kind are the same, call by call. Of each call the fastest run counts, and the
//! figure is the longest of these: a call that is interrupted takes as long as whatever else the
//! machine does.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use admission::lag::{LagReading, Progress, ReplicaKey};
use admission::{
    AdaptivePacing, AppKey, BinaryPacing, Census, Controller, ControllerConfig, Decision,
    DigestKey, GateConfig, GateKey, IdentityKey, MonoTime, Outcome, Pacing, Ratio, Request,
    Resolved, RuleKey, SignalConfig, SignalKey, StarvationConfig, Terms, Ticket,
};

/// What is timed, by its name.
type Kind = (&'static str, fn(&mut Times));

fn main() {
    println!("| call | longest, µs | all of it, µs |\n|---|---|---|");
    let kinds: [Kind; 8] = [
        ("all deadlines at once", deadlines),
        ("reload, and everybody is handed out", reload),
        ("shutdown, and everybody is handed out", shutdown),
        ("who waits (`waiters_after`), 256 at a time", waiting),
        ("who is starved (`look_for_starved`)", starved),
        ("a release at the pace, ratio 0.999", dice),
        ("all deadlines at once, each identity an app under a rule of its own", deadlines_apart),
        ("a release at the pace, the same", apart),
    ];
    for (name, run) in kinds {
        let all: Vec<Times> = (0..RUNS).map(|_| timed(run)).collect();
        let calls = fastest(&all);
        let longest = calls.iter().max().copied().unwrap_or_default();
        let sum = calls.iter().fold(Duration::ZERO, |sum, call| sum.saturating_add(*call));
        println!("| {name} | {:.0} | {:.0} |", micros(longest), micros(sum));
    }
    let (ns, per_s) = uncontended();
    println!("\nrequest to complete, uncontended: {ns:.0} ns");
    println!("5,000 identities at 0.999: {per_s:.3} s of CPU for a second of 1,000 rows");
}

fn timed(run: fn(&mut Times)) -> Times {
    let mut times = Times::default();
    run(&mut times);
    times
}

/// How long each call took.
#[derive(Debug, Default)]
struct Times {
    calls: Vec<Duration>,
}

impl Times {
    fn of<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = black_box(call());
        self.calls.push(started.elapsed());
        result
    }
}

/// Of each call, how long it took at best.
fn fastest(runs: &[Times]) -> Vec<Duration> {
    let (first, others) = runs.split_first().map_or((&[][..], &[][..]), |(a, b)| (&a.calls[..], b));
    let best = |(n, call): (usize, &Duration)| {
        let same = others.iter().filter_map(|run| run.calls.get(n));
        same.fold(*call, |best, call| best.min(*call))
    };
    first.iter().enumerate().map(best).collect()
}

/// A controller with its clock.
struct Bench {
    controller: Controller,
    now: MonoTime,
    beats: u64,
    crowd: Crowd,
}

/// How the identities are spread.
#[derive(Debug, Clone, Copy)]
enum Crowd {
    /// Over 100 apps under 10 rules.
    Together,
    /// Each is an app under a rule of its own.
    Apart,
}

impl Bench {
    fn new(crowd: Crowd) -> Self {
        let now = MonoTime::from_nanos(1_000_000_000);
        let mut controller = Controller::new(config(), 1, now);
        let limits = StarvationConfig { share: 0.01, window: Duration::from_secs(100) };
        controller.watch_starvation(now, Some(limits));
        Self { controller, now, beats: 0, crowd }
    }

    /// With the gate shut, and everybody in line.
    fn full(crowd: Crowd, ratio: f64) -> Self {
        let mut bench = Self::new(crowd);
        bench.look(2.0);
        for n in 0..WAITERS {
            let request = bench.request(n, ratio);
            drop(black_box(bench.controller.request(bench.now, &request)));
        }
        bench
    }

    fn request(&self, n: u64, ratio: f64) -> Request {
        let identity = n.checked_rem(IDENTITIES).unwrap_or_default();
        let ratio = Ratio::new(ratio).unwrap_or_default();
        let terms = Terms {
            ratio,
            max_delay: Duration::from_secs(60),
            queue_len_max: u32::MAX,
            ..Terms::default()
        };
        let (rule, app) = match self.crowd {
            Crowd::Together => (identity / 500, identity / 50),
            Crowd::Apart => (identity, identity),
        };
        Request {
            rule: RuleKey(rule),
            identity: IdentityKey(identity),
            app: AppKey(app),
            digest: Some(DigestKey(1)),
            written: None,
            gate: GATE,
            terms,
            arrived: self.now,
            since: self.now,
        }
    }

    fn look(&mut self, lag: f64) {
        self.beats = self.beats.saturating_add(1);
        self.controller.handle_heartbeat_begun(self.now, self.beats);
        let progress = Progress {
            replica: ReplicaKey(1),
            lag: Duration::from_secs_f64(lag),
            threshold: None,
            shown: Some(self.beats),
            committed_at: Some(self.now),
            answered_at: self.now,
            asked_at: self.now,
            appliers: 1,
        };
        let reading = LagReading {
            value: Some(lag),
            at: self.now,
            slowest: None,
            threshold: None,
            governing: vec![progress],
        };
        self.controller.handle_lag(self.now, LAG, &reading);
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// As the shell takes them: a few hundred at a time, each of those under the lock.
    fn collect(&mut self, times: &mut Times) -> Vec<(Ticket, Resolved)> {
        let mut all = Vec::new();
        loop {
            let before = all.len();
            all.reserve(TAKEN);
            times.of(|| {
                let next = || self.controller.poll_resolution(self.now);
                let taken = std::iter::from_fn(next).take(TAKEN);
                all.extend(taken.map(|resolution| (resolution.ticket, resolution.outcome)));
            });
            if all.len() < before.saturating_add(TAKEN) {
                return all;
            }
        }
    }
}

fn deadlines(times: &mut Times) {
    all_deadlines(times, Crowd::Together);
}

fn deadlines_apart(times: &mut Times) {
    all_deadlines(times, Crowd::Apart);
}

fn all_deadlines(times: &mut Times, crowd: Crowd) {
    let mut bench = Bench::full(crowd, 0.0);
    bench.pass(Duration::from_secs(61));
    while bench.controller.waiting_len() > 0 {
        times.of(|| bench.controller.handle_time(bench.now));
        drop(bench.collect(times));
    }
}

fn reload(times: &mut Times) {
    let mut bench = Bench::full(Crowd::Together, 0.0);
    drop(times.of(|| bench.controller.reconfigure(config(), bench.now)));
    let left = bench.collect(times).len();
    assert!(u64::try_from(left) == Ok(WAITERS), "{left} were handed out");
}

fn shutdown(times: &mut Times) {
    let mut bench = Bench::full(Crowd::Together, 0.0);
    drop(times.of(|| bench.controller.shutdown(bench.now)));
    drop(bench.collect(times));
}

fn waiting(times: &mut Times) {
    let bench = Bench::full(Crowd::Together, 0.0);
    let mut after = None;
    let mut piece = Vec::with_capacity(TAKEN);
    loop {
        piece.clear();
        times.of(|| piece.extend(bench.controller.waiters_after(after).take(TAKEN)));
        after = piece.last().and_then(|last| last.ticket);
        if piece.len() < TAKEN {
            return;
        }
    }
}

fn starved(times: &mut Times) {
    let mut bench = Bench::full(Crowd::Together, 0.0);
    bench.pass(Duration::from_secs(30));
    let mut census = Census::default();
    while times.of(|| bench.controller.look_for_starved(bench.now, &mut census)) {}
    assert!(!census.into_starved().is_empty(), "everybody is starved");
}

fn dice(times: &mut Times) {
    releases(times, Bench::full(Crowd::Together, RATIO), RATIO);
}

fn apart(times: &mut Times) {
    releases(times, Bench::full(Crowd::Apart, 0.0), 0.0);
}

/// Ten seconds at 1,000 rows a second.
fn releases(times: &mut Times, mut bench: Bench, ratio: f64) {
    let end = bench.now.saturating_add(Duration::from_secs(10));
    let mut look_at = bench.now;
    let mut asked = WAITERS;
    while bench.now < end {
        if bench.now >= look_at {
            look_at = bench.now.saturating_add(Duration::from_millis(100));
            times.of(|| bench.look(0.1));
        }
        times.of(|| bench.controller.handle_time(bench.now));
        for (_, outcome) in bench.collect(times) {
            if let Resolved::Admit(permit) = outcome {
                let outcome = Outcome { affected_rows: 1, ..Outcome::default() };
                times.of(|| bench.controller.complete(bench.now, permit, outcome));
            }
            asked = asked.saturating_add(1);
            let request = bench.request(asked, ratio);
            drop(times.of(|| bench.controller.request(bench.now, &request)));
        }
        bench.pass(Duration::from_millis(1));
    }
}

/// Nanoseconds for a statement that is admitted at once, and seconds of CPU for one of [`dice`].
fn uncontended() -> (f64, f64) {
    let mut bench = Bench::new(Crowd::Together);
    bench.look(0.0);
    let request = bench.request(1, 0.0);
    let a_round = |bench: &mut Bench| {
        let started = Instant::now();
        for _ in 0..STATEMENTS {
            bench.pass(Duration::from_millis(50));
            if let Decision::Admit(permit) = bench.controller.request(bench.now, &request) {
                let outcome = Outcome { affected_rows: 1, ..Outcome::default() };
                bench.controller.complete(bench.now, permit, outcome);
            }
        }
        bench.look(0.0);
        started.elapsed().as_secs_f64() * 1e9 / f64::from(STATEMENTS)
    };
    let ns = (0..200).map(|_| a_round(&mut bench)).fold(f64::INFINITY, f64::min);
    let runs = [timed(dice), timed(dice), timed(dice)];
    let sum = fastest(&runs).iter().fold(Duration::ZERO, |sum, call| sum.saturating_add(*call));
    (ns, sum.as_secs_f64() / 10.0)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn config() -> ControllerConfig {
    let adaptive = AdaptivePacing {
        lag: LAG,
        heartbeat_interval: Duration::from_millis(250),
        probe_interval: Duration::from_millis(100),
        learns_row_costs: false,
        otherwise: BinaryPacing::default(),
    };
    let lag = SignalConfig {
        stale_after: Duration::from_secs(3_600),
        ..SignalConfig::at_threshold(LAG, 1.0)
    };
    ControllerConfig {
        signals: vec![lag],
        gates: vec![GateConfig { key: GATE, signals: vec![LAG] }],
        pacing: Pacing::Adaptive(adaptive),
        queue_len_max: u32::MAX,
        ..ControllerConfig::default()
    }
}

const RATIO: f64 = 0.999;
const WAITERS: u64 = 10_000;
const IDENTITIES: u64 = 5_000;
const TAKEN: usize = 256;
const RUNS: usize = 7;
const STATEMENTS: u32 = 50;
const LAG: SignalKey = SignalKey(1);
const GATE: GateKey = GateKey(1);
