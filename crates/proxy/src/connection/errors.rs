//! The errors that Sluice makes itself, apart from refusals: each says `[sluice`, so that it can be
//! told from the server's.

use std::io;
use std::time::Duration;

use session::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::packet::encode_err_no_sqlstate;
use wire::proxy_protocol::HeaderError;

use super::Shared;
use crate::link::unreached;
use crate::socket::{Peer, Socket};
use crate::telemetry::{BackendErrorKind, ConnectionRefusal};

/// `ER_CON_COUNT_ERROR`.
const ER_CON_COUNT_ERROR: u16 = 1040;
/// `ER_HANDSHAKE_ERROR`.
const ER_HANDSHAKE_ERROR: u16 = 1043;
/// `ER_SERVER_SHUTDOWN`: clients take it as the loss of the connection, which it is.
const ER_SERVER_SHUTDOWN: u16 = 1053;
/// `ER_NET_READ_INTERRUPTED`.
const ER_NET_READ_INTERRUPTED: u16 = 1159;
/// `ER_QUERY_INTERRUPTED`.
const ER_QUERY_INTERRUPTED: u16 = 1317;
/// `ER_CLIENT_INTERACTION_TIMEOUT`: the server ended an idle session.
const ER_CLIENT_INTERACTION_TIMEOUT: u16 = 4031;

/// Why there is no backend connection.
#[derive(Debug)]
pub(crate) enum ConnectFailure {
    TimedOut(Duration),
    Failed(io::Error),
}

impl ConnectFailure {
    fn kind(&self) -> BackendErrorKind {
        match self {
            Self::TimedOut(_) => BackendErrorKind::ConnectTimeout,
            Self::Failed(_) => BackendErrorKind::Connect,
        }
    }

    pub(super) fn why(&self) -> String {
        match self {
            Self::TimedOut(after) => format!("no answer within {after:?}"),
            Self::Failed(error) => error.to_string(),
        }
    }

    /// The same for the operator, who may know where the server is.
    fn why_at(&self, server: &str) -> String {
        match self {
            Self::TimedOut(_) => format!("{server}: {}", self.why()),
            Self::Failed(error) => unreached::why(error, server),
        }
    }
}

/// Why a trusted proxy's connection is not served.
pub(super) enum ProxyFault {
    /// It closed without a byte: a health check.
    Nothing,
    /// It did not send its header in time.
    TimedOut(Duration),
    /// It closed within its header.
    CutShort,
    /// It sent something else.
    Header(HeaderError),
}

/// Tells a client that there is no server.
pub(super) async fn turn_away(shared: &Shared, client: Socket, failure: &ConnectFailure) {
    let cluster = &shared.cluster.name;
    shared.telemetry.backend_error(cluster, failure.kind());
    let why = failure.why_at(&shared.cluster.policy().primary);
    let now = shared.cluster.now();
    let told = shared.cluster.turned_away.unreached.lock().again(now);
    if let Some(untold) = told {
        tracing::warn!(%cluster, why, untold, "cannot connect to the primary");
    }
    let mut packet = Vec::new();
    encode_connect_failure(&mut packet, cluster, failure);
    say_and_close(client, &packet).await;
}

/// There is no server, in the form that a server's own first packet has.
pub(super) fn encode_connect_failure(out: &mut Vec<u8>, cluster: &str, failure: &ConnectFailure) {
    let why = failure.why();
    let message =
        format!("[sluice] cannot connect to the MySQL server of cluster {cluster}: {why}");
    encode_err_no_sqlstate(out, 0, ER_SERVER_SHUTDOWN, message.as_bytes());
}

/// Tells a client that there are `max` others, in the form that a server's own first packet has.
pub(super) async fn turn_away_full(shared: &Shared, client: Socket, peer: Peer, max: u32) {
    let cluster = &shared.cluster.name;
    shared.telemetry.connection_refused(cluster, ConnectionRefusal::MaxConnections);
    let told = shared.cluster.turned_away.full.lock().again(shared.cluster.now());
    if let Some(untold) = told {
        tracing::warn!(%cluster, %peer, max, untold, "refused: there are max_connections clients");
    }
    let message = format!("Too many connections [sluice cluster={cluster} max_connections={max}]");
    let mut packet = Vec::new();
    encode_err_no_sqlstate(&mut packet, 0, ER_CON_COUNT_ERROR, message.as_bytes());
    say_and_close(client, &packet).await;
}

