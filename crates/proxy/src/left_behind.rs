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

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mysql_async::Row;
use parking_lot::Mutex;
use policy::ServerAddress;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::cluster::{BudgetGuard, Cluster};
use crate::kill::link_to;
use crate::link::{Link, UPTIME_ERROR};
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

/// Statements on the list. There are no more of them than budgets have places, but for those who
/// may not wait; of more than this the places are free at once.
const STATEMENTS_MAX: usize = 4_096;

/// Ids in one question.
const ASKED_MAX: usize = 256;

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
#[derive(Debug)]
pub(crate) struct LostSession {
    /// Where its server is. A socket that its peer has reset does not say.
    pub(crate) remote: Option<Remote>,
    /// The server's id of it.
    pub(crate) connection_id: u32,
    /// For how long it has been there.
    pub(crate) age: Duration,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Statement {
    /// What it has taken: that goes back with this.
    _budget: BudgetGuard,
    /// The primary that it went to, by its address in the file.
    server: Arc<str>,
    session: LostSession,
    /// It has been looked for.
    located: bool,
    since: Instant,
    watched: Watched,
}

/// What has been seen of one.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// When the server showed it last.
    heard: Instant,
    /// It was idle then.
    idle: bool,
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
    pub(crate) fn add(&self, budget: BudgetGuard, server: &Arc<str>, session: LostSession) {
        let since = Instant::now();
        let watched = Watched::new(since);
        let server = Arc::clone(server);
        let statement =
            Statement { _budget: budget, server, session, located: false, since, watched };
        self.now.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(statement).is_err() {
            self.end(Fate::Unknown);
        }
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
            for statement in left.iter_mut().filter(|statement| !statement.located) {
                statement.locate().await;
            }
            self.ask_after(&mut left, &mut links).await;
            self.give_back(&mut left);
            if !left.is_empty() {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// Asks each server for those that it had: it is one, unless its address has just changed.
    async fn ask_after(&self, left: &mut [Statement], links: &mut Vec<(Remote, Link)>) {
        let policy = self.policy();
        let mut remotes: Vec<Remote> = Vec::new();
        for remote in left.iter().filter_map(|statement| statement.session.remote.as_ref()) {
            if !remotes.contains(remote) {
                remotes.push(remote.clone());
            }
        }
        links.retain(|(remote, _)| remotes.contains(remote));
        for remote in remotes {
            let known = links.iter().position(|(known, _)| *known == remote);
            let at = known.or_else(|| {
                let link = link_to(&policy, &remote, &self.probes.own_links, ANSWER_TIMEOUT)?;
                links.push((remote.clone(), link));
                links.len().checked_sub(1)
            });
            let Some((_, link)) = at.and_then(|at| links.get_mut(at)) else { continue };
            let is_there =
                |statement: &&mut Statement| statement.session.remote.as_ref() == Some(&remote);
            let mut theirs: Vec<&mut Statement> = left.iter_mut().filter(is_there).collect();
            ask_for(link, &mut theirs).await;
        }
    }

    fn give_back(&self, left: &mut Vec<Statement>) {
        let primary = self.policy().primary.clone();
        let now = Instant::now();
        left.retain(|statement| {
            // A budget is what may be taken of the primary.
            let fate = if statement.server == primary {
                statement.watched.fate(statement.since, now)
            } else {
                Some(Fate::Ended)
            };
            let Some(fate) = fate else { return true };
            if fate != Fate::Ended {
                tracing::warn!(
                    cluster = %self.name, connection = statement.session.connection_id, fate = fate.as_str(),
                    "the connection of a statement has ended before its answer, and whether the \
                     server has ended it is not known: its budgets do not count it any more"
                );
            }
            self.left_behind.end(fate);
            false
        });
    }
}

/// Asks a server for those that it had.
async fn ask_for(link: &mut Link, theirs: &mut [&mut Statement]) {
    for asked in theirs.chunks_mut(ASKED_MAX) {
        let ids: Vec<String> =
            asked.iter().map(|statement| statement.session.connection_id.to_string()).collect();
        let Ok(rows) = link.rows(&question(&ids.join(","))).await else { return };
        let shown = Shown::of(&rows);
        for statement in asked {
            statement.watched.note(statement.session.connection_id, &shown, Instant::now());
        }
    }
    if theirs.iter().all(|statement| statement.watched.ended) {
        return;
    }
    let Ok(Some(uptime)) = link.known_uptime().await else { return };
    for statement in theirs {
        let ended_for = statement.since.elapsed();
        statement.watched.ended |= statement.session.is_older(ended_for, uptime);
    }
}

/// Which of these sessions there are, and whether others are shown at all: one is, or the account has
/// PROCESS by itself. One that has it by a role is told by the former alone.
fn question(ids: &str) -> String {
    format!(
        "SELECT ID, COMMAND FROM information_schema.PROCESSLIST WHERE ID IN ({ids}) UNION ALL \
         (SELECT 0, '' FROM information_schema.PROCESSLIST \
         WHERE USER <> SUBSTRING_INDEX(USER(), '@', 1) LIMIT 1) UNION ALL \
         (SELECT 0, '' FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS' \
         AND GRANTEE = CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', \
         SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') LIMIT 1)"
    )
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
    /// Finds the server again where its socket does not say, by the only address that it has.
    async fn locate(&mut self) {
        self.located = true;
        if self.session.remote.is_none() {
            self.session.remote = only_address(&self.server).await;
        }
    }
}

impl LostSession {
    /// Whether it was there before a server that is up for so long, at this time after its
    /// connection has ended. In doubt it was not.
    fn is_older(&self, ended_for: Duration, uptime: Duration) -> bool {
        let age = self.age.saturating_add(ended_for);
        let clocks = age.checked_div(CLOCKS_APART).unwrap_or_default();
        let up_at_most = uptime.saturating_add(UPTIME_ERROR);
        age > up_at_most.saturating_add(clocks)
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
    fn new(now: Instant) -> Self {
        Self { heard: now, idle: false, ended: false }
    }

    /// The server has been asked.
    fn note(&mut self, connection_id: u32, shown: &Shown, now: Instant) {
        match shown.sessions.get(&u64::from(connection_id)) {
            // It may not have read the statement yet: the next time it has, or its end.
            Some(true) if !self.idle => {
                self.idle = true;
                self.heard = now;
            }
            Some(true) => self.ended = true,
            Some(false) => {
                self.idle = false;
                self.heard = now;
            }
            None => self.ended = shown.others,
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
mod tests {
    use super::*;

    fn shown(sessions: &[(u64, bool)], others: bool) -> Shown {
        Shown { sessions: sessions.iter().copied().collect(), others }
    }

    #[tokio::test]
    async fn a_server_of_one_address_is_found_without_its_socket_and_one_of_several_is_not() {
        let there = Remote::Network("127.0.0.1:3306".parse().unwrap());
        assert_eq!(only_address("127.0.0.1:3306").await, Some(there));
        let there = Remote::Unix("unix:/run/mysql.sock".to_owned());
        assert_eq!(only_address("unix:/run/mysql.sock").await, Some(there));
        assert_eq!(the_only([1, 2].into_iter()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_that_the_server_shows_keeps_its_place_until_it_does_not() {
        let since = Instant::now();
        let mut watched = Watched::new(since);
        for _ in 0..50 {
            tokio::time::advance(Duration::from_secs(60)).await;
            watched.note(7, &shown(&[(7, false)], true), Instant::now());
            assert_eq!(watched.fate(since, Instant::now()), None);
        }
        watched.note(7, &shown(&[(8, false)], true), Instant::now());
        assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Ended));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_shown_its_own_sessions_only_knows_nothing_of_others() {
        let since = Instant::now();
        let mut watched = Watched::new(since);
        watched.note(7, &shown(&[], false), Instant::now());
        tokio::time::advance(UNHEARD_MAX - Duration::from_millis(1)).await;
        assert_eq!(watched.fate(since, Instant::now()), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Unknown));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_idle_twice_has_ended_its_statement() {
        let since = Instant::now();
        let mut watched = Watched::new(since);
        let now = Instant::now();
        watched.note(7, &shown(&[(7, true)], true), now);
        assert_eq!(watched.fate(since, now), None, "it may not have begun");
        watched.note(7, &shown(&[(7, false)], true), now);
        watched.note(7, &shown(&[(7, true)], true), now);
        assert_eq!(watched.fate(since, now), None);
        watched.note(7, &shown(&[(7, true)], true), now);
        assert_eq!(watched.fate(since, now), Some(Fate::Ended));
    }

    /// What a server showed that had been started since was another's session with the same id: its
    /// place was taken for as long as that one stayed.
    #[test]
    fn a_session_older_than_its_server_has_ended_and_in_doubt_it_has_not() {
        const DAY_S: u64 = 86_400;
        let is_older = |age_ms, ended_for_s, uptime_s| {
            let age = Duration::from_millis(age_ms);
            let session = LostSession { remote: None, connection_id: 7, age };
            session.is_older(Duration::from_secs(ended_for_s), Duration::from_secs(uptime_s))
        };
        assert!(is_older(5_900, 3, 7), "it was started since");
        assert!(!is_older(5_900, 3, 8), "a second is lost in rounding");
        assert!(!is_older(5_900, 3, 600));
        assert!(!is_older(0, 0, 0), "nobody had logged in");
        assert!(is_older(0, 3, 1), "it was started behind the end of the connection");
        let of_ten_days = 10 * DAY_S * 1_000;
        assert!(!is_older(of_ten_days, 0, 10 * DAY_S - 60), "the server's clock was set back");
        assert!(is_older(of_ten_days, 0, 9 * DAY_S));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_for_ever_is_given_up_after_an_hour() {
        let since = Instant::now();
        let mut watched = Watched::new(since);
        tokio::time::advance(KEPT_MAX).await;
        watched.note(7, &shown(&[(7, false)], true), Instant::now());
        assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Expired));
    }
}
