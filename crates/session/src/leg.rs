//! How safe a leg of the connection is from those who listen on the network, and the secrets on it.

use std::fmt;

use wire::capability::{CLIENT_SSL, Capabilities, PER_LEG};
use zeroize::Zeroizing;

/// What one leg of the connection runs over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leg {
    /// The network, in the clear.
    #[default]
    Network,
    /// TLS.
    Tls,
    /// A Unix socket, which servers and client libraries take for safe, except for sha256_password.
    Unix,
}

impl Leg {
    /// Whether plugins that trust their connection send a password as it is.
    pub(crate) fn is_safe(self) -> bool {
        match self {
            Self::Network => false,
            Self::Tls | Self::Unix => true,
        }
    }
}

/// Both legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Legs {
    pub(crate) client: Leg,
    pub(crate) backend: Leg,
}

impl Legs {
    /// Whether what the client says in confidence would be heard behind Sluice.
    pub(crate) fn exposes(self) -> bool {
        self.client.is_safe() && !self.backend.is_safe()
    }

    /// Whether the client hides from Sluice what the server wants to read.
    pub(crate) fn hides(self) -> bool {
        !self.client.is_safe() && self.backend.is_safe()
    }
}

/// What a leg in TLS says of itself.
pub(crate) const TLS: Capabilities = Capabilities { base: CLIENT_SSL, mariadb: 0 };

/// What the legs do not have in common.
pub(crate) const OF_EACH_LEG: Capabilities = Capabilities { base: PER_LEG, mariadb: 0 };

/// A password, in the clear or masked with a nonce. Overwritten when it is dropped, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Each byte XORed with the nonce's, over and over: how caching_sha2_password and
    /// sha256_password mask and unmask it. Without a nonce nothing is changed.
    pub(crate) fn masked(&self, nonce: &[u8]) -> Self {
        let mut bytes = self.0.clone();
        for (byte, mask) in bytes.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= mask;
        }
        Self(bytes)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}
