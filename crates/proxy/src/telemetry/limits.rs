//! The limits on statements in flight, what the pace goes by, and what governs.

use admission::{InFlightView, PaceView, RowWorkView, SignalKey, SignalView, WriteKind};
use policy::ClusterPolicy;
use prometheus::{GaugeVec, IntCounterVec, Registry};

use super::gauges::{counters, gauges};
use crate::cluster::Cluster;

/// The families of one scrape.
pub(super) struct Limits {
    limit: GaugeVec,
    in_flight: GaugeVec,
    service: GaugeVec,
    governs: GaugeVec,
    rate: GaugeVec,
    window_fill: GaugeVec,
    base: GaugeVec,
    alone: GaugeVec,
    running: GaugeVec,
    oversize: IntCounterVec,
    slow_starts: GaugeVec,
    row_cost: GaugeVec,
    transaction_cost: GaugeVec,
}

impl Limits {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        let labels = ["cluster", "signal"];
        let of_server = |name, help| gauges(name, help, &["cluster", "server"]);
        let of_cluster = |name, help| gauges(name, help, &["cluster"]);
        Self {
            limit: gauges(
                "sluice_in_flight_limit",
                "How many gated statements a signal other than the lag lets be at the server at \
                 once, at gates with it; below 1, the part of the time in which one may be. There \
                 is no series while it lets through as many as come.",
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
            rate: of_server(
                "sluice_pace_rate_rows_per_second",
                "What a replica that counts applies when it is busy, as far as Sluice has found out.",
            ),
            window_fill: of_server(
                "sluice_pace_window_fill",
                "Work on its way to a replica that counts, as part of the window; from 1 on nothing \
                 more is let in.",
            ),
            base: of_server(
                "sluice_pace_base_transit_seconds",
                "What replication to a replica takes without a queue, as far as Sluice has found out.",
            ),
            alone: of_server(
                "sluice_pace_alone_seconds",
                "What a usual large statement takes by itself at a replica that applies several at \
                 once; 0 where that is not told from a queue.",
            ),
            running: of_cluster(
                "sluice_pace_service_seconds",
                "How long gated work runs on the primary before it is committed: the mean over rows.",
            ),
            oversize: counters(
                registry,
                "sluice_pace_oversize_total",
                "Gated statements and transactions that were larger than the window by themselves.",
                &["cluster"],
            ),
            slow_starts: of_cluster(
                "sluice_pace_slow_start_apps",
                "Apps held back until more of what they write has been seen at the replicas.",
            ),
            transaction_cost: of_cluster(
                "sluice_pace_transaction_cost",
                "What the commit of a transaction counts as beside its rows, in rows of the mean.",
            ),
            row_cost: gauges(
                "sluice_pace_row_cost",
                "What a row of this table counts as, in rows of the mean. The twenty that cost most.",
                &["cluster", "table", "kind"],
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
                self.limit.with_label_values(&labels).set(limit);
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

    /// What rows were found to cost, and a transaction whatever it writes.
    pub(super) fn read_costs(&self, cluster: &Cluster, rows: &[RowWorkView], transaction: f64) {
        self.transaction_cost.with_label_values(&[&*cluster.name]).set(transaction);
        for RowWorkView { written, factor, .. } in rows {
            let Some(table) = cluster.probes.tables.of(written.table) else { continue };
            let kind = match written.kind {
                WriteKind::Insert => "insert",
                WriteKind::Update => "update",
                WriteKind::Delete => "delete",
                WriteKind::Replace => "replace",
            };
            self.row_cost.with_label_values(&[&*cluster.name, &*table, kind]).set(*factor);
        }
    }

    pub(super) fn read_pace(&self, cluster: &Cluster, view: &PaceView) {
        let name = &*cluster.name;
        self.oversize.with_label_values(&[name]).inc_by(view.oversize);
        let slow_starts = u32::try_from(view.slow_starts).unwrap_or(u32::MAX);
        self.slow_starts.with_label_values(&[name]).set(f64::from(slow_starts));
        self.running.with_label_values(&[name]).set(view.service.as_secs_f64());
        for flow in &view.flows {
            let Some(server) = cluster.probes.server_of(flow.replica) else { continue };
            let labels = [name, &*server];
            self.rate.with_label_values(&labels).set(flow.rate);
            self.base.with_label_values(&labels).set(flow.base);
            self.alone.with_label_values(&labels).set(flow.alone);
            if let Some(fill) = flow.window_fill {
                self.window_fill.with_label_values(&labels).set(fill);
            }
        }
    }
}
