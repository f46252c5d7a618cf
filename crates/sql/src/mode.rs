//! What must be known about a session to read its text as its server does.

/// How the server reads text for this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LexMode {
    /// SERVER_STATUS_NO_BACKSLASH_ESCAPES: a backslash in a literal is an ordinary byte.
    pub no_backslash_escapes: bool,
    /// `sql_mode` contains ANSI_QUOTES: `"x"` is a name. MySQL does not show it in the status
    /// flags, so the session has to learn it ([`crate::PlainEffects::sets_ansi_quotes`]).
    pub ansi_quotes: bool,
    /// `character_set_client`.
    pub charset: Charset,
    /// Whose rules for executable comments and dollar quotes hold.
    pub server: Server,
}

/// `character_set_client`, as far as it changes where a literal or a word ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Charset {
    /// utf8mb4, utf8mb3, and the EUC family: bytes from 0x80 up belong to names, and no byte below
    /// 0x80 that means anything in SQL is ever part of a longer character.
    #[default]
    Plain,
    /// latin1, the code pages, binary and everything not known: one byte is one character, and
    /// some bytes from 0x80 up may be white space (0xA0 in latin1), so all of them end a word.
    SingleByte,
    /// Trail bytes may be `\` or `` ` ``.
    Big5,
    /// Trail bytes may be `\` or `` ` ``.
    Cp932,
    /// Trail bytes may be `\` or `` ` ``.
    Gbk,
    /// Trail bytes may be `\` or `` ` ``.
    Sjis,
    /// As gbk, and characters of four bytes.
    Gb18030,
}

impl Charset {
    /// The character set of a collation id: the handshake's, COM_CHANGE_USER's.
    /// Ids from 1024 to 2047 are MariaDB's NO PAD variants of the ids 1024 below.
    #[must_use]
    pub fn from_collation_id(id: u16) -> Self {
        let base = if (1024..2048).contains(&id) { id.wrapping_sub(1024) } else { id };
        match base {
            1 | 84 => Self::Big5,
            95 | 96 => Self::Cp932,
            28 | 87 => Self::Gbk,
            13 | 88 => Self::Sjis,
            248..=250 => Self::Gb18030,
            // gb2312 24 86, euckr 19 85, ujis 12 91, eucjpms 97 98; then utf8mb3 and utf8mb4.
            12 | 19 | 24 | 85 | 86 | 91 | 97 | 98 => Self::Plain,
            33 | 45 | 46 | 76 | 83 | 192..=247 | 255..=1023 | 2048.. => Self::Plain,
            _ => Self::SingleByte,
        }
    }

    /// The character set of that name, as in SET NAMES or the session tracker.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        const KNOWN: [(&[u8], Charset); 12] = [
            (b"utf8mb4", Charset::Plain),
            (b"utf8mb3", Charset::Plain),
            (b"utf8", Charset::Plain),
            (b"big5", Charset::Big5),
            (b"cp932", Charset::Cp932),
            (b"gbk", Charset::Gbk),
            (b"sjis", Charset::Sjis),
            (b"gb18030", Charset::Gb18030),
            (b"gb2312", Charset::Plain),
            (b"euckr", Charset::Plain),
            (b"ujis", Charset::Plain),
            (b"eucjpms", Charset::Plain),
        ];
        KNOWN
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map_or(Self::SingleByte, |(_, charset)| *charset)
    }

    /// Whether a byte below 0x80 may be the end of a longer character.
    pub(crate) fn has_ascii_trail(self) -> bool {
        match self {
            Self::Plain | Self::SingleByte => false,
            Self::Big5 | Self::Cp932 | Self::Gbk | Self::Sjis | Self::Gb18030 => true,
        }
    }

    /// The length of the character of several bytes at the start of `rest`; 1 if there is none.
    /// As the server's `my_ismbchar`: a lead byte before a byte that cannot follow it stands alone.
    pub(crate) fn step(self, rest: &[u8]) -> usize {
        let &[lead, trail, ..] = rest else { return 1 };
        let wide = match self {
            Self::Plain | Self::SingleByte => false,
            Self::Big5 => matches!(lead, 0xA1..=0xF9) && matches!(trail, 0x40..=0x7E | 0xA1..=0xFE),
            Self::Cp932 | Self::Sjis => {
                matches!(lead, 0x81..=0x9F | 0xE0..=0xFC)
                    && matches!(trail, 0x40..=0x7E | 0x80..=0xFC)
            }
            Self::Gbk => matches!(lead, 0x81..=0xFE) && matches!(trail, 0x40..=0x7E | 0x80..=0xFE),
            Self::Gb18030 => return gb18030_step(rest),
        };
        if wide { 2 } else { 1 }
    }
}

/// Which server reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Server {
    /// MySQL and its close relatives; 90704 is 9.7.4.
    MySql {
        /// Major × 10,000 + minor × 100 + patch.
        version: u32,
    },
    /// MariaDB; 101119 is 10.11.19.
    MariaDb {
        /// Major × 10,000 + minor × 100 + patch.
        version: u32,
    },
    /// Not known: every reading is made, and the strictest counts.
    #[default]
    Unknown,
}

fn gb18030_step(rest: &[u8]) -> usize {
    match rest {
        [0x81..=0xFE, 0x40..=0x7E | 0x80..=0xFE, ..] => 2,
        [0x81..=0xFE, 0x30..=0x39, 0x81..=0xFE, 0x30..=0x39, ..] => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_map_to_what_matters_about_them() {
        assert_eq!(Charset::from_collation_id(255), Charset::Plain);
        assert_eq!(Charset::from_collation_id(45), Charset::Plain);
        assert_eq!(Charset::from_collation_id(8), Charset::SingleByte);
        assert_eq!(Charset::from_collation_id(63), Charset::SingleByte);
        assert_eq!(Charset::from_collation_id(28), Charset::Gbk);
        assert_eq!(Charset::from_collation_id(1052), Charset::Gbk);
        assert_eq!(Charset::from_collation_id(249), Charset::Gb18030);
        assert_eq!(Charset::from_name(b"GBK"), Charset::Gbk);
        assert_eq!(Charset::from_name(b"latin1"), Charset::SingleByte);
    }

    #[test]
    fn a_lead_byte_takes_a_backslash_but_never_a_quote() {
        for charset in [Charset::Big5, Charset::Cp932, Charset::Gbk, Charset::Sjis] {
            assert_eq!(charset.step(b"\xE1\\"), 2, "{charset:?}");
            assert_eq!(charset.step(b"\xE1'"), 1, "{charset:?}");
            assert_eq!(charset.step(b"\xE1"), 1, "{charset:?}");
        }
        assert_eq!(Charset::Gb18030.step(b"\x81\x30\x81\x30"), 4);
        assert_eq!(Charset::Plain.step(b"\xE1\\"), 1);
    }
}
