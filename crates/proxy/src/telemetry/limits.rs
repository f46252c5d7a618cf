//! The limits on statements in flight, and what governs.

use admission::{InFlightView, SignalKey, SignalView};
use policy::ClusterPolicy;
use prometheus::{GaugeVec, Registry};

use super::gauges::gauges;

/// The families of one scrape.
pub(super) struct Limits {
    limit: GaugeVec,
    in_flight: GaugeVec,
    service: GaugeVec,
    governs: GaugeVec,
}

impl Limits {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        let labels = ["cluster", "signal"];
        Self {
            limit: gauges(
                "sluice_in_flight_limit",
                "How many gated statements a signal other than the lag lets be at the server at \
                 once, at gates with it. There is no series while it lets through as many as come.",
                &labels,
            ),
            in_flight: gauges(
                "sluice_in_flight",
                "Gated statements at the server now, at gates with a signal that limits them.",
                &labels,
            ),
            service: gauges(
                "sluice_in_flight_service_seconds",
                "For how long a statement holds its place in such a limit, on average.",
                &labels,
            ),
            governs: gauges(
                "sluice_pace_governs",
                "1 for the signal whose pace had no room for somebody within the last 2 seconds.",
                &labels,
            ),
        }
    }

    pub(super) fn read(
        &self,
        policy: &ClusterPolicy,
        signals: &[SignalView],
        (limits, governing): &(Vec<InFlightView>, Option<SignalKey>),
    ) {
        let name = |key: SignalKey| policy.signal(key).map(|signal| &*signal.name);
        for view in limits {
            let Some(signal) = name(view.signal) else { continue };
            let labels = [&*policy.name, signal];
            if let Some(limit) = view.limit {
                self.limit.with_label_values(&labels).set(limit.floor());
            }
            let in_flight = u32::try_from(view.in_flight).unwrap_or(u32::MAX);
            self.in_flight.with_label_values(&labels).set(f64::from(in_flight));
            self.service.with_label_values(&labels).set(view.service);
        }
        for view in signals {
            let Some(signal) = name(view.key) else { continue };
            let governs = f64::from(u8::from(*governing == Some(view.key)));
            self.governs.with_label_values(&[&*policy.name, signal]).set(governs);
        }
    }
}
