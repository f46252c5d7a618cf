//! What the server is told about a statement that runs away.
//!
//! Before a KILL the server is asked what the session does. What commits is left alone, for as long
//! as it does, and so is DDL that the server does not show. Of a text of several statements, and of a
//! procedure, the server shows the one that runs. A session that does nothing has ended its statement,
//! whose answer is on its way, or not begun it: it is looked at again.
//!
//! The server may not be the one that the session is at, though it has the same address: a host that
//! lost its power says nothing of the end of its connections, and neither does one whose address has
//! gone over to another, or a forwarder that keeps old connections where they were. There the id is
//! somebody else's. So the own connection is looked after first ([`OwnSession`]).
//!
//! DDL, LOCK TABLES and their like commit what is open ahead of themselves. MariaDB says of that, where
//! it waits, only that it waits for the backup lock; a KILL there rolls back the transaction before it.
//!
//! A SLEEP or GET_LOCK that is ended is no error, and the procedure around it goes on: one that works
//! in small pieces with a pause behind each would be met in a pause time and again, and only be
//! quicker for it. So what has gone on behind its KILL is *chased*: looked at until it works, and
//! killed then. A pause that lasts is ended, for what comes behind it may work for long.

use std::fmt;
use std::time::Duration;

use mysql_async::Row;
use policy::{ClusterPolicy, is_killable};
use sql::{Class, ClassSet, LexMode, Scratch, Server, Whole, describe};
use tokio::time::Instant;

use crate::board::{Birth, IsAt, ProbeError, Sightings};
use crate::kill::{KillError, Killer};
use crate::link::{Link, UPTIME_ERROR};
use crate::probe::identify;
use crate::stream::Stream;

/// How long one chase is: one look behind the other, for what works for a millisecond is met by
/// nothing slower.
const CHASE: Duration = Duration::from_millis(300);

/// A pause in which it has been found for so long is ended.
const PAUSE: Duration = Duration::from_millis(150);

/// A session of Sluice's own at a server, whose statement is to be ended.
///
/// Its id means it at the server that gave it, and nobody else at a server that has been started
/// since or has taken over the address. Three things tell, and each of them is enough to let be:
///
/// - the kernel there does not know the connection: it is asked for it before the link is made, and
///   has answered by the time of the KILL;
/// - the server is up for less time than the session is;
/// - the link that is to kill has an id below the session's: servers count connections upwards, and
///   begin anew when they start. (Behind 2^32 connections they begin anew too; then nothing is
///   killed.)
///
/// None of them tells one server from another that has been up for longer, where something in between
/// keeps the connection. So it has to be known besides that it is the same one: by the [`Sightings`], or
/// because the server shows the session with the port that its connection has here. (MariaDB shows one in a
/// procedure by the host of its definer, without a port: that goes by the sightings.)
#[derive(Debug)]
pub(crate) struct OwnSession<'c> {
    /// Where it is.
    pub(crate) backend: &'c Stream,
    /// The server's id of it.
    pub(crate) connection_id: u32,
    /// When it came there.
    pub(crate) birth: &'c Birth,
}

impl OwnSession<'_> {
    /// Whether it may be another server's by what that says of itself: its `Uptime` in seconds, and the
    /// id of a connection that has just been made.
    fn may_be_elsewhere(&self, uptime_s: Option<u64>, newest_id: Option<u32>) -> bool {
        let is_up = uptime_s.map(Duration::from_secs).map(|up| up.saturating_add(UPTIME_ERROR));
        let age = self.birth.age(Instant::now());
        is_up.is_none_or(|up| up < age) || newest_id.is_none_or(|id| id <= self.connection_id)
    }
}

/// Whether a statement has gone on behind a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chase {
    Yes,
    No,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Works,
    /// In a SLEEP or GET_LOCK, which is all that a KILL would end.
    Pauses,
    Commits,
    /// Nothing.
    Ended,
}

/// What the server did about a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Yes,
    /// It commits.
    Commits,
    /// It has ended.
    Ended,
}

/// Why a statement was not killed.
#[derive(Debug)]
pub(crate) struct NotKilled {
    error: KillError,
    /// The KILL may have been sent.
    pub(crate) may_come: bool,
}

