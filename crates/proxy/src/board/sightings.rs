//! Which server an address has led to, and when: what tells at which server a session is.
//!
//! A server's greeting does not say who it is, and no statement of Sluice's own may run in a client's
//! session to ask. But a new connection of Sluice's own is made to the same address every few seconds,
//! and asked. Looks that have found the same server, one behind the other, are a *run*; a session that
//! was connected within a run is at its server. An address that leads to one of several servers finds
//! the same one by chance for a while: three looks count, and twenty where it has led to and fro.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Looks that a run must have for being more than chance.
const LOOKS_MIN: u32 = 3;

/// The same where the address has led to another server, and back.
const LOOKS_MIN_OF_A_FLAPPING: u32 = 20;

/// Between two looks of a run at most: in a longer time an address may lead elsewhere and back.
const GAP_MAX: Duration = Duration::from_secs(30);

/// Runs that are kept: some failovers of a day. Of sessions that are older nothing is known.
const RUNS_MAX: usize = 64;

/// What was found at the addresses of a primary.
#[derive(Debug, Default)]
pub(crate) struct Sightings(Mutex<VecDeque<Run>>);

/// One server, found time and again behind an address of the file.
#[derive(Debug)]
struct Run {
    address: Arc<str>,
    identity: String,
    /// When its first look was over.
    since: Instant,
    /// When its last look began.
    until: Instant,
    looks: u32,
}

/// When a session came to be at its server.
#[derive(Clone, Debug)]
pub(crate) struct Birth {
    /// The primary's address in the file.
    pub(crate) address: Arc<str>,
    /// When it was connected to.
    pub(crate) connected: Instant,
    /// When it had let the client in, at the latest.
    pub(crate) answered: Instant,
}

impl Birth {
    /// For how long the session has been there.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.answered)
    }
}

/// Whether a session is at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsAt {
    Yes,
    /// It is at another one.
    No,
    Unknown,
}

impl Sightings {
    /// A connection to an address, made and asked between these, has come to this server.
    pub(crate) fn note(&self, address: &Arc<str>, identity: &str, began: Instant, ended: Instant) {
        let mut runs = self.0.lock();
        let last = runs.iter_mut().rfind(|run| run.address == *address);
        if let Some(run) = last.filter(|run| run.goes_on(identity, began)) {
            run.until = began;
            run.looks = run.looks.saturating_add(1);
            return;
        }
        if runs.len() >= RUNS_MAX {
            runs.pop_front();
        }
        let (address, identity) = (Arc::clone(address), identity.to_owned());
        runs.push_back(Run { address, identity, since: ended, until: began, looks: 1 });
    }

    /// Whether a session is at this server, which a connection of now has come to the same way.
    pub(crate) fn is_at(&self, session: &Birth, identity: &str, now: Instant) -> IsAt {
        let runs = self.0.lock();
        let of_address: Vec<&Run> =
            runs.iter().filter(|run| run.address == session.address).collect();
        let looks_min = if flaps(&of_address) { LOOKS_MIN_OF_A_FLAPPING } else { LOOKS_MIN };
        let began_in = of_address.iter().rposition(|run| run.since <= session.connected);
        let Some((at, run)) = began_in.and_then(|at| Some((at, of_address.get(at)?))) else {
            return IsAt::Unknown;
        };
        if run.looks < looks_min {
            return IsAt::Unknown;
        }
        let is_last = of_address.len() == at.saturating_add(1);
        if session.answered <= run.until {
            if run.identity == identity { IsAt::Yes } else { IsAt::No }
        } else if is_last && run.goes_on(identity, now) {
            // The connection of now is the look behind it.
            IsAt::Yes
        } else {
            IsAt::Unknown
        }
    }
}

impl Run {
    /// Whether a look that began then, and has found this server, is one of it.
    fn goes_on(&self, identity: &str, began: Instant) -> bool {
        self.identity == identity && began.saturating_duration_since(self.until) <= GAP_MAX
    }
}

