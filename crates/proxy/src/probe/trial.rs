//! Whether the servers of a file are there, and let the probe's account do what the file needs: what
//! `sluice check --connect` asks.
//!
//! Theory. Which rights an account has cannot be read off its grants alone: roles, wildcards and
//! revokes see to that. So each thing is tried, over the connection that the probe would make, by a
//! statement that needs the same rights and changes nothing: EXPLAIN of the heartbeat's own
//! statements, and CREATE TABLE … LIKE a table that is not there, which fails for the right to
//! create before it fails for the table. Only what cannot be tried (KILL of others' statements) is
//! looked up in SHOW GRANTS, with the roles that are active.
//!
//! All servers are asked at once, each within a few times `connect_timeout`, and a server that does
//! not answer one question is asked no other.

mod account;
mod explains;
mod replication;
mod rights;
mod rule_table;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Row, Value};
use policy::{ClusterPolicy, Config, LagSource, Probe, Scope, SignalKind};
use tokio::task::JoinSet;

use self::account::Account;
use self::replication::Channel;
use super::group::Member;
use super::{ServerIdentity, appliers, identify, signals};
use crate::board::ProbeError;
use crate::link::{Link, OwnLinks, ProbeAccount};

/// What one server said.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The key that names it, as in [`policy::Fault::path`].
    pub path: String,
    /// Its address in the file.
    pub server: Arc<str>,
    /// Which server it is and as whom it was logged in to; `None`: it was not.
    pub answered: Option<String>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
}

/// One thing that is not as the file needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much depends on it.
    pub weight: Weight,
    /// What it is.
    pub message: String,
    /// The statement that gives a missing right.
    pub statement: Option<String>,
}

/// How much depends on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Something that the file needs cannot work.
    Fault,
    /// It works, but hardly as it is meant.
    Warning,
    /// Something that the file does not need would need it.
    Note,
}

/// Servers that are asked at once.
const AT_ONCE_MAX: usize = 64;

/// All questions to one server may take so many times `connect_timeout`.
const WHOLE_TRIAL: u32 = 4;

/// Asks every server of the file, in its order: each primary, then its replicas.
///
/// # Cancellation
/// Connections are closed; nothing has been changed.
pub async fn try_servers(config: &Config) -> Vec<Trial> {
    let mut trials = Vec::new();
    for policy in &config.clusters {
        trials.extend(try_cluster(policy).await);
    }
    trials
}

async fn try_cluster(policy: &Arc<ClusterPolicy>) -> Vec<Trial> {
    let servers = std::iter::once(&policy.primary).chain(&policy.replicas);
    let mut waiting = servers.cloned().enumerate();
    let mut running = JoinSet::new();
    let mut visits: Vec<(usize, Visited)> = Vec::new();
    loop {
        while running.len() < AT_ONCE_MAX
            && let Some((place, server)) = waiting.next()
        {
            running.spawn(visit(policy.clone(), place, server));
        }
        match running.join_next().await {
            Some(Ok(visited)) => visits.push(visited),
            // A client library can panic on an answer that makes no sense.
            Some(Err(error)) => tracing::error!(%error, "a server could not be tried"),
            None => break,
        }
    }
    visits.sort_by_key(|(place, _)| *place);
    let mut visits: Vec<Visited> = visits.into_iter().map(|(_, visited)| visited).collect();
    replication::compare(policy, &mut visits);
    let trials = visits.into_iter().map(|Visited { mut trial, .. }| {
        trial.findings.sort_by_key(|finding| finding.weight);
        trial
    });
    trials.collect()
}

/// What one server said, and what is to be compared with what others say.
#[derive(Debug)]
struct Visited {
    trial: Trial,
    role: Role,
    identity: Option<ServerIdentity>,
    /// `None`: it could not be asked.
    channels: Option<Vec<Channel>>,
    /// Where it has none and is a member of a group.
    member: Option<Member>,
}

/// What a server is in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Primary,
    Replica,
}

