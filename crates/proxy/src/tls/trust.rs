//! TLS with a Sluice's own admin port, from the command line.

use std::path::Path;
use std::sync::Arc;

use policy::{BackendTls, BackendTlsMode, TlsFile};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::{connect, server_name};

/// What is demanded of the admin port's certificate.
#[derive(Debug, Clone)]
pub struct Trust {
    /// For the handshake.
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must have.
    pub name: ServerName<'static>,
}

impl Trust {
    /// A certificate for the host of `authority` that one of those in `ca` has signed, or that is
    /// one of them.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn new(ca: &Path, authority: &str) -> Result<Self, String> {
        let file = TlsFile { path: ca.to_owned(), key: String::new(), line: 0 };
        let settings = BackendTls {
            mode: BackendTlsMode::VerifyIdentity,
            ca: Some(file),
            identity: None,
            server_name: None,
        };
        let made = connect::config(&settings).map_err(|fault| fault.message)?;
        Ok(Self { config: made.config, name: server_name(&settings, authority) })
    }
}
