//! The door itself: accepting, and HTTP on what was accepted. Who may be connected, and for how
//! long, is in [`crate::places`] and [`crate::timed`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
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
use proxy::clock::Clock;
use proxy::cluster::Repeated;
use proxy::tls::DoorTls;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::console::Feed;
use crate::places::{Place, Places, Room};
use crate::refusal::{Error, Refusal};
use crate::timed::{REQUEST_WITHIN, Timed};
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
    let access = Arc::clone(&state.access);
    let tls = Arc::clone(&access.tls);
    let feed = Feed::new(state.clone());
    let router = router(state, Arc::clone(&feed));
    tokio::select! {
        served = answer_all(&listener, &router, &tls) => served,
        () = feed.run() => Err(io::Error::other("the console has ended")),
        () = access.watch() => Err(io::Error::other("its files cannot be watched")),
    }
}

/// Answers requests by `router`.
async fn answer_all(listener: &TcpListener, router: &Router, tls: &Arc<DoorTls>) -> io::Result<()> {
    let local = listener.local_addr()?;
    let mut places = Places::default();
    let clock = Clock::start();
    let mut unaccepted = Repeated::new(clock.now());
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                let (place, room) = places.take(peer.ip());
                let caller = Caller { peer, local, is_encrypted: false };
                tokio::spawn(converse(socket, place, caller, router.clone(), tls.server_config()));
                if room == Room::Made {
                    // So that what was closed is gone before the next one comes.
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                if let Some(untold) = unaccepted.again(clock.now()) {
                    tracing::warn!(%error, untold, "accept failed on the admin port");
                }
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
    /// Whether it came over TLS.
    pub(crate) is_encrypted: bool,
}

/// How handshakes are made; `None` without TLS.
type Encryption = Option<io::Result<Arc<ServerConfig>>>;

async fn converse(
    socket: TcpStream,
    mut place: Place,
    caller: Caller,
    router: Router,
    encryption: Encryption,
) {
    // Answers are short, and somebody waits for each before the next request.
    socket.set_nodelay(true).ok();
    let Some(encryption) = encryption else {
        return speak_http(socket, place, caller, router).await;
    };
    let shaken = tokio::select! {
        shaken = timeout(REQUEST_WITHIN, shake_hands(socket, encryption)) => shaken,
        _ = &mut place.needed => return,
    };
    match shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => {
            let caller = Caller { is_encrypted: true, ..caller };
            speak_http(stream, place, caller, router).await;
        }
        Err(error) => {
            tracing::debug!(peer = %caller.peer, %error, "no TLS with a client of the admin port");
        }
    }
}

/// TLS, or a word in plain HTTP to whoever does not begin it.
async fn shake_hands(
    mut socket: TcpStream,
    encryption: io::Result<Arc<ServerConfig>>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 1 && first != [TLS_HANDSHAKE] {
        let refusal = Refusal::new(Error::BadRequest, "plain HTTP is not spoken here")
            .remedy("ask by https://");
        say_plainly(&mut socket, &refusal).await?;
        return Err(io::Error::other("it speaks plain HTTP"));
    }
    TlsAcceptor::from(encryption?).accept(socket).await
}

async fn say_plainly(socket: &mut TcpStream, refusal: &Refusal) -> io::Result<()> {
    // What is not read resets the connection, and the answer with it.
    let read = socket.read(&mut [0; 4096]).await?;
    tracing::debug!(read, "plain HTTP where TLS is spoken");
    let body = refusal.json();
    let (status, len) = (refusal.error.status(), body.len());
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\
         connection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(&body).await?;
    socket.shutdown().await
}

/// The first byte of a record of TLS that begins a handshake (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;

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
