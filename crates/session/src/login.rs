//! The connection phase: the backend's greeting and the authentication exchange, relayed.
//!
//! The greeting keeps the server's scramble, plugin, version and connection id; only capabilities that a
//! relay cannot follow are cleared, in both directions, so that both ends agree on what was negotiated.
//! Between the client's response and the server's OK or ERR every packet is opaque: plugins may say what
//! they like, and turns are not counted. A client that pipelines commands behind its login is recognised
//! by the sequence id: authentication packets go on counting, a command starts at 0 and is held back
//! until the login is over, so that no command crosses unseen.

use std::net::IpAddr;

use policy::identity::SessionIdentity;
use sql::{Charset, LexMode, Server};
use wire::capability::Capabilities;
use wire::frame::{FrameHeader, HEADER_LEN, split_frame};
use wire::handshake::{
    AuthReply, ChangeUser, ClientHello, Greeting, ServerHello, auth_reply, parse_client_hello,
    parse_server_hello, patch_client_hello, patch_greeting,
};
use wire::packet::OkPacket;
use wire::response_tracker::ResponseTracker;

use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::session::{Phase, Session, close};

/// The longest packet of the connection phase: 64 KiB of attributes and as much of authentication data fit.
/// Longer ones are not buffered.
const LOGIN_PACKET_LEN_MAX: usize = 256 * 1024;

/// Where the login stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    /// The greeting is out, the client's response is awaited.
    Response { offered: Capabilities },
    /// Packets go both ways until the server says OK or ERR.
    Exchange,
    /// The server's ERR has been forwarded.
    Refused,
    /// The server's OK has been forwarded.
    Accepted,
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
        let offered = greeting.capabilities.followable();
        self.server_capabilities = greeting.capabilities;
        self.connection_id = greeting.connection_id;
        self.mode.server = server_of(&greeting);
        self.outbox.clear();
        self.outbox.extend_from_slice(input.backend.get(..len).unwrap_or_default());
        match self.outbox.get_mut(HEADER_LEN..).map(|payload| patch_greeting(payload, offered)) {
            Some(Ok(())) => (
                Phase::Login(Login::Response { offered }),
                Action::Replace { from: Side::Backend, drop: len },
            ),
            Some(Err(_)) | None => close(CloseReason::BackendProtocol),
        }
    }

    /// Relays the login.
    pub(crate) fn next_login(&mut self, login: Login, input: &Input<'_>) -> (Phase, Action) {
        match login {
            Login::Response { offered } => self.next_login_response(offered, input),
            Login::Exchange => self.next_login_exchange(input),
            Login::Refused => close(CloseReason::LoginRefused),
            Login::Accepted => (Phase::Idle, Action::LoggedIn),
        }
    }

    fn next_login_response(&mut self, offered: Capabilities, input: &Input<'_>) -> (Phase, Action) {
        let waiting = Phase::Login(Login::Response { offered });
        if !input.backend.is_empty() {
            // The server gave up on a client that does not speak (its connect_timeout).
            return (waiting, Action::Forward { from: Side::Backend, len: input.backend.len() });
        }
        let (len, payload) = match login_frame(input.client) {
            Some(Ok(frame)) => frame,
            Some(Err(TooLong)) => return close(CloseReason::ClientProtocol),
            None => return (waiting, Action::Read(Reads::Either)),
        };
        let response = match parse_client_hello(payload, self.server_capabilities) {
            Ok(ClientHello::Response(response)) => response,
            // TLS was not offered: what follows could not be inspected.
            Ok(ClientHello::SslRequest(_)) | Err(_) => return close(CloseReason::ClientProtocol),
        };
        let agreed = response.capabilities.intersect(offered);
        self.capabilities = agreed;
        self.tracker = ResponseTracker::new(agreed);
        self.login_charset = Charset::from_collation_id(u16::from(response.charset));
        self.identity = SessionIdentity::new(
            response.user,
            self.client.address,
            response.database.unwrap_or_default(),
            response.attributes.iter(),
        );
        self.outbox.clear();
        self.outbox.extend_from_slice(input.client.get(..len).unwrap_or_default());
        match self.outbox.get_mut(HEADER_LEN..).map(|payload| patch_client_hello(payload, agreed)) {
            Some(Ok(())) => {
                (Phase::Login(Login::Exchange), Action::Replace { from: Side::Client, drop: len })
            }
            Some(Err(_)) | None => close(CloseReason::ClientProtocol),
        }
    }

    fn next_login_exchange(&mut self, input: &Input<'_>) -> (Phase, Action) {
        let exchange = Phase::Login(Login::Exchange);
        match login_frame(input.backend) {
            Some(Ok((len, payload))) => {
                let login = match auth_reply(payload) {
                    AuthReply::Continue => Login::Exchange,
                    AuthReply::Err => Login::Refused,
                    AuthReply::Ok => {
                        let ok = OkPacket::parse(payload, self.capabilities);
                        self.accept_login(ok.map(|ok| ok.status).unwrap_or_default());
                        Login::Accepted
                    }
                };
                return (Phase::Login(login), Action::Forward { from: Side::Backend, len });
            }
            Some(Err(TooLong)) => return close(CloseReason::BackendProtocol),
            None => {}
        }
        if starts_command(input.client) {
            // Sent ahead of the login's end: it waits for its turn.
            return (exchange, Action::Read(Reads::Backend));
        }
        match login_frame(input.client) {
            Some(Ok((len, _))) => (exchange, Action::Forward { from: Side::Client, len }),
            Some(Err(TooLong)) => close(CloseReason::ClientProtocol),
            None => (exchange, Action::Read(Reads::Either)),
        }
    }

    fn accept_login(&mut self, status: u16) {
        if let Some(change) = self.pending_user.take() {
            self.identity = change.identity;
            self.login_charset = change.charset;
            self.forget_statements();
        }
        self.reset_mode();
        self.transaction.start(wire::status::StatusFlags(status));
        self.generation = self.generation.wrapping_add(1);
    }
}

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
