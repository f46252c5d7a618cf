//! Whether replicas are replicas of the primary, and can be measured.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mysql_async::Row;
use policy::{ClusterPolicy, LagSource, SignalKind};
use sql::Server;

use super::account::Account;
use super::{Role, Visit, Visited};
use crate::board::{CommitOrder, ProbeError};
use crate::probe::ServerIdentity;
use crate::probe::answer::{column, text};
use crate::probe::group::Member;
use crate::probe::order::Settings;
use crate::probe::source::SourceIdentity;

/// `ER_PARSE_ERROR`
const ER_PARSE_ERROR: u16 = 1064;

/// A row of `SHOW REPLICA STATUS`.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    source: String,
    from: SourceIdentity,
    /// `Replica_IO_Running` and `Replica_SQL_Running`.
    receives: bool,
    applies: bool,
    receive_error: String,
    apply_error: String,
    delay_s: u64,
}

impl Channel {
    fn of(row: &Row) -> Self {
        let first = |names: &[&str]| column(row, names).and_then(text);
        let runs = |names: &[&str]| first(names).is_some_and(|state| state == "Yes");
        let host = first(&["Source_Host", "Master_Host"]).unwrap_or_default();
        let port = first(&["Source_Port", "Master_Port"]).unwrap_or_default();
        let delay = first(&["SQL_Delay"]).and_then(|delay| delay.parse().ok());
        Self {
            source: format!("{host}:{port}"),
            from: SourceIdentity::of_channel(row),
            receives: runs(&["Replica_IO_Running", "Slave_IO_Running"]),
            applies: runs(&["Replica_SQL_Running", "Slave_SQL_Running"]),
            receive_error: first(&["Last_IO_Error"]).unwrap_or_default(),
            apply_error: first(&["Last_SQL_Error"]).unwrap_or_default(),
            delay_s: delay.unwrap_or(0),
        }
    }

    fn knows_its_source(&self) -> bool {
        self.from != SourceIdentity::default()
    }

    fn comes_from(&self, server: &ServerIdentity) -> bool {
        server.source.is(&self.from)
    }

    /// What keeps the replica from being of use.
    fn stopped(&self) -> Option<String> {
        let with = |error: &str| {
            if error.is_empty() { String::new() } else { format!(": {}", Line(error)) }
        };
        if !self.applies {
            let error = with(&self.apply_error);
            Some(format!("it applies nothing (the SQL thread does not run){error}"))
        } else if !self.receives {
            let (source, error) = (Line(&self.source), with(&self.receive_error));
            Some(format!("it receives nothing from {source} (the IO thread does not run){error}"))
        } else {
            None
        }
    }
}

/// Whether group replication starts and stops this channel by itself.
fn is_of_a_group(row: &Row) -> bool {
    let name = column(row, &["Channel_Name"]).and_then(text).unwrap_or_default();
    name.starts_with("group_replication_")
}

/// What a server says, on one line.
struct Line<'l>(&'l str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = self.0.chars().take(300).map(visible).collect();
        f.write_str(&shown)
    }
}

impl Visit<'_> {
    /// How the replica replicates.
    pub(super) async fn try_replication(&mut self, account: &Account) -> Result<(), ProbeError> {
        // MariaDB's other statement tells of its default connection only.
        let question = match account.server {
            Server::MariaDb { .. } => "SHOW ALL SLAVES STATUS",
            Server::MySql { .. } | Server::Unknown => "SHOW REPLICA STATUS",
        };
        let rows = match self.link.rows(question).await {
            Err(error) if error.code() == Some(ER_PARSE_ERROR) => {
                self.link.rows("SHOW SLAVE STATUS").await
            }
            rows => rows,
        };
        let what = "seeing whether it is delayed on purpose, or stopped";
        let Some(rows) = self.unless_refused(what, rows)? else { return Ok(()) };
        let channels: Vec<Channel> =
            rows.iter().filter(|row| !is_of_a_group(row)).map(Channel::of).collect();
        // Members of a group replicate without a channel of their own.
        if channels.is_empty() {
            self.visited.member = Member::ask(&mut self.link).await?;
        }
        if rows.len() == channels.len() || !channels.is_empty() {
            self.visited.channels = Some(channels);
        }
        Ok(())
    }
}

