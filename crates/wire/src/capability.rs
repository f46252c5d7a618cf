//! Capabilities: what the two ends of a session agreed to speak.
//!
//! The manual's "Capabilities Flags". MariaDB adds a second word of 32 bits, which counts only with
//! a server that leaves bit 0 (CLIENT_MYSQL, MySQL's CLIENT_LONG_PASSWORD) clear in its greeting.

use std::ops::BitOr;

/// Both words as offered, sent or agreed. MariaDB's extended word is 0 with MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// The word that MySQL and MariaDB share.
    pub base: u32,
    /// MariaDB's extended word.
    pub mariadb: u32,
}

impl Capabilities {
    /// Whether all of `base_bit`'s bits are set in the shared word.
    #[must_use]
    pub fn has(self, base_bit: u32) -> bool {
        self.base & base_bit == base_bit
    }

    /// Whether all of `bit`'s bits are set in MariaDB's word.
    #[must_use]
    pub fn has_mariadb(self, bit: u32) -> bool {
        self.mariadb & bit == bit
    }

    /// Whether a greeting with these capabilities is a MariaDB server's: it leaves CLIENT_MYSQL
    /// clear.
    #[must_use]
    pub fn is_mariadb_server(self) -> bool {
        !self.has(CLIENT_MYSQL)
    }

    /// What both sides said.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self { base: self.base & other.base, mariadb: self.mariadb & other.mariadb }
    }

    /// What is in `self` and not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self { base: self.base & !other.base, mariadb: self.mariadb & !other.mariadb }
    }

    /// What a relay can follow of these: everything whose framing it knows. Clears MariaDB's
    /// COM_MULTI and every bit without a name here; and TLS and compression, which each leg has of
    /// its own.
    #[must_use]
    pub fn followable(self) -> Self {
        self.intersect(Self { base: !PER_LEG, mariadb: FOLLOWED_MARIADB })
    }

    /// Whether OK packets stand where EOF packets used to end a result set.
    #[must_use]
    pub fn deprecate_eof(self) -> bool {
        self.has(CLIENT_DEPRECATE_EOF)
    }

    /// Whether an ERR with code 0xffff is MariaDB's progress report.
    #[must_use]
    pub fn progress_reports(self) -> bool {
        self.has(CLIENT_PROGRESS_OBSOLETE) || self.has_mariadb(MARIADB_CLIENT_PROGRESS)
    }

    /// The manual's names of the bits that are set, for a log line.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let base = BASE_NAMES.iter().filter(move |(bit, _)| self.has(*bit));
        let mariadb = MARIADB_NAMES.iter().filter(move |(bit, _)| self.has_mariadb(*bit));
        base.chain(mariadb).map(|(_, name)| *name)
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { base: self.base | other.base, mariadb: self.mariadb | other.mariadb }
    }
}

