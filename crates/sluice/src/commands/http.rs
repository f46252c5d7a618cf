//! Just enough HTTP to ask an admin port: one request on a connection of its own, over TLS where
//! that is wanted. HTTP/1.0, so that the answer ends with the connection and comes in one piece.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::{Duration, Instant};

use proxy::tls::Trust;
use rustls::{ClientConnection, StreamOwned};

/// The admin port begins to answer within 5 s, or closes.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A status with all its lists full is below 2 MiB, metrics of 10,000 rules are a few times that.
const ANSWER_LEN_MAX: usize = 64 << 20;

const ADMIN_PORT: u16 = 9307;

/// An admin port.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    /// `host:port`.
    authority: String,
    /// Whom to believe, where TLS is spoken.
    trust: Option<Trust>,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'r> {
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) token: Option<&'r str>,
    /// JSON, or nothing.
    pub(crate) body: &'r str,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// The host's name means nothing, or the connection failed or broke.
    Io(io::Error),
    /// The connection was closed without a byte.
    NoAnswer,
    /// What came is not HTTP.
    NotHttp,
    /// It is, and says something else than 200.
    Status(u16),
}

impl Default for Door {
    fn default() -> Self {
        Self::of((Ipv4Addr::LOCALHOST, ADMIN_PORT).into())
    }
}

