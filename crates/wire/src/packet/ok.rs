//! OK and EOF packets, and the session changes an OK can carry.

use crate::capability::{CLIENT_SESSION_TRACK, Capabilities};
use crate::error::ProtocolError;
use crate::lenenc::Reader;
use crate::status::{SERVER_SESSION_STATE_CHANGED, StatusFlags};

use super::{EOF_HEADER, OK_HEADER};

/// An OK packet, with header 0x00 or, in the place of an EOF, 0xfe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows that a write changed (or found, with CLIENT_FOUND_ROWS).
    pub affected_rows: u64,
    /// First generated AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Status flags, see [`StatusFlags`].
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// What the server says for people to read.
    pub info: &'a [u8],
    /// What changed in the session.
    pub session_changes: SessionChanges<'a>,
}

impl<'a> OkPacket<'a> {
    /// Reads an OK packet. `info` and session changes that do not fit are cut, not refused.
    ///
    /// # Errors
    /// [`ProtocolError::PacketTruncated`] when the fixed part is not there, or the packet is no OK.
    pub fn parse(payload: &'a [u8], caps: Capabilities) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(payload);
        let first_byte = reader.u8().unwrap_or_default();
        let truncated = ProtocolError::PacketTruncated { first_byte };
        if payload.is_empty() || !matches!(first_byte, OK_HEADER | EOF_HEADER) {
            return Err(truncated);
        }
        let affected_rows = reader.lenenc_int().ok_or(truncated)?;
        let last_insert_id = reader.lenenc_int().ok_or(truncated)?;
        let status = reader.u16().ok_or(truncated)?;
        let warnings = reader.u16().unwrap_or_default();
        let mut info = reader.rest();
        let mut session_changes = SessionChanges::default();
        if caps.has(CLIENT_SESSION_TRACK) {
            info = reader.lenenc_bytes_cut().unwrap_or_default();
            if StatusFlags(status).has(SERVER_SESSION_STATE_CHANGED) {
                session_changes =
                    SessionChanges::new(reader.lenenc_bytes_cut().unwrap_or_default());
            }
        }
        Ok(Self { affected_rows, last_insert_id, status, warnings, info, session_changes })
    }
}

impl OkPacket<'_> {
    /// Rows that an UPDATE found and left as they were, and that `affected_rows` counts all the
    /// same, because the client asked for CLIENT_FOUND_ROWS. 0 where the packet does not say so.
    ///
    /// Both servers write `Rows matched: 5  Changed: 2  Warnings: 0`. Where `lc_messages` is another
    /// language nothing is read: three numbers could as well be those of an INSERT.
    #[must_use]
    pub fn unchanged_rows(&self) -> u64 {
        let mut rest = self.info;
        let mut number_behind = |words: &[u8]| {
            let from = rest.strip_prefix(words)?;
            let len = from.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, after) = from.split_at_checked(len)?;
            rest = after;
            std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        };
        match (number_behind(b"Rows matched: "), number_behind(b"  Changed: ")) {
            (Some(matched), Some(changed)) if matched == self.affected_rows => {
                matched.saturating_sub(changed)
            }
            _ => 0,
        }
    }
}

/// An EOF packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EofPacket {
    /// Number of warnings.
    pub warnings: u16,
    /// Status flags, see [`StatusFlags`].
    pub status: u16,
}

impl EofPacket {
    /// Reads an EOF packet. Mind that warnings and status stand the other way round than in an OK.
    ///
    /// # Errors
    /// [`ProtocolError::PacketTruncated`] when the packet is shorter than 5 bytes or no EOF.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(payload);
        let first_byte = reader.u8().unwrap_or_default();
        let truncated = ProtocolError::PacketTruncated { first_byte };
        if first_byte != EOF_HEADER {
            return Err(truncated);
        }
        let warnings = reader.u16().ok_or(truncated)?;
        let status = reader.u16().ok_or(truncated)?;
        Ok(Self { warnings, status })
    }
}

/// The session changes of one OK packet, in the server's order. Ends early where they cannot be
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionChanges<'a> {
    bytes: &'a [u8],
}

impl<'a> SessionChanges<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The changes one by one.
    #[must_use]
    pub fn iter(&self) -> SessionChangesIter<'a> {
        SessionChangesIter { entries: Reader::new(self.bytes), variables: Reader::default() }
    }
}

