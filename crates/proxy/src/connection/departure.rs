//! The client leaves while the server works for it.
//!
//! A statement that was admitted keeps its place until the server has really finished it, whoever
//! has left. For any other the server is told at once, by what it would see itself without Sluice:
//!
//! - The client has closed its sending half, and nothing that it sent is unread: so does the server
//!   see it. `GET_LOCK` and `SLEEP` end; any other statement goes on until the server sends
//!   something that nobody takes.
//! - It has commands unread ahead of that: the server sees nothing yet, for both servers take bytes
//!   for a client that is there. They are sent in their turn.
//! - It has reset its connection, or cannot be written to: the server's connection is closed, and
//!   what it had sent ahead is not run, for a server that cannot answer reads no more of it.
//! - It is asked for a password by a COM_CHANGE_USER, and what it sent ahead of its end is no
//!   answer: the server's connection is closed, for nobody will go on with that login.
//!
//! Of a statement that counts for a budget the end is listened for all the same: its place is free
//! when the server has finished, and in place of being closed the server's connection is closed for
//! sending. So it is with one that may run for so long only (`runaway`): a server goes on with what
//! nobody waits for, and who watches it needs the connection.
//!
//! A client that has died and one that only has nothing more to say look the same until something
//! is written to them, and both servers answer the second one: so do we. The rule of the statement
//! may want more (`on_client_gone`): the statement killed, or left to its end.
//!
//! Whoever has left does not come back to end what is stuck. So where the server says nothing for a
//! while it is asked whether it still works: MySQL 9.7 answers an execution without a cursor of a
//! statement whose cursor is open with an OK in place of rows, and what a row is no OK is.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use policy::{OnClientGone, is_killable};

use super::reading::more;
use super::{Connection, Ended};
use crate::board::Birth;
use crate::left_behind::LostSession;
use crate::registry::{Control, Inbox};
use crate::runaway::{Chase, Killed, OwnSession};
use crate::stream::Stream;
use crate::telemetry::KillOutcome;

/// Whether the client's leaving has been noticed during the statement under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Departure {
    #[default]
    Unnoticed,
    /// What the rule wants has been done: the answer is relayed, or fails to be.
    Noted,
    /// The rule wants the statement to run to its end, as an admitted one does.
    Finishing,
}

/// What a client that has hung up still had to say.
enum Farewell {
    /// Commands.
    MoreToCome,
    /// Nothing, and it may still read.
    Nothing,
    /// It does not read either.
    Gone,
}

/// What was heard first.
enum Heard {
    Told(Control),
    Server(io::Result<usize>),
    ClientHungUp,
}

