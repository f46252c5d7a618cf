//! What a connection waits for: bytes, or a word from outside.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use session::Reads;

use super::{Connection, Ended};
use crate::registry::{Control, Inbox};

impl Connection {
    /// Reads from where the session wants bytes, or hears from outside.
    pub(super) async fn read(
        &mut self,
        reads: Reads,
        control: &mut Inbox,
    ) -> Result<Option<Control>, Ended> {
        if let Some(restart) = self.session.streams_events() {
            self.client.begin_stream(restart);
            if reads == Reads::Backend {
                return Box::pin(self.read_server(control)).await;
            }
        }
        if reads == Reads::Backend {
            return self.read_answer(control).await;
        }
        if self.client_gone.is_some() {
            return Err(Ended::ByClient);
        }
        if reads == Reads::Client && self.session.awaits_file() {
            self.client.begin_upload();
            self.backend.begin_upload();
        }
        if reads == Reads::Client && (self.session.awaits_file() || self.budget.is_some()) {
            return Box::pin(self.read_rest(control)).await;
        }
        let Self { client, backend, rest, .. } = self;
        poll_fn(|cx| {
            if let Poll::Ready(told) = control.poll_told(cx) {
                return Poll::Ready(Ok(Some(told)));
            }
            if let Poll::Ready(filled) = client.poll_fill(cx) {
                return Poll::Ready(match filled {
                    Ok(_) => more(filled, Ended::ByClient),
                    Err(_) => Err(Ended::ByClientFault),
                });
            }
            if rest.as_ref().is_some_and(|rest| rest.has_missed(client)) {
                return Poll::Ready(Ok(None));
            }
            if reads == Reads::Either
                && let Poll::Ready(filled) = backend.poll_fill(cx)
            {
                return Poll::Ready(more(filled, Ended::ByBackend));
            }
            Poll::Pending
        })
        .await
    }

    /// Reads on of what is at the server in part, a file or a long text: the client may take its time,
    /// and the server may have ended meanwhile, by a KILL for one. Boxed: the buffers that fill
    /// meanwhile are larger by far.
    async fn read_rest(&mut self, control: &mut Inbox) -> Result<Option<Control>, Ended> {
        let Self { client, backend, .. } = self;
        tokio::select! {
            biased;
            told = control.told() => Ok(Some(told)),
            filled = poll_fn(|cx| client.poll_fill(cx)) => match filled {
                Ok(_) => more(filled, Ended::ByClient),
                Err(_) => Err(Ended::ByClientFault),
            },
            () = backend.hung_up() => Err(Ended::ByBackend),
        }
    }

    /// Reads what only the server can say, and may say in hours. The client is not read ahead, but
    /// may leave. To be boxed: nobody else pays for what is this rare.
    pub(super) async fn read_server(
        &mut self,
        control: &mut Inbox,
    ) -> Result<Option<Control>, Ended> {
        if self.client_gone.is_some() {
            return Err(Ended::ByClient);
        }
        let Self { client, backend, .. } = self;
        tokio::select! {
            biased;
            told = control.told() => Ok(Some(told)),
            filled = poll_fn(|cx| backend.poll_fill(cx)) => more(filled, Ended::ByBackend),
            () = client.hung_up() => Err(Ended::ByClient),
        }
    }
}

/// Whether there is more to come.
pub(super) fn more(filled: io::Result<usize>, end: Ended) -> Result<Option<Control>, Ended> {
    match filled {
        Ok(0) | Err(_) => Err(end),
        Ok(_) => Ok(None),
    }
}