impl Door {
    /// Where to ask for what listens on this address.
    pub(crate) fn of(mut listen: SocketAddr) -> Self {
        if listen.ip().is_unspecified() {
            listen.set_ip(match listen.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self { authority: listen.to_string(), trust: None }
    }

    /// The same over TLS, with a certificate that one of those in `ca` has signed.
    pub(crate) fn encrypted(self, ca: &Path) -> Result<Self, String> {
        let trust = Trust::new(ca, &self.authority).map_err(|error| format!("--ca {error}"))?;
        Ok(Self { trust: Some(trust), ..self })
    }

    /// Reads `http://HOST:PORT`; the scheme and the port may be left out. `ca` is for https.
    pub(crate) fn parse(url: &str, ca: Option<&Path>) -> Result<Self, String> {
        let fault = |why: &str| Err(format!("--admin {url}: {why}; it is http://HOST:PORT"));
        let (rest, encrypted) = match url.split_once("://") {
            Some(("http", rest)) => (rest, false),
            Some(("https", rest)) => (rest, true),
            Some((_, _)) => return fault("the admin port speaks HTTP"),
            None => (url, false),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() || rest.contains(['/', '?', '#', '@']) || rest.contains(char::is_control)
        {
            return fault("a host and a port are expected");
        }
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port { rest.to_owned() } else { format!("{rest}:{ADMIN_PORT}") };
        let door = Self { authority, trust: None };
        match ca {
            _ if !encrypted => Ok(door),
            Some(ca) => door.encrypted(ca),
            None => fault("which certificates count has to be said by --ca FILE"),
        }
    }

    /// The body of the answer to a GET.
    pub(crate) fn get(&self, path: &str) -> Result<String, AskError> {
        let answer = self.ask(&Request { method: "GET", path, token: None, body: "" })?;
        if answer.status == 200 { Ok(answer.body) } else { Err(AskError::Status(answer.status)) }
    }

    /// What is answered.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Result<Answer, AskError> {
        let socket = self.connect().map_err(AskError::Io)?;
        let answer = match &self.trust {
            None => exchange(socket, &self.authority, request),
            Some(trust) => encrypted(socket, trust)
                .and_then(|stream| exchange(stream, &self.authority, request)),
        };
        read_answer(&answer.map_err(AskError::Io)?)
    }

    /// The first of the host's addresses that lets us in.
    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in self.authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.trust.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl AskError {
    /// What is wrong, and what to do about it.
    pub(crate) fn in_words(&self, door: &Door) -> String {
        let where_it_is = "the address is `admin.listen` of the file that Sluice runs on: \
                           --config FILE, or --admin http://HOST:PORT";
        match self {
            Self::Io(error) => match error.kind() {
                ErrorKind::ConnectionRefused => {
                    format!("nothing listens at {door}. Does Sluice run? Then {where_it_is}")
                }
                ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                    format!("{door} does not answer in time; {where_it_is}")
                }
                ErrorKind::InvalidData if door.trust.is_some() => format!(
                    "{door} cannot be asked: {error}; whose certificate counts, its authority's or \
                     its own, says --ca FILE, or `admin.tls.cert` of --config FILE"
                ),
                _ => format!("{door} cannot be asked: {error}; {where_it_is}"),
            },
            Self::NoAnswer => format!(
                "{door} has closed the connection without an answer: it is too busy, or not Sluice's \
                 admin port; {where_it_is}"
            ),
            Self::NotHttp => format!(
                "what listens at {door} does not speak HTTP: it is not Sluice's admin port. Perhaps it \
                 is where clients connect; {where_it_is}"
            ),
            Self::Status(status) => format!("{door} answers with the HTTP status {status}"),
        }
    }
}

/// A stream whose socket is at hand, for its timeouts.
trait Stream: Read + Write {
    fn socket(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// TLS, to begin with the first byte.
fn encrypted(
    socket: TcpStream,
    trust: &Trust,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let connection = ClientConnection::new(trust.config.clone(), trust.name.clone());
    Ok(StreamOwned::new(connection.map_err(io::Error::other)?, socket))
}

fn exchange(
    mut stream: impl Stream,
    authority: &str,
    request: &Request<'_>,
) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + ANSWER_WITHIN;
    stream.socket().set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.socket().set_read_timeout(Some(ANSWER_WITHIN))?;
    let Request { method, path, token, body } = request;
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: */*\r\n");
    if let Some(token) = token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Type: {JSON}\r\nContent-Length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    while answer.len() < ANSWER_LEN_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        // Zero would be no limit at all.
        stream.socket().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(_) if left.is_zero() => return Err(ErrorKind::TimedOut.into()),
            Ok(read) => answer.extend_from_slice(piece.get(..read).unwrap_or_default()),
            // A server of another protocol may say its word and wait, or hang up on ours.
            Err(_) if !answer.is_empty() && !answer.starts_with(b"HTTP/") => break,
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

const JSON: &str = "application/json";

fn read_answer(answer: &[u8]) -> Result<Answer, AskError> {
    if answer.is_empty() {
        return Err(AskError::NoAnswer);
    }
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(AskError::NotHttp)?;
    let mut words = head.split([' ', '\r']);
    if !words.next().is_some_and(|version| version.starts_with("HTTP/")) {
        return Err(AskError::NotHttp);
    }
    match words.next().and_then(|code| code.parse().ok()) {
        Some(status) => Ok(Answer { status, body: body.to_owned() }),
        None => Err(AskError::NotHttp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_written_as_people_write_it() {
        let door = |url: &str| Door::parse(url, None).map(|door| door.to_string());
        let expected = Ok("http://10.0.0.5:9400".to_owned());
        for url in ["http://10.0.0.5:9400", "http://10.0.0.5:9400/", "10.0.0.5:9400"] {
            assert_eq!(door(url), expected);
        }
        assert_eq!(door("db1"), Ok("http://db1:9307".to_owned()));
        assert_eq!(door("[::1]:9"), Ok("http://[::1]:9".to_owned()));
        assert_eq!(door("[::1]"), Ok("http://[::1]:9307".to_owned()));
        assert!(door("https://db1:9307").unwrap_err().contains("--ca FILE"));
        assert!(door("gopher://db1").unwrap_err().contains("speaks HTTP"));
        for url in ["", "http://", "http://db1/metrics", "http://u:p@db1", "db1\r\nX: y"] {
            assert!(door(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_listens_everywhere_is_asked_on_this_machine() {
        let door = |listen: &str| Door::of(listen.parse().unwrap()).to_string();
        assert_eq!(door("0.0.0.0:9307"), "http://127.0.0.1:9307");
        assert_eq!(door("[::]:9307"), "http://[::1]:9307");
        assert_eq!(door("10.0.0.5:9307"), "http://10.0.0.5:9307");
    }

    #[test]
    fn an_answer_is_a_body_a_status_or_no_http() {
        let read = |answer: &[u8]| read_answer(answer);
        assert_eq!(read(b"HTTP/1.0 200 OK\r\na: b\r\n\r\n{}").unwrap().body, "{}");
        assert_eq!(read(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap().status, 404);
        assert!(matches!(read(b""), Err(AskError::NoAnswer)));
        for other in [&b"J\0\0\0\n9.7.0\0"[..], b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1\r\n\r\n"] {
            assert!(matches!(read(other), Err(AskError::NotHttp)), "{other:?}");
        }
    }
}
