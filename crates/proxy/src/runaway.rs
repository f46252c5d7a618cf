//! Statements that take more than their rule lets them (`runaway`): when that is, and the KILL.
//!
//! The clock begins when the last byte of the statement has gone to the server and the first of the
//! answer is waited for; so time in the queue does not count. It is the session's own task that notices,
//! kills and waits for the server's word on it. Nothing of the session goes on meanwhile: no further
//! statement can have begun when the KILL arrives, and the connection is open, so that its id is nobody
//! else's.
//!
//! What is left is a KILL that crosses the statement's own end. A server that has just ended it would
//! end the next one instead, so what may still stand there is cleared away first
//! ([`session::Session::handle_stale_kill`]). If nobody knows whether the KILL has been sent, nothing
//! can be cleared away: then the session is closed when the statement has ended.
//!
//! Before the KILL the server is asked what the session does: [`killing`].

mod killing;

use std::time::Duration;

use admission::Mode;
use policy::{Rule, Runaway, RunawayAction};
use tokio::time::Instant;

pub(crate) use self::killing::{Chase, Killed, NotKilled, OwnSession};

/// What commits is looked at again after this.
pub(crate) const COMMIT_POLL: Duration = Duration::from_millis(200);

/// What had ended, and has not been answered, is looked at again after this.
const ENDED_POLL: Duration = Duration::from_secs(1);

/// What goes on behind its KILL is chased so soon ([`Chase`]), so often.
const CHASE_AFTER: Duration = Duration::from_millis(100);
const CHASES: u32 = 5;

/// From a KILL that the server has not taken to the next one, and from one chase to the next when the
/// first few were in vain. It may have had no connection left for it: a busy server is what runaway
/// statements make.
const RETRY: Duration = Duration::from_secs(5);

/// Reasons why one statement was not killed that are told: what differs each time is no news.
const TOLD_REASONS_MAX: usize = 4;

/// What the statement under way may still take.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// When the server had the statement. None: it has not, or no rule limits it.
    began: Option<Instant>,
    /// When it has run for too long.
    due: Option<Instant>,
    /// Bytes of its answer that have come, and may.
    bytes: u64,
    bytes_most: Option<u64>,
    /// Rows that its answer may have.
    rows_most: Option<u64>,
    /// How often it has been killed, and the server has said so.
    kills: u32,
    /// It may have been killed.
    doubtful: bool,
    /// That it commits has been counted.
    left_alone: bool,
    /// That it was not killed has been counted.
    failed: bool,
    /// Why it was not, as far as that has been told.
    told_reasons: Vec<Box<str>>,
    /// What it took too much of.
    excess: Option<Excess>,
    /// What was done with it therefore.
    done: Option<RunawayAction>,
    /// The file may limit it otherwise by now.
    edited: bool,
    /// What a newer file than the one that it was judged by lets it take, once there is one.
    newer: Option<Box<NewerLimits>>,
}

/// What a newer file lets a statement take; `None`: as much as it likes.
#[derive(Clone, Copy, Debug)]
struct NewerLimits(Option<Runaway>);

/// How far a statement has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoFar {
    /// Rows of its answer.
    pub(crate) rows: u64,
    /// For how long it was at the server, if nobody limited that: its clock begins then. `None`: not
    /// all of it is there, or its clock is kept.
    pub(crate) worked: Option<Duration>,
}

/// What a statement took too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Elapsed,
    BytesSent,
    RowsSent,
}

impl Excess {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Elapsed => "elapsed",
            Self::BytesSent => "bytes_sent",
            Self::RowsSent => "rows_sent",
        }
    }

    /// Whether its answer has too much, and not less for being over by now.
    pub(crate) fn is_in_answer(self) -> bool {
        match self {
            Self::Elapsed => false,
            Self::BytesSent | Self::RowsSent => true,
        }
    }
}

/// What is left of a KILL when the statement is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    Nothing,
    /// It may stand at the server.
    Stale,
    /// It may still come.
    Doubtful,
}

/// `ER_QUERY_INTERRUPTED`: the KILL has met what it was for.
const ER_QUERY_INTERRUPTED: u16 = 1317;

