//! From an accepted socket to a session: who the client is, whether there is a place for it, its
//! connection to the server, and the limits on silence until it has logged in.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use policy::{ClusterPolicy, Keepalive, ProxyProtocol, SendProxy, ServerAddress};
use session::{Answer, Move, Reads, Session, Side};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use wire::frame::HEADER_LEN;
use wire::packet::ErrPacket;
use wire::proxy_protocol::{self, Decoded, Proxied};

use super::errors::{self, ConnectFailure, LAST_WORDS_TIMEOUT, ProxyFault};
use super::{Connection, Ended, Shared};
use crate::board::Contact;
use crate::printable::Printable;
use crate::registry::{Inbox, Registration};
use crate::socket::{Peer, Socket};
use crate::telemetry::{BackendErrorKind, ConnectionRefusal};
use crate::workers::Affinity;

/// A client that has been accepted and entered in the registry.
pub(crate) struct Arrival {
    pub(crate) shared: Shared,
    pub(crate) affinity: Affinity,
    pub(crate) client: Socket,
    pub(crate) peer: Peer,
    pub(crate) registration: Registration,
    pub(crate) control: Inbox,
}

/// Both sockets of a session that can begin.
pub(super) struct Joined {
    pub(super) client: Socket,
    pub(super) backend: Socket,
    /// Who the client is, also behind a proxy.
    pub(super) peer: Peer,
    pub(super) deadlines: LoginDeadlines,
    /// When the server was connected to.
    pub(super) connected: Instant,
}

/// Finds out who the client is, takes a place for it and connects to the server. `None`: it was
/// turned away.
///
/// # Cancellation
/// Safe: the sockets are closed.
pub(super) async fn join(
    shared: &Shared,
    policy: &ClusterPolicy,
    mut client: Socket,
    peer: Peer,
    registration: &mut Registration,
) -> Option<Joined> {
    let network = &policy.network;
    tune(&client, &network.keepalive);
    let proxied = match receive_header(&network.proxy_protocol, &mut client, peer).await {
        Ok(proxied) => proxied,
        Err(fault) => {
            errors::turn_away_proxy(shared, client, peer, &fault).await;
            return None;
        }
    };
    let peer = match proxied {
        Proxied::Unknown => peer,
        Proxied::Network { source, .. } => Peer::at(source),
        Proxied::Unix => Peer::Local,
    };
    if !registration.take_seat(network.connections_max) {
        errors::turn_away_full(shared, client, peer, network.connections_max).await;
        return None;
    }
    let greeting_by = Instant::now() + policy.connect_timeout;
    let destination = match proxied {
        Proxied::Network { destination, .. } => Some(destination),
        Proxied::Unknown | Proxied::Unix => client.local_address(),
    };
    let began = Instant::now();
    let connecting = connect(policy, peer, destination);
    let connected = match tokio::time::timeout_at(greeting_by, connecting).await {
        Ok(connected) => connected.map_err(ConnectFailure::Failed),
        Err(_) => Err(ConnectFailure::TimedOut(policy.connect_timeout)),
    };
    match connected {
        Ok(backend) => {
            let deadlines =
                LoginDeadlines::new(greeting_by, policy.connect_timeout, network.login_timeout);
            Some(Joined { client, backend, peer, deadlines, connected: began })
        }
        Err(failure) => {
            let cluster = &shared.cluster;
            cluster.probes.primary_contact(Contact::Failed(failure.why()), cluster.now());
            errors::turn_away(shared, client, &failure).await;
            None
        }
    }
}

