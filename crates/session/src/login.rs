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
//! what they like, and turns are counted only where a password could be misled. A client that pipelines commands behind its login is
//! recognised by the sequence id: authentication packets go on counting, a command starts at 0 and is held
//! back until the login is over, so that no command crosses unseen.

mod compression;
mod denial;
mod exchange;
mod greeting;
mod leg;
mod response;

use std::net::IpAddr;

use policy::identity::SessionIdentity;
use sql::{Charset, LexMode};
use wire::capability::{CLIENT_SSL, Capabilities, PER_LEG};
use wire::frame::{FrameHeader, HEADER_LEN, split_frame};
use wire::handshake::ChangeUser;
use zeroize::Zeroize;

pub use compression::Compression;
pub(crate) use compression::Compressions;
pub use denial::Denial;
use exchange::shown;
pub(crate) use exchange::{Exchange, Kept};
pub(crate) use leg::Legs;
pub use leg::{Leg, Password};

use crate::action::{Action, CloseReason, Input, Side};
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

impl Session {
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
                let sequence = self.after_response(input.client);
                self.deny_login(Denial::ServerTlsFailed, &why, sequence)
            }
            Login::Exchange(exchange) => self.next_exchange(exchange, input),
            Login::Refused => close(CloseReason::LoginRefused),
            Login::Accepted => (Phase::Idle, Action::LoggedIn),
        }
    }

    /// The sequence id of the packet that the client reads next. None: it reads none.
    pub(crate) fn next_for_client(&self, login: &Login, client: &[u8]) -> Option<u8> {
        match login {
            Login::Response(_) | Login::BackendTls(_) | Login::BackendTlsFailed(_) => {
                Some(self.after_response(client))
            }
            Login::Exchange(exchange) => Some(exchange.next_for_client()),
            // A command is next.
            Login::Accepted => Some(FIRST_SEQUENCE),
            Login::ClientTls(_) | Login::Refused => None,
        }
    }

    /// What follows the client's response, which may not have come: nobody reads before having said it.
    fn after_response(&self, client: &[u8]) -> u8 {
        let awaited = match self.legs.client {
            Leg::Network | Leg::Unix => FIRST_SEQUENCE,
            Leg::Tls => FIRST_SEQUENCE.wrapping_add(1),
        };
        FrameHeader::parse(client).map_or(awaited, |header| header.sequence).wrapping_add(1)
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
    pub(crate) fn wipe_outbox(&mut self) {
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
    pub(crate) fn new(
        change: &ChangeUser<'_>,
        address: Option<IpAddr>,
        server: sql::Server,
    ) -> Self {
        Self {
            identity: SessionIdentity::new(
                change.user,
                address,
                change.database,
                change.attributes.iter(),
            ),
            charset: change
                .charset
                .map_or(Charset::Unknown, |id| Charset::from_collation_id(id, server)),
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
