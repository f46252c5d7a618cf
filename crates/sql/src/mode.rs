//! What must be known about a session to read its text as its server does.

mod candidates;

/// How the server reads text for this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LexMode {
    /// SERVER_STATUS_NO_BACKSLASH_ESCAPES: a backslash in a literal is an ordinary byte.
    pub no_backslash_escapes: Setting,
    /// `sql_mode` contains ANSI_QUOTES: `"x"` is a name. MySQL does not show it in the status
    /// flags, so the session has to learn it ([`crate::PlainEffects::sets_ansi_quotes`]).
    pub ansi_quotes: Setting,
    /// `character_set_client`.
    pub charset: Charset,
    /// Whose rules for executable comments and dollar quotes hold.
    pub server: Server,
}

impl LexMode {
    /// The same server, and nothing known of the session's settings: a text on which they bear has
    /// every reading that may be the server's.
    #[must_use]
    pub fn unknown(server: Server) -> Self {
        Self {
            no_backslash_escapes: Setting::Unknown,
            ansi_quotes: Setting::Unknown,
            charset: Charset::Unknown,
            server,
        }
    }

    /// Whether nothing of it is unknown; how a server that is not known reads is another matter.
    pub(crate) fn is_known(self) -> bool {
        self.no_backslash_escapes != Setting::Unknown
            && self.ansi_quotes != Setting::Unknown
            && self.charset != Charset::Unknown
    }

    /// The mode with the servers' defaults where a setting is not known.
    pub(crate) fn assumed(self) -> Self {
        let setting = |setting: Setting| match setting {
            Setting::Off | Setting::Unknown => Setting::Off,
            Setting::On => Setting::On,
        };
        Self {
            no_backslash_escapes: setting(self.no_backslash_escapes),
            ansi_quotes: setting(self.ansi_quotes),
            charset: if self.charset == Charset::Unknown { Charset::Plain } else { self.charset },
            server: self.server,
        }
    }
}

/// A part of `sql_mode`, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Setting {
    /// It is not in force: the servers' default.
    #[default]
    Off,
    /// It is in force.
    On,
    /// It may be in force.
    Unknown,
}

impl From<bool> for Setting {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// `character_set_client`, as far as it changes where a literal or a word ends.
///
/// Which bytes are white space or letters was tried against MySQL 9.7 and MariaDB 10.11, every byte
/// in every character set that a client can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Charset {
    /// utf8mb4 and utf8mb3: bytes from 0x80 up belong to names, and no byte below 0x80 that means
    /// anything in SQL is ever part of a longer character.
    #[default]
    Plain,
    /// gb2312, euckr, ujis, eucjpms: read as `Plain` is, but the server converts names, and what it
    /// prepares.
    Euc,
    /// binary, ascii, koi8r, cp1251 and others: one byte is one character, and none from 0x80 up
    /// is white space.
    SingleByte,
    /// latin1 and others: as `SingleByte`, and 0xA0 is white space.
    Latin,
    /// As `Latin`. It has `(`, `)`, `.`, `,`, `-` and `'` twice, and those from 0x80 up, which are
    /// letters, become the others in what the server prepares.
    Armscii8,
    /// cp852, cp866, keybcs2: as `SingleByte`, and 0xFF is white space.
    Dos,
    /// swe7: `[`, `\`, `]`, `^`, `{`, `}` and `~` are letters.
    Swe7,
    /// Trail bytes may be `\` or `` ` ``.
    Big5,
    /// Trail bytes may be `\` or `` ` ``.
    Cp932,
    /// Trail bytes may be `\` or `` ` ``.
    Gbk,
    /// Trail bytes may be `\` or `` ` ``.
    Sjis,
    /// As gbk, and characters of four bytes, which hold nothing that means anything in SQL.
    Gb18030,
    /// Not known: text on which the character set bears has every reading that may be.
    Unknown,
}