impl<'a> IntoIterator for SessionChanges<'a> {
    type Item = SessionChange<'a>;
    type IntoIter = SessionChangesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &SessionChanges<'a> {
    type Item = SessionChange<'a>;
    type IntoIter = SessionChangesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One change that an OK packet reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// The default schema is this now; empty when there is none.
    Schema(&'a [u8]),
    /// A system variable of the session is this now.
    SystemVariable {
        /// Its name.
        name: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// Another kind, by its number in the manual's `enum_session_state_type`.
    Other(u8),
}

/// Iterator over [`SessionChanges`].
#[derive(Debug, Clone)]
pub struct SessionChangesIter<'a> {
    entries: Reader<'a>,
    /// What is left of an entry of variables: one with MySQL, MariaDB may put several into one.
    variables: Reader<'a>,
}

impl<'a> Iterator for SessionChangesIter<'a> {
    type Item = SessionChange<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.variables.is_empty() {
                let name = self.variables.lenenc_bytes();
                let value = self.variables.lenenc_bytes();
                if let (Some(name), Some(value)) = (name, value) {
                    return Some(SessionChange::SystemVariable { name, value });
                }
                self.variables = Reader::default();
            }
            let kind = self.entries.u8()?;
            let mut entry = Reader::new(self.entries.lenenc_bytes_cut()?);
            match kind {
                SESSION_TRACK_SYSTEM_VARIABLES => self.variables = entry,
                SESSION_TRACK_SCHEMA => {
                    if let Some(schema) = entry.lenenc_bytes() {
                        return Some(SessionChange::Schema(schema));
                    }
                }
                other => return Some(SessionChange::Other(other)),
            }
        }
    }
}

const SESSION_TRACK_SYSTEM_VARIABLES: u8 = 0;
const SESSION_TRACK_SCHEMA: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const TRACKING: Capabilities = Capabilities { base: CLIENT_SESSION_TRACK, mariadb: 0 };

    #[test]
    fn a_plain_ok_is_read() {
        let ok =
            OkPacket::parse(b"\x00\x03\xfc\x00\x01\x02\x00\x01\x00Rows", Capabilities::default());
        let ok = ok.unwrap();
        assert_eq!((ok.affected_rows, ok.last_insert_id), (3, 256));
        assert_eq!((ok.status, ok.warnings, ok.info), (2, 1, &b"Rows"[..]));
        assert!(ok.session_changes.is_empty());
    }

    #[test]
    fn session_changes_are_listed() {
        let changes = b"\x01\x05\x04shop\x00\x1d\x14character_set_client\x07utf8mb4\x02\x02\x011";
        let mut bytes = b"\x00\x00\x00\x02\x40\x00\x00\x00".to_vec();
        bytes.push(u8::try_from(changes.len()).unwrap());
        bytes.extend_from_slice(changes);
        let ok = OkPacket::parse(&bytes, TRACKING).unwrap();
        let changes: Vec<_> = ok.session_changes.into_iter().collect();
        assert_eq!(
            changes,
            [
                SessionChange::Schema(b"shop"),
                SessionChange::SystemVariable { name: b"character_set_client", value: b"utf8mb4" },
                SessionChange::Other(2),
            ]
        );
    }

    #[test]
    fn several_variables_in_one_entry_are_all_listed() {
        let bytes = b"\x00\x00\x00\x02\x40\x00\x00\x00\x0a\x00\x08\x01a\x01b\x01c\x01d";
        let ok = OkPacket::parse(bytes, TRACKING).unwrap();
        assert_eq!(ok.session_changes.iter().count(), 2);
    }

    #[test]
    fn session_changes_that_are_cut_end_early() {
        let bytes = b"\x00\x00\x00\x02\x40\x00\x00\x00\x20\x01\x05\x04shop\x00\x1d\x14char";
        let ok = OkPacket::parse(bytes, TRACKING).unwrap();
        let changes: Vec<_> = ok.session_changes.iter().collect();
        assert_eq!(changes, [SessionChange::Schema(b"shop")]);
    }

    #[test]
    fn an_ok_without_status_is_refused() {
        for bytes in [&b""[..], b"\x00", b"\x00\x00\x00\x02", b"\x01\x00\x00\x02\x00\x00\x00"] {
            assert!(OkPacket::parse(bytes, TRACKING).is_err());
        }
    }

    #[test]
    fn an_eof_has_warnings_before_status() {
        let eof = EofPacket::parse(b"\xfe\x01\x00\x22\x00").unwrap();
        assert_eq!(eof, EofPacket { warnings: 1, status: 0x22 });
        assert!(EofPacket::parse(b"\xfe").is_err());
        assert!(EofPacket::parse(b"\x00\x01\x00\x22\x00").is_err());
    }

    #[test]
    fn rows_that_were_only_found_are_told_from_changed_ones_by_an_update_alone() {
        let unchanged = |affected: u64, info: &str| {
            OkPacket {
                affected_rows: affected,
                last_insert_id: 0,
                status: 2,
                warnings: 0,
                info: info.as_bytes(),
                session_changes: SessionChanges::default(),
            }
            .unchanged_rows()
        };
        assert_eq!(unchanged(5, "Rows matched: 5  Changed: 2  Warnings: 0"), 3);
        assert_eq!(unchanged(2, "Rows matched: 5  Changed: 2  Warnings: 0"), 0, "not asked for");
        for info in [
            "",
            "Records: 5  Duplicates: 0  Warnings: 0",
            "Lignes trouvees: 5  Modifiees: 2  Warnings: 0",
            "Rows matched: ",
            "Rows matched: 5",
            "Rows matched: 5  Changed: 99999999999999999999999",
            "Rows matched: 5  Changed: 9  Warnings: 0",
        ] {
            assert_eq!(unchanged(5, info), 0, "{info}");
        }
    }
}
