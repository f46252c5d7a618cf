//! The connection phase: who speaks what, and who the client is.
//!
//! A relay changes nothing here but capability bits: the scramble, the plugin and the connection id
//! are the server's, the response is the client's. So packets are read where they lie and patched
//! in place, never written anew. What the client says beyond the fixed part is read as far as it
//! can be read: drivers have broken nearly every optional field once, and servers accept them.
//!
//! Manual: "Connection Phase Packets".

mod attributes;
mod auth_reply;
mod client_hello;
mod greeting;
mod unanswered;

pub use attributes::{ATTRIBUTES_LEN_MAX, Attributes, AttributesIter};
pub use auth_reply::{AuthReply, auth_reply};
pub use client_hello::{
    ChangeUser, ClientHello, HandshakeResponse, SSL_REQUEST_LEN, parse_change_user,
    parse_client_hello, patch_client_hello,
};
pub use greeting::{Greeting, ServerHello, parse_server_hello, patch_greeting};
pub use unanswered::{NO_PLUGIN, put_unanswered_change_user, put_unanswered_response};

/// Writes `bytes` over those at `at`; `None` when they do not fit.
fn overwrite(payload: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    let target = payload.get_mut(at..)?.get_mut(..bytes.len())?;
    target.copy_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests;
