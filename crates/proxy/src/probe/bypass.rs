//! Who writes to the primary without having come through a Sluice of the cluster.
//!
//! Every few seconds the server is asked for its sessions (`performance_schema.threads`, or the
//! process list where that is off, and on MariaDB), and for those that have gone around how many
//! rows they have changed. Which those are [`ledger`] says. It is never on the way of a statement.
//!
//! What it costs the primary: a list of its sessions without their statements, a look at the open
//! transactions of InnoDB, and some 200 counters for each session that has gone around, of which
//! [`LOOKED_AT_MAX`] are looked at.
//!
//! What it cannot see: a session that comes and goes between two looks, and, without
//! performance_schema, one that never has a transaction open when somebody looks.

mod ledger;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use mysql_async::Row;
use parking_lot::Mutex;

use self::ledger::{Ledger, Own, Session, Work};
use super::ProbeTarget;
use super::answer::{number, text};
use crate::board::{BypassReading, ProbeError};
use crate::cluster::Cluster;
use crate::link::Link;
use crate::printable::Printable;

/// The longest a question may take.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Sessions of one server that are read at most. With more, nothing is told.
const SESSIONS_MAX: usize = 20_000;

/// Sessions that have gone around whose work is looked at in one look.
const LOOKED_AT_MAX: usize = 200;

/// The same user is told of again after this.
const TOLD_AGAIN: Duration = Duration::from_secs(3_600);

/// Users that lines are written for, and remembered.
const TOLD_MAX: usize = 1_000;

const SETTINGS: &str = "SELECT @@GLOBAL.performance_schema, VERSION(), CONNECTION_ID()";

const THREADS: &str = "SELECT PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, \
    PROCESSLIST_COMMAND, THREAD_ID FROM performance_schema.threads \
    WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL LIMIT 20001";

const PROCESS_LIST: &str = "SELECT ID, USER, HOST, COMMAND, NULL \
    FROM information_schema.PROCESSLIST LIMIT 20001";

/// Whether the account may read them.
const COUNTERS: &str = "SELECT 1 \
    FROM performance_schema.events_statements_summary_by_thread_by_event_name LIMIT 1";

const TRANSACTIONS: &str = "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX \
    WHERE trx_rows_modified > 0 LIMIT 1000";

const ROWS: &str = "SELECT SUM(SUM_ROWS_AFFECTED) \
    FROM performance_schema.events_statements_summary_global_by_event_name";

const CONNECTED: &str = "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'";

/// Runs until it is dropped.
pub(super) async fn watch(target: ProbeTarget, interval: Duration) {
    let memory = Arc::clone(&target.site.cluster.probes.bypass_memory);
    let mut watcher = Watcher { link: target.link(TIME_LIMIT), memory, trouble: None };
    loop {
        let reading = watcher.look(&target).await;
        watcher.tell(&target, &reading);
        target.site.cluster.probes.note_bypass(reading.ok());
        tokio::time::sleep(interval).await;
    }
}

/// What outlives a reload of the file, which begins all probes anew: who it was that came through
/// Sluice is known from the looks before.
#[derive(Debug, Default)]
pub(crate) struct BypassMemory {
    ledger: Ledger,
    /// How many connections of each cluster had ended at the last look.
    departed: HashMap<Arc<str>, u64>,
    /// When each user was last told of.
    told: HashMap<String, MonoTime>,
}

impl BypassMemory {
    /// What the clusters of this process that have this primary know to be theirs.
    fn own<'c>(&mut self, clusters: impl Iterator<Item = &'c Arc<Cluster>>) -> Own {
        let mut own = Own::default();
        for cluster in clusters {
            let before = self.departed.get(&cluster.name).copied();
            let before = before.unwrap_or_else(|| cluster.registry.departed());
            let relayed = cluster.registry.relayed(before);
            self.departed.insert(cluster.name.clone(), relayed.departed);
            own.forgets |= relayed.forgets;
            own.relayed.extend(relayed.ids);
            own.links.extend(cluster.probes.own_links.ids());
        }
        own
    }
}

