//! A login without its authentication response.
//!
//! A client that believes itself safe puts its password into its first packet. Where that packet
//! must not carry it on, it is sent without, and in the name of a plugin that no account has:
//! whatever the account's plugin is, the server then asks for it by an AuthSwitchRequest.

use crate::capability::Capabilities;

use super::client_hello::{Fields, change_user_fields, response_fields};

/// The plugin that no account has.
pub const NO_PLUGIN: &[u8] = b"sluice_asks_again";

/// Appends a handshake response without its authentication response to `out`. False, and nothing
/// appended, when the packet cannot be read as far as its plugin. `caps` is what the packet itself
/// says.
pub fn put_unanswered_response(payload: &[u8], caps: Capabilities, out: &mut Vec<u8>) -> bool {
    put(payload, response_fields(payload, caps), out)
}

/// The same for a COM_CHANGE_USER; `caps` is what was agreed.
pub fn put_unanswered_change_user(payload: &[u8], caps: Capabilities, out: &mut Vec<u8>) -> bool {
    put(payload, change_user_fields(payload, caps), out)
}

fn put(payload: &[u8], fields: Option<Fields>, out: &mut Vec<u8>) -> bool {
    let parts = fields.and_then(|fields| {
        let before = payload.get(..fields.auth_response.start)?;
        let between = payload.get(fields.auth_response.end..fields.plugin.start)?;
        Some((before, between, payload.get(fields.plugin.end..)?))
    });
    let Some((before, between, after)) = parts else { return false };
    out.extend_from_slice(before);
    // A length of zero, or the NUL of an empty string: the same byte.
    out.push(0);
    out.extend_from_slice(between);
    out.extend_from_slice(NO_PLUGIN);
    out.push(0);
    out.extend_from_slice(after);
    true
}
