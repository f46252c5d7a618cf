//! Logins that Sluice itself refuses.

use crate::answer::Answer;

/// Why Sluice refuses a login. The server's own refusals are relayed and not among these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// What the client answered the greeting with is no login.
    BadHandshake,
    /// It has another sequence id than what follows a greeting.
    OutOfOrder,
    /// The client came without TLS, and `client_tls` requires it.
    TlsRequired,
    /// `backend_tls` wants TLS, and the server offers none.
    ServerWithoutTls,
    /// The TLS handshake with the server failed.
    ServerTlsFailed,
    /// The plugin sends a password in the clear, or nobody knows that it does not, and the leg
    /// behind Sluice is not encrypted.
    PasswordExposed,
    /// The client's encrypted password was not encrypted with Sluice's key.
    PasswordUnreadable,
    /// The password cannot be encrypted with the key that the server sent.
    ServerKeyUnusable,
    /// The client does not compress, and `client_compression` does not offer that.
    Uncompressed,
    /// The client named no level of zstd that there is.
    CompressionLevel,
    /// The server sends the client elsewhere, and `redirect` says `deny`.
    Redirected,
    /// Nobody can say which account the server takes the user's name for.
    UserUnreadable,
}

impl Denial {
    /// For logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadHandshake => "bad_handshake",
            Self::OutOfOrder => "out_of_order",
            Self::TlsRequired => "tls_required",
            Self::ServerWithoutTls => "server_without_tls",
            Self::ServerTlsFailed => "server_tls_failed",
            Self::PasswordExposed => "password_exposed",
            Self::PasswordUnreadable => "password_unreadable",
            Self::ServerKeyUnusable => "server_key_unusable",
            Self::Uncompressed => "uncompressed",
            Self::CompressionLevel => "compression_level",
            Self::Redirected => "redirected",
            Self::UserUnreadable => "user_unreadable",
        }
    }

    /// What the client is told; `why` is what else there is to say.
    pub(crate) fn answer(self, why: &str) -> Answer {
        let (errno, sqlstate) = self.code();
        let colon = if why.is_empty() { "" } else { ": " };
        let message = format!("{}{colon}{why}", self.message()).into_bytes();
        Answer { errno, sqlstate: *sqlstate, message }
    }

    fn code(self) -> (u16, &'static [u8; 5]) {
        match self {
            Self::OutOfOrder => (ER_NET_PACKETS_OUT_OF_ORDER, b"08S01"),
            Self::TlsRequired => (ER_SECURE_TRANSPORT_REQUIRED, b"HY000"),
            Self::PasswordUnreadable | Self::UserUnreadable => (ER_ACCESS_DENIED_ERROR, b"28000"),
            Self::Uncompressed => (ER_WRONG_COMPRESSION_ALGORITHM_CLIENT, b"HY000"),
            Self::CompressionLevel => (ER_WRONG_COMPRESSION_LEVEL_CLIENT, b"HY000"),
            Self::BadHandshake
            | Self::ServerWithoutTls
            | Self::ServerTlsFailed
            | Self::PasswordExposed
            | Self::ServerKeyUnusable
            | Self::Redirected => (ER_HANDSHAKE_ERROR, b"08S01"),
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::BadHandshake => "Bad handshake [sluice]",
            Self::OutOfOrder => "Got packets out of order [sluice]",
            Self::TlsRequired => {
                "Connections using insecure transport are prohibited [sluice client_tls=required]"
            }
            Self::ServerWithoutTls => {
                "[sluice] the MySQL server offers no TLS, and backend_tls wants it for this client"
            }
            Self::ServerTlsFailed => "[sluice] the TLS handshake with the MySQL server failed",
            Self::PasswordExposed => {
                "[sluice] the connection to the MySQL server is not encrypted, and this plugin may send \
                 the password as it is"
            }
            Self::PasswordUnreadable => {
                "[sluice] the password was not encrypted with the key that Sluice sends: ask for the \
                 server's public key instead of naming one, or use TLS"
            }
            Self::ServerKeyUnusable => {
                "[sluice] the password cannot be encrypted with the key of the MySQL server"
            }
            Self::Uncompressed => {
                "Invalid compression algorithm 'uncompressed'. [sluice client_compression]"
            }
            Self::CompressionLevel => {
                "Invalid zstd compression level for algorithm 'zstd'. [sluice]"
            }
            Self::Redirected => {
                "[sluice] the MySQL server sends its clients to another address, and redirect=deny"
            }
            Self::UserUnreadable => {
                "[sluice] it is not certain for which account the MySQL server takes this user name"
            }
        }
    }
}

const ER_ACCESS_DENIED_ERROR: u16 = 1045;
const ER_HANDSHAKE_ERROR: u16 = 1043;
const ER_NET_PACKETS_OUT_OF_ORDER: u16 = 1156;
const ER_SECURE_TRANSPORT_REQUIRED: u16 = 3159;
const ER_WRONG_COMPRESSION_ALGORITHM_CLIENT: u16 = 3922;
const ER_WRONG_COMPRESSION_LEVEL_CLIENT: u16 = 3923;
