//! The connection phase: the backend's greeting and the authentication exchange, relayed.
//!
//! The greeting keeps the server's scramble, plugin, version and connection id; only capabilities
//! that a relay cannot follow are cleared, in both directions, so that both ends agree on what was
//! negotiated. TLS is Sluice's own on either leg: offered to clients whatever the server offers
//! (but not where whoever took it would have to be refused for that), and asked of the server as
//! the policy says once it is known how the client came.
//!
//! ```text
//!  Response ─SSLRequest─▶ ClientTls ─▶ Response ─response─┬───────────────▶ Exchange ─▶ Accepted
//!                                         ▲               └─▶ BackendTls ─┐     │
//!                                         └───────────────────────────────┘     └────▶ Refused
//! ```
//!
//! Between the client's response and the server's OK or ERR nearly every packet is opaque: plugins
//! may say what they like, and turns are counted only where a password could be misled. A client
//! that pipelines commands behind its login is recognised by the sequence id: authentication
//! packets go on counting, a command starts at 0 and is held back until the login is over, so that
//! no command crosses unseen.

mod exchange;
mod response;

use policy::identity::SessionIdentity;
use sql::Charset;
use wire::capability::Capabilities;
use wire::frame::{FrameHeader, HEADER_LEN, split_frame};
use wire::handshake::ChangeUser;
use wire::status::StatusFlags;

use self::exchange::Exchange;
use crate::action::{Action, CloseReason, Input, Move, Side};
use crate::denial::Denial;
use crate::judge::who::Who;
use crate::leg::{Leg, Legs, Password};
use crate::negotiated::{ClientInfo, Negotiated};
use crate::outbox::Outbox;

/// The longest packet of the connection phase: 64 KiB of attributes and as much of authentication
/// data fit. Longer ones are not buffered.
const LOGIN_PACKET_LEN_MAX: usize = 256 * 1024;

/// Where the login stands.
#[derive(Debug)]
pub(crate) struct Login(Stage);

#[derive(Debug)]
enum Stage {
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
}

/// What a login borrows of its session.
pub(crate) struct Desk<'s> {
    pub(crate) client: ClientInfo,
    pub(crate) negotiated: &'s mut Negotiated,
    pub(crate) who: &'s mut Who,
    pub(crate) out: &'s mut Outbox,
}

/// What a login does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It goes on.
    Stay(Login, Action),
    /// The server's OK goes to the client.
    Accepted(Accepted, Action),
    /// The server's ERR goes to the client.
    Refused(Action),
    /// Sluice's own ERR goes to the client.
    Denied(Denial, Action),
    Close(CloseReason),
}

/// How a session begins, or begins anew.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// The server has let the client in.
    First(StatusFlags),
    /// COM_CHANGE_USER: the session is somebody else's.
    Changed(Applicant, StatusFlags),
    /// COM_CHANGE_USER was refused. One server closes, and the other goes on with the user before
    /// in a session that it has emptied all the same.
    Unchanged,
}

/// Who a COM_CHANGE_USER is about.
#[derive(Debug)]
pub(crate) struct Applicant {
    pub(crate) identity: SessionIdentity,
    pub(crate) charset: Charset,
}

/// What is kept of the greeting until the client has responded.
#[derive(Debug)]
struct Hello {
    /// Offered to the client.
    offered: Capabilities,
    /// The plugin the nonce is for.
    plugin: Vec<u8>,
}

impl Login {
    /// The greeting has just been sent: `offered` to the client, with a nonce for this plugin.
    pub(crate) fn new(offered: Capabilities, plugin: &[u8]) -> Self {
        Self(Stage::Response(Hello { offered, plugin: plugin.to_vec() }))
    }

    /// A COM_CHANGE_USER: everything that was learned is forgotten when it succeeds.
    pub(crate) fn again(
        change: &ChangeUser<'_>,
        payload: &[u8],
        sequence: u8,
        desk: &mut Desk<'_>,
    ) -> Next {
        response::respond_again(change, payload, sequence, desk)
    }

    /// Relays the login.
    pub(crate) fn next(self, desk: &mut Desk<'_>, input: &Input<'_>) -> Next {
        match self.0 {
            Stage::Response(hello) => response::next(hello, desk, input),
            Stage::ClientTls(hello) => {
                stay(Stage::ClientTls(hello), Action::StartTls { side: Side::Client, drop: 0 })
            }
            Stage::BackendTls(hello) => {
                stay(Stage::BackendTls(hello), Action::StartTls { side: Side::Backend, drop: 0 })
            }
            Stage::BackendTlsFailed(why) => {
                let sequence = after_response(desk.negotiated.legs, input.client);
                deny(Denial::ServerTlsFailed, &why, sequence, desk.out)
            }
            Stage::Exchange(exchange) => exchange.next(desk, input),
        }
    }

