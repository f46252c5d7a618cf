//! What the server says first, and what of it the client is offered.

use policy::{ClientTlsMode, ClusterPolicy};
use sql::Server;
use wire::capability::Capabilities;
use wire::frame::HEADER_LEN;
use wire::handshake::{Greeting, ServerHello, parse_server_hello, patch_greeting};

use super::{Hello, Login, TLS, TooLong, compression, login_frame};
use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::session::{Phase, Session, close};

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
}

/// What a client is offered: what can be relayed of the server's, and Sluice's own TLS and compression.
fn offered(server: Capabilities, policy: &ClusterPolicy) -> Capabilities {
    let relayed = server.followable() | compression::offered(policy.client_compression);
    match policy.client_tls.mode {
        ClientTlsMode::Disabled => relayed,
        ClientTlsMode::Preferred | ClientTlsMode::Required => relayed | TLS,
    }
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
