//! The Sluices in front of the primary, and what they tell each other.
//!
//! Each has its own controller, heartbeats, probes and timer, and its own clients. Heartbeats do not begin together:
//! processes are started at different times. Where there are several, each second each of them tells the others how
//! fast it goes and what it wants, which arrives a heartbeat interval later: a row that is written beside the
//! heartbeat, and read with it. What a Sluice has heard it divides at once.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::lag::{LagTracker, ReplicaKey};
use admission::{Controller, Demand, MonoTime, Share, Ticket, Turn};

use super::agenda::Event;
use super::probes::Probes;
use super::signals::Meter;
use super::{World, controller_config, lag_config, shares, signal_config};
use crate::Scenario;

/// How often a Sluice tells the others.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// A Sluice.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) controller: Controller,
    pub(super) tracker: LagTracker,
    /// When the timer that the controller asked for wakes.
    pub(super) wake: Option<MonoTime>,
    pub(super) waiting: BTreeMap<Ticket, usize>,
    pub(super) probes: Probes,
    /// Of the signals other than the lag, in their order.
    pub(super) meters: Vec<Meter>,
    /// What each of the others told last.
    heard: BTreeMap<usize, Demand>,
}

impl Proxy {
    pub(super) fn all_of(scenario: &Scenario, keys: &[ReplicaKey]) -> Vec<Self> {
        let lag = signal_config(scenario);
        let controller = |place| {
            let config = controller_config(scenario, lag);
            let mut controller = Controller::new(config, seed(scenario, place), MonoTime::ZERO);
            shares::watch(&mut controller, scenario, MonoTime::ZERO);
            controller
        };
        let proxy = |place| Self {
            controller: controller(place),
            tracker: LagTracker::new(lag_config(scenario, &lag, keys.to_vec()), MonoTime::ZERO),
            wake: None,
            waiting: BTreeMap::new(),
            probes: Probes::new(scenario, lag.stale_after),
            meters: Meter::all_of(scenario),
            heard: BTreeMap::new(),
        };
        (0..scenario.proxies).map(proxy).collect()
    }
}

/// Where the chance of a Sluice's controller comes from.
pub(super) fn seed(scenario: &Scenario, place: usize) -> u64 {
    let place = u64::try_from(place).unwrap_or(u64::MAX);
    scenario.seed.wrapping_add(place.wrapping_mul(SEEDS_APART))
}

/// Any large odd number.
const SEEDS_APART: u64 = 0x9e37_79b9_7f4a_7c15;

impl World<'_> {
    /// When the heartbeats and probes of a Sluice begin.
    pub(super) fn begins_at(&self, proxy: usize) -> MonoTime {
        let of = u32::try_from(self.proxies.len()).unwrap_or(u32::MAX).max(1);
        let place = u32::try_from(proxy).unwrap_or(u32::MAX);
        let part = self.scenario.heartbeat_interval.mul_f64(f64::from(place) / f64::from(of));
        MonoTime::ZERO.saturating_add(part)
    }

    pub(super) fn begin_telling(&mut self) {
        if self.proxies.len() > 1 {
            for proxy in 0..self.proxies.len() {
                let at = self.begins_at(proxy).saturating_add(TELL_INTERVAL);
                self.agenda.add(at, Event::Tell { proxy });
            }
        }
    }

    pub(super) fn tell(&mut self, proxy: usize) {
        let now = self.now;
        self.agenda.add(now.saturating_add(TELL_INTERVAL), Event::Tell { proxy });
        let demand = self.proxies.get(proxy).and_then(|proxy| proxy.controller.demand(now));
        if let Some(demand) = demand {
            let heard_at = now.saturating_add(self.scenario.heartbeat_interval);
            self.agenda.add(heard_at, Event::Hear { from: proxy, demand });
        }
    }

    /// The others have read what one told.
    pub(super) fn hear(&mut self, from: usize, demand: Demand) {
        let now = self.now;
        for (place, proxy) in self.proxies.iter_mut().enumerate() {
            if place == from {
                continue;
            }
            proxy.heard.insert(from, demand);
            if let Some(own) = proxy.controller.demand(now) {
                let others = proxy.heard.iter().map(|(from, demand)| (name(*from), demand));
                let turn = Turn::of(now, (name(place), &own), others);
                let share = Share::of(&own, proxy.heard.values());
                proxy.controller.take_share(now, share);
                proxy.controller.take_round(now, turn);
            }
        }
    }
}

/// Turns go in the order of the Sluices' names.
fn name(place: usize) -> u64 {
    u64::try_from(place).unwrap_or(u64::MAX)
}