impl NotKilled {
    /// What helps, where the server's error does not say it.
    pub(crate) fn advice(&self) -> &'static str {
        match &self.error {
            KillError::NoAccount => "give the cluster a `probe`",
            // ER_KILL_DENIED_ERROR
            KillError::Failed(ProbeError::Refused { code: 1095, .. }) => {
                "GRANT CONNECTION_ADMIN ON *.* (MariaDB: CONNECTION ADMIN) to the probe's account, and \
                 in MySQL SYSTEM_USER too where the statement's account has it"
            }
            KillError::OtherServer => "what ran there has ended with its server, or is at another",
            KillError::MayBeOther => {
                "it is tried again every 5 s; what Sluice reaches through a forwarder is certain if the \
                 same server was found before and behind it (docs/RUNAWAY.md)"
            }
            KillError::TimedOut | KillError::Failed(_) if self.may_come => {
                "whether the KILL comes yet is not known: the session is closed when its statement ends"
            }
            KillError::TimedOut | KillError::Failed(_) => "it is tried again every 5 s",
        }
    }
}

impl fmt::Display for NotKilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Killer {
    /// Ends the statement of this class that the session `own` runs, unless it commits. The caller lets
    /// nothing follow it meanwhile.
    ///
    /// # Errors
    /// When the server has not said that it did.
    ///
    /// # Cancellation
    /// The KILL may or may not have been sent.
    pub(crate) async fn kill_statement(
        &self,
        policy: &ClusterPolicy,
        own: OwnSession<'_>,
        class: Class,
        chase: Chase,
    ) -> Result<Killed, NotKilled> {
        let mut sent = false;
        let _looked_for = own.backend.look_for_peer();
        let killed = self.killing(policy, own.backend.remote(), async |link| {
            let mut target =
                Target { link, own, sightings: &self.sightings, class, sent: &mut sent };
            target.is_there().await?;
            // As long as it has a place for that.
            let chasing = match chase {
                Chase::Yes => self.chasing(),
                Chase::No => None,
            };
            if chasing.is_some() { target.chase().await } else { target.meet().await }
        });
        let killed = killed.await;
        killed.map_err(|error| {
            let refused = matches!(error, KillError::Failed(ProbeError::Refused { .. }));
            NotKilled { may_come: sent && !refused, error }
        })
    }
}

/// A session whose statement is to be ended, and the connection over which it is.
struct Target<'l> {
    link: &'l mut Link,
    own: OwnSession<'l>,
    sightings: &'l Sightings,
    class: Class,
    /// A KILL has been sent, and not been answered.
    sent: &'l mut bool,
}

impl Target<'_> {
    /// Makes sure that the server is the one which the session is at.
    async fn is_there(&mut self) -> Result<(), KillError> {
        let uptime_s = self.link.uptime_s().await.map_err(KillError::Failed)?;
        let newest_id = self.link.connection_id().get();
        if self.own.may_be_elsewhere(uptime_s, newest_id) {
            return Err(KillError::OtherServer);
        }
        let found = identify(self.link).await.map_err(KillError::Failed)?;
        let is_at = found.map_or(IsAt::Unknown, |found| {
            self.sightings.is_at(self.own.birth, &found.name, Instant::now())
        });
        match is_at {
            IsAt::Yes => Ok(()),
            IsAt::No => Err(KillError::OtherServer),
            IsAt::Unknown if self.is_shown_as_it_is_here().await? => Ok(()),
            IsAt::Unknown => Err(KillError::MayBeOther),
        }
    }

    /// Whether nothing is in between, and the server shows this very connection. Of what it does not
    /// show nobody knows.
    async fn is_shown_as_it_is_here(&mut self) -> Result<bool, KillError> {
        let look = format!(
            "SELECT ID = CONNECTION_ID(), HOST FROM information_schema.PROCESSLIST \
             WHERE ID IN (CONNECTION_ID(), {})",
            self.own.connection_id
        );
        let (mut own, mut theirs) = (None, None);
        for row in self.link.rows(&look).await.map_err(KillError::Failed)? {
            let host = row.get::<Option<String>, _>(1).flatten();
            if row.get::<bool, _>(0) == Some(true) { own = host } else { theirs = host }
        }
        let (Some(own), Some(theirs)) = (own, theirs) else { return Ok(false) };
        Ok(match self.own.backend.local_port() {
            Some(port) => is_port_of(port, &theirs, &own),
            // Both have come through a socket of the machine.
            None => theirs == own && !own.contains(':') && self.own.backend.is_at_its_path().await,
        })
    }

    /// Looks at it once, and kills it as it is.
    async fn meet(&mut self) -> Result<Killed, KillError> {
        match self.look().await? {
            Seen::Works | Seen::Pauses => self.kill().await.map(|()| Killed::Yes),
            Seen::Commits => Ok(Killed::Commits),
            Seen::Ended => Ok(Killed::Ended),
        }
    }

    /// Looks at it until it works, and kills it then.
    async fn chase(&mut self) -> Result<Killed, KillError> {
        let began = Instant::now();
        let mut pauses_since = None;
        let mut last = Killed::Yes;
        while began.elapsed() < CHASE {
            match self.look().await? {
                Seen::Works => return self.kill().await.map(|()| Killed::Yes),
                Seen::Ended => return Ok(Killed::Ended),
                Seen::Commits => (last, pauses_since) = (Killed::Commits, None),
                Seen::Pauses => {
                    last = Killed::Yes;
                    if pauses_since.get_or_insert_with(Instant::now).elapsed() >= PAUSE {
                        self.kill().await?;
                        pauses_since = None;
                    }
                }
            }
        }
        Ok(last)
    }

    async fn look(&mut self) -> Result<Seen, KillError> {
        let look = format!(
            "SELECT COMMAND, STATE, LEFT(INFO, {INFO_LEN}) FROM \
             information_schema.PROCESSLIST WHERE ID = {}",
            self.own.connection_id
        );
        let row = self.link.first(&look).await.map_err(KillError::Failed)?;
        Ok(look_at(row.as_ref(), self.class))
    }

    async fn kill(&mut self) -> Result<(), KillError> {
        if self.own.backend.is_over().await {
            return Err(KillError::OtherServer);
        }
        *self.sent = true;
        let kill = format!("KILL QUERY {}", self.own.connection_id);
        self.link.run(&kill).await.map_err(KillError::Failed)?;
        *self.sent = false;
        Ok(())
    }
}

