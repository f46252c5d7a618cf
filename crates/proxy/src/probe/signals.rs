//! The signals other than lag: numbers that a server gives.

use std::time::Duration;

use admission::{MonoTime, Sample};
use policy::{ClusterPolicy, Scope, Signal, SignalKind};

use super::answer::{column, number};
use super::health::{Health, Purpose};
use super::{PROBE_TIMEOUT, ProbeTarget};
use crate::board::ProbeError;
use crate::link::Link;

/// The shortest pause between two rounds of one server. Unlike a heartbeat, these questions cost
/// the server something.
const INTERVAL_MIN: Duration = Duration::from_millis(250);

/// The signals of a cluster that are measured by this module on servers of this scope.
pub(super) fn wanted(policy: &ClusterPolicy, scope: Scope) -> Vec<Signal> {
    let measured = |signal: &&Signal| match signal.kind {
        SignalKind::Lag { .. } | SignalKind::Latency(_) => false,
        SignalKind::ThreadsRunning
        | SignalKind::HistoryListLength
        | SignalKind::Query(_)
        | SignalKind::Status(_) => signal.scope == scope,
    };
    policy.signals.iter().filter(measured).cloned().collect()
}

/// Measures these signals on one server until it is dropped.
pub(super) async fn watch(target: ProbeTarget, signals: Vec<Signal>) {
    let stale_after = signals.iter().map(|signal| signal.stale_after).min().unwrap_or_default();
    let interval = target.probe.probe_interval.max(INTERVAL_MIN);
    let mut rhythm = target.site.rhythm(interval, stale_after / 3);
    let mut link = target.link(PROBE_TIMEOUT);
    let mut meters: Vec<(Signal, Meter, Health, Option<Link>)> = signals
        .into_iter()
        .filter_map(|signal| {
            let meter = Meter::of(&signal.kind)?;
            let health = target.health(meter.purpose);
            // An operator's query may hang, which must not keep the others from being asked.
            let own = (meter.purpose == Purpose::Query).then(|| target.link(PROBE_TIMEOUT));
            Some((signal, meter, health, own))
        })
        .collect();
    loop {
        rhythm.beat().await;
        for (signal, meter, health, own) in &mut meters {
            let asked_at = target.site.cluster.now();
            let value = meter.read(own.as_mut().unwrap_or(&mut link)).await;
            health.note(&value);
            target.note_heard(&value);
            take_in(&target, signal, asked_at, value.ok());
        }
    }
}

fn take_in(target: &ProbeTarget, signal: &Signal, asked_at: MonoTime, value: Option<f64>) {
    let cluster = &target.site.cluster;
    let now = cluster.now();
    let answer = value.map(|value| (value, asked_at));
    let worst = cluster.probes.measured(signal, &target.server, answer, now);
    // A server that does not answer must not make the value of another look new.
    let (sample, asked_at) = match (value, worst) {
        (Some(_), Some((worst, asked_at))) => (Sample::Value(worst), asked_at),
        (Some(_) | None, _) => (Sample::Failed, asked_at),
    };
    cluster.control(|controller, now| {
        controller.handle_answer(now, asked_at, signal.key, sample);
    });
}

/// How one signal is read.
pub(super) struct Meter {
    purpose: Purpose,
    query: String,
    /// Which column has the number: the first that the row has.
    column: Column,
}

enum Column {
    First,
    Named(&'static str),
}

impl Meter {
    pub(super) fn of(kind: &SignalKind) -> Option<Self> {
        match kind {
            SignalKind::Lag { .. } | SignalKind::Latency(_) => None,
            SignalKind::ThreadsRunning => Some(Self::status("Threads_running")),
            SignalKind::Status(variable) => Some(Self::status(variable)),
            SignalKind::HistoryListLength => Some(Self {
                purpose: Purpose::InnodbMetrics,
                query: "SELECT `COUNT` FROM information_schema.INNODB_METRICS \
                        WHERE NAME = 'trx_rseg_history_len'"
                    .into(),
                column: Column::First,
            }),
            SignalKind::Query(query) => {
                Some(Self { purpose: Purpose::Query, query: query.clone(), column: Column::First })
            }
        }
    }

    /// Not `LIKE`: the `_` of a variable's name would stand for any character.
    fn status(variable: &str) -> Self {
        let name: String =
            variable.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        Self {
            purpose: Purpose::Status,
            query: format!("SHOW GLOBAL STATUS WHERE Variable_name = '{name}'"),
            column: Column::Named("Value"),
        }
    }

    pub(super) async fn read(&self, server: &mut Link) -> Result<f64, ProbeError> {
        let row = server.first(&self.query).await?;
        let value = row.as_ref().and_then(|row| match self.column {
            Column::First => row.as_ref(0),
            Column::Named(name) => column(row, &[name]),
        });
        let value = value.and_then(number::<f64>).filter(|value| value.is_finite());
        value.ok_or_else(|| ProbeError::Unusable("the answer is not one number".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_variable_cannot_leave_its_quotes() {
        let meter = Meter::status("Threads_running' OR '1");
        assert_eq!(meter.query, "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_runningOR1'");
    }
}