impl Charset {
    /// The character set that `server` gives a client of this collation id: the handshake's,
    /// COM_CHANGE_USER's. For an id that it does not have it takes its own default, which is not
    /// known; one that no client may have (ucs2, utf16, utf32) it refuses.
    #[must_use]
    pub fn from_collation_id(id: u16, server: Server) -> Self {
        let mysql = |first: u32| match server {
            Server::MySql { version } => version >= first,
            Server::MariaDb { .. } | Server::Unknown => false,
        };
        match id {
            1 | 84 => Self::Big5,
            95 | 96 => Self::Cp932,
            28 | 87 => Self::Gbk,
            13 | 88 => Self::Sjis,
            248..=250 if mysql(50_704) => Self::Gb18030,
            10 | 82 => Self::Swe7,
            // gb2312 24 86, euckr 19 85, ujis 12 91, eucjpms 97 98; then utf8mb3 and utf8mb4.
            12 | 19 | 24 | 85 | 86 | 91 | 97 | 98 => Self::Euc,
            33 | 45 | 46 | 83 | 192..=215 | 223..=247 => Self::Plain,
            76 | 255..=309 if mysql(80_000) => Self::Plain,
            310..=323 if mysql(80_030) => Self::Plain,
            // latin1, latin2, latin5, latin7, cp1250.
            5 | 8 | 15 | 31 | 47..=49 | 94 | 2 | 9 | 21 | 27 | 77 | 30 | 78 => Self::Latin,
            20 | 41 | 42 | 79 | 26 | 34 | 44 | 66 | 99 => Self::Latin,
            // hebrew, greek, geostd8, dec8.
            16 | 71 | 25 | 70 | 92 | 93 | 3 | 69 => Self::Latin,
            32 | 64 => Self::Armscii8,
            40 | 81 | 36 | 68 | 37 | 73 => Self::Dos,
            // cp850, cp1251, cp1256, cp1257, hp8, koi8r, koi8u.
            4 | 80 | 14 | 23 | 50..=52 | 57 | 67 | 29 | 58 | 59 | 6 | 72 | 7 | 74 | 22 | 75 => {
                Self::SingleByte
            }
            // ascii, macce, macroman, tis620, binary.
            11 | 65 | 38 | 43 | 39 | 53 | 18 | 89 | 63 => Self::SingleByte,
            _ => Self::Unknown,
        }
    }

