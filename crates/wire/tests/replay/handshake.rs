//! The connection phase: packets of either side, read and patched.

#![expect(clippy::expect_used, clippy::panic, reason = "a check fails by panicking")]

use testkit::Input;
use wire::capability::{CLIENT_PROTOCOL_41, Capabilities};
use wire::frame::split_frame;
use wire::handshake::{
    AuthReply, ClientHello, Greeting, HandshakeResponse, NO_PLUGIN, ServerHello, auth_reply,
    parse_change_user, parse_client_hello, parse_server_hello, patch_client_hello, patch_greeting,
    put_unanswered_change_user, put_unanswered_response,
};
use wire::packet::{
    ERR_MESSAGE_LEN_MAX, EofPacket, ErrPacket, OkPacket, SessionChange, encode_err,
    put_without_redirect,
};

/// Reads any bytes as every packet of the connection phase.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.u8();
    let caps = Capabilities { base: input.u32(), mariadb: input.u32() };
    let payload = input.rest();
    match kind % 4 {
        0 => greeting(&[&[10], payload].concat(), caps),
        1 => response(payload, caps),
        2 => change_user(&[&[0x11], payload].concat(), caps),
        _ => packets(payload, caps),
    }
}

fn greeting(payload: &[u8], offered: Capabilities) {
    let Ok(ServerHello::Greeting(greeting)) = parse_server_hello(payload) else { return };
    let before = greeting.capabilities;
    assert!(greeting.is_mariadb() || before.mariadb == 0);
    let mut patched = payload.to_vec();
    patch_greeting(&mut patched, before).expect("a greeting that was read can be patched");
    assert_eq!(patched, payload, "patching with what is there changes nothing");
    let offered = Capabilities {
        base: offered.base & before.base,
        mariadb: offered.mariadb & before.mariadb,
    };
    patch_greeting(&mut patched, offered).expect("as above");
    let Ok(ServerHello::Greeting(after)) = parse_server_hello(&patched) else {
        panic!("a patched greeting is a greeting");
    };
    let same = |of: &Greeting<'_>| {
        let version = of.server_version.to_vec();
        let scramble = of.scramble.concat();
        (version, of.connection_id, of.charset, of.status, scramble)
    };
    assert_eq!(same(&after), same(&greeting));
    let changed = patched.iter().zip(payload).filter(|(a, b)| a != b).count();
    assert!(patched.len() == payload.len() && changed <= 8);
}

fn response(payload: &[u8], caps: Capabilities) {
    // Nothing is agreed on without it.
    let caps = Capabilities { base: caps.base | CLIENT_PROTOCOL_41, ..caps };
    let hello = parse_client_hello(payload, caps);
    let mut patched = payload.to_vec();
    let patch = patch_client_hello(&mut patched, caps);
    assert_eq!(hello.is_ok(), patch.is_ok(), "what is read can be patched, and nothing else");
    if patch.is_err() {
        assert_eq!(patched, payload);
        return;
    }
    assert_eq!(patched.get(32..), payload.get(32..));
    let again = patched.clone();
    patch_client_hello(&mut patched, caps).expect("as above");
    assert_eq!(patched, again, "patching twice is patching once");
    let Ok(ClientHello::Response(response)) = hello else { return };
    let HandshakeResponse { user, database, auth_response, auth_plugin, attributes, .. } = response;
    let within = user.len() + auth_response.len() + database.map_or(0, <[u8]>::len);
    assert!(within + auth_plugin.map_or(0, <[u8]>::len) <= payload.len());
    assert!(attributes.iter().count() <= payload.len());
    let mut out = Vec::new();
    if put_unanswered_response(payload, response.capabilities, &mut out) {
        let Ok(ClientHello::Response(without)) = parse_client_hello(&out, caps) else {
            panic!("what was written can be read");
        };
        assert_eq!((without.user, without.database), (user, database));
        assert_eq!((without.auth_response, without.auth_plugin), (&b""[..], Some(NO_PLUGIN)));
        assert!(without.attributes.iter().eq(attributes.iter()));
    } else {
        assert!(out.is_empty());
    }
}

fn change_user(payload: &[u8], caps: Capabilities) {
    let Ok(change) = parse_change_user(payload, caps) else { return };
    assert!(change.attributes.iter().count() <= payload.len());
    let mut out = Vec::new();
    if put_unanswered_change_user(payload, caps, &mut out) {
        let without = parse_change_user(&out, caps).expect("what was written can be read");
        assert_eq!((without.user, without.database), (change.user, change.database));
        assert_eq!(without.charset, change.charset);
        assert_eq!((without.auth_response, without.auth_plugin), (&b""[..], Some(NO_PLUGIN)));
        assert!(without.attributes.iter().eq(change.attributes.iter()));
    } else {
        assert!(out.is_empty());
    }
}

fn packets(payload: &[u8], caps: Capabilities) {
    let reply = auth_reply(payload, caps);
    assert_eq!(reply == AuthReply::Ok, payload.first() == Some(&0x00));
    assert_eq!(reply == AuthReply::Err, payload.first() == Some(&0xff));
    if let Ok(error) = ErrPacket::parse(payload) {
        let mut out = Vec::new();
        encode_err(&mut out, 1, error.code, b"HY000", error.message);
        let (_, again, rest) = split_frame(&out).expect("one frame");
        assert!(rest.is_empty());
        let again = ErrPacket::parse(again).expect("what was written can be read");
        assert_eq!(again.code, error.code);
        let cut = again.message.len() < error.message.len();
        assert!(!cut || error.message.len() > ERR_MESSAGE_LEN_MAX);
        assert!(error.message.starts_with(again.message));
    }
    EofPacket::parse(payload).ok();
    redirects(payload, caps);
}

/// What is relayed of a login's OK sends nobody elsewhere, and says all else that it said.
fn redirects(payload: &[u8], caps: Capabilities) {
    let mut out = Vec::new();
    let stripped = put_without_redirect(payload, caps, &mut out);
    assert!(stripped || out.is_empty());
    let Ok(before) = OkPacket::parse(payload, caps) else { return };
    let relayed = if stripped { &out[..] } else { payload };
    let after = OkPacket::parse(relayed, caps).expect("what is relayed is an OK");
    assert!(after.session_changes.iter().all(|change| !is_redirect(&change)));
    assert!(!after.info.to_ascii_lowercase().starts_with(b"location: mysql://"));
    assert_eq!((after.affected_rows, after.warnings), (before.affected_rows, before.warnings));
    let kept = before.session_changes.iter().filter(|change| !is_redirect(change));
    assert!(after.session_changes.iter().eq(kept), "nothing else is lost");
}

fn is_redirect(change: &SessionChange<'_>) -> bool {
    match change {
        SessionChange::SystemVariable { name, value } => {
            name.eq_ignore_ascii_case(b"redirect_url") && !value.is_empty()
        }
        SessionChange::Schema(_) | SessionChange::Other(_) => false,
    }
}
