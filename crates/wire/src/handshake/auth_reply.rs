//! What a server says while it authenticates.

use crate::capability::{CLIENT_MULTI_FACTOR_AUTHENTICATION, Capabilities};
use crate::lenenc::Reader;
use crate::packet::{EOF_HEADER, ERR_HEADER, OK_HEADER};

/// What a server's packet means during authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthReply<'a> {
    /// The client is in; the command phase begins.
    Ok,
    /// The client is refused; the server closes.
    Err,
    /// The client is to go on with this plugin: AuthSwitchRequest, or AuthNextFactor.
    Plugin {
        /// The plugin's name.
        name: &'a [u8],
        /// What the server's plugin says first: the nonce, for those that have one, without its
        /// NUL.
        data: &'a [u8],
    },
    /// AuthMoreData: bytes of the plugin.
    MoreData(&'a [u8]),
    /// Bytes of a plugin without any frame around them, as MariaDB sends them; or the ancient
    /// request for a password of before 4.1.
    Other,
}

/// Reads a server's packet of the authentication exchange. `caps` is what was agreed.
#[must_use]
pub fn auth_reply(payload: &[u8], caps: Capabilities) -> AuthReply<'_> {
    let Some((&first, rest)) = payload.split_first() else { return AuthReply::Other };
    let names_plugin = first == EOF_HEADER
        || first == AUTH_NEXT_FACTOR && caps.has(CLIENT_MULTI_FACTOR_AUTHENTICATION);
    match first {
        OK_HEADER => AuthReply::Ok,
        ERR_HEADER => AuthReply::Err,
        AUTH_MORE_DATA => AuthReply::MoreData(rest),
        _ if names_plugin && !rest.is_empty() => {
            let mut reader = Reader::new(rest);
            let name = reader.nul_terminated().unwrap_or(rest);
            let data = if name.len() == rest.len() { &[] } else { reader.rest() };
            AuthReply::Plugin { name, data: data.strip_suffix(b"\0").unwrap_or(data) }
        }
        _ => AuthReply::Other,
    }
}

const AUTH_MORE_DATA: u8 = 0x01;
const AUTH_NEXT_FACTOR: u8 = 0x02;
