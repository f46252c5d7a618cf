//! From one relaying thread to another, between two reads.

use std::sync::Arc;

use super::Connection;
use super::serving::Begun;
use crate::workers::{Affinity, Load};

impl Connection {
    /// On which thread it is to go on, if not on this: both sockets are that one's then.
    pub(super) fn moves_to(&mut self) -> Option<usize> {
        let to = self.affinity.moves_to()?;
        // Others wait for what this one does next.
        if self.cut_over.is_some() {
            return None;
        }
        let Self { client, backend, .. } = &*self;
        let both = || Ok((client.register_anew()?, backend.register_anew()?));
        let (client, backend) = self.affinity.at(to, both)?;
        self.client.go_on_over(client);
        self.backend.go_on_over(backend);
        // Its timer, and the socket of an upload under way, are the other runtime's.
        self.alarm = Default::default();
        self.upload_twin = None;
        self.shared.telemetry.relay_moved();
        Some(to)
    }
}

impl Begun {
    /// Where it lives.
    pub(crate) fn affinity(&self) -> &Affinity {
        &self.connection.affinity
    }

    /// It lives on this thread now.
    pub(crate) fn settle(&mut self, load: Arc<Load>) {
        self.connection.latency.move_to(load.index());
        self.connection.affinity.settle(load);
    }
}
