//! What the server says in the exchange, up to its verdict.

use policy::Redirect;
use wire::frame::HEADER_LEN;
use wire::handshake::{AuthReply, auth_reply};
use wire::packet::{OkPacket, put_without_redirect};
use wire::status::{SERVER_STATUS_AUTOCOMMIT, StatusFlags};

use super::{Exchange, Kept, Plugin, Stage, Whole, shown};
use crate::action::{Action, CloseReason, Input, Side};
use crate::login::{Denial, Login};
use crate::session::{Phase, Session, close};

impl Exchange {
    /// Whether this would have a client say its password that has yet to say something else, or let it say
    /// its password to another plugin: the answers could not be told apart.
    fn confuses_passwords(&self, reply: AuthReply<'_>, due: &Stage) -> bool {
        let asks = match reply {
            AuthReply::MoreData(data) => {
                self.plugin == Plugin::CachingSha2 && data == [FULL_AUTHENTICATION]
            }
            AuthReply::Plugin { name, .. } => {
                matches!(Plugin::of(name), Plugin::Sha256 | Plugin::Bare)
            }
            AuthReply::Ok | AuthReply::Err | AuthReply::Other => false,
        };
        self.owed > 0 && (asks || matches!(due, Stage::PasswordDue))
    }
}

impl Session {
    pub(super) fn on_server(
        &mut self,
        mut exchange: Box<Exchange>,
        packet: &Whole<'_>,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let reply = auth_reply(packet.payload, self.capabilities);
        let due = std::mem::replace(&mut exchange.stage, Stage::Relay);
        match (reply, due) {
            (AuthReply::Ok, _) => return self.on_ok(&exchange, packet, input.policy.redirect),
            (AuthReply::Err, _) => {
                let action = self.forward_packet(Side::Backend, packet, exchange.shift);
                let next = self.refuse_login(&exchange.nonce);
                return (Phase::Login(next), action);
            }
            // The client's answer would look like a command: be held back, and sent as one.
            _ if exchange.to_client(packet.sequence) == u8::MAX => {
                return close(CloseReason::BackendProtocol);
            }
            (reply, due) if self.legs.exposes() && exchange.confuses_passwords(reply, &due) => {
                return close(CloseReason::BackendProtocol);
            }
            (AuthReply::MoreData(key), Stage::KeyDue { password }) => {
                let sequence = packet.sequence.wrapping_add(1);
                exchange.stage = Stage::Seal { sequence, key: key.to_vec(), password };
                exchange.apart_at_backend();
                let action = Action::Drop { from: Side::Backend, len: packet.len };
                return (Phase::Login(Login::Exchange(exchange)), action);
            }
            (_, Stage::KeyDue { .. }) => return close(CloseReason::BackendProtocol),
            (AuthReply::Plugin { name, data }, _) => {
                return self.on_plugin(exchange, packet, name, data);
            }
            // A question of the plugin that the client has begun with: the answer may be its password.
            (AuthReply::MoreData(_) | AuthReply::Other, _)
                if exchange.plugin == Plugin::Bare && self.legs.exposes() =>
            {
                let sequence = exchange.to_client(packet.sequence);
                return self.deny_login(Denial::PasswordExposed, &exchange.plugin_shown, sequence);
            }
            (AuthReply::MoreData([FULL_AUTHENTICATION]), _)
                if exchange.plugin == Plugin::CachingSha2 =>
            {
                exchange.stage = Stage::PasswordDue;
            }
            (AuthReply::MoreData([FAST_AUTHENTICATION]), _)
                if exchange.plugin == Plugin::CachingSha2 =>
            {
                exchange.last = exchange.to_client(packet.sequence);
                let action = self.forward_packet(Side::Backend, packet, exchange.shift);
                return (Phase::Login(Login::Exchange(exchange)), action);
            }
            (AuthReply::MoreData(_) | AuthReply::Other, _) => {}
        }
        exchange.ask(exchange.to_client(packet.sequence));
        let action = self.forward_packet(Side::Backend, packet, exchange.shift);
        (Phase::Login(Login::Exchange(exchange)), action)
    }