struct Watcher {
    link: Link,
    /// Never locked while a server is asked.
    memory: Arc<Mutex<BypassMemory>>,
    /// What kept it from looking.
    trouble: Option<ProbeError>,
}

/// How a server is asked.
struct Means {
    /// It has counters for each session, which can be found by an index.
    counters: bool,
    connection_id: u64,
}

impl Watcher {
    async fn look(&mut self, target: &ProbeTarget) -> Result<BypassReading, ProbeError> {
        let means = self.means().await?;
        let (sessions, mut trouble) = self.sessions(target, &means).await?;
        let site = &target.site;
        let rules = (&*target.probe.user, &site.policy.bypass);
        let (around, is_first_look) = {
            let mut memory = self.memory.lock();
            let neighbours = site.neighbours.iter();
            let here = neighbours.filter(|cluster| cluster.policy().primary == target.server);
            let mut own = memory.own(here);
            own.links.insert(means.connection_id);
            let is_first_look = memory.ledger.is_empty();
            (memory.ledger.sort(&sessions, &own, rules, site.cluster.now()), is_first_look)
        };
        if around.len() > LOOKED_AT_MAX {
            let more = around.len().saturating_sub(LOOKED_AT_MAX);
            trouble.get_or_insert(format!("{more} sessions that go around were not looked at"));
        }
        let around = around.get(..LOOKED_AT_MAX).unwrap_or(&around);
        let is_probes = |session: &&Session| session.user == target.probe.user;
        let probes: Vec<&Session> = sessions.iter().filter(is_probes).take(LOOKED_AT_MAX).collect();
        let (rows, of_clients) = if means.counters {
            let by_thread = self.rows_changed(around.iter().chain(&probes)).await?;
            let row = self.link.first(ROWS).await?;
            let all: Option<u64> = row.as_ref().and_then(|row| row.as_ref(0)).and_then(number);
            let of = |session: &&Session| Some(by_thread.get(&session.thread?)?).copied();
            let of_probes: u64 = probes.iter().filter_map(of).sum();
            (by_thread, all.map(|all| all.saturating_sub(of_probes)))
        } else {
            (HashMap::new(), None)
        };
        let writing: HashSet<u64> = match self.link.rows(TRANSACTIONS).await {
            Ok(rows) => rows.iter().filter_map(|row| row.as_ref(0).and_then(number)).collect(),
            Err(error) if error.is_silence() => return Err(error),
            Err(error) => {
                trouble.get_or_insert(error.to_string());
                HashSet::new()
            }
        };
        let ledger = &mut self.memory.lock().ledger;
        ledger.note_rows(of_clients);
        for session in around {
            let changed = session.thread.and_then(|thread| rows.get(&thread)).copied();
            let work = Work { rows: changed, in_transaction: writing.contains(&session.id) };
            ledger.note_work(session, work, is_first_look);
        }
        Ok(ledger.reading(trouble))
    }

    async fn means(&mut self) -> Result<Means, ProbeError> {
        let row = self.link.first(SETTINGS).await?;
        let unusable = || ProbeError::Unusable("no settings".into());
        let row = row.ok_or_else(unusable)?;
        let schema: Option<u8> = row.as_ref(0).and_then(number);
        let version = row.as_ref(1).and_then(text).ok_or_else(unusable)?;
        let connection_id = row.as_ref(2).and_then(number).ok_or_else(unusable)?;
        // MariaDB's counters have no index.
        let mut counters = schema == Some(1) && !version.contains("MariaDB");
        if counters {
            counters = match self.link.first(COUNTERS).await {
                Ok(_) => true,
                Err(error) if error.is_silence() => return Err(error),
                Err(_) => false,
            };
        }
        Ok(Means { counters, connection_id })
    }

