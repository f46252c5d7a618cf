//! The connection phase: the backend's greeting and the authentication exchange, relayed.
//!
//! The greeting keeps the server's scramble, plugin, version and connection id; only capabilities that a
//! relay cannot follow are cleared, in both directions, so that both ends agree on what was negotiated.
//! TLS is Sluice's own on either leg: offered to clients whatever the server offers, and asked of the
//! server as the policy says once it is known how the client came.
//!
//! ```text
//!  Response ──SSLRequest──▶ ClientTls ─▶ Response ──response──┬───────────────────▶ Exchange ─▶ Accepted
//!                                           ▲                 └─▶ BackendTls ─┐        │
//!                                           └─────────────────────────────────┘        └─────▶ Refused
//! ```
//!
//! Between the client's response and the server's OK or ERR nearly every packet is opaque: plugins may say
//! what they like, and turns are not counted. A client that pipelines commands behind its login is
//! recognised by the sequence id: authentication packets go on counting, a command starts at 0 and is held
//! back until the login is over, so that no command crosses unseen.

mod compression;
mod denial;
mod exchange;
mod leg;

use std::net::IpAddr;

use policy::identity::SessionIdentity;
use policy::{BackendTlsMode, ClientTlsMode, ClusterPolicy};
use sql::{Charset, LexMode, Server};
use wire::capability::{CLIENT_SSL, Capabilities, PER_LEG};
use wire::frame::{FrameHeader, HEADER_LEN, split_frame};
use wire::handshake::{
    ChangeUser, ClientHello, Greeting, HandshakeResponse, SSL_REQUEST_LEN, ServerHello,
    parse_client_hello, parse_server_hello, patch_client_hello, patch_greeting,
    put_unanswered_change_user, put_unanswered_response,
};
use wire::packet::ERR_HEADER;
use wire::response_tracker::ResponseTracker;
use wire::status::{SERVER_STATUS_AUTOCOMMIT, StatusFlags};
use zeroize::Zeroize;

pub use compression::Compression;
pub(crate) use compression::Compressions;
pub use denial::Denial;
pub(crate) use exchange::{Exchange, Kept};
pub(crate) use leg::Legs;
pub use leg::{Leg, Password};

use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::session::{Phase, Session, close};

/// The longest packet of the connection phase: 64 KiB of attributes and as much of authentication data fit.
/// Longer ones are not buffered.
const LOGIN_PACKET_LEN_MAX: usize = 256 * 1024;

/// Where the login stands.
#[derive(Debug)]
pub(crate) enum Login {
    /// The greeting is out, the client's response is awaited, or must be dealt with.
    Response(Hello),
    /// The shell does the TLS handshake with the client.
    ClientTls(Hello),
    /// The SSLRequest is out, the shell does the TLS handshake with the server.
    BackendTls(Hello),
    /// That has failed, and this is why.
    BackendTlsFailed(String),
    /// Packets go both ways until the server says OK or ERR.
    Exchange(Box<Exchange>),
    /// The server's ERR has been forwarded.
    Refused,
    /// The server's OK has been forwarded, or an ERR after which the session goes on as who it was.
    Accepted,
}

/// What is kept of the greeting until the client has responded.
#[derive(Debug)]
pub(crate) struct Hello {
    /// Offered to the client.
    offered: Capabilities,
    /// The plugin the nonce is for.
    plugin: Vec<u8>,
}

/// What is to be done about TLS with the server.
enum BackendTls {
    /// The leg is as it has to be.
    Settled,
    /// It has to be encrypted.
    Start,
    /// It would have to be, and the server cannot.
    Impossible,
}

