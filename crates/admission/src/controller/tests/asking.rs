//! Clients that ask before they write around Sluice.

use super::*;
use crate::lag::{LagReading, Progress, ReplicaKey};
use crate::{AdaptivePacing, Answer, Inquiry, Purpose};

impl Lab {
    fn inquire(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Answer {
        let request = self.request(gate, identity, terms);
        self.controller
            .inquire(self.now, &Inquiry { request, purpose: Purpose::Write { rows: None } })
    }

    fn told(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Option<Reason> {
        match self.inquire(gate, identity, terms) {
            Answer::Allowed => None,
            Answer::Refused(refusal) => Some(refusal.reason),
            Answer::Observed(_) => panic!("observed"),
        }
    }
}

#[test]
fn an_open_gate_allows_and_a_shut_one_names_its_signal() {
    let mut lab = Lab::healthy();
    assert_eq!(lab.told(GATED, ETL, Terms::default()), None);
    lab.lag(7.0);
    let Answer::Refused(refusal) = lab.inquire(GATED, ETL, Terms::default()) else { panic!() };
    assert_eq!(refusal.reason, Reason::GateClosed);
    let cause = refusal.cause.unwrap();
    assert_eq!((cause.signal, cause.value, cause.threshold), (LAG, Some(7.0), 1.0));
    assert!(refusal.retry_after >= ms(75), "{refusal:?}");
    assert_eq!(lab.told(FREE, ETL, Terms::default()), None, "its rule has no gate");
    assert_eq!(lab.controller.waiting_len(), 0, "nobody ever waits");
    assert_eq!(lab.controller.in_flight(), 0, "nothing is to be completed");
}

#[test]
fn a_check_throws_once_and_a_hold_a_ratio_of_1_and_a_missing_gate_do_not_depend_on_the_gate() {
    let mut lab = Lab::healthy();
    let asked = 10_000;
    let lost = (0..asked).filter(|_| lab.told(FREE, ETL, with_ratio(0.9)).is_some()).count();
    // Four and a half deviations: 4.5 · √(10,000 · 0.9 · 0.1) = 135.
    assert!(lost.abs_diff(9_000) < 135, "{lost} of {asked}");
    let (passed, thrown_lost) = lab.checks(ETL);
    assert_eq!(usize::try_from(thrown_lost).unwrap(), lost);
    assert_eq!(passed + thrown_lost, 10_000, "one throw each");
    for lag in [0.0, 7.0] {
        lab.lag(lag);
        assert_eq!(lab.told(GATED, ETL, with_ratio(1.0)), Some(Reason::Ratio));
        let held = Terms { hold: true, ..Terms::default() };
        assert_eq!(lab.told(GATED, ETL, held), Some(Reason::Hold));
        assert_eq!(lab.told(GateKey(77), ETL, Terms::default()), Some(Reason::NoData));
    }
    lab.controller.shutdown(lab.now);
    assert_eq!(lab.told(FREE, ETL, Terms::default()), Some(Reason::Shutdown));
}

#[test]
fn who_reads_meets_the_dice_and_a_hold_but_not_the_gate() {
    let mut lab = Lab::lagging();
    let read = |lab: &mut Lab, terms| {
        let request = lab.request(GATED, ETL, terms);
        lab.controller.inquire(lab.now, &Inquiry { request, purpose: Purpose::Read })
    };
    assert_eq!(read(&mut lab, Terms::default()), Answer::Allowed);
    let held = Terms { hold: true, ..Terms::default() };
    for terms in [held, with_ratio(1.0)] {
        assert!(matches!(read(&mut lab, terms), Answer::Refused(_)));
    }
}

#[test]
fn at_a_shut_gate_nothing_is_thrown_and_observing_allows_whatever_would_have_been() {
    let mut lab = Lab::lagging();
    assert_eq!(lab.told(GATED, ETL, with_ratio(0.5)), Some(Reason::GateClosed));
    assert_eq!(lab.checks(ETL), (0, 0));
    let observing = Terms { mode: Mode::Observe, ..Terms::default() };
    let Answer::Observed(would_be) = lab.inquire(GATED, ETL, observing) else { panic!() };
    assert_eq!(would_be.unwrap().reason, Reason::GateClosed);
    lab.lag(0.0);
    assert_eq!(lab.inquire(GATED, ETL, observing), Answer::Observed(None));
}

#[test]
fn a_gate_that_has_just_opened_lets_askers_through_at_the_ramp() {
    let mut lab = Lab::lagging();
    lab.lag(0.0);
    let mut allowed = 0;
    for _ in 0..500 {
        lab.now = lab.now.saturating_add(ms(1));
        allowed += (0..10).filter(|_| lab.told(GATED, ETL, Terms::default()).is_none()).count();
    }
    // A thousand a second at first: of 5,000 that asked in half a second.
    assert!((400..=530).contains(&allowed), "{allowed}");
}

#[test]
fn askers_beside_a_line_at_a_ramp_have_every_second_turn_at_most() {
    let mut lab = Lab::lagging();
    let mut waiting = 0;
    while waiting < 400 {
        lab.queued(GATED, DDL, Terms::default());
        waiting += 1;
    }
    lab.lag(0.0);
    let mut allowed = 0;
    while lab.controller.waiting_len() > 0 {
        lab.run(ms(1));
        allowed += (0..10).filter(|_| lab.told(GATED, ETL, Terms::default()).is_none()).count();
        assert!(lab.now < MonoTime::from_nanos(10_000_000_000), "the line does not move");
    }
    // Ten at most come when the last of the line has just gone.
    assert!((50..=411).contains(&allowed), "{allowed} of 400 turns");
    assert_eq!(lab.winners().len(), 400);
}

#[test]
fn who_asks_in_vain_is_starved_and_not_any_more_once_it_is_allowed() {
    let mut lab = Lab::lagging();
    let config = crate::StarvationConfig { share: 0.5, window: Duration::from_secs(60) };
    lab.controller.watch_starvation(lab.now, Some(config));
    for _ in 0..50 {
        assert!(lab.told(GATED, ETL, Terms::default()).is_some());
        lab.now = lab.now.saturating_add(Duration::from_secs(1));
    }
    let starved = lab.controller.starved(lab.now);
    assert!(
        starved.iter().any(|starved| starved.identity == ETL && starved.blocked),
        "{starved:?}"
    );
    lab.lag(0.0);
    assert_eq!(lab.told(GATED, ETL, Terms::default()), None);
    assert!(lab.controller.starved(lab.now).iter().all(|starved| !starved.blocked));
}

/// A primary that executes at once, and a replica that applies `per_s` rows a second, in order.
pub(super) struct Path {
    pub(super) lab: Lab,
    pub(super) now_ms: u64,
    /// Not applied yet: rows, or a heartbeat; when they were committed.
    stream: std::collections::VecDeque<(u64, Result<f64, u64>)>,
    shown: Option<u64>,
    beats: u64,
    credit: f64,
    /// Since the run began, in seconds.
    pub(super) lag_max: f64,
}

impl Path {
    pub(super) fn new() -> Self {
        let adaptive = AdaptivePacing {
            lag: LAG,
            heartbeat_interval: ms(250),
            probe_interval: ms(100),
            learns_row_costs: false,
            otherwise: BinaryPacing::default(),
        };
        let config = ControllerConfig { pacing: Pacing::Adaptive(adaptive), ..config() };
        let stream = std::collections::VecDeque::new();
        let lab = Lab::new(config);
        Self { lab, now_ms: 0, stream, shown: None, beats: 0, credit: 0.0, lag_max: 0.0 }
    }

    pub(super) fn write(&mut self, rows: f64) {
        self.stream.push_back((self.now_ms, Ok(rows)));
    }

    /// The age of the oldest row that is not applied.
    fn lag(&self) -> f64 {
        let oldest = self.stream.iter().find(|(_, what)| what.is_ok());
        oldest.map_or(0.0, |(at, _)| secs(self.now_ms - at))
    }

    /// A millisecond.
    pub(super) fn step(&mut self, per_s: f64) {
        self.now_ms += 1;
        self.lab.run(ms(1));
        if self.now_ms % 250 == 1 {
            self.beats += 1;
            self.lab.controller.handle_heartbeat_begun(self.lab.now, self.beats);
            self.stream.push_back((self.now_ms, Err(self.beats)));
        }
        self.credit = (self.credit + per_s / 1_000.0).min(per_s / 1_000.0 + 1_000.0);
        while let Some((at, what)) = self.stream.pop_front() {
            match what {
                Err(seq) => self.shown = Some(seq),
                Ok(rows) if rows <= self.credit => self.credit -= rows,
                Ok(_) => {
                    self.stream.push_front((at, what));
                    break;
                }
            }
        }
        if self.stream.is_empty() {
            self.credit = 0.0;
        }
        if self.now_ms % 100 == 50 {
            let answered_at = self.lab.now;
            let lag = self.lag();
            let progress = Progress {
                replica: ReplicaKey(1),
                lag: Duration::from_secs_f64(lag),
                threshold: None,
                shown: self.shown,
                committed_at: None,
                answered_at,
                asked_at: answered_at,
                appliers: 1,
            };
            let governing = vec![progress];
            let reading = LagReading {
                value: Some(lag),
                at: answered_at,
                slowest: None,
                threshold: None,
                governing,
            };
            self.lab.controller.handle_lag(answered_at, LAG, &reading);
            self.lab.collect();
        }
        self.lag_max = self.lag_max.max(self.lag());
    }
}

fn secs(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

/// Clients of one app that ask, and write so many rows directly when they may.
struct Askers {
    identity: IdentityKey,
    terms: Terms,
    rows: f64,
    says: Option<u64>,
    /// When each asks next, in milliseconds.
    due: Vec<u64>,
    /// The rows of those that were allowed, and when they write them.
    writes: Vec<(u64, f64)>,
    written: f64,
}

impl Askers {
    fn new(count: u64, identity: IdentityKey, terms: Terms, says: Option<u64>) -> Self {
        let due = (0..count).map(|n| 100 + n).collect();
        Self { identity, terms, rows: 20.0, says, due, writes: Vec::new(), written: 0.0 }
    }

    /// Whoever may writes 3 ms later and asks again 5 ms later; who may not, after 100 ms.
    fn step(&mut self, path: &mut Path) {
        let now = path.now_ms;
        let ready = |&(at, _): &(u64, f64)| at <= now;
        for (_, rows) in self.writes.extract_if(.., |write| ready(write)) {
            path.write(rows);
            self.written += rows;
        }
        for due in &mut self.due {
            if *due > now {
                continue;
            }
            let request = path.lab.request(GATED, self.identity, self.terms);
            let inquiry = Inquiry { request, purpose: Purpose::Write { rows: self.says } };
            match path.lab.controller.inquire(path.lab.now, &inquiry) {
                Answer::Allowed => {
                    self.writes.push((now + 3, self.rows));
                    *due = now + 5;
                }
                Answer::Refused(_) => *due = now + 100,
                Answer::Observed(_) => panic!("observed"),
            }
        }
    }
}

#[test]
fn fifty_who_ask_and_write_directly_keep_the_lag_bounded_and_flood_if_they_say_nothing() {
    let run = |says| {
        let mut path = Path::new();
        let mut askers = Askers::new(50, ETL, Terms::default(), says);
        for _ in 0..30_000 {
            path.step(1_000.0);
            askers.step(&mut path);
        }
        (path.lag_max, askers.written)
    };
    let (lag, written) = run(Some(20));
    assert!(lag < 1.0, "the lag came to {lag:.2} s");
    assert!(written > 0.75 * 30_000.0, "{written} of 30,000 rows that the replica could apply");
    // A look (`rows: 0`) is not charged: each opening of the gate lets all of them write.
    let (lag, _) = run(Some(0));
    assert!(lag > 10.0, "without the charge the lag came to {lag:.2} s only");
}

#[test]
fn who_does_not_say_how_many_rows_is_charged_one_and_the_pace_learns_what_that_stands_for() {
    let mut path = Path::new();
    let mut askers = Askers::new(50, ETL, Terms::default(), None);
    // 100 checks a second are the first guess; each stands for 20 rows, and the replica takes 50.
    for _ in 0..60_000 {
        path.step(1_000.0);
        askers.step(&mut path);
        if path.now_ms == 30_000 {
            path.lag_max = 0.0;
        }
    }
    assert!(path.lag_max < 1.5, "after half a minute the lag came to {:.2} s", path.lag_max);
    assert!(askers.written > 0.5 * 60_000.0, "{}", askers.written);
}

/// A hundred sessions of one app that wait in line, and a hundred clients of another that ask.
struct Weather {
    name: &'static str,
    /// Rows a second that the replica applies, by the millisecond.
    per_s: fn(u64) -> f64,
    /// Whether those who ask get no time on their machine.
    asleep: fn(u64) -> bool,
    askers: u64,
    /// How far from 9 : 1 it may be, the part of 500 rows a second that is used, and the lag.
    share: f64,
    used: f64,
    lag_max: f64,
}

/// What was written of who asks, of who waits, and the highest lag.
fn shared(weather: &Weather) -> (f64, f64, f64) {
    let mut path = Path::new();
    let patient = Terms { max_delay: Duration::from_secs(3_600), ..with_ratio(0.9) };
    let mut askers = Askers::new(weather.askers, DDL, with_ratio(0.1), Some(1));
    askers.rows = 1.0;
    path.lab.rows_each = 1;
    let mut waiting = 0_usize;
    let mut heavy = 0.0;
    let mut from = (0.0, 0.0);
    for _ in 0..120_000 {
        path.step((weather.per_s)(path.now_ms));
        // Each session asks again when it has written its row.
        let done = path.lab.ends().len();
        waiting -= done;
        for _ in 0..done {
            path.write(1.0);
            heavy += 1.0;
        }
        while waiting < 100 && path.now_ms > 100 {
            let request = path.lab.request(GATED, ETL, patient);
            match path.lab.controller.request(path.lab.now, &request) {
                Decision::Queue(_) => waiting += 1,
                Decision::Admit(permit) => {
                    let outcome = Outcome { affected_rows: 1, ..Outcome::default() };
                    path.lab.controller.complete(path.lab.now, permit, outcome);
                    path.write(1.0);
                    heavy += 1.0;
                }
                Decision::Reject(_) | Decision::Observed(..) => panic!("refused"),
            }
        }
        if !(weather.asleep)(path.now_ms) {
            askers.step(&mut path);
        }
        if path.now_ms == 10_000 {
            from = (heavy, askers.written);
            path.lag_max = 0.0;
        }
    }
    (askers.written - from.1, heavy - from.0, path.lag_max)
}

#[test]
fn who_waits_and_who_asks_share_the_pace_by_their_ratios() {
    let calm = Weather {
        name: "calm",
        per_s: |_| 500.0,
        asleep: |_| false,
        askers: 100,
        share: 0.03,
        used: 0.95,
        lag_max: 0.65,
    };
    let weathers = [
        Weather { name: "few", askers: 60, ..calm },
        // Ten that come late have a third less than their share. Where nothing is collected for them
        // while those in line wait for them, they have less than half of it.
        Weather {
            name: "ten that come late",
            asleep: |ms| ms % 200 < 80,
            askers: 10,
            share: 0.4,
            lag_max: 0.7,
            ..calm
        },
        // Those who ask get no time on their machine, as happens where others compile.
        Weather { name: "naps", asleep: |ms| ms % 1_000 < 200, lag_max: 0.8, ..calm },
        Weather { name: "sleeps", asleep: |ms| ms % 3_000 < 400, lag_max: 1.0, used: 0.9, ..calm },
        Weather {
            name: "long sleeps",
            asleep: |ms| ms % 10_000 < 1_300,
            used: 0.85,
            lag_max: 1.0,
            ..calm
        },
        // The replica stands still, and is slower and faster in turns: the window has no room.
        Weather {
            name: "stalls",
            per_s: |ms| if ms % 4_000 < 500 { 0.0 } else { 500.0 },
            used: 0.75,
            lag_max: 1.2,
            ..calm
        },
        Weather {
            name: "long stalls",
            per_s: |ms| if ms % 5_000 < 1_500 { 0.0 } else { 500.0 },
            used: 0.5,
            lag_max: 2.5,
            ..calm
        },
        Weather {
            name: "halves",
            per_s: |ms| if ms % 700 < 350 { 100.0 } else { 600.0 },
            used: 0.6,
            lag_max: 1.2,
            ..calm
        },
        calm,
    ];
    for weather in weathers {
        let (light, heavy, lag) = shared(&weather);
        let Weather { name, share: off, used, lag_max, .. } = weather;
        let share = light / heavy;
        assert!((share / 9.0 - 1.0).abs() <= off, "{name}: {light} : {heavy} = {share:.2}");
        assert!(light + heavy > used * 55_000.0, "{name}: {light} + {heavy} of 55,000");
        assert!(lag < lag_max, "{name}: the lag came to {lag:.2} s");
    }
}

#[test]
fn a_large_statement_waits_for_who_is_away_for_a_moment_if_it_can_wait() {
    let mut path = Path::new();
    while path.now_ms < 1_000 {
        path.step(100.0);
    }
    let done =
        |path: &mut Path, identity, rows| match path.lab.ask(GATED, identity, Terms::default()) {
            Decision::Admit(permit) => {
                let outcome = Outcome { affected_rows: rows, ..Outcome::default() };
                path.lab.controller.complete(path.lab.now, permit, outcome);
            }
            other => assert!(matches!(other, Decision::Queue(_)), "{other:?}"),
        };
    path.lab.rows_each = 1;
    // Three large ones may be on their way.
    path.lab.controller.slow_start.begin_with(path.lab.now, [AppKey(9)].into_iter(), 200.0);
    done(&mut path, ETL, 60);
    for _ in 0..1_000 {
        path.step(100.0);
    }
    // Small ones until there is a line of them, and that has gone.
    for _ in 0..200 {
        if path.lab.controller.waiting_len() < 5 {
            done(&mut path, DDL, 1);
        }
    }
    assert_eq!(path.lab.controller.waiting_len(), 5);
    let began = path.now_ms;
    while path.lab.controller.waiting_len() > 0 {
        path.step(100.0);
        assert!(path.now_ms < began + 3_000, "{} wait", path.lab.controller.waiting_len());
    }
    let lab = &mut path.lab;
    let at_once = Terms { max_delay: Duration::ZERO, ..Terms::default() };
    lab.ends();
    lab.run(ms(30));
    let large = lab.queued(GATED, ETL, Terms::default());
    lab.run(ms(5));
    assert_eq!(lab.winners(), [], "the others may come back");
    lab.run(ms(10));
    assert_eq!(lab.winners(), [large], "a fiftieth of what it takes");
    for terms in [rejecting(0.0), at_once] {
        lab.admitted(GATED, ETL, terms);
    }
}
