//! A drain: when a session leaves, and what its client is told then.
//!
//! A session that is wanted to leave does so when nothing is under way, no transaction is open, no
//! tables are locked and no cursor has rows left. Then there is the question whether the client has
//! something on its way.
//!
//! ```text
//!  idle ─ quiet for QUIET ───────────────────────────────▶ closed without a word
//!   │ ▲
//!   │ └─ a command, and its answer ─┐
//!   ├───────────────────────────────┘
//!   │
//!   └─ idle for the first time GRACE ago ─────────────▶ errno 1053, executed=no, closed
//! ```
//!
//! What has come in the very moment of the end is not lost: the kernel is asked before a session is
//! closed without a word, and a command that is there is run and answered. What is left is what
//! crosses the end on its way, in the time that this takes to reach the client and to be noticed.
//!
//! Without a word: so both servers end idle connections when they shut down, and pools know that
//! end. They look for it before they lend a connection, and some of them take an error that stands
//! there unasked for the answer to what they ask.
//!
//! With one: a client that is never quiet has sent its next command by the time that it reads of
//! this. It is not run, and its client is told so; also one whose statement was refused because of
//! the drain, for it may be about to try again.

use std::future::poll_fn;
use std::time::Duration;

use session::Answer;
use tokio::time::Instant;

use super::delivery::ABANDONED_ANSWER;
use super::errors::{LAST_WORDS_TIMEOUT, UNREAD_LEN_MAX};
use super::{Connection, Ended, errors};
use crate::registry::Control;

/// When a session leaves. Nothing of it costs anything before a drain.
#[derive(Debug, Default)]
pub(super) struct DrainState {
    /// A drain wants it to leave.
    wanted: bool,
    /// Nobody waits any more.
    refuses: bool,
    /// A statement was refused because of the drain.
    refused: bool,
    /// Who has just logged in has something to say: quiet begins to count then.
    logged_in: Option<Instant>,
    /// When it has been idle for long enough, whatever it says.
    latest: Option<Instant>,
    /// When it has been quiet for long enough. `None`: it was not idle since.
    quiet_at: Option<Instant>,
}

/// How an idle session leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// The client is quiet.
    Silent,
    /// It is told that what it may have on its way is not run.
    Told,
}

/// What a session that a drain wants to leave does while it is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// Nobody wants it to leave.
    AsLongAsItLikes,
    /// It listens until then.
    Until(Instant),
    /// It leaves.
    Over(Parting),
}

/// What a session does between two statements.
pub(super) enum Between {
    /// It goes on.
    Stays,
    /// It leaves without a word.
    Leaves,
    /// It leaves, and its client is told.
    IsTold,
}

impl DrainState {
    /// The client has logged in.
    pub(super) fn note_login(&mut self, now: Instant) {
        self.logged_in = Some(now);
    }

    /// A drain has begun.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// A drain has begun in which nobody waits any more.
    pub(super) fn refuse(&mut self) {
        self.wanted = true;
        self.refuses = true;
    }

    /// Whether nobody waits any more.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    /// A statement was refused because of the drain.
    pub(super) fn note_refused(&mut self) {
        self.wanted = true;
        self.refused = true;
    }

    /// A command has come.
    pub(super) fn note_command(&mut self) {
        self.quiet_at = None;
    }

    /// It is idle, and may leave if it is to.
    pub(super) fn stay(&mut self) -> Stay {
        if !self.wanted {
            return Stay::AsLongAsItLikes;
        }
        let now = Instant::now();
        let latest = *self.latest.get_or_insert(now + GRACE);
        let grace = self.logged_in.and_then(|since| since.checked_add(GRACE));
        let quiet_at =
            *self.quiet_at.get_or_insert_with(|| (now + QUIET).max(grace.unwrap_or(now)));
        let (until, parting) = if self.refused || latest < quiet_at {
            (latest, Parting::Told)
        } else {
            (quiet_at, Parting::Silent)
        };
        if now < until { Stay::Until(until) } else { Stay::Over(parting) }
    }
}

impl Connection {
    /// When waiting for bytes makes no sense any more.
    pub(super) fn waits_until(&mut self) -> Option<Instant> {
        if let Some(since) = self.client_gone {
            return since.checked_add(ABANDONED_ANSWER);
        }
        if !self.session.is_idle() || !self.client.bytes().is_empty() {
            return None;
        }
        let cursor_due = self.cursors.due();
        match self.stay() {
            Stay::Until(until) => Some(cursor_due.map_or(until, |due| due.min(until))),
            // Since it was looked at last.
            Stay::Over(_) => Some(Instant::now()),
            Stay::AsLongAsItLikes => cursor_due,
        }
    }