impl Allowance {
    /// The server has the statement now, unless it had it before.
    pub(crate) fn begin(&mut self, runaway: Option<Runaway>, now: Instant) {
        if self.began.is_some() {
            return;
        }
        self.began = Some(now);
        let runaway = self.newer.as_ref().map_or(runaway, |newer| newer.0);
        let Some(Runaway { elapsed, bytes_sent, rows_sent, .. }) = runaway else { return };
        self.due = elapsed.and_then(|elapsed| now.checked_add(elapsed));
        self.bytes_most = bytes_sent;
        self.rows_most = rows_sent;
    }

    /// The server asks for a file: the clock stands until all of that is there, unless it has run out.
    pub(crate) fn await_file(&mut self) {
        if self.excess.is_none() {
            (self.began, self.due) = (None, None);
        }
    }

    /// The server has worked for so long on a file of which the end has not come. Whether that is too
    /// long: told once, and the clock has begun with it.
    pub(crate) fn overworks(&mut self, limit: Duration, worked: Duration, now: Instant) -> bool {
        let is_over = self.began.is_none() && worked >= limit;
        if is_over {
            self.began = now.checked_sub(worked).or(Some(now));
        }
        is_over
    }

    /// Its clock has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    /// When it has run for too long.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Bytes of the answer have come, which has so many rows now. What there is too much of.
    pub(crate) fn take(&mut self, len: usize, rows: u64) -> Option<Excess> {
        self.bytes = self.bytes.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        if self.rows_most.is_some_and(|most| rows > most) {
            return Some(Excess::RowsSent);
        }
        let is_over = self.bytes_most.is_some_and(|most| self.bytes > most);
        is_over.then(|| {
            self.bytes_most = None;
            Excess::BytesSent
        })
    }

    /// The file may limit it otherwise by now, which is looked at when the server is waited for.
    pub(crate) fn note_edit(&mut self) {
        self.edited = true;
    }

    /// Whether that is to be looked at.
    pub(crate) fn is_edited(&self) -> bool {
        self.edited
    }

    /// The same: told once.
    pub(crate) fn take_edit(&mut self) -> bool {
        std::mem::take(&mut self.edited)
    }

    /// What it may take by a newer file, if one limits it otherwise.
    pub(crate) fn newer(&self) -> Option<Option<Runaway>> {
        self.newer.as_ref().map(|newer| newer.0)
    }

    /// A newer file lets it take so much, and says what is done with more. What it has too much of in
    /// its answer already; for what it has taken too long over, it is due.
    ///
    /// What has been done with it is not done again; but what was logged may have to end now.
    pub(crate) fn follow(&mut self, is: Option<Runaway>, so_far: SoFar) -> Option<Excess> {
        let SoFar { rows, worked } = so_far;
        self.newer = Some(Box::new(NewerLimits(is)));
        let action = is.map(|is| is.action);
        let goes_further = match self.done {
            None => self.excess.is_none(),
            Some(RunawayAction::Log) => action != Some(RunawayAction::Log),
            Some(RunawayAction::Deprioritise) => action == Some(RunawayAction::Kill),
            Some(RunawayAction::Kill) => false,
        };
        if !goes_further {
            return None;
        }
        self.excess = None;
        (self.due, self.bytes_most, self.rows_most) = (None, None, None);
        if let (None, Some(worked)) = (self.began, worked) {
            self.began = Instant::now().checked_sub(worked);
        }
        let is = is?;
        let began = self.began?;
        self.due = is.elapsed.and_then(|elapsed| began.checked_add(elapsed));
        (self.bytes_most, self.rows_most) = (is.bytes_sent, is.rows_sent);
        self.take(0, rows)
    }

