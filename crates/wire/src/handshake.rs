//! The connection phase: who speaks what, and who the client is.
//!
//! A relay changes nothing here but capability bits: the scramble, the plugin and the connection id are the
//! server's, the response is the client's. So packets are read where they lie and patched in place, never
//! written anew. What the client says beyond the fixed part is read as far as it can be read: drivers
//! have broken nearly every optional field once, and servers accept them.
//!
//! Manual: "Connection Phase Packets".

mod attributes;
mod client_hello;
mod greeting;

pub use attributes::{ATTRIBUTES_LEN_MAX, Attributes, AttributesIter};
pub use client_hello::{
    ChangeUser, ClientHello, HandshakeResponse, parse_change_user, parse_client_hello,
    patch_client_hello,
};
pub use greeting::{Greeting, ServerHello, parse_server_hello, patch_greeting};

use crate::packet::{ERR_HEADER, OK_HEADER};

/// What a server's packet means during authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthReply {
    /// The client is in; the command phase begins.
    Ok,
    /// The client is refused; the server closes.
    Err,
    /// A switch of plugin, more data, the next factor or bytes of a plugin: opaque, pass it on.
    Continue,
}

/// Tells where authentication stands by the first byte of a server's packet.
#[must_use]
pub fn auth_reply(payload: &[u8]) -> AuthReply {
    match payload.first() {
        Some(&OK_HEADER) => AuthReply::Ok,
        Some(&ERR_HEADER) => AuthReply::Err,
        _ => AuthReply::Continue,
    }
}

/// Writes `bytes` over those at `at`; `None` when they do not fit.
fn overwrite(payload: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    let target = payload.get_mut(at..)?.get_mut(..bytes.len())?;
    target.copy_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests;
