//! What the client says first: who it is, and over which legs. It is sent on when both are as safe
//! as they will be.

use policy::identity::{NamedIn, SessionIdentity, user_as_read};
use policy::{BackendTlsMode, ClientTlsMode, ClusterPolicy};
use sql::Charset;
use wire::capability::{CLIENT_SSL, Capabilities};
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::handshake::{
    ChangeUser, ClientHello, HandshakeResponse, SSL_REQUEST_LEN, parse_client_hello,
    patch_client_hello, put_unanswered_change_user, put_unanswered_response,
};
use wire::packet::ERR_HEADER;

use super::exchange::{Exchange, Kept, kept_back, shown};
use super::{
    Applicant, Desk, FIRST_SEQUENCE, Hello, Next, Stage, TooLong, after_response, deny,
    first_sequence, login_frame, stay,
};
use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::compression::Compressions;
use crate::denial::Denial;
use crate::leg::{Leg, OF_EACH_LEG, TLS};
use crate::negotiated::Negotiated;
use crate::outbox::Outbox;

/// What is to be done about TLS with the server.
enum TlsNeed {
    /// The leg is as it has to be.
    Settled,
    /// It has to be encrypted.
    Start,
    /// It would have to be, and the server cannot.
    Impossible,
}

/// Deals with the client's response, when it is there.
pub(super) fn next(hello: Hello, desk: &mut Desk<'_>, input: &Input<'_>) -> Next {
    if let Some(ended) = server_gave_up(desk, input) {
        return ended;
    }
    let (len, payload) = match login_frame(input.client) {
        Some(Ok(frame)) => frame,
        Some(Err(TooLong)) => return bad_handshake("the packet is too long", desk, input),
        None => return stay(Stage::Response(hello), Action::Read(Reads::Either)),
    };
    let expected = first_sequence(desk.negotiated.legs);
    if FrameHeader::parse(input.client).is_some_and(|header| header.sequence != expected) {
        // Servers number their answer with the id that they awaited.
        return deny(Denial::OutOfOrder, "", expected, desk.out);
    }
    let in_tls = desk.negotiated.legs.client == Leg::Tls;
    let offers_tls = hello.offered.has(CLIENT_SSL);
    let response = match parse_client_hello(payload, desk.negotiated.server_capabilities) {
        Ok(ClientHello::SslRequest(_)) if offers_tls && !in_tls => {
            // Nothing of what it says counts: the client says it again inside.
            let start = Action::StartTls { side: Side::Client, drop: len };
            return stay(Stage::ClientTls(hello), start);
        }
        Ok(ClientHello::Response(response)) => response,
        Ok(ClientHello::SslRequest(_)) => {
            return bad_handshake("TLS twice, or where it was not offered", desk, input);
        }
        Err(why) => return bad_handshake(&why.to_string(), desk, input),
    };
    if response.capabilities.has(CLIENT_SSL) && offers_tls && !in_tls {
        // It says that TLS begins here, and then says who it is for everybody to hear.
        return Next::Close(CloseReason::ClientProtocol);
    }
    let collation = u16::from(response.charset);
    let server = desk.negotiated.server;
    let named_in = NamedIn::HandshakeResponse;
    let user = match user_as_read(response.user, named_in, Some(collation), server) {
        Ok(user) => user,
        Err(why) => {
            let after = after_response(desk.negotiated.legs, input.client);
            return deny(Denial::UserUnreadable, &why.to_string(), after, desk.out);
        }
    };
    let charset = Charset::from_collation_id(collation, server);
    desk.negotiated.charset = charset;
    let schema = response.database.unwrap_or_default();
    let mut identity =
        SessionIdentity::new(user, desk.client.address, schema, response.attributes.iter());
    if !charset.keeps_name(schema) {
        identity.doubt_schema();
    }
    desk.who.become_user(identity);
    secure(hello, &response, (len, payload), desk, input)
}

