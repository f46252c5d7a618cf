//! The families of who is starved, and of what apps received of their fair share, for one scrape.

use std::collections::HashMap;
use std::sync::Arc;

use prometheus::{GaugeVec, Registry};

use super::Telemetry;
use super::gauges::gauges;
use crate::cluster::{AppReceived, Cluster};

/// Of less than a row or two nobody can say whether it was received.
const ENTITLED_MIN: f64 = 2.0;

pub(super) struct StarvedFamilies {
    starved: GaugeVec,
    by_kind: GaugeVec,
    received: GaugeVec,
    passed: GaugeVec,
}

impl StarvedFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            starved: gauges(
                registry,
                "sluice_starved",
                "1 while an identity of the app is starved: kept waiting or refused for too much \
                 of the window. There is no series otherwise.",
                &["cluster", "app"],
            ),
            by_kind: gauges(
                registry,
                "sluice_starved_kind",
                "1 while an identity of the app is starved: `blocked`, for nothing of its was \
                 admitted, or `below_share`, for it received less than half of its fair share.",
                &["cluster", "app", "kind"],
            ),
            received: gauges(
                registry,
                "sluice_received_of_share",
                "What an app was given of what it waited for, divided by its fair share beside the \
                 others who waited, over the last minute or so in which there was anything to be \
                 shared. 1 is fair. There is no series while an app waits for nothing.",
                &["cluster", "app"],
            ),
            passed: gauges(
                registry,
                "sluice_passed_while_starved",
                "Statements of an app that passed in the window while an identity that is starved \
                 was blocked. Passage `exempt`: the likely cause; `ungated`: no gate holds them; \
                 `asked`: they were admitted.",
                &["cluster", "app", "passage"],
            ),
        }
    }

    pub(super) fn read(&self, cluster: &Cluster, telemetry: &Telemetry) {
        for starved in cluster.starved() {
            let app = telemetry.app_label(&starved.identity);
            self.starved.with_label_values(&[&*cluster.name, &*app]).set(1.0);
            let labels = [&*cluster.name, &*app, starved.kind.as_str()];
            self.by_kind.with_label_values(&labels).set(1.0);
            for passed in &starved.meanwhile {
                let app = telemetry.app_label(passed.app.as_bytes());
                let labels = [&*cluster.name, &*app, passed.passage.as_str()];
                let gauge = self.passed.with_label_values(&labels);
                // Those who stood before the same gate count the same statements.
                let count = u32::try_from(passed.count).unwrap_or(u32::MAX);
                gauge.set(gauge.get().max(f64::from(count)));
            }
        }
        self.read_shares(cluster, telemetry);
    }

    /// Apps with one label are one.
    fn read_shares(&self, cluster: &Cluster, telemetry: &Telemetry) {
        let mut shares: HashMap<Arc<str>, (f64, f64)> = HashMap::new();
        for AppReceived { app, entitled, received } in cluster.app_shares() {
            let sums = shares.entry(telemetry.app_label(&app)).or_default();
            *sums = (sums.0 + entitled, sums.1 + received);
        }
        for (app, (entitled, received)) in shares {
            if entitled >= ENTITLED_MIN {
                let gauge = self.received.with_label_values(&[&*cluster.name, &*app]);
                gauge.set((received / entitled).max(0.0));
            }
        }
    }
}
