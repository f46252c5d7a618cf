//! What the client says in the exchange, and what of its first packet is kept back until it is
//! known where it goes.

use super::{Exchange, Kept, LoginPacket, Plugin, Stage, forward_packet};
use crate::action::{Action, CloseReason, Move, Side};
use crate::leg::{Leg, Legs, Password};
use crate::phase::login::{Desk, Next};

/// What must be kept back of a client's first packet, that says this plugin's words.
pub(in crate::phase::login) fn kept_back(plugin: &[u8], answer: &[u8], legs: Legs) -> Kept {
    let plugin = Plugin::of(plugin);
    let is_empty = matches!(answer, [] | [0]);
    match plugin {
        Plugin::Sha256 | Plugin::Cleartext if plugin.exposes(legs) => {
            if is_empty || plugin.asks_for_key(answer) {
                Kept::Nothing
            } else {
                Kept::Password(Password::new(answer.to_vec()))
            }
        }
        Plugin::Sha256 if plugin.hides(legs) && plugin.asks_for_key(answer) => Kept::KeyRequest,
        Plugin::CachingSha2 | Plugin::Sha256 | Plugin::Cleartext | Plugin::Opaque => Kept::Nothing,
    }
}

impl Exchange {
    pub(super) fn on_client(
        mut self: Box<Self>,
        packet: &LoginPacket<'_>,
        desk: &mut Desk<'_>,
    ) -> Next {
        let legs = desk.negotiated.legs;
        let sequence = self.to_backend(packet.sequence);
        if sequence == 0 {
            // To the server it would be a command, that nobody has looked at.
            return Next::Close(CloseReason::ClientProtocol);
        }
        self.owed = self.owed.saturating_sub(1);
        self.last = packet.sequence;
        if self.exposes(desk) {
            // Nobody has asked it.
            return self.deny_exposed(packet.sequence.wrapping_add(1), desk.out);
        }
        let asks = self.plugin.asks_for_key(packet.payload);
        let is_empty = matches!(packet.payload, [] | [0]) && self.plugin == Plugin::Sha256;
        let dropped = Action::Move(Move::Drop { from: Side::Client, len: packet.len });
        let action = match std::mem::replace(&mut self.stage, Stage::Relay) {
            Stage::PasswordDue if self.plugin.exposes(legs) && !asks && !is_empty => {
                let password = Password::new(packet.payload.to_vec());
                self.stage = Stage::AskKey { sequence, password };
                dropped
            }
            Stage::PasswordDue if self.plugin.hides(legs) && asks => {
                self.stage = Stage::ShowKey { sequence: packet.sequence.wrapping_add(1) };
                self.apart_at_client();
                dropped
            }
            Stage::PasswordDue
                if self.plugin.hides(legs) && legs.client == Leg::Network && !is_empty =>
            {
                // It thinks that it knows the key already.
                self.stage = Stage::Open { sequence, sealed: packet.payload.to_vec() };
                dropped
            }
            Stage::SealedDue => {
                self.stage = Stage::Open { sequence, sealed: packet.payload.to_vec() };
                dropped
            }
            Stage::Relay
            | Stage::PasswordDue
            | Stage::AskKey { .. }
            | Stage::KeyDue { .. }
            | Stage::Seal { .. }
            | Stage::Send { .. }
            | Stage::ShowKey { .. }
            | Stage::Show { .. }
            | Stage::Open { .. }
            | Stage::Deny { .. } => {
                forward_packet(Side::Client, packet, 0_u8.wrapping_sub(self.shift), desk.out)
            }
        };
        self.stay(action)
    }
}