/// Makes both legs as safe and as compressed as they will be, and sends the response on.
fn secure(
    hello: Hello,
    response: &HandshakeResponse<'_>,
    (len, payload): (usize, &[u8]),
    desk: &mut Desk<'_>,
    input: &Input<'_>,
) -> Next {
    let Desk { negotiated, out, .. } = desk;
    let sequence = FrameHeader::parse(input.client).map_or(1, |header| header.sequence);
    let after = sequence.wrapping_add(1);
    let requires = input.policy.client_tls.mode == ClientTlsMode::Required;
    if requires && !negotiated.legs.client.is_safe() {
        return deny(Denial::TlsRequired, "", after, out);
    }
    let server = negotiated.server_capabilities;
    match Compressions::agree(response, hello.offered, server, input.policy) {
        Ok(compressions) => negotiated.compressions = compressions,
        Err(denial) => return deny(denial, "", after, out),
    }
    let agreed = response.capabilities.intersect(hello.offered).without(OF_EACH_LEG);
    match backend_tls(negotiated, input.policy) {
        TlsNeed::Settled => {
            negotiated.capabilities = agreed;
            respond(&hello, response, input.client.get(..len).unwrap_or_default(), desk)
        }
        TlsNeed::Start => {
            let fixed = payload.get(..SSL_REQUEST_LEN).unwrap_or_default();
            out.put_frame(FIRST_SEQUENCE, fixed);
            negotiated.is_answered = true;
            patch_response(out, agreed | TLS | negotiated.compressions.to_server());
            stay(Stage::BackendTls(hello), Move::outbox_to(Side::Backend).into())
        }
        TlsNeed::Impossible => deny(Denial::ServerWithoutTls, "", after, out),
    }
}

/// The server gave up on a client that does not speak (its connect_timeout), or goes. Whatever else
/// comes ahead of the response is not the server's: nothing that TLS is still to protect may reach
/// the client.
fn server_gave_up(desk: &mut Desk<'_>, input: &Input<'_>) -> Option<Next> {
    let (len, payload) = match login_frame(input.backend)? {
        Ok(frame) => frame,
        Err(TooLong) => return Some(Next::Close(CloseReason::BackendProtocol)),
    };
    if payload.first() != Some(&ERR_HEADER) {
        return Some(Next::Close(CloseReason::BackendProtocol));
    }
    let moved = match desk.negotiated.legs.client {
        Leg::Network | Leg::Unix => Move::Forward { from: Side::Backend, len },
        Leg::Tls => {
            // The client has sent one packet more than the server has seen.
            desk.out.put_frame(FIRST_SEQUENCE.wrapping_add(1), payload);
            Move::Replace { from: Side::Backend, drop: len }
        }
    };
    Some(Next::Refused(moved.into()))
}

fn backend_tls(negotiated: &Negotiated, policy: &ClusterPolicy) -> TlsNeed {
    let offers = negotiated.server_capabilities.has(CLIENT_SSL);
    let wanted = match (policy.backend_tls.mode, negotiated.legs.backend) {
        (_, Leg::Tls) | (BackendTlsMode::Disabled, _) => false,
        // A Unix socket is heard by nobody either.
        (BackendTlsMode::AsClient | BackendTlsMode::Preferred, Leg::Unix) => false,
        (BackendTlsMode::AsClient, Leg::Network) => negotiated.legs.client == Leg::Tls,
        (BackendTlsMode::Preferred, Leg::Network) => offers,
        (
            BackendTlsMode::Required | BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity,
            Leg::Network | Leg::Unix,
        ) => true,
    };
    match (wanted, offers) {
        (false, _) => TlsNeed::Settled,
        (true, true) => TlsNeed::Start,
        (true, false) => TlsNeed::Impossible,
    }
}

