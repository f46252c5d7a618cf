//! What the file says about TLS, on either leg of a connection.

use std::path::PathBuf;

/// TLS between clients and Sluice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// Whether it is offered or demanded.
    pub mode: ClientTlsMode,
    /// What Sluice shows to clients. `None`: a self-signed certificate made at start.
    pub identity: Option<TlsIdentity>,
    /// Clients must show a certificate that these certificates have signed.
    pub client_ca: Option<TlsFile>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
}

/// Whether clients are offered TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientTlsMode {
    /// It is not offered.
    Disabled,
    /// It is offered; clients may come without.
    Preferred,
    /// Clients that come without over the network are refused.
    Required,
}

/// TLS between Sluice and the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTls {
    /// When it is used, and what is demanded of the server's certificate.
    pub mode: BackendTlsMode,
    /// The certificates that may have signed the server's.
    pub ca: Option<TlsFile>,
    /// What Sluice shows to servers that ask.
    pub identity: Option<TlsIdentity>,
    /// The name that the certificate must have, instead of the host in `primary`.
    pub server_name: Option<String>,
}

/// When the servers are spoken to over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendTlsMode {
    /// Never.
    Disabled,
    /// When the client came with TLS, and then it must be: a server without it is refused.
    AsClient,
    /// Whenever the server offers it.
    Preferred,
    /// Always; the certificate is not looked at.
    Required,
    /// Always; the certificate must be signed by `ca`.
    VerifyCa,
    /// Always; the certificate must be signed by `ca` and name the server.
    VerifyIdentity,
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

/// A certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The certificate, and those between it and its root, in PEM.
    pub cert: TlsFile,
    /// Its key, in PEM.
    pub key: TlsFile,
}

/// A file of certificates or keys. It is read by the shell, which can say where its name stands.
#[derive(Debug, Clone)]
pub struct TlsFile {
    /// The file.
    pub path: PathBuf,
    /// The key of the configuration that names it, as in [`crate::Fault::path`].
    pub key: String,
    /// The line of the configuration.
    pub line: u32,
}

/// Where the name stands makes no difference to what is in force.
impl PartialEq for TlsFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for TlsFile {}

/// What is done with a server that sends clients elsewhere, past Sluice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirect {
    /// The client is not told.
    Strip,
    /// The login is refused.
    Deny,
}

impl ClientTls {
    /// The files it names.
    pub fn files(&self) -> impl Iterator<Item = &TlsFile> {
        let identity = self.identity.as_ref().map(TlsIdentity::files);
        identity.into_iter().flatten().chain(&self.client_ca)
    }
}

impl BackendTls {
    /// The files it names.
    pub fn files(&self) -> impl Iterator<Item = &TlsFile> {
        let identity = self.identity.as_ref().map(TlsIdentity::files);
        identity.into_iter().flatten().chain(&self.ca)
    }
}

impl TlsIdentity {
    /// Both.
    #[must_use]
    pub fn files(&self) -> [&TlsFile; 2] {
        [&self.cert, &self.key]
    }
}

impl BackendTlsMode {
    /// As the file writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::AsClient => "as_client",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify_ca",
            Self::VerifyIdentity => "verify_identity",
        }
    }
}