/// Whether the `HOST` of a session is this port of the machine that `own`, the `HOST` of another one, is of.
fn is_port_of(port: u16, theirs: &str, own: &str) -> bool {
    let (Some((machine, theirs)), Some((here, _))) =
        (theirs.rsplit_once(':'), own.rsplit_once(':'))
    else {
        return false;
    };
    machine == here && theirs.parse() == Ok(port)
}

/// What the server shows of a session, and what that means for a KILL.
fn look_at(row: Option<&Row>, class: Class) -> Seen {
    let shown = |at: usize| row.and_then(|row| row.get::<Option<Vec<u8>>, _>(at)).flatten();
    let (command, state, info) = (shown(0), shown(1), shown(2));
    let state = state.unwrap_or_default().to_ascii_lowercase();
    seen(command.as_deref(), &state, info.as_deref(), class)
}

fn seen(command: Option<&[u8]>, state: &[u8], info: Option<&[u8]>, class: Class) -> Seen {
    if command == Some(b"Sleep") {
        return Seen::Ended;
    }
    let is_in_state = |word: &&[u8]| state.windows(word.len()).any(|part| part == *word);
    let commits = COMMITS.iter().any(is_in_state)
        || info.is_some_and(ends_transaction)
        || (state == BACKUP_LOCK && info.is_none_or(commits_ahead));
    // An account without PROCESS is shown nothing.
    let may_commit = command.is_none() && may_commit_unseen(class);
    if commits || may_commit {
        Seen::Commits
    } else if PAUSES.contains(&state) {
        Seen::Pauses
    } else {
        Seen::Works
    }
}

/// Whether a statement of which the server shows nothing may have got to a commit of its own.
fn may_commit_unseen(class: Class) -> bool {
    match class {
        Class::Ddl | Class::Call | Class::Admin | Class::Unknown => true,
        Class::Read
        | Class::LockingRead
        | Class::Write
        | Class::Load
        | Class::Transaction
        | Class::Session => false,
    }
}

/// Whether what a session runs may be what ends a transaction: COMMIT, XA COMMIT, SET autocommit, in
/// whatever comments.
fn ends_transaction(info: &[u8]) -> bool {
    let (class, classes) = classes_of(info);
    !is_killable(class) || classes.contains(Class::Transaction)
}

/// Whether it may commit what is open ahead of itself.
fn commits_ahead(info: &[u8]) -> bool {
    let (_, classes) = classes_of(info);
    Class::ALL.into_iter().any(|class| classes.contains(class) && may_commit_unseen(class))
}

fn classes_of(info: &[u8]) -> (Class, ClassSet) {
    let mode = LexMode::unknown(Server::Unknown);
    let whole = if info.len() < INFO_LEN { Whole::Yes } else { Whole::Truncated };
    let mut scratch = Scratch::default();
    let statement = describe(info, mode, whole, &mut scratch);
    (statement.class, statement.classes)
}

/// In the `State` of what commits, in lower case: the second one is a commit that waits for a replica
/// to acknowledge it.
const COMMITS: [&[u8]; 2] = [b"commit", b"semi-sync"];

/// The `State` in which MariaDB waits for a global read lock or a BACKUP STAGE to end, in lower case.
const BACKUP_LOCK: &[u8] = b"waiting for backup lock";

