//! The changes of the table, as they are in the binary log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use super::binlog::{Change, Decoder, Value};
use super::session::Session;
use super::{Migration, Shared};
use crate::error::{HarnessError, Result};
use crate::raw::{RawConn, Shape};

/// A change of `t`, or what gh-ost has told itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The row is new or has changed.
    Row { before: Option<i64>, after: Row },
    /// The row with this id is gone.
    Gone(i64),
    /// A row of the changelog: all that was before it in the binary log has come before it here.
    State(String),
}

/// A row of `t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) k: i64,
    pub(super) pad: String,
}

/// Asks for the binary log from where it ends now.
pub(super) async fn open(migration: &Migration) -> Result<RawConn> {
    let mut session = Session::open(migration.inspector, &migration.user).await?;
    let status = session.query("SHOW BINARY LOG STATUS").await?.text_rows()?;
    let mut columns = status.into_iter().next().unwrap_or_default().into_iter().flatten();
    let (Some(file), Some(position)) = (columns.next(), columns.next()) else {
        return Err(HarnessError::Protocol("the inspected server has no binary log".into()));
    };
    let position: u32 = String::from_utf8_lossy(&position)
        .parse()
        .map_err(|_| HarnessError::Protocol("the position is no number".into()))?;
    session.run(READER).await?;
    let mut conn = session.into_raw();
    let id = migration.server_id.to_le_bytes();
    // No name, user and password, no port, rank and source: as a reader says that is no server.
    let register = [&[COM_REGISTER_SLAVE][..], &id, &[0; 3], &[0; 2], &[0; 8]].concat();
    conn.command(&register, Shape::Single).await?.accepted()?;
    let dump = [&[COM_BINLOG_DUMP][..], &position.to_le_bytes(), &[0; 2], &id, &file].concat();
    conn.send_command(&dump).await?;
    Ok(conn)
}

/// Hands on what concerns the migration, in order.
pub(super) async fn follow(
    mut conn: RawConn,
    to: mpsc::Sender<Event>,
    shared: Arc<Shared>,
) -> Result<()> {
    let mut decoder = Decoder::new("test", &["t", "_t_ghc"]);
    loop {
        let packet = conn.read_event().await?;
        let Some((0, event)) = packet.payload.split_first().map(|(first, rest)| (*first, rest))
        else {
            return Err(HarnessError::Protocol(format!("the stream ended: {packet:?}")));
        };
        for change in decoder.changes(event)? {
            if let Some(event) = event_of(change, &shared)?
                && to.send(event).await.is_err()
            {
                return Ok(());
            }
        }
    }
}

fn event_of(change: Change, shared: &Shared) -> Result<Option<Event>> {
    if change.table == "_t_ghc" {
        return Ok(change.after.and_then(|row| told(row, shared)));
    }
    let before = change.before.map(row_of).transpose()?.map(|row| row.id);
    Ok(match (before, change.after.map(row_of).transpose()?) {
        (before, Some(after)) => Some(Event::Row { before, after }),
        (Some(before), None) => Some(Event::Gone(before)),
        (None, None) => None,
    })
}

/// A row of the changelog: `id`, `last_update`, `hint`, `value`.
fn told(row: Vec<Value>, shared: &Shared) -> Option<Event> {
    let [_, _, Value::Bytes(hint), Value::Bytes(value)] = row.as_slice() else { return None };
    let value = String::from_utf8_lossy(value);
    if hint == b"heartbeat" {
        let then: u64 = value.parse().ok()?;
        shared.heartbeat_lag_ms.store(now_ms().saturating_sub(then), Ordering::Relaxed);
        return None;
    }
    (hint == b"state").then(|| Event::State(value.into_owned()))
}

fn row_of(row: Vec<Value>) -> Result<Row> {
    match row.as_slice() {
        [Value::Int(id), Value::Int(k), Value::Bytes(pad), ..] => {
            Ok(Row { id: *id, k: *k, pad: String::from_utf8_lossy(pad).into_owned() })
        }
        other => Err(HarnessError::Protocol(format!("no row of t: {other:?}"))),
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// That it can read the checksums that the servers write, and wants a heartbeat each second.
const READER: &str = "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', \
     @master_heartbeat_period = 1000000000, @source_heartbeat_period = 1000000000";
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
