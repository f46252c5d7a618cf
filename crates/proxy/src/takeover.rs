//! A restart without a refused connection: the new process asks the old one for its listening
//! sockets.
//!
//! ```text
//! new                                             old
//!  │ connects to takeover_socket ───────────────▶ │ accepts clients
//!  │ ◀──────── HELLO and the listening sockets ── │ accepts clients
//!  │ accepts clients                              │ accepts clients
//!  │ TAKEN ─────────────────────────────────────▶ │ stops accepting, drains, ends
//! ```
//!
//! Behind that the old process tells what it has at the server ([`budgets`]).
//!
//! The sockets are the same ones, not others on the same port, so there is one accept queue and no
//! client is in a queue that is closed (docs/decisions/0023). If the new process fails before it
//! says TAKEN, the old one goes on as if it had not been asked. Only the same user (or root) is
//! answered.
//!
//! A process that drains already has closed the listeners of clients. It hands over what it still
//! has, the admin's and its own, so that the next one can begin before it has ended.

pub mod budgets;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::geteuid;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::inherited::{Inherited, unix};
use crate::listener::Listener;
use crate::server::Server;

/// What the old process says. The number is the version of this exchange.
const HELLO: &[u8] = b"sluice takeover 1\n";

/// What the new process says when it serves.
const TAKEN: &[u8] = b"taken\n";

/// Most sockets that one message carries (the kernel's SCM_MAX_FD is 253).
const SOCKETS_MAX: usize = 250;

/// How long the old process may take to answer: it may be busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the new process may take from its question until it serves.
const TAKEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Only the owner may ask.
const MODE: u32 = 0o600;

/// Asks the process behind `path` for its listening sockets. `None`: nobody is there.
///
/// # Errors
/// When somebody is there and does not hand them over.
///
/// # Cancellation
/// Safe: the other process goes on.
pub async fn ask(path: &Path) -> io::Result<Option<(Inherited, Confirmation)>> {
    let mut asked = ask_once(path).await;
    for _ in 0..ENDS_MAX {
        if !asked.as_ref().is_err_and(has_ended) {
            break;
        }
        tokio::time::sleep(ACCEPT_RETRY).await;
        asked = ask_once(path).await;
    }
    asked
}

async fn ask_once(path: &Path) -> io::Result<Option<(Inherited, Confirmation)>> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            };
        }
    };
    let receiving = stream.async_io(Interest::READABLE, || receive(stream.as_fd()));
    let descriptors = tokio::time::timeout(ANSWER_TIMEOUT, receiving)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer"))??;
    Ok(Some((Inherited::from_predecessor(descriptors), Confirmation { stream })))
}

