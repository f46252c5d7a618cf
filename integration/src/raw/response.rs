//! Where a response ends, and what its packets say.

use crate::error::{HarnessError, Result};
use crate::raw::bytes::{Reader, usize_of};
use crate::raw::{MAX_PAYLOAD, Packet, RawConn, capability};

/// What the answer to a command looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// COM_QUERY, COM_STMT_EXECUTE, COM_PROCESS_INFO: OK, ERR, LOCAL INFILE or result sets.
    Query,
    /// COM_STMT_PREPARE.
    Prepare,
    /// COM_STMT_FETCH: rows and their end.
    Fetch,
    /// COM_FIELD_LIST: definitions and their end.
    FieldList,
    /// One packet: COM_PING, COM_INIT_DB, COM_STATISTICS and most others.
    Single,
    /// Nothing: COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA.
    Silent,
}

/// Every packet that answered one command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// As they came, in order.
    pub packets: Vec<Packet>,
    /// Status flags of each OK and EOF among them, in order.
    pub statuses: Vec<u16>,
    /// The column values of every row of every result set, still encoded, in order.
    pub rows: Vec<Vec<u8>>,
}

impl Response {
    /// The ERR that ended it, if one did.
    #[must_use]
    pub fn err(&self) -> Option<(u16, String)> {
        self.packets.last().and_then(Packet::err)
    }

    /// The status flags of the last OK or EOF.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.statuses.last().copied()
    }

    /// Affected rows, when the first packet is an OK.
    #[must_use]
    pub fn affected_rows(&self) -> Option<u64> {
        let first = self.packets.first()?;
        let (0x00, rest) = first.payload.split_first().map(|(b, rest)| (*b, rest))? else {
            return None;
        };
        Reader(rest).lenenc().ok()
    }

    /// The rows of text result sets. NULL is `None`.
    ///
    /// # Errors
    /// When a row is not a text row.
    pub fn text_rows(&self) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        self.rows.iter().map(|row| text_row(row)).collect()
    }

    /// The first value of the first row of a text result set, as text.
    #[must_use]
    pub fn first_text(&self) -> Option<String> {
        let row = text_row(self.rows.first()?).ok()?;
        let value = row.into_iter().next()??;
        String::from_utf8(value).ok()
    }

    /// Gives the response, or its ERR as an error.
    ///
    /// # Errors
    /// `Refused` with the server's errno and message.
    pub fn accepted(self) -> Result<Self> {
        match self.err() {
            Some((errno, message)) => Err(HarnessError::Refused { errno, message }),
            None => Ok(self),
        }
    }
}

/// One payload, which may have come in several packets.
struct Payload {
    /// The beginning of its first packet's bytes.
    head: Vec<u8>,
    len: usize,
}

impl Payload {
    fn first(&self) -> Option<u8> {
        self.head.first().copied()
    }

    /// Whether this ends rows or definitions. An OK that ends rows may be of any length below the
    /// maximum; an EOF has 5 bytes, and a row may start with 0xfe too, but is longer then.
    fn ends_rows(&self, deprecate_eof: bool) -> bool {
        let limit = if deprecate_eof { MAX_PAYLOAD } else { 9 };
        self.first() == Some(0xfe) && self.len < limit
    }
}

impl RawConn {
    /// Reads the whole answer of one command.
    ///
    /// # Errors
    /// When the socket fails or the bytes are not of this shape. An ERR packet is no error here.
    pub async fn read_response(&mut self, shape: Shape) -> Result<Response> {
        let mut response = Response::default();
        match shape {
            Shape::Query => self.read_results(&mut response).await?,
            Shape::Prepare => self.read_prepare(&mut response).await?,
            Shape::Fetch | Shape::FieldList => {
                if let Some(status) = self.read_rows(&mut response).await? {
                    response.note(status);
                }
            }
            Shape::Single => drop(self.payload(&mut response).await?),
            Shape::Silent => {}
        }
        Ok(response)
    }

    async fn read_results(&mut self, response: &mut Response) -> Result<()> {
        loop {
            let payload = self.payload(response).await?;
            let status = match payload.first() {
                // MariaDB's progress report looks like an ERR with the number 65535.
                Some(0xff) if payload.head.get(1..3) == Some(&[0xff, 0xff]) => continue,
                Some(0xff) => return Ok(()),
                Some(0x00) => ok_status(&payload.head)?,
                Some(0xfb) => {
                    self.upload(response).await?;
                    continue;
                }
                Some(0xfe) if payload.len < 9 => eof_status(&payload.head)?,
                _ => match self.read_result_set(response, &payload).await? {
                    Some(status) => status,
                    None => return Ok(()),
                },
            };
            response.note(status);
            if status & SERVER_MORE_RESULTS_EXISTS == 0 {
                return Ok(());
            }
            if status & SERVER_PS_OUT_PARAMS == 0 {
                self.await_result();
            }
        }
    }

