//! What a replica itself says about its replication.

mod filter;

use std::time::Duration;

use admission::lag::StoppedThread;
use mysql_async::{Row, Value};
use policy::TableName;

use self::filter::Filter;
use super::answer::{column, number};
use super::group::Member;
use super::logging::Logging;
use super::replica::LagAnswer;
use super::source::SourceIdentity;
use crate::board::{ProbeBoard, ProbeError, StoppedReplication};
use crate::link::Link;

/// `ER_PARSE_ERROR`
const ER_PARSE_ERROR: u16 = 1064;

/// `SHOW REPLICA STATUS`, over the channels (MariaDB: connections) by which the primary's writes come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Replication {
    /// `SQL_Delay`: how far it stays behind on purpose.
    pub(super) delay: Duration,
    /// `Seconds_Behind_Source`; `None` is NULL: replication does not run.
    pub(super) behind: Option<Duration>,
    /// What of it is stopped.
    pub(super) stopped: Option<StoppedReplication>,
    /// What it waits for besides work.
    pub(super) waits: Option<&'static str>,
    /// It is a member of a group, which tells no `behind`.
    pub(super) is_member: bool,
    /// Whom it is behind as far as it tells.
    pub(super) upstream: Upstream,
    /// What each of these channels leaves out.
    pub(super) filters: Vec<Filter>,
}

/// The servers that a replica's channels are from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Upstream {
    /// The primary, or none that it was ever connected to.
    #[default]
    Primary,
    /// None of these is the primary.
    Others(String),
    /// Who the primary is was not told yet.
    Unknown(String),
}

/// The states of a thread that is held by its server's locks or disk. (Manual, "Replication SQL Thread
/// States", "General Thread States")
const HELD: [&str; 8] = [
    "Waiting for global read lock",
    "Waiting for commit lock",
    // MariaDB's FLUSH TABLES WITH READ LOCK
    "Waiting for backup lock",
    "Waiting for table metadata lock",
    "Waiting for disk space",
    "Waiting for someone to free space",
    "Waiting for the replica SQL thread to free enough relay log space",
    "Waiting for the slave SQL thread to free enough relay log space",
];

/// The states of all threads of replication: a channel tells that of its coordinator, and it is a worker
/// that waits.
const STATES: &str =
    "SELECT STATE FROM information_schema.PROCESSLIST WHERE USER = 'system user' LIMIT 1000";

/// How this server is asked: the first of these that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    /// MariaDB, whose other words tell of the connection without a name only.
    #[default]
    AllConnections,
    /// MySQL 8.0.22 and later.
    Replica,
    /// Older servers know only `SHOW SLAVE STATUS`.
    Slave,
}

impl Dialect {
    const fn question(self) -> &'static str {
        match self {
            Self::AllConnections => "SHOW ALL SLAVES STATUS",
            Self::Replica => "SHOW REPLICA STATUS",
            Self::Slave => "SHOW SLAVE STATUS",
        }
    }

    const fn next(self) -> Option<Self> {
        match self {
            Self::AllConnections => Some(Self::Replica),
            Self::Replica => Some(Self::Slave),
            Self::Slave => None,
        }
    }

    /// Asks; learns the words of the server.
    pub(super) async fn ask(
        &mut self,
        replica: &mut Link,
        board: &ProbeBoard,
    ) -> Result<Replication, ProbeError> {
        let rows = loop {
            match (replica.rows(self.question()).await, self.next()) {
                (Err(error), Some(next)) if error.code() == Some(ER_PARSE_ERROR) => *self = next,
                (rows, _) => break rows,
            }
        };
        if rows.as_ref().is_err_and(ProbeError::is_silence) {
            // It may be another server when it answers again.
            *self = Self::default();
        }
        let channels: Vec<ChannelStatus> = rows?.iter().map(ChannelStatus::of).collect();
        // A channel of a group tells of its last recovery only.
        if channels.iter().all(|channel| channel.source.is_none())
            && let Some(member) = Member::ask(replica).await?
        {
            return Ok(Replication::of_member(member));
        }
        let told = slowest(from(board.primary_as_source().as_ref(), channels));
        Ok(told.unwrap_or_else(Replication::detached))
    }
}

