//! A MySQL client for byte-exact work: it shows every packet as it came over the wire.
//!
//! Nothing here uses Sluice's own code, so that a fault there cannot hide itself. What the client
//! says it can do is the test's choice, and commands are bytes that the test makes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::error::{HarnessError, Result};

pub use compressed::Compress;
pub use dump::Dump;
pub use login::Login;
pub use response::{Response, Shape};
pub use statement::{Cursor, Execute, Param, Prepared, Types};
pub use transport::Tls;

use compressed::Compressed;
use transport::Transport;

pub(crate) mod bytes;
pub mod capability;
mod compressed;
mod dump;
mod login;
pub mod response;
pub mod statement;
mod transport;

/// One wire packet: at most 16 MiB − 1 of payload, the header taken apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The sequence id as sent.
    pub seq: u8,
    /// The bytes after the header.
    pub payload: Vec<u8>,
}

impl Packet {
    /// The first byte of the payload.
    #[must_use]
    pub fn first(&self) -> Option<u8> {
        self.payload.first().copied()
    }

    /// Whether the next packet continues this one's payload.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.payload.len() == MAX_PAYLOAD
    }

    /// Error number and message, when this is an ERR packet.
    #[must_use]
    pub fn err(&self) -> Option<(u16, String)> {
        let (0xff, rest) = self.payload.split_first().map(|(first, rest)| (*first, rest))? else {
            return None;
        };
        let (errno, rest) = rest.split_first_chunk::<2>()?;
        let message = match rest.split_first() {
            Some((b'#', rest)) => rest.get(5..).unwrap_or_default(),
            _ => rest,
        };
        Some((u16::from_le_bytes(*errno), String::from_utf8_lossy(message).into_owned()))
    }
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.payload.get(..SHOWN_BYTES).unwrap_or(&self.payload);
        let cut = if shown.len() < self.payload.len() { "…" } else { "" };
        write!(f, "#{} {} \"{}{cut}\"", self.seq, self.payload.len(), shown.escape_ascii())
    }
}

/// A connection of raw bytes.
#[derive(Debug)]
pub struct RawConn {
    transport: Transport,
    compressed: Option<Compressed>,
    capabilities: u32,
    mariadb_capabilities: u32,
    connection_id: u32,
    server_version: String,
    login_packets: Vec<Packet>,
    infile: VecDeque<Vec<u8>>,
    read_limit: Duration,
}

impl RawConn {
    /// Connects and logs in.
    ///
    /// # Errors
    /// When nobody listens, the server refuses, or does not answer in time.
    pub async fn open(addr: SocketAddr, login: &Login) -> Result<Self> {
        let mut conn = Self::connect(addr).await?;
        conn.log_in(login).await?;
        Ok(conn)
    }

