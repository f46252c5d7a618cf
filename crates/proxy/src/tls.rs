//! TLS on both legs: certificates read from files, made when there are none, and read again when they change.
//!
//! What is in force is one [`Material`], swapped as a whole. It is made anew when the settings change, and when
//! the content of a file does: the files are compared every second, because certificates are renewed by
//! programs that know nothing of Sluice. A file that cannot be used changes nothing and is logged; a
//! certificate that was replaced before its key is one, until its key follows.

mod accept;
mod connect;
mod files;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use policy::{BackendTls, ClientTls, ClusterPolicy, Config, Fault, ServerAddress, TlsFile};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use self::accept::SelfSigned;

/// How often files are compared. A certificate is renewed weeks before it has to be.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

/// One cluster's certificates and what is made of them.
pub(crate) struct TlsStore {
    in_force: ArcSwap<Material>,
    /// The settings that are to be in force.
    settings: Mutex<Settings>,
    /// Shown when no certificate is named. The same for as long as the process lives.
    self_signed: OnceLock<Option<SelfSigned>>,
}

/// What connections need. What is missing could not be made, and its handshakes fail.
#[derive(Debug, Default)]
struct Material {
    accept: Option<Arc<ServerConfig>>,
    connect: Option<Arc<ClientConfig>>,
    /// Of what it was made.
    digest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    client: ClientTls,
    backend: BackendTls,
}

/// What is wrong with a file that the configuration names.
#[derive(Debug)]
pub(crate) struct FileFault {
    key: String,
    line: u32,
    message: String,
}

impl FileFault {
    fn new(file: &TlsFile, why: impl fmt::Display) -> Self {
        let message = format!("{}: {why}", file.path.display());
        Self { key: file.key.clone(), line: file.line, message }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl TlsStore {
    /// Reads the files that `policy` names.
    pub(crate) fn new(policy: &ClusterPolicy) -> Self {
        let settings = Settings::of(policy);
        let store = Self {
            in_force: ArcSwap::default(),
            settings: Mutex::new(settings.clone()),
            self_signed: OnceLock::new(),
        };
        store.renew(&settings, settings.digest(), &policy.name);
        store
    }

    /// For the handshake with a client.
    pub(crate) fn server_config(&self) -> io::Result<Arc<ServerConfig>> {
        self.in_force.load().accept.clone().ok_or_else(no_certificates)
    }

    /// For the handshake with a server.
    pub(crate) fn client_config(&self) -> io::Result<Arc<ClientConfig>> {
        self.in_force.load().connect.clone().ok_or_else(no_certificates)
    }

    /// The settings may have changed.
    pub(crate) fn apply(&self, policy: &ClusterPolicy) {
        let settings = Settings::of(policy);
        let before = std::mem::replace(&mut *self.settings.lock(), settings.clone());
        if before != settings {
            self.renew(&settings, settings.digest(), &policy.name);
        }
    }

    /// Reads files again when they change. Runs until the task is dropped.
    pub(crate) async fn watch(&self, cluster: &str) {
        let mut looked_at = self.in_force.load().digest;
        loop {
            tokio::time::sleep(COMPARE_INTERVAL).await;
            let settings = self.settings.lock().clone();
            if settings.files().next().is_none() {
                continue;
            }
            let reading = settings.clone();
            let digest = tokio::task::spawn_blocking(move || reading.digest()).await;
            let Ok(digest) = digest else { return };
            if digest != looked_at && digest != self.in_force.load().digest {
                self.renew(&settings, digest, cluster);
            }
            looked_at = digest;
        }
    }

    /// Puts what the files say now in force, or logs why that cannot be.
    fn renew(&self, settings: &Settings, digest: u64, cluster: &str) {
        let before = self.in_force.load_full();
        let connect = connect::config(&settings.backend);
        let own = || self.self_signed(cluster);
        let accept = accept::config(&settings.client, own);
        for fault in [connect.as_ref().err(), accept.as_ref().err()].into_iter().flatten() {
            tracing::error!(%cluster, %fault, "certificates cannot be used; what was in force stays");
        }
        let is_good = connect.is_ok() && accept.is_ok();
        let renewed = Material {
            accept: accept.ok().or_else(|| before.accept.clone()),
            connect: connect.ok().or_else(|| before.connect.clone()),
            digest: if is_good { digest } else { before.digest },
        };
        self.in_force.store(Arc::new(renewed));
        if is_good && settings.files().next().is_some() {
            tracing::info!(%cluster, "certificates are in force");
        }
    }

    fn self_signed(&self, cluster: &str) -> Option<&SelfSigned> {
        self.self_signed.get_or_init(|| SelfSigned::make(cluster)).as_ref()
    }
}

impl fmt::Debug for TlsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStore").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Settings {
    fn of(policy: &ClusterPolicy) -> Self {
        Self { client: policy.client_tls.clone(), backend: policy.backend_tls.clone() }
    }

    fn files(&self) -> impl Iterator<Item = &TlsFile> {
        self.client.files().chain(self.backend.files())
    }

    /// Changes with the files and with what is in them; an unreadable file is a content of its own.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for file in self.files() {
            file.path.hash(&mut hasher);
            std::fs::read(&file.path).map_err(|error| error.kind()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// What is wrong with the files that a configuration names, each where it is named.
pub(crate) fn faults(config: &Config) -> Vec<Fault> {
    let mut faults = Vec::new();
    for policy in &config.clusters {
        let connect = connect::config(&policy.backend_tls).err();
        let accept = accept::check(&policy.client_tls).err();
        let found = [connect, accept].into_iter().flatten();
        faults.extend(found.map(|fault| Fault {
            path: fault.key,
            line: fault.line,
            message: fault.message,
        }));
    }
    faults.sort_by_key(|fault| fault.line);
    faults
}

/// The name that the certificate of the server at `address` must have; asked for in its handshake.
pub(crate) fn server_name(settings: &BackendTls, address: &str) -> ServerName<'static> {
    let host = match (&settings.server_name, ServerAddress::of(address)) {
        (Some(name), _) => name.as_str(),
        (None, ServerAddress::Network(address)) => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            host.trim_start_matches('[').trim_end_matches(']')
        }
        (None, ServerAddress::Unix(_)) => LOCAL_NAME,
    };
    let named = ServerName::try_from(host.to_owned());
    // A name that no certificate can have; only the modes that do not look at names get on with it.
    named.unwrap_or_else(|_| ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()))
}

/// The name of a server on this machine.
const LOCAL_NAME: &str = "localhost";

fn no_certificates() -> io::Error {
    io::Error::other("there are no usable certificates; the log of Sluice tells why")
}

#[cfg(test)]
mod tests;
