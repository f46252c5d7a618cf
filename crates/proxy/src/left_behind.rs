//! Statements whose connection has ended before their answer: they may go on at the server, so what
//! they have taken from budgets is kept until it is known that they do not.
//!
//! A server notices an end of its connection when it reads or writes, not while it works. So behind
//! a KILL of a session that has much to roll back, an upload whose client has died, an answer that
//! nobody took for half a minute, and a network that has parted them, the statement is there when
//! its connection is not. Whoever gave its place to the next one then would have more at the server
//! than the budget says; and clients that time out and come again do that until the server is full.
//!
//! The server is asked for its sessions, over the probe's account, until it shows this one no more.
//! An account without PROCESS is shown its own sessions only: what such a one is not shown it knows
//! nothing of. Of what nobody knows the place is free after [`UNHEARD_MAX`].
//!
//! A server that has crashed and started again gives the same ids to others, and what it shows under
//! this one may be theirs. So a server by which it has not ended is asked for its `Uptime` too: what
//! is older than the server has ended with the one before. USER, HOST and TIME of the process list
//! tell nothing for certain: COM_CHANGE_USER, proxies in between and `SET timestamp` change them.
//!
//! Nor is what another server shows under that id theirs: behind a switchover an address may lead
//! there, while a forwarder keeps the old connections where they were. Budgets are the primary's, so
//! what is known to be at another server counts no more; a connection there is not judged by it.
//!
//! A connection that is still there, but whose client is not, has its session asked after too: what
//! waits for an answer that its server has given, as far as that knows, waits for ever.

mod asking;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mysql_async::Row;
use parking_lot::Mutex;
use policy::ServerAddress;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::asking::Asked;
use crate::board::{Birth, IsAt};
use crate::cluster::{BudgetGuard, Cluster};
use crate::kill::link_to;
use crate::link::UPTIME_ERROR;
use crate::socket::Remote;

/// How often the server is asked while there is any.
const POLL: Duration = Duration::from_millis(100);

/// For the server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Without a word of the server on it a place is free after this, as long as an answer that nobody
/// takes is listened to. So nobody waits for ever for a server that is gone, or does not say.
const UNHEARD_MAX: Duration = Duration::from_secs(30);

/// Of a session's age, the part by which the server's `Uptime` may be off besides: it follows a clock
/// that is set now and then, or runs slower than this machine's. Without it a pool that logged in
/// as the server started would look older than the server after some days.
const CLOCKS_APART: u32 = 1_000;

/// However often the server shows it: what rolls back for longer is to be seen by somebody.
const KEPT_MAX: Duration = Duration::from_secs(3_600);

/// How long a server shows a session idle, and says nothing over its connection, until no answer is
/// under way any more: what is lost on the way is sent again by then.
const IDLE_MIN: Duration = Duration::from_secs(5);

/// Statements on the list. There are no more of them than budgets have places, but for those who
/// may not wait; of more than this the places are free at once. Connections are on it besides, each
/// once.
const STATEMENTS_MAX: usize = 4_096;

/// The statements of one cluster whose connections have ended before their answers.
#[derive(Debug)]
pub(crate) struct LeftBehind {
    sender: Sender<Statement>,
    /// Until the cluster's driver takes it.
    receiver: Mutex<Option<Receiver<Statement>>>,
    now: AtomicUsize,
    over: [AtomicU64; Fate::ALL.len()],
}

/// The session whose connection has ended.
#[derive(Clone, Debug)]
pub(crate) struct LostSession {
    /// Where its server is. A socket that its peer has reset does not say.
    pub(crate) remote: Option<Remote>,
    /// The server's id of it.
    pub(crate) connection_id: u32,
    /// When it came to its server, and which that is.
    pub(crate) birth: Birth,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Statement {
    claim: Claim,
    session: LostSession,
    /// Whether it is at the server that answered last.
    is_at: IsAt,
    /// It has been looked for.
    located: bool,
    since: Instant,
    watched: Watched,
}

/// Who wants to know of one.
#[derive(Debug)]
enum Claim {
    /// What it has taken from its budgets: that goes back with this.
    Budget { taken: BudgetGuard },
    /// Its connection, which is there, until that hears of it otherwise.
    Connection(oneshot::Sender<()>),
}

/// What has been seen of one.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// When the server showed it last.
    heard: Instant,
    /// Since when it was idle then.
    idle_since: Option<Instant>,
    /// How long it is idle when it has ended, and at least twice in a row.
    idle_min: Duration,
    ended: bool,
}

/// Why the place of one is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server shows its session no more, or idle.
    Ended,
    /// Nobody knows: the server has not said anything for [`UNHEARD_MAX`].
    Unknown,
    /// It is there after [`KEPT_MAX`].
    Expired,
}

impl Fate {
    pub(crate) const ALL: [Self; 3] = [Self::Ended, Self::Unknown, Self::Expired];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
        }
    }
}

/// What a server shows of its sessions.
#[derive(Debug, Default)]
struct Shown {
    /// Those that were asked for, and whether they are idle.
    sessions: HashMap<u64, bool>,
    /// It shows those of other users too, if there are any.
    others: bool,
}

