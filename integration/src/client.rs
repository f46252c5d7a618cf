//! Thin ways to connect with `mysql_async`, plaintext over TCP.

use std::net::SocketAddr;
use std::time::Duration;

use mysql_async::{Conn, OptsBuilder};

use crate::error::{HarnessError, Result};

/// Options for an account of the harness: its password is known, no TLS, no socket, and no statement
/// that the application did not ask for.
#[must_use]
pub fn options(addr: SocketAddr, user: &str) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(addr.ip().to_string())
        .tcp_port(addr.port())
        .user(Some(user))
        .pass(Some(password_of(user)))
        .db_name(Some(schema_of(user)))
        .prefer_socket(false)
        // Known values keep the client from asking the server for them.
        .max_allowed_packet(Some(MAX_ALLOWED_PACKET))
        .wait_timeout(Some(WAIT_TIMEOUT_S))
}

/// Connects as an account of the harness to the schema `test`.
///
/// # Errors
/// When the server does not answer in time or refuses.
pub async fn connect(addr: SocketAddr, user: &str) -> Result<Conn> {
    connect_with(options(addr, user)).await
}

/// Connects with connection attributes (`program_name`, `sluice_app`, …).
///
/// # Errors
/// When the server does not answer in time or refuses.
pub async fn connect_with_attributes(
    addr: SocketAddr,
    user: &str,
    attributes: &[(&str, &str)],
) -> Result<Conn> {
    let options = attributes
        .iter()
        .fold(options(addr, user), |options, (key, value)| options.connect_attribute(*key, *value));
    connect_with(options).await
}

/// Connects with options of one's own.
///
/// # Errors
/// When the server does not answer in time or refuses.
pub async fn connect_with(options: OptsBuilder) -> Result<Conn> {
    match tokio::time::timeout(CONNECT_LIMIT, Conn::new(options)).await {
        Ok(conn) => Ok(conn?),
        Err(_) => Err(HarnessError::TimedOut { what: "login".into(), after: CONNECT_LIMIT }),
    }
}

/// The password of an account of the harness: its name, but for the probe's.
#[must_use]
pub fn password_of(user: &str) -> &str {
    if user == "sluice" { PROBE_PASSWORD } else { user }
}

/// The probe has no right on `test`.
fn schema_of(user: &str) -> &str {
    if user == "sluice" { "sluice" } else { "test" }
}

/// The password of the account `sluice`, which the probe uses.
pub const PROBE_PASSWORD: &str = "sluice-probe";

const MAX_ALLOWED_PACKET: usize = 64 << 20;
const WAIT_TIMEOUT_S: usize = 28_800;
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
