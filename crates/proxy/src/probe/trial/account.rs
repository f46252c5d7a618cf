//! As whom a server lets the probe in, and what it says of itself.

use std::fmt;
use std::io;

use mysql_async::Row;
use policy::{Probe, ServerAddress};
use sql::Server;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};

use crate::board::ProbeError;
use crate::link::denial::quoted_account;
use crate::link::{Link, unreached};
use crate::probe::answer::{is_on, text};
use crate::probe::facts::server_of;

/// `ER_HOST_NOT_PRIVILEGED`
const ER_HOST_NOT_PRIVILEGED: u16 = 1130;

/// Longest greeting that is read.
const GREETING_LEN_MAX: usize = 1_024;

/// What a server says to whoever has just logged in.
#[derive(Debug)]
pub(super) struct Account {
    /// `CURRENT_USER()`, quoted.
    pub(super) name: String,
    user: String,
    pub(super) server: Server,
    version: String,
    pub(super) read_only: bool,
    cipher: String,
}

const ACCOUNT: &str = "SELECT CURRENT_USER(), VERSION(), @@GLOBAL.read_only";
const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

impl Account {
    pub(super) async fn ask(link: &mut Link) -> Result<Self, ProbeError> {
        let unusable = || ProbeError::Unusable("the server does not say who it is".into());
        let row = link.first(ACCOUNT).await?.ok_or_else(unusable)?;
        let column = |at| row.as_ref(at).and_then(text).unwrap_or_default();
        let (current_user, version, read_only): (String, String, String) =
            (column(0), column(1), column(2));
        let cipher = link.first(CIPHER).await?;
        let cipher = cipher.as_ref().and_then(|row: &Row| row.as_ref(1).and_then(text));
        let user = current_user.rsplit_once('@').map_or("", |(user, _)| user).to_owned();
        Ok(Self {
            name: quoted_account(&current_user),
            user,
            server: server_of(&version).unwrap_or(Server::Unknown),
            version,
            read_only: is_on(&read_only),
            cipher: cipher.unwrap_or_default(),
        })
    }

    /// Whether it is an account of this user.
    pub(super) fn is_of(&self, user: &str) -> bool {
        self.user == user
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&titled(&self.version))?;
        write!(f, ", logged in as {}, ", self.name)?;
        if self.cipher.is_empty() {
            f.write_str("not encrypted")
        } else {
            write!(f, "encrypted with {}", self.cipher)
        }
    }
}

/// A version with the name of the server.
fn titled(version: &str) -> String {
    if version.to_ascii_lowercase().contains("mariadb") {
        format!("MariaDB {version}")
    } else {
        format!("MySQL {version}")
    }
}

/// Why there was no login or no answer, with what can be done about it.
pub(super) fn login_failure(error: &ProbeError, probe: &Probe) -> String {
    let user = &probe.user;
    if error.is_access_denied() {
        return format!(
            "{error}: is there an account `{user}` for this address, and is `probe`'s password \
             its password? A server with anonymous accounts takes ''@'localhost' for whoever comes \
             from there, before `{user}`@'%': DROP USER ''@'localhost'"
        );
    }
    match error.code() {
        Some(ER_HOST_NOT_PRIVILEGED) => {
            format!("{error}: no account may come from this machine's address")
        }
        Some(_) | None => error.to_string(),
    }
}

/// The version in a server's first packet.
pub(super) async fn greeting(server: &str) -> Result<String, ProbeError> {
    let lost = |error: io::Error| ProbeError::Lost(unreached::why(&error, server));
    match ServerAddress::of(server) {
        ServerAddress::Network(address) => {
            let stream = TcpStream::connect(address).await.map_err(lost)?;
            first_packet(stream).await.map_err(lost)?
        }
        ServerAddress::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(lost)?;
            first_packet(stream).await.map_err(lost)?
        }
    }
}

/// Reads Protocol::HandshakeV10, or the ERR packet that may come in its place.
async fn first_packet(
    mut stream: impl AsyncRead + Unpin,
) -> io::Result<Result<String, ProbeError>> {
    let mut header = [0_u8; 4];
    stream.read_exact(&mut header).await?;
    let [low, middle, high, _] = header;
    let len = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
    let mut payload = vec![0_u8; len.min(GREETING_LEN_MAX)];
    stream.read_exact(&mut payload).await?;
    let unusable = || ProbeError::Unusable("what answers there is no MySQL server".into());
    Ok(match payload.split_first() {
        Some((10, rest)) => {
            let version = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(titled(&String::from_utf8_lossy(version)))
        }
        Some((0xff, [low, high, message @ ..])) => Err(ProbeError::Refused {
            code: u16::from_le_bytes([*low, *high]),
            message: String::from_utf8_lossy(message).into_owned(),
        }),
        Some(_) | None => Err(unusable()),
    })
}