impl Session {
    /// Awaits the server's first packet: its greeting, or an error in its place.
    pub(crate) fn next_greeting(&mut self, input: &Input<'_>) -> (Phase, Action) {
        let (len, payload) = match login_frame(input.backend) {
            Some(Ok(frame)) => frame,
            Some(Err(TooLong)) => return close(CloseReason::BackendProtocol),
            None => return (Phase::Greeting, Action::Read(Reads::Backend)),
        };
        let greeting = match parse_server_hello(payload) {
            Ok(ServerHello::Greeting(greeting)) => greeting,
            Ok(ServerHello::Error(_)) => {
                return (
                    Phase::Login(Login::Refused),
                    Action::Forward { from: Side::Backend, len },
                );
            }
            Err(_) => return close(CloseReason::BackendProtocol),
        };
        let offered = offered(greeting.capabilities, input.policy);
        self.server_capabilities = greeting.capabilities;
        self.connection_id = greeting.connection_id;
        self.mode.server = server_of(&greeting);
        self.nonce = greeting.scramble.concat();
        let hello = Hello { offered, plugin: greeting.auth_plugin.to_vec() };
        self.outbox.clear();
        self.outbox.extend_from_slice(input.backend.get(..len).unwrap_or_default());
        match self.outbox.get_mut(HEADER_LEN..).map(|payload| patch_greeting(payload, offered)) {
            Some(Ok(())) => (
                Phase::Login(Login::Response(hello)),
                Action::Replace { from: Side::Backend, drop: len },
            ),
            Some(Err(_)) | None => close(CloseReason::BackendProtocol),
        }
    }

    /// Relays the login.
    pub(crate) fn next_login(&mut self, login: Login, input: &Input<'_>) -> (Phase, Action) {
        match login {
            Login::Response(hello) => self.next_response(hello, input),
            Login::ClientTls(hello) => (
                Phase::Login(Login::ClientTls(hello)),
                Action::StartTls { side: Side::Client, drop: 0 },
            ),
            Login::BackendTls(hello) => (
                Phase::Login(Login::BackendTls(hello)),
                Action::StartTls { side: Side::Backend, drop: 0 },
            ),
            Login::BackendTlsFailed(why) => {
                let response = FrameHeader::parse(input.client);
                let sequence = response.map_or(1, |header| header.sequence).wrapping_add(1);
                self.deny_login(Denial::ServerTlsFailed, &why, sequence)
            }
            Login::Exchange(exchange) => self.next_exchange(exchange, input),
            Login::Refused => close(CloseReason::LoginRefused),
            Login::Accepted => (Phase::Idle, Action::LoggedIn),
        }
    }

    fn next_response(&mut self, hello: Hello, input: &Input<'_>) -> (Phase, Action) {
        if let Some(ended) = self.server_gave_up(input) {
            return ended;
        }
        let (len, payload) = match login_frame(input.client) {
            Some(Ok(frame)) => frame,
            Some(Err(TooLong)) => return close(CloseReason::ClientProtocol),
            None => return (Phase::Login(Login::Response(hello)), Action::Read(Reads::Either)),
        };
        let sequence = FrameHeader::parse(input.client).map_or(1, |header| header.sequence);
        let in_tls = self.legs.client == Leg::Tls;
        let offers_tls = hello.offered.has(CLIENT_SSL);
        let response = match parse_client_hello(payload, self.server_capabilities) {
            Ok(ClientHello::SslRequest(_)) if offers_tls && !in_tls => {
                // Nothing of what it says counts: the client says it again inside.
                let start = Action::StartTls { side: Side::Client, drop: len };
                return (Phase::Login(Login::ClientTls(hello)), start);
            }
            Ok(ClientHello::Response(response)) => response,
            // TLS twice, or where it was not offered.
            Ok(ClientHello::SslRequest(_)) | Err(_) => return close(CloseReason::ClientProtocol),
        };
        if response.capabilities.has(CLIENT_SSL) && offers_tls && !in_tls {
            // It says that TLS begins here, and then says who it is for everybody to hear.
            return close(CloseReason::ClientProtocol);
        }
        self.login_charset = Charset::from_collation_id(u16::from(response.charset));
        self.identity = SessionIdentity::new(
            response.user,
            self.client.address,
            response.database.unwrap_or_default(),
            response.attributes.iter(),
        );
        let after = sequence.wrapping_add(1);
        let requires = input.policy.client_tls.mode == ClientTlsMode::Required;
        if requires && !self.legs.client.is_safe() {
            return self.deny_login(Denial::TlsRequired, "", after);
        }
        let server = self.server_capabilities;
        match Compressions::agree(&response, hello.offered, server, input.policy) {
            Ok(compressions) => self.compressions = compressions,
            Err(denial) => return self.deny_login(denial, "", after),
        }
        let agreed = response.capabilities.intersect(hello.offered).without(OF_EACH_LEG);
        match self.backend_tls(input.policy) {
            BackendTls::Settled => {
                self.capabilities = agreed;
                self.respond(&hello, &response, input.client.get(..len).unwrap_or_default())
            }
            BackendTls::Start => {
                let fixed = payload.get(..SSL_REQUEST_LEN).unwrap_or_default();
                self.put_frame(FIRST_SEQUENCE, fixed);
                self.patch_response(agreed | TLS | self.compressions.to_server());
                let send = Action::Replace { from: Side::Client, drop: 0 };
                (Phase::Login(Login::BackendTls(hello)), send)
            }
            BackendTls::Impossible => self.deny_login(Denial::ServerWithoutTls, "", after),
        }
    }

