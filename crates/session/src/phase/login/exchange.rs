//! The authentication exchange, until the server says OK or ERR.
//!
//! Every packet is passed on, whatever it is, with two exceptions. Sequence ids count on each leg
//! by itself, and the legs can be apart by an SSLRequest or by what is bridged; `shift` is how far
//! the client's is ahead. And where one leg is safe from listeners and the other is not,
//! caching_sha2_password (after its request for full authentication) and sha256_password must be
//! *bridged*, because client and server then disagree on how the password travels:
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
//! The password is masked with the nonce before it is encrypted. The arithmetic of RSA is the
//! shell's.

mod client;
mod server;

use wire::frame::FrameHeader;

pub(super) use self::client::kept_back;
use super::{Applicant, Desk, Next, OutOfTurn, TooLong, deny, login_frame, starts_command, stay};
use crate::action::{Action, CloseReason, Crypt, Input, Move, Reads, Sealing, Side};
use crate::denial::Denial;
use crate::leg::{Leg, Legs, Password};
use crate::outbox::Outbox;

/// Where an exchange stands.
#[derive(Debug)]
pub(super) struct Exchange {
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
    /// Who a COM_CHANGE_USER is about. None: it is the connection's first login.
    applicant: Option<Applicant>,
}

/// What was taken out of the client's first packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    /// A password, which the server must not be sent as it is.
    Password(Password),
    /// A request for the server's key, which the server would take for a password.
    KeyRequest,
}

/// The plugins that are not the same to a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    /// Sends a hash first, and the password when the server does not know the hash.
    CachingSha2,
    /// Sends the password.
    Sha256,
    /// Sends the password or another secret, and knows no encryption; or it is not known, and may
    /// do so because its leg is safe.
    Cleartext,
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
    /// The names are those of client plugins: MySQL's manual, "Authentication Plugins", and
    /// MariaDB's, "Pluggable Authentication Overview". Not among the safe ones, and so
    /// cleartext, are `mysql_clear_password`, MariaDB's `dialog` (PAM),
    /// `authentication_openid_connect_client` and `authentication_oci_client` (tokens),
    /// `mysql_old_password` (a hash of 64 bits that a listener undoes), and whatever nobody here
    /// has heard of.
    fn of(name: &[u8]) -> Self {
        match name {
            b"caching_sha2_password" => Self::CachingSha2,
            b"sha256_password" => Self::Sha256,
            _ if SAFE_PLUGINS.contains(&name) => Self::Opaque,
            _ => Self::Cleartext,
        }
    }

    /// Whether what the client says in confidence would be heard behind Sluice, or not be taken
    /// there: for sha256_password only TLS is safe, and over a Unix socket it wants RSA.
    fn exposes(self, legs: Legs) -> bool {
        let wants_rsa = self == Self::Sha256 && legs.client == Leg::Tls;
        legs.exposes() || (wants_rsa && legs.backend == Leg::Unix)
    }

    /// Whether the client hides from Sluice what the server wants to read.
    fn hides(self, legs: Legs) -> bool {
        match self {
            Self::Sha256 => legs.client != Leg::Tls && legs.backend == Leg::Tls,
            Self::CachingSha2 | Self::Cleartext | Self::Opaque => legs.hides(),
        }
    }

    /// What the client sends to ask for the server's key.
    fn key_request(self) -> Option<u8> {
        match self {
            Self::CachingSha2 => Some(0x02),
            Self::Sha256 => Some(0x01),
            Self::Cleartext | Self::Opaque => None,
        }
    }

    fn asks_for_key(self, payload: &[u8]) -> bool {
        matches!((payload, self.key_request()), ([byte], Some(request)) if *byte == request)
    }
}

impl Exchange {
    /// An exchange whose first packet has the sequence ids `client` and `backend`.
    pub(super) fn new(
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
            applicant: None,
        }
    }

    /// The exchange of a COM_CHANGE_USER.
    pub(super) fn about(self, applicant: Applicant) -> Self {
        Self { applicant: Some(applicant), ..self }
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
struct LoginPacket<'a> {
    /// With its header.
    len: usize,
    sequence: u8,
    payload: &'a [u8],
}

impl Exchange {
    pub(super) fn next(mut self: Box<Self>, desk: &mut Desk<'_>, input: &Input<'_>) -> Next {
        let action = match std::mem::replace(&mut self.stage, Stage::Relay) {
            stage @ (Stage::Relay
            | Stage::PasswordDue
            | Stage::KeyDue { .. }
            | Stage::SealedDue) => {
                self.stage = stage;
                return self.relay(desk, input);
            }
            Stage::AskKey { sequence, password } => {
                let request = self.plugin.key_request().unwrap_or_default();
                self.stage = Stage::KeyDue { password };
                send_to(Side::Backend, sequence, &[request], desk.out)
            }
            Stage::Seal { sequence, key, password } => {
                let masked = password.masked(&self.nonce);
                let sealing = Box::new(Sealing { key: key.clone(), masked });
                self.stage = Stage::Seal { sequence, key, password };
                Action::Crypt(Crypt::Seal(sealing))
            }
            Stage::Send { sequence, content } => {
                send_to(Side::Backend, sequence, content.bytes(), desk.out)
            }
            Stage::ShowKey { sequence } => {
                self.stage = Stage::ShowKey { sequence };
                Action::Crypt(Crypt::ShowKey)
            }
            Stage::Show { sequence, key } => {
                self.stage = Stage::SealedDue;
                self.ask(sequence);
                let more_data = [&[AUTH_MORE_DATA][..], &key].concat();
                send_to(Side::Client, sequence, &more_data, desk.out)
            }
            Stage::Open { sequence, sealed } => {
                let action = Action::Crypt(Crypt::Open(sealed.clone()));
                self.stage = Stage::Open { sequence, sealed };
                action
            }
            Stage::Deny { sequence, denial } => return deny(denial, "", sequence, desk.out),
        };
        self.stay(action)
    }

