//! How connections of a cluster are made: addresses, limits, the PROXY protocol.

use super::checks::{address, duration, keyword, networks, socket_path, whole};
use super::limits;
use crate::fault::Faults;
use crate::network::{Keepalive, Listen, Network, ProxyProtocol, SendProxy, UNIX_PREFIX};
use crate::raw::{self, Maybe, Spanned};

/// What the keys of a cluster say about its connections.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) listen_mode: Maybe<String>,
    pub(super) max_connections: Maybe<i128>,
    pub(super) login_timeout: Maybe<std::time::Duration>,
    pub(super) keepalive: Maybe<raw::Keepalive>,
    pub(super) proxy_protocol: Maybe<raw::ProxyProtocol>,
}

/// Where clients connect: an address, or `unix:/path`.
pub(super) fn listen(text: &Spanned<String>, faults: &mut Faults) -> Option<Listen> {
    match text.value.strip_prefix(UNIX_PREFIX) {
        Some(path) => socket_path(path, text, faults).map(Listen::Unix),
        None => address(text, faults).map(Listen::Tcp),
    }
}

pub(super) fn compile(keys: Keys, listen: Option<&Listen>, faults: &mut Faults) -> Network {
    let on_unix = matches!(listen, Some(Listen::Unix(_)));
    if let Some(mode) = keys.listen_mode.as_ref().filter(|_| listen.is_some() && !on_unix) {
        faults.add(&mode.place, "has no effect: `listen` is not a Unix socket");
    }
    Network {
        listen_mode: mode(keys.listen_mode, faults),
        connections_max: whole(keys.max_connections, limits::MAX_CONNECTIONS, faults),
        login_timeout: duration(keys.login_timeout, limits::LOGIN_TIMEOUT, faults),
        keepalive: keepalive(keys.keepalive, faults),
        proxy_protocol: proxy_protocol(keys.proxy_protocol, on_unix, faults),
    }
}

/// Permission bits, in octal.
fn mode(text: Maybe<String>, faults: &mut Faults) -> u32 {
    let Some(Spanned { value, place }) = text else { return limits::LISTEN_MODE };
    match u32::from_str_radix(&value, 8) {
        Ok(mode) if mode <= 0o777 && (3..=4).contains(&value.len()) => mode,
        Ok(_) | Err(_) => {
            faults.add(&place, "must be permission bits in octal and in quotes, like \"0660\"");
            limits::LISTEN_MODE
        }
    }
}

fn keepalive(keepalive: Maybe<raw::Keepalive>, faults: &mut Faults) -> Keepalive {
    let raw = keepalive.map(|keepalive| keepalive.value).unwrap_or_default();
    let user_timeout = duration(raw.user_timeout, limits::USER_TIMEOUT, faults);
    Keepalive {
        idle: duration(raw.idle, limits::KEEPALIVE_IDLE, faults),
        interval: duration(raw.interval, limits::KEEPALIVE_INTERVAL, faults),
        count: whole(raw.count, limits::KEEPALIVE_COUNT, faults),
        user_timeout: (!user_timeout.is_zero()).then_some(user_timeout),
    }
}

fn proxy_protocol(
    proxy_protocol: Maybe<raw::ProxyProtocol>,
    on_unix: bool,
    faults: &mut Faults,
) -> ProxyProtocol {
    let raw = proxy_protocol.map(|section| section.value).unwrap_or_default();
    let from = raw.from.map(|from| {
        if on_unix {
            let message = "has no effect: `listen` is a Unix socket, whose peers have no address";
            faults.add(&from.place, message);
        }
        networks(&from.value, &from.place, faults)
    });
    ProxyProtocol {
        from: from.unwrap_or_default(),
        timeout: duration(raw.timeout, limits::PROXY_HEADER_TIMEOUT, faults),
        send: keyword(raw.send, SendProxy::None, &SEND, faults),
    }
}

const SEND: [(&str, SendProxy); 2] = [("none", SendProxy::None), ("v2", SendProxy::V2)];
