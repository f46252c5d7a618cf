//! A stream of the binary log's events, as a raw client asks for it.

use crate::error::{HarnessError, Result};
use crate::raw::{Packet, RawConn};
use crate::server::Server;

/// Where a stream begins, and whether it ever ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// A file of the binary log; it is read from its start.
    pub file: String,
    /// Other than every replica's, for the server ends an older stream of the same.
    pub server_id: u32,
    /// `BINLOG_DUMP_NON_BLOCK`: an EOF when all has been sent, instead of waiting for more.
    pub ends: bool,
}

impl Dump {
    /// Of the newest file.
    ///
    /// # Errors
    /// When the server has none.
    pub async fn of_newest(server: &Server, server_id: u32, ends: bool) -> Result<Self> {
        let files: Vec<mysql_async::Row> = server.query("SHOW BINARY LOGS").await?;
        let newest = files.last().and_then(|row| row.get::<String, _>(0));
        let file = newest.ok_or_else(|| HarnessError::Malformed("no binary log".into()))?;
        Ok(Self { file, server_id, ends })
    }

    /// COM_BINLOG_DUMP.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut out = vec![COM_BINLOG_DUMP];
        out.extend_from_slice(&FIRST_EVENT.to_le_bytes());
        out.extend_from_slice(&u16::from(self.ends).to_le_bytes());
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(self.file.as_bytes());
        out
    }

    /// COM_BINLOG_DUMP_GTID of MySQL, of a replica that has nothing.
    #[must_use]
    pub fn gtid_payload(&self) -> Vec<u8> {
        let mut out = vec![COM_BINLOG_DUMP_GTID];
        out.extend_from_slice(&u16::from(self.ends).to_le_bytes());
        out.extend_from_slice(&self.server_id.to_le_bytes());
        // No file, the first event, and an empty set of eight bytes.
        out.extend_from_slice(&0_u32.to_le_bytes());
        out.extend_from_slice(&u64::from(FIRST_EVENT).to_le_bytes());
        out.extend_from_slice(&8_u32.to_le_bytes());
        out.extend_from_slice(&0_u64.to_le_bytes());
        out
    }
}

impl RawConn {
    /// Tells the server what a replica tells it first, in the names of both servers: no checksums, and a
    /// heartbeat a second, by which a server notices that nobody reads.
    ///
    /// # Errors
    /// `Refused` with the server's ERR; or when the socket fails.
    pub async fn prepare_dump(&mut self) -> Result<()> {
        let set = "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE', \
                   @master_heartbeat_period = 1000000000, @source_heartbeat_period = 1000000000, \
                   @mariadb_slave_capability = 4";
        self.query(set).await?.accepted().map(drop)
    }

    /// Reads an event, of which a long one takes several packets, or the end of the stream: its first packet.
    ///
    /// # Errors
    /// When the socket fails, or nothing comes in time.
    pub async fn read_event(&mut self) -> Result<Packet> {
        let first = self.read_packet().await?;
        let mut continues = first.continues();
        while continues {
            continues = self.read_packet().await?.continues();
        }
        Ok(first)
    }

    /// Reads events up to a heartbeat: everything has been sent, and the stream is idle.
    ///
    /// # Errors
    /// When the stream ends instead, or nothing comes in time.
    pub async fn read_to_heartbeat(&mut self) -> Result<()> {
        loop {
            let event = self.read_event().await?;
            match event.event_type() {
                Some(HEARTBEAT_EVENT | HEARTBEAT_EVENT_V2) => return Ok(()),
                Some(_) => {}
                None => return Err(HarnessError::Protocol(format!("no event: {event:?}"))),
            }
        }
    }
}

impl Packet {
    /// The type of the event that it carries.
    #[must_use]
    pub fn event_type(&self) -> Option<u8> {
        let (0, event) = self.payload.split_first().map(|(first, rest)| (*first, rest))? else {
            return None;
        };
        // Behind a time of four bytes.
        event.get(4).copied()
    }
}

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
/// Behind the file's magic number.
const FIRST_EVENT: u32 = 4;
const HEARTBEAT_EVENT: u8 = 27;
const HEARTBEAT_EVENT_V2: u8 = 41;
