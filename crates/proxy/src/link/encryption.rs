//! TLS of the probes' connections, as `backend_tls` says. No client came before them, so
//! `as_client` means `preferred`.
//!
//! The driver takes no verifier of others, so that this one is not the sessions' (`tls::connect`):
//! the chain is verified by the same library, ahead of the name. They differ in one thing: a
//! server's own certificate in `ca` that is marked as an authority is refused here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
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
/// there, which MariaDB writes into its error log.
#[derive(Clone, Debug, Default)]
pub(super) struct WithoutTls(Arc<Mutex<BTreeMap<Place, Instant>>>);

/// A server's name, and where it is if that was not looked up: a name leads elsewhere one day, and
/// what was found there says nothing of the server that it leads to then.
type Place = (String, Option<SocketAddr>);

/// How soon it is tried again although nothing has happened: a server may begin to offer TLS while it
/// runs (ALTER INSTANCE RELOAD TLS).
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

/// Where more were found than these within that time, all are asked again. A file names fewer servers.
const WITHOUT_TLS_MAX: usize = 4_096;

impl Encryption {
    pub(super) fn of(settings: &BackendTls, without: &WithoutTls) -> Self {
        let options = SslOpts::default().with_client_identity(identity(settings));
        // Looked at by nobody, but there must be roots.
        let unverified = options.clone().with_danger_accept_invalid_certs(true);
        let roots = settings.ca.iter().map(path).map(Into::into).collect();
        let verified = options.with_disable_built_in_roots(true).with_root_certs(roots);
        match settings.mode {
            BackendTlsMode::Disabled => Self::Never,
            BackendTlsMode::AsClient | BackendTlsMode::Preferred => {
                Self::IfOffered(unverified, without.clone())
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
    pub(super) fn options(&self, server: &str, at: Option<SocketAddr>) -> Option<SslOpts> {
        match self {
            Self::Never => None,
            Self::IfOffered(_, without) if without.has(server, at) => None,
            Self::IfOffered(options, _) | Self::Always(options) => Some(options.clone()),
        }
    }

    /// Whether a login at this server that failed like this may be tried in the clear. If so, the next
    /// ones begin with that.
    pub(super) fn may_do_without(
        &self,
        server: &str,
        at: Option<SocketAddr>,
        error: &Error,
    ) -> bool {
        let not_offered = matches!(error, Error::Driver(DriverError::NoClientSslFlagFromServer));
        match self {
            Self::IfOffered(_, without) if not_offered => {
                without.note(server, at);
                true
            }
            Self::IfOffered(..) | Self::Never | Self::Always(_) => false,
        }
    }

    /// This server may be another one, or has begun anew: TLS is tried first.
    pub(super) fn forget(&self, server: &str) {
        match self {
            Self::IfOffered(_, without) => without.forget(server),
            Self::Never | Self::Always(_) => {}
        }
    }
}

impl WithoutTls {
    fn has(&self, server: &str, at: Option<SocketAddr>) -> bool {
        let found = self.0.lock().get(&(server.to_owned(), at)).copied();
        found.is_some_and(|found| found.elapsed() < TRIED_AGAIN_AFTER)
    }

    fn note(&self, server: &str, at: Option<SocketAddr>) {
        let mut found = self.0.lock();
        found.retain(|_, found| found.elapsed() < TRIED_AGAIN_AFTER);
        if found.len() >= WITHOUT_TLS_MAX {
            found.clear();
        }
        found.insert((server.to_owned(), at), Instant::now());
    }

    fn forget(&self, server: &str) {
        self.0.lock().retain(|(name, _), _| name != server);
    }

    /// Every server is asked again.
    pub(super) fn forget_all(&self) {
        self.0.lock().clear();
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
    use policy::Probe;

    use super::super::{Link, OwnLinks, ProbeAccount};
    use super::*;

    const AT_A: &str = "a:3306";
    const AT_B: &str = "b:3306";

    fn encryption(mode: BackendTlsMode) -> Encryption {
        Encryption::of(&settings(mode), &WithoutTls::default())
    }

    fn settings(mode: BackendTlsMode) -> BackendTls {
        BackendTls { mode, ca: None, identity: None, server_name: None }
    }

    fn not_offered() -> Error {
        Error::Driver(DriverError::NoClientSslFlagFromServer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_tls_is_asked_for_it_once_and_again_when_it_may_be_another() {
        let if_offered = encryption(BackendTlsMode::AsClient);
        assert!(if_offered.may_do_without(AT_A, None, &not_offered()));
        // Of the same account.
        let links = [if_offered.clone(), if_offered];
        let tries = |server| links.each_ref().map(|link| link.options(server, None).is_some());
        assert_eq!((tries(AT_A), tries(AT_B)), ([false; 2], [true; 2]));
        links[0].forget(AT_A);
        assert_eq!(tries(AT_A), [true; 2]);
        assert!(links[1].may_do_without(AT_A, None, &not_offered()));
        tokio::time::sleep(TRIED_AGAIN_AFTER).await;
        assert_eq!(tries(AT_A), [true; 2]);
    }

    #[test]
    fn who_must_have_tls_does_not_do_without() {
        let required = encryption(BackendTlsMode::Required);
        assert!(!required.may_do_without(AT_A, None, &not_offered()));
        assert!(required.options(AT_A, None).is_some());
    }

    /// Those of a KILL, of an EXPLAIN, and of looks at what is left behind are new ones each time, and
    /// asked for TLS each time.
    #[test]
    fn what_one_connection_has_found_the_next_ones_of_its_cluster_know() {
        let file = "version: 1\nclusters:\n  c: { listen: 127.0.0.1:1, primary: a:3306, \
                    backend_tls: { mode: preferred }, probe: { user: s } }\n";
        let policy = policy::load(file).unwrap().clusters[0].clone();
        let probe: &Probe = policy.probe.as_ref().unwrap();
        let links = OwnLinks::default();
        let of_cluster = |links: &OwnLinks| {
            Link::new(AT_A, ProbeAccount::of(probe, &policy.backend_tls, links), TRIED_AGAIN_AFTER)
        };
        let tries =
            |link: &Link| link.account.encryption.options(&link.server, link.address).is_some();
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let by_name = of_cluster(&links);
        assert!(by_name.account.encryption.may_do_without(AT_A, None, &not_offered()));
        assert!(!tries(&of_cluster(&links)) && tries(&of_cluster(&OwnLinks::default())));
        // The name may have led to another server.
        let killing = of_cluster(&links).at(at(1));
        assert!(tries(&killing));
        assert!(killing.account.encryption.may_do_without(AT_A, killing.address, &not_offered()));
        assert!(!tries(&of_cluster(&links).at(at(1))) && tries(&of_cluster(&links).at(at(2))));
        links.try_tls();
        assert!(tries(&of_cluster(&links)) && tries(&of_cluster(&links).at(at(1))));
    }
}