impl Visit<'_> {
    /// Whether its heartbeats say what is there.
    pub(super) async fn try_commit_order(&mut self) -> Result<(), ProbeError> {
        let settings = Settings::ask(&mut self.link).await;
        let settings = self.unless_refused("seeing in which order it commits", settings)?;
        match settings.map_or(CommitOrder::Unasked, |settings| settings.order()) {
            CommitOrder::Unasked | CommitOrder::Kept | CommitOrder::ByGtid => {}
            CommitOrder::Unseen => self.visited.warning(
                "its appliers may overtake one another (replica_preserve_commit_order=OFF) and it has \
                 no GTIDs to see it by: its lag will be Seconds_Behind_Source, in whole seconds",
            ),
        }
        Ok(())
    }
}

/// What shows only beside the others: whose replica a replica is, and how many are left.
pub(super) fn compare(policy: &ClusterPolicy, visits: &mut [Visited]) {
    let identities: Vec<ServerIdentity> =
        visits.iter().filter_map(|visited| visited.identity.clone()).collect();
    let primary = visits.first().and_then(|visited| visited.identity.clone());
    let mut counted = 0_usize;
    let mut met: BTreeMap<String, Arc<str>> = BTreeMap::new();
    for visited in visits.iter_mut().filter(|visited| visited.role == Role::Replica) {
        let is_of_use = is_of_use(policy, visited, primary.as_ref(), &identities);
        let own = visited.identity.as_ref().map(|own| own.name.clone());
        let same = own.and_then(|own| met.insert(own, visited.trial.server.clone()));
        if let Some(same) = &same {
            visited.warning(format!("it is the same server as {same}, and counts once"));
        }
        if is_of_use && same.is_none() {
            counted = counted.saturating_add(1);
        }
    }
    let least = policy.signals.iter().find_map(|signal| match signal.kind {
        SignalKind::Lag { min_replicas, .. } => usize::try_from(min_replicas).ok(),
        SignalKind::ThreadsRunning
        | SignalKind::HistoryListLength
        | SignalKind::Query(_)
        | SignalKind::Status(_)
        | SignalKind::Latency(_) => None,
    });
    // One that is needed: without any there would be no lag.
    let least = least.unwrap_or(1).max(1);
    let is_probed = policy.probe.is_some() && !policy.replicas.is_empty();
    if let Some(first) = visits.first_mut().filter(|_| is_probed && counted < least) {
        let of = policy.replicas.len();
        first.fault(format!(
            "of {of} replicas {counted} can be measured, and `lag` needs {least}: it has no value, and \
             its `on_no_data` decides"
        ));
    }
}

/// Whether a replica's lag will count.
fn is_of_use(
    policy: &ClusterPolicy,
    visited: &mut Visited,
    primary: Option<&ServerIdentity>,
    others: &[ServerIdentity],
) -> bool {
    let Some(own) = visited.identity.clone() else { return false };
    if primary.is_some_and(|primary| primary.name == own.name) {
        visited.fault("it is the primary itself: its lag is always none, and says nothing");
        return false;
    }
    let by_status =
        policy.probe.as_ref().is_some_and(|probe| probe.source == LagSource::ReplicaStatus);
    match visited.member.clone() {
        Some(Member::Stopped(stopped)) => {
            visited.fault(stopped.to_string());
            return !by_status;
        }
        Some(Member::Online) if by_status => {
            visited.fault(
                "it is a member of a group, which does not tell Seconds_Behind_Source: take `source: \
                 heartbeat`",
            );
            return false;
        }
        Some(Member::Online) => return true,
        None => {}
    }
    let Some(channels) = visited.channels.clone() else { return !by_status };
    if channels.is_empty() {
        let message = "it is no replica of anybody: SHOW REPLICA STATUS is empty";
        if by_status {
            visited.fault(message)
        } else {
            visited.warning(message)
        }
        return !by_status;
    }
    let mut is_of_use = true;
    let is_own = |channel: &Channel| primary.is_some_and(|primary| channel.comes_from(primary));
    let are_own = channels.iter().any(is_own);
    let those = || channels.iter().filter(|channel| !are_own || is_own(channel));
    for why in those().filter_map(Channel::stopped) {
        visited.fault(why);
        is_of_use = false;
    }
    if let Some(delay) = those().map(|channel| channel.delay_s).min().filter(|delay| *delay > 0) {
        visited.warning(format!(
            "it stays {delay} s behind on purpose (SQL_Delay), so its lag does not count"
        ));
        is_of_use = false;
    }
    // A channel that has never been connected does not know.
    let are_known = channels.iter().all(Channel::knows_its_source);
    if primary.is_some() && are_known && !are_own {
        return comes_through(visited, &channels, others, by_status) && is_of_use;
    }
    is_of_use
}