/// Connects to the cluster's primary for this client.
async fn connect(
    policy: &ClusterPolicy,
    peer: Peer,
    destination: Option<SocketAddr>,
) -> io::Result<Socket> {
    let mut backend = match ServerAddress::of(&policy.primary) {
        ServerAddress::Network(address) => Socket::Tcp(TcpStream::connect(address).await?),
        ServerAddress::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
    };
    tune(&backend, &policy.network.keepalive);
    match policy.network.proxy_protocol.send {
        SendProxy::None => {}
        SendProxy::V2 => {
            let proxied = match peer {
                Peer::Network(source) => destination.map(|destination| (source, destination)),
                Peer::Local => None,
            };
            let mut header = Vec::new();
            proxy_protocol::encode_v2(&mut header, proxied);
            backend.write_all(&header).await?;
        }
    }
    Ok(backend)
}

fn tune(socket: &Socket, keepalive: &Keepalive) {
    let Socket::Tcp(socket) = socket else { return };
    let tuned = || -> io::Result<()> {
        socket.set_nodelay(true)?;
        let socket = SockRef::from(socket);
        let options = TcpKeepalive::new()
            .with_time(keepalive.idle)
            .with_interval(keepalive.interval)
            .with_retries(keepalive.count);
        socket.set_tcp_keepalive(&options)?;
        match keepalive.user_timeout {
            Some(timeout) => socket.set_tcp_user_timeout(Some(timeout)),
            None => Ok(()),
        }
    };
    if let Err(error) = tuned() {
        // Only what the options are for is lost.
        tracing::debug!(%error, "socket options were not set");
    }
}

/// Reads the header that a trusted proxy must send, and not a byte of what follows it.
async fn receive_header(
    proxies: &ProxyProtocol,
    client: &mut Socket,
    peer: Peer,
) -> Result<Proxied, ProxyFault> {
    if !peer.ip().is_some_and(|address| proxies.is_from(address)) {
        return Ok(Proxied::Unknown);
    }
    match tokio::time::timeout(proxies.timeout, read_header(client)).await {
        Ok(header) => header,
        Err(_) => Err(ProxyFault::TimedOut(proxies.timeout)),
    }
}

async fn read_header(client: &mut Socket) -> Result<Proxied, ProxyFault> {
    // Its length is bounded by what `decode` asks for.
    let mut header = Vec::new();
    loop {
        let missing = match proxy_protocol::decode(&header) {
            Ok(Decoded::Done(proxied)) => return Ok(proxied),
            Ok(Decoded::Needs(missing)) => missing,
            Err(error) => return Err(ProxyFault::Header(error)),
        };
        let limit = u64::try_from(missing).unwrap_or(u64::MAX);
        match client.take(limit).read_buf(&mut header).await {
            Ok(0) | Err(_) if header.is_empty() => return Err(ProxyFault::Nothing),
            Ok(0) | Err(_) => return Err(ProxyFault::CutShort),
            Ok(_) => {}
        }
    }
}

/// How long is waited for whom during the login.
#[derive(Debug)]
pub(super) struct LoginDeadlines {
    greeting_by: Instant,
    connect_timeout: Duration,
    login_timeout: Duration,
    turn: Turn,
}

/// Whose packet is next, once the server has greeted.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The client is silent since then at the earliest.
    Client(Option<Instant>),
    /// It may ask a directory for as long as that takes, and is only hurried with an answer to a
    /// question of Sluice's own: since then.
    Server(Option<Instant>),
}

impl LoginDeadlines {
    pub(super) fn new(
        greeting_by: Instant,
        connect_timeout: Duration,
        login_timeout: Duration,
    ) -> Self {
        Self { greeting_by, connect_timeout, login_timeout, turn: Turn::Client(None) }
    }

    /// Of a COM_CHANGE_USER, which is on its way to the server.
    fn of_change(policy: &ClusterPolicy) -> Self {
        Self {
            // The server has greeted long ago.
            greeting_by: Instant::now(),
            connect_timeout: policy.connect_timeout,
            login_timeout: policy.network.login_timeout,
            turn: Turn::Server(None),
        }
    }

