//! A password that a client confides never crosses a leg in the clear that others can hear.
//!
//! The client is as client libraries are: it hears the server through Sluice, and says its password as it is only
//! when its plugin wants it and its own leg is TLS or a Unix socket. The server says anything, in any order, until the login
//! is over. Held is, whatever either leg runs over:
//!
//! * bytes to the server outside of TLS hold no password, neither as it is nor masked with a nonce that all can
//!   see; bytes to the client hold none at all;
//! * Sluice encrypts only between a leg that is safe and one that is not, and decrypts only the other way round.

#![expect(clippy::expect_used, clippy::unreachable, reason = "a check fails by panicking")]

use std::cell::OnceCell;
use std::sync::Arc;

use policy::ClusterPolicy;
use session::{ClientInfo, CloseReason, Crypt, Leg, Password, Session, Side};
use testkit::Input;

use crate::driver::*;

/// Runs an input.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (first, second) = (input.u8(), input.u8());
    let legs = Legs {
        client: Leg::Network,
        backend: if first & 4 == 0 { Leg::Network } else { Leg::Unix },
        mode: usize::from(first >> 3 & 3),
        server_offers_tls: first & 32 == 0,
        trusts_socket: first & 64 != 0,
    };
    let client = [Leg::Tls, Leg::Network, Leg::Unix, Leg::Tls].get(usize::from(first & 3)).copied();
    let legs = Legs { client: client.unwrap_or_default(), ..legs };
    let mut talk = Talk::new(legs, input.choose(PLUGINS));
    let more = if second & 1 == 0 { 0 } else { MULTI_FACTOR };
    if !talk.begin(more, &mut || input.u8()) {
        return;
    }
    while !input.is_empty() {
        let step = input.u8();
        let says = match step & 15 {
            0..=3 => switch(0xfe, input.choose(PLUGINS), input.choose(NONCES)),
            4 => switch(0x02, input.choose(PLUGINS), input.choose(NONCES)),
            5..=7 => FULL_AUTHENTICATION.to_vec(),
            8 | 9 => KEY.to_vec(),
            10 | 11 => OK.to_vec(),
            12 => ERR.to_vec(),
            13 => input.chunk().to_vec(),
            _ => {
                talk.change_user(input.choose(PLUGINS));
                Vec::new()
            }
        };
        let sequence = if step & 16 == 0 { talk.sequence_at_server() } else { input.u8() };
        if holds_password(&says) {
            return;
        }
        // Without waiting for an answer, now and then: not when the login may be over with this.
        let goes_on = if step & 0x20 != 0 && step & 15 < 10 {
            talk.server_adds(sequence, &says);
            true
        } else {
            talk.server_says(sequence, &says, &mut || input.u8())
        };
        if !goes_on {
            return;
        }
    }
}

/// What a connection runs over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Legs {
    /// What the client wants.
    pub(crate) client: Leg,
    /// What Sluice connects to.
    pub(crate) backend: Leg,
    /// What `backend_tls` wants: one of [`MODES`].
    pub(crate) mode: usize,
    pub(crate) server_offers_tls: bool,
    /// Whether the client's sha256_password takes a Unix socket for safe, as the server's does not.
    pub(crate) trusts_socket: bool,
}

/// A client library, as far as it decides what to say.
struct Client {
    /// What it runs over by now.
    leg: Leg,
    trusts_socket: bool,
    plugin: Vec<u8>,
    nonce: Vec<u8>,
    /// It has asked for the key.
    waits_for_key: bool,
    /// It was to say a password for others to hear.
    has_left: bool,
}

impl Client {
    fn is_safe(&self) -> bool {
        match self.leg {
            Leg::Tls => true,
            Leg::Unix => self.plugin != SHA256 || self.trusts_socket,
            Leg::Network => false,
        }
    }