/// Sends the client's response on: both legs are as safe as they will be.
fn respond(
    hello: &Hello,
    response: &HandshakeResponse<'_>,
    frame: &[u8],
    desk: &mut Desk<'_>,
) -> Next {
    let Desk { negotiated, out, .. } = desk;
    let payload = frame.get(HEADER_LEN..).unwrap_or_default();
    let client = FrameHeader::parse(frame).map_or(FIRST_SEQUENCE, |header| header.sequence);
    let (backend, tls) = match negotiated.legs.backend {
        Leg::Tls => (FIRST_SEQUENCE.wrapping_add(1), TLS),
        Leg::Network | Leg::Unix => (FIRST_SEQUENCE, Capabilities::default()),
    };
    let plugin = response.auth_plugin.unwrap_or(&hello.plugin);
    let mut kept = kept_back(plugin, response.auth_response, negotiated.legs);
    let frame_bytes = out.begin_frame();
    if kept == Kept::Nothing {
        frame_bytes.extend_from_slice(payload);
    } else if !put_unanswered_response(payload, response.capabilities, frame_bytes) {
        if matches!(kept, Kept::Password(_)) {
            let after = client.wrapping_add(1);
            return deny(Denial::PasswordExposed, &shown(plugin), after, out);
        }
        kept = Kept::Nothing;
        frame_bytes.extend_from_slice(payload);
    }
    negotiated.compressions.put_level(response, frame_bytes);
    out.seal(backend);
    patch_response(out, negotiated.capabilities | tls | negotiated.compressions.to_server());
    negotiated.is_answered = true;
    let exchange = Exchange::new(plugin, negotiated.nonce.clone(), (client, backend), kept);
    let sent = Move::Replace { from: Side::Client, drop: frame.len() };
    stay(Stage::Exchange(Box::new(exchange)), sent.into())
}

/// A COM_CHANGE_USER is sent on, and authentication begins anew.
pub(super) fn respond_again(
    change: &ChangeUser<'_>,
    payload: &[u8],
    sequence: u8,
    desk: &mut Desk<'_>,
) -> Next {
    let Desk { client, negotiated, out, .. } = desk;
    let len = payload.len().saturating_add(HEADER_LEN);
    let user =
        match user_as_read(change.user, NamedIn::ChangeUser, change.charset, negotiated.server) {
            Ok(user) => user,
            Err(why) => {
                let after = sequence.wrapping_add(1);
                return deny(Denial::UserUnreadable, &why.to_string(), after, out);
            }
        };
    let plugin = change.auth_plugin.unwrap_or_default();
    let kept = kept_back(plugin, change.auth_response, negotiated.legs);
    let mut sent = Move::Forward { from: Side::Client, len };
    if kept != Kept::Nothing {
        if !put_unanswered_change_user(payload, negotiated.capabilities, out.begin_frame()) {
            let after = sequence.wrapping_add(1);
            return deny(Denial::PasswordExposed, &shown(plugin), after, out);
        }
        out.seal(sequence);
        sent = Move::Replace { from: Side::Client, drop: len };
    }
    // One that names none leaves it to the server.
    let charset = change
        .charset
        .map_or(Charset::Unknown, |id| Charset::from_collation_id(id, negotiated.server));
    let mut identity =
        SessionIdentity::new(user, client.address, change.database, change.attributes.iter());
    if !charset.keeps_name(change.database) {
        identity.doubt_schema();
    }
    let applicant = Applicant { identity, charset };
    let nonce = negotiated.nonce.clone();
    let exchange = Exchange::new(plugin, nonce, (sequence, sequence), kept).about(applicant);
    stay(Stage::Exchange(Box::new(exchange)), sent.into())
}

/// As servers do, tells who answers a greeting with something else than a login.
fn bad_handshake(why: &str, desk: &mut Desk<'_>, input: &Input<'_>) -> Next {
    let after = after_response(desk.negotiated.legs, input.client);
    deny(Denial::BadHandshake, why, after, desk.out)
}

/// Makes the response in the outbox say `agreed`. It has been read, so it can be written.
fn patch_response(out: &mut Outbox, agreed: Capabilities) {
    if let Some(payload) = out.payload_mut() {
        patch_client_hello(payload, agreed).unwrap_or_default();
    }
}
