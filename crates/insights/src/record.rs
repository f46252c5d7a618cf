//! One statement that is over.

use std::time::Duration;

use crate::hash::name_hash;

/// Words of a record: what a queue between threads carries.
pub const RECORD_WORDS: usize = 12;

/// A statement that is over. Names and texts are hashes: [`name_hash`], and the digest's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// The digest of its text. `None`: the text is not known.
    pub digest: Option<u64>,
    /// Who asked.
    pub app: u64,
    /// The default schema when it came; 0 for none.
    pub schema: u64,
    /// The MySQL user.
    pub user: u64,
    /// What stands for the tags that are kept; 0 for none.
    pub tags: u64,
    /// How long the server took, in nanoseconds ([`Record::nanos`]).
    pub server_ns: u64,
    /// How long it was kept waiting before, in nanoseconds.
    pub queued_ns: u64,
    /// Rows of its result sets.
    pub rows_sent: u64,
    /// Rows that it changed, as the server counts them.
    pub rows_affected: u64,
    /// Bytes of the command.
    pub bytes_in: u64,
    /// Bytes of the answer.
    pub bytes_out: u64,
    /// Warnings that the server has counted, of a text of several statements all of theirs.
    pub warnings: u32,
    /// What became of it.
    pub ending: Ending,
}

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// The server has executed it.
    #[default]
    Done,
    /// The server has answered with this error.
    Failed(u16),
    /// The server had it, and the connection ended before its answer did.
    Lost,
    /// It was refused and has not reached the server, for a reason of this number.
    Refused(u16),
    /// Its client left while it waited.
    ClientGone,
    /// It is counted already, and the server has gone on with it: rows of its cursor were fetched.
    Fetched,
    /// The same, and the server has answered with this error.
    FetchFailed(u16),
}

impl Ending {
    /// Whether it has reached the server.
    #[inline]
    #[must_use]
    pub fn is_executed(self) -> bool {
        match self {
            Self::Done | Self::Failed(_) | Self::Lost | Self::Fetched | Self::FetchFailed(_) => {
                true
            }
            Self::Refused(_) | Self::ClientGone => false,
        }
    }

    /// Whether what it tells belongs to a statement that is counted already.
    #[inline]
    #[must_use]
    pub fn is_more_of_one(self) -> bool {
        match self {
            Self::Fetched | Self::FetchFailed(_) => true,
            Self::Done | Self::Failed(_) | Self::Lost | Self::Refused(_) | Self::ClientGone => {
                false
            }
        }
    }

    #[inline]
    fn pack(self) -> (u8, u16) {
        match self {
            Self::Done => (0, 0),
            Self::Failed(errno) => (1, errno),
            Self::Lost => (2, 0),
            Self::Refused(reason) => (3, reason),
            Self::ClientGone => (4, 0),
            Self::Fetched => (5, 0),
            Self::FetchFailed(errno) => (6, errno),
        }
    }

    #[inline]
    fn unpack(kind: u8, number: u16) -> Self {
        match kind {
            1 => Self::Failed(number),
            2 => Self::Lost,
            3 => Self::Refused(number),
            4 => Self::ClientGone,
            5 => Self::Fetched,
            6 => Self::FetchFailed(number),
            _ => Self::Done,
        }
    }
}

impl Record {
    /// A time as it stands in a record: 584 years at most.
    #[inline]
    #[must_use]
    pub fn nanos(time: Duration) -> u64 {
        let seconds = time.as_secs().saturating_mul(1_000_000_000);
        seconds.saturating_add(u64::from(time.subsec_nanos()))
    }

    /// The record in words.
    #[inline]
    #[must_use]
    pub fn to_words(&self) -> [u64; RECORD_WORDS] {
        let (kind, number) = self.ending.pack();
        let [a, b, c, d] = self.warnings.to_le_bytes();
        let [e, f] = number.to_le_bytes();
        let known = u8::from(self.digest.is_some());
        [
            self.digest.unwrap_or_default(),
            self.app,
            self.schema,
            self.user,
            self.server_ns,
            self.queued_ns,
            self.rows_sent,
            self.rows_affected,
            self.bytes_in,
            self.bytes_out,
            u64::from_le_bytes([a, b, c, d, e, f, kind, known]),
            self.tags,
        ]
    }

    /// The record of these words.
    #[inline]
    #[must_use]
    pub fn from_words(words: &[u64; RECORD_WORDS]) -> Self {
        let [digest, app, schema, user, server_ns, queued_ns, rest @ ..] = *words;
        let [rows_sent, rows_affected, bytes_in, bytes_out, packed, tags] = rest;
        let [a, b, c, d, e, f, kind, known] = packed.to_le_bytes();
        let number = u16::from_le_bytes([e, f]);
        Self {
            digest: (known != 0).then_some(digest),
            app,
            schema,
            user,
            tags,
            server_ns,
            queued_ns,
            rows_sent,
            rows_affected,
            bytes_in,
            bytes_out,
            warnings: u32::from_le_bytes([a, b, c, d]),
            ending: Ending::unpack(kind, number),
        }
    }

    /// Whose it is, by names.
    #[must_use]
    pub fn of(self, app: &[u8], schema: &[u8], user: &[u8]) -> Self {
        Self { app: name_hash(app), schema: name_hash(schema), user: name_hash(user), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_words() {
        let endings = [
            Ending::Done,
            Ending::Failed(1062),
            Ending::Lost,
            Ending::Refused(7),
            Ending::ClientGone,
            Ending::Fetched,
            Ending::FetchFailed(1317),
        ];
        for (digest, ending) in [None, Some(0), Some(7)].into_iter().cycle().zip(endings) {
            let record = Record {
                digest,
                tags: 9,
                server_ns: 1,
                queued_ns: 2,
                rows_sent: 3,
                rows_affected: 4,
                bytes_in: 5,
                bytes_out: 6,
                warnings: 131_070,
                ending,
                ..Record::default()
            };
            let record = record.of(b"etl", b"shop", b"root");
            assert_eq!(Record::from_words(&record.to_words()), record);
        }
    }
}