    /// What a plugin says first. `None`: it does not say it where others can hear.
    fn begins(&mut self) -> Option<&'static [u8]> {
        self.waits_for_key = false;
        match (&self.plugin[..], self.is_safe()) {
            (SHA256 | CLEAR | DIALOG, true) => Some(PASSWORD),
            // It says nothing before it is asked.
            (UNKNOWN, true) => Some(b""),
            (SHA256, false) => {
                self.waits_for_key = true;
                Some(&[1])
            }
            (CLEAR | DIALOG | UNKNOWN, false) => {
                self.has_left = true;
                None
            }
            (_, _) => Some(HASH),
        }
    }

    /// What it says to a packet. `None`: nothing, or it leaves.
    fn hears(&mut self, payload: &[u8], capabilities: u32) -> Option<&'static [u8]> {
        let (first, rest) = payload.split_first()?;
        match first {
            0xfe => self.goes_on_with(rest),
            0x02 if capabilities & MULTI_FACTOR != 0 => self.goes_on_with(rest),
            0x01 if self.waits_for_key => {
                self.waits_for_key = false;
                Some(SEALED_BY_CLIENT)
            }
            0x01 if self.plugin == CACHING_SHA2 && rest == [4] => {
                self.waits_for_key = !self.is_safe();
                Some(if self.waits_for_key { &[2] } else { PASSWORD })
            }
            // An OK, an ERR, the greeting.
            0x00 | 0xff | 0x0a => None,
            _ if matches!(&self.plugin[..], DIALOG | UNKNOWN) && self.is_safe() => Some(PASSWORD),
            _ => None,
        }
    }

    fn goes_on_with(&mut self, switch: &[u8]) -> Option<&'static [u8]> {
        if switch.is_empty() {
            // To the passwords of before 4.1, which are no longer known.
            self.has_left = true;
            return None;
        }
        let mut parts = switch.splitn(2, |byte| *byte == 0);
        self.plugin = parts.next().unwrap_or_default().to_vec();
        let nonce = parts.next().unwrap_or_default();
        self.nonce = nonce.strip_suffix(b"\0").unwrap_or(nonce).to_vec();
        self.begins()
    }
}

/// A session between such a client and a server.
pub(crate) struct Talk {
    driver: Driver,
    client: Client,
    server_offers_tls: bool,
    capabilities: u32,
    backend: Leg,
    /// Up to here bytes to the server can be heard by others, if its leg is in TLS.
    heard: usize,
    /// Up to here the client has read.
    read: usize,
    /// Up to here bytes to the client and to the server have been looked at.
    held: (usize, usize),
    is_logged_in: bool,
    pub(crate) closed: Option<CloseReason>,
}

impl Talk {
    pub(crate) fn new(legs: Legs, plugin: &[u8]) -> Self {
        let arrives = if legs.client == Leg::Tls { Leg::Network } else { legs.client };
        let info = ClientInfo { address: Some([127, 0, 0, 1].into()), leg: arrives };
        let policy = POLICIES.with(|policies| {
            let policy = policies.get(legs.mode).expect("there is such a mode");
            policy.get_or_init(|| of_mode(legs.mode)).clone()
        });
        Self {
            driver: Driver::of(Session::new(info, legs.backend), policy),
            client: Client {
                leg: legs.client,
                trusts_socket: legs.trusts_socket,
                plugin: plugin.to_vec(),
                nonce: GREETED.to_vec(),
                waits_for_key: false,
                has_left: false,
            },
            server_offers_tls: legs.server_offers_tls,
            capabilities: 0,
            backend: legs.backend,
            heard: 0,
            read: 0,
            held: (0, 0),
            is_logged_in: false,
            closed: None,
        }
    }

    /// Up to what follows the client's response. False when the connection is over.
    pub(crate) fn begin(&mut self, more: u32, decide: &mut impl FnMut() -> u8) -> bool {
        self.capabilities = CAPS | more;
        let offered = if self.server_offers_tls { SSL } else { 0 };
        self.driver.backend.extend(greeting(self.capabilities | offered));
        self.settle(decide);
        self.read = self.driver.to_client.len();
        let (mut said, mut sequence) = (self.capabilities, 1);
        if self.client.leg == Leg::Tls {
            (said, sequence) = (said | SSL, 2);
            self.driver.client.extend(frame(1, &fixed(said)));
            self.settle(decide);
        }
        let Some(answer) = self.client.begins() else { return false };
        let len = [answer.len().to_le_bytes()[0]];
        let fields = [b"app\0", &len[..], answer, &self.client.plugin, b"\0"].concat();
        self.driver.client.extend(frame(sequence, &[fixed(said), fields].concat()));
        self.settle(decide)
    }

    /// The server says this. False when the connection is over.
    pub(crate) fn server_says(
        &mut self,
        sequence: u8,
        payload: &[u8],
        decide: &mut impl FnMut() -> u8,
    ) -> bool {
        self.server_adds(sequence, payload);
        self.settle(decide)
    }