/// Asks the server at this place of the cluster: 0 is the primary.
async fn visit(policy: Arc<ClusterPolicy>, place: usize, server: Arc<str>) -> (usize, Visited) {
    let cluster = &policy.name;
    let (role, path) = match place.checked_sub(1) {
        None => (Role::Primary, format!("clusters.{cluster}.primary")),
        Some(index) => (Role::Replica, format!("clusters.{cluster}.replicas[{index}]")),
    };
    let trial = Trial { path, server: server.clone(), answered: None, findings: Vec::new() };
    let visited = Visited { trial, role, identity: None, channels: None, member: None };
    let limit = policy.connect_timeout;
    let Some(probe) = &policy.probe else { return (place, greet(visited, limit).await) };
    let account = ProbeAccount::of(probe, &policy.backend_tls, &OwnLinks::default());
    let link = Link::new(&server, account, limit);
    let link = match role {
        Role::Primary => link,
        Role::Replica => link.reading_at_once(),
    };
    let mut visit = Visit { policy: &policy, probe, link, visited };
    let asked = tokio::time::timeout(limit.saturating_mul(WHOLE_TRIAL), visit.ask()).await;
    let error = match asked {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error),
        Err(_) => Some(ProbeError::TimedOut),
    };
    if let Some(error) = error {
        visit.visited.fault(account::login_failure(&error, probe));
    }
    (place, visit.visited)
}

/// A cluster without `probe`: nobody logs in, but a server says who it is before that.
async fn greet(mut visited: Visited, limit: Duration) -> Visited {
    let server = visited.trial.server.clone();
    let greeting = tokio::time::timeout(limit, account::greeting(&server)).await;
    match greeting.unwrap_or(Err(ProbeError::TimedOut)) {
        Ok(version) => {
            let unasked = "the cluster has no `probe`, so nobody has logged in";
            visited.trial.answered = Some(format!("{version}; {unasked}"));
        }
        Err(error) => visited.fault(error.to_string()),
    }
    visited
}

impl Visited {
    fn add(&mut self, weight: Weight, message: String, statement: Option<String>) {
        let finding = Finding { weight, message, statement };
        if !self.trial.findings.contains(&finding) {
            self.trial.findings.push(finding);
        }
    }

    fn fault(&mut self, message: impl Into<String>) {
        self.add(Weight::Fault, message.into(), None);
    }

    fn warning(&mut self, message: impl Into<String>) {
        self.add(Weight::Warning, message.into(), None);
    }
}

/// One server being asked.
struct Visit<'v> {
    policy: &'v ClusterPolicy,
    probe: &'v Probe,
    link: Link,
    visited: Visited,
}