    /// The server gave up on a client that does not speak (its connect_timeout), or goes. Whatever else comes
    /// ahead of the response is not the server's: nothing that TLS is still to protect may reach the client.
    fn server_gave_up(&mut self, input: &Input<'_>) -> Option<(Phase, Action)> {
        let (len, payload) = match login_frame(input.backend)? {
            Ok(frame) => frame,
            Err(TooLong) => return Some(close(CloseReason::BackendProtocol)),
        };
        if payload.first() != Some(&ERR_HEADER) {
            return Some(close(CloseReason::BackendProtocol));
        }
        let action = match self.legs.client {
            Leg::Network | Leg::Unix => Action::Forward { from: Side::Backend, len },
            Leg::Tls => {
                // The client has sent one packet more than the server has seen.
                self.put_frame(FIRST_SEQUENCE.wrapping_add(1), payload);
                Action::Replace { from: Side::Backend, drop: len }
            }
        };
        Some((Phase::Login(Login::Refused), action))
    }

    fn backend_tls(&self, policy: &ClusterPolicy) -> BackendTls {
        let offers = self.server_capabilities.has(CLIENT_SSL);
        let wanted = match (policy.backend_tls.mode, self.legs.backend) {
            (_, Leg::Tls) | (BackendTlsMode::Disabled, _) => false,
            // A Unix socket is heard by nobody either.
            (BackendTlsMode::AsClient | BackendTlsMode::Preferred, Leg::Unix) => false,
            (BackendTlsMode::AsClient, Leg::Network) => self.legs.client == Leg::Tls,
            (BackendTlsMode::Preferred, Leg::Network) => offers,
            (
                BackendTlsMode::Required
                | BackendTlsMode::VerifyCa
                | BackendTlsMode::VerifyIdentity,
                Leg::Network | Leg::Unix,
            ) => true,
        };
        match (wanted, offers) {
            (false, _) => BackendTls::Settled,
            (true, true) => BackendTls::Start,
            (true, false) => BackendTls::Impossible,
        }
    }

    /// Sends the client's response on: both legs are as safe as they will be.
    fn respond(
        &mut self,
        hello: &Hello,
        response: &HandshakeResponse<'_>,
        frame: &[u8],
    ) -> (Phase, Action) {
        let agreed = self.capabilities;
        self.tracker = ResponseTracker::new(agreed);
        let payload = frame.get(HEADER_LEN..).unwrap_or_default();
        let client = FrameHeader::parse(frame).map_or(FIRST_SEQUENCE, |header| header.sequence);
        let (backend, tls) = match self.legs.backend {
            Leg::Tls => (FIRST_SEQUENCE.wrapping_add(1), TLS),
            Leg::Network | Leg::Unix => (FIRST_SEQUENCE, Capabilities::default()),
        };
        let plugin = response.auth_plugin.unwrap_or(&hello.plugin);
        let mut kept = self.kept_back(plugin, response.auth_response);
        self.wipe_outbox();
        self.outbox.extend_from_slice(&[0; HEADER_LEN]);
        if kept == Kept::Nothing {
            self.outbox.extend_from_slice(payload);
        } else if !put_unanswered_response(payload, response.capabilities, &mut self.outbox) {
            if matches!(kept, Kept::Password(_)) {
                return self.deny_login(Denial::PasswordExposed, "", client.wrapping_add(1));
            }
            kept = Kept::Nothing;
            self.outbox.extend_from_slice(payload);
        }
        self.compressions.put_level(response, &mut self.outbox);
        self.seal_frame(backend);
        self.patch_response(agreed | tls | self.compressions.to_server());
        let exchange = Exchange::new(plugin, self.nonce.clone(), (client, backend), kept);
        (
            Phase::Login(Login::Exchange(Box::new(exchange))),
            Action::Replace { from: Side::Client, drop: frame.len() },
        )
    }

