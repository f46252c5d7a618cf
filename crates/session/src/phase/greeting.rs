//! What the server says first, and what of it the client is offered.

use policy::{BackendTlsMode, ClientTlsMode, ClusterPolicy};
use sql::Server;
use wire::capability::{CLIENT_SSL, Capabilities};
use wire::frame::FrameHeader;
use wire::handshake::{Greeting, ServerHello, parse_server_hello, patch_greeting};

use super::login::{Login, TooLong, login_frame};
use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::compression;
use crate::leg::{Leg, TLS};
use crate::negotiated::Negotiated;
use crate::outbox::Outbox;
use crate::server::ServerSide;

/// What follows the wait for the server's first packet.
#[derive(Debug)]
pub(crate) enum Next {
    /// It is not all there.
    Stay(Action),
    /// The client is greeted.
    Greeted(Login, Action),
    /// The server has said an error in place of its greeting.
    Refused(Action),
    Close(CloseReason),
}

/// Awaits the server's first packet: its greeting, or an error in its place.
pub(crate) fn next(
    negotiated: &mut Negotiated,
    server: &mut ServerSide,
    out: &mut Outbox,
    input: &Input<'_>,
) -> Next {
    let (len, payload) = match login_frame(input.backend) {
        Some(Ok(frame)) => frame,
        Some(Err(TooLong)) => return Next::Close(CloseReason::BackendProtocol),
        None => return Next::Stay(Action::Read(Reads::Backend)),
    };
    let greeting = match parse_server_hello(payload) {
        Ok(ServerHello::Greeting(greeting)) => greeting,
        Ok(ServerHello::Error(_)) => {
            return Next::Refused(Move::Forward { from: Side::Backend, len }.into());
        }
        Err(_) => return Next::Close(CloseReason::BackendProtocol),
    };
    let offered = offered(greeting.capabilities, negotiated.legs.backend, input.policy);
    negotiated.server_capabilities = greeting.capabilities;
    negotiated.connection_id = greeting.connection_id;
    negotiated.nonce = greeting.scramble.concat();
    negotiated.server = server_of(&greeting);
    server.mode.server = negotiated.server;
    out.begin_frame().extend_from_slice(payload);
    out.seal(FrameHeader::parse(input.backend).map_or(0, |header| header.sequence));
    match out.payload_mut().map(|payload| patch_greeting(payload, offered)) {
        Some(Ok(())) => Next::Greeted(
            Login::new(offered, greeting.auth_plugin),
            Move::Replace { from: Side::Backend, drop: len }.into(),
        ),
        Some(Err(_)) | None => Next::Close(CloseReason::BackendProtocol),
    }
}

/// What a client is offered: what can be relayed of the server's, and Sluice's own TLS and
/// compression.
fn offered(server: Capabilities, backend: Leg, policy: &ClusterPolicy) -> Capabilities {
    let relayed = server.followable() | compression::offered(policy.client_compression);
    let is_offered = match policy.client_tls.mode {
        ClientTlsMode::Disabled => false,
        ClientTlsMode::Preferred => !would_be_in_vain(server, backend, policy),
        ClientTlsMode::Required => true,
    };
    if is_offered { relayed | TLS } else { relayed }
}

/// Whether a client would be refused for having taken the offer: both legs are to be alike, and the
/// server has no TLS. Many clients take TLS wherever it is offered and do without elsewhere, as they
/// do in front of that server itself. Where certificates were named TLS is meant to be there, and
/// the refusal says what it lacks.
fn would_be_in_vain(server: Capabilities, backend: Leg, policy: &ClusterPolicy) -> bool {
    let is_asked_for =
        policy.client_tls.identity.is_some() || policy.client_tls.client_ca.is_some();
    !is_asked_for
        && policy.backend_tls.mode == BackendTlsMode::AsClient
        && backend == Leg::Network
        && !server.has(CLIENT_SSL)
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
