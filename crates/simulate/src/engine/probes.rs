//! Heartbeats, probes and their rhythm, as in the proxy.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::{Appliers, Applying, Controller, MonoTime, Step, TableKey, WriteKind, Written};
use rand::RngExt as _;

use super::agenda::{Answer, Event};
use super::clients::written;
use super::proxies::Proxy;
use super::servers::{Beat, Presence, Replica};
use super::{LAG, World};
use crate::{App, RowCosts, Scenario};

/// Nobody gated for this long: nobody needs a fresh value soon.
const HIBERNATES_AFTER: Duration = Duration::from_secs(60);
/// How often it is looked whether nobody is gated.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// No probe is rarer.
const HIBERNATION_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The rhythm of all probes.
#[derive(Debug)]
pub(super) struct Probes {
    tempo: Tempo,
    heartbeat: Rhythm,
    replicas: Vec<Rhythm>,
    looks: BTreeMap<usize, Looks>,
    last_seq: u64,
    committed: Option<u64>,
}

/// How often the rows of tables are counted, in looks at appliers: as in the proxy.
const LOOKS_PER_COUNT: u32 = 20;

/// Looks at one replica's appliers.
#[derive(Debug, Default)]
struct Looks {
    number: u32,
    /// The work of each app that it had applied when its rows were counted last.
    counted: BTreeMap<usize, f64>,
}