    /// Bytes have moved: the other side is next.
    pub(super) fn note(&mut self, moved: Move) {
        match moved {
            Move::Forward { from: Side::Client, .. } | Move::Replace { from: Side::Client, .. } => {
                self.turn = Turn::Server(None);
            }
            Move::Forward { from: Side::Backend, .. }
            | Move::Replace { from: Side::Backend, .. } => {
                self.turn = Turn::Client(None);
            }
            Move::Drop { .. } => {}
        }
    }

    /// Until when the next bytes must be there.
    fn limit(&mut self, session: &Session) -> Option<Instant> {
        if !session.is_greeted() {
            return Some(self.greeting_by);
        }
        let (since, limit) = match &mut self.turn {
            Turn::Server(_) if !session.awaits_key() => return None,
            Turn::Server(since) => (since, self.connect_timeout),
            Turn::Client(since) => (since, self.login_timeout),
        };
        Some(*since.get_or_insert_with(Instant::now) + limit)
    }
}

impl Connection {
    /// Reads for the login, within the limits of deadlines.
    pub(super) async fn read_for_login(
        &mut self,
        reads: Reads,
        deadlines: &mut LoginDeadlines,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        let limit = deadlines.limit(&self.session);
        let reading = async {
            if reads == Reads::Backend && self.session.is_greeted() {
                return Box::pin(self.read_server(control)).await;
            }
            self.read(reads, control).await
        };
        let told = match limit {
            None => reading.await?,
            Some(limit) => match tokio::time::timeout_at(limit, reading).await {
                Ok(told) => told?,
                Err(_) => return Err(self.login_timed_out(deadlines).await),
            },
        };
        match told {
            Some(told) => self.handle_control(told).await,
            None => Ok(()),
        }
    }

    /// Reads for a COM_CHANGE_USER: a login like the first, but nobody listens to a client that has
    /// closed its sending half only at the first one. To be boxed.
    pub(super) async fn read_for_change(
        &mut self,
        reads: Reads,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        if self.client_gone.is_some() {
            return Err(Ended::ByClient);
        }
        let deadlines = self.changing.take();
        let mut deadlines =
            deadlines.unwrap_or_else(|| Box::new(LoginDeadlines::of_change(&self.policy)));
        let limit = deadlines.limit(&self.session);
        let reading = self.read(reads, control);
        let told = match limit {
            None => reading.await?,
            Some(limit) => match tokio::time::timeout_at(limit, reading).await {
                Ok(told) => told?,
                Err(_) => return Err(self.login_timed_out(&deadlines).await),
            },
        };
        self.changing = Some(deadlines);
        match told {
            Some(told) => self.handle_control(told).await,
            None => Ok(()),
        }
    }

