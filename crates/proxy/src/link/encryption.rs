//! TLS of the probes' connections, as `backend_tls` says. No client came before them, so
//! `as_client` means `preferred`.
//!
//! The driver takes no verifier of others, so that this one is not the sessions' (`tls::connect`):
//! the chain is verified by the same library, ahead of the name. They differ in one thing: a
//! server's own certificate in `ca` that is marked as an authority is refused here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::{ClientIdentity, DriverError, Error, SslOpts};
use parking_lot::Mutex;
use policy::{BackendTls, BackendTlsMode, TlsFile};
use tokio::time::Instant;

/// The driver recognises a certificate that is right but for its name by this word in the error's
/// text, which has no such word any more. It does name the name that was asked for. A certificate
/// with another fault has another error, without the name.
const SKIPPED_NAME: &str = "NotValidForName";

/// When a probe's connection is encrypted.
#[derive(Clone, Debug)]
pub(super) enum Encryption {
    Never,
    /// When the server offers it.
    IfOffered(SslOpts, WithoutTls),
    Always(SslOpts),
}

/// The servers that were found to offer no TLS, and when. Each attempt is a connection without a login
/// there, which MariaDB writes into its error log. As many as the file names.
#[derive(Clone, Debug, Default)]
pub(super) struct WithoutTls(Arc<Mutex<BTreeMap<String, Instant>>>);

/// How soon it is tried again although nothing has happened: a server may begin to offer TLS while it
/// runs (ALTER INSTANCE RELOAD TLS).
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

impl Encryption {
    pub(super) fn of(settings: &BackendTls) -> Self {
        let options = SslOpts::default().with_client_identity(identity(settings));
        // Looked at by nobody, but there must be roots.
        let unverified = options.clone().with_danger_accept_invalid_certs(true);
        let roots = settings.ca.iter().map(path).map(Into::into).collect();
        let verified = options.with_disable_built_in_roots(true).with_root_certs(roots);
        match settings.mode {
            BackendTlsMode::Disabled => Self::Never,
            BackendTlsMode::AsClient | BackendTlsMode::Preferred => {
                Self::IfOffered(unverified, WithoutTls::default())
            }
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

    /// What to try first with this server.
    pub(super) fn options(&self, server: &str) -> Option<SslOpts> {
        match self {
            Self::Never => None,
            Self::IfOffered(_, without) if without.has(server) => None,
            Self::IfOffered(options, _) | Self::Always(options) => Some(options.clone()),
        }
    }

    /// Whether a login at this server that failed like this may be tried in the clear. If so, the next
    /// ones begin with that.
    pub(super) fn may_do_without(&self, server: &str, error: &Error) -> bool {
        let not_offered = matches!(error, Error::Driver(DriverError::NoClientSslFlagFromServer));
        match self {
            Self::IfOffered(_, without) if not_offered => {
                without.0.lock().insert(server.to_owned(), Instant::now());
                true
            }
            Self::IfOffered(..) | Self::Never | Self::Always(_) => false,
        }
    }

    /// This server may be another one, or has begun anew: TLS is tried first.
    pub(super) fn forget(&self, server: &str) {
        match self {
            Self::IfOffered(_, without) => {
                without.0.lock().remove(server);
            }
            Self::Never | Self::Always(_) => {}
        }
    }
}

impl WithoutTls {
    fn has(&self, server: &str) -> bool {
        let found = self.0.lock().get(server).copied();
        found.is_some_and(|found| found.elapsed() < TRIED_AGAIN_AFTER)
    }
}

fn identity(settings: &BackendTls) -> Option<ClientIdentity> {
    let identity = settings.identity.as_ref()?;
    Some(ClientIdentity::new(path(&identity.cert).into(), path(&identity.key).into()))
}

fn path(file: &TlsFile) -> std::path::PathBuf {
    file.path.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encryption(mode: BackendTlsMode) -> Encryption {
        Encryption::of(&BackendTls { mode, ca: None, identity: None, server_name: None })
    }

    fn not_offered() -> Error {
        Error::Driver(DriverError::NoClientSslFlagFromServer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_tls_is_asked_for_it_once_and_again_when_it_may_be_another() {
        let if_offered = encryption(BackendTlsMode::AsClient);
        let (at_a, at_b) = ("a:3306", "b:3306");
        assert!(if_offered.may_do_without(at_a, &not_offered()));
        // Of the same account.
        let links = [if_offered.clone(), if_offered];
        let tries = |server| links.each_ref().map(|link| link.options(server).is_some());
        assert_eq!((tries(at_a), tries(at_b)), ([false; 2], [true; 2]));
        links[0].forget(at_a);
        assert_eq!(tries(at_a), [true; 2]);
        assert!(links[1].may_do_without(at_a, &not_offered()));
        tokio::time::sleep(TRIED_AGAIN_AFTER).await;
        assert_eq!(tries(at_a), [true; 2]);
    }

    #[test]
    fn who_must_have_tls_does_not_do_without() {
        let required = encryption(BackendTlsMode::Required);
        assert!(!required.may_do_without("a:3306", &not_offered()));
        assert!(required.options("a:3306").is_some());
    }
}
