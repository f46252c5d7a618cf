//! TLS on both legs: certificates read from files, made when there are none, and read again when
//! they change.
//!
//! What is in force is one `Material`, swapped as a whole. It is made anew when the settings
//! change, and when the content of a file does: the files are compared every second, because
//! certificates are renewed by programs that know nothing of Sluice. A file that cannot be used
//! changes nothing and is logged; a certificate that was replaced before its key is one, until its
//! key follows.

mod accept;
mod connect;
mod door;
mod fault;
mod files;
mod held;
mod trust;
mod validity;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use policy::{
    BackendTls, BackendTlsMode, ClientTls, ClientTlsMode, ClusterPolicy, Config, Fault,
    NamedElsewhere, NamedLegs, ServerAddress, TlsFile,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use self::accept::SelfSigned;
pub use self::door::{DoorRenewal, DoorTls};
use self::fault::FileFault;
pub use self::held::LegView;
use self::held::{Held, Made};
pub use self::trust::Trust;
use crate::reload::NotApplied;

/// How often files are compared. A certificate is renewed weeks before it has to be.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

/// One cluster's certificates and what is made of them.
pub(crate) struct TlsStore {
    cluster: Arc<str>,
    in_force: ArcSwap<Material>,
    /// The settings that are to be in force.
    settings: Mutex<Settings>,
    /// Shown when no certificate is named. The same for as long as the process lives.
    self_signed: OnceLock<Option<SelfSigned>>,
}

/// What connections need.
#[derive(Debug)]
struct Material {
    accept: Held<ServerConfig>,
    connect: Held<ClientConfig>,
    /// Of the settings and files that were looked at last, whether they could be used or not.
    digest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    client: ClientTls,
    backend: BackendTls,
}

/// Settings, and what their files have made of them, which is nowhere in force yet.
#[must_use]
#[derive(Debug)]
pub(crate) struct Renewal {
    settings: Settings,
    accept: Result<Made<ServerConfig>, FileFault>,
    connect: Result<Made<ClientConfig>, FileFault>,
    digest: u64,
}

impl TlsStore {
    /// Reads the files that `policy` names.
    pub(crate) fn new(policy: &ClusterPolicy) -> Self {
        let settings = Settings::of(policy);
        let nothing = Material { accept: Held::default(), connect: Held::default(), digest: 0 };
        let store = Self {
            cluster: policy.name.clone(),
            in_force: ArcSwap::from_pointee(nothing),
            settings: Mutex::new(settings.clone()),
            self_signed: OnceLock::new(),
        };
        store.renew(store.renewal(settings));
        store
    }

    /// For the handshake with a client.
    pub(crate) fn server_config(&self) -> io::Result<Arc<ServerConfig>> {
        self.in_force.load().accept.config()
    }

    /// For the handshake with a server.
    pub(crate) fn client_config(&self) -> io::Result<Arc<ClientConfig>> {
        self.in_force.load().connect.config()
    }

    /// What the settings of `policy` make of their files; none where those are in force. It may take
    /// long, and changes nothing.
    ///
    /// # Errors
    /// When a leg's settings have changed and their files cannot be used: nothing could stay in force.
    pub(crate) fn read(&self, policy: &ClusterPolicy) -> Result<Option<Renewal>, NotApplied> {
        let settings = Settings::of(policy);
        let before = self.settings.lock().clone();
        if before == settings {
            return Ok(None);
        }
        let renewal = self.renewal(settings);
        let Renewal { settings, accept, connect, .. } = &renewal;
        let client = accept.as_ref().err().filter(|_| settings.client != before.client);
        let backend = connect.as_ref().err().filter(|_| settings.backend != before.backend);
        match client.or(backend) {
            Some(fault) => Err(NotApplied(fault.to_string())),
            None => Ok(Some(renewal)),
        }
    }

    /// Puts other settings in force, as they were read.
    pub(crate) fn apply(&self, renewal: Renewal) {
        let mut wanted = self.settings.lock();
        *wanted = renewal.settings.clone();
        self.put(renewal);
    }

