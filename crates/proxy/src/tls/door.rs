//! The certificate of the HTTP side, held and renewed as those of the clusters are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use policy::{ClientTls, ClientTlsMode, TlsIdentity, TlsVersion};
use rustls::ServerConfig;

use super::fault::FileFault;
use super::held::{Held, LegView, Made};
use super::{COMPARE_INTERVAL, accept};
use crate::reload::NotApplied;

/// What the HTTP side shows over TLS, if it is to.
#[derive(Debug)]
pub struct DoorTls {
    in_force: ArcSwap<Shown>,
    /// Who renews does so alone.
    renewing: Mutex<()>,
}

/// What is in force.
#[derive(Debug)]
struct Shown {
    settings: Option<TlsIdentity>,
    accept: Held<ServerConfig>,
    /// Of the files that were looked at last, whether they could be used or not.
    digest: u64,
}

/// Settings, and what their files have made of them, which is nowhere in force yet.
#[must_use]
#[derive(Debug)]
pub struct DoorRenewal {
    settings: Option<TlsIdentity>,
    made: Option<Result<Made<ServerConfig>, FileFault>>,
    digest: u64,
}

impl DoorTls {
    /// Reads the files. `None`: TLS is not spoken.
    #[must_use]
    pub fn new(settings: Option<&TlsIdentity>) -> Self {
        let nothing = Shown { settings: None, accept: Held::default(), digest: 0 };
        let tls = Self { in_force: ArcSwap::from_pointee(nothing), renewing: Mutex::new(()) };
        tls.put(DoorRenewal::of(settings));
        tls
    }

    /// For handshakes. `None`: HTTP is spoken in the clear.
    ///
    /// # Errors
    /// When there has been no usable certificate yet.
    pub fn server_config(&self) -> Option<io::Result<Arc<ServerConfig>>> {
        let in_force = self.in_force.load();
        in_force.settings.as_ref().map(|_| in_force.accept.config())
    }

    /// How it stands, where TLS is spoken.
    #[must_use]
    pub fn view(&self) -> Option<LegView> {
        let in_force = self.in_force.load();
        in_force.settings.as_ref().map(|_| in_force.accept.view("admin"))
    }

    /// What other settings make of their files; none where those are in force. It may take long, and
    /// changes nothing.
    ///
    /// # Errors
    /// When their files cannot be used.
    pub fn read(&self, settings: Option<&TlsIdentity>) -> Result<Option<DoorRenewal>, NotApplied> {
        if self.in_force.load().settings.as_ref() == settings {
            return Ok(None);
        }
        let renewal = DoorRenewal::of(settings);
        match &renewal.made {
            Some(Err(fault)) => Err(NotApplied(fault.to_string())),
            Some(Ok(_)) | None => Ok(Some(renewal)),
        }
    }

    /// Puts other settings in force, as they were read.
    pub fn apply(&self, renewal: DoorRenewal) {
        let _alone = self.renewing.lock();
        self.put(renewal);
    }

    /// Reads files again when they change. Runs until the task is dropped.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(COMPARE_INTERVAL).await;
            let tls = Arc::clone(&self);
            if tokio::task::spawn_blocking(move || tls.compare()).await.is_err() {
                return;
            }
        }
    }

    fn compare(&self) {
        let in_force = self.in_force.load_full();
        let Some(settings) = &in_force.settings else { return };
        if digest(settings) == in_force.digest {
            return;
        }
        // Nobody waits for who reads: a file may hang.
        let renewal = DoorRenewal::of(Some(settings));
        let _alone = self.renewing.lock();
        // What an edit has replaced meanwhile stays replaced.
        if self.in_force.load().settings == in_force.settings {
            self.put(renewal);
        }
    }

    fn put(&self, renewal: DoorRenewal) {
        let DoorRenewal { settings, made, digest } = renewal;
        let before = self.in_force.load_full();
        let accept = match made {
            None => Held::default(),
            Some(made) => {
                match &made {
                    Ok(_) => tracing::info!("the certificate of the admin port is in force"),
                    Err(fault) => {
                        tracing::error!(%fault, "the certificate of the admin port cannot \
                        be used; what was in force stays")
                    }
                }
                before.accept.renewed(made)
            }
        };
        self.in_force.store(Arc::new(Shown { settings, accept, digest }));
    }
}

impl DoorRenewal {
    fn of(settings: Option<&TlsIdentity>) -> Self {
        let digest = settings.map(digest).unwrap_or_default();
        Self { settings: settings.cloned(), made: settings.map(config), digest }
    }
}

/// Whether the files can be used.
pub(super) fn check(identity: &TlsIdentity) -> Vec<FileFault> {
    accept::check(&settings(identity))
}

fn config(identity: &TlsIdentity) -> Result<Made<ServerConfig>, FileFault> {
    accept::config(&settings(identity), || None)
}

fn settings(identity: &TlsIdentity) -> ClientTls {
    ClientTls {
        mode: ClientTlsMode::Required,
        identity: Some(identity.clone()),
        client_ca: None,
        min_version: TlsVersion::V12,
    }
}

/// Changes with the files and with what is in them; an unreadable file is a content of its own.
fn digest(identity: &TlsIdentity) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in identity.files() {
        file.path.hash(&mut hasher);
        std::fs::read(&file.path).map_err(|error| error.kind()).hash(&mut hasher);
    }
    hasher.finish()
}
