//! TLS of the probes' connections, as `backend_tls` says. No client came before them, so
//! `as_client` means `preferred`.
//!
//! The driver takes no verifier of others, so that this one is not the sessions' (`tls::connect`):
//! the chain is verified by the same library, ahead of the name. They differ in one thing: a
//! server's own certificate in `ca` that is marked as an authority is refused here.

use mysql_async::{ClientIdentity, DriverError, Error, SslOpts};
use policy::{BackendTls, BackendTlsMode, TlsFile};

/// The driver recognises a certificate that is right but for its name by this word in the error's
/// text, which has no such word any more. It does name the name that was asked for. A certificate
/// with another fault has another error, without the name.
const SKIPPED_NAME: &str = "NotValidForName";

/// When a probe's connection is encrypted.
#[derive(Clone, Debug)]
pub(super) enum Encryption {
    Never,
    /// When the server offers it.
    IfOffered(SslOpts),
    Always(SslOpts),
}

impl Encryption {
    pub(super) fn of(settings: &BackendTls) -> Self {
        let options = SslOpts::default().with_client_identity(identity(settings));
        // Looked at by nobody, but there must be roots.
        let unverified = options.clone().with_danger_accept_invalid_certs(true);
        let roots = settings.ca.iter().map(path).map(Into::into).collect();
        let verified = options.with_disable_built_in_roots(true).with_root_certs(roots);
        match settings.mode {
            BackendTlsMode::Disabled => Self::Never,
            BackendTlsMode::AsClient | BackendTlsMode::Preferred => Self::IfOffered(unverified),
            BackendTlsMode::Required => Self::Always(unverified),
            BackendTlsMode::VerifyCa => {
                let skipping = verified.with_danger_skip_domain_validation(true);
                Self::Always(skipping.with_danger_tls_hostname_override(Some(SKIPPED_NAME)))
            }
            BackendTlsMode::VerifyIdentity => {
                let name = settings.server_name.clone();
                Self::Always(verified.with_danger_tls_hostname_override(name))
            }
        }
    }

    /// What to try first.
    pub(super) fn options(&self) -> Option<SslOpts> {
        match self {
            Self::Never => None,
            Self::IfOffered(options) | Self::Always(options) => Some(options.clone()),
        }
    }

    /// Whether a login that failed like this may be tried in the clear.
    pub(super) fn may_do_without(&self, error: &Error) -> bool {
        let not_offered = matches!(error, Error::Driver(DriverError::NoClientSslFlagFromServer));
        match self {
            Self::IfOffered(_) => not_offered,
            Self::Never | Self::Always(_) => false,
        }
    }
}

fn identity(settings: &BackendTls) -> Option<ClientIdentity> {
    let identity = settings.identity.as_ref()?;
    Some(ClientIdentity::new(path(&identity.cert).into(), path(&identity.key).into()))
}

fn path(file: &TlsFile) -> std::path::PathBuf {
    file.path.clone()
}
