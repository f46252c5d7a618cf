//! What a client says about itself: the handshake response, and COM_CHANGE_USER in mid-session.

use std::ops::Range;

use crate::capability::{
    CLIENT_CONNECT_ATTRS, CLIENT_CONNECT_WITH_DB, CLIENT_MYSQL, CLIENT_PLUGIN_AUTH,
    CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION,
    CLIENT_SSL, Capabilities,
};
use crate::command::COM_CHANGE_USER;
use crate::error::ProtocolError;
use crate::lenenc::Reader;

use super::{Attributes, overwrite};

/// The client's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHello<'a> {
    /// It wants TLS before it says who it is.
    SslRequest(Capabilities),
    /// It says who it is.
    Response(HandshakeResponse<'a>),
}

/// A handshake response, `HandshakeResponse41` in the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// As sent: intersect with what was offered to know what is agreed.
    pub capabilities: Capabilities,
    /// Longest packet the client wants to receive, in bytes.
    pub max_packet_len: u32,
    /// The client's collation, low byte.
    pub charset: u8,
    /// The user; empty for the anonymous one, or when it cannot be read.
    pub user: &'a [u8],
    /// The default schema, when one is named.
    pub database: Option<&'a [u8]>,
    /// What the plugin says first: a scramble, or, by plugins that trust the connection, a
    /// password.
    pub auth_response: &'a [u8],
    /// The plugin that made the authentication response.
    pub auth_plugin: Option<&'a [u8]>,
    /// Connection attributes.
    pub attributes: Attributes<'a>,
    /// What follows all this: the level byte of zstd, where that is asked for. `None` when not all
    /// of it could be read, so that nobody knows where it ends.
    pub tail: Option<&'a [u8]>,
}

/// Reads the client's first packet. `server` is what the server itself offered: MariaDB's
/// capability word is read only when the server is one. A field behind the fixed part that cannot
/// be read leaves itself and the rest empty.
///
/// # Errors
/// [`ProtocolError::ClientTooOld`] without CLIENT_PROTOCOL_41,
/// [`ProtocolError::ClientHelloMalformed`] below 32 bytes.
pub fn parse_client_hello(
    payload: &[u8],
    server: Capabilities,
) -> Result<ClientHello<'_>, ProtocolError> {
    let fixed = fixed_part(payload, server)?;
    if fixed.capabilities.has(CLIENT_SSL) && payload.len() == FIXED_LEN {
        return Ok(ClientHello::SslRequest(fixed.capabilities));
    }
    let mut response = HandshakeResponse {
        capabilities: fixed.capabilities,
        max_packet_len: fixed.max_packet_len,
        charset: fixed.charset,
        user: &[],
        database: None,
        auth_response: &[],
        auth_plugin: None,
        attributes: Attributes::default(),
        tail: None,
    };
    let reader = Reader::new(payload.get(FIXED_LEN..).unwrap_or_default());
    // Where a field cannot be read, those before it stand.
    read_variable_part(reader, &mut response).unwrap_or_default();
    Ok(ClientHello::Response(response))
}

/// Makes a client's first packet agree to `agreed`, in place. Nothing but the capability words
/// changes, and bit 0 stays as the client set it: it says whether MariaDB's word counts.
///
/// # Errors
/// As [`parse_client_hello`].
pub fn patch_client_hello(payload: &mut [u8], agreed: Capabilities) -> Result<(), ProtocolError> {
    let as_mariadb = Capabilities::default();
    let sent = fixed_part(payload, as_mariadb)?.capabilities;
    let base = agreed.base & !CLIENT_MYSQL | sent.base & CLIENT_MYSQL;
    overwrite(payload, 0, &base.to_le_bytes()).ok_or(ProtocolError::ClientHelloMalformed)?;
    if !sent.has(CLIENT_MYSQL) {
        let mariadb = sent.mariadb & agreed.mariadb;
        overwrite(payload, CAPS_MARIADB, &mariadb.to_le_bytes())
            .ok_or(ProtocolError::ClientHelloMalformed)?;
    }
    Ok(())
}

/// COM_CHANGE_USER: the client becomes somebody else on the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The user.
    pub user: &'a [u8],
    /// The default schema; empty for none.
    pub database: &'a [u8],
    /// What the plugin says first, as in [`HandshakeResponse::auth_response`].
    pub auth_response: &'a [u8],
    /// The client's collation.
    pub charset: Option<u16>,
    /// The plugin that made the authentication response.
    pub auth_plugin: Option<&'a [u8]>,
    /// Connection attributes.
    pub attributes: Attributes<'a>,
}

/// Reads a COM_CHANGE_USER from its whole payload, the command byte 0x11 included. `caps` is what
/// was agreed. A field behind the user that cannot be read leaves itself and the rest empty.
///
/// # Errors
/// [`ProtocolError::CommandTruncated`] when the user does not end, or the command is another.
pub fn parse_change_user(
    payload: &[u8],
    caps: Capabilities,
) -> Result<ChangeUser<'_>, ProtocolError> {
    let truncated = ProtocolError::CommandTruncated { command: COM_CHANGE_USER };
    let mut reader = Reader::new(payload);
    if reader.u8() != Some(COM_CHANGE_USER) {
        return Err(truncated);
    }
    let user = reader.nul_terminated().ok_or(truncated)?;
    let mut change = ChangeUser {
        user,
        database: &[],
        auth_response: &[],
        charset: None,
        auth_plugin: None,
        attributes: Attributes::default(),
    };
    // Where a field cannot be read, those before it stand.
    read_change_user(reader, caps, &mut change).unwrap_or_default();
    Ok(change)
}

