//! What the two ends and Sluice have agreed on for this connection.

use std::net::IpAddr;

use sql::{Charset, Server};
use wire::capability::Capabilities;

use crate::compression::Compressions;
use crate::leg::{Leg, Legs};

/// What the shell knows of a client before it has said anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientInfo {
    /// Its address; none for a Unix socket.
    pub address: Option<IpAddr>,
    /// What it came by.
    pub leg: Leg,
}

/// Filled in by the greeting and the login, read by all that follows.
#[derive(Debug, Default)]
pub(crate) struct Negotiated {
    /// What either leg runs over by now.
    pub(crate) legs: Legs,
    /// What either leg is compressed with when the login is over.
    pub(crate) compressions: Compressions,
    /// The nonce of the last authentication.
    pub(crate) nonce: Vec<u8>,
    /// Which server it is.
    pub(crate) server: Server,
    /// The backend's id of this connection; they count from one, so zero is none.
    pub(crate) connection_id: u32,
    /// The server's greeting has been answered, or is being: with a login, or a request for TLS.
    pub(crate) is_answered: bool,
    /// What the server said it can; what it cannot is never read from the client's packets.
    pub(crate) server_capabilities: Capabilities,
    /// What both ends agreed on.
    pub(crate) capabilities: Capabilities,
    /// What the login chose; a reset goes back to it, and the server does not say so.
    pub(crate) charset: Charset,
}

impl Negotiated {
    pub(crate) fn new(client: ClientInfo, backend: Leg) -> Self {
        Self { legs: Legs { client: client.leg, backend }, ..Self::default() }
    }
}