/// Whoever was asked has ended before its answer: the next one to be asked is another one, or none.
fn has_ended(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

/// How often one may end before its answer.
const ENDS_MAX: usize = 5;

/// What is left to say to the old process.
#[derive(Debug)]
#[must_use = "the old process goes on until it is told"]
pub struct Confirmation {
    stream: UnixStream,
}

impl Confirmation {
    /// This process serves: the old one drains. On what comes back it tells of itself
    /// ([`budgets::follow`]).
    ///
    /// # Errors
    /// When the old process is gone.
    pub async fn confirm(mut self) -> io::Result<UnixStream> {
        self.stream.write_all(TAKEN).await?;
        Ok(self.stream)
    }
}

/// The old process's side.
#[derive(Debug)]
pub struct Offer {
    listener: Listener,
    /// Where clients come in.
    clients: Vec<Weak<Listener>>,
}

impl Offer {
    /// Listens where the next process will ask.
    ///
    /// # Errors
    /// When it cannot listen there, for example because another process does.
    pub fn bind(path: &Path, inherited: &mut Inherited) -> io::Result<Self> {
        let listen = unix(path);
        let listener = match inherited.take(&listen) {
            Some((socket, _)) => Listener::of_socket(&listen, socket)?,
            None => Listener::bind(&listen, MODE)?,
        };
        Ok(Self { listener, clients: Vec::new() })
    }

    /// Clients of `server` come in by sockets that are on offer.
    #[must_use]
    pub fn of(self, server: &Server) -> Self {
        Self { clients: server.listeners(), ..self }
    }

    /// Serves until another process has taken what is on offer, and the socket of this offer. The
    /// connection to it, on which it is told of this process ([`budgets::Telling`]).
    pub async fn taken(self, mut offered: watch::Receiver<Offered>) -> Option<UnixStream> {
        let Listener::Unix(listener, _) = &self.listener else { return None };
        let stream = loop {
            match self.hand_over(listener, &mut offered).await {
                Ok(stream) => break stream,
                Err(error) => tracing::warn!(%error, "a takeover failed; this process goes on"),
            }
        };
        self.listener.leave_to_successor();
        Some(stream)
    }

    async fn hand_over(
        &self,
        listener: &UnixListener,
        offered: &mut watch::Receiver<Offered>,
    ) -> io::Result<UnixStream> {
        let stream = send_to_next(listener, offered).await?;
        self.lend(true);
        let taken = taken(stream).await;
        if taken.is_err() {
            self.lend(false);
        }
        taken
    }

    /// Whether another process has what is on offer, and has not said yet that it serves. This one may
    /// be told to end before it does.
    fn lend(&self, is_lent: bool) {
        self.listener.lend(is_lent);
        self.clients.iter().filter_map(Weak::upgrade).for_each(|clients| clients.lend(is_lent));
    }
}

/// What another process is given when it asks.
#[derive(Debug)]
pub enum Offered {
    /// These sockets.
    Sockets(Vec<OwnedFd>),
    /// It has to wait a moment: a drain closes the listeners of clients.
    NotNow,
}

/// Answers who asks next.
async fn send_to_next(
    listener: &UnixListener,
    offered: &mut watch::Receiver<Offered>,
) -> io::Result<UnixStream> {
    let stream = match listener.accept().await {
        Ok((stream, _)) => stream,
        Err(error) => {
            tokio::time::sleep(ACCEPT_RETRY).await;
            return Err(error);
        }
    };
    let asks = stream.peer_cred()?.uid();
    if asks != 0 && asks != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "asked by another user"));
    }
    let is_there = |offered: &Offered| matches!(offered, Offered::Sockets(_));
    // Whoever offers is there as long as it serves or drains.
    drop(offered.wait_for(is_there).await);
    let sending = stream.async_io(Interest::WRITABLE, || match &*offered.borrow() {
        Offered::Sockets(sockets) => {
            let offer = std::iter::once(listener.as_fd());
            let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).chain(offer).collect();
            send(stream.as_fd(), &sockets)
        }
        Offered::NotNow => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "its listeners are being closed"))
        }
    });
    sending.await?;
    Ok(stream)
}

/// Waits until the other process serves.
async fn taken(mut stream: UnixStream) -> io::Result<UnixStream> {
    let mut answer = vec![0; TAKEN.len()];
    let answered = tokio::time::timeout(TAKEN_TIMEOUT, stream.read_exact(&mut answer)).await;
    match answered {
        Ok(Ok(_)) if answer == TAKEN => Ok(stream),
        Ok(Ok(_)) => Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is another one")),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the other process does not serve")),
    }
}

/// After an accept that failed: time for file descriptors to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

fn send(stream: BorrowedFd<'_>, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if sockets.len() > SOCKETS_MAX || !control.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many listeners"));
    }
    match sendmsg(stream, &[IoSlice::new(HELLO)], &mut control, SendFlags::NOSIGNAL)? {
        sent if sent == HELLO.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn receive(stream: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut hello = [0; HELLO.len()];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut hello)], &mut control, flags)?;
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            sockets.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before it answers"));
    }
    if received.bytes != HELLO.len() || hello != HELLO {
        let what = "it speaks another version of this exchange";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests;
