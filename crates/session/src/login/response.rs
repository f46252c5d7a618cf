//! What the client says first: who it is, and over which legs. It is sent on when both are as safe as they will be.

use policy::identity::SessionIdentity;
use policy::{BackendTlsMode, ClientTlsMode, ClusterPolicy};
use sql::Charset;
use wire::capability::{CLIENT_SSL, Capabilities};
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::handshake::{
    ChangeUser, ClientHello, HandshakeResponse, SSL_REQUEST_LEN, parse_client_hello,
    patch_client_hello, put_unanswered_change_user, put_unanswered_response,
};
use wire::packet::ERR_HEADER;
use wire::response_tracker::ResponseTracker;

use super::{
    Compressions, Denial, Exchange, FIRST_SEQUENCE, Hello, Kept, Leg, Login, OF_EACH_LEG,
    PendingUser, TLS, TooLong, login_frame, shown,
};
use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::session::{Phase, Session, close};

/// What is to be done about TLS with the server.
enum BackendTls {
    /// The leg is as it has to be.
    Settled,
    /// It has to be encrypted.
    Start,
    /// It would have to be, and the server cannot.
    Impossible,
}

impl Session {
    pub(super) fn next_response(&mut self, hello: Hello, input: &Input<'_>) -> (Phase, Action) {
        if let Some(ended) = self.server_gave_up(input) {
            return ended;
        }
        let (len, payload) = match login_frame(input.client) {
            Some(Ok(frame)) => frame,
            Some(Err(TooLong)) => return close(CloseReason::ClientProtocol),
            None => return (Phase::Login(Login::Response(hello)), Action::Read(Reads::Either)),
        };
        let sequence = FrameHeader::parse(input.client).map_or(1, |header| header.sequence);
        let in_tls = self.legs.client == Leg::Tls;
        let offers_tls = hello.offered.has(CLIENT_SSL);
        let response = match parse_client_hello(payload, self.server_capabilities) {
            Ok(ClientHello::SslRequest(_)) if offers_tls && !in_tls => {
                // Nothing of what it says counts: the client says it again inside.
                let start = Action::StartTls { side: Side::Client, drop: len };
                return (Phase::Login(Login::ClientTls(hello)), start);
            }
            Ok(ClientHello::Response(response)) => response,
            // TLS twice, or where it was not offered.
            Ok(ClientHello::SslRequest(_)) | Err(_) => return close(CloseReason::ClientProtocol),
        };
        if response.capabilities.has(CLIENT_SSL) && offers_tls && !in_tls {
            // It says that TLS begins here, and then says who it is for everybody to hear.
            return close(CloseReason::ClientProtocol);
        }
        self.login_charset =
            Charset::from_collation_id(u16::from(response.charset), self.mode.server);
        self.identity = SessionIdentity::new(
            response.user,
            self.client.address,
            response.database.unwrap_or_default(),
            response.attributes.iter(),
        );
        let after = sequence.wrapping_add(1);
        let requires = input.policy.client_tls.mode == ClientTlsMode::Required;
        if requires && !self.legs.client.is_safe() {
            return self.deny_login(Denial::TlsRequired, "", after);
        }
        let server = self.server_capabilities;
        match Compressions::agree(&response, hello.offered, server, input.policy) {
            Ok(compressions) => self.compressions = compressions,
            Err(denial) => return self.deny_login(denial, "", after),
        }
        let agreed = response.capabilities.intersect(hello.offered).without(OF_EACH_LEG);
        match self.backend_tls(input.policy) {
            BackendTls::Settled => {
                self.capabilities = agreed;
                self.respond(&hello, &response, input.client.get(..len).unwrap_or_default())
            }
            BackendTls::Start => {
                let fixed = payload.get(..SSL_REQUEST_LEN).unwrap_or_default();
                self.put_frame(FIRST_SEQUENCE, fixed);
                self.patch_response(agreed | TLS | self.compressions.to_server());
                let send = Action::Replace { from: Side::Client, drop: 0 };
                (Phase::Login(Login::BackendTls(hello)), send)
            }
            BackendTls::Impossible => self.deny_login(Denial::ServerWithoutTls, "", after),
        }
    }

    /// The server gave up on a client that does not speak (its connect_timeout), or goes. Whatever else comes
    /// ahead of the response is not the server's: nothing that TLS is still to protect may reach the client.
    fn server_gave_up(&mut self, input: &Input<'_>) -> Option<(Phase, Action)> {
        let (len, payload) = match login_frame(input.backend)? {
            Ok(frame) => frame,
            Err(TooLong) => return Some(close(CloseReason::BackendProtocol)),
        };
        if payload.first() != Some(&ERR_HEADER) {
            return Some(close(CloseReason::BackendProtocol));
        }
        let action = match self.legs.client {
            Leg::Network | Leg::Unix => Action::Forward { from: Side::Backend, len },
            Leg::Tls => {
                // The client has sent one packet more than the server has seen.
                self.put_frame(FIRST_SEQUENCE.wrapping_add(1), payload);
                Action::Replace { from: Side::Backend, drop: len }
            }
        };
        Some((Phase::Login(Login::Refused), action))
    }