impl Looks {
    /// The rows of each app's table since, of one of so many replicas.
    fn count(&mut self, replica: &Replica, apps: &[App], replicas: usize) -> Vec<(Written, f64)> {
        let each = 1.0 / f64::from(u32::try_from(replicas).unwrap_or(u32::MAX));
        let mut rows = Vec::new();
        for (place, work) in replica.applied_of() {
            let since = work - self.counted.insert(place, work).unwrap_or(work);
            let (Some(app), Ok(key)) = (apps.get(place), u64::try_from(place)) else { continue };
            rows.push((written(app, key), each * since / app.apply_cost.max(f64::MIN_POSITIVE)));
        }
        rows
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tempo {
    Awake,
    Hibernating,
}

#[derive(Debug, Clone)]
struct Rhythm {
    awake: Duration,
    hibernating: Duration,
    phase: Phase,
    began: MonoTime,
    /// The beat that was planned last; an earlier one does not count any more.
    beat: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    /// It has asked, and there is no answer yet.
    Asking,
}

impl Probes {
    pub(super) fn new(scenario: &Scenario, stale_after: Duration) -> Self {
        let third = stale_after.mul_f64(1.0 / 3.0).min(HIBERNATION_INTERVAL_MAX);
        let replica =
            Rhythm::new(scenario.probe_interval, third.min(scenario.threshold.mul_f64(0.25)));
        Self {
            tempo: Tempo::Awake,
            heartbeat: Rhythm::new(scenario.heartbeat_interval, third),
            replicas: vec![replica; scenario.replicas.len()],
            looks: BTreeMap::new(),
            last_seq: 0,
            committed: None,
        }
    }

    /// The newest committed heartbeat.
    pub(super) fn committed(&self) -> Option<u64> {
        self.committed
    }
}

impl Rhythm {
    fn new(awake: Duration, hibernating: Duration) -> Self {
        let hibernating = hibernating.max(awake);
        Self { awake, hibernating, phase: Phase::Waiting, began: MonoTime::ZERO, beat: 0 }
    }

    /// Whether this is the beat that is planned; it begins then.
    fn begins(&mut self, now: MonoTime, beat: u64) -> bool {
        if beat != self.beat || self.phase == Phase::Asking {
            return false;
        }
        self.began = now;
        self.phase = Phase::Asking;
        true
    }

    /// The next beat and its time: a period after the last began, or now if that is over.
    fn plan(&mut self, now: MonoTime, tempo: Tempo) -> (MonoTime, u64) {
        let period = match tempo {
            Tempo::Awake => self.awake,
            Tempo::Hibernating => self.hibernating,
        };
        self.phase = Phase::Waiting;
        self.beat = self.beat.saturating_add(1);
        (self.began.saturating_add(period).max(now), self.beat)
    }
}

impl World<'_> {
    pub(super) fn begin_probes(&mut self, proxy: usize) {
        let at = self.begins_at(proxy);
        self.agenda.add(at, Event::HeartbeatDue { proxy, beat: 0 });
        for replica in 0..self.replicas.len() {
            self.agenda.add(at, Event::ProbeDue { proxy, replica, beat: 0 });
        }
        self.agenda.add(at, Event::LookAtTempo { proxy });
    }

    pub(super) fn write_heartbeat(&mut self, proxy: usize, beat: u64) {
        let now = self.now;
        let Some(Proxy { controller, probes, .. }) = self.proxies.get_mut(proxy) else { return };
        if !probes.heartbeat.begins(now, beat) {
            return;
        }
        probes.last_seq = probes.last_seq.saturating_add(1);
        let seq = probes.last_seq;
        controller.handle_heartbeat_begun(now, seq);
        self.settle(proxy);
        let latency = self.scenario.latency.mul_f64(self.delays.random_range(0.5..1.5));
        // It does not queue for the rows of others: its session is one more.
        let committed_at = now.saturating_add(latency);
        self.agenda.add(committed_at, Event::HeartbeatCommitted { proxy, seq });
    }

    pub(super) fn heartbeat_committed(&mut self, place: usize, seq: u64) {
        let now = self.now;
        for (replica, plan) in self.replicas.iter_mut().zip(&self.scenario.replicas) {
            replica.append_heartbeat(now, plan.transit_at(now), Beat { proxy: place, seq });
        }
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        proxy.probes.committed = Some(seq);
        proxy.tracker.handle_heartbeat_committed(seq, now);
        let (at, beat) = proxy.probes.heartbeat.plan(now, proxy.probes.tempo);
        self.agenda.add(at, Event::HeartbeatDue { proxy: place, beat });
    }

    pub(super) fn probe(&mut self, place: usize, index: usize, beat: u64) {
        let now = self.now;
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        let Some(rhythm) = proxy.probes.replicas.get_mut(index) else { return };
        if !rhythm.begins(now, beat) {
            return;
        }
        let Some(replica) = self.replicas.get_mut(index) else { return };
        proxy.tracker.handle_replica_asked(now, replica.key);
        proxy.tracker.handle_replica_appliers(replica.key, replica.workers);
        if self.scenario.row_costs == RowCosts::Applied && replica.presence == Presence::Here {
            // At any time within the interval: looks in step with what is let in would meet whoever is let in.
            let at = self.scenario.probe_interval.mul_f64(self.looks.random_range(0.0..1.0));
            let look = Event::LookAtAppliers { proxy: place, replica: index };
            self.agenda.add(now.saturating_add(at), look);
        }
        let answer = match replica.presence {
            Presence::Here => Answer::Shows(replica.shows(now, place)),
            Presence::Away => Answer::Unreachable,
        };
        let share = self.delays.random_range(0.0..=1.0);
        let answered_at = now.saturating_add(self.scenario.probe_delay.mul_f64(share));
        let mut publish_at = now.saturating_add(self.scenario.probe_interval);
        while publish_at < answered_at {
            self.agenda.add(publish_at, Event::Publish { proxy: place });
            publish_at = publish_at.saturating_add(self.scenario.probe_interval);
        }
        let answered = Event::ProbeAnswered { proxy: place, replica: index, answer };
        self.agenda.add(answered_at, answered);
    }

    pub(super) fn probe_answered(&mut self, place: usize, index: usize, answer: Answer) {
        let now = self.now;
        let Some(replica) = self.replicas.get(index) else { return };
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        match answer {
            Answer::Shows(seq) => proxy.tracker.handle_replica_shows(now, replica.key, seq),
            Answer::Unreachable => proxy.tracker.handle_replica_unreachable(now, replica.key),
        }
        self.publish_lag(place);
        let Some(Proxy { probes, .. }) = self.proxies.get_mut(place) else { return };
        if let Some(rhythm) = probes.replicas.get_mut(index) {
            let (at, beat) = rhythm.plan(now, probes.tempo);
            self.agenda.add(at, Event::ProbeDue { proxy: place, replica: index, beat });
        }
    }

    pub(super) fn look_at_appliers(&mut self, place: usize, index: usize) {
        let now = self.now;
        let count_of_replicas = self.replicas.len();
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        let Some(replica) = self.replicas.get_mut(index) else { return };
        if replica.presence == Presence::Here {
            look_at_appliers(now, replica, &self.scenario.apps, &mut proxy.controller);
            let looks = proxy.probes.looks.entry(index).or_default();
            looks.number = looks.number.wrapping_add(1);
            if looks.number.is_multiple_of(LOOKS_PER_COUNT) {
                let rows = looks.count(replica, &self.scenario.apps, count_of_replicas);
                proxy.controller.handle_applied_rows(&rows);
            }
        }
        self.settle(place);
    }

    pub(super) fn publish_lag(&mut self, place: usize) {
        let now = self.now;
        let Some(proxy) = self.proxies.get_mut(place) else { return };
        let reading = proxy.tracker.reading(now);
        proxy.controller.handle_lag(now, LAG, &reading);
        self.settle(place);
    }

    pub(super) fn look_at_tempo(&mut self, place: usize) {
        let now = self.now;
        self.agenda.add(now.saturating_add(LOOK_INTERVAL), Event::LookAtTempo { proxy: place });
        let Some(Proxy { controller, probes, .. }) = self.proxies.get_mut(place) else { return };
        let last = controller.last_gated_request().unwrap_or(MonoTime::ZERO);
        let quiet = now.saturating_since(last);
        if quiet >= HIBERNATES_AFTER && probes.tempo == Tempo::Awake {
            controller.hibernate(std::iter::once(LAG));
            self.set_tempo(place, Tempo::Hibernating);
        }
    }

    /// Whoever needs a signal has all probes ask at once.
    pub(super) fn wake_probes(&mut self, place: usize) {
        let Some(Proxy { controller, probes, .. }) = self.proxies.get_mut(place) else { return };
        if probes.tempo == Tempo::Hibernating && !controller.hibernates() {
            for rhythm in probes.replicas.iter_mut().chain([&mut probes.heartbeat]) {
                rhythm.began = MonoTime::ZERO;
            }
            self.set_tempo(place, Tempo::Awake);
        }
    }

    fn set_tempo(&mut self, place: usize, tempo: Tempo) {
        let now = self.now;
        let Some(Proxy { probes, .. }) = self.proxies.get_mut(place) else { return };
        probes.tempo = tempo;
        if probes.heartbeat.phase == Phase::Waiting {
            let (at, beat) = probes.heartbeat.plan(now, tempo);
            self.agenda.add(at, Event::HeartbeatDue { proxy: place, beat });
        }
        for (replica, rhythm) in probes.replicas.iter_mut().enumerate() {
            if rhythm.phase == Phase::Waiting {
                let (at, beat) = rhythm.plan(now, tempo);
                self.agenda.add(at, Event::ProbeDue { proxy: place, replica, beat });
            }
        }
    }
}

fn look_at_appliers(
    now: MonoTime,
    replica: &mut Replica,
    apps: &[App],
    controller: &mut Controller,
) {
    let table = |place: usize| Some(written(apps.get(place)?, u64::try_from(place).ok()?).table);
    let at: Vec<_> = replica
        .at_work(now)
        .into_iter()
        .map(|(app, at_rows)| {
            let kind = Some(WriteKind::Insert);
            let step = if at_rows { Step::Rows(kind) } else { Step::Transaction };
            ([app.and_then(table).unwrap_or(OTHERS)], step)
        })
        .collect();
    let seen: Vec<_> = at.iter().map(|(tables, step)| Applying { tables, step: *step }).collect();
    let keep_order = replica.keeps_order();
    controller.handle_appliers(
        now,
        replica.key,
        &Appliers { busy: &seen, idle: seen.is_empty(), keep_order },
    );
}

/// What no rule gates is written to tables of its own.
const OTHERS: TableKey = TableKey(u64::MAX);
