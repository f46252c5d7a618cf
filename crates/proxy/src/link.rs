//! Sluice's own connection to one server: kept open, opened again, and never waited for without a
//! limit.

mod account;
pub(crate) mod denial;
mod encryption;
mod retry;
mod session;
mod unanswered;
pub(crate) mod unreached;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, IoError, OptsBuilder, Row};
use policy::ServerAddress;
use tokio::time::Instant;

pub(crate) use self::account::{OwnLinks, ProbeAccount};
use self::retry::Retry;
use self::session::{AUTOCOMMIT, Reads};
use self::unanswered::{Answered, Question, SESSIONS, Unanswered};
use crate::board::ProbeError;

/// Known values keep the client from asking the server for them.
const MAX_ALLOWED_PACKET: usize = 16 << 20;
const WAIT_TIMEOUT_S: usize = 28_800;

/// After this long without a word from the other side, the kernel asks whether it is there:
/// connections to machines that are gone are not kept for ever.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// How much longer than the server's `Uptime` a session may have been there: both are told in whole
/// seconds.
pub(crate) const UPTIME_ERROR: Duration = Duration::from_secs(1);

/// The server's id of a link's connection, as last logged in.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionId(Arc<AtomicU32>);

impl ConnectionId {
    /// None: it has never been connected.
    pub(crate) fn get(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    fn set(&self, id: u32) {
        self.0.store(id, Ordering::Relaxed);
    }
}

/// One connection to one server.
pub(crate) struct Link {
    /// `host:port` or `unix:/path`.
    server: String,
    /// Where it is, if that is not to be looked up.
    address: Option<SocketAddr>,
    account: ProbeAccount,
    /// For logging in, and for each query: a server that is stopped (SIGSTOP) accepts and says
    /// nothing.
    time_limit: Duration,
    conn: Option<Conn>,
    unanswered: Unanswered,
    connection_id: ConnectionId,
    noted_in: Option<Arc<OwnLinks>>,
    reads: Reads,
    retry: Retry,
    /// The account that the server has chosen, in quotes, once a right of it was missing.
    known_as: Option<String>,
    /// When the server of this connection was asked for its `Uptime`, and what it said.
    uptime: Option<(Instant, u64)>,
    remedy: Option<String>,
}

impl Link {
    /// A link to `server` that is not connected yet.
    pub(crate) fn new(server: &str, account: ProbeAccount, time_limit: Duration) -> Self {
        let server = server.to_owned();
        Self {
            server,
            address: None,
            account,
            time_limit,
            conn: None,
            unanswered: Unanswered::default(),
            connection_id: ConnectionId::default(),
            noted_in: None,
            reads: Reads::AsTheServerSays,
            retry: Retry::default(),
            known_as: None,
            uptime: None,
            remedy: None,
        }
    }

    /// The same by this address, whatever the server's name stands for now.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// The same, whose connections are known to be Sluice's own.
    pub(crate) fn noted_in(mut self, links: &Arc<OwnLinks>) -> Self {
        self.noted_in = Some(Arc::clone(links));
        self
    }

    /// The same, whose reads do not wait for what a member of a group has not applied yet.
    pub(crate) fn reading_at_once(mut self) -> Self {
        self.reads = Reads::AtOnce;
        self
    }

    /// Shows the server's id of the connection, also while a statement is under way on it.
    pub(crate) fn connection_id(&self) -> ConnectionId {
        self.connection_id.clone()
    }

    /// The first row of a query's answer.
    ///
    /// # Cancellation
    /// The connection is given up: it is closed when the server has answered.
    pub(crate) async fn first(&mut self, sql: &str) -> Result<Option<Row>, ProbeError> {
        let conn = self.take().await?;
        let (conn, answer) = self.ask(conn, sql, |conn, sql| conn.query_first(sql)).await?;
        self.settle(sql, conn, answer).await
    }

    /// All rows of a query's answer. For queries that give a few.
    ///
    /// # Cancellation
    /// As [`Link::first`].
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Vec<Row>, ProbeError> {
        let conn = self.take().await?;
        let (conn, answer) = self.ask(conn, sql, |conn, sql| conn.query(sql)).await?;
        self.settle(sql, conn, answer).await
    }

