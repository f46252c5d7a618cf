//! Which sessions of a server's list have come through a Sluice, and which have not.
//!
//! Theory. Sluice knows the server's ids of the connections that it relays, of those that are over,
//! and of its own. Whatever else the server lists has gone around, unless another Sluice may have
//! relayed it. Where one runs, or did within the last hour, is seen by its probe's sessions (the
//! same MySQL user, on connections that are not this process's own), or said by the file. So a
//! session is *unknown*, and stays it for as long as it lasts, when it was first seen
//!
//! - while another Sluice was known to run at its address;
//! - at the first look, from an address from which this Sluice comes too: its predecessor may have
//!   relayed it (a takeover, a restart, a crash);
//! - when more connections have ended here since the last look than are remembered.
//!
//! Of the others one is named when a second look has found it, and it has changed rows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use admission::MonoTime;
use policy::Bypass;

use crate::board::{BypassReading, BypassUser};

/// A session in the server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    /// The server's id of its connection.
    pub(super) id: u64,
    pub(super) user: String,
    /// Its address or host name, without the port.
    pub(super) host: String,
    pub(super) command: String,
    /// Its thread in performance_schema.
    pub(super) thread: Option<u64>,
}

/// What this process knows to be its own.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Connections that it relays, or has relayed.
    pub(super) relayed: HashSet<u64>,
    /// Connections of its probes.
    pub(super) links: HashSet<u64>,
    /// More have ended than are remembered.
    pub(super) forgets: bool,
}

/// What a session has done, as far as the server tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Rows that it has ever changed.
    pub(super) rows: Option<u64>,
    /// It has a transaction open that has changed some.
    pub(super) in_transaction: bool,
}

/// How long an address counts as that of another Sluice after its probe was seen there last. What it
/// relayed may run on in the server for as long.
const SLUICE_REMEMBERED: Duration = Duration::from_secs(3_600);

/// Looks over which shares are taken.
const WINDOW: usize = 30;

/// Addresses that are named of each user.
const HOSTS_MAX: usize = 5;

/// Users that belong to the server itself.
const OF_THE_SERVER: [&str; 6] = [
    "system user",
    "event_scheduler",
    "unauthenticated user",
    "mysql.session",
    "mysql.sys",
    "mysql.infoschema",
];

/// Commands of sessions that log in, of replicas, and of the server's own threads.
const NOT_OF_CLIENTS: [&str; 9] = [
    "Connect",
    "Daemon",
    "Binlog Dump",
    "Binlog Dump GTID",
    "Register Slave",
    "Register Replica",
    "Slave_IO",
    "Slave_SQL",
    "Slave_worker",
];

/// What has been seen of a server's sessions. Ids are forgotten when the server lists them no more.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    has_looked: bool,
    relayed: HashSet<u64>,
    unknown: HashSet<u64>,
    around: HashMap<u64, Around>,
    /// Addresses of other Sluices, and when one was last seen there.
    sluices: HashMap<String, MonoTime>,
    /// Rows changed on the whole server, as last told.
    rows: Option<u64>,
    window: VecDeque<Changed>,
}

/// A session that has come through no Sluice.
#[derive(Debug)]
struct Around {
    user: String,
    host: String,
    looks: u32,
    rows: Option<u64>,
    writes: bool,
}

/// Rows changed between two looks.
#[derive(Debug, Default)]
struct Changed {
    all: u64,
    by_user: HashMap<String, u64>,
}