struct FixedPart {
    capabilities: Capabilities,
    max_packet_len: u32,
    charset: u8,
}

fn fixed_part(payload: &[u8], server: Capabilities) -> Result<FixedPart, ProtocolError> {
    let malformed = ProtocolError::ClientHelloMalformed;
    let low = Reader::new(payload).u16().ok_or(malformed)?;
    if u32::from(low) & CLIENT_PROTOCOL_41 == 0 {
        return Err(ProtocolError::ClientTooOld);
    }
    let mut reader = Reader::new(payload.get(..FIXED_LEN).ok_or(malformed)?);
    let base = reader.u32().ok_or(malformed)?;
    let max_packet_len = reader.u32().ok_or(malformed)?;
    let charset = reader.u8().ok_or(malformed)?;
    reader.bytes(19).ok_or(malformed)?;
    let mariadb = reader.u32().ok_or(malformed)?;
    let mut capabilities = Capabilities { base, mariadb: 0 };
    if server.is_mariadb_server() && !capabilities.has(CLIENT_MYSQL) {
        capabilities.mariadb = mariadb;
    }
    Ok(FixedPart { capabilities, max_packet_len, charset })
}

fn read_variable_part<'a>(
    mut reader: Reader<'a>,
    response: &mut HandshakeResponse<'a>,
) -> Option<()> {
    let caps = response.capabilities;
    response.user = reader.nul_terminated()?;
    response.auth_response = auth_response(&mut reader, caps)?;
    if caps.has(CLIENT_CONNECT_WITH_DB) {
        response.database = Some(reader.nul_terminated()?);
    }
    if caps.has(CLIENT_PLUGIN_AUTH) {
        response.auth_plugin = Some(reader.nul_terminated()?);
    }
    let mut ahead = reader;
    if caps.has(CLIENT_CONNECT_ATTRS) {
        response.attributes = Attributes::take(&mut reader);
        ahead.lenenc_bytes()?;
    }
    response.tail = Some(ahead.rest());
    Some(())
}

fn read_change_user<'a>(
    mut reader: Reader<'a>,
    caps: Capabilities,
    change: &mut ChangeUser<'a>,
) -> Option<()> {
    change.auth_response = short_auth_response(&mut reader, caps)?;
    change.database = reader.nul_terminated()?;
    change.charset = Some(reader.u16()?);
    if caps.has(CLIENT_PLUGIN_AUTH) {
        change.auth_plugin = Some(reader.nul_terminated()?);
    }
    if caps.has(CLIENT_CONNECT_ATTRS) {
        change.attributes = Attributes::take(&mut reader);
    }
    Some(())
}

/// The authentication response of a handshake response.
fn auth_response<'a>(reader: &mut Reader<'a>, caps: Capabilities) -> Option<&'a [u8]> {
    if caps.has(CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
        reader.lenenc_bytes()
    } else {
        short_auth_response(reader, caps)
    }
}

/// An authentication response with a length byte, or before CLIENT_SECURE_CONNECTION with a NUL.
fn short_auth_response<'a>(reader: &mut Reader<'a>, caps: Capabilities) -> Option<&'a [u8]> {
    if caps.has(CLIENT_SECURE_CONNECTION) {
        let len = reader.u8()?;
        reader.bytes(usize::from(len))
    } else {
        reader.nul_terminated()
    }
}

/// Where a packet's authentication response and plugin lie, each with its length or its NUL.
pub(super) struct Fields {
    pub(super) auth_response: Range<usize>,
    pub(super) plugin: Range<usize>,
}

/// The fields of a handshake response that says `caps`.
pub(super) fn response_fields(payload: &[u8], caps: Capabilities) -> Option<Fields> {
    let mut reader = Reader::new(payload);
    let position = |reader: &Reader<'_>| payload.len().saturating_sub(reader.rest().len());
    reader.bytes(FIXED_LEN)?;
    reader.nul_terminated()?;
    let auth_start = position(&reader);
    auth_response(&mut reader, caps)?;
    let auth_end = position(&reader);
    if caps.has(CLIENT_CONNECT_WITH_DB) {
        reader.nul_terminated()?;
    }
    if !caps.has(CLIENT_PLUGIN_AUTH) {
        return None;
    }
    let plugin_start = position(&reader);
    reader.nul_terminated()?;
    Some(Fields { auth_response: auth_start..auth_end, plugin: plugin_start..position(&reader) })
}

/// The fields of a COM_CHANGE_USER.
pub(super) fn change_user_fields(payload: &[u8], caps: Capabilities) -> Option<Fields> {
    let mut reader = Reader::new(payload);
    let position = |reader: &Reader<'_>| payload.len().saturating_sub(reader.rest().len());
    if reader.u8()? != COM_CHANGE_USER {
        return None;
    }
    reader.nul_terminated()?;
    let auth_start = position(&reader);
    short_auth_response(&mut reader, caps)?;
    let auth_end = position(&reader);
    reader.nul_terminated()?;
    reader.u16()?;
    if !caps.has(CLIENT_PLUGIN_AUTH) {
        return None;
    }
    let plugin_start = position(&reader);
    reader.nul_terminated()?;
    Some(Fields { auth_response: auth_start..auth_end, plugin: plugin_start..position(&reader) })
}

/// Length of an SSLRequest: the part that every response begins with.
pub const SSL_REQUEST_LEN: usize = 32;
const FIXED_LEN: usize = SSL_REQUEST_LEN;
const CAPS_MARIADB: usize = 28;
