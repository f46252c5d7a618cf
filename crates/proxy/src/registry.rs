//! Who is connected, by the backend's connection id: the way by which a KILL that the server accepted,
//! or a drain, reaches a session that is idle, waits in the queue, or runs.

use std::time::Instant;

use dashmap::DashMap;
use tokio::sync::mpsc;

/// What a session can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `KILL QUERY`: a statement that waits in the queue is answered with errno 1317, unless it came after
    /// the KILL had been sent: the killer's OK can be relayed before this is read.
    KillQuery {
        /// When the KILL was sent.
        sent: Instant,
    },
    /// `KILL`: the same, and the connection ends. (The server closes its side itself.)
    Kill,
    /// Drain: leave as soon as no transaction is open.
    Drain,
    /// The drain's time is over: answer with errno 1053 and close.
    Close,
}

/// Messages a session may have waiting. A session reads them whenever it waits for anything, and there
/// are only four kinds, so more than a few are repetitions that may be dropped.
const CONTROL_QUEUE_LEN: usize = 8;

/// The sessions of one cluster.
#[derive(Default)]
pub struct Registry {
    sessions: DashMap<u32, mpsc::Sender<Control>>,
}

impl Registry {
    /// Enters a session; it is listed until the returned entry is dropped.
    pub fn enter(&self, connection_id: u32) -> (Entry<'_>, mpsc::Receiver<Control>) {
        let (sender, receiver) = mpsc::channel(CONTROL_QUEUE_LEN);
        self.sessions.insert(connection_id, sender.clone());
        (Entry { registry: self, connection_id, sender }, receiver)
    }

    /// Tells one session. False when there is none with that id here.
    pub fn tell(&self, connection_id: u32, control: Control) -> bool {
        match self.sessions.get(&connection_id) {
            Some(sender) => sender.try_send(control).is_ok(),
            None => false,
        }
    }

    /// Tells every session.
    pub fn tell_all(&self, control: Control) {
        for session in &self.sessions {
            // A full queue already holds what the session needs to know: see CONTROL_QUEUE_LEN.
            session.try_send(control).ok();
        }
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

/// A session's place in the [`Registry`].
pub struct Entry<'r> {
    registry: &'r Registry,
    connection_id: u32,
    sender: mpsc::Sender<Control>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // A restarted server counts from one again: a later session may stand here under the same id.
        self.registry
            .sessions
            .remove_if(&self.connection_id, |_, sender| sender.same_channel(&self.sender));
    }
}
