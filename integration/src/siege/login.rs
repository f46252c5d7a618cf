//! Logging in with bytes behind the login response, which no client library does.

use std::net::SocketAddr;

use mysql_common::scramble::{scramble_native, scramble_sha256};

use crate::error::{HarnessError, Result};
use crate::raw::{Compress, Login, RawConn, Tls, capability, framed};
use crate::siege::sequence::Entry;

/// A connection that has logged in as the entry says.
///
/// # Errors
/// When it is refused, or broken off.
pub async fn open(addr: SocketAddr, entry: &Entry) -> Result<RawConn> {
    let account = account(&entry.user);
    let mut login =
        Login::new(&entry.user).password(account).with(entry.with).without(entry.without);
    login.schema = "w".into();
    login.collation = entry.collation;
    if entry.tls {
        login.tls = Tls::Newest;
    }
    login.compress = match entry.compress {
        None => Compress::Never,
        Some('s') => Compress::Zstd(3),
        Some(_) => Compress::Zlib,
    };
    if entry.ahead.is_empty() {
        return RawConn::open(addr, &login).await;
    }
    let mut conn = RawConn::connect(addr).await?;
    log_in_ahead(&mut conn, &login, &entry.ahead).await?;
    Ok(conn)
}

/// The account that a spelling of its name is taken for by the servers.
#[must_use]
pub fn account(user: &str) -> &str {
    user.trim_matches(|c| matches!(c, '\'' | '"' | '`' | ' '))
}

async fn log_in_ahead(conn: &mut RawConn, login: &Login, ahead: &[u8]) -> Result<()> {
    let greeting = conn.read_packet().await?;
    let (plugin, scramble) = plugin_of(&greeting.payload);
    let capabilities = login.capabilities & !capability::CONNECT_ATTRS;
    let mut sequence = greeting.seq.wrapping_add(1);
    if !matches!(login.tls, Tls::Never) {
        let with_ssl = response(login, capabilities | capability::SSL, &plugin, &scramble);
        conn.send_payload(sequence, with_ssl.get(..32).unwrap_or_default()).await?;
        conn.start_tls(&login.tls).await?;
        sequence = sequence.wrapping_add(1);
    }
    let tls = if matches!(login.tls, Tls::Never) { 0 } else { capability::SSL };
    let payload = response(login, capabilities | tls, &plugin, &scramble);
    let mut bytes = framed(sequence, &payload);
    bytes.extend_from_slice(ahead);
    conn.send_bytes(&bytes).await?;
    loop {
        let packet = conn.read_packet().await?;
        match packet.payload.as_slice() {
            [0x00, ..] => return Ok(()),
            [0xff, ..] => return Err(HarnessError::Protocol("refused".into())),
            [0xfe, rest @ ..] => {
                let answer = switched(rest, &login.password);
                conn.send_payload(packet.seq.wrapping_add(1), &answer).await?;
            }
            [0x01, 0x03] => {}
            // Full authentication: the account has logged in before, so this is not expected.
            _ => return Err(HarnessError::Protocol(format!("login: {packet:?}"))),
        }
    }
}

fn response(login: &Login, capabilities: u32, plugin: &str, scramble: &[u8]) -> Vec<u8> {
    let mut out = capabilities.to_le_bytes().to_vec();
    out.extend_from_slice(&0x4000_0000_u32.to_le_bytes());
    out.push(login.collation);
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(login.user.as_bytes());
    out.push(0);
    let answer = answer(plugin, scramble, &login.password);
    out.push(u8::try_from(answer.len()).unwrap_or_default());
    out.extend_from_slice(&answer);
    out.extend_from_slice(login.schema.as_bytes());
    out.push(0);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out
}

fn answer(plugin: &str, scramble: &[u8], password: &str) -> Vec<u8> {
    match plugin {
        "mysql_native_password" => {
            scramble_native(scramble, password.as_bytes()).map(|a| a.to_vec())
        }
        _ => scramble_sha256(scramble, password.as_bytes()).map(|a| a.to_vec()),
    }
    .unwrap_or_default()
}

/// The plugin's name and the nonce in a greeting.
fn plugin_of(greeting: &[u8]) -> (String, Vec<u8>) {
    let (_, rest) = split_nul(greeting.get(1..).unwrap_or_default());
    let first = rest.get(4..12).unwrap_or_default();
    let (second, rest) = split_nul(rest.get(31..).unwrap_or_default());
    let (plugin, _) = split_nul(rest);
    (String::from_utf8_lossy(plugin).into_owned(), [first, second].concat())
}

fn split_nul(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (head, tail) = bytes.split_at(end);
    (head, tail.get(1..).unwrap_or_default())
}

/// What answers an authentication switch, its first byte taken.
pub(super) fn switched(rest: &[u8], password: &str) -> Vec<u8> {
    let (plugin, scramble) = split_nul(rest);
    let scramble = scramble.strip_suffix(&[0]).unwrap_or(scramble);
    answer(&String::from_utf8_lossy(plugin), scramble, password)
}