    /// Gives the status at its end, or nothing when an ERR ended it.
    async fn read_result_set(
        &mut self,
        response: &mut Response,
        count: &Payload,
    ) -> Result<Option<u16>> {
        let mut reader = Reader(&count.head);
        let columns = reader.lenenc()?;
        let definitions = match (self.may_omit_metadata(), reader.0.first()) {
            (true, Some(0)) => 0,
            _ => columns,
        };
        for _ in 0..definitions {
            self.payload(response).await?;
        }
        if !self.deprecates_eof() {
            let eof = self.payload(response).await?;
            let status = eof_status(&eof.head)?;
            // A cursor that a stored procedure has open shows in the same flag, before rows that do
            // come; but then the procedure's own OK is still to follow.
            let both = SERVER_STATUS_CURSOR_EXISTS | SERVER_MORE_RESULTS_EXISTS;
            if status & both == SERVER_STATUS_CURSOR_EXISTS {
                return Ok(Some(status));
            }
            response.note(status);
            if status & SERVER_PS_OUT_PARAMS != 0 {
                // MySQL's EOF behind the OUT parameters forgets that the procedure's OK follows, so nobody who
                // goes by it awaits another result.
                let end = self.read_rows(response).await?;
                let kept = SERVER_MORE_RESULTS_EXISTS | SERVER_PS_OUT_PARAMS;
                return Ok(end.map(|end| end | status & kept));
            }
        }
        self.read_rows(response).await
    }

    async fn read_rows(&mut self, response: &mut Response) -> Result<Option<u16>> {
        let deprecates_eof = self.deprecates_eof();
        loop {
            let from = response.packets.len();
            let payload = self.payload(response).await?;
            if payload.first() == Some(0xff) {
                return Ok(None);
            }
            if payload.ends_rows(deprecates_eof) {
                let read = if deprecates_eof { ok_status } else { eof_status };
                return read(&payload.head).map(Some);
            }
            let mut row = Vec::with_capacity(payload.len);
            response.packets.iter().skip(from).for_each(|p| row.extend_from_slice(&p.payload));
            response.rows.push(row);
        }
    }

    async fn read_prepare(&mut self, response: &mut Response) -> Result<()> {
        let payload = self.payload(response).await?;
        if payload.first() == Some(0xff) {
            return Ok(());
        }
        let mut reader = Reader(&payload.head);
        reader.take(5)?;
        let columns = reader.u16()?;
        let params = reader.u16()?;
        reader.take(3)?;
        let omitted = self.may_omit_metadata() && reader.0.first() == Some(&0);
        for count in [params, columns] {
            if count == 0 {
                continue;
            }
            for _ in 0..if omitted { 0 } else { count } {
                self.payload(response).await?;
            }
            if !self.deprecates_eof() {
                let eof = self.payload(response).await?;
                response.note(eof_status(&eof.head)?);
            }
        }
        Ok(())
    }

    /// Answers a LOCAL INFILE request: the content, then an empty packet.
    async fn upload(&mut self, response: &Response) -> Result<()> {
        let content = self.infile.pop_front().unwrap_or_default();
        let mut seq = response.packets.last().map_or(0, |p| p.seq).wrapping_add(1);
        self.mark_upload(true);
        for chunk in content.chunks(INFILE_CHUNK) {
            self.send_payload(seq, chunk).await?;
            seq = seq.wrapping_add(1);
        }
        let sent = self.send_payload(seq, &[]).await;
        self.mark_upload(false);
        sent
    }

    async fn payload(&mut self, response: &mut Response) -> Result<Payload> {
        let mut packet = self.read_packet().await?;
        let head = packet.payload.get(..HEAD_BYTES).unwrap_or(&packet.payload).to_vec();
        let mut whole = Payload { head, len: packet.payload.len() };
        while packet.continues() {
            response.packets.push(packet);
            packet = self.read_packet().await?;
            whole.len = whole.len.saturating_add(packet.payload.len());
        }
        response.packets.push(packet);
        Ok(whole)
    }

    fn deprecates_eof(&self) -> bool {
        self.capabilities() & capability::DEPRECATE_EOF != 0
    }

    fn may_omit_metadata(&self) -> bool {
        self.capabilities() & capability::OPTIONAL_METADATA != 0
            || self.mariadb_capabilities() & capability::MARIADB_CACHE_METADATA != 0
    }
}

impl Response {
    fn note(&mut self, status: u16) {
        self.statuses.push(status);
    }
}

/// SERVER_STATUS_IN_TRANS of the manual.
pub const SERVER_STATUS_IN_TRANS: u16 = 0x0001;
/// SERVER_MORE_RESULTS_EXISTS of the manual.
pub const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;
/// SERVER_STATUS_CURSOR_EXISTS of the manual.
pub const SERVER_STATUS_CURSOR_EXISTS: u16 = 0x0040;

/// SERVER_PS_OUT_PARAMS of the manual.
const SERVER_PS_OUT_PARAMS: u16 = 0x1000;

/// More than the fixed part of any packet whose content matters here.
const HEAD_BYTES: usize = 64;

/// Small enough that a usual file takes several packets.
const INFILE_CHUNK: usize = 16_384;

fn ok_status(payload: &[u8]) -> Result<u16> {
    let mut reader = Reader(payload);
    reader.take(1)?;
    reader.lenenc()?;
    reader.lenenc()?;
    reader.u16()
}

fn eof_status(payload: &[u8]) -> Result<u16> {
    let mut reader = Reader(payload);
    reader.take(3)?;
    reader.u16()
}

fn text_row(row: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
    let mut reader = Reader(row);
    let mut values = Vec::new();
    while let Some(first) = reader.0.first() {
        if *first == 0xfb {
            reader.take(1)?;
            values.push(None);
            continue;
        }
        let len = u32::try_from(reader.lenenc()?)
            .map_err(|_| HarnessError::Protocol("a value of more than 4 GiB".into()))?;
        values.push(Some(reader.take(usize_of(len))?.to_vec()));
    }
    Ok(values)
}