    /// Whether an idle session stays, and until when.
    pub(super) fn stay(&mut self) -> Stay {
        let session = &self.session;
        let reads_on = !self.cursors.is_empty();
        if session.in_transaction() || session.holds_table_locks() || reads_on {
            return Stay::AsLongAsItLikes;
        }
        self.leaving.stay()
    }

    /// Does what the session is told from outside while none of its statements waits.
    pub(super) async fn handle_control(&mut self, control: Control) -> Result<(), Ended> {
        match control {
            // The server does what a KILL wants; only a queued statement is ours to end.
            Control::KillQuery { .. } | Control::Kill => Ok(()),
            Control::NewLimits => {
                self.allowance.note_edit();
                Ok(())
            }
            Control::Drain => {
                self.leaving.want();
                Ok(())
            }
            Control::Refuse => {
                self.leaving.refuse();
                Ok(())
            }
            Control::Close => {
                let answer = match self.session.is_idle() {
                    true => errors::idle_shutdown(),
                    false => errors::shutting_down(),
                };
                self.leave(&answer).await
            }
        }
    }

    /// The client's last answer, if its state allows one.
    pub(super) async fn leave(&mut self, answer: &Answer) -> Result<(), Ended> {
        if self.session.handle_told_to_leave(self.client.bytes(), answer) {
            let write = self.client.write(self.session.outbox());
            drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, write).await);
        }
        Err(Ended::Told)
    }

    /// Ends an idle session without a word. The client's side ends at once, before anything else is
    /// done: what it sends from then on nobody can answer.
    pub(super) async fn leave_quietly(&mut self) -> Result<(), Ended> {
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, self.client.shutdown()).await);
        if self.client.has_unread() {
            tracing::info!(
                cluster = %self.shared.cluster.name, peer = %self.peer,
                "a command has crossed the end of its idle connection: it is not run, and its \
                 client sees the connection lost"
            );
        }
        Err(Ended::Quietly)
    }

    /// Reads on what the client sends that was told of the end, and drops it: closing over unread
    /// bytes would reset the connection, and what it was told might be lost with it.
    pub(super) async fn hear_out(&mut self) {
        let listen = async {
            let mut left = UNREAD_LEN_MAX;
            while left > 0 {
                self.client.consume(usize::MAX);
                match poll_fn(|cx| self.client.poll_fill(cx)).await {
                    Ok(len @ 1..) => left = left.saturating_sub(len),
                    Ok(0) | Err(_) => return,
                }
            }
        };
        drop(tokio::time::timeout(HEARD_OUT_FOR, listen).await);
    }
}

/// How long a client that was told of the end may take to end its side: less than a drain gives
/// those whom it tells at last.
const HEARD_OUT_FOR: Duration = Duration::from_millis(500);

/// A client that says nothing for so long has nothing on its way.
const QUIET: Duration = Duration::from_millis(100);

/// What a client that goes on gets for it: it has just logged in, or been refused, or is in the
/// middle of what it does with the connection.
const GRACE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    async fn after(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    fn wanted() -> DrainState {
        let mut leaving = DrainState::default();
        leaving.want();
        leaving
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_nobody_wants_to_leave_stays() {
        let mut leaving = DrainState::default();
        leaving.note_login(Instant::now());
        leaving.note_command();
        after(3_600_000).await;
        assert_eq!(leaving.stay(), Stay::AsLongAsItLikes);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_quiet_leaves_without_a_word() {
        let mut leaving = wanted();
        let Stay::Until(until) = leaving.stay() else { panic!("it may have something to say") };
        assert_eq!(until, Instant::now() + QUIET);
        after(99).await;
        assert_eq!(leaving.stay(), Stay::Until(until));
        after(1).await;
        assert_eq!(leaving.stay(), Stay::Over(Parting::Silent));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_on_leaves_after_a_second_and_is_told() {
        let mut leaving = wanted();
        for _ in 0..20 {
            assert!(matches!(leaving.stay(), Stay::Until(_)));
            after(50).await;
            leaving.note_command();
        }
        assert_eq!(leaving.stay(), Stay::Over(Parting::Told));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_refused_has_its_second_and_is_told_however_quiet_it_is() {
        let mut leaving = wanted();
        leaving.note_refused();
        assert_eq!(leaving.stay(), Stay::Until(Instant::now() + GRACE));
        after(1_000).await;
        assert_eq!(leaving.stay(), Stay::Over(Parting::Told));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_just_logged_in_has_its_grace() {
        let mut leaving = wanted();
        leaving.note_login(Instant::now());
        after(300).await;
        assert_eq!(leaving.stay(), Stay::Until(Instant::now() + Duration::from_millis(700)));
        after(700).await;
        assert_eq!(leaving.stay(), Stay::Over(Parting::Silent));
    }
}