/// Tells a client whose proxy did not say who it is.
pub(super) async fn turn_away_proxy(
    shared: &Shared,
    client: Socket,
    peer: Peer,
    fault: &ProxyFault,
) {
    let why = match fault {
        ProxyFault::Nothing => return,
        ProxyFault::TimedOut(after) => format!("no PROXY header within {after:?}"),
        ProxyFault::CutShort => "the PROXY header is cut short".to_owned(),
        ProxyFault::Header(error) => error.to_string(),
    };
    let cluster = &shared.cluster.name;
    shared.telemetry.connection_refused(cluster, ConnectionRefusal::ProxyProtocol);
    let now = shared.cluster.now();
    let told = shared.cluster.turned_away.no_header.lock().again(now);
    if let Some(untold) = told {
        tracing::warn!(
            %cluster, %peer, %why, untold,
            "refused: proxy_protocol.from names this address"
        );
    }
    let message = format!("[sluice] {why}; proxy_protocol.from names {peer}");
    let mut packet = Vec::new();
    encode_err_no_sqlstate(&mut packet, 0, ER_HANDSHAKE_ERROR, message.as_bytes());
    say_and_close(client, &packet).await;
}

/// The client does not go on with its login.
pub(super) fn login_timeout(after: Duration) -> Answer {
    let message = format!("Bad handshake [sluice] nothing received for {after:?} (login_timeout)");
    Answer { errno: ER_HANDSHAKE_ERROR, sqlstate: *b"08S01", message: message.into_bytes() }
}

/// The server has greeted, and has not answered Sluice's own question of the login.
pub(super) fn no_key(cluster: &str, after: Duration) -> Answer {
    let message = format!(
        "[sluice] the MySQL server of cluster {cluster} did not send its key for the password \
         within {after:?} (connect_timeout)"
    );
    Answer { errno: ER_SERVER_SHUTDOWN, sqlstate: *b"08S01", message: message.into_bytes() }
}

/// Bytes of a client that is turned away which are read and dropped.
pub(super) const UNREAD_LEN_MAX: usize = 64 * 1024;

/// The client may have left already, or have sent what nobody read: closing over unread bytes would
/// reset the connection, and the error might be lost with it.
async fn say_and_close(mut client: Socket, packet: &[u8]) {
    let say = async {
        client.write_all(packet).await?;
        client.shutdown().await?;
        let unread_len_max = u64::try_from(UNREAD_LEN_MAX).unwrap_or(u64::MAX);
        tokio::io::copy(&mut client.take(unread_len_max), &mut tokio::io::sink()).await
    };
    drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, say).await);
}

/// A drain ends an idle session: what its client may have on its way reaches nobody.
pub(crate) fn idle_shutdown() -> Answer {
    Answer {
        errno: ER_SERVER_SHUTDOWN,
        sqlstate: *b"08S01",
        message: b"[sluice] shutdown in progress [executed=no]".to_vec(),
    }
}

/// The drain's time is over, and something is under way.
pub(crate) fn shutting_down() -> Answer {
    Answer {
        errno: ER_SERVER_SHUTDOWN,
        sqlstate: *b"08S01",
        message: b"[sluice] shutdown in progress [executed=unknown]".to_vec(),
    }
}

/// Sluice has contradicted itself about the client's statement.
pub(crate) fn internal_fault() -> Answer {
    Answer {
        errno: ER_SERVER_SHUTDOWN,
        sqlstate: *b"08S01",
        message: b"[sluice] internal fault; the log of Sluice tells [executed=no]".to_vec(),
    }
}

/// The client has not gone on with its statement.
pub(crate) fn read_interrupted() -> Answer {
    Answer {
        errno: ER_NET_READ_INTERRUPTED,
        sqlstate: *b"08S01",
        message: b"Got timeout reading communication packets [sluice executed=no]".to_vec(),
    }
}

/// A queued statement was killed.
pub(crate) fn interrupted() -> Answer {
    Answer {
        errno: ER_QUERY_INTERRUPTED,
        sqlstate: *b"70100",
        message: b"Query execution was interrupted [sluice executed=no]".to_vec(),
    }
}

/// The server closed while the statement was queued; it said nothing about why.
pub(crate) fn server_left() -> Answer {
    Answer {
        errno: ER_CLIENT_INTERACTION_TIMEOUT,
        sqlstate: *b"HY000",
        message:
            b"The server ended the session while the statement was queued [sluice executed=no]"
                .to_vec(),
    }
}

/// For one small packet to a client that may have left.
pub(super) const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
