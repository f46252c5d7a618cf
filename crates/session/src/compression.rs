//! What either leg changes to behind the OK of the login. Each leg is agreed on by itself: with the
//! client from what Sluice offers, with the server from what that one offers.

use policy::{BackendCompression, ClientCompression, ClusterPolicy};
use wire::capability::{
    CLIENT_COMPRESS, CLIENT_CONNECT_ATTRS, CLIENT_CONNECT_WITH_DB, CLIENT_PLUGIN_AUTH,
    CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, CLIENT_SECURE_CONNECTION,
    CLIENT_ZSTD_COMPRESSION_ALGORITHM, Capabilities,
};
use wire::compress::Algorithm;
use wire::handshake::HandshakeResponse;

use crate::denial::Denial;

/// How Sluice compresses what it sends on a leg, and with what the other end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Of both directions.
    pub algorithm: Algorithm,
    /// Of the direction from Sluice.
    pub level: u8,
}

/// Both legs; `None` is not compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compressions {
    pub(crate) client: Option<Compression>,
    pub(crate) backend: Option<Compression>,
}

impl Compressions {
    /// What a client's response agrees on, and what the leg behind is to be.
    pub(crate) fn agree(
        response: &HandshakeResponse<'_>,
        offered: Capabilities,
        server: Capabilities,
        policy: &ClusterPolicy,
    ) -> Result<Self, Denial> {
        let client = with_client(response, response.capabilities.intersect(offered), policy)?;
        let wanted = match policy.backend_compression {
            BackendCompression::Off => None,
            BackendCompression::AsClient => client.map(|client| client.algorithm),
            BackendCompression::Zlib => Some(Algorithm::Zlib),
            BackendCompression::Zstd => Some(Algorithm::Zstd),
        };
        let backend = wanted.filter(|algorithm| {
            let can_be_asked = match algorithm {
                Algorithm::Zlib => true,
                Algorithm::Zstd => can_name_level(response, offered),
            };
            server.has(bit(*algorithm)) && can_be_asked
        });
        let backend = backend.map(|algorithm| leg(algorithm, policy));
        Ok(Self { client, backend })
    }

    /// What the response to the server says of it.
    pub(crate) fn to_server(self) -> Capabilities {
        let base = self.backend.map_or(0, |backend| bit(backend.algorithm));
        Capabilities { base, mariadb: 0 }
    }

    /// Makes a response to the server, in its place in the outbox, name zstd's level, if that is
    /// used, and no level otherwise.
    pub(crate) fn put_level(self, sent: &HandshakeResponse<'_>, frame: &mut Vec<u8>) {
        let Some(tail) = sent.tail else { return };
        if sent.capabilities.has(CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
            frame.truncate(frame.len().saturating_sub(tail.len()));
        }
        if let Some(Compression { algorithm: Algorithm::Zstd, level }) = self.backend {
            frame.push(level);
        }
    }
}

/// Sluice's own offer to clients.
pub(crate) fn offered(compression: ClientCompression) -> Capabilities {
    let zlib = if compression.zlib { CLIENT_COMPRESS } else { 0 };
    let zstd = if compression.zstd { CLIENT_ZSTD_COMPRESSION_ALGORITHM } else { 0 };
    Capabilities { base: zlib | zstd, mariadb: 0 }
}

fn with_client(
    response: &HandshakeResponse<'_>,
    both: Capabilities,
    policy: &ClusterPolicy,
) -> Result<Option<Compression>, Denial> {
    // Of both, client libraries and servers take zlib.
    if both.has(CLIENT_COMPRESS) {
        return Ok(Some(leg(Algorithm::Zlib, policy)));
    }
    if both.has(CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
        let named = response.tail.and_then(|tail| tail.first().copied());
        let named = named.filter(|level| ZSTD_LEVELS.contains(level));
        let Compression { algorithm, level } = leg(Algorithm::Zstd, policy);
        let level = named.ok_or(Denial::CompressionLevel)?.min(level);
        return Ok(Some(Compression { algorithm, level }));
    }
    if policy.client_compression.uncompressed { Ok(None) } else { Err(Denial::Uncompressed) }
}

/// Whether a level put behind the response would be read as one: all in front of it can be told
/// apart, by the server as well.
fn can_name_level(response: &HandshakeResponse<'_>, offered: Capabilities) -> bool {
    let sent = response.capabilities;
    let unknown_to_server = sent.without(offered).base & LAYOUT;
    let tail_len = response.tail.map(<[u8]>::len);
    let has_level = sent.has(CLIENT_ZSTD_COMPRESSION_ALGORITHM);
    unknown_to_server == 0 && (tail_len == Some(0) || has_level && tail_len == Some(1))
}

fn leg(algorithm: Algorithm, policy: &ClusterPolicy) -> Compression {
    let level = match algorithm {
        Algorithm::Zlib => policy.compression_level.zlib,
        Algorithm::Zstd => policy.compression_level.zstd,
    };
    Compression { algorithm, level }
}

fn bit(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Zlib => CLIENT_COMPRESS,
        Algorithm::Zstd => CLIENT_ZSTD_COMPRESSION_ALGORITHM,
    }
}

/// What decides which fields a response has.
const LAYOUT: u32 = CLIENT_CONNECT_WITH_DB
    | CLIENT_PLUGIN_AUTH
    | CLIENT_CONNECT_ATTRS
    | CLIENT_SECURE_CONNECTION
    | CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;

/// The servers' range.
const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