    /// Connects, and reads and sends nothing: the greeting is the first packet to come.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(addr: SocketAddr) -> Result<Self> {
        let what = format!("cannot connect to {addr}");
        let stream = TcpStream::connect(addr).await.map_err(HarnessError::io(what))?;
        stream.set_nodelay(true).map_err(HarnessError::io("cannot set TCP_NODELAY"))?;
        Ok(Self {
            transport: Transport::Plain(stream),
            compressed: None,
            capabilities: 0,
            mariadb_capabilities: 0,
            connection_id: 0,
            server_version: String::new(),
            login_packets: Vec::new(),
            infile: VecDeque::new(),
            read_limit: READ_LIMIT,
        })
    }

    /// Capability flags in force (what was asked for and the server offers); [`capability`].
    #[must_use]
    pub fn capabilities(&self) -> u32 {
        self.capabilities
    }

    /// MariaDB's extended capability flags in force.
    #[must_use]
    pub fn mariadb_capabilities(&self) -> u32 {
        self.mariadb_capabilities
    }

    /// The connection id of the greeting.
    #[must_use]
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The server's version as the greeting says it.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Every packet the server sent until the login was done, the greeting first.
    #[must_use]
    pub fn login_packets(&self) -> &[Packet] {
        &self.login_packets
    }

    /// The socket, to shut half of it down and the like.
    ///
    /// # Panics
    /// When a TLS handshake has failed: there is none then.
    #[expect(clippy::expect_used, reason = "a test that goes on after a failed handshake is wrong")]
    pub fn stream(&mut self) -> &mut TcpStream {
        self.transport.socket().expect("the handshake did not fail")
    }

    /// The certificate that the server showed, in DER. None in the clear.
    #[must_use]
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.transport.certificate()
    }

    /// Does a TLS handshake now, whatever was said before.
    ///
    /// # Errors
    /// When it fails, or takes too long.
    pub async fn start_tls(&mut self, tls: &Tls) -> Result<()> {
        match tokio::time::timeout(self.read_limit, self.transport.start_tls(tls)).await {
            Ok(done) => done.map_err(HarnessError::io("no TLS")),
            Err(_) => Err(HarnessError::TimedOut { what: "TLS".into(), after: self.read_limit }),
        }
    }

    /// The longest wait for bytes of the server; 30 s unless told.
    pub fn set_read_limit(&mut self, limit: Duration) {
        self.read_limit = limit;
    }

    /// What the next LOCAL INFILE request is answered with. Without any, an empty file.
    pub fn queue_infile(&mut self, content: Vec<u8>) {
        self.infile.push_back(content);
    }

    /// How many compressed packets have come, and how many of them were not stored as they are. None when the
    /// connection is not compressed.
    #[must_use]
    pub fn compressed_packets(&self) -> Option<(u64, u64)> {
        self.compressed.as_ref().map(Compressed::received)
    }

    /// The answer to a command sent in a compressed packet of its own comes next, though others have been sent behind
    /// it.
    pub fn await_answer_of_one(&mut self) {
        if let Some(compressed) = &mut self.compressed {
            compressed.await_answer_of_one();
        }
    }

    /// Another result follows the one that has been read.
    fn await_result(&mut self) {
        if let Some(compressed) = &mut self.compressed {
            compressed.await_result();
        }
    }

    fn mark_upload(&mut self, uploads: bool) {
        if let Some(compressed) = &mut self.compressed {
            compressed.mark_upload(uploads);
        }
    }

    /// Sends frames in one compressed packet, however long.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_in_one(&mut self, frames: &[u8]) -> Result<()> {
        let Self { transport, compressed, .. } = self;
        let Some(compressed) = compressed else {
            return Err(HarnessError::Protocol("the connection is not compressed".into()));
        };
        let sent = compressed.write_pieces(transport, frames, MAX_PAYLOAD);
        sent.await.map_err(HarnessError::io("cannot send"))
    }

    /// Sends bytes as they are, below compression: for what a client library would not send.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_wire(&mut self, bytes: &[u8]) -> Result<()> {
        self.transport.write_all(bytes).await.map_err(HarnessError::io("cannot send"))
    }

    /// Sends frames, compressed where that was agreed on.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { transport, compressed, .. } = self;
        let sent = match compressed {
            None => transport.write_all(bytes).await,
            Some(compressed) => compressed.write_all(transport, bytes).await,
        };
        sent.map_err(HarnessError::io("cannot send"))
    }

    /// Sends a payload, in as many packets as it needs, the first with this sequence id.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_payload(&mut self, seq: u8, payload: &[u8]) -> Result<()> {
        self.send_bytes(&framed(seq, payload)).await
    }

    /// Sends a command: sequence id 0.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_command(&mut self, payload: &[u8]) -> Result<()> {
        self.send_payload(0, payload).await
    }

    /// Reads one wire packet.
    ///
    /// # Errors
    /// When the peer closes or does not send a whole packet in time.
    ///
    /// # Cancellation
    /// Dropping the future may lose bytes of a packet: the connection is of no use then.
    pub async fn read_packet(&mut self) -> Result<Packet> {
        let limit = self.read_limit;
        let read = async {
            let mut header = [0_u8; 4];
            self.read_exact(&mut header).await?;
            let [a, b, c, seq] = header;
            let mut payload = vec![0_u8; bytes::usize_of(u32::from_le_bytes([a, b, c, 0]))];
            self.read_exact(&mut payload).await?;
            if let Some(compressed) = &mut self.compressed {
                compressed.take_id(seq)?;
            }
            Ok(Packet { seq, payload })
        };
        match tokio::time::timeout(limit, read).await {
            Ok(packet) => packet.map_err(HarnessError::io("cannot read a packet")),
            Err(_) => Err(HarnessError::TimedOut { what: "a packet".into(), after: limit }),
        }
    }

    async fn read_exact(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        let Self { transport, compressed, .. } = self;
        match compressed {
            None => transport.read_exact(bytes).await,
            Some(compressed) => compressed.read_exact(transport, bytes).await,
        }
    }

    /// Reads until the peer closes, and gives what came, below compression.
    ///
    /// # Errors
    /// When the peer does not close in time. A reset counts as a close.
    pub async fn read_to_end(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        match tokio::time::timeout(self.read_limit, self.transport.read_to_end(&mut all)).await {
            Ok(_) => Ok(all),
            Err(_) => {
                Err(HarnessError::TimedOut { what: "a close".into(), after: self.read_limit })
            }
        }
    }

    /// Sends a command and reads its whole response.
    ///
    /// # Errors
    /// When the socket fails or the response is not of this shape. An ERR packet is no error here.
    pub async fn command(&mut self, payload: &[u8], shape: Shape) -> Result<Response> {
        self.send_command(payload).await?;
        self.read_response(shape).await
    }

    /// Runs a text statement. Under CLIENT_QUERY_ATTRIBUTES it is sent with no attributes.
    ///
    /// # Errors
    /// As [`RawConn::command`].
    pub async fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Response> {
        let payload = self.query_payload(sql.as_ref(), &[]);
        self.command(&payload, Shape::Query).await
    }

    /// Runs a text statement with query attributes (strings).
    ///
    /// # Errors
    /// As [`RawConn::command`]; and when CLIENT_QUERY_ATTRIBUTES is not in force.
    pub async fn query_with_attributes(
        &mut self,
        sql: impl AsRef<[u8]>,
        attributes: &[(&str, &str)],
    ) -> Result<Response> {
        if self.capabilities & capability::QUERY_ATTRIBUTES == 0 {
            return Err(HarnessError::Protocol("query attributes are not in force".into()));
        }
        let payload = self.query_payload(sql.as_ref(), attributes);
        self.command(&payload, Shape::Query).await
    }

    /// The payload of COM_QUERY as the capabilities in force want it.
    #[must_use]
    pub fn query_payload(&self, sql: &[u8], attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut payload = vec![COM_QUERY];
        if self.capabilities & capability::QUERY_ATTRIBUTES != 0 {
            bytes::put_lenenc(&mut payload, attributes.len());
            payload.push(1);
            statement::put_attributes(&mut payload, attributes);
        }
        payload.extend_from_slice(sql);
        payload
    }

    /// COM_QUIT, and waits for the server to close.
    ///
    /// # Errors
    /// When the server does not close.
    pub async fn quit(mut self) -> Result<()> {
        self.send_command(&[COM_QUIT]).await?;
        self.read_to_end().await.map(drop)
    }
}

