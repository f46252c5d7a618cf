//! Prepared statements of the binary protocol.

use crate::error::Result;
use crate::raw::bytes::{Reader, put_lenenc, put_lenenc_bytes};
use crate::raw::{
    COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH, COM_STMT_PREPARE, COM_STMT_RESET,
    COM_STMT_SEND_LONG_DATA, RawConn, Response, Shape, capability,
};

/// What COM_STMT_PREPARE gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The statement's id.
    pub id: u32,
    /// Columns of its result set.
    pub columns: u16,
    /// Its parameters.
    pub params: u16,
    /// The whole answer.
    pub response: Response,
}

impl Prepared {
    /// Reads the answer to COM_STMT_PREPARE.
    ///
    /// # Errors
    /// `Refused` when it is an ERR; or when it is cut short.
    pub fn parse(response: Response) -> Result<Self> {
        let response = response.accepted()?;
        let first = response.packets.first().map(|p| p.payload.as_slice());
        let mut reader = Reader(first.unwrap_or_default());
        reader.take(1)?;
        let (id, columns, params) = (reader.u32()?, reader.u16()?, reader.u16()?);
        Ok(Self { id, columns, params, response })
    }
}

/// The value of a parameter with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// The type of the manual's `MYSQL_TYPE_*`; 0x8000 says unsigned.
    pub kind: u16,
    /// The encoded value without a length; `None` is NULL.
    pub value: Option<Vec<u8>>,
    /// Whether the value was sent by COM_STMT_SEND_LONG_DATA, so that nothing stands for it here.
    pub long_data: bool,
}

impl Param {
    /// NULL, typed as the manual's `MYSQL_TYPE_NULL`.
    #[must_use]
    pub fn null() -> Self {
        Self { kind: MYSQL_TYPE_NULL, value: None, long_data: false }
    }

    /// A `BIGINT`.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::encoded(MYSQL_TYPE_LONGLONG, &value.to_le_bytes())
    }

    /// A `DOUBLE`.
    #[must_use]
    pub fn double(value: f64) -> Self {
        Self::encoded(MYSQL_TYPE_DOUBLE, &value.to_le_bytes())
    }

    /// A `VARCHAR`.
    #[must_use]
    pub fn text(value: &str) -> Self {
        Self::encoded(MYSQL_TYPE_VAR_STRING, value.as_bytes())
    }

    /// A `BLOB` whose value was or will be sent by COM_STMT_SEND_LONG_DATA.
    #[must_use]
    pub fn long_data() -> Self {
        Self { kind: MYSQL_TYPE_BLOB, value: Some(Vec::new()), long_data: true }
    }

    /// Any type. Numbers have their own width, dates and times their length byte left out.
    #[must_use]
    pub fn encoded(kind: u16, value: &[u8]) -> Self {
        Self { kind, value: Some(value.to_vec()), long_data: false }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let Some(value) = self.value.as_ref().filter(|_| !self.long_data) else {
            return;
        };
        match self.kind & 0xff {
            // TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR: of fixed width.
            0x01..=0x05 | 0x08 | 0x09 | 0x0d => out.extend_from_slice(value),
            _ => put_lenenc_bytes(out, value),
        }
    }
}

/// The cursor an EXECUTE asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cursor {
    /// All rows at once.
    #[default]
    None,
    /// `CURSOR_TYPE_READ_ONLY`: rows come by COM_STMT_FETCH.
    ReadOnly,
}

/// Whether an EXECUTE carries the parameters' types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Types {
    /// `new_params_bind_flag` 1.
    #[default]
    Sent,
    /// `new_params_bind_flag` 0: the server remembers them.
    Remembered,
}

/// One COM_STMT_EXECUTE.
#[derive(Debug, Clone, Default)]
pub struct Execute<'a> {
    /// The statement's id.
    pub id: u32,
    /// None unless told.
    pub cursor: Cursor,
    /// Sent unless told.
    pub types: Types,
    /// In order.
    pub params: &'a [Param],
    /// Query attributes (strings); sent only under CLIENT_QUERY_ATTRIBUTES.
    pub attributes: &'a [(&'a str, &'a str)],
}

impl Execute<'_> {
    /// The command's payload under these capabilities.
    #[must_use]
    pub fn payload(&self, capabilities: u32) -> Vec<u8> {
        let with_attributes = capabilities & capability::QUERY_ATTRIBUTES != 0;
        let mut flags = match self.cursor {
            Cursor::None => 0,
            Cursor::ReadOnly => CURSOR_TYPE_READ_ONLY,
        };
        if with_attributes {
            flags |= PARAMETER_COUNT_AVAILABLE;
        }
        let mut out = vec![COM_STMT_EXECUTE];
        out.extend_from_slice(&self.id.to_le_bytes());
        out.push(flags);
        out.extend_from_slice(&1_u32.to_le_bytes());
        let attributes = if with_attributes { self.attributes } else { &[] };
        if with_attributes {
            put_lenenc(&mut out, self.params.len().saturating_add(attributes.len()));
        }
        let text = |value: &str| Param::text(value);
        let values: Vec<(&str, Param)> = (self.params.iter().map(|p| ("", p.clone())))
            .chain(attributes.iter().map(|(key, value)| (*key, text(value))))
            .collect();
        if !values.is_empty() {
            put_values(&mut out, &values, self.types, with_attributes);
        }
        out
    }
}

impl RawConn {
    /// COM_STMT_PREPARE.
    ///
    /// # Errors
    /// `Refused` with the server's ERR; or when the socket fails.
    pub async fn prepare(&mut self, sql: impl AsRef<[u8]>) -> Result<Prepared> {
        let payload = [&[COM_STMT_PREPARE], sql.as_ref()].concat();
        Prepared::parse(self.command(&payload, Shape::Prepare).await?)
    }