    fn server_adds(&mut self, sequence: u8, payload: &[u8]) {
        if !payload.is_empty() && !self.driver.session.is_idle() {
            self.driver.backend.extend(frame(sequence, payload));
        }
    }

    /// Once logged in, the client becomes another user.
    fn change_user(&mut self, plugin: &[u8]) {
        if !self.is_logged_in || !self.driver.session.is_idle() {
            return;
        }
        self.client.plugin = plugin.to_vec();
        let Some(answer) = self.client.begins() else { return };
        let len = [answer.len().to_le_bytes()[0]];
        let command = [b"\x11etl\0", &len[..], answer, b"\0\x2d\0", plugin, b"\0"].concat();
        self.driver.client.extend(frame(0, &command));
    }

    /// Runs until both wait; false when the connection is over.
    fn settle(&mut self, decide: &mut impl FnMut() -> u8) -> bool {
        loop {
            let stop = self.driver.run();
            self.hold();
            if matches!(stop, Stop::Reads(_)) {
                if !self.client_reads() {
                    return true;
                }
                continue;
            }
            let session = &mut self.driver.session;
            match stop {
                Stop::Reads(_) | Stop::Finished(_) => {}
                Stop::LoggedIn => self.is_logged_in = true,
                Stop::StartTls(Side::Backend) if decide() == 1 => {
                    session.handle_not_encrypted("no".to_owned());
                }
                Stop::StartTls(side) => {
                    session.handle_encrypted(side);
                    if side == Side::Backend {
                        self.heard = self.driver.to_backend.len();
                        self.backend = Leg::Tls;
                    }
                }
                Stop::Crypt(crypt) => self.crypt(crypt, decide() == 1),
                Stop::Close(reason) => {
                    self.closed = Some(reason);
                    return false;
                }
                Stop::Ask(_) | Stop::Deny => unreachable!("no rule gates"),
            }
        }
    }

    /// The client answers what it has not read yet; false when there is nothing.
    fn client_reads(&mut self) -> bool {
        let mut has_said = false;
        while let Some((sequence, payload)) = packet(&self.driver.to_client, self.read) {
            self.read += 4 + payload.len();
            // Answers to commands are none of the login.
            if self.driver.session.is_idle() || self.client.has_left {
                continue;
            }
            if let Some(answer) = self.client.hears(payload, self.capabilities) {
                self.driver.client.extend(frame(sequence.wrapping_add(1), answer));
                has_said = true;
            }
        }
        has_said
    }

    fn crypt(&mut self, crypt: Crypt, fails: bool) {
        let is_server_safe = match self.backend {
            Leg::Tls => true,
            Leg::Unix => self.client.plugin != SHA256,
            Leg::Network => false,
        };
        let session = &mut self.driver.session;
        match crypt {
            Crypt::ShowKey => session.handle_own_key(b"Sluice's own\n"),
            Crypt::Seal(sealing) => {
                assert!(self.client.is_safe() && !is_server_safe, "encrypts for a safe leg");
                assert!(!sealing.masked.bytes().is_empty());
                session.handle_sealed((!fails).then(|| SEALED_BY_SLUICE.to_vec()));
            }
            Crypt::Open(_) => {
                assert!(!self.client.is_safe() && is_server_safe, "decrypts for all to hear");
                let masked = Password::new(masked(&self.client.nonce));
                session.handle_opened((!fails).then_some(masked));
            }
        }
    }

    /// What must never be, in what was sent since the last look.
    fn hold(&mut self) {
        let Driver { to_client, to_backend, .. } = &self.driver;
        let shown = since(to_client, self.held.0);
        assert!(
            !holds_password(shown),
            "the client is sent {:?}",
            shown.escape_ascii().to_string()
        );
        let in_the_clear = match self.backend {
            Leg::Network => to_backend,
            Leg::Tls | Leg::Unix => to_backend.get(..self.heard).unwrap_or_default(),
        };
        let sent = since(in_the_clear, self.held.1);
        assert!(!holds_password(sent), "others hear {:?}", sent.escape_ascii().to_string());
        self.held = (to_client.len(), in_the_clear.len());
    }

    pub(crate) fn client_has_left(&self) -> bool {
        self.client.has_left
    }

    /// The sequence id that the server's next packet has.
    pub(crate) fn sequence_at_server(&self) -> u8 {
        self.last_to_server().map_or(1, |(sequence, _)| sequence.wrapping_add(1))
    }

