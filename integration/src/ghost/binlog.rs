//! Row events of the binary log: as much of them as two tables of known types need.
//!
//! The format is that of the manual's "Row Based Replication Events", version 2, with full row
//! images and a checksum at the end of each.

use std::collections::HashMap;

use crate::error::{HarnessError, Result};
use crate::raw::bytes::Reader;

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Bytes(Vec<u8>),
}

/// What became of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) table: String,
    /// The row as it was; none when it is new.
    pub(super) before: Option<Vec<Value>>,
    /// The row as it is; none when it is deleted.
    pub(super) after: Option<Vec<Value>>,
}

/// Reads events in their order.
#[derive(Debug)]
pub(super) struct Decoder {
    schema: &'static str,
    tables: &'static [&'static str],
    known: HashMap<[u8; 6], Table>,
}

#[derive(Debug)]
struct Table {
    name: String,
    columns: Vec<Column>,
}

/// A type of the manual, and the length of its length for VARCHAR.
#[derive(Debug, Clone, Copy)]
enum Column {
    Int,
    BigInt,
    Timestamp,
    Varchar { long: bool },
}

impl Decoder {
    /// Of these tables of a schema; what concerns others is passed over.
    pub(super) fn new(schema: &'static str, tables: &'static [&'static str]) -> Self {
        Self { schema, tables, known: HashMap::new() }
    }

    /// The changes in one event: the packet's payload behind its first byte.
    pub(super) fn changes(&mut self, event: &[u8]) -> Result<Vec<Change>> {
        let end = event.len().saturating_sub(CHECKSUM_LEN);
        let mut reader = Reader(event.get(..end).unwrap_or_default());
        let header: [u8; HEADER_LEN] = reader.array()?;
        let [_, _, _, _, kind, ..] = header;
        match kind {
            TABLE_MAP_EVENT => self.learn(&mut reader).map(|()| Vec::new()),
            WRITE_ROWS_EVENT | UPDATE_ROWS_EVENT | DELETE_ROWS_EVENT => self.rows(kind, reader),
            _ => Ok(Vec::new()),
        }
    }

    fn learn(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let id = reader.array()?;
        reader.take(2)?;
        let schema = name(reader)?;
        let table = name(reader)?;
        self.known.remove(&id);
        if schema != self.schema || !self.tables.contains(&table.as_str()) {
            return Ok(());
        }
        let count = length(reader)?;
        let types = reader.take(count)?;
        let len = length(reader)?;
        let mut metadata = Reader(reader.take(len)?);
        let columns =
            types.iter().map(|kind| column(*kind, &mut metadata)).collect::<Result<_>>()?;
        self.known.insert(id, Table { name: table, columns });
        Ok(())
    }

    fn rows(&self, kind: u8, mut reader: Reader<'_>) -> Result<Vec<Change>> {
        let id: [u8; 6] = reader.array()?;
        let Some(table) = self.known.get(&id) else { return Ok(Vec::new()) };
        reader.take(2)?;
        let extra = usize::from(reader.u16()?);
        reader.take(extra.saturating_sub(2))?;
        let count = length(&mut reader)?;
        let bitmap = count.div_ceil(8);
        // Every column is there: binlog_row_image is FULL.
        reader.take(if kind == UPDATE_ROWS_EVENT { bitmap.saturating_mul(2) } else { bitmap })?;
        let mut changes = Vec::new();
        while !reader.0.is_empty() {
            let before = match kind {
                WRITE_ROWS_EVENT => None,
                _ => Some(row(&mut reader, table)?),
            };
            let after = match kind {
                DELETE_ROWS_EVENT => None,
                _ => Some(row(&mut reader, table)?),
            };
            changes.push(Change { table: table.name.clone(), before, after });
        }
        Ok(changes)
    }
}

fn row(reader: &mut Reader<'_>, table: &Table) -> Result<Vec<Value>> {
    let nulls = reader.take(table.columns.len().div_ceil(8))?;
    let mut values = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        let byte = nulls.get(at / 8).copied().unwrap_or_default();
        let is_null = byte & (1 << (at % 8)) != 0;
        values.push(if is_null { Value::Null } else { value(reader, *column)? });
    }
    Ok(values)
}

fn value(reader: &mut Reader<'_>, column: Column) -> Result<Value> {
    Ok(match column {
        Column::Int => Value::Int(i64::from(i32::from_le_bytes(reader.array()?))),
        Column::BigInt => Value::Int(i64::from_le_bytes(reader.array()?)),
        Column::Timestamp => Value::Int(i64::from(u32::from_be_bytes(reader.array()?))),
        Column::Varchar { long } => {
            let len = if long { usize::from(reader.u16()?) } else { usize::from(reader.u8()?) };
            Value::Bytes(reader.take(len)?.to_vec())
        }
    })
}

fn column(kind: u8, metadata: &mut Reader<'_>) -> Result<Column> {
    Ok(match kind {
        MYSQL_TYPE_LONG => Column::Int,
        MYSQL_TYPE_LONGLONG => Column::BigInt,
        MYSQL_TYPE_TIMESTAMP2 => {
            if metadata.u8()? != 0 {
                return Err(HarnessError::Protocol("a timestamp with fractions".into()));
            }
            Column::Timestamp
        }
        MYSQL_TYPE_VARCHAR => Column::Varchar { long: metadata.u16()? > 255 },
        other => return Err(HarnessError::Protocol(format!("a column of type {other}"))),
    })
}

/// One byte of length, the name, and a NUL.
fn name(reader: &mut Reader<'_>) -> Result<String> {
    let len = usize::from(reader.u8()?);
    let name = String::from_utf8_lossy(reader.take(len)?).into_owned();
    reader.take(1)?;
    Ok(name)
}

fn length(reader: &mut Reader<'_>) -> Result<usize> {
    let len = reader.lenenc()?;
    usize::try_from(len).map_err(|_| HarnessError::Protocol(format!("a length of {len}")))
}

const HEADER_LEN: usize = 19;
const CHECKSUM_LEN: usize = 4;
const TABLE_MAP_EVENT: u8 = 19;
const WRITE_ROWS_EVENT: u8 = 30;
const UPDATE_ROWS_EVENT: u8 = 31;
const DELETE_ROWS_EVENT: u8 = 32;
const MYSQL_TYPE_LONG: u8 = 3;
const MYSQL_TYPE_LONGLONG: u8 = 8;
const MYSQL_TYPE_VARCHAR: u8 = 15;
const MYSQL_TYPE_TIMESTAMP2: u8 = 17;
