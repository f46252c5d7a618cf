//! How often one thing may be told of in the log: the first few changes at once, and of something
//! that changes all the time a line now and then.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::MonoTime;
use parking_lot::Mutex;

/// Lines at once: a restart of a replica, or mending one that is stopped, makes four or five.
const LINES_MAX: u32 = 10;

/// One more line is allowed each time this has passed.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// The lines that are left for one thing.
#[derive(Debug)]
struct Lines {
    left: u32,
    earned_at: MonoTime,
}

impl Lines {
    fn new(now: MonoTime) -> Self {
        Self { left: LINES_MAX, earned_at: now }
    }

    fn earn(&mut self, now: MonoTime) {
        while self.left < LINES_MAX && now.saturating_since(self.earned_at) >= LINE_EVERY {
            self.left = self.left.saturating_add(1);
            self.earned_at = self.earned_at.saturating_add(LINE_EVERY);
        }
    }

    /// False: there is none.
    fn spend(&mut self, now: MonoTime) -> bool {
        if self.left == LINES_MAX {
            self.earned_at = now;
        }
        let has_one = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_one
    }
}

/// Something that happens again and again, to one client after another.
#[derive(Debug)]
pub struct Repeated {
    lines: Lines,
    untold: u64,
}

impl Repeated {
    /// It has not happened yet.
    #[must_use]
    pub fn new(now: MonoTime) -> Self {
        Self { lines: Lines::new(now), untold: 0 }
    }

    /// It has happened. If there is a line for it: how often it did since the last one without any.
    pub fn again(&mut self, now: MonoTime) -> Option<u64> {
        self.lines.earn(now);
        if self.lines.spend(now) {
            return Some(std::mem::take(&mut self.untold));
        }
        self.untold = self.untold.saturating_add(1);
        None
    }
}

/// The same for each of several reasons, so that one which comes all the time hides no other.
#[derive(Debug, Default)]
pub(crate) struct RepeatedBy(Mutex<BTreeMap<&'static str, Repeated>>);

impl RepeatedBy {
    /// It has happened for this reason. If there is a line for it: how often it did for this reason
    /// since the last one without any.
    pub(crate) fn again(&self, reason: &'static str, now: MonoTime) -> Option<u64> {
        self.0.lock().entry(reason).or_insert_with(|| Repeated::new(now)).again(now)
    }
}

/// What happens to one connection after another.
#[derive(Debug)]
pub(crate) struct TurnedAway {
    /// It cannot be accepted: there is no file for it.
    pub(crate) unaccepted: Mutex<Repeated>,
    /// There are as many as may be.
    pub(crate) full: Mutex<Repeated>,
    /// There is no server for it.
    pub(crate) unreached: Mutex<Repeated>,
    /// A trusted proxy did not say for whom it is.
    pub(crate) no_header: Mutex<Repeated>,
    /// It says for whom it is, and nobody trusts it.
    pub(crate) strange_header: Mutex<Repeated>,
    /// Its client does not speak TLS as agreed.
    pub(crate) client_tls: Mutex<Repeated>,
    /// Its server does not.
    pub(crate) backend_tls: Mutex<Repeated>,
    /// Its client, or its server, does not go on with the login.
    pub(crate) silent: Mutex<Repeated>,
    /// Sluice itself has refused its login.
    pub(crate) login: RepeatedBy,
    /// It has lost its server.
    pub(crate) backend: RepeatedBy,
    /// Nobody knows what became of its statement.
    pub(crate) left_behind: Mutex<Repeated>,
    /// Its statement ran away and was not killed.
    pub(crate) not_killed: Mutex<Repeated>,
    /// What is like its statement is in quarantine.
    pub(crate) quarantined: Mutex<Repeated>,
}

impl TurnedAway {
    pub(super) fn new(now: MonoTime) -> Self {
        let none = || Mutex::new(Repeated::new(now));
        Self {
            unaccepted: none(),
            full: none(),
            unreached: none(),
            no_header: none(),
            strange_header: none(),
            client_tls: none(),
            backend_tls: none(),
            silent: none(),
            login: RepeatedBy::default(),
            backend: RepeatedBy::default(),
            left_behind: none(),
            not_killed: none(),
            quarantined: none(),
        }
    }
}

/// The state of one thing, and what was told of it.
#[derive(Debug)]
pub(crate) struct Telling<S> {
    told: S,
    now: S,
    /// Changes that were seen since the last line.
    changes: u32,
    lines: Lines,
}

/// Something to tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct News<S> {
    pub(crate) before: S,
    /// Changes since the last line that had none of their own.
    pub(crate) untold: u32,
}

impl<S: Copy + PartialEq> Telling<S> {
    /// Nobody is told how it is at first.
    pub(crate) fn new(state: S, now: MonoTime) -> Self {
        Self { told: state, now: state, changes: 0, lines: Lines::new(now) }
    }

    /// It is in this state now. What there is to tell of that, if a line is left for it: also later,
    /// when one is again.
    pub(crate) fn look(&mut self, state: S, now: MonoTime) -> Option<News<S>> {
        self.lines.earn(now);
        if state != self.now {
            self.now = state;
            self.changes = self.changes.saturating_add(1);
        }
        if state == self.told || !self.lines.spend(now) {
            return None;
        }
        let before = std::mem::replace(&mut self.told, state);
        let untold = std::mem::take(&mut self.changes).saturating_sub(1);
        Some(News { before, untold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn a_change_is_told_at_once_and_once() {
        let mut telling = Telling::new("open", at(0));
        assert_eq!(telling.look("open", at(1)), None);
        assert_eq!(telling.look("shut", at(2)), Some(News { before: "open", untold: 0 }));
        assert_eq!(telling.look("shut", at(3)), None);
        assert_eq!(telling.look("open", at(3)), Some(News { before: "shut", untold: 0 }));
    }

    #[test]
    fn what_happens_a_thousand_times_a_second_has_a_line_now_and_then_that_counts_the_others() {
        let mut repeated = Repeated::new(at(0));
        let mut counts: Vec<u64> = Vec::new();
        for second in 1..=60 {
            counts.extend((0..1_000).filter_map(|_| repeated.again(at(second))));
        }
        assert_eq!(counts.len(), 11, "{counts:?}");
        assert!(counts.iter().take(10).all(|untold| *untold == 0), "{counts:?}");
        assert_eq!(counts.last(), Some(&(30 * 1_000 - 10)), "{counts:?}");
    }

    #[test]
    fn one_reason_that_comes_all_the_time_hides_no_other() {
        let repeated = RepeatedBy::default();
        let told = (0..1_000).filter(|_| repeated.again("tls_required", at(1)).is_some());
        assert_eq!(told.count(), 10);
        assert_eq!(repeated.again("server_tls_failed", at(1)), Some(0));
        assert_eq!(repeated.again("tls_required", at(40)), Some(990));
    }

    #[test]
    fn what_flaps_is_told_of_now_and_then_and_how_it_is_in_the_end() {
        let mut telling = Telling::new(false, at(0));
        let told =
            (1..=3_600).filter(|second| telling.look(second % 2 == 1, at(*second)).is_some());
        let lines = told.count();
        assert!((110..=135).contains(&lines), "{lines} lines in an hour");
        // It ends as it was told last, or there is a line for the end.
        let end = telling.look(true, at(3_700));
        assert!(end.is_none_or(|news| news.untold > 0));
        assert_eq!(telling.look(true, at(4_000)), None);
        assert!(telling.look(false, at(5_000)).is_some_and(|news| news.before));
    }
}