    /// The last packet that the server has been sent.
    pub(crate) fn last_to_server(&self) -> Option<(u8, &[u8])> {
        let mut at = 0;
        std::iter::from_fn(|| {
            let packet = packet(&self.driver.to_backend, at)?;
            at += 4 + packet.1.len();
            Some(packet)
        })
        .last()
    }
}

/// What has not been looked at, and what may be the begin of something in it.
fn since(bytes: &[u8], looked: usize) -> &[u8] {
    bytes.get(looked.saturating_sub(PASSWORD.len())..).unwrap_or_default()
}

/// The packet at this place, if it is whole.
fn packet(stream: &[u8], at: usize) -> Option<(u8, &[u8])> {
    let ([a, b, c, sequence], rest) = stream.get(at..)?.split_first_chunk()?;
    let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
    Some((*sequence, rest.get(..len)?))
}

pub(crate) fn switch(first: u8, plugin: &[u8], nonce: &[u8]) -> Vec<u8> {
    [&[first][..], plugin, b"\0", nonce, b"\0"].concat()
}

fn fixed(capabilities: u32) -> Vec<u8> {
    let mut payload = (capabilities | 1).to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload
}

/// What is encrypted of the password.
fn masked(nonce: &[u8]) -> Vec<u8> {
    let masks = nonce.iter().chain(if nonce.is_empty() { &[0][..] } else { &[] }).cycle();
    PASSWORD.iter().zip(masks).map(|(byte, mask)| byte ^ mask).collect()
}

/// Without its NUL, as it is or masked.
fn holds_password(bytes: &[u8]) -> bool {
    let forms = NONCES.iter().map(|nonce| masked(nonce)).chain([PASSWORD.to_vec()]);
    let forms: Vec<Vec<u8>> = forms.collect();
    let len = PASSWORD.len() - 1;
    bytes.windows(len).any(|window| forms.iter().any(|form| form.starts_with(window)))
}

/// A file whose `backend_tls` has this mode.
fn of_mode(mode: usize) -> Arc<ClusterPolicy> {
    let mode = MODES.get(mode).expect("there is such a mode");
    let cluster = format!("backend_tls: {{ mode: {mode} }}");
    Driver::with_cluster(&cluster).policy
}

thread_local! {
    /// Reading a file takes longer than most inputs.
    static POLICIES: [OnceCell<Arc<ClusterPolicy>>; 4] = const { [const { OnceCell::new() }; 4] };
}

pub(crate) const MODES: [&str; 4] = ["disabled", "as_client", "preferred", "required"];
const SSL: u32 = 0x800;
const CAPS: u32 = 0x0108_8200;
const MULTI_FACTOR: u32 = 1 << 28;
pub(crate) const CACHING_SHA2: &[u8] = b"caching_sha2_password";
pub(crate) const SHA256: &[u8] = b"sha256_password";
pub(crate) const CLEAR: &[u8] = b"mysql_clear_password";
pub(crate) const DIALOG: &[u8] = b"dialog";
/// A plugin of somebody's own, which asks in the course of the login, as `dialog` may.
pub(crate) const UNKNOWN: &[u8] = b"corporate_sso";
pub(crate) const QUESTION: &[u8] = b"\x04Password: ";
const PLUGINS: &[&[u8]] =
    &[CACHING_SHA2, SHA256, CLEAR, DIALOG, b"mysql_native_password", b"client_ed25519", UNKNOWN];
const GREETED: &[u8] = b"saltsaltsaltsaltsalt";
/// Of a switch to another plugin.
pub(crate) const SWITCHED: &[u8] = b"abcdefghijklmnopqrst";
const NONCES: &[&[u8]] = &[GREETED, SWITCHED];
pub(crate) const FULL_AUTHENTICATION: &[u8] = &[1, 4];
pub(crate) const KEY: &[u8] = b"\x01PEM";
const OK: &[u8] = &[0, 1, 0, 2, 0, 0, 0];
const ERR: &[u8] = b"\xff\x15\x04#28000no";
pub(crate) const HASH: &[u8] = b"thirty-two bytes as of a digest.";
pub(crate) const SEALED_BY_CLIENT: &[u8] = b"sealed by the client";
pub(crate) const SEALED_BY_SLUICE: &[u8] = b"sealed by Sluice";
/// As plugins send it.
pub(crate) const PASSWORD: &[u8] = b"Planted-pa55word\0";