    /// For how many seconds of its clock the server has been up; None if it does not say.
    ///
    /// # Cancellation
    /// As [`Link::first`].
    pub(crate) async fn uptime_s(&mut self) -> Result<Option<u64>, ProbeError> {
        // The tables that say it are not the same in MySQL and MariaDB.
        let row = self.first("SHOW GLOBAL STATUS LIKE 'Uptime'").await?;
        Ok(row.and_then(|row| row.get_opt::<u64, _>(1)).and_then(Result::ok))
    }

    /// For how long the server has been up, a second less at most, by what it has said once on this
    /// connection: that ends with the server.
    ///
    /// # Cancellation
    /// As [`Link::first`].
    pub(crate) async fn known_uptime(&mut self) -> Result<Option<Duration>, ProbeError> {
        if self.conn.is_none() || self.uptime.is_none() {
            let asked = Instant::now();
            let uptime_s = self.uptime_s().await?;
            self.uptime = uptime_s.map(|uptime_s| (asked, uptime_s));
        }
        let now = |(asked, uptime_s): (Instant, u64)| {
            Duration::from_secs(uptime_s).saturating_add(asked.elapsed())
        };
        Ok(self.uptime.map(now))
    }

    /// Runs a statement and tells how many rows it changed.
    ///
    /// # Cancellation
    /// As [`Link::first`]; the statement may still take effect.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<u64, ProbeError> {
        let conn = self.take().await?;
        let (conn, answer) = self.ask(conn, sql, |conn, sql| conn.query_drop(sql)).await?;
        let changed = conn.affected_rows();
        self.settle(sql, conn, answer).await.map(|()| changed)
    }

    /// Says goodbye, so that the server counts no connection as broken.
    pub(crate) async fn close(&mut self) {
        if let Some(conn) = self.conn.take() {
            tokio::time::timeout(self.time_limit, conn.disconnect()).await.ok();
        }
    }

