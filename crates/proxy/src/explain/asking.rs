//! One EXPLAIN, over a connection of Sluice's own.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use policy::{BackendTls, ClusterPolicy, Probe};
use sql::{Completeness, LexMode, Server, tables};

use super::plan::{Dependents, rows_expected};
use super::{EXPLAINS_MAX, Subject};
use crate::board::ProbeError;
use crate::link::denial::is_denial;
use crate::link::{Link, OwnLinks, ProbeAccount};
use crate::probe::answer::text;

/// Each question of an EXPLAIN, and the EXPLAIN itself at the server.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// `ER_LOCK_WAIT_TIMEOUT`, `ER_QUERY_TIMEOUT` of MySQL, `ER_STATEMENT_TIMEOUT` of MariaDB.
const TIMED_OUT: [u16; 3] = [1205, 3024, 1969];

/// Most tables of a statement.
const TABLES_MAX: usize = 64;

/// What the server said.
#[derive(Debug)]
pub(super) enum Asked {
    Rows(u64),
    NotExplained,
    /// With what the server says of the right that is missing.
    Denied(String),
    /// It met one of the limits that it was given.
    TimedOut,
    /// With the number of its error. Its text may quote the statement.
    Failed(Option<u16>),
}

/// Connections that are open and not in use.
#[derive(Debug)]
pub(super) struct Pool {
    links: Arc<OwnLinks>,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    to: Target,
    link: Link,
}

/// Where a connection leads, and as whom.
#[derive(Clone, Debug, PartialEq)]
struct Target {
    primary: Arc<str>,
    probe: Probe,
    tls: BackendTls,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to.primary.fmt(f)
    }
}

impl Pool {
    pub(super) fn new(links: &Arc<OwnLinks>) -> Self {
        Self { links: Arc::clone(links), idle: Mutex::default() }
    }

    /// A connection to there; those that lead elsewhere are closed.
    fn take(&self, to: &Target) -> Link {
        let mut idle = self.idle.lock();
        idle.retain(|idle| idle.to == *to);
        let link = idle.pop().map(|idle| idle.link);
        drop(idle);
        link.unwrap_or_else(|| self.link(to))
    }

    /// Another connection.
    fn link(&self, to: &Target) -> Link {
        let account = ProbeAccount::of(&to.probe, &to.tls, &self.links);
        Link::new(&to.primary, account, ANSWER_MAX).noted_in(&self.links)
    }

    /// The primary is another server than before.
    pub(super) fn forget(&self) {
        self.idle.lock().clear();
    }

    fn put_back(&self, to: Target, link: Link) {
        let mut idle = self.idle.lock();
        if idle.len() < EXPLAINS_MAX {
            idle.push(Idle { to, link });
        }
    }
}

pub(super) async fn ask(pool: &Pool, policy: &ClusterPolicy, subject: &Subject) -> Asked {
    let Some(probe) = policy.probe.clone() else { return Asked::NotExplained };
    let to = Target { primary: policy.primary.clone(), probe, tls: policy.backend_tls.clone() };
    let Some(names) = table_names(subject) else { return Asked::NotExplained };
    let mut link = pool.take(&to);
    let mut asked = explain(&mut link, subject, &names).await;
    if let Err(ProbeError::Lost(_)) = asked {
        // The server has closed it while nobody used it.
        asked = explain(&mut link, subject, &names).await;
    }
    match asked {
        Ok(asked) => {
            pool.put_back(to, link);
            asked
        }
        Err(error) => {
            if !error.is_silence() {
                pool.put_back(to, link);
            } else if let Err(error) = stop(pool.link(&to), &link).await {
                tracing::debug!(%error, "an EXPLAIN that was given up may go on");
            }
            match (error.code(), &error) {
                (Some(code), _) if is_denial(code) => Asked::Denied(error.to_string()),
                (Some(code), _) if TIMED_OUT.contains(&code) => Asked::TimedOut,
                (None, ProbeError::TimedOut) => Asked::TimedOut,
                (code, _) => Asked::Failed(code),
            }
        }
    }
}