    /// The server's sessions, and why these are not all.
    async fn sessions(
        &mut self,
        target: &ProbeTarget,
        means: &Means,
    ) -> Result<(Vec<Session>, Option<String>), ProbeError> {
        let list = if means.counters { THREADS } else { PROCESS_LIST };
        let rows = self.link.rows(list).await?;
        if rows.len() > SESSIONS_MAX {
            return Err(ProbeError::Unusable(format!("more than {SESSIONS_MAX} sessions")));
        }
        let port = if means.counters { Port::NotShown } else { Port::Shown };
        let sessions: Vec<Session> = rows.iter().filter_map(|row| session(row, port)).collect();
        let row = self.link.first(CONNECTED).await?;
        let connected: Option<usize> = row.as_ref().and_then(|row| row.as_ref(1)).and_then(number);
        // Without PROCESS the server shows an account its own sessions only.
        let own_only = sessions.iter().all(|session| session.user == target.probe.user);
        let blind = own_only && connected.is_some_and(|connected| connected > sessions.len());
        let trouble = "the account sees no sessions but its own: GRANT PROCESS ON *.* to it";
        Ok((sessions, blind.then(|| trouble.to_owned())))
    }

    /// Rows that sessions have changed since they began, by their threads.
    async fn rows_changed<'s>(
        &mut self,
        sessions: impl Iterator<Item = &'s &'s Session>,
    ) -> Result<HashMap<u64, u64>, ProbeError> {
        let threads: Vec<String> =
            sessions.filter_map(|session| Some(session.thread?.to_string())).collect();
        if threads.is_empty() {
            return Ok(HashMap::new());
        }
        let threads = threads.join(", ");
        let question = format!(
            "SELECT THREAD_ID, SUM(SUM_ROWS_AFFECTED) \
             FROM performance_schema.events_statements_summary_by_thread_by_event_name \
             WHERE THREAD_ID IN ({threads}) GROUP BY THREAD_ID"
        );
        let rows = self.link.rows(&question).await?;
        let pair =
            |row: &Row| Some((row.as_ref(0).and_then(number)?, row.as_ref(1).and_then(number)?));
        Ok(rows.iter().filter_map(pair).collect())
    }

    /// A line for each user, once an hour.
    fn tell(&mut self, target: &ProbeTarget, reading: &Result<BypassReading, ProbeError>) {
        let site = &target.site;
        let (cluster, now) = (&site.cluster.name, site.cluster.now());
        let reading = match reading {
            Ok(reading) => {
                self.trouble = None;
                reading
            }
            Err(error) => {
                if self.trouble.as_ref().is_none_or(|known| known.kind() != error.kind()) {
                    tracing::info!(
                        %cluster, server = %target.server, %error,
                        "who writes past Sluice is not known: the server's sessions cannot be read"
                    );
                    self.trouble = Some(error.clone());
                }
                return;
            }
        };
        let told = &mut self.memory.lock().told;
        told.retain(|_, told| now.saturating_since(*told) < TOLD_AGAIN);
        for user in &reading.users {
            if told.contains_key(&user.user) || told.len() >= TOLD_MAX {
                continue;
            }
            told.insert(user.user.clone(), now);
            tracing::warn!(
                %cluster, server = %target.server, user = %Printable(user.user.as_bytes()),
                sessions = user.sessions,
                advice = "point it at Sluice, or name it in bypass.ignore_users",
                "past Sluice writes {}", user.in_words()
            );
        }
    }
}

/// Whether a list shows the ports of clients.
#[derive(Clone, Copy)]
enum Port {
    Shown,
    NotShown,
}

fn session(row: &Row, port: Port) -> Option<Session> {
    let column = |at: usize| row.as_ref(at).and_then(text);
    let host = column(2).unwrap_or_default();
    let host = match port {
        Port::Shown => host.rsplit_once(':').map_or(&*host, |(address, _)| address),
        Port::NotShown => &*host,
    };
    Some(Session {
        id: row.as_ref(0).and_then(number)?,
        user: column(1).unwrap_or_default(),
        host: host.to_owned(),
        command: column(3).unwrap_or_default(),
        thread: row.as_ref(4).and_then(number),
    })
}