    /// The statement that gives the right which the last answer said was missing.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Asks on a connection of this link's; without an answer in time that is given up.
    async fn ask<T: Send + 'static>(
        &mut self,
        conn: Conn,
        sql: &str,
        question: Question<T>,
    ) -> Result<Answered<T>, ProbeError> {
        self.unanswered.ask(conn, sql, self.time_limit, question).await
    }

    /// The open connection, or a new one; after a failure not before its pause is over, and while
    /// others are left at their statements not before one of them has ended.
    async fn take(&mut self) -> Result<Conn, ProbeError> {
        if let Some(conn) = self.conn.take() {
            return Ok(conn);
        }
        if self.unanswered.is_to_be_asked_after() {
            self.forget_the_lost().await?;
        }
        self.unanswered.room(self.time_limit).await?;
        tokio::time::sleep_until(self.retry.not_before()).await;
        // Another login may be another account, and another server.
        self.known_as = None;
        self.uptime = None;
        let opened = self.open().await;
        match &opened {
            Ok(_) => self.retry.succeeded(),
            Err(_) => self.retry.failed(),
        }
        opened
    }

    async fn open(&mut self) -> Result<Conn, ProbeError> {
        let conn = self.login().await?;
        self.connection_id.set(conn.id());
        self.set_up(conn).await
    }

    /// Gives up the statements that the server is not at: their connections are lost. Sessions that it
    /// still has for those would stay for hours, and are ended.
    async fn forget_the_lost(&mut self) -> Result<(), ProbeError> {
        let conn = self.login().await?;
        let (mut conn, sessions) = self.ask(conn, SESSIONS, |conn, sql| conn.query(sql)).await?;
        let sessions = sessions.map_err(|error| probe_error(error, &self.server))?;
        for idle in self.unanswered.forget_the_lost(&sessions, &self.account.user).await {
            let kill = format!("KILL {idle}");
            // One that has left by itself is not there any more.
            (conn, _) = self.ask(conn, &kill, |conn, sql| conn.query_drop(sql)).await?;
        }
        tokio::time::timeout(self.time_limit, conn.disconnect()).await.ok();
        Ok(())
    }

    /// What a session begins with. Its own statement: the server may run another one first
    /// (`init_connect`), which may hang.
    async fn set_up(&mut self, conn: Conn) -> Result<Conn, ProbeError> {
        let settings = self.reads.settings();
        let (conn, answer) = self.ask(conn, &settings, |conn, sql| conn.query_drop(sql)).await?;
        let Err(error) = answer else { return Ok(conn) };
        tracing::debug!(server = self.server, %error, "sessions are as the server says");
        let (conn, answer) = self.ask(conn, AUTOCOMMIT, |conn, sql| conn.query_drop(sql)).await?;
        answer.map(|()| conn).map_err(|error| probe_error(error, &self.server))
    }

    async fn login(&self) -> Result<Conn, ProbeError> {
        let account = self.account.clone();
        // The file may be on a disk that does not answer.
        let reading = tokio::task::spawn_blocking(move || account.password());
        let login = async {
            let password = match reading.await {
                Ok(password) => {
                    password.map_err(|error| ProbeError::NoPassword(error.to_string()))?
                }
                Err(_) => return Err(ProbeError::Lost("Sluice is shutting down".into())),
            };
            let encryption = &self.account.encryption;
            // Nobody can listen to a socket of this machine, servers take it for secure as it is,
            // and the driver says that it encrypts but does not.
            let ssl = match ServerAddress::of(&self.server) {
                ServerAddress::Network(_) => encryption.options(&self.server, self.address),
                ServerAddress::Unix(_) => None,
            };
            let encrypted = self.options(password.as_deref()).ssl_opts(ssl);
            let conn = match Conn::new(encrypted).await {
                Err(error) if encryption.may_do_without(&self.server, self.address, &error) => {
                    Conn::new(self.options(password.as_deref())).await
                }
                conn => conn,
            };
            conn.map_err(|error| probe_error(error, &self.server))
        };
        let login = tokio::time::timeout(self.time_limit, login).await;
        let login = login.unwrap_or(Err(ProbeError::TimedOut));
        let conn = login.inspect_err(|_| self.account.tries_tls_at(&self.server))?;
        if let Some(links) = &self.noted_in {
            links.note(conn.id());
        }
        Ok(conn)
    }

    fn options(&self, password: Option<&str>) -> OptsBuilder {
        let server = match ServerAddress::of(&self.server) {
            ServerAddress::Network(address) => {
                let (host, port) = host_and_port(address);
                let named = OptsBuilder::default().ip_or_hostname(host);
                match self.address {
                    Some(at) => named.tcp_port(at.port()).resolved_ips(Some([at.ip()])),
                    None => named.tcp_port(port),
                }
            }
            // Configuration files are text, so the path is.
            ServerAddress::Unix(path) => {
                OptsBuilder::default().socket(path.to_str().map(str::to_owned))
            }
        };
        server
            .user(Some(&self.account.user))
            .pass(password)
            .prefer_socket(false)
            .tcp_keepalive(Some(TCP_KEEPALIVE))
            .max_allowed_packet(Some(MAX_ALLOWED_PACKET))
            .wait_timeout(Some(WAIT_TIMEOUT_S))
            .connect_attribute("program_name", "sluice")
    }

    /// Keeps the connection if it can be used again. A right that is missing is named with the
    /// statement that gives it.
    async fn settle<T>(
        &mut self,
        sql: &str,
        mut conn: Conn,
        answer: Result<T, Error>,
    ) -> Result<T, ProbeError> {
        self.remedy = None;
        let mut answer = answer.map_err(|error| probe_error(error, &self.server));
        match &mut answer {
            Ok(_) => {}
            Err(ProbeError::Refused { code, message }) => {
                if denial::is_denial(*code) && self.known_as.is_none() {
                    // Whoever does not answer this has still refused.
                    let Ok((same, account)) = self.account_at_server(conn).await else {
                        return answer;
                    };
                    conn = same;
                    self.known_as = account;
                }
                let remedy = |account: &String| denial::remedy(*code, message, sql, account);
                self.remedy = self.known_as.as_ref().and_then(remedy);
                if let Some(remedy) = &self.remedy {
                    *message = format!("{message}; to be run there: {remedy}");
                }
            }
            Err(
                ProbeError::TimedOut
                | ProbeError::Lost(_)
                | ProbeError::NoPassword(_)
                | ProbeError::Unencrypted(_)
                | ProbeError::Unusable(_),
            ) => {
                self.account.tries_tls_at(&self.server);
                return answer;
            }
        }
        self.conn = Some(conn);
        answer
    }

    /// Which account the server takes this connection for: that is decided by its address too.
    async fn account_at_server(
        &mut self,
        conn: Conn,
    ) -> Result<(Conn, Option<String>), ProbeError> {
        let question = "SELECT CURRENT_USER()";
        let (conn, answer) =
            self.ask(conn, question, |conn, sql| conn.query_first::<String, _>(sql)).await?;
        let account = answer.map_err(|error| probe_error(error, &self.server))?;
        Ok((conn, account.map(|account| denial::quoted_account(&account))))
    }
}