    /// Its rule's `runaway` is another by now, or none, which may give it more. Whether what it is over
    /// is no more than it may take now; it goes on by the new one then.
    pub(crate) fn is_spared(&mut self, (excess, rows): (Excess, u64), is: Option<Runaway>) -> bool {
        let Some(is) = is else {
            (self.due, self.bytes_most, self.rows_most) = (None, None, None);
            (self.excess, self.done) = (None, None);
            return true;
        };
        let due = is.elapsed.and_then(|elapsed| self.began?.checked_add(elapsed));
        let is_spared = match self.excess.unwrap_or(excess) {
            Excess::Elapsed => due.is_none_or(|due| due > Instant::now()),
            Excess::RowsSent => is.rows_sent.is_none_or(|most| rows <= most),
            Excess::BytesSent => is.bytes_sent.is_none_or(|most| self.bytes <= most),
        };
        if is_spared {
            (self.due, self.bytes_most, self.rows_most) = (due, is.bytes_sent, is.rows_sent);
            // What it is over by the new one is another matter, and so is a newer one.
            (self.excess, self.done) = (None, None);
        }
        is_spared
    }

    /// It is over its limits: told once. What it took too much of at first.
    pub(crate) fn exceed(&mut self, excess: Excess) -> Excess {
        self.due = None;
        self.bytes_most = None;
        self.rows_most = None;
        *self.excess.get_or_insert(excess)
    }

    /// This is done with it.
    pub(crate) fn note_done(&mut self, action: RunawayAction) {
        self.done = Some(action);
    }

    /// It had ended, or not begun, when it was to be killed.
    pub(crate) fn look_again(&mut self, now: Instant) {
        self.due = now.checked_add(ENDED_POLL);
    }

    /// There was nothing to kill any more, or it was not killed. Whether one of the two has been counted
    /// before, or that it was killed: who takes its answer slowly is still at it when it is looked at again.
    pub(crate) fn note_not_killed(&mut self) -> bool {
        std::mem::replace(&mut self.failed, true) || self.is_killed()
    }

    /// It was not killed for this reason. Whether that is to be told: each once, for it is tried again
    /// and again.
    pub(crate) fn note_reason(&mut self, reason: &str) -> bool {
        let is_news = self.told_reasons.len() < TOLD_REASONS_MAX
            && !self.told_reasons.iter().any(|told| **told == *reason);
        if is_news {
            self.told_reasons.push(reason.into());
        }
        is_news
    }

    /// It was not killed, and may be later.
    pub(crate) fn retry(&mut self, now: Instant) {
        self.due = now.checked_add(RETRY);
    }

    /// It commits. Whether this has been said before, or that it was killed.
    pub(crate) fn leave_alone(&mut self, now: Instant) -> bool {
        self.due = now.checked_add(COMMIT_POLL);
        std::mem::replace(&mut self.left_alone, true) || self.is_killed()
    }

    /// It has been killed. It is looked at again, for a procedure may go on behind a SLEEP that was
    /// ended. Whether it had been before.
    pub(crate) fn note_killed(&mut self, now: Instant) -> bool {
        self.due = now.checked_add(if self.kills < CHASES { CHASE_AFTER } else { RETRY });
        self.kills = self.kills.saturating_add(1);
        self.kills > 1
    }

    /// How it is to be killed: what goes on behind a KILL is chased.
    pub(crate) fn chase(&self) -> Chase {
        if self.kills > 0 { Chase::Yes } else { Chase::No }
    }

    /// The server has taken a KILL of it.
    pub(crate) fn is_killed(&self) -> bool {
        self.kills > 0
    }

    pub(crate) fn note_doubtful(&mut self) {
        self.doubtful = true;
    }

    /// How long it has been at the server.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }

    /// The statement is over, with this error of the server's.
    pub(crate) fn end(&mut self, errno: Option<u16>) -> Leftover {
        let Self { kills, doubtful, .. } = std::mem::take(self);
        // Of several, one has ended it, and the last may have come behind that.
        let is_met = kills == 1 && errno == Some(ER_QUERY_INTERRUPTED);
        if doubtful {
            Leftover::Doubtful
        } else if kills > 0 && !is_met {
            Leftover::Stale
        } else {
            Leftover::Nothing
        }
    }
}

/// What is to be done with a statement that is over its rule's limits.
pub(crate) fn action(rule: &Rule, runaway: Runaway) -> RunawayAction {
    match rule.mode {
        Mode::Enforce => runaway.action,
        Mode::Observe => RunawayAction::Log,
    }
}

#[cfg(test)]
mod tests;