    /// A COM_CHANGE_USER is sent on, and authentication begins anew.
    pub(crate) fn respond_again(
        &mut self,
        change: &ChangeUser<'_>,
        payload: &[u8],
        sequence: u8,
    ) -> (Phase, Action) {
        let len = payload.len().saturating_add(HEADER_LEN);
        let plugin = change.auth_plugin.unwrap_or_default();
        let kept = self.kept_back(plugin, change.auth_response);
        let mut action = Action::Forward { from: Side::Client, len };
        if kept != Kept::Nothing {
            self.wipe_outbox();
            self.outbox.extend_from_slice(&[0; HEADER_LEN]);
            if put_unanswered_change_user(payload, self.capabilities, &mut self.outbox) {
                self.seal_frame(sequence);
                action = Action::Replace { from: Side::Client, drop: len };
            } else {
                return self.deny_login(Denial::PasswordExposed, "", sequence.wrapping_add(1));
            }
        }
        self.pending_user = Some(PendingUser::new(change, self.client.address));
        let exchange = Exchange::new(plugin, self.nonce.clone(), (sequence, sequence), kept);
        (Phase::Login(Login::Exchange(Box::new(exchange))), action)
    }

    fn accept_login(&mut self, status: u16) {
        if let Some(change) = self.pending_user.take() {
            self.identity = change.identity;
            self.login_charset = change.charset;
            self.forget_statements();
        }
        self.reset_mode();
        self.transaction.start(StatusFlags(status));
        self.generation = self.generation.wrapping_add(1);
    }

    /// The server has refused. After a COM_CHANGE_USER one server closes, and the other goes on with the user
    /// before in a session that it has emptied all the same.
    fn refuse_login(&mut self, nonce: &[u8]) -> Login {
        if self.pending_user.take().is_none() {
            return Login::Refused;
        }
        self.nonce.clear();
        self.nonce.extend_from_slice(nonce);
        self.identity.forget();
        self.forget_statements();
        self.reset_mode();
        // It has rolled back; its next answer says whether autocommit is on.
        self.transaction.start(StatusFlags(SERVER_STATUS_AUTOCOMMIT));
        Login::Accepted
    }

    /// Makes the response in the outbox say `agreed`. It has been read, so it can be written.
    fn patch_response(&mut self, agreed: Capabilities) {
        if let Some(payload) = self.outbox.get_mut(HEADER_LEN..) {
            patch_client_hello(payload, agreed).unwrap_or_default();
        }
    }

    /// Puts one frame into the outbox.
    fn put_frame(&mut self, sequence: u8, payload: &[u8]) {
        self.wipe_outbox();
        let header = FrameHeader { payload_len: payload.len(), sequence };
        self.outbox.extend_from_slice(&header.encode());
        self.outbox.extend_from_slice(payload);
    }

    /// Writes the header of the frame in the outbox, for which room was left.
    fn seal_frame(&mut self, sequence: u8) {
        let payload_len = self.outbox.len().saturating_sub(HEADER_LEN);
        if let Some(header) = self.outbox.first_chunk_mut() {
            *header = FrameHeader { payload_len, sequence }.encode();
        }
    }

    /// Empties the outbox, in which a password may stand.
    fn wipe_outbox(&mut self) {
        self.outbox.zeroize();
    }
}

