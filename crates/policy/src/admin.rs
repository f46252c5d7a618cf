//! The HTTP side: where it listens, and who may change something there.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::secret::Secret;
use crate::tls::TlsIdentity;

/// The HTTP side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What it shows over TLS. `None`: it speaks HTTP in the clear.
    pub tls: Option<TlsIdentity>,
    /// Who may change something.
    pub access: AdminAccess,
}

/// Who may change something over HTTP, and by which names the door is called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdminAccess {
    /// Whoever shows one of these may.
    pub tokens: Vec<AdminToken>,
    /// Whether requests from this machine may without one. Only where `listen` is a loopback
    /// address.
    pub loopback_changes: bool,
    /// Whether the dialects of other throttlers may with GET, as their clients do.
    pub legacy_get: bool,
    /// Names that requests may call the door by, in lower case, beside addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// A token, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// Who shows it: the author of the rules that are made with it.
    pub name: Arc<str>,
    /// Where it comes from.
    pub secret: Secret,
}

/// The owner of the token that is named without one.
pub(crate) const ADMIN_TOKEN_NAME: &str = "admin";

/// Fewest characters of a token. Guessing goes over the network, so this is enough against it, and
/// it keeps an empty or half written file from being one.
pub const ADMIN_TOKEN_LEN_MIN: usize = 8;