impl Visit<'_> {
    /// Everything that the file needs of it.
    ///
    /// # Errors
    /// When it does not answer; what it refuses is a finding.
    async fn ask(&mut self) -> Result<(), ProbeError> {
        let account = Account::ask(&mut self.link).await?;
        self.visited.trial.answered = Some(account.to_string());
        if !account.is_of(&self.probe.user) {
            let message = format!(
                "the server takes `{}` for {}: another account fits the address better",
                self.probe.user, account.name
            );
            self.visited.warning(message);
        }
        self.note_read_only(&account);
        let identity = identify(&mut self.link).await?;
        let unsaid = || ProbeError::Unusable("it does not say which server it is".into());
        self.visited.identity = Some(identity.ok_or_else(unsaid)?);
        match self.visited.role {
            Role::Primary => self.ask_primary(&account).await,
            Role::Replica => self.ask_replica(&account).await,
        }
    }

    fn note_read_only(&mut self, account: &Account) {
        match (self.visited.role, account.read_only) {
            (Role::Primary, true) => {
                self.visited.fault("read_only is on: writes fail here; is it the primary?");
            }
            (Role::Replica, false) => self.visited.warning(
                "read_only is off: whatever writes here by mistake makes it differ from the primary",
            ),
            (Role::Primary, false) | (Role::Replica, true) => {}
        }
    }

    async fn ask_primary(&mut self, account: &Account) -> Result<(), ProbeError> {
        if self.wants_heartbeats() {
            self.try_heartbeat_writes(account).await?;
        }
        self.try_rule_table(account).await?;
        if self.wants_heartbeats() {
            self.try_learned_table(account).await?;
        }
        self.try_signals(Scope::Primary).await?;
        self.try_kill(account).await?;
        self.try_explains(account).await?;
        if self.policy.bypass.interval.is_some() {
            self.try_other_sessions(account).await?;
        }
        self.try_routines(account).await
    }

    async fn ask_replica(&mut self, account: &Account) -> Result<(), ProbeError> {
        self.try_replication(account).await?;
        match &self.probe.source {
            LagSource::Heartbeat => {
                self.try_heartbeat_reads(account).await?;
                self.try_commit_order().await?;
            }
            LagSource::ReplicaStatus => {}
            LagSource::Query(query) => {
                let row = self.link.first(query).await;
                let row = self.unless_refused("the query of `probe.source`", row)?;
                let is_null = |row: &Row| matches!(row.as_ref(0), Some(Value::NULL));
                let number = row.flatten().filter(|row| !is_null(row));
                if number.is_some_and(|row| row.as_ref(0).is_none_or(|v| !is_number(v))) {
                    self.visited.fault("the query of `probe.source` does not give seconds");
                }
            }
        }
        self.try_appliers().await?;
        self.try_signals(Scope::Replicas).await
    }

    /// What `row_costs: applied` needs.
    async fn try_appliers(&mut self) -> Result<(), ProbeError> {
        if !self.policy.learns_row_costs() {
            return Ok(());
        }
        let told = appliers::why_silent(&mut self.link).await;
        // Without it Sluice does all else.
        let told = self.unless_refused_as(Weight::Note, "`probe.row_costs: applied`", told)?;
        if let Some(why) = told.flatten() {
            let message = format!("`probe.row_costs: applied`: {why}: a row counts as a row");
            self.visited.add(Weight::Note, message, None);
        }
        Ok(())
    }

    fn wants_heartbeats(&self) -> bool {
        self.probe.source == LagSource::Heartbeat && !self.policy.replicas.is_empty()
    }

    /// The signals other than lag, asked for as the probe asks.
    async fn try_signals(&mut self, scope: Scope) -> Result<(), ProbeError> {
        for signal in signals::wanted(self.policy, scope) {
            let Some(meter) = signals::Meter::of(&signal.kind) else { continue };
            let value = meter.read(&mut self.link).await;
            let is_status = matches!(signal.kind, SignalKind::Status(_));
            let what = format!("the signal `{}`", signal.name);
            match value {
                Err(ProbeError::Unusable(_)) if is_status => {
                    self.visited
                        .fault(format!("{what}: there is no such number in SHOW GLOBAL STATUS"));
                }
                value => {
                    self.unless_refused(&what, value)?;
                }
            }
        }
        Ok(())
    }

    /// The answer, unless the server refused: that is a finding.
    ///
    /// # Errors
    /// When the server did not answer.
    fn unless_refused<T>(
        &mut self,
        what: &str,
        answer: Result<T, ProbeError>,
    ) -> Result<Option<T>, ProbeError> {
        self.unless_refused_as(Weight::Fault, what, answer)
    }

    fn unless_refused_as<T>(
        &mut self,
        weight: Weight,
        what: &str,
        answer: Result<T, ProbeError>,
    ) -> Result<Option<T>, ProbeError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_silence() => Err(error),
            Err(error) => {
                let statement = self.link.remedy().map(str::to_owned);
                let message = match (&error, &statement) {
                    (ProbeError::Refused { code, .. }, Some(_)) => {
                        format!("{what}: a right is missing (error {code})")
                    }
                    (_, _) => format!("{what}: {error}"),
                };
                self.visited.add(weight, message, statement);
                Ok(None)
            }
        }
    }
}

fn is_number(value: &Value) -> bool {
    super::answer::number::<f64>(value).is_some_and(f64::is_finite)
}