    /// COM_STMT_EXECUTE with types sent, without a cursor.
    ///
    /// # Errors
    /// When the socket fails. An ERR packet is no error here.
    pub async fn execute(&mut self, statement: &Prepared, params: &[Param]) -> Result<Response> {
        self.execute_as(&Execute { id: statement.id, params, ..Execute::default() }).await
    }

    /// COM_STMT_EXECUTE.
    ///
    /// # Errors
    /// When the socket fails. An ERR packet is no error here.
    pub async fn execute_as(&mut self, execute: &Execute<'_>) -> Result<Response> {
        let payload = execute.payload(self.capabilities());
        self.command(&payload, Shape::Query).await
    }

    /// MariaDB's COM_STMT_BULK_EXECUTE; see [`bulk_payload`].
    ///
    /// # Errors
    /// When the socket fails. An ERR packet is no error here.
    pub async fn bulk_execute(&mut self, id: u32, rows: &[Vec<Param>]) -> Result<Response> {
        self.command(&bulk_payload(id, rows), Shape::Query).await
    }

    /// COM_STMT_SEND_LONG_DATA; has no answer.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn send_long_data(&mut self, id: u32, param: u16, data: &[u8]) -> Result<()> {
        self.send_command(&long_data_payload(id, param, data)).await
    }

    /// COM_STMT_FETCH of so many rows.
    ///
    /// # Errors
    /// When the socket fails. An ERR packet is no error here.
    pub async fn fetch(&mut self, id: u32, rows: u32) -> Result<Response> {
        self.command(&fetch_payload(id, rows), Shape::Fetch).await
    }

    /// COM_STMT_RESET.
    ///
    /// # Errors
    /// When the socket fails. An ERR packet is no error here.
    pub async fn reset_statement(&mut self, id: u32) -> Result<Response> {
        self.command(&id_payload(COM_STMT_RESET, id), Shape::Single).await
    }

    /// COM_STMT_CLOSE; has no answer.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn close_statement(&mut self, id: u32) -> Result<()> {
        self.send_command(&id_payload(COM_STMT_CLOSE, id)).await
    }
}

/// The payload of COM_STMT_SEND_LONG_DATA.
#[must_use]
pub fn long_data_payload(id: u32, param: u16, data: &[u8]) -> Vec<u8> {
    let mut payload = id_payload(COM_STMT_SEND_LONG_DATA, id);
    payload.extend_from_slice(&param.to_le_bytes());
    payload.extend_from_slice(data);
    payload
}

/// The payload of COM_STMT_FETCH.
#[must_use]
pub fn fetch_payload(id: u32, rows: u32) -> Vec<u8> {
    let mut payload = id_payload(COM_STMT_FETCH, id);
    payload.extend_from_slice(&rows.to_le_bytes());
    payload
}

/// The payload of MariaDB's COM_STMT_BULK_EXECUTE: rows of parameters whose types are those of the
/// first row, an indicator before each value.
#[must_use]
pub fn bulk_payload(id: u32, rows: &[Vec<Param>]) -> Vec<u8> {
    let mut payload = id_payload(COM_STMT_BULK_EXECUTE, id);
    payload.extend_from_slice(&SEND_TYPES_TO_SERVER.to_le_bytes());
    for param in rows.first().into_iter().flatten() {
        payload.extend_from_slice(&param.kind.to_le_bytes());
    }
    for param in rows.iter().flatten() {
        payload.push(if param.value.is_some() { INDICATOR_NONE } else { INDICATOR_NULL });
        param.put(&mut payload);
    }
    payload
}

/// The payload of a command that is its byte and a statement's id.
#[must_use]
pub fn id_payload(command: u8, id: u32) -> Vec<u8> {
    let mut payload = vec![command];
    payload.extend_from_slice(&id.to_le_bytes());
    payload
}

/// Puts query attributes as COM_QUERY wants them: NULL bitmap, flag, types with names, values.
pub(super) fn put_attributes(out: &mut Vec<u8>, attributes: &[(&str, &str)]) {
    if attributes.is_empty() {
        return;
    }
    let values: Vec<_> = attributes.iter().map(|(k, v)| (*k, Param::text(v))).collect();
    put_values(out, &values, Types::Sent, true);
}

/// NULL bitmap, the flag, types (each with a name, if `named`), values.
fn put_values(out: &mut Vec<u8>, values: &[(&str, Param)], types: Types, named: bool) {
    for eight in values.chunks(8) {
        let bits = eight.iter().enumerate().filter(|(_, (_, param))| param.value.is_none());
        out.push(bits.fold(0, |byte, (bit, _)| byte | 1 << bit));
    }
    match types {
        Types::Sent => out.push(1),
        Types::Remembered => out.push(0),
    }
    if types == Types::Sent {
        for (name, param) in values {
            out.extend_from_slice(&param.kind.to_le_bytes());
            if named {
                put_lenenc_bytes(out, name.as_bytes());
            }
        }
    }
    for (_, param) in values {
        param.put(out);
    }
}

const COM_STMT_BULK_EXECUTE: u8 = 0xfa;
const SEND_TYPES_TO_SERVER: u16 = 128;
const INDICATOR_NONE: u8 = 0;
const INDICATOR_NULL: u8 = 1;

const CURSOR_TYPE_READ_ONLY: u8 = 0x01;
const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;

const MYSQL_TYPE_DOUBLE: u16 = 0x05;
const MYSQL_TYPE_NULL: u16 = 0x06;
const MYSQL_TYPE_LONGLONG: u16 = 0x08;
const MYSQL_TYPE_VAR_STRING: u16 = 0xfd;
const MYSQL_TYPE_BLOB: u16 = 0xfc;
