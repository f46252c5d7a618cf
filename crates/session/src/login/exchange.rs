//! The authentication exchange, until the server says OK or ERR.
//!
//! Every packet is passed on, whatever it is, with two exceptions. Sequence ids count on each leg by itself,
//! and the legs can be apart by an SSLRequest or by what is bridged; `shift` is how far the client's is
//! ahead. And where one leg is safe from listeners and the other is not, caching_sha2_password (after
//! its request for full authentication) and sha256_password must be *bridged*, because client and
//! server then disagree on how the password travels:
//!
//! ```text
//! client safe, server not: the client sends its password as it is.
//!
//!   client ──── password ────▶ Sluice ──── request for the key ────▶ server
//!                              Sluice ◀─── its public key ────────── server
//!                              Sluice ──── password, encrypted ────▶ server
//!
//! server safe, client not: the client asks for a key, the server would take that for a password.
//!
//!   client ──── request for the key ────▶ Sluice
//!   client ◀─── Sluice's public key ───── Sluice
//!   client ──── password, encrypted ────▶ Sluice ──── password ────▶ server
//! ```
//!
//! The password is masked with the nonce before it is encrypted. The arithmetic of RSA is the shell's.

mod client;
mod server;

use wire::frame::FrameHeader;

use super::{Denial, Login, Password, TooLong, login_frame, starts_command};
use crate::action::{Action, CloseReason, Crypt, Input, Reads, Sealing, Side};
use crate::session::{Phase, Session, close};

/// Where an exchange stands.
#[derive(Debug)]
pub(crate) struct Exchange {
    stage: Stage,
    plugin: Plugin,
    /// The plugin's name, for people.
    plugin_shown: String,
    /// The nonce that the server goes by.
    nonce: Vec<u8>,
    /// The nonce that the client goes by: the same, unless it was not told of a switch.
    client_nonce: Vec<u8>,
    /// The client's sequence id less the server's, of the same packet.
    shift: u8,
    kept: Kept,
    /// Packets that the client has been shown, and not answered.
    owed: u32,
    /// The sequence id of the last packet from or to the client.
    last: u8,
}

/// What was taken out of the client's first packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    /// A password, which the server must not be sent as it is.
    Password(Password),
    /// A request for the server's key, which the server would take for a password.
    KeyRequest,
}

/// The plugins that are not the same to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// Sends a hash first, and the password when the server does not know the hash.
    CachingSha2,
    /// Sends the password.
    Sha256,
    /// Sends the password or another secret, and knows no encryption; or it is not known, and may do so
    /// because its leg is safe.
    Bare,
    /// Sends nothing that others could use.
    Opaque,
}

#[derive(Debug)]
enum Stage {
    /// Packets are passed on.
    Relay,
    /// The client's next packet is its password, or asks for the key.
    PasswordDue,
    /// The server is to be asked for its key.
    AskKey { sequence: u8, password: Password },
    /// It has been asked.
    KeyDue { password: Password },
    /// The shell encrypts.
    Seal { sequence: u8, key: Vec<u8>, password: Password },
    /// The server is to be sent this.
    Send { sequence: u8, content: Password },
    /// The client is to be sent Sluice's key, which the shell has.
    ShowKey { sequence: u8 },
    /// Here it is.
    Show { sequence: u8, key: Vec<u8> },
    /// The client has the key; its next packet is its password, encrypted.
    SealedDue,
    /// The shell decrypts.
    Open { sequence: u8, sealed: Vec<u8> },
    /// It has failed.
    Deny { sequence: u8, denial: Denial },
}

impl Plugin {
    /// The names are those of client plugins: MySQL's manual, "Authentication Plugins", and MariaDB's, "Pluggable
    /// Authentication Overview". Not among the discreet ones, and so bare, are `mysql_clear_password`, MariaDB's
    /// `dialog` (PAM), `authentication_openid_connect_client` and `authentication_oci_client` (tokens),
    /// `mysql_old_password` (a hash of 64 bits that a listener undoes), and whatever nobody here has heard of.
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            b"caching_sha2_password" => Self::CachingSha2,
            b"sha256_password" => Self::Sha256,
            _ if DISCREET.contains(&name) => Self::Opaque,
            _ => Self::Bare,
        }
    }

    /// What the client sends to ask for the server's key.
    fn key_request(self) -> Option<u8> {
        match self {
            Self::CachingSha2 => Some(0x02),
            Self::Sha256 => Some(0x01),
            Self::Bare | Self::Opaque => None,
        }
    }

    fn asks_for_key(self, payload: &[u8]) -> bool {
        matches!((payload, self.key_request()), ([byte], Some(request)) if *byte == request)
    }
}