/// The parts of `host:port`. The configuration has checked it.
fn host_and_port(server: &str) -> (String, u16) {
    let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host.to_owned(), port.parse().unwrap_or(MYSQL_PORT))
}

/// The server's default.
const MYSQL_PORT: u16 = 3306;

/// The driver's words for a packet that is no answer to what was asked.
const OUT_OF_SYNC: &str = "Packets out of sync";

/// What the driver's error says of the server.
fn probe_error(error: Error, server: &str) -> ProbeError {
    match error {
        Error::Server(refused) => {
            ProbeError::Refused { code: refused.code, message: refused.message }
        }
        // A handshake that failed is a word from the server, and no certificate is invalid before
        // it has come.
        Error::Io(IoError::Tls(_)) | Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            ProbeError::Unencrypted(error.to_string())
        }
        Error::Io(IoError::Io(ref io)) if io.kind() == ErrorKind::InvalidData => {
            ProbeError::Unencrypted(error.to_string())
        }
        Error::Io(IoError::Io(error)) if error.to_string() == OUT_OF_SYNC => {
            ProbeError::Lost(unreached::goodbye(server))
        }
        Error::Io(IoError::Io(error)) => ProbeError::Lost(unreached::why(&error, server)),
        Error::Driver(DriverError::ConnectionClosed) => ProbeError::Lost(unreached::closed(server)),
        // MySQL asks for a plugin by chance where there is no such account, so that nobody can tell
        // the names that it has.
        Error::Driver(DriverError::UnknownAuthPlugin { name }) => ProbeError::Unusable(format!(
            "the login wants the authentication plugin {name}, which probes do not have, or there \
             is no account of `probe.user`'s name on {server}: it must be there, with \
             caching_sha2_password or mysql_native_password"
        )),
        Error::Driver(_) | Error::Other(_) | Error::Url(_) => ProbeError::Lost(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_of_an_ipv6_address_are_not_part_of_it() {
        assert_eq!(host_and_port("db-1:3316"), ("db-1".to_owned(), 3316));
        assert_eq!(host_and_port("[::1]:3306"), ("::1".to_owned(), 3306));
    }

    #[test]
    fn a_session_that_the_server_has_ended_is_no_fault_of_the_protocol() {
        let unasked = Error::Io(IoError::Io(std::io::Error::other(OUT_OF_SYNC)));
        let ProbeError::Lost(why) = probe_error(unasked, "db1:3306") else { panic!("not lost") };
        assert!(why.contains("db1:3306 had ended the session") && why.contains("4031"), "{why}");
    }

    #[test]
    fn a_plugin_that_nobody_has_may_mean_that_the_account_is_missing() {
        let name = "sha256_password".to_owned();
        let error = Error::Driver(DriverError::UnknownAuthPlugin { name });
        let error = probe_error(error, "db1:3306");
        assert!(
            error.sentence().contains("there is no account of `probe.user`'s name on db1:3306")
        );
        assert_eq!(error.contact(), crate::board::Contact::Reached);
    }
}