macro_rules! capability_bits {
    ($names:ident { $($(#[$doc:meta])* $name:ident = $bit:expr;)* }) => {
        $($(#[$doc])* pub const $name: u32 = 1 << $bit;)*
        const $names: &[(u32, &str)] = &[$(($name, stringify!($name)),)*];
    };
}

capability_bits! { BASE_NAMES {
    /// MySQL's old name of bit 0: improved authentication, always set by MySQL.
    CLIENT_LONG_PASSWORD = 0;
    /// Affected rows are found rows.
    CLIENT_FOUND_ROWS = 1;
    /// Longer flags in column definitions.
    CLIENT_LONG_FLAG = 2;
    /// The handshake response names a schema.
    CLIENT_CONNECT_WITH_DB = 3;
    /// `schema.table.column` is refused.
    CLIENT_NO_SCHEMA = 4;
    /// zlib compression.
    CLIENT_COMPRESS = 5;
    /// ODBC, no effect.
    CLIENT_ODBC = 6;
    /// LOAD DATA LOCAL is allowed.
    CLIENT_LOCAL_FILES = 7;
    /// The parser ignores spaces before `(`.
    CLIENT_IGNORE_SPACE = 8;
    /// The protocol of MySQL 4.1 and later.
    CLIENT_PROTOCOL_41 = 9;
    /// `interactive_timeout` instead of `wait_timeout`.
    CLIENT_INTERACTIVE = 10;
    /// TLS follows this packet.
    CLIENT_SSL = 11;
    /// Client only: no SIGPIPE.
    CLIENT_IGNORE_SIGPIPE = 12;
    /// Status flags are sent.
    CLIENT_TRANSACTIONS = 13;
    /// Old name of the 4.1 protocol.
    CLIENT_RESERVED = 14;
    /// 4.1 authentication; the response has a length byte.
    CLIENT_SECURE_CONNECTION = 15;
    /// Several statements in one COM_QUERY.
    CLIENT_MULTI_STATEMENTS = 16;
    /// Several results of one COM_QUERY.
    CLIENT_MULTI_RESULTS = 17;
    /// Several results of one COM_STMT_EXECUTE.
    CLIENT_PS_MULTI_RESULTS = 18;
    /// Authentication plugins are named.
    CLIENT_PLUGIN_AUTH = 19;
    /// Connection attributes are sent.
    CLIENT_CONNECT_ATTRS = 20;
    /// The authentication response is a `string<lenenc>`.
    CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA = 21;
    /// Expired passwords do not close the connection.
    CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS = 22;
    /// OK packets report changes of session state.
    CLIENT_SESSION_TRACK = 23;
    /// OK packets in the place of EOF packets.
    CLIENT_DEPRECATE_EOF = 24;
    /// Result set metadata can be left out.
    CLIENT_OPTIONAL_RESULTSET_METADATA = 25;
    /// Zstandard compression.
    CLIENT_ZSTD_COMPRESSION_ALGORITHM = 26;
    /// COM_QUERY and COM_STMT_EXECUTE carry query attributes.
    CLIENT_QUERY_ATTRIBUTES = 27;
    /// Several authentication factors.
    CLIENT_MULTI_FACTOR_AUTHENTICATION = 28;
    /// MariaDB before 10.2: progress reports. MySQL reserves the bit.
    CLIENT_PROGRESS_OBSOLETE = 29;
    /// Client only: verify the server's certificate.
    CLIENT_SSL_VERIFY_SERVER_CERT = 30;
    /// Client only: keep options after a failed connect.
    CLIENT_REMEMBER_OPTIONS = 31;
}}

capability_bits! { MARIADB_NAMES {
    /// Progress reports as ERR packets with code 0xffff.
    MARIADB_CLIENT_PROGRESS = 0;
    /// COM_MULTI, withdrawn.
    MARIADB_CLIENT_COM_MULTI = 1;
    /// COM_STMT_BULK_EXECUTE.
    MARIADB_CLIENT_STMT_BULK_OPERATIONS = 2;
    /// Type names in column definitions.
    MARIADB_CLIENT_EXTENDED_METADATA = 3;
    /// Result set metadata is left out when unchanged.
    MARIADB_CLIENT_CACHE_METADATA = 4;
    /// COM_STMT_BULK_EXECUTE answers with a result set.
    MARIADB_CLIENT_BULK_UNIT_RESULTS = 5;
}}

/// MariaDB's name of bit 0, clear in the greeting of a MariaDB server.
pub const CLIENT_MYSQL: u32 = CLIENT_LONG_PASSWORD;

/// What is agreed on for each leg by itself, and not between the two ends.
pub const PER_LEG: u32 = CLIENT_COMPRESS | CLIENT_ZSTD_COMPRESSION_ALGORITHM | CLIENT_SSL;

/// The bits of MariaDB's word whose framing is known.
const FOLLOWED_MARIADB: u32 = MARIADB_CLIENT_PROGRESS
    | MARIADB_CLIENT_STMT_BULK_OPERATIONS
    | MARIADB_CLIENT_EXTENDED_METADATA
    | MARIADB_CLIENT_CACHE_METADATA
    | MARIADB_CLIENT_BULK_UNIT_RESULTS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_follows_all_but_what_is_of_each_leg_and_the_unknown() {
        let all = Capabilities { base: u32::MAX, mariadb: u32::MAX };
        let followed = all.followable();
        assert_eq!(followed.mariadb, 0x3d);
        let cleared: Vec<_> = all.without(followed).names().collect();
        assert_eq!(
            cleared,
            [
                "CLIENT_COMPRESS",
                "CLIENT_SSL",
                "CLIENT_ZSTD_COMPRESSION_ALGORITHM",
                "MARIADB_CLIENT_COM_MULTI"
            ]
        );
    }

    #[test]
    fn both_ends_agree_on_what_both_said() {
        let server = Capabilities { base: CLIENT_SESSION_TRACK | CLIENT_MYSQL, mariadb: 0 };
        let client = Capabilities { base: CLIENT_SESSION_TRACK | CLIENT_SSL, mariadb: 0x1d };
        let agreed = server.intersect(client);
        assert_eq!(agreed, Capabilities { base: CLIENT_SESSION_TRACK, mariadb: 0 });
        assert!(!server.is_mariadb_server());
        assert!(agreed.has(CLIENT_SESSION_TRACK) && !agreed.has(CLIENT_SSL));
    }

    #[test]
    fn bits_stand_where_the_manual_has_them() {
        assert_eq!(CLIENT_DEPRECATE_EOF, 0x0100_0000);
        assert_eq!(CLIENT_QUERY_ATTRIBUTES, 0x0800_0000);
        assert_eq!(CLIENT_SSL, 0x800);
        assert_eq!(MARIADB_CLIENT_CACHE_METADATA, 0x10);
    }
}