/// Whether the lag of one that is no replica of the primary itself will count.
fn comes_through(
    visited: &mut Visited,
    channels: &[Channel],
    others: &[ServerIdentity],
    by_status: bool,
) -> bool {
    let sources: Vec<String> =
        channels.iter().map(|channel| Line(&channel.source).to_string()).collect();
    let sources = sources.join(", ");
    let comes_from = |server: &ServerIdentity| channels.iter().any(|c| c.comes_from(server));
    if by_status {
        visited.fault(format!(
            "it replicates from {sources}, not from the primary, and Seconds_Behind_Source does not \
             tell how far it is behind that: take `source: heartbeat`"
        ));
    } else if !others.iter().any(comes_from) {
        visited.warning(format!(
            "it replicates from {sources}, which is neither the primary nor another replica of this \
             file: its lag counts only if that one replicates from the primary"
        ));
    }
    !by_status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Logging;
    use crate::probe::trial::Trial;

    fn visited(role: Role, port: u16, uuid: &str) -> Visited {
        let path = "clusters.main".to_owned();
        let server = format!("db:{port}").into();
        let source = SourceIdentity { uuid: Some(uuid.to_owned()), server_id: Some("1".into()) };
        let name = format!("hostname=db port={port} server_uuid={uuid}");
        Visited {
            trial: Trial { path, server, answered: None, findings: Vec::new() },
            role,
            identity: Some(ServerIdentity { name, source, logging: Logging::Unknown }),
            channels: Some(Vec::new()),
            member: None,
        }
    }

    /// It was said to be the primary itself.
    #[test]
    fn a_server_that_was_cloned_with_the_primarys_uuid_is_another_one() {
        let yaml = "version: 1\nclusters:\n  main: {listen: 127.0.0.1:1, primary: db:1, replicas: \
                    [db:2], probe: {user: sluice}}\n";
        let config = policy::load(yaml).unwrap();
        let found = |replica| {
            let mut visits = [visited(Role::Primary, 1, "u"), replica];
            compare(config.clusters.first().unwrap(), &mut visits);
            visits.map(|visited| said(&visited)).join("\n")
        };
        let clone = found(visited(Role::Replica, 2, "u"));
        assert!(clone.contains("it is no replica of anybody"), "{clone}");
        let same = found(visited(Role::Replica, 1, "u"));
        assert!(same.contains("it is the primary itself"), "{same}");
        assert!(same.contains("of 1 replicas 0 can be measured"), "{same}");
    }

    #[test]
    fn a_server_that_is_listed_under_two_names_is_one() {
        let yaml = "version: 1\nclusters:\n  main: {listen: 127.0.0.1:1, primary: db:1, replicas: \
                    [db:2, alias:2], probe: {user: sluice}, signals: {lag: {threshold: 1s, \
                    min_replicas: 2}}}\n";
        let config = policy::load(yaml).unwrap();
        let replica = || visited(Role::Replica, 2, "v");
        let mut alias = replica();
        alias.trial.server = "alias:2".into();
        let mut visits = [visited(Role::Primary, 1, "u"), replica(), alias];
        compare(config.clusters.first().unwrap(), &mut visits);
        let [primary, first, alias] = visits.map(|visited| said(&visited));
        assert!(!first.contains("same server"), "{first}");
        assert!(alias.contains("it is the same server as db:2"), "{alias}");
        assert!(primary.contains("of 2 replicas 1 can be measured"), "{primary}");
    }

    fn said(visited: &Visited) -> String {
        let messages = visited.trial.findings.iter().map(|finding| finding.message.clone());
        messages.collect::<Vec<_>>().join("\n")
    }
}