    /// The character set of that name, as in SET NAMES or the session tracker. No name but those
    /// that a client may have is known.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map_or(Self::Unknown, |(_, charset)| *charset)
    }

    /// Whether the server, which has its names in utf8, is certain to read these bytes as they are,
    /// where they are not part of a text, or stand in quotes there.
    #[must_use]
    pub fn keeps_name(self, name: &[u8]) -> bool {
        // Quotes in a name are doubled in a text.
        let is_quote = |byte: &u8| matches!(byte, b'`' | b'"');
        // What swe7 has letters for, and DEL, which latin2 has not.
        let is_letter = |byte: &u8| matches!(byte, b'@' | b'['..=b'^' | b'{'..=b'\x7f');
        let is_plain = self == Self::Plain;
        (is_plain || name.is_ascii() && !name.iter().any(is_letter)) && !name.iter().any(is_quote)
    }

    /// Whether `byte`, from 0x80 up, is white space.
    pub(crate) fn is_space(self, byte: u8) -> bool {
        match self {
            Self::Latin | Self::Armscii8 => byte == 0xA0,
            Self::Dos => byte == 0xFF,
            Self::Plain
            | Self::Euc
            | Self::SingleByte
            | Self::Swe7
            | Self::Big5
            | Self::Cp932
            | Self::Gbk
            | Self::Sjis
            | Self::Gb18030
            | Self::Unknown => false,
        }
    }

    /// Whether bytes from 0x80 up may be control characters.
    pub(crate) fn is_single_byte(self) -> bool {
        match self {
            Self::SingleByte | Self::Latin | Self::Armscii8 | Self::Dos | Self::Swe7 => true,
            Self::Plain
            | Self::Euc
            | Self::Big5
            | Self::Cp932
            | Self::Gbk
            | Self::Sjis
            | Self::Gb18030
            | Self::Unknown => false,
        }
    }

    /// Whether every byte from 0x80 up belongs to a word, and no byte below it that is no letter
    /// elsewhere does.
    pub(crate) fn has_plain_words(self) -> bool {
        match self {
            Self::Plain | Self::Euc | Self::SingleByte | Self::Unknown => true,
            Self::Latin
            | Self::Armscii8
            | Self::Dos
            | Self::Swe7
            | Self::Big5
            | Self::Cp932
            | Self::Gbk
            | Self::Sjis
            | Self::Gb18030 => false,
        }
    }

    /// Whether a byte below 0x80 may be the end of a longer character.
    pub(crate) fn has_ascii_trail(self) -> bool {
        match self {
            Self::Plain
            | Self::Euc
            | Self::SingleByte
            | Self::Latin
            | Self::Armscii8
            | Self::Dos
            | Self::Swe7
            | Self::Unknown => false,
            Self::Big5 | Self::Cp932 | Self::Gbk | Self::Sjis | Self::Gb18030 => true,
        }
    }

    /// The length of the character of several bytes at the start of `rest`; 1 if there is none.
    /// As the server's `my_ismbchar`: a lead byte before a byte that cannot follow it stands alone.
    pub(crate) fn step(self, rest: &[u8]) -> usize {
        let &[lead, trail, ..] = rest else { return 1 };
        let wide = match self {
            Self::Plain
            | Self::Euc
            | Self::SingleByte
            | Self::Latin
            | Self::Armscii8
            | Self::Dos
            | Self::Swe7
            | Self::Unknown => false,
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

/// The character sets that a client may have.
const NAMES: [(&[u8], Charset); 38] = [
    (b"utf8mb4", Charset::Plain),
    (b"utf8mb3", Charset::Plain),
    (b"utf8", Charset::Plain),
    (b"gb2312", Charset::Euc),
    (b"euckr", Charset::Euc),
    (b"ujis", Charset::Euc),
    (b"eucjpms", Charset::Euc),
    (b"latin1", Charset::Latin),
    (b"latin2", Charset::Latin),
    (b"latin5", Charset::Latin),
    (b"latin7", Charset::Latin),
    (b"cp1250", Charset::Latin),
    (b"hebrew", Charset::Latin),
    (b"greek", Charset::Latin),
    (b"armscii8", Charset::Armscii8),
    (b"geostd8", Charset::Latin),
    (b"dec8", Charset::Latin),
    (b"cp852", Charset::Dos),
    (b"cp866", Charset::Dos),
    (b"keybcs2", Charset::Dos),
    (b"binary", Charset::SingleByte),
    (b"ascii", Charset::SingleByte),
    (b"cp850", Charset::SingleByte),
    (b"cp1251", Charset::SingleByte),
    (b"cp1256", Charset::SingleByte),
    (b"cp1257", Charset::SingleByte),
    (b"hp8", Charset::SingleByte),
    (b"koi8r", Charset::SingleByte),
    (b"koi8u", Charset::SingleByte),
    (b"macce", Charset::SingleByte),
    (b"macroman", Charset::SingleByte),
    (b"tis620", Charset::SingleByte),
    (b"swe7", Charset::Swe7),
    (b"big5", Charset::Big5),
    (b"cp932", Charset::Cp932),
    (b"gbk", Charset::Gbk),
    (b"sjis", Charset::Sjis),
    (b"gb18030", Charset::Gb18030),
];

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
    use crate::effects::PlainEffects;

    #[test]
    fn collations_map_to_what_matters_about_them() {
        const MYSQL: Server = Server::MySql { version: 90_704 };
        const MARIADB: Server = Server::MariaDb { version: 101_119 };
        for (id, mysql, mariadb) in [
            (255, Charset::Plain, Charset::Unknown),
            (249, Charset::Gb18030, Charset::Unknown),
            (45, Charset::Plain, Charset::Plain),
            (8, Charset::Latin, Charset::Latin),
            (36, Charset::Dos, Charset::Dos),
            (63, Charset::SingleByte, Charset::SingleByte),
            (28, Charset::Gbk, Charset::Gbk),
            (85, Charset::Euc, Charset::Euc),
            (82, Charset::Swe7, Charset::Swe7),
        ] {
            assert_eq!(Charset::from_collation_id(id, MYSQL), mysql, "{id}");
            assert_eq!(Charset::from_collation_id(id, MARIADB), mariadb, "{id}");
        }
        for never_a_clients in [0, 35, 54, 60, 100, 128, 216, 672, 1152, 2304, 3072, 65_535] {
            for server in [MYSQL, MARIADB, Server::Unknown] {
                let charset = Charset::from_collation_id(never_a_clients, server);
                assert_eq!(charset, Charset::Unknown, "{never_a_clients}");
            }
        }
        assert_eq!(Charset::from_name(b"GBK"), Charset::Gbk);
        assert_eq!(Charset::from_name(b"latin1"), Charset::Latin);
        assert_eq!(Charset::from_name(b"cp1251"), Charset::SingleByte);
        assert_eq!(Charset::from_name(b"ucs2"), Charset::Unknown);
        assert_eq!(Charset::from_name(b"uca1400"), Charset::Unknown);
    }

    #[test]
    fn what_a_text_set_is_in_force_behind_ok_and_unknown_behind_an_error() {
        let mode = LexMode { charset: Charset::Gbk, ..LexMode::default() };
        let sets = PlainEffects {
            set_charset: Some(Charset::Gbk),
            sets_ansi_quotes: Some(Setting::On),
            ..PlainEffects::default()
        };
        let after = LexMode { ansi_quotes: Setting::On, ..mode };
        assert_eq!(mode.after_ok(&sets), after);
        let unknown = LexMode { ansi_quotes: Setting::Unknown, charset: Charset::Unknown, ..mode };
        assert_eq!(mode.after_error(&sets), unknown, "`SET NAMES swe7; SET NAMES gbk, x=1`");
        assert_eq!(mode.after_error(&PlainEffects::default()), mode);
        assert_eq!(mode.after_ok(&PlainEffects::unread()), LexMode::unknown(mode.server));
        assert_eq!(mode.after_error(&PlainEffects::unread()), LexMode::unknown(mode.server));
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
