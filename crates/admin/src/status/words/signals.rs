//! The table of signals.

use super::{Row, Table, Tone, amount, none, span, table};
use crate::status::{ClusterStatus, SignalStatus};

pub(super) fn signals(cluster: &ClusterStatus) -> Table {
    // Where replicas have thresholds of their own, it matters whose value it is.
    let is_own = |server: &String| {
        let mut replicas = cluster.replicas.iter();
        replicas.any(|replica| replica.server == *server && replica.threshold_s.is_some())
    };
    let at = |signal: &SignalStatus| match signal.server.as_ref().filter(|it| is_own(it)) {
        Some(server) => format!(" at {server}"),
        None => String::new(),
    };
    let row = |signal: &SignalStatus| {
        let tone = if signal.open { Tone::Good } else { Tone::Bad };
        let says = match (&*signal.state, signal.open) {
            ("no_data", true) => "no data, lets through".to_owned(),
            (state, _) => state.replace('_', " "),
        };
        let cells = vec![
            signal.signal.clone(),
            signal.value.map_or_else(none, |value| amount(value, &signal.unit)) + &at(signal),
            amount(signal.threshold, &signal.unit),
            says,
            span(signal.for_s),
            signal.age_s.map_or_else(none, span),
            in_flight(signal),
        ];
        Row { tone, cells }
    };
    table(
        "Signals",
        &["signal", "value", "threshold", "says", "for", "age of the value", "in flight"],
        cluster.signals.iter().map(row).collect(),
    )
}

/// What a signal limits, and to how many.
fn in_flight(signal: &SignalStatus) -> String {
    match (signal.in_flight, signal.in_flight_limit) {
        (Some(count), Some(part)) if part < 1.0 => {
            format!("{count} of 1, {:.0} % of the time", part * 100.0)
        }
        (Some(count), Some(limit)) => format!("{count} of {limit:.0}"),
        (Some(count), None) => count.to_string(),
        (None, _) => none(),
    }
}
