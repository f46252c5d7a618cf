//! Who has a connection to the door, and who gives way when there are too many.
//!
//! A client of the door must not use up the file descriptors that the proxy needs, and must not
//! keep a health check from being answered. So everybody is let in, and of those that are open at
//! most [`CONNECTIONS_MAX`], one makes room for the next. It is one of the network that has most of
//! them, so that a crowd gives way to itself; among these
//!
//! 1. where [`KEPT_MAX`] have been answered and stay for a next request: the one of them that came
//!    first and is not being served;
//! 2. the one that came first of those that were never answered;
//! 3. the one that came first of those that stay;
//! 4. the one that came first.
//!
//! So one that asks at once is answered at once, however many others ask in parts, not at all, or do
//! not read their answer; they end by their deadlines anyway. A client that keeps its connection
//! for its next check keeps its place before a crowd that does not ask.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::oneshot;

/// Scrapers, health checks, a few browsers, and tools that check.
pub(crate) const CONNECTIONS_MAX: usize = 256;

/// Connections that may stay for a next request while others come: the rest is for new ones.
const KEPT_MAX: usize = 192;

/// Connections in the order in which they came. Those that have ended are found when room is
/// needed.
#[derive(Debug, Default)]
pub(crate) struct Places {
    open: VecDeque<Open>,
}

/// What is kept of a connection.
#[derive(Debug)]
struct Open {
    network: Network,
    /// Closes the connection when it is dropped.
    close: oneshot::Sender<()>,
    stage: Arc<AtomicU8>,
}

/// A connection's right to be open.
#[derive(Debug)]
pub(crate) struct Place {
    /// Resolves when the place is needed.
    pub(crate) needed: oneshot::Receiver<()>,
    stage: Arc<AtomicU8>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its first request is not there yet, or not answered yet.
    New,
    /// An answer is on its way.
    Answering,
    /// It has been answered and stays for a next request.
    Kept,
    /// Its next request is not there yet, or not answered yet.
    AskingAgain,
}

/// Whom connections belong to: an address, of IPv6 what a host chooses its own address in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Network(IpAddr);

/// Whether one had to give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    Made,
}

impl Places {
    /// A place for a connection from `peer`.
    pub(crate) fn take(&mut self, peer: IpAddr) -> (Place, Room) {
        let room = self.make_room();
        let (close, needed) = oneshot::channel();
        let stage = Arc::new(AtomicU8::new(Stage::New.code()));
        let network = Network::of(peer);
        self.open.push_back(Open { network, close, stage: Arc::clone(&stage) });
        (Place { needed, stage }, room)
    }

    fn make_room(&mut self) -> Room {
        if self.open.len() < CONNECTIONS_MAX {
            return Room::Free;
        }
        self.open.retain(|open| !open.close.is_closed());
        if self.open.len() < CONNECTIONS_MAX {
            return Room::Free;
        }
        self.open.remove(self.gives_way());
        Room::Made
    }

    /// Who gives way to the next.
    fn gives_way(&self) -> usize {
        let mut held: HashMap<Network, usize> = HashMap::new();
        for open in &self.open {
            let count = held.entry(open.network).or_default();
            *count = count.saturating_add(1);
        }
        let most = held.values().copied().max().unwrap_or_default();
        let has_most = |open: &Open| held.get(&open.network) == Some(&most);
        let first = |stage: Stage| {
            self.open.iter().position(|open| open.stage() == stage && has_most(open))
        };
        let stays = |open: &&Open| match open.stage() {
            Stage::Kept | Stage::AskingAgain => true,
            Stage::New | Stage::Answering => false,
        };
        let kept = self.open.iter().filter(stays).count();
        let crowded = (kept >= KEPT_MAX).then(|| first(Stage::Kept)).flatten();
        crowded
            .or_else(|| first(Stage::New))
            .or_else(|| first(Stage::Kept))
            .or_else(|| self.open.iter().position(has_most))
            .unwrap_or_default()
    }
}

impl Open {
    fn stage(&self) -> Stage {
        Stage::of(self.stage.load(Ordering::Relaxed))
    }
}

impl Place {
    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.stage.load(Ordering::Relaxed))
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage.code(), Ordering::Relaxed);
    }
}

impl Stage {
    const fn code(self) -> u8 {
        match self {
            Self::New => 0,
            Self::Answering => 1,
            Self::Kept => 2,
            Self::AskingAgain => 3,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            0 => Self::New,
            1 => Self::Answering,
            2 => Self::Kept,
            // Nothing else is stored.
            _ => Self::AskingAgain,
        }
    }
}

impl Network {
    fn of(peer: IpAddr) -> Self {
        match peer.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                Self(Ipv6Addr::from_bits(address.to_bits() & HOST_BITS_OFF).into())
            }
        }
    }
}

/// A /64.
const HOST_BITS_OFF: u128 = !0 << 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_never_asked_the_first_gives_way() {
        let mut places = Places::default();
        let mut crowd: Vec<Place> = (0..CONNECTIONS_MAX).map(|_| place(&mut places, 1)).collect();
        crowd[0].enter(Stage::Kept);
        crowd[1].enter(Stage::Answering);
        let (_next, room) = places.take(address(1));
        assert_eq!(room, Room::Made);
        assert_eq!(gone(&mut crowd), [2]);
    }

    #[test]
    fn those_that_stay_leave_room_for_those_that_come() {
        let mut places = Places::default();
        let mut crowd: Vec<Place> = (0..CONNECTIONS_MAX).map(|_| place(&mut places, 1)).collect();
        for place in &crowd[10..] {
            place.enter(Stage::Kept);
        }
        crowd[10].enter(Stage::AskingAgain);
        let _next = places.take(address(1));
        assert_eq!(gone(&mut crowd), [11]);
    }

    #[test]
    fn a_crowd_gives_way_to_itself() {
        let mut places = Places::default();
        let mut other = place(&mut places, 2);
        let mut crowd: Vec<Place> = (1..CONNECTIONS_MAX).map(|_| place(&mut places, 1)).collect();
        for place in &crowd {
            place.enter(Stage::Answering);
        }
        let _next = places.take(address(3));
        assert_eq!(gone(&mut crowd), [0]);
        assert!(other.needed.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Empty));
        let host = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
    }

    #[test]
    fn whoever_has_left_makes_room() {
        let mut places = Places::default();
        let mut crowd: Vec<Place> = (0..CONNECTIONS_MAX).map(|_| place(&mut places, 1)).collect();
        crowd.pop();
        assert_eq!(places.take(address(1)).1, Room::Free);
        assert!(gone(&mut crowd).is_empty());
    }

    fn place(places: &mut Places, host: u8) -> Place {
        places.take(address(host)).0
    }

    fn address(host: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, host])
    }

    /// Which of them had to give way.
    fn gone(crowd: &mut [Place]) -> Vec<usize> {
        let closed = |place: &mut Place| {
            place.needed.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        (0..crowd.len()).filter(|index| closed(&mut crowd[*index])).collect()
    }
}