impl Exchange {
    /// An exchange whose first packet has the sequence ids `client` and `backend`.
    pub(crate) fn new(
        plugin: &[u8],
        nonce: Vec<u8>,
        (client, backend): (u8, u8),
        kept: Kept,
    ) -> Self {
        Self {
            stage: Stage::Relay,
            plugin: Plugin::of(plugin),
            plugin_shown: shown(plugin),
            client_nonce: nonce.clone(),
            nonce,
            shift: client.wrapping_sub(backend),
            kept,
            owed: 0,
            last: client,
        }
    }

    /// The sequence id of what the client reads next: behind its answer, when it owes one.
    pub(super) fn next_for_client(&self) -> u8 {
        let answer = u8::from(self.owed > 0);
        self.last.wrapping_add(1).wrapping_add(answer)
    }

    /// The client is shown a packet that it has to answer.
    fn ask(&mut self, sequence: u8) {
        self.owed = self.owed.saturating_add(1);
        self.last = sequence;
    }

    /// The client's sequence id of a packet that has this one at the server.
    fn to_client(&self, backend: u8) -> u8 {
        backend.wrapping_add(self.shift)
    }

    fn to_backend(&self, client: u8) -> u8 {
        client.wrapping_sub(self.shift)
    }

    /// Two packets are exchanged with the server that the client does not see.
    fn apart_at_backend(&mut self) {
        self.shift = self.shift.wrapping_sub(2);
    }

    /// Two packets are exchanged with the client that the server does not see.
    fn apart_at_client(&mut self) {
        self.shift = self.shift.wrapping_add(2);
    }
}

/// A whole packet at the front of a side's buffer.
struct Whole<'a> {
    /// With its header.
    len: usize,
    sequence: u8,
    payload: &'a [u8],
}

impl Session {
    pub(crate) fn next_exchange(
        &mut self,
        mut exchange: Box<Exchange>,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let action = match std::mem::replace(&mut exchange.stage, Stage::Relay) {
            stage @ (Stage::Relay
            | Stage::PasswordDue
            | Stage::KeyDue { .. }
            | Stage::SealedDue) => {
                exchange.stage = stage;
                return self.relay(exchange, input);
            }
            Stage::AskKey { sequence, password } => {
                let request = exchange.plugin.key_request().unwrap_or_default();
                exchange.stage = Stage::KeyDue { password };
                self.send_to(Side::Backend, sequence, &[request])
            }
            Stage::Seal { sequence, key, password } => {
                let masked = password.masked(&exchange.nonce);
                let sealing = Box::new(Sealing { key: key.clone(), masked });
                exchange.stage = Stage::Seal { sequence, key, password };
                Action::Crypt(Crypt::Seal(sealing))
            }
            Stage::Send { sequence, content } => {
                self.send_to(Side::Backend, sequence, content.bytes())
            }
            Stage::ShowKey { sequence } => {
                exchange.stage = Stage::ShowKey { sequence };
                Action::Crypt(Crypt::ShowKey)
            }
            Stage::Show { sequence, key } => {
                exchange.stage = Stage::SealedDue;
                exchange.ask(sequence);
                let more_data = [&[AUTH_MORE_DATA][..], &key].concat();
                self.send_to(Side::Client, sequence, &more_data)
            }
            Stage::Open { sequence, sealed } => {
                let action = Action::Crypt(Crypt::Open(sealed.clone()));
                exchange.stage = Stage::Open { sequence, sealed };
                action
            }
            Stage::Deny { sequence, denial } => return self.deny_login(denial, "", sequence),
        };
        (Phase::Login(Login::Exchange(exchange)), action)
    }

    /// The next packet of either side.
    fn relay(&mut self, exchange: Box<Exchange>, input: &Input<'_>) -> (Phase, Action) {
        match whole(input.backend) {
            Some(Ok(packet)) => return self.on_server(exchange, &packet, input),
            Some(Err(TooLong)) => return close(CloseReason::BackendProtocol),
            None => {}
        }
        let waits_for_key = matches!(exchange.stage, Stage::KeyDue { .. });
        if waits_for_key || starts_command(input.client) {
            // A command sent ahead of the login's end waits for its turn.
            return (Phase::Login(Login::Exchange(exchange)), Action::Read(Reads::Backend));
        }
        match whole(input.client) {
            Some(Ok(packet)) => self.on_client(exchange, &packet),
            Some(Err(TooLong)) => close(CloseReason::ClientProtocol),
            None => (Phase::Login(Login::Exchange(exchange)), Action::Read(Reads::Either)),
        }
    }