impl Connection {
    /// Reads from the server, and notices that the client leaves.
    pub(super) async fn read_answer(
        &mut self,
        control: &mut Inbox,
    ) -> Result<Option<Control>, Ended> {
        if self.client_gone.is_some() {
            Box::pin(self.note_unreachable()).await?;
        }
        if self.departure != Departure::Unnoticed && self.session.awaits_login_answer() {
            return Err(Ended::ByClient);
        }
        if self.departure != Departure::Unnoticed {
            return Box::pin(self.read_for_departed(control)).await;
        }
        let Self { client, backend, .. } = self;
        let heard = {
            let mut hung_up = pin!(client.hung_up());
            poll_fn(|cx| {
                if let Poll::Ready(told) = control.poll_told(cx) {
                    return Poll::Ready(Heard::Told(told));
                }
                if let Poll::Ready(filled) = backend.poll_fill(cx) {
                    return Poll::Ready(Heard::Server(filled));
                }
                if client.poll_stirred(cx).is_ready() && hung_up.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Heard::ClientHungUp);
                }
                Poll::Pending
            })
            .await
        };
        match heard {
            Heard::Told(told) => Ok(Some(told)),
            Heard::Server(filled) => more(filled, Ended::ByBackend),
            Heard::ClientHungUp => Box::pin(self.note_hung_up()).await.map(|()| None),
        }
    }

    /// Reads from the server for a client that may not be there, unless the server says that there is
    /// nothing more to read.
    async fn read_for_departed(&mut self, control: &mut Inbox) -> Result<Option<Control>, Ended> {
        let session = self.lost_session();
        let (worked, since) = (self.timing.backend, self.shared.cluster.now());
        let Self { backend, shared, budget, .. } = self;
        let cluster = &shared.cluster;
        let mut note_used = || {
            if let Some(budget) = budget {
                let waited = cluster.probes.standstills.waited(since, cluster.now());
                budget.note_so_far(worked.saturating_add(waited));
            }
        };
        let mut heard = pin!(poll_fn(|cx| {
            if let Poll::Ready(told) = control.poll_told(cx) {
                return Poll::Ready(Ok(Some(told)));
            }
            backend.poll_fill(cx).map(|filled| more(filled, Ended::ByBackend))
        }));
        loop {
            if let Ok(heard) = tokio::time::timeout(UNANSWERED, heard.as_mut()).await {
                return heard;
            }
            let mut over = cluster.left_behind.ask_after(session.clone());
            let over = loop {
                note_used();
                tokio::select! {
                    biased;
                    heard = heard.as_mut() => return heard,
                    over = &mut over => break over,
                    () = tokio::time::sleep(UNANSWERED) => {}
                }
            };
            if over.is_ok() {
                tracing::warn!(
                    cluster = %cluster.name, connection = session.connection_id,
                    "the server has ended a statement whose client has left, and its answer has no \
                     end: the connection is closed"
                );
                return Err(Ended::ByClient);
            }
        }
    }

    /// The server's session, for who asks after it.
    pub(super) fn lost_session(&self) -> LostSession {
        LostSession {
            remote: self.backend.remote(),
            connection_id: self.session.connection_id(),
            birth: Birth::clone(&self.birth),
        }
    }

    /// The client has closed, or has closed its sending half.
    async fn note_hung_up(&mut self) -> Result<(), Ended> {
        // An admitted statement keeps its place until the server has finished it. Of a permit that
        // a COM_CHANGE_USER ends nothing is left at the server.
        if self.permit.is_some() && !self.session.is_logging_in() {
            self.departure = Departure::Finishing;
            return Ok(());
        }
        self.departure = Departure::Noted;
        let farewell = self.farewell().await;
        self.do_as_the_rule_wants().await;
        match (self.departure, farewell) {
            // What it has sent ahead is sent in its turn.
            (Departure::Finishing, _) | (_, Farewell::MoreToCome) => Ok(()),
            (Departure::Noted | Departure::Unnoticed, Farewell::Gone)
                if self.budget.is_none() && self.allowance.due().is_none() =>
            {
                Err(Ended::ByClient)
            }
            // Of what counts for a budget the end is heard, and of what may run for so long that it does.
            (Departure::Noted | Departure::Unnoticed, Farewell::Nothing | Farewell::Gone) => {
                self.backend.end_sending();
                Ok(())
            }
        }
    }

    /// The client cannot be written to. Its answer is read on only for an admitted statement, and
    /// where the rule wants the end.
    async fn note_unreachable(&mut self) -> Result<(), Ended> {
        if self.permit.is_some() {
            return Ok(());
        }
        if self.departure == Departure::Unnoticed {
            self.departure = Departure::Noted;
            self.do_as_the_rule_wants().await;
            if self.departure == Departure::Noted && self.budget.is_some() {
                self.backend.end_sending();
            }
        }
        match self.departure {
            Departure::Finishing => Ok(()),
            Departure::Unnoticed | Departure::Noted if self.budget.is_some() => Ok(()),
            Departure::Unnoticed | Departure::Noted => Err(Ended::ByClient),
        }
    }

    /// What has come ahead of the client's end. Reads once, of what has all arrived by now.
    async fn farewell(&mut self) -> Farewell {
        let Self { client, .. } = self;
        let farewell = match client.bytes().is_empty() {
            true => last_read(client).await,
            false => Farewell::MoreToCome,
        };
        match farewell {
            Farewell::MoreToCome if client.is_reset().await => Farewell::Gone,
            Farewell::MoreToCome | Farewell::Nothing | Farewell::Gone => farewell,
        }
    }

    async fn do_as_the_rule_wants(&mut self) {
        let statement = self.session.under_way();
        let rule = statement.and_then(|statement| self.policy.rule(statement.rule?));
        match rule.map(|rule| rule.on_client_gone).unwrap_or_default() {
            OnClientGone::Close => {}
            OnClientGone::Finish => self.departure = Departure::Finishing,
            OnClientGone::Kill => self.kill_query().await,
        }
    }

    /// The connection stays open meanwhile, so that its id is nobody else's.
    async fn kill_query(&mut self) {
        let cluster = &self.shared.cluster;
        let Some(statement) = self.session.under_way() else { return };
        let id = self.session.connection_id();
        let own = OwnSession { backend: &self.backend, connection_id: id, birth: &self.birth };
        let outcome = if is_killable(statement.class) {
            let class = statement.class;
            match cluster.killer.kill_statement(&self.policy, own, class, Chase::No).await {
                Ok(Killed::Yes) => KillOutcome::Killed,
                Ok(Killed::Commits | Killed::Ended) => KillOutcome::Left,
                Err(error) => {
                    tracing::warn!(
                        cluster = %cluster.name, peer = %self.peer, connection = id, %error,
                        "a statement whose client has left was not killed"
                    );
                    KillOutcome::Failed
                }
            }
        } else {
            KillOutcome::Left
        };
        self.shared.telemetry.kill(&cluster.name, outcome);
    }
}

/// What is there to be read, in one read.
async fn last_read(client: &mut Stream) -> Farewell {
    poll_fn(|cx| {
        Poll::Ready(match client.poll_fill(cx) {
            Poll::Ready(Ok(0)) => Farewell::Nothing,
            // TLS says so of a socket that ends without its last word.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Farewell::Nothing
            }
            Poll::Ready(Err(_)) => Farewell::Gone,
            Poll::Ready(Ok(_)) | Poll::Pending => Farewell::MoreToCome,
        })
    })
    .await
}

/// For how long the server may say nothing before it is asked whether it works.
const UNANSWERED: Duration = Duration::from_secs(1);
