//! What the demo reads from Sluice's own `/metrics`.

use integration::sluice::Metrics;

/// The identities of the demo, by their `app` label.
pub(super) const APPS: [App; 3] = [
    App { label: "nightly-etl", what: "nightly ETL, ratio 0.9" },
    App { label: "vcopier:vreplication:online-ddl", what: "schema change, ratio 0.1" },
    App { label: "Shop", what: "web application, never gated" },
];

/// One identity to show.
pub(super) struct App {
    pub(super) label: &'static str,
    pub(super) what: &'static str,
}

/// One reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) apps: Vec<Figures>,
    /// Seconds.
    pub(super) lag: Option<f64>,
    /// Seconds.
    pub(super) threshold: f64,
    pub(super) gate_open: bool,
}

/// One identity's figures since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) label: &'static str,
    pub(super) what: &'static str,
    pub(super) admitted: f64,
    pub(super) delayed: f64,
    pub(super) refused: f64,
    /// Seconds, of the delayed ones.
    pub(super) mean_delay: f64,
    pub(super) waiting: f64,
    /// Seconds.
    pub(super) oldest: f64,
}

impl Report {
    pub(super) fn read(metrics: &Metrics) -> Self {
        let lag = [("signal", "lag"), ("server", "")];
        Self {
            apps: APPS.iter().map(|app| figures(app, metrics)).collect(),
            lag: metrics.max("sluice_signal_value", &lag),
            threshold: metrics
                .max("sluice_signal_threshold", &[("signal", "lag")])
                .unwrap_or_default(),
            gate_open: metrics.max("sluice_gate_open", &[("signal", "lag")]) == Some(1.0),
        }
    }

    /// What a demo that works does not show.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for app in &self.apps {
            if app.admitted < 1.0 {
                faults.push(format!("{} was never admitted, or not told apart", app.label));
            }
            let web = app.label == "Shop";
            if web && app.delayed + app.refused > 0.0 {
                faults.push(format!("{} is not gated, and yet it was delayed", app.label));
            }
            if !web && app.delayed < 1.0 {
                faults.push(format!("{} was never delayed", app.label));
            }
        }
        if self.apps.is_empty() {
            faults.push("no figures were read".into());
        }
        if self.lag.is_none() {
            faults.push("the replication lag was not measured".into());
        }
        faults
    }
}

fn figures(app: &App, metrics: &Metrics) -> Figures {
    let label = ("app", app.label);
    let statements =
        |decision| metrics.sum("sluice_statements_total", &[label, ("decision", decision)]);
    let delayed = metrics.sum("sluice_queue_delay_seconds_count", &[label]);
    let seconds = metrics.sum("sluice_queue_delay_seconds_sum", &[label]);
    let rule_depth = |rule| metrics.sum("sluice_queue_depth", &[("rule", rule)]);
    Figures {
        label: app.label,
        what: app.what,
        admitted: statements("admitted"),
        refused: statements("rejected"),
        delayed,
        mean_delay: if delayed > 0.0 { seconds / delayed } else { 0.0 },
        waiting: match app.label {
            "nightly-etl" => rule_depth("nightly-etl"),
            "Shop" => rule_depth("everything-else"),
            _ => rule_depth("schema-changes"),
        },
        oldest: metrics.max("sluice_queue_oldest_seconds", &[label]).unwrap_or_default(),
    }
}