    /// The sequence id of the packet that the client reads next. None: it reads none.
    pub(crate) fn next_for_client(&self, legs: Legs, client: &[u8]) -> Option<u8> {
        match &self.0 {
            Stage::Response(_) | Stage::BackendTls(_) | Stage::BackendTlsFailed(_) => {
                Some(after_response(legs, client))
            }
            Stage::Exchange(exchange) => Some(exchange.next_for_client()),
            Stage::ClientTls(_) => None,
        }
    }
}

/// The shell has called what this login was not waiting for.
#[derive(Debug)]
pub(crate) struct OutOfTurn;

/// The shell's answers.
impl Login {
    /// The TLS handshake with this side is done: what comes now came through it.
    pub(crate) fn handle_encrypted(self, side: Side, legs: &mut Legs) -> Result<Self, OutOfTurn> {
        match (self.0, side) {
            (Stage::ClientTls(hello), Side::Client) => {
                legs.client = Leg::Tls;
                Ok(Self(Stage::Response(hello)))
            }
            (Stage::BackendTls(hello), Side::Backend) => {
                legs.backend = Leg::Tls;
                Ok(Self(Stage::Response(hello)))
            }
            (
                Stage::Response(_)
                | Stage::ClientTls(_)
                | Stage::BackendTls(_)
                | Stage::BackendTlsFailed(_)
                | Stage::Exchange(_),
                Side::Client | Side::Backend,
            ) => Err(OutOfTurn),
        }
    }

    /// The TLS handshake with the server has failed. `why` is for the client.
    pub(crate) fn handle_not_encrypted(self, why: String) -> Result<Self, OutOfTurn> {
        match self.0 {
            Stage::BackendTls(_) => Ok(Self(Stage::BackendTlsFailed(why))),
            Stage::Response(_)
            | Stage::ClientTls(_)
            | Stage::BackendTlsFailed(_)
            | Stage::Exchange(_) => Err(OutOfTurn),
        }
    }

    /// Sluice's public key.
    pub(crate) fn handle_own_key(&mut self, pem: &[u8]) -> Result<(), OutOfTurn> {
        self.exchange_mut()?.handle_own_key(pem)
    }

    /// The encrypted password; none when it cannot be encrypted.
    pub(crate) fn handle_sealed(&mut self, sealed: Option<Vec<u8>>) -> Result<(), OutOfTurn> {
        self.exchange_mut()?.handle_sealed(sealed)
    }

    /// The decrypted password, still masked; none when it cannot be decrypted.
    pub(crate) fn handle_opened(&mut self, masked: Option<Password>) -> Result<(), OutOfTurn> {
        self.exchange_mut()?.handle_opened(masked)
    }

    /// Whether the server is to answer what Sluice itself has asked it.
    pub(crate) fn awaits_key(&self) -> bool {
        matches!(&self.0, Stage::Exchange(exchange) if exchange.awaits_key())
    }

    /// Whether it is the client's turn: until it has answered, the server says nothing.
    pub(crate) fn awaits_client(&self) -> bool {
        match &self.0 {
            Stage::Response(_) | Stage::ClientTls(_) => true,
            Stage::BackendTls(_) | Stage::BackendTlsFailed(_) => false,
            Stage::Exchange(exchange) => exchange.awaits_client(),
        }
    }

    fn exchange_mut(&mut self) -> Result<&mut Exchange, OutOfTurn> {
        match &mut self.0 {
            Stage::Exchange(exchange) => Ok(exchange),
            Stage::Response(_)
            | Stage::ClientTls(_)
            | Stage::BackendTls(_)
            | Stage::BackendTlsFailed(_) => Err(OutOfTurn),
        }
    }
}

fn stay(stage: Stage, action: Action) -> Next {
    Next::Stay(Login(stage), action)
}

/// Refuses the login: the client's last answer, with this sequence id. `why` is what else there is
/// to say.
fn deny(denial: Denial, why: &str, sequence: u8, out: &mut Outbox) -> Next {
    out.put_err(sequence, &denial.answer(why));
    Next::Denied(denial, Move::outbox_to(Side::Client).into())
}

/// What follows the client's response, which may not have come: nobody reads before having said it.
fn after_response(legs: Legs, client: &[u8]) -> u8 {
    let awaited = first_sequence(legs);
    FrameHeader::parse(client).map_or(awaited, |header| header.sequence).wrapping_add(1)
}

/// The sequence id of the client's response, on the leg that it comes by.
fn first_sequence(legs: Legs) -> u8 {
    match legs.client {
        Leg::Network | Leg::Unix => FIRST_SEQUENCE,
        Leg::Tls => FIRST_SEQUENCE.wrapping_add(1),
    }
}

/// The sequence id of what follows a greeting.
pub(crate) const FIRST_SEQUENCE: u8 = 1;

/// A packet of the connection phase that is too long.
pub(crate) struct TooLong;

/// The whole first frame and its length with the header. None: more bytes are needed.
pub(crate) fn login_frame(bytes: &[u8]) -> Option<Result<(usize, &[u8]), TooLong>> {
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
