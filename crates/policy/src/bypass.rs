//! Who may write to the primary without having come through Sluice.

use std::net::IpAddr;
use std::time::Duration;

use crate::cidr::{Cidr, address_bits};
use crate::patterns::Patterns;

/// Whether sessions that go around Sluice are looked for, and which of them are meant to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bypass {
    /// How often it is looked. `None`: nobody looks.
    pub interval: Option<Duration>,
    pub(crate) ignore_users: Patterns,
    pub(crate) sluices: Vec<Cidr>,
}

impl Bypass {
    /// Whether sessions of this MySQL user are meant to go around.
    #[must_use]
    pub fn ignores(&self, user: &[u8]) -> bool {
        self.ignore_users.matches(user)
    }

    /// Whether the file says that another Sluice of the cluster runs there.
    #[must_use]
    pub fn is_sluice(&self, address: IpAddr) -> bool {
        let bits = address_bits(address.to_canonical());
        self.sluices.iter().any(|network| network.contains(bits))
    }
}