impl Replication {
    /// Whether it says so.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some_and(|behind| behind > Duration::ZERO)
    }

    /// Asks what it waits for, where it runs.
    pub(super) async fn ask_what_it_waits_for(&mut self, replica: &mut Link) {
        if self.stopped.is_none() && self.waits.is_none() {
            self.waits = what_holds(replica).await.unwrap_or_default();
        }
    }

    /// The filter there that leaves out this table of the heartbeats, which the primary logs so.
    pub(super) fn leaves_out(&self, table: &TableName, logging: Logging) -> Option<&'static str> {
        let logging = match self.upstream {
            Upstream::Primary => logging,
            Upstream::Others(_) | Upstream::Unknown(_) => logging.passed_on(),
        };
        let mut left_out = self.filters.iter().map(|filter| filter.leaves_out(table, logging));
        let first = left_out.next()??;
        left_out.all(|other| other.is_some()).then_some(first)
    }

    /// How far it is behind the primary, as it tells it.
    ///
    /// # Errors
    /// When it tells how far it is behind another replica, which may be behind itself, or nobody knows
    /// whether it does.
    pub(super) fn lag(self, instead: &str) -> Result<LagAnswer, ProbeError> {
        match self.upstream {
            Upstream::Primary => Ok(LagAnswer::Gives(self.behind)),
            Upstream::Others(source) => Err(ProbeError::Unusable(format!(
                "it replicates from {source}, not from the primary: Seconds_Behind_Source does not \
                 tell how far it is behind that; {instead}"
            ))),
            Upstream::Unknown(source) => Err(ProbeError::Unusable(format!(
                "it replicates from {source}, and whether that is the primary is not known: the \
                 primary has not told yet who it is"
            ))),
        }
    }

    fn detached() -> Self {
        let stopped = Some(StoppedReplication::detached());
        Self { stopped, ..Self::default() }
    }

    fn of_member(member: Member) -> Self {
        let stopped = match member {
            Member::Online => None,
            Member::Stopped(stopped) => Some(stopped),
        };
        Self { stopped, is_member: true, ..Self::default() }
    }
}

/// What holds the threads of a replica's replication, by its process list: that waits for no lock of
/// replication's.
pub(super) async fn what_holds(replica: &mut Link) -> Result<Option<&'static str>, ProbeError> {
    let rows = replica.rows(STATES).await?;
    Ok(rows.iter().find_map(|row| held(row, &["STATE"])))
}

/// One channel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChannelStatus {
    /// Where it comes from; none of one of a group, whose sources are all members.
    source: Option<SourceIdentity>,
    replication: Replication,
}

impl ChannelStatus {
    fn of(row: &Row) -> Self {
        let name = text(row, &["Channel_Name", "Connection_name"]).unwrap_or_default();
        let is_of_a_group = name.starts_with(GROUP_CHANNELS);
        let behind = column(row, &["Seconds_Behind_Source", "Seconds_Behind_Master"]);
        let delay = column(row, &["SQL_Delay"]).and_then(number).unwrap_or(0);
        Self {
            source: (!is_of_a_group).then(|| SourceIdentity::of_channel(row)),
            replication: Replication {
                delay: Duration::from_secs(delay),
                behind: behind.and_then(number).map(Duration::from_secs),
                stopped: if is_of_a_group { None } else { stopped(row, &name) },
                waits: held(row, &["Replica_SQL_Running_State", "Slave_SQL_Running_State"])
                    .or_else(|| held(row, &["Replica_IO_State", "Slave_IO_State"])),
                is_member: false,
                upstream: address_of_source(row).map_or(Upstream::Primary, Upstream::Others),
                filters: vec![Filter::of_channel(row)],
            },
        }
    }
}

/// Where a channel comes from; none that was never connected.
fn address_of_source(row: &Row) -> Option<String> {
    SourceIdentity::of_channel(row).server_id?;
    let host = text(row, &["Source_Host", "Master_Host"])?;
    let port = column(row, &["Source_Port", "Master_Port"]).and_then(number::<u16>)?;
    let address = format!("{host}:{port}");
    Some(address.chars().filter(|c| !c.is_control()).take(ADDRESS_LEN_MAX).collect())
}

/// As long as the manual lets a host's name be, and its port.
const ADDRESS_LEN_MAX: usize = 262;

fn held(row: &Row, names: &[&str]) -> Option<&'static str> {
    let state = text(row, names)?;
    HELD.into_iter().find(|held| *held == state)
}

/// The channels by which the primary's writes come: its own, or all if none names it.
fn from(primary: Option<&SourceIdentity>, channels: Vec<ChannelStatus>) -> Vec<Replication> {
    let is_own = |channel: &ChannelStatus| {
        primary.zip(channel.source.as_ref()).is_some_and(|(primary, source)| primary.is(source))
    };
    let are_own = channels.iter().any(is_own);
    let those = channels.into_iter().filter(|channel| !are_own || is_own(channel));
    let told = those.map(|channel| channel.replication);
    told.map(|told| Replication { upstream: told.upstream.of(primary, are_own), ..told }).collect()
}

impl Upstream {
    /// The same of a channel that is one of the primary's own, or of all where there are none.
    fn of(self, primary: Option<&SourceIdentity>, is_own: bool) -> Self {
        match (self, primary) {
            (_, Some(_)) if is_own => Self::Primary,
            (Self::Others(source) | Self::Unknown(source), None) => Self::Unknown(source),
            (upstream, _) => upstream,
        }
    }

    /// Both, which tell the highest of their lags.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Primary, _) | (_, Self::Primary) => Self::Primary,
            (Self::Others(a), Self::Others(b)) => Self::Others(format!("{a}, {b}")),
            (Self::Others(a) | Self::Unknown(a), Self::Others(b) | Self::Unknown(b)) => {
                Self::Unknown(format!("{a}, {b}"))
            }
        }
    }
}

