//! The connection phase: greeting, response, and the authentication exchange, in the clear or in TLS.

use std::time::Duration;

use mysql_common::crypto;
use mysql_common::scramble::{scramble_native, scramble_sha256};

use crate::client::password_of;
use crate::error::{HarnessError, Result};
use crate::raw::bytes::{Reader, put_lenenc_bytes, put_nul};
use crate::raw::compressed::{Compress, Compressed};
use crate::raw::{Packet, RawConn, Tls, capability};

/// Who logs in, and what the client says it can do.
#[derive(Debug, Clone)]
pub struct Login {
    /// The account.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The schema; sent when `CONNECT_WITH_DB` is asked for.
    pub schema: String,
    /// Flags asked for; what the server does not offer is left out. `USUAL` unless told.
    pub capabilities: u32,
    /// MariaDB's extended flags asked for. None unless told.
    pub mariadb_capabilities: u32,
    /// Connection attributes, in this order.
    pub attributes: Vec<(String, String)>,
    /// Collation id; 45 is utf8mb4_general_ci, which both servers know.
    pub collation: u8,
    /// Whether the client asks for TLS. Never, unless told.
    pub tls: Tls,
    /// Whether the client asks for compression. Never, unless told.
    pub compress: Compress,
}

impl Login {
    /// An account of the harness, on the schema `test`.
    #[must_use]
    pub fn new(user: &str) -> Self {
        Self {
            user: user.into(),
            password: password_of(user).into(),
            schema: if user == "sluice" { "sluice".into() } else { "test".into() },
            capabilities: capability::USUAL,
            mariadb_capabilities: 0,
            attributes: Vec::new(),
            collation: 45,
            tls: Tls::Never,
            compress: Compress::Never,
        }
    }

    /// Asks for these flags too.
    #[must_use]
    pub fn with(mut self, capabilities: u32) -> Self {
        self.capabilities |= capabilities;
        self
    }

    /// Does not ask for these flags.
    #[must_use]
    pub fn without(mut self, capabilities: u32) -> Self {
        self.capabilities &= !capabilities;
        self
    }

    /// Asks for these extended flags of MariaDB too.
    #[must_use]
    pub fn with_mariadb(mut self, capabilities: u32) -> Self {
        self.mariadb_capabilities |= capabilities;
        self
    }

    /// With TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// With compression. The login fails when it is not offered.
    #[must_use]
    pub fn compress(mut self, compress: Compress) -> Self {
        self.compress = compress;
        self
    }

    /// With another password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = password.into();
        self
    }

    /// Adds a connection attribute.
    #[must_use]
    pub fn attribute(mut self, key: &str, value: &str) -> Self {
        self.attributes.push((key.into(), value.into()));
        self
    }
}

impl RawConn {
    /// Reads the greeting, answers it, and goes through the authentication exchange.
    ///
    /// # Errors
    /// `Refused` with the server's ERR; or when the exchange is one this client does not know.
    pub async fn log_in(&mut self, login: &Login) -> Result<()> {
        let packet = self.login_packet().await?;
        if let Some((errno, message)) = packet.err() {
            return Err(HarnessError::Refused { errno, message });
        }
        let greeting = Greeting::parse(&packet.payload)?;
        self.connection_id = greeting.connection_id;
        self.server_version = greeting.server_version.clone();
        self.capabilities = login.capabilities & greeting.capabilities;
        self.mariadb_capabilities = login.mariadb_capabilities & greeting.mariadb_capabilities;
        if self.mariadb_capabilities != 0 {
            // A set bit 0 says "MySQL", and the server then does not look at the extended flags.
            self.capabilities &= !capability::LONG_PASSWORD;
        }
        let compression = match login.compress {
            Compress::Never => 0,
            Compress::Zlib => capability::COMPRESS,
            Compress::Zstd(_) => capability::ZSTD,
        };
        if greeting.capabilities & compression != compression {
            return Err(HarnessError::Protocol("that compression is not offered".into()));
        }
        self.capabilities |= compression;
        let mut sequence = packet.seq.wrapping_add(1);
        if !matches!(login.tls, Tls::Never) {
            if greeting.capabilities & capability::SSL == 0 {
                return Err(HarnessError::Protocol("TLS is not offered".into()));
            }
            self.capabilities |= capability::SSL;
            let response = self.response_payload(login, &greeting);
            let request = response.get(..SSL_REQUEST_LEN).unwrap_or_default();
            self.send_payload(sequence, request).await?;
            self.start_tls(&login.tls).await?;
            sequence = sequence.wrapping_add(1);
        }
        let response = self.response_payload(login, &greeting);
        self.send_payload(sequence, &response).await?;
        // The rest of the connection is the same with TLS and without.
        self.capabilities &= !capability::SSL;
        self.authenticate(login, greeting.plugin, greeting.scramble).await?;
        if login.compress != Compress::Never {
            self.compressed = Some(Compressed::new(login.compress));
        }
        Ok(())
    }