impl Default for LeftBehind {
    fn default() -> Self {
        let (sender, receiver) = channel(STATEMENTS_MAX);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            now: AtomicUsize::new(0),
            over: Default::default(),
        }
    }
}

impl LeftBehind {
    /// The connection of a statement has ended that holds this.
    pub(crate) fn add(&self, budget: BudgetGuard, session: LostSession) {
        let before = self.now.fetch_add(1, Ordering::Relaxed);
        if before >= STATEMENTS_MAX || !self.list(Claim::Budget { taken: budget }, session) {
            self.end(Fate::Unknown);
        }
    }

    /// Asks after a session whose connection waits for an answer that nobody may want. What this gives
    /// resolves when the server knows of no answer that is still to come; with an error if nobody can
    /// say. Dropping it ends the asking.
    pub(crate) fn ask_after(&self, session: LostSession) -> oneshot::Receiver<()> {
        let (over, hears) = oneshot::channel();
        self.list(Claim::Connection(over), session);
        hears
    }

    /// False: the list is full.
    fn list(&self, claim: Claim, session: LostSession) -> bool {
        let since = Instant::now();
        let watched = Watched::new(since, claim.idle_min());
        let is_at = IsAt::Unknown;
        let statement = Statement { claim, session, is_at, located: false, since, watched };
        self.sender.try_send(statement).is_ok()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// How many there were whose places became free so.
    pub(crate) fn over(&self) -> impl Iterator<Item = (Fate, u64)> {
        Fate::ALL.into_iter().zip(&self.over).map(|(fate, n)| (fate, n.load(Ordering::Relaxed)))
    }

    fn end(&self, fate: Fate) {
        self.now.fetch_sub(1, Ordering::Relaxed);
        let counted = Fate::ALL.into_iter().zip(&self.over).find(|(of, _)| *of == fate);
        if let Some((_, sum)) = counted {
            sum.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Cluster {
    /// Gives back what statements have taken whose connections have ended, when the server has ended
    /// them. Runs until the task is dropped; what is left then is given back.
    pub(crate) async fn watch_left_behind(&self) {
        let Some(mut came) = self.left_behind.receiver.lock().take() else { return };
        let mut left = Vec::new();
        let mut links = Vec::new();
        loop {
            if left.is_empty() {
                links.clear();
                let Some(statement) = came.recv().await else { return };
                left.push(statement);
            }
            while let Ok(statement) = came.try_recv() {
                left.push(statement);
            }
            locate(&mut left, only_address).await;
            left.retain(|statement| !statement.claim.is_given_up());
            self.ask_servers(&mut left, &mut links).await;
            self.give_back(&mut left);
            if !left.is_empty() {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Asks each server for those that it had: it is one, unless its address has just changed.
    async fn ask_servers(&self, left: &mut [Statement], links: &mut Vec<Asked>) {
        let policy = self.policy();
        let mut remotes: Vec<Remote> = Vec::new();
        for remote in left.iter().filter_map(|statement| statement.session.remote.as_ref()) {
            if !remotes.contains(remote) {
                remotes.push(remote.clone());
            }
        }
        links.retain(|asked| remotes.contains(&asked.remote));
        for remote in remotes {
            let known = links.iter().position(|asked| asked.remote == remote);
            let at = known.or_else(|| {
                let link = link_to(&policy, &remote, &self.probes.own_links, ANSWER_TIMEOUT)?;
                links.push(Asked::new(remote.clone(), link));
                links.len().checked_sub(1)
            });
            let Some(asked) = at.and_then(|at| links.get_mut(at)) else { continue };
            let is_there =
                |statement: &&mut Statement| statement.session.remote.as_ref() == Some(&remote);
            let mut theirs: Vec<&mut Statement> = left.iter_mut().filter(is_there).collect();
            asked.ask_for(&mut theirs, &self.probes.sightings).await;
        }
    }

    fn give_back(&self, left: &mut Vec<Statement>) {
        let primary = self.policy().primary.clone();
        let now = Instant::now();
        for mut statement in std::mem::take(left) {
            let is_budget = matches!(statement.claim, Claim::Budget { .. });
            // A budget is what may be taken of the primary.
            let fate = if is_budget && statement.session.birth.address != primary {
                Some(Fate::Ended)
            } else {
                statement.watched.fate(statement.since, now)
            };
            match fate {
                None => {
                    statement.claim.note_going_on();
                    left.push(statement);
                }
                Some(fate) if is_budget => self.note_fate(&statement, fate),
                Some(fate) => statement.claim.tell(fate),
            }
        }
    }

    /// The place of one is free.
    fn note_fate(&self, statement: &Statement, fate: Fate) {
        let told = match fate {
            Fate::Ended => None,
            Fate::Unknown | Fate::Expired => self.turned_away.left_behind.lock().again(self.now()),
        };
        if let Some(untold) = told {
            let connection = statement.session.connection_id;
            tracing::warn!(
                cluster = %self.name, connection, fate = fate.as_str(), untold,
                "the connection of a statement has ended before its answer, and whether the \
                 server has ended it is not known: its budgets do not count it any more"
            );
        }
        self.left_behind.end(fate);
    }
}

impl Shown {
    fn of(rows: &[Row]) -> Self {
        let mut shown = Self::default();
        for row in rows {
            match row.get::<u64, _>(0) {
                Some(0) => shown.others = true,
                Some(id) => {
                    let command = row.get::<Option<Vec<u8>>, _>(1).flatten();
                    shown.sessions.insert(id, command.as_deref() == Some(b"Sleep"));
                }
                None => {}
            }
        }
        shown
    }
}

impl Statement {
    /// A server has been asked, which may be another one.
    fn note(&mut self, shown: &Shown, now: Instant) {
        match (self.is_at, &self.claim) {
            (IsAt::Yes | IsAt::Unknown, Claim::Budget { .. } | Claim::Connection(_)) => {
                self.watched.note(self.session.connection_id, shown, now);
            }
            (IsAt::No, Claim::Budget { .. }) => self.watched.ended = true,
            (IsAt::No, Claim::Connection(_)) => {}
        }
    }
}

impl Claim {
    fn idle_min(&self) -> Duration {
        match self {
            Self::Budget { .. } => Duration::ZERO,
            Self::Connection(_) => IDLE_MIN,
        }
    }

    /// It is there yet.
    fn note_going_on(&mut self) {
        match self {
            Self::Budget { taken } => taken.note_unheard(),
            Self::Connection(_) => {}
        }
    }

    /// Nobody wants to know any more.
    fn is_given_up(&self) -> bool {
        match self {
            Self::Budget { .. } => false,
            Self::Connection(over) => over.is_closed(),
        }
    }

    /// Tells a connection; that nobody knows is told by the end of this.
    fn tell(self, fate: Fate) {
        if let (Self::Connection(over), Fate::Ended) = (self, fate) {
            // It may have heard of it otherwise.
            over.send(()).ok();
        }
    }
}

impl LostSession {
    /// Whether it was there before a server that is up for so long now. In doubt it was not.
    fn is_older(&self, uptime: Duration, now: Instant) -> bool {
        let age = self.birth.age(now);
        let clocks = age.checked_div(CLOCKS_APART).unwrap_or_default();
        let up_at_most = uptime.saturating_add(UPTIME_ERROR);
        age > up_at_most.saturating_add(clocks)
    }
}

/// Finds servers again where their sockets do not say, by the only address that each has. One that
/// hundreds have lost at once is looked up once: nobody's place is free meanwhile.
async fn locate(left: &mut [Statement], address: impl AsyncFn(&str) -> Option<Remote>) {
    let mut found: HashMap<Arc<str>, Option<Remote>> = HashMap::new();
    for statement in left.iter_mut().filter(|statement| !statement.located) {
        statement.located = true;
        let Statement { session: LostSession { remote: remote @ None, birth, .. }, .. } = statement
        else {
            continue;
        };
        if !found.contains_key(&birth.address) {
            found.insert(birth.address.clone(), address(&birth.address).await);
        }
        *remote = found.get(&birth.address).cloned().flatten();
    }
}

/// Where a server is by its address in the file.
async fn only_address(server: &str) -> Option<Remote> {
    match ServerAddress::of(server) {
        ServerAddress::Unix(_) => Some(Remote::Unix(server.to_owned())),
        ServerAddress::Network(name) => {
            let found = tokio::time::timeout(ANSWER_TIMEOUT, tokio::net::lookup_host(name));
            match found.await {
                Ok(Ok(addresses)) => the_only(addresses).map(Remote::Network),
                Ok(Err(_)) | Err(_) => None,
            }
        }
    }
}

/// Of a name with several addresses nobody knows which it was.
fn the_only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next();
    if all.next().is_none() { first } else { None }
}

impl Watched {
    fn new(now: Instant, idle_min: Duration) -> Self {
        Self { heard: now, idle_since: None, idle_min, ended: false }
    }

    /// The server has been asked.
    fn note(&mut self, connection_id: u32, shown: &Shown, now: Instant) {
        let is_idle = match shown.sessions.get(&u64::from(connection_id)) {
            Some(is_idle) => *is_idle,
            None if self.idle_min.is_zero() => {
                self.ended = shown.others;
                return;
            }
            // Its last words may be under way.
            None if shown.others => true,
            None => return,
        };
        match self.idle_since {
            Some(since) if is_idle && now.saturating_duration_since(since) >= self.idle_min => {
                self.ended = true;
            }
            // It may not have read the statement yet: the next time it has, or its end.
            _ => {
                self.idle_since = if is_idle { self.idle_since.or(Some(now)) } else { None };
                self.heard = now;
            }
        }
    }

    /// What has become of it, if its place is free.
    fn fate(&self, since: Instant, now: Instant) -> Option<Fate> {
        if self.ended {
            Some(Fate::Ended)
        } else if now.saturating_duration_since(since) >= KEPT_MAX {
            Some(Fate::Expired)
        } else if now.saturating_duration_since(self.heard) >= UNHEARD_MAX {
            Some(Fate::Unknown)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