impl Ledger {
    /// Takes in the server's list. Gives the sessions whose work is of interest: those that have
    /// gone around.
    pub(super) fn sort<'s>(
        &mut self,
        sessions: &'s [Session],
        own: &Own,
        (probe_user, bypass): (&str, &Bypass),
        now: MonoTime,
    ) -> Vec<&'s Session> {
        let is_own = |session: &&Session| {
            own.relayed.contains(&session.id) || own.links.contains(&session.id)
        };
        let own_hosts: HashSet<&str> =
            sessions.iter().filter(is_own).map(|session| &*session.host).collect();
        for session in sessions {
            if session.user == probe_user && !own.links.contains(&session.id) {
                self.sluices.insert(session.host.clone(), now);
            }
        }
        self.sluices.retain(|_, seen| now.saturating_since(*seen) <= SLUICE_REMEMBERED);
        let listed: HashSet<u64> = sessions.iter().map(|session| session.id).collect();
        self.relayed.extend(own.relayed.intersection(&listed));
        self.relayed.retain(|id| listed.contains(id));
        self.unknown.retain(|id| listed.contains(id));
        self.around.retain(|id, _| listed.contains(id));
        let mut found = Vec::new();
        for session in sessions {
            if self.is_excepted(session, own, (probe_user, bypass)) {
                self.around.remove(&session.id);
                continue;
            }
            let may_be_sluices = self.sluices.contains_key(&session.host)
                || session.host.parse().is_ok_and(|address: IpAddr| bypass.is_sluice(address));
            let is_new = !self.around.contains_key(&session.id);
            let predecessors = !self.has_looked && own_hosts.contains(&*session.host);
            if may_be_sluices || (is_new && (predecessors || own.forgets)) {
                self.around.remove(&session.id);
                self.unknown.insert(session.id);
            }
            if !self.unknown.contains(&session.id) {
                found.push(session);
            }
        }
        self.has_looked = true;
        found
    }

    fn is_excepted(
        &self,
        session: &Session,
        own: &Own,
        (probe_user, bypass): (&str, &Bypass),
    ) -> bool {
        let Session { id, user, command, .. } = session;
        self.relayed.contains(id)
            || own.links.contains(id)
            || user == probe_user
            || OF_THE_SERVER.contains(&&**user)
            || NOT_OF_CLIENTS.contains(&&**command)
            || bypass.ignores(user.as_bytes())
    }

    /// Takes in what a session that has gone around has done.
    pub(super) fn note_work(&mut self, session: &Session, work: Work, is_first_look: bool) {
        let around = self.around.entry(session.id).or_insert_with(|| Around {
            user: session.user.clone(),
            host: session.host.clone(),
            looks: 0,
            // What it did before anybody looked is nobody's concern.
            rows: if is_first_look { work.rows } else { work.rows.map(|_| 0) },
            writes: false,
        });
        around.looks = around.looks.saturating_add(1);
        let changed = match (around.rows, work.rows) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            (None, _) | (_, None) => 0,
        };
        around.rows = work.rows.or(around.rows);
        around.writes |= changed > 0 || work.in_transaction;
        if let Some(last) = self.window.back_mut() {
            let rows = last.by_user.entry(session.user.clone()).or_default();
            *rows = rows.saturating_add(changed);
        }
    }

    /// Begins a new part of the window: so many rows were ever changed on the server, those of
    /// probes left out. None: it does not tell.
    pub(super) fn note_rows(&mut self, all: Option<u64>) {
        let changed = match (self.rows, all) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            (None, _) | (_, None) => 0,
        };
        self.rows = all;
        if self.window.len() >= WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(Changed { all: changed, by_user: HashMap::new() });
    }

    /// Whether no look has been finished yet.
    pub(super) fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Who writes past Sluice.
    pub(super) fn reading(&self, trouble: Option<String>) -> BypassReading {
        let mut users: HashMap<&str, BypassUser> = HashMap::new();
        for around in self.around.values().filter(|around| around.writes && around.looks > 1) {
            let user = users.entry(&around.user).or_insert_with(|| BypassUser {
                user: around.user.clone(),
                hosts: Vec::new(),
                sessions: 0,
                share: self.share(&around.user),
            });
            user.sessions = user.sessions.saturating_add(1);
            if user.hosts.len() < HOSTS_MAX && !user.hosts.contains(&around.host) {
                user.hosts.push(around.host.clone());
            }
        }
        let mut users: Vec<BypassUser> = users.into_values().collect();
        users.sort_by(|a, b| b.sessions.cmp(&a.sessions).then_with(|| a.user.cmp(&b.user)));
        users.iter_mut().for_each(|user| user.hosts.sort_unstable());
        let unknown = u64::try_from(self.unknown.len()).unwrap_or(u64::MAX);
        BypassReading { users, unknown, trouble }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::as_conversions,
        reason = "a share needs no 53 bits"
    )]
    fn share(&self, user: &str) -> Option<f64> {
        self.rows?;
        let all: u64 = self.window.iter().map(|changed| changed.all).sum();
        let of_user = |changed: &Changed| changed.by_user.get(user).copied().unwrap_or(0);
        let rows: u64 = self.window.iter().map(of_user).sum();
        (all > 0).then(|| (rows as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests;