    /// The next packet of either side.
    fn relay(self: Box<Self>, desk: &mut Desk<'_>, input: &Input<'_>) -> Next {
        match whole(input.backend) {
            Some(Ok(packet)) => return self.on_server(&packet, desk, input),
            Some(Err(TooLong)) => return Next::Close(CloseReason::BackendProtocol),
            None => {}
        }
        let waits_for_key = matches!(self.stage, Stage::KeyDue { .. });
        // What nobody has asked for could be taken for a command. A password is refused at once.
        let is_unasked = self.owed == 0 && !input.client.is_empty() && !self.exposes(desk);
        if waits_for_key || is_unasked || starts_command(input.client) {
            // A command sent ahead of the login's end waits for its turn.
            return self.stay(Action::Read(Reads::Backend));
        }
        match whole(input.client) {
            Some(Ok(packet)) => self.on_client(&packet, desk),
            Some(Err(TooLong)) => Next::Close(CloseReason::ClientProtocol),
            None => self.stay(Action::Read(Reads::Either)),
        }
    }

    /// Whether the client's packets may be a password that others would hear.
    fn exposes(&self, desk: &Desk<'_>) -> bool {
        self.plugin == Plugin::Cleartext && desk.negotiated.legs.exposes()
    }

    fn stay(self: Box<Self>, action: impl Into<Action>) -> Next {
        stay(super::Stage::Exchange(self), action.into())
    }

    /// Refuses the login because a password would be heard.
    fn deny_exposed(&self, sequence: u8, out: &mut Outbox) -> Next {
        deny(Denial::PasswordExposed, &self.plugin_shown, sequence, out)
    }

    pub(super) fn handle_own_key(&mut self, pem: &[u8]) -> Result<(), OutOfTurn> {
        let Stage::ShowKey { sequence } = self.stage else { return Err(OutOfTurn) };
        self.stage = Stage::Show { sequence, key: pem.to_vec() };
        Ok(())
    }

    /// Whether the client owes an answer.
    pub(super) fn awaits_client(&self) -> bool {
        self.owed > 0
    }

    pub(super) fn awaits_key(&self) -> bool {
        matches!(self.stage, Stage::KeyDue { .. })
    }

    pub(super) fn handle_sealed(&mut self, sealed: Option<Vec<u8>>) -> Result<(), OutOfTurn> {
        let Stage::Seal { sequence, .. } = self.stage else { return Err(OutOfTurn) };
        let after = self.to_client(sequence).wrapping_add(1);
        self.stage = match sealed {
            Some(sealed) => Stage::Send { sequence, content: Password::new(sealed) },
            None => Stage::Deny { sequence: after, denial: Denial::ServerKeyUnusable },
        };
        Ok(())
    }

    pub(super) fn handle_opened(&mut self, masked: Option<Password>) -> Result<(), OutOfTurn> {
        let Stage::Open { sequence, .. } = self.stage else { return Err(OutOfTurn) };
        let after = self.to_client(sequence).wrapping_add(1);
        self.stage = match masked {
            Some(masked) => Stage::Send { sequence, content: masked.masked(&self.client_nonce) },
            None => Stage::Deny { sequence: after, denial: Denial::PasswordUnreadable },
        };
        Ok(())
    }
}

/// Passes a packet on as it is but for its sequence id, which is `shift` further on the other side.
fn forward_packet(from: Side, packet: &LoginPacket<'_>, shift: u8, out: &mut Outbox) -> Action {
    if shift == 0 {
        return Move::Forward { from, len: packet.len }.into();
    }
    out.put_frame(packet.sequence.wrapping_add(shift), packet.payload);
    Move::Replace { from, drop: packet.len }.into()
}

/// Sends a packet of Sluice's own.
fn send_to(to: Side, sequence: u8, payload: &[u8], out: &mut Outbox) -> Action {
    out.put_frame(sequence, payload);
    Move::outbox_to(to).into()
}

/// A plugin's name, for people.
pub(super) fn shown(plugin: &[u8]) -> String {
    let name = plugin.get(..PLUGIN_SHOWN_LEN_MAX).unwrap_or(plugin);
    name.escape_ascii().to_string()
}

/// Servers' names of plugins have 64 characters at most.
const PLUGIN_SHOWN_LEN_MAX: usize = 64;

fn whole(bytes: &[u8]) -> Option<Result<LoginPacket<'_>, TooLong>> {
    let sequence = FrameHeader::parse(bytes)?.sequence;
    let frame = login_frame(bytes)?;
    Some(frame.map(|(len, payload)| LoginPacket { len, sequence, payload }))
}

const AUTH_MORE_DATA: u8 = 0x01;

/// Plugins whose packets say no password, in any form that whoever hears them could use.
const SAFE_PLUGINS: &[&[u8]] = &[
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
