//! What a replica itself says about its replication.

use std::time::Duration;

use mysql_async::Row;

use super::answer::{column, number};
use crate::board::ProbeError;
use crate::link::Link;

/// `ER_PARSE_ERROR`
const ER_PARSE_ERROR: u16 = 1064;

/// `SHOW REPLICA STATUS`, over all channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replication {
    /// `SQL_Delay`: how far it stays behind on purpose.
    pub(super) delay: Duration,
    /// `Seconds_Behind_Source`; `None` is NULL: replication does not run.
    pub(super) behind: Option<Duration>,
}

/// How this server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    /// MySQL 8.0.22, MariaDB 10.5 and later.
    #[default]
    Replica,
    /// Older servers know only `SHOW SLAVE STATUS`.
    Slave,
}

impl Dialect {
    const fn question(self) -> &'static str {
        match self {
            Self::Replica => "SHOW REPLICA STATUS",
            Self::Slave => "SHOW SLAVE STATUS",
        }
    }

    /// Asks; learns the older words from a server that does not know the newer.
    pub(super) async fn ask(&mut self, replica: &mut Link) -> Result<Replication, ProbeError> {
        let rows = match (replica.rows(self.question()).await, *self) {
            (Err(error), Self::Replica) if error.code() == Some(ER_PARSE_ERROR) => {
                *self = Self::Slave;
                replica.rows(self.question()).await
            }
            (rows, Self::Replica | Self::Slave) => rows,
        };
        let channels: Vec<Replication> = rows?.iter().map(channel).collect();
        slowest(&channels).ok_or_else(|| ProbeError::Unusable("it is not a replica".into()))
    }
}

fn channel(row: &Row) -> Replication {
    let behind = column(row, &["Seconds_Behind_Source", "Seconds_Behind_Master"]);
    let delay = column(row, &["SQL_Delay"]).and_then(number).unwrap_or(0);
    Replication {
        delay: Duration::from_secs(delay),
        behind: behind.and_then(number).map(Duration::from_secs),
    }
}

/// All channels as one: the longest delay; replication runs if all do.
fn slowest(channels: &[Replication]) -> Option<Replication> {
    channels.iter().copied().reduce(|a, b| Replication {
        delay: a.delay.max(b.delay),
        behind: a.behind.zip(b.behind).map(|(a, b)| a.max(b)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_as_far_behind_as_its_slowest_channel() {
        let seconds = |n| Some(Duration::from_secs(n));
        let at = |delay, behind| Replication { delay: Duration::from_secs(delay), behind };
        assert_eq!(slowest(&[]), None);
        assert_eq!(slowest(&[at(0, seconds(3)), at(5, seconds(1))]), Some(at(5, seconds(3))));
        assert_eq!(slowest(&[at(0, seconds(3)), at(0, None)]), Some(at(0, None)));
    }
}