    /// Passes a packet on as it is but for its sequence id, which is `shift` further on the other side.
    fn forward_packet(&mut self, from: Side, packet: &Whole<'_>, shift: u8) -> Action {
        if shift == 0 {
            return Action::Forward { from, len: packet.len };
        }
        self.put_frame(packet.sequence.wrapping_add(shift), packet.payload);
        Action::Replace { from, drop: packet.len }
    }

    /// Sends a packet of Sluice's own.
    fn send_to(&mut self, to: Side, sequence: u8, payload: &[u8]) -> Action {
        self.put_frame(sequence, payload);
        match to {
            Side::Client => Action::Replace { from: Side::Backend, drop: 0 },
            Side::Backend => Action::Replace { from: Side::Client, drop: 0 },
        }
    }
}

/// The shell's answers.
impl Session {
    /// Sluice's public key, for [`Crypt::ShowKey`].
    pub fn handle_own_key(&mut self, pem: &[u8]) {
        if let Phase::Login(Login::Exchange(exchange)) = &mut self.phase
            && let Stage::ShowKey { sequence } = exchange.stage
        {
            exchange.stage = Stage::Show { sequence, key: pem.to_vec() };
        }
    }

    /// Whether the server is to answer what Sluice itself has asked it during a login.
    pub fn awaits_key(&self) -> bool {
        matches!(&self.phase, Phase::Login(Login::Exchange(exchange))
            if matches!(exchange.stage, Stage::KeyDue { .. }))
    }

    /// The encrypted password, for [`Crypt::Seal`]; none when it cannot be encrypted.
    pub fn handle_sealed(&mut self, sealed: Option<Vec<u8>>) {
        if let Phase::Login(Login::Exchange(exchange)) = &mut self.phase
            && let Stage::Seal { sequence, .. } = exchange.stage
        {
            let after = exchange.to_client(sequence).wrapping_add(1);
            exchange.stage = match sealed {
                Some(sealed) => Stage::Send { sequence, content: Password::new(sealed) },
                None => Stage::Deny { sequence: after, denial: Denial::ServerKeyUnusable },
            };
        }
    }

    /// The decrypted password, still masked, for [`Crypt::Open`]; none when it cannot be decrypted.
    pub fn handle_opened(&mut self, masked: Option<Password>) {
        if let Phase::Login(Login::Exchange(exchange)) = &mut self.phase
            && let Stage::Open { sequence, .. } = exchange.stage
        {
            let after = exchange.to_client(sequence).wrapping_add(1);
            exchange.stage = match masked {
                Some(masked) => {
                    Stage::Send { sequence, content: masked.masked(&exchange.client_nonce) }
                }
                None => Stage::Deny { sequence: after, denial: Denial::PasswordUnreadable },
            };
        }
    }
}

/// A plugin's name, for people.
pub(super) fn shown(plugin: &[u8]) -> String {
    let name = plugin.get(..PLUGIN_SHOWN_LEN_MAX).unwrap_or(plugin);
    name.escape_ascii().to_string()
}

/// Servers' names of plugins have 64 characters at most.
const PLUGIN_SHOWN_LEN_MAX: usize = 64;

fn whole(bytes: &[u8]) -> Option<Result<Whole<'_>, TooLong>> {
    let sequence = FrameHeader::parse(bytes)?.sequence;
    let frame = login_frame(bytes)?;
    Some(frame.map(|(len, payload)| Whole { len, sequence, payload }))
}

const AUTH_MORE_DATA: u8 = 0x01;

/// Plugins whose packets say no password, in any form that whoever hears them could use.
const DISCREET: &[&[u8]] = &[
    // None is named: what was there before plugins were, mysql_native_password.
    b"",
    // Hashes with the server's nonce.
    b"mysql_native_password",
    // Signatures of the server's nonce.
    b"client_ed25519",
    b"parsec",
    b"authentication_webauthn_client",
    b"authentication_fido_client",
    // Tickets for this server, and SCRAM's proofs.
    b"auth_gssapi_client",
    b"authentication_kerberos_client",
    b"authentication_ldap_sasl_client",
    b"authentication_windows_client",
];
