//! Who is connected: the way by which a KILL that the server accepted, or a drain, reaches a
//! session that logs in, is idle, waits in the queue, or runs.
//!
//! A client is entered when it is accepted, so that a drain overlooks nobody, and can be found by
//! the backend's connection id once it has logged in.

mod control;
mod mailbox;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;

pub use self::control::Control;
pub use self::mailbox::Inbox;
use self::mailbox::{Outbox, Told, mailbox};

/// The sessions of one cluster.
#[derive(Default)]
pub struct Registry {
    next: AtomicU64,
    told: Arc<Told>,
    everybody: DashMap<u64, Outbox>,
    /// Those who have logged in.
    by_connection_id: DashMap<u32, Outbox>,
    /// Those who have a place below `max_connections`.
    seated: AtomicU32,
    draining: AtomicBool,
    /// Of a drain: nobody waits any more.
    refusing: AtomicBool,
    /// Those who have logged in and are gone.
    departed: Mutex<Departed>,
}

/// The server's ids of connections that are over here. The server may still be at their last
/// statements.
#[derive(Debug, Default)]
struct Departed {
    newest: VecDeque<u32>,
    /// How many there have ever been.
    count: u64,
}

/// Ids that are kept of those who are gone: 256 KiB, and some thousand a second between two looks.
const DEPARTED_MAX: usize = 65_536;

/// Who has come through Sluice, by the server's ids of the connections.
#[derive(Debug)]
pub(crate) struct Relayed {
    /// Those who are here, and those who have left since it was last asked.
    pub(crate) ids: HashSet<u64>,
    /// How many have ever left.
    pub(crate) departed: u64,
    /// More have left since than are remembered.
    pub(crate) forgets: bool,
}

impl Registry {
    /// Enters a client that has just been accepted; it is listed until the returned registration is
    /// dropped.
    pub fn enter(self: &Arc<Self>) -> (Registration, Inbox) {
        let (outbox, inbox) = mailbox(&self.told);
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.everybody.insert(key, outbox.clone());
        if self.draining.load(Ordering::SeqCst) {
            // It came too late for being told with the others.
            outbox.tell(Control::Drain);
        }
        if self.refusing.load(Ordering::SeqCst) {
            outbox.tell(Control::Refuse);
        }
        let registry = self.clone();
        (Registration { registry, key, outbox, connection_id: None, is_seated: false }, inbox)
    }

    /// Everybody who is here and has logged in, and who has left since `departed` had.
    pub(crate) fn relayed(&self, departed: u64) -> Relayed {
        // Who leaves meanwhile is found among the departed.
        let here: Vec<u32> = self.by_connection_id.iter().map(|entry| *entry.key()).collect();
        let gone = self.departed.lock();
        let since = usize::try_from(gone.count.saturating_sub(departed)).unwrap_or(usize::MAX);
        let lately = gone.newest.iter().rev().take(since);
        Relayed {
            ids: here.iter().chain(lately).map(|id| u64::from(*id)).collect(),
            departed: gone.count,
            forgets: since > gone.newest.len(),
        }
    }

    /// How many have logged in and are gone.
    pub(crate) fn departed(&self) -> u64 {
        self.departed.lock().count
    }

    /// Tells one session. False when there is none with that id here.
    pub fn tell(&self, connection_id: u32, control: Control) -> bool {
        let outbox = self.by_connection_id.get(&connection_id);
        outbox.inspect(|outbox| outbox.tell(control)).is_some()
    }

    /// Tells every session to leave, and those who are still to come.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.tell_all(Control::Drain);
    }

    /// Tells every session that nobody waits any more, and those who are still to come.
    pub fn refuse_waiters(&self) {
        self.refusing.store(true, Ordering::SeqCst);
        self.tell_all(Control::Refuse);
    }

    /// Tells every session.
    pub fn tell_all(&self, control: Control) {
        for session in &self.everybody {
            session.tell(control);
        }
    }

    /// How many clients there are, those who log in included.
    pub fn len(&self) -> usize {
        self.everybody.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.everybody.is_empty()
    }
}