    /// COM_CHANGE_USER. Gives what the server sent, the nonce of its authentication switch zeroed.
    ///
    /// # Errors
    /// When the exchange is one this client does not know. A final ERR is no error here.
    pub async fn change_user(&mut self, login: &Login) -> Result<Vec<Packet>> {
        let out = self.change_user_payload(login);
        let from = self.login_packets.len();
        self.send_command(&out).await?;
        match self.authenticate(login, String::new(), Vec::new()).await {
            Ok(()) | Err(HarnessError::Refused { .. }) => {}
            Err(other) => return Err(other),
        }
        let exchange = self.login_packets.iter().skip(from).cloned();
        Ok(exchange.map(without_nonce).collect())
    }

    /// The COM_CHANGE_USER of [`Self::change_user`]: of an account without a password that is all.
    #[must_use]
    pub fn change_user_payload(&self, login: &Login) -> Vec<u8> {
        let mut out = vec![COM_CHANGE_USER];
        put_nul(&mut out, &login.user);
        // The answer to a nonce of long ago would be wrong: an empty one makes the server ask anew.
        out.push(0);
        put_nul(&mut out, &login.schema);
        out.extend_from_slice(&u16::from(login.collation).to_le_bytes());
        let is_mariadb = self.server_version.contains("MariaDB");
        put_nul(&mut out, if is_mariadb { NATIVE } else { CACHING_SHA2 });
        if self.capabilities & capability::CONNECT_ATTRS != 0 {
            put_attributes(&mut out, &login.attributes);
        }
        out
    }

    async fn authenticate(
        &mut self,
        login: &Login,
        mut plugin: String,
        mut scramble: Vec<u8>,
    ) -> Result<()> {
        let encrypted_leg = self.certificate().is_some();
        loop {
            let packet = self.login_packet().await?;
            let reply_seq = packet.seq.wrapping_add(1);
            match packet.payload.as_slice() {
                [0x00, ..] => return Ok(()),
                [0xff, ..] => return Err(refusal(&packet)),
                [0xfe, rest @ ..] => {
                    let mut rest = Reader(rest);
                    plugin = String::from_utf8_lossy(rest.until_nul()).into_owned();
                    scramble = rest.until_nul().to_vec();
                    let answer = match plugin.as_str() {
                        SHA256 if encrypted_leg => in_the_clear(&login.password),
                        SHA256 => vec![0x01],
                        _ => scrambled(&plugin, &scramble, &login.password)?,
                    };
                    self.send_payload(reply_seq, &answer).await?;
                }
                // caching_sha2_password: the fast path was taken, OK follows.
                [0x01, 0x03] => {}
                [0x01, 0x04] if encrypted_leg => {
                    self.send_payload(reply_seq, &in_the_clear(&login.password)).await?;
                }
                // caching_sha2_password: full authentication; in the clear that needs the RSA key.
                [0x01, 0x04] => self.send_payload(reply_seq, &[0x02]).await?,
                [0x01, key @ ..] if plugin == CACHING_SHA2 || plugin == SHA256 => {
                    let secret = encrypted(&login.password, &scramble, key);
                    self.send_payload(reply_seq, &secret).await?;
                }
                _ => return Err(HarnessError::Protocol(format!("login: {packet:?}"))),
            }
        }
    }

    async fn login_packet(&mut self) -> Result<Packet> {
        let limit = self.read_limit;
        self.read_limit = limit.max(LOGIN_LIMIT);
        let packet = self.read_packet().await;
        self.read_limit = limit;
        let packet = packet?;
        self.login_packets.push(packet.clone());
        Ok(packet)
    }

