//! What the file says about compression, on either leg of a connection.

/// What clients may compress with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientCompression {
    /// zlib is offered.
    pub zlib: bool,
    /// zstd is offered.
    pub zstd: bool,
    /// Clients may come without.
    pub uncompressed: bool,
}

/// What the leg to the server is compressed with, where the server offers it; otherwise it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendCompression {
    /// It is not.
    Off,
    /// With what the client's is.
    AsClient,
    /// With zlib.
    Zlib,
    /// With zstd.
    Zstd,
}

/// How hard Sluice compresses what it sends, on both legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionLevel {
    /// zlib's level, 1 to 9.
    pub zlib: u8,
    /// zstd's level, 1 to 22. A client names its own, which counts when it is lower.
    pub zstd: u8,
}
