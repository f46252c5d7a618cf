//! Runs the steps of a corpus on one connection.

use std::collections::HashMap;

use crate::client::password_of;
use crate::error::Result;
use crate::fidelity::corpus::{Step, Verb};
use crate::raw::statement::{fetch_payload, id_payload, long_data_payload};
use crate::raw::{
    COM_STMT_CLOSE, COM_STMT_PREPARE, COM_STMT_RESET, Cursor, Execute, Login, Packet, Prepared,
    RawConn, Response, Shape, Types, capability,
};

/// A connection and the statements prepared on it.
pub(super) struct Session<'a> {
    conn: &'a mut RawConn,
    login: &'a Login,
    statements: HashMap<String, u32>,
}

impl<'a> Session<'a> {
    pub(super) fn new(conn: &'a mut RawConn, login: &'a Login) -> Self {
        Self { conn, login, statements: HashMap::new() }
    }

    pub(super) async fn run(&mut self, step: &Step) -> Result<Vec<Packet>> {
        let mut packets = self.answer(step).await?;
        let ids = self.statements.values();
        for packet in packets.iter_mut().filter(|packet| packet.first() == Some(0xff)) {
            ids.clone().for_each(|id| hide_id_in_message(packet, *id));
        }
        Ok(packets)
    }

    async fn answer(&mut self, step: &Step) -> Result<Vec<Packet>> {
        let response = match &step.verb {
            Verb::Text(sql) => self.conn.query(sql).await?,
            Verb::Both(sql) => return self.both(sql).await,
            Verb::Attributes { attributes, sql } => self.with_attributes(attributes, sql).await?,
            Verb::Prepare { name, sql } => self.prepare(name, sql).await?,
            Verb::Execute { name, cursor, types, params } => {
                let (id, cursor, types) = (self.id(name), *cursor, *types);
                let execute = Execute { id, cursor, types, params, attributes: &[] };
                self.conn.execute_as(&execute).await?
            }
            Verb::LongData { name, param, data } => {
                let payload = long_data_payload(self.id(name), *param, data);
                self.conn.command(&payload, Shape::Silent).await?
            }
            Verb::Fetch { name, rows } => {
                self.conn.command(&fetch_payload(self.id(name), *rows), Shape::Fetch).await?
            }
            Verb::Reset { name } => {
                let payload = id_payload(COM_STMT_RESET, self.id(name));
                self.conn.command(&payload, Shape::Single).await?
            }
            Verb::Close { name } => {
                let payload = id_payload(COM_STMT_CLOSE, self.id(name));
                self.statements.remove(name);
                self.conn.command(&payload, Shape::Silent).await?
            }
            Verb::Single(payload) => self.conn.command(payload, Shape::Single).await?,
            Verb::Query(payload) => self.conn.command(payload, Shape::Query).await?,
            Verb::Fields(payload) => self.conn.command(payload, Shape::FieldList).await?,
            Verb::Silent(payload) => self.conn.command(payload, Shape::Silent).await?,
            Verb::Infile(data) => {
                self.conn.queue_infile(data.clone());
                Response::default()
            }
            Verb::ChangeUser(user) => {
                let login = Login {
                    user: user.clone(),
                    password: password_of(user).into(),
                    ..self.login.clone()
                };
                return self.conn.change_user(&login).await;
            }
        };
        Ok(response.packets)
    }

    async fn both(&mut self, sql: &[u8]) -> Result<Vec<Packet>> {
        let mut packets = self.conn.query(sql).await?.packets;
        let prepared = self.prepare("both", sql).await?;
        let refused = prepared.err().is_some();
        packets.extend(prepared.packets);
        if refused {
            return Ok(packets);
        }
        let id = self.id("both");
        let execute =
            Execute { id, cursor: Cursor::None, types: Types::Sent, params: &[], attributes: &[] };
        packets.extend(self.conn.execute_as(&execute).await?.packets);
        self.conn.close_statement(id).await?;
        Ok(packets)
    }

    async fn with_attributes(
        &mut self,
        attributes: &[(String, String)],
        sql: &[u8],
    ) -> Result<Response> {
        if self.conn.capabilities() & capability::QUERY_ATTRIBUTES == 0 {
            return self.conn.query(sql).await;
        }
        let attributes: Vec<(&str, &str)> =
            attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.conn.query_with_attributes(sql, &attributes).await
    }

    async fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<Response> {
        let payload = [&[COM_STMT_PREPARE], sql].concat();
        let response = self.conn.command(&payload, Shape::Prepare).await?;
        self.statements.remove(name);
        if response.err().is_some() {
            return Ok(response);
        }
        let Prepared { id, mut response, .. } = Prepared::parse(response)?;
        self.statements.insert(name.to_owned(), id);
        // COM_STMT_PREPARE_OK is a zero byte and then the id.
        let id = response.packets.first_mut().and_then(|ok| ok.payload.get_mut(1..5));
        id.into_iter().flatten().for_each(|byte| *byte = 0);
        Ok(response)
    }

    /// A name that could not be prepared has an id that no server gives.
    fn id(&self, name: &str) -> u32 {
        self.statements.get(name).copied().unwrap_or(UNKNOWN_STATEMENT)
    }
}

const UNKNOWN_STATEMENT: u32 = 0x7fff_ffff;

/// `The statement (17) has no open cursor.`
fn hide_id_in_message(packet: &mut Packet, id: u32) {
    let id = format!("({id})").into_bytes();
    let at = packet.payload.windows(id.len()).position(|window| window == id);
    if let Some(at) = at {
        packet.payload.splice(at..at.saturating_add(id.len()), *b"(id)");
    }
}
