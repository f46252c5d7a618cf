//! While nobody needs a signal, its servers are asked seldom. See [`crate::probe`].

use std::time::Duration;

use admission::MonoTime;
use policy::{Signal, SignalKind};
use tokio::sync::watch;

use super::{Cluster, Gatekeeper};
use crate::probe::Tempo;

impl Cluster {
    /// How often its servers are to be asked.
    pub(crate) fn tempo(&self) -> watch::Receiver<Tempo> {
        self.gatekeeper.lock().tempo.subscribe()
    }

    /// Has its servers asked seldom, until somebody needs a signal: unless somebody has within this
    /// time.
    pub(crate) fn hibernate(&self, after: Duration, since: MonoTime) {
        let policy = self.policy();
        let mut gatekeeper = self.gatekeeper.lock();
        let Gatekeeper { controller, tempo, .. } = &mut *gatekeeper;
        let needed = controller.last_gated_request().map_or(since, |at| at.max(since));
        if !controller.hibernates() && self.clock.now().saturating_since(needed) >= after {
            let asked = |signal: &&Signal| match signal.kind {
                SignalKind::Lag { .. } => !policy.replicas.is_empty(),
                SignalKind::Latency(_) => false,
                SignalKind::ThreadsRunning
                | SignalKind::HistoryListLength
                | SignalKind::Query(_)
                | SignalKind::Status(_) => true,
            };
            controller.hibernate(policy.signals.iter().filter(asked).map(|signal| signal.key));
            tempo.send_replace(Tempo::Hibernating);
        }
    }
}

impl Gatekeeper {
    /// Has the servers asked at once, if somebody has come who needs a signal.
    pub(super) fn wake_probes(&self) {
        if *self.tempo.borrow() == Tempo::Hibernating && !self.controller.hibernates() {
            self.tempo.send_replace(Tempo::Awake);
        }
    }
}