    /// How the legs stand that use TLS at all.
    pub(crate) fn legs(&self) -> impl Iterator<Item = LegView> + use<> {
        let settings = self.settings.lock();
        let accepts = settings.client.mode != ClientTlsMode::Disabled;
        let connects = settings.backend.mode != BackendTlsMode::Disabled;
        drop(settings);
        let in_force = self.in_force.load();
        let client = accepts.then(|| in_force.accept.view("client"));
        let backend = connects.then(|| in_force.connect.view("backend"));
        client.into_iter().chain(backend)
    }

    /// Reads files again when they change. Runs until the task is dropped.
    pub(crate) async fn watch(&self) {
        loop {
            tokio::time::sleep(COMPARE_INTERVAL).await;
            let settings = self.settings.lock().clone();
            if settings.files().next().is_none() {
                continue;
            }
            let reading = settings.clone();
            let digest = tokio::task::spawn_blocking(move || reading.digest()).await;
            let Ok(digest) = digest else { return };
            if digest != self.in_force.load().digest {
                self.renew(self.renewal(settings));
            }
        }
    }

    /// What the settings make of what their files say now.
    fn renewal(&self, settings: Settings) -> Renewal {
        let digest = settings.digest();
        let connect = connect::config(&settings.backend);
        let accept = accept::config(&settings.client, || self.self_signed());
        Renewal { settings, accept, connect, digest }
    }

    /// Puts what the files said in force. What an edit has replaced while they were read stays replaced.
    fn renew(&self, renewal: Renewal) {
        let wanted = self.settings.lock();
        if *wanted == renewal.settings {
            self.put(renewal);
        }
    }

    /// What could not be made is logged. To be called with the settings locked.
    fn put(&self, renewal: Renewal) {
        let Renewal { settings, accept, connect, digest } = renewal;
        let cluster = &self.cluster;
        for fault in [connect.as_ref().err(), accept.as_ref().err()].into_iter().flatten() {
            tracing::error!(%cluster, %fault, "certificates cannot be used; what was in force \
                stays");
        }
        let is_good = connect.is_ok() && accept.is_ok();
        let before = self.in_force.load_full();
        let renewed = Material {
            accept: before.accept.renewed(accept),
            connect: before.connect.renewed(connect),
            digest,
        };
        self.in_force.store(Arc::new(renewed));
        if is_good && settings.files().next().is_some() {
            tracing::info!(%cluster, "certificates are in force");
        }
    }

    fn self_signed(&self) -> Option<&SelfSigned> {
        self.self_signed.get_or_init(|| SelfSigned::make(&self.cluster)).as_ref()
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
#[derive(Debug, Default)]
pub(crate) struct FileFaults {
    /// Settings that are new or have changed, so that there is nothing that could stay in force.
    pub(crate) fatal: Vec<Fault>,
    /// Settings of a leg that are in force already, with what the files said before.
    pub(crate) outlived: Vec<Fault>,
}

impl FileFaults {
    /// Of what a configuration names that is to follow `in_force`.
    pub(crate) fn of(named: &NamedElsewhere, in_force: Option<&Config>) -> Self {
        let mut faults = Self::default();
        if let Some(identity) = &named.admin_tls {
            let before = in_force.and_then(|config| config.admin.tls.as_ref());
            faults.add(door::check(identity), before == Some(identity));
        }
        for NamedLegs { cluster, client, backend } in &named.legs {
            let before = in_force.and_then(|config| config.cluster(cluster));
            let stays = before.is_some_and(|before| before.backend_tls == *backend);
            faults.add(connect::check(backend), stays);
            let stays = before.is_some_and(|before| before.client_tls == *client);
            faults.add(accept::check(client), stays);
        }
        faults.fatal.sort_by_key(|fault| fault.line);
        faults.outlived.sort_by_key(|fault| fault.line);
        faults
    }

    fn add(&mut self, found: Vec<FileFault>, stays: bool) {
        let faults = if stays { &mut self.outlived } else { &mut self.fatal };
        let found = found.into_iter();
        faults.extend(found.map(|FileFault { key, line, message }| Fault {
            path: key,
            line,
            message,
        }));
    }
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

#[cfg(test)]
mod tests;