    /// Neither side is waited for any longer; the client is told, if it can be.
    async fn login_timed_out(&mut self, deadlines: &LoginDeadlines) -> Ended {
        let cluster = &self.shared.cluster.name;
        let telemetry = &self.shared.telemetry;
        let now = self.shared.cluster.now();
        let told = || self.shared.cluster.turned_away.silent.lock().again(now);
        let mut packet = Vec::new();
        if !self.session.is_greeted() {
            telemetry.backend_error(cluster, BackendErrorKind::ConnectTimeout);
            let failure = ConnectFailure::TimedOut(deadlines.connect_timeout);
            let probes = &self.shared.cluster.probes;
            probes.primary_contact(Contact::Failed(failure.why()), now);
            errors::encode_connect_failure(&mut packet, cluster, &failure);
        } else if self.session.awaits_key() {
            telemetry.backend_error(cluster, BackendErrorKind::ConnectTimeout);
            if let Some(untold) = told() {
                tracing::warn!(%cluster, untold, "the primary did not send its key for a password");
            }
            let answer = errors::no_key(cluster, deadlines.connect_timeout);
            packet.extend_from_slice(self.last_words_for_login(&answer));
        } else {
            telemetry.connection_refused(cluster, ConnectionRefusal::LoginTimeout);
            if let Some(untold) = told() {
                let peer = &self.peer;
                tracing::info!(%cluster, %peer, untold, "a client did not go on with its login");
            }
            let answer = errors::login_timeout(deadlines.login_timeout);
            packet.extend_from_slice(self.last_words_for_login(&answer));
        }
        // Never blocks for long: so little has been sent to this client that there is room for it.
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, self.client.write(&packet)).await);
        Ended::Told
    }

    /// The packet that tells the client so; empty where it would not be understood.
    fn last_words_for_login(&mut self, answer: &Answer) -> &[u8] {
        let is_told = self.session.handle_told_to_leave(self.client.bytes(), answer);
        if is_told { self.session.outbox() } else { &[] }
    }

    /// Notes a word of the primary when it comes: a login may end long behind it.
    pub(super) fn note_word(&self, moved: Move) {
        if let Move::Forward { from: Side::Backend, .. }
        | Move::Replace { from: Side::Backend, .. } = moved
        {
            let cluster = &self.shared.cluster;
            cluster.probes.primary_contact(Contact::Reached, cluster.now());
        }
        if let Move::Forward { from: Side::Backend, len } = moved
            && !self.session.is_greeted()
        {
            self.note_no_greeting(len);
        }
    }

    /// The server's first word, of this length, is an error in place of its greeting: of Sluice's
    /// address, or of its own state, so it is the operator's too.
    fn note_no_greeting(&self, len: usize) {
        let kind = BackendErrorKind::Greeting;
        let cluster = &self.shared.cluster;
        self.shared.telemetry.backend_error(&cluster.name, kind);
        let told = cluster.turned_away.backend.again(kind.as_str(), cluster.now());
        let Some(untold) = told else { return };
        let payload = self.backend.bytes().get(HEADER_LEN..len).unwrap_or_default();
        let error = ErrPacket::parse(payload).map_or_else(
            |error| error.to_string(),
            |error| format!("error {}: {}", error.code, String::from_utf8_lossy(error.message)),
        );
        let error = Printable(error.as_bytes());
        let (cluster, kind) = (&cluster.name, kind.as_str());
        tracing::warn!(%cluster, peer = %self.peer, kind, %error, untold, "backend error");
    }

    /// Notes what the end of this login has shown of the primary.
    pub(super) fn note_contact(&self, login: &Result<(), Ended>) {
        let contact = match login {
            Ok(()) => Contact::Reached,
            // Noted when it did: it may have been silent since.
            Err(_) if self.session.is_greeted() => Contact::NotTried,
            // It has said why it does not greet, or what is not the protocol.
            Err(Ended::BySession(_)) => Contact::Reached,
            Err(Ended::ByBackend) => Contact::Failed("it closed before its greeting".to_owned()),
            // Told: that it has not greeted in time, or that Sluice is leaving.
            Err(
                Ended::ByClient
                | Ended::ByClientFault
                | Ended::Told
                | Ended::Quietly
                | Ended::Moves { .. }
                | Ended::BySluice(_),
            ) => Contact::NotTried,
        };
        let cluster = &self.shared.cluster;
        cluster.probes.primary_contact(contact, cluster.now());
    }

    /// A client that no proxy is expected at has begun with a PROXY header: told apart from other
    /// broken clients, because only the operator can help.
    pub(super) fn note_unexpected_header(&self) {
        if !proxy_protocol::is_header(self.client.bytes()) {
            return;
        }
        let cluster = &self.shared.cluster;
        let refusal = ConnectionRefusal::ProxyProtocol;
        self.shared.telemetry.connection_refused(&cluster.name, refusal);
        let told = cluster.turned_away.strange_header.lock().again(cluster.now());
        if let Some(untold) = told {
            tracing::warn!(
                cluster = %cluster.name, peer = %self.peer, untold,
                "a PROXY header from an address that proxy_protocol.from does not name"
            );
        }
    }
}
