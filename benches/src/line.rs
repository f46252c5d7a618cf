//! A full line in front of a gate that is paced by the lag: sessions that ask again as soon as their statement has
//! ended, and a replica of some capacity, all on a virtual clock that jumps from event to event. What takes
//! real time is the controller, called as the shell calls it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use admission::lag::{LagReading, Progress, ReplicaKey};
use admission::{
    AdaptivePacing, AppKey, BinaryPacing, Controller, ControllerConfig, Decision, DigestKey,
    GateConfig, GateKey, IdentityKey, MonoTime, Outcome, Pacing, Permit, Request, Resolved,
    RuleKey, SignalConfig, SignalKey, Terms, Ticket,
};

/// The line, its controller, and the replica behind it.
#[derive(Debug)]
pub struct Line {
    controller: Controller,
    now: MonoTime,
    waiting: BTreeMap<Ticket, u64>,
    identities: u64,
    replica: Replica,
    next_beat: MonoTime,
    next_look: MonoTime,
    statements: u64,
}

/// Applies rows in order, so many a second.
#[derive(Debug)]
struct Replica {
    rows_per_s: f64,
    applied: f64,
    applied_at: MonoTime,
    /// Heartbeats not applied, with the rows before them and when they were begun.
    beats: VecDeque<(u64, f64, MonoTime)>,
    begun: u64,
    shown: u64,
}

impl Line {
    /// So many sessions of so many identities, five to an app, behind a replica that applies so many rows a
    /// second. It has run for half a minute, so the pace is found.
    #[must_use]
    pub fn new(sessions: u64, identities: u64, rows_per_s: f64) -> Self {
        let now = MonoTime::from_nanos(1);
        let mut line = Self {
            controller: Controller::new(config(), 1, now),
            now,
            waiting: BTreeMap::new(),
            identities,
            replica: Replica {
                rows_per_s,
                applied: 0.0,
                applied_at: now,
                beats: VecDeque::new(),
                begun: 0,
                shown: 0,
            },
            next_beat: now,
            next_look: now,
            statements: 0,
        };
        for session in 0..sessions {
            line.ask(session);
        }
        let warm = now.saturating_add(WARM_UP);
        while line.now < warm {
            line.step();
        }
        line
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.controller.waiting_len()
    }

    /// Rows a second that are let through.
    #[must_use]
    pub fn pace_per_s(&self) -> f64 {
        self.controller.release_per_s(GATE, self.now).unwrap_or_default()
    }

    /// Runs until so many more statements have ended and asked again.
    pub fn run(&mut self, statements: u64) {
        let end = self.statements.saturating_add(statements);
        while self.statements < end {
            self.step();
        }
    }

    /// The next event, whatever it is.
    fn step(&mut self) {
        let timer = self.controller.poll_timeout().unwrap_or(MonoTime::MAX);
        self.now = self.now.max(timer.min(self.next_beat).min(self.next_look));
        if self.now >= self.next_beat {
            self.next_beat = self.now.saturating_add(HEARTBEAT);
            self.beat();
        }
        if self.now >= self.next_look {
            self.next_look = self.now.saturating_add(PROBE);
            self.look();
        }
        self.controller.handle_time(self.now);
        self.end_admitted();
    }

    /// Whoever was let through has its answer, and sends its next statement.
    fn end_admitted(&mut self) {
        while let Some(resolution) = self.controller.poll_resolution(self.now) {
            let Some(session) = self.waiting.remove(&resolution.ticket) else { continue };
            if let Resolved::Admit(permit) = resolution.outcome {
                self.end(permit);
            }
            self.ask(session);
        }
    }