    /// The server goes on with this plugin.
    fn on_plugin(
        &mut self,
        mut exchange: Box<Exchange>,
        packet: &Whole<'_>,
        name: &[u8],
        data: &[u8],
    ) -> (Phase, Action) {
        let before = std::mem::replace(&mut exchange.plugin, Plugin::of(name));
        exchange.plugin_shown = shown(name);
        exchange.nonce = data.to_vec();
        let swallowed = Action::Drop { from: Side::Backend, len: packet.len };
        let kept = std::mem::replace(&mut exchange.kept, Kept::Nothing);
        match (exchange.plugin, kept) {
            // What another plugin has said is not taken for this one's: the client is told, and says it again.
            (Plugin::Sha256, Kept::Password(password)) if before == Plugin::Sha256 => {
                let sequence = packet.sequence.wrapping_add(1);
                exchange.stage = Stage::AskKey { sequence, password };
                exchange.apart_at_backend();
                return (Phase::Login(Login::Exchange(exchange)), swallowed);
            }
            (Plugin::Sha256, Kept::KeyRequest) => {
                // The key stands where the switch would have stood.
                let sequence = exchange.to_client(packet.sequence);
                exchange.stage = Stage::ShowKey { sequence };
                return (Phase::Login(Login::Exchange(exchange)), swallowed);
            }
            (Plugin::Bare, _) if self.legs.exposes() => {
                let sequence = exchange.to_client(packet.sequence);
                return self.deny_login(Denial::PasswordExposed, &exchange.plugin_shown, sequence);
            }
            (Plugin::Sha256, Kept::Password(_) | Kept::Nothing) => {
                exchange.stage = Stage::PasswordDue;
            }
            (Plugin::CachingSha2 | Plugin::Bare | Plugin::Opaque, _) => {}
        }
        exchange.client_nonce.clone_from(&exchange.nonce);
        exchange.ask(exchange.to_client(packet.sequence));
        let action = self.forward_packet(Side::Backend, packet, exchange.shift);
        (Phase::Login(Login::Exchange(exchange)), action)
    }

    /// The client is in.
    fn on_ok(
        &mut self,
        exchange: &Exchange,
        packet: &Whole<'_>,
        redirect: Redirect,
    ) -> (Phase, Action) {
        let sequence = exchange.to_client(packet.sequence);
        self.wipe_outbox();
        self.outbox.extend_from_slice(&[0; HEADER_LEN]);
        let caps = self.capabilities;
        let redirects = put_without_redirect(packet.payload, caps, &mut self.outbox);
        if redirects && redirect == Redirect::Deny {
            return self.deny_login(Denial::Redirected, "", sequence);
        }
        let ok = OkPacket::parse(packet.payload, caps);
        self.nonce.clone_from(&exchange.nonce);
        self.accept_login(ok.map(|ok| ok.status).unwrap_or_default());
        let action = if redirects {
            self.seal_frame(sequence);
            Action::Replace { from: Side::Backend, drop: packet.len }
        } else {
            self.forward_packet(Side::Backend, packet, exchange.shift)
        };
        (Phase::Login(Login::Accepted), action)
    }

    fn accept_login(&mut self, status: u16) {
        if let Some(change) = self.pending_user.take() {
            self.identity = change.identity;
            self.login_charset = change.charset;
            self.forget_statements();
        }
        self.reset_mode();
        self.transaction.start(StatusFlags(status));
        self.generation = self.generation.wrapping_add(1);
    }

    /// The server has refused. After a COM_CHANGE_USER one server closes, and the other goes on with the user
    /// before in a session that it has emptied all the same.
    fn refuse_login(&mut self, nonce: &[u8]) -> Login {
        if self.pending_user.take().is_none() {
            return Login::Refused;
        }
        self.nonce.clear();
        self.nonce.extend_from_slice(nonce);
        self.identity.forget();
        self.forget_statements();
        self.reset_mode();
        // It has rolled back; its next answer says whether autocommit is on.
        self.transaction.start(StatusFlags(SERVER_STATUS_AUTOCOMMIT));
        Login::Accepted
    }
}

/// caching_sha2_password's `fast_auth_success`, which is not answered.
const FAST_AUTHENTICATION: u8 = 0x03;
/// Its `perform_full_authentication`.
const FULL_AUTHENTICATION: u8 = 0x04;