/// Whether one of these was found, then another, and then that one again.
fn flaps(runs: &[&Run]) -> bool {
    let mut servers: Vec<&str> = runs.iter().map(|run| run.identity.as_str()).collect();
    servers.dedup();
    let changes = servers.len();
    servers.sort_unstable();
    servers.dedup();
    servers.len() < changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of a tenth of a second that began at these seconds.
    struct Looked {
        sightings: Sightings,
        start: Instant,
        address: Arc<str>,
    }

    impl Looked {
        fn at(looks: &[(u64, &str)]) -> Self {
            let start = Instant::now();
            let looked = Self { sightings: Sightings::default(), start, address: "db:3306".into() };
            for (second, found) in looks {
                let began = looked.second(*second);
                let ended = began + Duration::from_millis(100);
                looked.sightings.note(&looked.address, found, began, ended);
            }
            looked
        }

        fn second(&self, second: u64) -> Instant {
            self.start + Duration::from_secs(second)
        }

        /// Whether a session that began at that second is at the server, asked at another one.
        fn is_at(&self, began: u64, server: &str, now: u64) -> IsAt {
            let connected = self.second(began);
            let answered = connected + Duration::from_millis(300);
            let birth = Birth { address: self.address.clone(), connected, answered };
            self.sightings.is_at(&birth, server, self.second(now))
        }
    }

    #[test]
    fn a_session_is_at_the_server_that_was_found_before_it_and_behind_it() {
        let looked = Looked::at(&[(0, "a"), (5, "a"), (10, "a"), (15, "b"), (16, "b"), (17, "b")]);
        assert_eq!(looked.is_at(7, "a", 20), IsAt::Yes);
        assert_eq!(looked.is_at(7, "b", 20), IsAt::No, "the address leads to another one now");
        assert_eq!(looked.is_at(16, "b", 20), IsAt::Yes);
        assert_eq!(looked.is_at(16, "a", 20), IsAt::No, "the one of before has answered");
        for server in ["a", "b"] {
            assert_eq!(looked.is_at(12, server, 20), IsAt::Unknown, "between two servers");
            assert_eq!(looked.is_at(0, server, 20), IsAt::Unknown, "ahead of all looks");
        }
    }

    #[test]
    fn who_asks_is_the_last_look() {
        let looked = Looked::at(&[(0, "a"), (5, "a"), (10, "a")]);
        assert_eq!(looked.is_at(12, "a", 14), IsAt::Yes);
        assert_eq!(looked.is_at(12, "b", 14), IsAt::Unknown, "it has moved, who knows when");
        assert_eq!(looked.is_at(12, "a", 60), IsAt::Unknown, "it may have moved, and back");
    }

    #[test]
    fn few_looks_may_be_chance_and_of_an_address_that_leads_to_several_servers_many() {
        assert_eq!(Looked::at(&[(0, "a"), (5, "a")]).is_at(2, "a", 9), IsAt::Unknown);
        let mut looks = vec![(0, "a"), (1, "b"), (2, "a"), (3, "a"), (4, "a"), (5, "a")];
        assert_eq!(Looked::at(&looks).is_at(3, "a", 5), IsAt::Unknown);
        looks.extend((6..22).map(|second| (second, "a")));
        assert_eq!(Looked::at(&looks).is_at(3, "a", 22), IsAt::Yes);
    }

    #[test]
    fn a_gap_begins_a_run_anew_and_is_no_other_server() {
        let looks = [(0, "a"), (5, "a"), (10, "a"), (50, "a"), (55, "a"), (60, "a")];
        let looked = Looked::at(&looks);
        assert_eq!(looked.is_at(20, "a", 61), IsAt::Unknown);
        assert_eq!(looked.is_at(52, "a", 61), IsAt::Yes);
        assert_eq!(looked.is_at(3, "a", 61), IsAt::Yes);
    }

    #[test]
    fn what_another_address_leads_to_says_nothing_of_this_one() {
        let mut looked = Looked::at(&[(0, "a"), (5, "a"), (10, "a")]);
        looked.address = "other:3306".into();
        assert_eq!(looked.is_at(7, "a", 14), IsAt::Unknown);
    }
}