/// A client's place in the [`Registry`].
pub struct Registration {
    registry: Arc<Registry>,
    key: u64,
    outbox: Outbox,
    connection_id: Option<u32>,
    is_seated: bool,
}

impl Registration {
    /// Takes one of `max` places. False when there is none left.
    pub fn take_seat(&mut self, max: u32) -> bool {
        let next = |seated: u32| (seated < max).then(|| seated.saturating_add(1));
        let seated = &self.registry.seated;
        self.is_seated =
            self.is_seated || seated.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok();
        self.is_seated
    }

    /// From now on a KILL finds it by the backend's connection id.
    pub fn log_in(&mut self, connection_id: u32) {
        self.connection_id = Some(connection_id);
        self.registry.by_connection_id.insert(connection_id, self.outbox.clone());
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.is_seated {
            self.registry.seated.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(connection_id) = self.connection_id {
            let mut departed = self.registry.departed.lock();
            departed.count = departed.count.saturating_add(1);
            if departed.newest.len() >= DEPARTED_MAX {
                departed.newest.pop_front();
            }
            departed.newest.push_back(connection_id);
            drop(departed);
            // A restarted server counts from one again: a later session may stand here under the
            // same id.
            self.registry
                .by_connection_id
                .remove_if(&connection_id, |_, outbox| outbox.is_of(&self.outbox));
        }
        self.registry.everybody.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn heard(inbox: &mut Inbox) -> Option<Control> {
        match inbox.poll_told(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(control) => Some(control),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_client_is_told_of_a_drain_whether_it_came_before_or_after() {
        let registry = Arc::new(Registry::default());
        let (_before, mut told) = registry.enter();
        registry.drain();
        assert_eq!(heard(&mut told), Some(Control::Drain));
        registry.refuse_waiters();
        assert_eq!(heard(&mut told), Some(Control::Refuse));
        let (_after, mut told) = registry.enter();
        assert_eq!(heard(&mut told), Some(Control::Refuse));
        assert_eq!(heard(&mut told), Some(Control::Drain));
    }

    #[test]
    fn a_seat_is_free_again_when_its_client_has_left() {
        let registry = Arc::new(Registry::default());
        let (mut first, _told) = registry.enter();
        let (mut second, _told) = registry.enter();
        assert!(first.take_seat(1));
        assert!(first.take_seat(1), "it has one");
        assert!(!second.take_seat(1));
        drop(first);
        assert!(second.take_seat(1));
        drop(second);
        assert!(registry.is_empty());
    }

    #[test]
    fn a_kill_finds_a_session_by_its_connection_id_until_another_has_it() {
        let registry = Arc::new(Registry::default());
        let (mut old, mut told_old) = registry.enter();
        old.log_in(7);
        let (mut new, mut told_new) = registry.enter();
        new.log_in(7);
        drop(old);
        assert!(registry.tell(7, Control::Kill));
        assert_eq!(heard(&mut told_old), None);
        assert_eq!(heard(&mut told_new), Some(Control::Kill));
        drop(new);
        assert!(!registry.tell(7, Control::Kill));
    }

    #[test]
    fn who_has_come_through_is_known_when_it_has_left() {
        let registry = Arc::new(Registry::default());
        let (mut here, _told) = registry.enter();
        let (mut gone, _told) = registry.enter();
        let (never, _told) = registry.enter();
        here.log_in(7);
        gone.log_in(8);
        drop((gone, never));
        let relayed = registry.relayed(0);
        assert_eq!((relayed.ids, relayed.departed), ([7, 8].into(), 1));
        // Another session may have its id by now.
        assert_eq!(registry.relayed(1).ids, [7].into());
    }

    #[test]
    fn of_too_many_who_have_left_it_is_known_that_some_are_forgotten() {
        let registry = Arc::new(Registry::default());
        let max = u32::try_from(DEPARTED_MAX).unwrap();
        for id in 1..=max + 1 {
            let (mut client, _told) = registry.enter();
            client.log_in(id);
        }
        let relayed = registry.relayed(0);
        assert!(!relayed.ids.contains(&1) && relayed.ids.contains(&2) && relayed.forgets);
        assert!(!registry.relayed(1).forgets);
    }
}