    fn response_payload(&self, login: &Login, greeting: &Greeting) -> Vec<u8> {
        let mut out = self.capabilities.to_le_bytes().to_vec();
        out.extend_from_slice(&MAX_PACKET.to_le_bytes());
        out.push(login.collation);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.mariadb_capabilities.to_le_bytes());
        put_nul(&mut out, &login.user);
        // An unknown first plugin is answered with nothing: the server then switches to one.
        let answer = scrambled(&greeting.plugin, &greeting.scramble, &login.password);
        put_lenenc_bytes(&mut out, &answer.unwrap_or_default());
        if self.capabilities & capability::CONNECT_WITH_DB != 0 {
            put_nul(&mut out, &login.schema);
        }
        if self.capabilities & capability::PLUGIN_AUTH != 0 {
            put_nul(&mut out, &greeting.plugin);
        }
        if self.capabilities & capability::CONNECT_ATTRS != 0 {
            put_attributes(&mut out, &login.attributes);
        }
        if let Compress::Zstd(level) = login.compress {
            out.push(level);
        }
        out
    }
}

/// What the client needs of the server's first packet.
struct Greeting {
    server_version: String,
    connection_id: u32,
    scramble: Vec<u8>,
    capabilities: u32,
    mariadb_capabilities: u32,
    plugin: String,
}

impl Greeting {
    fn parse(payload: &[u8]) -> Result<Self> {
        let mut r = Reader(payload);
        let version = r.u8()?;
        if version != 10 {
            return Err(HarnessError::Protocol(format!("protocol version {version}")));
        }
        let server_version = String::from_utf8_lossy(r.until_nul()).into_owned();
        let connection_id = r.u32()?;
        let mut scramble = r.take(8)?.to_vec();
        r.take(1)?;
        let low = r.u16()?;
        r.take(3)?;
        let high = r.u16()?;
        r.take(7)?;
        let extended = r.u32()?;
        scramble.extend_from_slice(r.until_nul());
        let plugin = String::from_utf8_lossy(r.until_nul()).into_owned();
        let capabilities = u32::from(low) | u32::from(high) << 16;
        // Only a server that is not MySQL's clears bit 0, and then the filler means something.
        let is_mariadb = capabilities & capability::LONG_PASSWORD == 0;
        Ok(Self {
            server_version,
            connection_id,
            scramble,
            capabilities: capabilities | capability::LONG_PASSWORD,
            mariadb_capabilities: if is_mariadb { extended } else { 0 },
            plugin,
        })
    }
}

const COM_CHANGE_USER: u8 = 0x11;
const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";
const SHA256: &str = "sha256_password";
const SSL_REQUEST_LEN: usize = 32;
const MAX_PACKET: u32 = 0x4000_0000;
const LOGIN_LIMIT: Duration = Duration::from_secs(30);

fn put_attributes(out: &mut Vec<u8>, attributes: &[(String, String)]) {
    let mut block = Vec::new();
    for (key, value) in attributes {
        put_lenenc_bytes(&mut block, key.as_bytes());
        put_lenenc_bytes(&mut block, value.as_bytes());
    }
    put_lenenc_bytes(out, &block);
}

/// An authentication switch is `fe plugin 00 nonce 00`.
fn without_nonce(mut packet: Packet) -> Packet {
    if packet.first() == Some(0xfe) {
        let plugin_end = packet.payload.iter().position(|byte| *byte == 0);
        let nonce_from = plugin_end.map_or(packet.payload.len(), |end| end.saturating_add(1));
        packet.payload.iter_mut().skip(nonce_from).for_each(|byte| *byte = 0);
    }
    packet
}

fn scrambled(plugin: &str, scramble: &[u8], password: &str) -> Result<Vec<u8>> {
    let answer = match plugin {
        NATIVE => scramble_native(scramble, password.as_bytes()).map(|a| a.to_vec()),
        CACHING_SHA2 => scramble_sha256(scramble, password.as_bytes()).map(|a| a.to_vec()),
        other => return Err(HarnessError::Protocol(format!("authentication plugin {other}"))),
    };
    Ok(answer.unwrap_or_default())
}

fn in_the_clear(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

fn encrypted(password: &str, scramble: &[u8], key: &[u8]) -> Vec<u8> {
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    for (byte, mask) in secret.iter_mut().zip(scramble.iter().cycle()) {
        *byte ^= mask;
    }
    crypto::encrypt(&secret, key)
}

fn refusal(packet: &Packet) -> HarnessError {
    match packet.err() {
        Some((errno, message)) => HarnessError::Refused { errno, message },
        None => HarnessError::Protocol(format!("{packet:?}")),
    }
}