/// The `State` of SLEEP and of GET_LOCK, in lower case, on both servers.
const PAUSES: [&[u8]; 2] = [b"user sleep", b"user lock"];

/// Of what a session runs: what it is stands at the beginning, behind comments.
const INFO_LEN: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Socket;

    #[test]
    fn what_ends_a_transaction_is_known_behind_comments_and_as_xa() {
        for ends in [
            "COMMIT",
            "commit and chain",
            "/* trace='x' */ COMMIT",
            "-- c\n COMMIT",
            "/*!50000 COMMIT */",
            "XA COMMIT 'x'",
            "ROLLBACK",
            "BEGIN",
            "SET autocommit = 1",
        ] {
            assert!(ends_transaction(ends.as_bytes()), "{ends}");
        }
        let long = format!("SELECT '{}", "COMMIT".repeat(1_000));
        let long = long.get(..INFO_LEN).unwrap();
        for works in ["SELECT 1", "UPDATE t SET a = 'COMMIT'", "ALTER TABLE t ADD b INT", "", long]
        {
            assert!(!ends_transaction(works.as_bytes()), "{works}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_elsewhere_if_the_server_is_younger_or_counts_anew_or_does_not_say() {
        let (socket, _) = tokio::net::UnixStream::pair().unwrap();
        let backend = Stream::new(Socket::Unix(socket));
        let answered = Instant::now();
        tokio::time::advance(Duration::from_millis(8_900)).await;
        let birth = Birth { address: "db:3306".into(), connected: answered, answered };
        let own = OwnSession { backend: &backend, connection_id: 70, birth: &birth };
        assert!(!own.may_be_elsewhere(Some(600), Some(71)));
        assert!(!own.may_be_elsewhere(Some(8), Some(71)), "a second is lost in rounding");
        assert!(own.may_be_elsewhere(Some(7), Some(71)), "it was started since");
        assert!(own.may_be_elsewhere(Some(600), Some(70)), "it has given that id just now");
        assert!(own.may_be_elsewhere(Some(600), Some(12)), "it has begun anew");
        assert!(own.may_be_elsewhere(None, Some(71)));
        assert!(own.may_be_elsewhere(Some(600), None));
    }

    #[test]
    fn a_session_is_known_by_the_port_that_it_has_here_and_by_no_other_of_the_machine() {
        assert!(is_port_of(4_711, "10.0.0.7:4711", "10.0.0.7:5000"));
        assert!(is_port_of(4_711, "::1:4711", "::1:5000"));
        assert!(!is_port_of(4_711, "10.0.0.7:4712", "10.0.0.7:5000"), "a forwarder's");
        assert!(!is_port_of(4_711, "10.0.0.8:4711", "10.0.0.7:5000"), "another machine's");
        assert!(!is_port_of(4_711, "localhost", "localhost"));
    }

    #[test]
    fn what_is_not_shown_and_may_commit_is_left_alone() {
        for class in [Class::Ddl, Class::Call, Class::Admin, Class::Unknown] {
            assert_eq!(look_at(None, class), Seen::Commits);
        }
        assert_eq!(look_at(None, Class::Read), Seen::Works);
    }

    #[test]
    fn what_pauses_is_told_from_what_works_and_from_what_commits() {
        let query = Some(b"Query".as_slice());
        let of = |state: &str, info: &str| {
            seen(query, state.as_bytes(), Some(info.as_bytes()), Class::Call)
        };
        assert_eq!(of("user sleep", "DO SLEEP(1)"), Seen::Pauses);
        assert_eq!(of("user lock", "DO GET_LOCK('a', 9)"), Seen::Pauses);
        assert_eq!(of("updating", "UPDATE t SET a = 1"), Seen::Works);
        assert_eq!(of("waiting for handler commit", "UPDATE t SET a = 1"), Seen::Commits);
        assert_eq!(of("starting", "COMMIT"), Seen::Commits);
        let of_replica = "waiting for semi-sync ack from replica";
        assert_eq!(of(of_replica, "UPDATE t SET a = 1"), Seen::Commits);
        let locked = "waiting for backup lock";
        for ahead in ["ALTER TABLE t ADD b INT", "LOCK TABLES t READ", "FLUSH STATUS", "?"] {
            assert_eq!(of(locked, ahead), Seen::Commits, "{ahead} commits what is open");
            assert_eq!(of("", ahead), Seen::Works, "{ahead}");
        }
        assert_eq!(of(locked, "UPDATE t SET a = 1"), Seen::Works);
        assert_eq!(seen(Some(b"Sleep"), b"", None, Class::Call), Seen::Ended);
    }
}
