//! The errors that Sluice makes itself, apart from refusals: each says `[sluice]`, so that it can be told
//! from the server's.

use std::io;
use std::time::Duration;

use policy::ClusterPolicy;
use session::Answer;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use wire::packet::encode_err_no_sqlstate;

use super::Shared;
use crate::socket::Socket;
use crate::telemetry::BackendErrorKind;

/// `ER_SERVER_SHUTDOWN`: clients take it as the loss of the connection, which it is.
const ER_SERVER_SHUTDOWN: u16 = 1053;
/// `ER_QUERY_INTERRUPTED`.
const ER_QUERY_INTERRUPTED: u16 = 1317;
/// `ER_CLIENT_INTERACTION_TIMEOUT`: the server ended an idle session.
const ER_CLIENT_INTERACTION_TIMEOUT: u16 = 4031;

/// A peer that does not answer keepalive probes for this long and three probes more is gone: a client
/// whose machine died must not hold a place for hours.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
/// Between two keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Why there is no backend connection.
#[derive(Debug)]
pub(crate) enum ConnectFailure {
    TimedOut(Duration),
    Failed(io::Error),
}

/// Connects to the cluster's primary for this client.
///
/// # Cancellation
/// Safe: the socket is closed.
pub(crate) async fn connect(
    policy: &ClusterPolicy,
    client: &Socket,
) -> Result<Socket, ConnectFailure> {
    let connecting = TcpStream::connect(&*policy.primary);
    let backend = match tokio::time::timeout(policy.connect_timeout, connecting).await {
        Ok(Ok(backend)) => Socket::Tcp(backend),
        Ok(Err(error)) => return Err(ConnectFailure::Failed(error)),
        Err(_) => return Err(ConnectFailure::TimedOut(policy.connect_timeout)),
    };
    for socket in [client, &backend] {
        if let Err(error) = tune(socket) {
            // Only what the options are for is lost.
            tracing::debug!(%error, "socket options were not set");
        }
    }
    Ok(backend)
}

fn tune(socket: &Socket) -> io::Result<()> {
    let Socket::Tcp(socket) = socket else { return Ok(()) };
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_TIME).with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Tells a client that there is no server, in the form that a server's own first packet has.
pub(crate) async fn turn_away(shared: &Shared, mut client: Socket, failure: ConnectFailure) {
    use tokio::io::AsyncWriteExt;

    let (kind, why) = match &failure {
        ConnectFailure::TimedOut(after) => {
            (BackendErrorKind::ConnectTimeout, format!("no answer within {after:?}"))
        }
        ConnectFailure::Failed(error) => (BackendErrorKind::Connect, error.to_string()),
    };
    let cluster = &shared.cluster.name;
    shared.telemetry.backend_error(cluster, kind);
    tracing::warn!(%cluster, %why, "cannot connect to the primary");
    let message =
        format!("[sluice] cannot connect to the MySQL server of cluster {cluster}: {why}");
    let mut packet = Vec::new();
    encode_err_no_sqlstate(&mut packet, 0, ER_SERVER_SHUTDOWN, message.as_bytes());
    // The client may have left already.
    drop(client.write_all(&packet).await);
    drop(client.shutdown().await);
}

/// The drain's time is over.
pub(crate) fn shutting_down() -> Answer {
    Answer {
        errno: ER_SERVER_SHUTDOWN,
        sqlstate: *b"08S01",
        message: b"[sluice] shutdown in progress [executed=unknown]".to_vec(),
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
