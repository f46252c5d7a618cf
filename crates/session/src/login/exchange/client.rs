//! What the client says in the exchange, and what of its first packet is kept back until it is known where it goes.

use super::{Exchange, Kept, Plugin, Stage, Whole};
use crate::action::{Action, Side};
use crate::login::{Denial, Login, Password};
use crate::session::{Phase, Session};

impl Session {
    /// What must be kept back of a client's first packet, that says this plugin's words.
    pub(crate) fn kept_back(&self, plugin: &[u8], answer: &[u8]) -> Kept {
        let plugin = Plugin::of(plugin);
        let is_empty = matches!(answer, [] | [0]);
        match plugin {
            Plugin::Sha256 | Plugin::Bare if self.legs.exposes() => {
                if is_empty || plugin.asks_for_key(answer) {
                    Kept::Nothing
                } else {
                    Kept::Password(Password::new(answer.to_vec()))
                }
            }
            Plugin::Sha256 if self.legs.hides() && plugin.asks_for_key(answer) => Kept::KeyRequest,
            Plugin::CachingSha2 | Plugin::Sha256 | Plugin::Bare | Plugin::Opaque => Kept::Nothing,
        }
    }

    pub(super) fn on_client(
        &mut self,
        mut exchange: Box<Exchange>,
        packet: &Whole<'_>,
    ) -> (Phase, Action) {
        exchange.owed = exchange.owed.saturating_sub(1);
        exchange.last = packet.sequence;
        if exchange.plugin == Plugin::Bare && self.legs.exposes() {
            // Nobody has asked it.
            let sequence = packet.sequence.wrapping_add(1);
            return self.deny_login(Denial::PasswordExposed, &exchange.plugin_shown, sequence);
        }
        let asks = exchange.plugin.asks_for_key(packet.payload);
        let is_empty = matches!(packet.payload, [] | [0]) && exchange.plugin == Plugin::Sha256;
        let dropped = Action::Drop { from: Side::Client, len: packet.len };
        let sequence = exchange.to_backend(packet.sequence);
        let action = match std::mem::replace(&mut exchange.stage, Stage::Relay) {
            Stage::PasswordDue if self.legs.exposes() && !asks && !is_empty => {
                let password = Password::new(packet.payload.to_vec());
                exchange.stage = Stage::AskKey { sequence, password };
                dropped
            }
            Stage::PasswordDue if self.legs.hides() && asks => {
                exchange.stage = Stage::ShowKey { sequence: packet.sequence.wrapping_add(1) };
                exchange.apart_at_client();
                dropped
            }
            Stage::PasswordDue if self.legs.hides() && !is_empty => {
                // It thinks that it knows the key already.
                exchange.stage = Stage::Open { sequence, sealed: packet.payload.to_vec() };
                dropped
            }
            Stage::SealedDue => {
                exchange.stage = Stage::Open { sequence, sealed: packet.payload.to_vec() };
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
                let shift = 0_u8.wrapping_sub(exchange.shift);
                self.forward_packet(Side::Client, packet, shift)
            }
        };
        (Phase::Login(Login::Exchange(exchange)), action)
    }
}
