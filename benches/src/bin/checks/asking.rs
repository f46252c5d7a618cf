//! The clients that ask.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How is asked.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    pub(super) per_s: u32,
    pub(super) lasts: Duration,
    pub(super) connections: u32,
}

/// The times of one question.
#[derive(Clone, Copy)]
pub(super) struct Took {
    pub(super) due: Duration,
    pub(super) sent: Duration,
    pub(super) late: Duration,
}

impl Asking {
    /// The times of every question.
    pub(super) fn measure(self, admin: SocketAddr, path: &str) -> std::io::Result<Vec<Took>> {
        let between = Duration::from_secs(1).mul_f64(f64::from(self.connections)) / self.per_s;
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: {admin}\r\nUser-Agent: check\r\n\r\n");
        let sockets = (0..self.connections).map(|_| TcpStream::connect(admin));
        let sockets = sockets.collect::<std::io::Result<Vec<_>>>()?;
        let begin = super::begin();
        thread::scope(|scope| {
            let ask = |(n, socket): (u32, TcpStream)| {
                let first = begin + between * n / self.connections;
                let request = request.as_bytes();
                scope.spawn(move || ask(socket, request, first..begin + self.lasts, between))
            };
            let asking: Vec<_> = (0..).zip(sockets).map(ask).collect();
            let mut all = Vec::new();
            for asked in asking {
                let ended = |_| std::io::Error::other("a client has ended");
                all.extend(asked.join().map_err(ended)??);
            }
            Ok(all)
        })
    }
}

/// Asks at its times, over one connection.
fn ask(
    mut socket: TcpStream,
    request: &[u8],
    times: std::ops::Range<Instant>,
    between: Duration,
) -> std::io::Result<Vec<Took>> {
    socket.set_nodelay(true)?;
    let mut took = Vec::new();
    let mut answer = [0; 4_096];
    let mut due = times.start;
    while due < times.end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let written = Instant::now();
        socket.write_all(request)?;
        let mut len = 0;
        // The answer to HEAD ends with its head.
        while !answer.get(..len).unwrap_or_default().ends_with(b"\r\n\r\n") {
            let read = socket.read(answer.get_mut(len..).unwrap_or_default())?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            len += read;
        }
        let answered = Instant::now();
        let status = answer.get(9..12).unwrap_or_default();
        if !STATUSES.contains(&status) {
            return Err(std::io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
        }
        took.push(Took {
            due: answered - due,
            sent: answered - written,
            late: written.saturating_duration_since(due),
        });
        due += between;
    }
    Ok(took)
}

const STATUSES: [&[u8]; 3] = [b"200", b"417", b"429"];
