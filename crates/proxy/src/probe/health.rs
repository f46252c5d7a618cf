//! One log line when a server starts to fail its probe, one when it recovers, none between.

use std::sync::Arc;

use crate::board::ProbeError;
use crate::link::denial::is_denial;

/// The health of one probe on one server.
pub(super) struct Health {
    cluster: Arc<str>,
    server: Arc<str>,
    purpose: Purpose,
    trouble: Option<ProbeError>,
}

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
    pub(super) fn new(cluster: &Arc<str>, server: &Arc<str>, purpose: Purpose) -> Self {
        Self { cluster: cluster.clone(), server: server.clone(), purpose, trouble: None }
    }

    /// Takes in how a probe ended, and logs it if that is news.
    pub(super) fn note<T>(&mut self, outcome: &Result<T, ProbeError>) {
        let Self { cluster, server, purpose, trouble } = self;
        match (outcome, &trouble) {
            (Err(error), Some(known)) if error.is_like(known) => {}
            (Err(error), _) => {
                let probe = purpose.as_str();
                let advice = advice(*purpose, error);
                tracing::warn!(%cluster, %server, probe, %error, advice, "probe failed");
                *trouble = Some(error.clone());
            }
            (Ok(_), Some(_)) => {
                tracing::info!(%cluster, %server, probe = purpose.as_str(), "probe answers again");
                *trouble = None;
            }
            (Ok(_), None) => {}
        }
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
    use super::*;

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
