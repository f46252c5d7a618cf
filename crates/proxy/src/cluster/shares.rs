//! What each app received of its fair share, by name.

use admission::AppShareKey;
use parking_lot::MutexGuard;

use super::Cluster;

/// Apps looked at in one piece: some tens of microseconds.
const LOOKED_AT_MAX: usize = 256;

/// What an app received of late while it contended with others.
#[derive(Debug, Clone, PartialEq)]
pub struct AppReceived {
    /// The app, as one of its clients named it.
    pub app: Box<[u8]>,
    /// Its fair share, in rows.
    pub entitled: f64,
    /// What it received, in rows.
    pub received: f64,
}

impl Cluster {
    /// What the apps that contend, or did within the last minute, received of their fair share.
    /// Nobody while starvation is not watched for.
    pub fn app_shares(&self) -> Vec<AppReceived> {
        let mut found = Vec::new();
        let mut after: Option<AppShareKey> = None;
        loop {
            let mut gatekeeper = self.gatekeeper.lock();
            let now = self.clock.now();
            let shares = gatekeeper.controller.app_shares_after(now, after, LOOKED_AT_MAX);
            let names = &gatekeeper.names;
            found.extend(shares.iter().filter_map(|share| {
                let app = names.find_app(share.app)?.into();
                Some(AppReceived { app, entitled: share.entitled, received: share.received })
            }));
            // Whoever waits for the lock comes before the next piece.
            MutexGuard::unlock_fair(gatekeeper);
            let Some(last) = shares.last() else { return found };
            after = Some((last.gate, last.rule, last.app));
        }
    }
}