/// What of a channel is stopped. With both of its threads stopped it is the one that has an error.
fn stopped(row: &Row, name: &str) -> Option<StoppedReplication> {
    let error = |code: &[&str], message: &[&str]| -> (u32, String) {
        let code = column(row, code).and_then(number).unwrap_or(0);
        (code, text(row, message).unwrap_or_default())
    };
    let sql = error(&["Last_SQL_Errno"], &["Last_SQL_Error"]);
    let io = error(&["Last_IO_Errno"], &["Last_IO_Error"]);
    let applier = text(row, &["Replica_SQL_Running", "Slave_SQL_Running"])?;
    let receiver = text(row, &["Replica_IO_Running", "Slave_IO_Running"])?;
    // One that connects, again and again and in vain, receives nothing either: it has an error.
    let receives = receiver == "Yes" || (receiver != "No" && io.0 == 0);
    let of = |thread, (code, message): (u32, String)| {
        Some(StoppedReplication::new(thread, name.to_owned(), code, &message))
    };
    match (applier == "No", !receives) {
        (true, true) if sql.0 == 0 && io.0 != 0 => of(StoppedThread::Receiver, io),
        (true, true | false) => of(StoppedThread::Applier, sql),
        (false, true) => Some(of(StoppedThread::Receiver, io)?.retrying(receiver != "No")),
        (false, false) => None,
    }
}

/// Channels that group replication starts and stops by itself.
const GROUP_CHANNELS: &str = "group_replication_";

/// The text of the first of these columns that the row has.
fn text(row: &Row, names: &[&str]) -> Option<String> {
    match column(row, names)? {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::NULL
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Date(..)
        | Value::Time(..) => None,
    }
}

/// All channels as one: the shortest delay, for any may be the one that matters; replication runs if
/// all do. Of those that are stopped the one with an error is told, or the first.
fn slowest(channels: Vec<Replication>) -> Option<Replication> {
    channels.into_iter().reduce(|a, b| Replication {
        delay: a.delay.min(b.delay),
        behind: a.behind.zip(b.behind).map(|(a, b)| a.max(b)),
        stopped: match (a.stopped, b.stopped) {
            (Some(a), Some(b)) if a.code == 0 && b.code != 0 => Some(b),
            (a, b) => a.or(b),
        },
        waits: a.waits.or(b.waits),
        is_member: a.is_member || b.is_member,
        upstream: a.upstream.and(b.upstream),
        filters: a.filters.into_iter().chain(b.filters).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_as_far_behind_as_its_slowest_channel() {
        let seconds = |n| Some(Duration::from_secs(n));
        let at = |delay, behind| Replication {
            delay: Duration::from_secs(delay),
            behind,
            ..Replication::default()
        };
        assert_eq!(slowest(vec![]), None);
        assert_eq!(slowest(vec![at(0, seconds(3)), at(5, seconds(1))]), Some(at(0, seconds(3))));
        assert_eq!(slowest(vec![at(0, seconds(3)), at(0, None)]), Some(at(0, None)));
    }

    /// A foreign channel's delay excused a replica whose own channel was stopped, and opened the gate.
    #[test]
    fn only_the_channel_of_the_primary_excuses_and_stops() {
        let named = |id: &str| SourceIdentity { uuid: None, server_id: Some(id.to_owned()) };
        let of = |source, seconds, stopped| ChannelStatus {
            source,
            replication: Replication {
                delay: Duration::from_secs(seconds),
                stopped,
                ..Replication::default()
            },
        };
        let how = StoppedReplication::new(StoppedThread::Applier, "shop".to_owned(), 0, "");
        let (own, mut foreign) =
            (of(Some(named("1")), 0, Some(how)), of(Some(named("4")), 60, None));
        foreign.replication.upstream = Upstream::Others("db4:3306".to_owned());
        let group = of(None, 0, None);
        let channels = vec![foreign.clone(), own.clone(), group];
        let primary = named("1");
        let told = |primary, channels| slowest(from(primary, channels));
        assert_eq!(told(Some(&primary), channels.clone()), Some(own.replication.clone()));
        // Through another replica, or not known yet: strict.
        let chained = named("9");
        for unnamed in [None, Some(&chained)] {
            let told = told(unnamed, channels.clone()).unwrap();
            assert_eq!(
                (told.delay, told.stopped),
                (Duration::ZERO, own.replication.stopped.clone())
            );
        }
        assert_eq!(told(Some(&chained), vec![foreign.clone()]), Some(foreign.replication.clone()));
        // It was taken at its word until the primary had told who it is.
        let unknown = told(None, vec![foreign]).unwrap();
        assert!(unknown.lag("").is_err_and(|error| error.to_string().contains("is not known")));
    }

    #[test]
    fn of_several_stopped_channels_the_one_with_an_error_is_told() {
        let stopped = |code| {
            let how = StoppedReplication::new(StoppedThread::Applier, String::new(), code, "");
            Replication { stopped: Some(how), ..Replication::default() }
        };
        let runs = Replication { stopped: None, ..stopped(0) };
        let told = slowest(vec![runs, stopped(0), stopped(1062), stopped(1032)]);
        assert_eq!(told, Some(stopped(1062)));
    }
}
