//! One log line when a server starts to fail its probe, one when it recovers, none between; and of one
//! that does both all the time a line now and then.

use std::sync::Arc;

use admission::MonoTime;

use crate::board::{ErrorKind, ProbeError};
use crate::cluster::Cluster;
use crate::cluster::telling::{News, Telling};
use crate::link::denial::is_denial;

/// The health of one probe on one server.
pub(super) struct Health {
    cluster: Arc<Cluster>,
    server: Arc<str>,
    purpose: Purpose,
    trouble: Trouble,
}

/// What ails a probe, and what was told of that.
struct Trouble(Telling<Option<ErrorKind>>);

/// What a probe is for: it decides which rights it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Writing heartbeats on the primary.
    Heartbeat,
    /// Seeing that the primary answers.
    Pulse,
    /// Reading heartbeats on a replica.
    ReplicaHeartbeat,
    /// `SHOW REPLICA STATUS`.
    ReplicaStatus,
    /// The operator's own query.
    Query,
    /// `SHOW GLOBAL STATUS`.
    Status,
    /// Reading the table of runtime rules.
    Rules,
    /// `information_schema.INNODB_METRICS`.
    InnodbMetrics,
    /// What the appliers of a replica are at.
    Appliers,
    /// How many rows they have applied.
    AppliedRows,
}

impl Health {
    pub(super) fn new(cluster: &Arc<Cluster>, server: &Arc<str>, purpose: Purpose) -> Self {
        let trouble = Trouble::none(cluster.now());
        Self { cluster: cluster.clone(), server: server.clone(), purpose, trouble }
    }

    /// Takes in how a probe ended, and logs it if that is news.
    pub(super) fn note<T>(&mut self, outcome: &Result<T, ProbeError>) {
        let error = outcome.as_ref().err();
        let Some(untold) = self.trouble.note(error, self.cluster.now()) else { return };
        let (cluster, server, probe) = (&self.cluster.name, &self.server, self.purpose.as_str());
        match error {
            Some(error) => {
                let advice = advice(self.purpose, error);
                tracing::warn!(%cluster, %server, probe, %error, untold, advice, "probe failed");
            }
            None => tracing::info!(%cluster, %server, probe, untold, "probe answers again"),
        }
    }
}

impl Trouble {
    fn none(now: MonoTime) -> Self {
        Self(Telling::new(None, now))
    }

    /// If there is something to tell: how many changes were not told since the last line.
    fn note(&mut self, error: Option<&ProbeError>, now: MonoTime) -> Option<u32> {
        let News { before: _, untold } = self.0.look(error.map(ProbeError::kind), now)?;
        Some(untold)
    }
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Pulse => "pulse",
            Self::ReplicaHeartbeat => "replica heartbeat",
            Self::ReplicaStatus => "replica status",
            Self::Query => "query",
            Self::Status => "status",
            Self::Rules => "runtime rules",
            Self::InnodbMetrics => "innodb metrics",
            Self::Appliers => "appliers",
            Self::AppliedRows => "applied rows",
        }
    }
}

/// Whether a right is missing.
pub(super) fn is_denied(error: &ProbeError) -> bool {
    error.code().is_some_and(is_denial)
}

/// What the operator can do about it; empty if the error says it all.
fn advice(purpose: Purpose, error: &ProbeError) -> &'static str {
    if let ProbeError::Lost(why) | ProbeError::Unencrypted(why) = error
        && why.contains(AUTHORITY_AS_SERVER)
    {
        return "backend_tls.ca holds this server's own certificate, which is marked as an \
            authority (CA:TRUE): probes take it only without that mark";
    }
    if let Some(advice) = error.login_advice() {
        return advice;
    }
    match (error.code(), purpose) {
        (Some(ER_OPTION_PREVENTS_STATEMENT), Purpose::Heartbeat) => {
            "the primary is read only; is it the primary?"
        }
        (Some(code), purpose) if is_denial(code) => match purpose {
            Purpose::Heartbeat => {
                "GRANT CREATE, INSERT, UPDATE, SELECT, DELETE on the heartbeat's schema"
            }
            Purpose::ReplicaHeartbeat => "GRANT SELECT on the heartbeat's schema",
            Purpose::ReplicaStatus => {
                "GRANT REPLICATION CLIENT ON *.* (MariaDB: SLAVE MONITOR); without it a replica \
                 that is delayed on purpose is taken for one that lags, and nobody sees that its \
                 applier or receiver is stopped"
            }
            Purpose::InnodbMetrics => "GRANT PROCESS ON *.*",
            Purpose::Appliers => {
                "GRANT SELECT ON performance_schema.*; until then every row counts as a row"
            }
            Purpose::AppliedRows => {
                "GRANT SELECT ON performance_schema.*; until then what others write to a table is \
                 charged to who passes a gate"
            }
            Purpose::Rules => {
                "GRANT CREATE, INSERT, UPDATE, SELECT, DELETE on the schema of the heartbeat's table; \
                 until then rules made at runtime stay with the Sluice that they are made at"
            }
            Purpose::Pulse | Purpose::Query | Purpose::Status => "",
        },
        (None, Purpose::Appliers) => "until it can be told, every row counts as a row",
        (Some(_) | None, _) => "",
    }
}

/// What the verifier of certificates calls it.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// `ER_OPTION_PREVENTS_STATEMENT`: `--read-only`.
pub(super) const ER_OPTION_PREVENTS_STATEMENT: u16 = 1290;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Twenty lines a second, where a server let in every other probe.
    #[test]
    fn a_probe_that_fails_and_answers_in_turns_has_a_line_now_and_then() {
        let at = |ms| MonoTime::ZERO.saturating_add(Duration::from_millis(ms));
        let lost = |why: &str| ProbeError::Lost(why.to_owned());
        let refused = ProbeError::Refused { code: 1040, message: String::new() };
        let mut trouble = Trouble::none(at(0));
        assert_eq!(trouble.note(None, at(0)), None, "well from the start");
        assert_eq!(trouble.note(Some(&lost("gone")), at(100)), Some(0));
        assert_eq!(trouble.note(Some(&lost("in other words")), at(200)), None);
        assert_eq!(trouble.note(Some(&refused), at(300)), Some(0), "another trouble");
        assert_eq!(trouble.note(None, at(400)), Some(0));
        let told = (5..6_000).filter_map(|n| {
            let error = (n % 2 == 0).then_some(&refused);
            trouble.note(error, at(n * 100))
        });
        let told: Vec<u32> = told.collect();
        assert!((20..=30).contains(&told.len()), "{} lines in ten minutes", told.len());
        assert!(told.last().is_some_and(|untold| *untold > 250), "{told:?}");
    }

    #[test]
    fn a_missing_right_is_named() {
        let denied = ProbeError::Refused { code: 1227, message: String::new() };
        assert!(advice(Purpose::ReplicaStatus, &denied).contains("REPLICATION CLIENT"));
        assert!(advice(Purpose::InnodbMetrics, &denied).contains("PROCESS"));
        assert_eq!(advice(Purpose::Heartbeat, &ProbeError::TimedOut), "");
    }

    #[test]
    fn a_certificate_that_only_sessions_take_is_explained() {
        let why = "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))";
        let refused = ProbeError::Lost(why.to_owned());
        assert!(advice(Purpose::Pulse, &refused).contains("CA:TRUE"));
    }
}
