//! What the server says in the exchange, up to its verdict.

use policy::Redirect;
use wire::handshake::{AuthReply, auth_reply};
use wire::packet::{OkPacket, put_without_redirect};
use wire::status::StatusFlags;

use super::{Exchange, Kept, LoginPacket, Plugin, Stage, forward_packet, shown};
use crate::action::{CloseReason, Input, Move, Side};
use crate::denial::Denial;
use crate::outbox::Outbox;
use crate::phase::login::{Accepted, Desk, Next, deny};

impl Exchange {
    /// Whether this would have a client say its password that has yet to say something else, or let
    /// it say its password to another plugin: the answers could not be told apart.
    fn confuses_passwords(&self, reply: AuthReply<'_>, due: &Stage) -> bool {
        let asks = match reply {
            AuthReply::MoreData(data) => {
                self.plugin == Plugin::CachingSha2 && data == [FULL_AUTHENTICATION]
            }
            AuthReply::Plugin { name, .. } => {
                matches!(Plugin::of(name), Plugin::Sha256 | Plugin::Cleartext)
            }
            AuthReply::Ok | AuthReply::Err | AuthReply::Other => false,
        };
        self.owed > 0 && (asks || matches!(due, Stage::PasswordDue))
    }
}

impl Exchange {
    pub(super) fn on_server(
        mut self: Box<Self>,
        packet: &LoginPacket<'_>,
        desk: &mut Desk<'_>,
        input: &Input<'_>,
    ) -> Next {
        let reply = auth_reply(packet.payload, desk.negotiated.capabilities);
        let exposes = desk.negotiated.legs.exposes();
        let due = std::mem::replace(&mut self.stage, Stage::Relay);
        match (reply, due) {
            (AuthReply::Ok, _) => return self.on_ok(packet, desk, input.policy.redirect),
            (AuthReply::Err, _) => return self.on_err(packet, desk),
            // The client's answer would look like a command: be held back, and sent as one.
            _ if self.to_client(packet.sequence) == u8::MAX => {
                return Next::Close(CloseReason::BackendProtocol);
            }
            (reply, due) if exposes && self.confuses_passwords(reply, &due) => {
                return Next::Close(CloseReason::BackendProtocol);
            }
            (AuthReply::MoreData(key), Stage::KeyDue { password }) => {
                let sequence = packet.sequence.wrapping_add(1);
                self.stage = Stage::Seal { sequence, key: key.to_vec(), password };
                self.apart_at_backend();
                return self.stay(Move::Drop { from: Side::Backend, len: packet.len });
            }
            (_, Stage::KeyDue { .. }) => return Next::Close(CloseReason::BackendProtocol),
            (AuthReply::Plugin { name, data }, _) => {
                return self.on_plugin(packet, name, data, desk);
            }
            // A question of the plugin that the client has begun with: the answer may be its
            // password.
            (AuthReply::MoreData(_) | AuthReply::Other, _) if self.exposes(desk) => {
                return self.deny_exposed(self.to_client(packet.sequence), desk.out);
            }
            (AuthReply::MoreData([FULL_AUTHENTICATION]), _)
                if self.plugin == Plugin::CachingSha2 =>
            {
                self.stage = Stage::PasswordDue;
            }
            (AuthReply::MoreData([FAST_AUTHENTICATION]), _)
                if self.plugin == Plugin::CachingSha2 =>
            {
                self.last = self.to_client(packet.sequence);
                let action = forward_packet(Side::Backend, packet, self.shift, desk.out);
                return self.stay(action);
            }
            (AuthReply::MoreData(_) | AuthReply::Other, _) => {}
        }
        self.ask_with(packet, desk.out)
    }

    /// The client is shown a packet that it has to answer.
    fn ask_with(mut self: Box<Self>, packet: &LoginPacket<'_>, out: &mut Outbox) -> Next {
        self.ask(self.to_client(packet.sequence));
        let action = forward_packet(Side::Backend, packet, self.shift, out);
        self.stay(action)
    }

    /// The server goes on with this plugin.
    fn on_plugin(
        mut self: Box<Self>,
        packet: &LoginPacket<'_>,
        name: &[u8],
        data: &[u8],
        desk: &mut Desk<'_>,
    ) -> Next {
        let before = std::mem::replace(&mut self.plugin, Plugin::of(name));
        self.plugin_shown = shown(name);
        self.nonce = data.to_vec();
        let swallowed = Move::Drop { from: Side::Backend, len: packet.len };
        let kept = std::mem::replace(&mut self.kept, Kept::Nothing);
        match (self.plugin, kept) {
            // What another plugin has said is not taken for this one's: the client is told, and
            // says it again.
            (Plugin::Sha256, Kept::Password(password)) if before == Plugin::Sha256 => {
                let sequence = packet.sequence.wrapping_add(1);
                self.stage = Stage::AskKey { sequence, password };
                self.apart_at_backend();
                return self.stay(swallowed);
            }
            (Plugin::Sha256, Kept::KeyRequest) => {
                // The key stands where the switch would have stood.
                let sequence = self.to_client(packet.sequence);
                self.stage = Stage::ShowKey { sequence };
                return self.stay(swallowed);
            }
            (Plugin::Cleartext, _) if self.exposes(desk) => {
                return self.deny_exposed(self.to_client(packet.sequence), desk.out);
            }
            (Plugin::Sha256, Kept::Password(_) | Kept::Nothing) => {
                self.stage = Stage::PasswordDue;
            }
            (Plugin::CachingSha2 | Plugin::Cleartext | Plugin::Opaque, _) => {}
        }
        self.client_nonce.clone_from(&self.nonce);
        self.ask_with(packet, desk.out)
    }

    /// The client is in.
    fn on_ok(
        self: Box<Self>,
        packet: &LoginPacket<'_>,
        desk: &mut Desk<'_>,
        redirect: Redirect,
    ) -> Next {
        let Desk { negotiated, out, .. } = desk;
        let sequence = self.to_client(packet.sequence);
        let capabilities = negotiated.capabilities;
        let redirects = put_without_redirect(packet.payload, capabilities, out.begin_frame());
        if redirects && redirect == Redirect::Deny {
            return deny(Denial::Redirected, "", sequence, out);
        }
        let action = if redirects {
            out.seal(sequence);
            Move::Replace { from: Side::Backend, drop: packet.len }.into()
        } else {
            forward_packet(Side::Backend, packet, self.shift, out)
        };
        let ok = OkPacket::parse(packet.payload, capabilities);
        let status = StatusFlags(ok.map(|ok| ok.status).unwrap_or_default());
        let Self { applicant, nonce, .. } = *self;
        negotiated.nonce = nonce;
        let accepted = match applicant {
            None => Accepted::First(status),
            Some(applicant) => Accepted::Changed(applicant, status),
        };
        Next::Accepted(accepted, action)
    }

    /// The server has refused.
    fn on_err(self: Box<Self>, packet: &LoginPacket<'_>, desk: &mut Desk<'_>) -> Next {
        let action = forward_packet(Side::Backend, packet, self.shift, desk.out);
        if self.applicant.is_none() {
            return Next::Refused(action);
        }
        let Self { nonce, .. } = *self;
        desk.negotiated.nonce = nonce;
        Next::Accepted(Accepted::Unchanged, action)
    }
}

/// caching_sha2_password's `fast_auth_success`, which is not answered.
const FAST_AUTHENTICATION: u8 = 0x03;
/// Its `perform_full_authentication`.
const FULL_AUTHENTICATION: u8 = 0x04;