    fn ask(&mut self, session: u64) {
        let identity = session.checked_rem(self.identities).unwrap_or_default();
        let request = Request {
            rule: RuleKey(1),
            identity: IdentityKey(identity),
            app: AppKey(identity / IDENTITIES_PER_APP),
            digest: Some(DigestKey(identity)),
            written: None,
            gate: GATE,
            terms: Terms { max_delay: MAX_DELAY, queue_len_max: u32::MAX, ..Terms::default() },
            arrived: self.now,
            since: self.now,
        };
        loop {
            match self.controller.request(self.now, &request) {
                Decision::Queue(ticket) => {
                    self.waiting.insert(ticket, session);
                    break;
                }
                Decision::Admit(permit) | Decision::Observed(permit, _) => self.end(permit),
                Decision::Reject(_) => break,
            }
        }
        // The shell looks whether it must wake earlier.
        std::hint::black_box(self.controller.poll_timeout());
    }

    fn end(&mut self, permit: Permit) {
        let outcome = Outcome { affected_rows: 1, server_time: SERVER_TIME, ..Outcome::default() };
        self.controller.complete(self.now, permit, outcome);
        std::hint::black_box(self.controller.poll_timeout());
        self.statements = self.statements.saturating_add(1);
    }

    fn beat(&mut self) {
        self.replica.begun = self.replica.begun.saturating_add(1);
        let rows = f64::from(u32::try_from(self.statements).unwrap_or(u32::MAX));
        self.replica.beats.push_back((self.replica.begun, rows, self.now));
        self.controller.handle_heartbeat_begun(self.now, self.replica.begun);
    }

    fn look(&mut self) {
        let committed = f64::from(u32::try_from(self.statements).unwrap_or(u32::MAX));
        let lag = self.replica.apply(self.now, committed);
        let shown = Some(self.replica.shown).filter(|shown| *shown > 0);
        let progress = Progress {
            replica: REPLICA,
            lag,
            threshold: None,
            shown,
            answered_at: self.now,
            asked_at: self.now,
            appliers: 1,
            committed_at: shown.map(|_| self.now),
        };
        let reading = LagReading {
            value: Some(lag.as_secs_f64()),
            at: self.now,
            slowest: Some(REPLICA),
            threshold: None,
            governing: vec![progress],
        };
        self.controller.handle_lag(self.now, LAG, &reading);
    }
}

impl Replica {
    /// Applies until now, and gives the age of the first heartbeat that is not there yet.
    fn apply(&mut self, now: MonoTime, committed: f64) -> Duration {
        let passed = now.saturating_since(self.applied_at).as_secs_f64();
        self.applied = (self.applied + passed * self.rows_per_s).min(committed);
        self.applied_at = now;
        while let Some((seq, _, _)) = self.beats.pop_front_if(|(_, rows, _)| *rows <= self.applied)
        {
            self.shown = seq;
        }
        self.beats.front().map_or(Duration::ZERO, |(_, _, begun)| now.saturating_since(*begun))
    }
}

fn config() -> ControllerConfig {
    let adaptive = AdaptivePacing {
        lag: LAG,
        heartbeat_interval: HEARTBEAT,
        probe_interval: PROBE,
        learns_row_costs: false,
        otherwise: BinaryPacing::default(),
    };
    ControllerConfig {
        signals: vec![SignalConfig::at_threshold(LAG, 1.0)],
        gates: vec![GateConfig { key: GATE, signals: vec![LAG] }],
        pacing: Pacing::Adaptive(adaptive),
        ..ControllerConfig::default()
    }
}

const LAG: SignalKey = SignalKey(1);
const GATE: GateKey = GateKey(1);
const REPLICA: ReplicaKey = ReplicaKey(1);
const HEARTBEAT: Duration = Duration::from_millis(250);
const PROBE: Duration = Duration::from_millis(100);
const WARM_UP: Duration = Duration::from_secs(30);
const MAX_DELAY: Duration = Duration::from_secs(3_600);
const SERVER_TIME: Duration = Duration::from_millis(1);
const IDENTITIES_PER_APP: u64 = 5;

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn the_line_stays_full_and_moves_at_the_replicas_pace() {
        let mut line = Line::new(1_000, 200, 1_000.0);
        assert!(line.waiting() > 900, "{}", line.waiting());
        let before = line.now;
        line.run(10_000);
        let per_s = 10_000.0 / line.now.saturating_since(before).as_secs_f64();
        assert!((900.0..1_100.0).contains(&per_s), "{per_s}");
    }
}
