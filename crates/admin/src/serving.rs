//! The door itself: accepting, and HTTP on what was accepted. Who may be connected, and for how
//! long, is in [`crate::places`] and [`crate::timed`].

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::places::{Place, Places, Room};
use crate::timed::Timed;
use crate::{AdminState, router};

/// What a connection may have us keep of its request's head, or of an answer that it does not read
/// (beside the answer itself). Heads of browsers with all their cookies are below it.
const BUFFER_LEN_MAX: usize = 32 << 10;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// After an accept that failed: time for a file descriptor to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The HTTP side, on a thread of its own: nobody who comes to it delays a heartbeat or a timer.
#[derive(Debug)]
pub struct Door {
    /// Closes it when it is dropped.
    open: Option<oneshot::Sender<()>>,
}

impl Door {
    /// Answers on `listener` until it is closed or dropped. `ended` is called when it cannot go on.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn open(
        listener: std::net::TcpListener,
        state: AdminState,
        ended: impl FnOnce(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (open, closed) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()?;
        let answer = move || {
            runtime.block_on(async {
                tokio::select! {
                    served = serve(listener, state) => if let Err(error) = served { ended(error) },
                    _ = closed => {}
                }
            });
            // What is being made for somebody is for nobody now.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("admin".to_owned()).spawn(answer)?;
        Ok(Self { open: Some(open) })
    }

    /// Whoever comes from now on is not answered here.
    pub fn close(&mut self) {
        self.open = None;
    }
}

/// Answers that are long to make, and what is read of files.
const BLOCKING_THREADS_MAX: usize = 8;

/// Answers requests on `listener` until the task is dropped.
///
/// # Errors
/// When the listener cannot be used.
pub async fn serve(listener: std::net::TcpListener, state: AdminState) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    answer_all(&listener, &router(state)).await
}

async fn answer_all(listener: &TcpListener, router: &Router) -> io::Result<()> {
    let local = listener.local_addr()?;
    let mut places = Places::default();
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                let (place, room) = places.take(peer.ip());
                let caller = Caller { peer, local };
                tokio::spawn(converse(socket, place, caller, router.clone()));
                if room == Room::Made {
                    // So that what was closed is gone before the next one comes.
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed on the admin port");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Whose request it is; each request has it as an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// Where the door listens.
    pub(crate) local: SocketAddr,
}

async fn converse(socket: TcpStream, place: Place, caller: Caller, router: Router) {
    // Answers are short, and somebody waits for each before the next request.
    socket.set_nodelay(true).ok();
    speak_http(socket, place, caller, router).await;
}

/// Answers requests until the connection ends.
async fn speak_http<S>(stream: S, place: Place, caller: Caller, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(caller);
        TowerToHyperService::new(router.clone()).call(request)
    });
    let connection = http1::Builder::new()
        .max_buf_size(BUFFER_LEN_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Timed::new(stream, place)), answer);
    if let Err(error) = connection.await {
        tracing::debug!(peer = %caller.peer, %error, "a connection to the admin port has ended");
    }
}

#[cfg(test)]
mod tests;