/// A payload with its headers.
#[must_use]
pub fn framed(seq: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len().saturating_add(8));
    let mut seq = seq;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        bytes::put_u24(&mut out, now.len());
        out.push(seq);
        out.extend_from_slice(now);
        seq = seq.wrapping_add(1);
        rest = later;
        // A payload of exactly the maximum is followed by an empty packet.
        if now.len() < MAX_PAYLOAD {
            return out;
        }
    }
}

/// COM_QUIT of the manual.
pub const COM_QUIT: u8 = 0x01;
/// COM_INIT_DB of the manual.
pub const COM_INIT_DB: u8 = 0x02;
/// COM_QUERY of the manual.
pub const COM_QUERY: u8 = 0x03;
/// COM_FIELD_LIST of the manual.
pub const COM_FIELD_LIST: u8 = 0x04;
/// COM_STATISTICS of the manual.
pub const COM_STATISTICS: u8 = 0x09;
/// COM_PING of the manual.
pub const COM_PING: u8 = 0x0e;
/// COM_STMT_PREPARE of the manual.
pub const COM_STMT_PREPARE: u8 = 0x16;
/// COM_STMT_EXECUTE of the manual.
pub const COM_STMT_EXECUTE: u8 = 0x17;
/// COM_STMT_SEND_LONG_DATA of the manual.
pub const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
/// COM_STMT_CLOSE of the manual.
pub const COM_STMT_CLOSE: u8 = 0x19;
/// COM_STMT_RESET of the manual.
pub const COM_STMT_RESET: u8 = 0x1a;
/// COM_SET_OPTION of the manual.
pub const COM_SET_OPTION: u8 = 0x1b;
/// COM_STMT_FETCH of the manual.
pub const COM_STMT_FETCH: u8 = 0x1c;
/// COM_RESET_CONNECTION of the manual.
pub const COM_RESET_CONNECTION: u8 = 0x1f;

/// The longest payload of one wire packet.
pub const MAX_PAYLOAD: usize = 0xff_ffff;
const READ_LIMIT: Duration = Duration::from_secs(30);
const SHOWN_BYTES: usize = 96;
