//! Capability flags by the manual's names, without their prefix `CLIENT_`.

/// `CLIENT_LONG_PASSWORD`; MariaDB calls the bit `CLIENT_MYSQL`.
pub const LONG_PASSWORD: u32 = 1;
/// `CLIENT_FOUND_ROWS`.
pub const FOUND_ROWS: u32 = 1 << 1;
/// `CLIENT_LONG_FLAG`.
pub const LONG_FLAG: u32 = 1 << 2;
/// `CLIENT_CONNECT_WITH_DB`.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// `CLIENT_COMPRESS`.
pub const COMPRESS: u32 = 1 << 5;
/// `CLIENT_LOCAL_FILES`.
pub const LOCAL_FILES: u32 = 1 << 7;
/// `CLIENT_PROTOCOL_41`.
pub const PROTOCOL_41: u32 = 1 << 9;
/// `CLIENT_SSL`.
pub const SSL: u32 = 1 << 11;
/// `CLIENT_TRANSACTIONS`.
pub const TRANSACTIONS: u32 = 1 << 13;
/// `CLIENT_RESERVED2`, once `CLIENT_SECURE_CONNECTION`.
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// `CLIENT_MULTI_STATEMENTS`.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// `CLIENT_MULTI_RESULTS`.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// `CLIENT_PS_MULTI_RESULTS`.
pub const PS_MULTI_RESULTS: u32 = 1 << 18;
/// `CLIENT_PLUGIN_AUTH`.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// `CLIENT_CONNECT_ATTRS`.
pub const CONNECT_ATTRS: u32 = 1 << 20;
/// `CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA`.
pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// `CLIENT_SESSION_TRACK`.
pub const SESSION_TRACK: u32 = 1 << 23;
/// `CLIENT_DEPRECATE_EOF`.
pub const DEPRECATE_EOF: u32 = 1 << 24;
/// `CLIENT_OPTIONAL_RESULTSET_METADATA`.
pub const OPTIONAL_METADATA: u32 = 1 << 25;
/// `CLIENT_ZSTD_COMPRESSION_ALGORITHM`.
pub const ZSTD: u32 = 1 << 26;
/// `CLIENT_QUERY_ATTRIBUTES`.
pub const QUERY_ATTRIBUTES: u32 = 1 << 27;

/// MariaDB's `MARIADB_CLIENT_PROGRESS` (extended flags).
pub const MARIADB_PROGRESS: u32 = 1;
/// MariaDB's `MARIADB_CLIENT_STMT_BULK_OPERATIONS` (extended flags).
pub const MARIADB_BULK: u32 = 1 << 2;
/// MariaDB's `MARIADB_CLIENT_EXTENDED_METADATA` (extended flags).
pub const MARIADB_EXTENDED_METADATA: u32 = 1 << 3;
/// MariaDB's `MARIADB_CLIENT_CACHE_METADATA` (extended flags).
pub const MARIADB_CACHE_METADATA: u32 = 1 << 4;

/// What a usual client of today says: everything above but compression, TLS, optional metadata and
/// query attributes.
pub const USUAL: u32 = LONG_PASSWORD
    | LONG_FLAG
    | CONNECT_WITH_DB
    | LOCAL_FILES
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | SESSION_TRACK
    | DEPRECATE_EOF;
/// `CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS`.
pub const CAN_HANDLE_EXPIRED_PASSWORDS: u32 = 1 << 22;