/// The condition that finds the tables of a text. `None`: they are not known, or too many.
fn table_names(subject: &Subject) -> Option<Vec<(String, String)>> {
    let mut names = Some(Vec::new());
    let mode = LexMode::unknown(subject.server);
    let completeness = tables(subject.text.as_bytes(), mode, |table| {
        let schema = table.schema.unwrap_or(subject.schema.as_bytes());
        let name = match (literal(schema), literal(table.name)) {
            (Some(schema), Some(name)) => Some((schema, name)),
            (None, _) | (_, None) => None,
        };
        names = match (names.take(), name) {
            (Some(mut names), Some(name)) if names.len() < TABLES_MAX => {
                if !names.contains(&name) {
                    names.push(name);
                }
                Some(names)
            }
            (Some(_) | None, _) => None,
        };
    });
    match completeness {
        Completeness::Complete => names,
        Completeness::Definition | Completeness::Partial => None,
    }
}

/// A name as a literal without quotes. A quote in a name may stand there twice.
fn literal(name: &[u8]) -> Option<String> {
    let is_plain = !name.is_empty() && !name.contains(&b'`') && !name.contains(&b'"');
    let hex = || name.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    is_plain.then(|| format!("_utf8mb4 0x{}", hex()))
}

/// EXPLAIN, on a connection about which nothing is assumed.
async fn explain(
    link: &mut Link,
    subject: &Subject,
    names: &[(String, String)],
) -> Result<Asked, ProbeError> {
    // What another session has locked is not waited for, and what would run is stopped.
    link.run("SET SESSION sql_mode = '', lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
        .await?;
    let (limit, explain) = match subject.server {
        Server::MariaDb { .. } => ("max_statement_time = 5", "EXPLAIN EXTENDED"),
        Server::MySql { .. } | Server::Unknown => {
            ("max_execution_time = 5000", "EXPLAIN FORMAT=TRADITIONAL")
        }
    };
    link.run(&format!("SET SESSION {limit}")).await?;
    if !subject.schema.is_empty() {
        link.run(&format!("USE `{}`", subject.schema)).await?;
    }
    if !are_base_tables(link, names).await? {
        return Ok(Asked::NotExplained);
    }
    let begin = if subject.writes { "START TRANSACTION" } else { "START TRANSACTION READ ONLY" };
    link.run(begin).await?;
    let plan = match link.rows(&format!("{explain} {}", subject.text)).await {
        Err(error) if error.is_silence() => return Err(error),
        plan => plan,
    };
    // A connection that does not say so is given up, which rolls back as well.
    link.run("ROLLBACK").await?;
    let dependents = Dependents::of(&subject.text, subject.server);
    Ok(rows_expected(&plan?, dependents).map_or(Asked::NotExplained, Asked::Rows))
}

/// Ends what the server still works out for an EXPLAIN that was given up. MySQL has no time limit for
/// those of what writes, and none that a hint in the text does not lift; and a server does not notice
/// that nobody waits.
///
/// The link is open, so that its id is nobody else's. At another server behind the same name it may be,
/// but hardly that of an EXPLAIN of this account's.
async fn stop(mut killer: Link, given_up: &Link) -> Result<(), ProbeError> {
    let Some(id) = given_up.connection_id().get() else { return Ok(()) };
    let look = format!(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO LIKE 'EXPLAIN %' \
         AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
    );
    if killer.first(&look).await?.is_some() {
        killer.run(&format!("KILL {id}")).await?;
    }
    killer.close().await;
    Ok(())
}

/// Whether all that is there of these names is base tables. A name that is not there is that of a common
/// table expression, or EXPLAIN refuses.
async fn are_base_tables(link: &mut Link, names: &[(String, String)]) -> Result<bool, ProbeError> {
    if names.is_empty() {
        return Ok(true);
    }
    let named = |(schema, name): &(String, String)| {
        format!("(TABLE_SCHEMA = {schema} AND TABLE_NAME = {name})")
    };
    let named: Vec<String> = names.iter().map(named).collect();
    let look = format!(
        "SELECT DISTINCT TABLE_TYPE FROM information_schema.TABLES WHERE {}",
        named.join(" OR ")
    );
    let kinds = link.rows(&look).await?;
    let kind = |row: &mysql_async::Row| row.as_ref(0).and_then(text);
    Ok(kinds.iter().all(|row| kind(row).as_deref() == Some("BASE TABLE")))
}