    fn backend_tls(&self, policy: &ClusterPolicy) -> BackendTls {
        let offers = self.server_capabilities.has(CLIENT_SSL);
        let wanted = match (policy.backend_tls.mode, self.legs.backend) {
            (_, Leg::Tls) | (BackendTlsMode::Disabled, _) => false,
            // A Unix socket is heard by nobody either.
            (BackendTlsMode::AsClient | BackendTlsMode::Preferred, Leg::Unix) => false,
            (BackendTlsMode::AsClient, Leg::Network) => self.legs.client == Leg::Tls,
            (BackendTlsMode::Preferred, Leg::Network) => offers,
            (
                BackendTlsMode::Required
                | BackendTlsMode::VerifyCa
                | BackendTlsMode::VerifyIdentity,
                Leg::Network | Leg::Unix,
            ) => true,
        };
        match (wanted, offers) {
            (false, _) => BackendTls::Settled,
            (true, true) => BackendTls::Start,
            (true, false) => BackendTls::Impossible,
        }
    }

    /// Sends the client's response on: both legs are as safe as they will be.
    fn respond(
        &mut self,
        hello: &Hello,
        response: &HandshakeResponse<'_>,
        frame: &[u8],
    ) -> (Phase, Action) {
        let agreed = self.capabilities;
        self.tracker = ResponseTracker::new(agreed);
        let payload = frame.get(HEADER_LEN..).unwrap_or_default();
        let client = FrameHeader::parse(frame).map_or(FIRST_SEQUENCE, |header| header.sequence);
        let (backend, tls) = match self.legs.backend {
            Leg::Tls => (FIRST_SEQUENCE.wrapping_add(1), TLS),
            Leg::Network | Leg::Unix => (FIRST_SEQUENCE, Capabilities::default()),
        };
        let plugin = response.auth_plugin.unwrap_or(&hello.plugin);
        let mut kept = self.kept_back(plugin, response.auth_response);
        self.wipe_outbox();
        self.outbox.extend_from_slice(&[0; HEADER_LEN]);
        if kept == Kept::Nothing {
            self.outbox.extend_from_slice(payload);
        } else if !put_unanswered_response(payload, response.capabilities, &mut self.outbox) {
            if matches!(kept, Kept::Password(_)) {
                let after = client.wrapping_add(1);
                return self.deny_login(Denial::PasswordExposed, &shown(plugin), after);
            }
            kept = Kept::Nothing;
            self.outbox.extend_from_slice(payload);
        }
        self.compressions.put_level(response, &mut self.outbox);
        self.seal_frame(backend);
        self.patch_response(agreed | tls | self.compressions.to_server());
        let exchange = Exchange::new(plugin, self.nonce.clone(), (client, backend), kept);
        (
            Phase::Login(Login::Exchange(Box::new(exchange))),
            Action::Replace { from: Side::Client, drop: frame.len() },
        )
    }

    /// A COM_CHANGE_USER is sent on, and authentication begins anew.
    pub(crate) fn respond_again(
        &mut self,
        change: &ChangeUser<'_>,
        payload: &[u8],
        sequence: u8,
    ) -> (Phase, Action) {
        let len = payload.len().saturating_add(HEADER_LEN);
        let plugin = change.auth_plugin.unwrap_or_default();
        let kept = self.kept_back(plugin, change.auth_response);
        let mut action = Action::Forward { from: Side::Client, len };
        if kept != Kept::Nothing {
            self.wipe_outbox();
            self.outbox.extend_from_slice(&[0; HEADER_LEN]);
            if put_unanswered_change_user(payload, self.capabilities, &mut self.outbox) {
                self.seal_frame(sequence);
                action = Action::Replace { from: Side::Client, drop: len };
            } else {
                let after = sequence.wrapping_add(1);
                return self.deny_login(Denial::PasswordExposed, &shown(plugin), after);
            }
        }
        self.pending_user = Some(PendingUser::new(change, self.client.address, self.mode.server));
        let exchange = Exchange::new(plugin, self.nonce.clone(), (sequence, sequence), kept);
        (Phase::Login(Login::Exchange(Box::new(exchange))), action)
    }

    /// Makes the response in the outbox say `agreed`. It has been read, so it can be written.
    fn patch_response(&mut self, agreed: Capabilities) {
        if let Some(payload) = self.outbox.get_mut(HEADER_LEN..) {
            patch_client_hello(payload, agreed).unwrap_or_default();
        }
    }
}