/// The shell's answers.
impl Session {
    /// The TLS handshake with this side is done: what comes now came through it.
    pub fn handle_encrypted(&mut self, side: Side) {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        self.phase = match (phase, side) {
            (Phase::Login(Login::ClientTls(hello)), Side::Client) => {
                self.legs.client = Leg::Tls;
                Phase::Login(Login::Response(hello))
            }
            (Phase::Login(Login::BackendTls(hello)), Side::Backend) => {
                self.legs.backend = Leg::Tls;
                Phase::Login(Login::Response(hello))
            }
            (other, Side::Client | Side::Backend) => other,
        };
    }

    /// The TLS handshake with the server has failed. `why` is for the client.
    pub fn handle_not_encrypted(&mut self, why: String) {
        if matches!(self.phase, Phase::Login(Login::BackendTls(_))) {
            self.phase = Phase::Login(Login::BackendTlsFailed(why));
        }
    }
}

/// What a client is offered: what can be relayed of the server's, and Sluice's own TLS and compression.
fn offered(server: Capabilities, policy: &ClusterPolicy) -> Capabilities {
    let relayed = server.followable() | compression::offered(policy.client_compression);
    match policy.client_tls.mode {
        ClientTlsMode::Disabled => relayed,
        ClientTlsMode::Preferred | ClientTlsMode::Required => relayed | TLS,
    }
}

/// What a leg in TLS says of itself.
pub(crate) const TLS: Capabilities = Capabilities { base: CLIENT_SSL, mariadb: 0 };

/// What the legs do not have in common.
pub(crate) const OF_EACH_LEG: Capabilities = Capabilities { base: PER_LEG, mariadb: 0 };

/// The sequence id of what follows a greeting.
const FIRST_SEQUENCE: u8 = 1;

impl Session {
    /// How text is read at the start of a session.
    pub(crate) fn reset_mode(&mut self) {
        self.mode =
            LexMode { charset: self.login_charset, server: self.mode.server, ..LexMode::default() };
    }
}

/// A COM_CHANGE_USER that the server has not accepted yet.
#[derive(Debug)]
pub(crate) struct PendingUser {
    pub(crate) identity: SessionIdentity,
    pub(crate) charset: Charset,
}

impl PendingUser {
    pub(crate) fn new(change: &ChangeUser<'_>, address: Option<IpAddr>) -> Self {
        Self {
            identity: SessionIdentity::new(
                change.user,
                address,
                change.database,
                change.attributes.iter(),
            ),
            charset: change.charset.map(Charset::from_collation_id).unwrap_or_default(),
        }
    }
}

/// A packet of the connection phase that is too long.
struct TooLong;

/// The whole first frame and its length with the header. None: more bytes are needed.
fn login_frame(bytes: &[u8]) -> Option<Result<(usize, &[u8]), TooLong>> {
    let header = FrameHeader::parse(bytes)?;
    if header.payload_len > LOGIN_PACKET_LEN_MAX {
        return Some(Err(TooLong));
    }
    let (header, payload, _) = split_frame(bytes)?;
    Some(Ok((header.payload_len.saturating_add(HEADER_LEN), payload)))
}

fn starts_command(bytes: &[u8]) -> bool {
    FrameHeader::parse(bytes).is_some_and(|header| header.sequence == 0)
}

/// The dialect and version that decide which executable comments run.
fn server_of(greeting: &Greeting<'_>) -> Server {
    let version = greeting.server_version;
    // MariaDB 10 says `5.5.5-10.11.6-MariaDB` so that old replicas accept it.
    let version = version.strip_prefix(b"5.5.5-").unwrap_or(version);
    let Some(version) = version_number(version) else { return Server::Unknown };
    if greeting.is_mariadb() { Server::MariaDb { version } } else { Server::MySql { version } }
}

/// `9.7.4-log` as 90704, the way executable comments name versions.
fn version_number(text: &[u8]) -> Option<u32> {
    let text = text.split(|byte| !byte.is_ascii_digit() && *byte != b'.').next()?;
    let mut parts = text
        .split(|byte| *byte == b'.')
        .map(|part| std::str::from_utf8(part).ok().and_then(|digits| digits.parse::<u32>().ok()));
    let major = parts.next()??;
    let minor = parts.next()??;
    let patch = parts.next().flatten().filter(|patch| *patch < 100)?;
    major.checked_mul(10_000)?.checked_add(minor.checked_mul(100)?)?.checked_add(patch)
}
