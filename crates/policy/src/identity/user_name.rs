//! The MySQL user as the server will read it.
//!
//! Theory. Rules, claims and the app look at the user that a client names, and the server looks at
//! something else: it converts the name from the client's character set to utf8mb3, cuts what is
//! too long, takes off a pair of quotes, and only then compares it with its accounts, byte by byte.
//! Seen on MySQL 9.7 and MariaDB 10.11:
//!
//! - `'gate'` in a HandshakeResponse is `gate`, once; in COM_CHANGE_USER it stays as it is. Double
//!   quotes, backticks and spaces stay everywhere.
//! - ASCII stays as it is in every character set that a client may log in with, but for swe7, which
//!   has letters where ASCII has brackets, and for DEL, which latin2 has not.
//! - Bytes from 0x80 up stay as they are where they are characters of utf8 in at most three bytes
//!   and the server knows the collation for one of utf8. Where not, MySQL cuts the name at them, so
//!   that `gate\xff` is `gate`.
//! - MySQL keeps 96 bytes; MariaDB 128 characters of a HandshakeResponse and 384 bytes of
//!   COM_CHANGE_USER.
//!
//! Other character sets could be converted here, but a server that is told not to listen to the
//! client's (`skip_character_set_client_handshake`) takes the name for utf8 all the same.

use std::fmt;
use std::ops::RangeInclusive;

use sql::Server;

/// Where a client names a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedIn {
    /// In a HandshakeResponse.
    HandshakeResponse,
    /// In COM_CHANGE_USER.
    ChangeUser,
}

/// Why nobody can say which account a server takes a name for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnreadableUser {
    /// The server cuts it.
    TooLong,
    /// It holds bytes that are none of a character of utf8mb3, or DEL.
    NotUtf8,
    /// It holds bytes that mean something else in the client's character set, or may.
    OtherCharset,
}

impl fmt::Display for UnreadableUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is longer than the server reads",
            Self::NotUtf8 => "it is not made of characters of utf8mb3",
            Self::OtherCharset => {
                "it is not in ASCII, and the connection's character set is not utf8"
            }
        })
    }
}

/// The user that `server` reads where a client sends `user`.
///
/// `collation` is that of the same packet; `None`: it names none, and what holds is what the
/// session has set.
///
/// # Errors
/// When it is not certain which account that is: the login must not go on.
pub fn user_as_read(
    user: &[u8],
    named_in: NamedIn,
    collation: Option<u16>,
    server: Server,
) -> Result<&[u8], UnreadableUser> {
    check_len(user, server)?;
    if user.is_ascii() {
        check_ascii(user, collation)?;
    } else {
        check_utf8(user, collation, server)?;
    }
    Ok(match (named_in, user) {
        (NamedIn::HandshakeResponse, [b'\'', bare @ .., b'\'']) => bare,
        (NamedIn::HandshakeResponse | NamedIn::ChangeUser, _) => user,
    })
}

/// The bytes of a name that MySQL keeps: 32 characters of utf8mb3. None of its accounts has more.
const MYSQL_BYTES_MAX: usize = 96;

/// The characters of a name that MariaDB keeps.
const MARIADB_CHARS_MAX: usize = 128;

fn check_len(user: &[u8], server: Server) -> Result<(), UnreadableUser> {
    let is_kept = match server {
        Server::MySql { .. } | Server::Unknown => user.len() <= MYSQL_BYTES_MAX,
        Server::MariaDb { .. } => chars(user) <= MARIADB_CHARS_MAX,
    };
    if is_kept { Ok(()) } else { Err(UnreadableUser::TooLong) }
}

/// The characters of what is utf8.
fn chars(user: &[u8]) -> usize {
    user.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

fn check_ascii(user: &[u8], collation: Option<u16>) -> Result<(), UnreadableUser> {
    if user.contains(&DEL) {
        return Err(UnreadableUser::NotUtf8);
    }
    let may_be_swe7 = collation.is_none_or(|id| SWE7.contains(&id));
    let is_swe7_letter = |byte: &u8| matches!(byte, b'@' | b'['..=b'^' | b'`' | b'{'..=b'~');
    if may_be_swe7 && user.iter().any(is_swe7_letter) {
        return Err(UnreadableUser::OtherCharset);
    }
    Ok(())
}

fn check_utf8(user: &[u8], collation: Option<u16>, server: Server) -> Result<(), UnreadableUser> {
    let is_one_of =
        |ranges: &[RangeInclusive<u16>], id: u16| ranges.iter().any(|range| range.contains(&id));
    let is_utf8 = collation.is_some_and(|id| match server {
        Server::MySql { .. } => is_one_of(UTF8, id) || is_one_of(UTF8_OF_MYSQL, id),
        Server::MariaDb { .. } => is_one_of(UTF8, id) || is_one_of(UTF8_OF_MARIADB, id),
        Server::Unknown => is_one_of(UTF8, id),
    });
    if !is_utf8 {
        return Err(UnreadableUser::OtherCharset);
    }
    let is_utf8mb3 = |text: &str| text.chars().all(|c| c <= '\u{ffff}' && c != char::from(DEL));
    match std::str::from_utf8(user) {
        Ok(text) if is_utf8mb3(text) => Ok(()),
        Ok(_) | Err(_) => Err(UnreadableUser::NotUtf8),
    }
}

const DEL: u8 = 0x7f;

/// The collations of swe7, MySQL's and MariaDB's; ids that a server does not know are its own
/// default.
const SWE7: [u16; 4] = [10, 82, 1_034, 1_106];

/// Collations of utf8mb3 and utf8mb4 that both servers know (`information_schema.collations`).
const UTF8: &[RangeInclusive<u16>] = &[33..=33, 45..=46, 83..=83, 192..=215, 223..=247];

/// Those that only MySQL knows; gaps are ids that it does not know yet.
const UTF8_OF_MYSQL: &[RangeInclusive<u16>] =
    &[76..=76, 255..=271, 273..=275, 277..=294, 296..=298, 300..=300, 303..=323];

/// Those that only MariaDB knows.
const UTF8_OF_MARIADB: &[RangeInclusive<u16>] = &[
    576..=578,
    608..=610,
    1_057..=1_057,
    1_069..=1_070,
    1_107..=1_107,
    1_216..=1_216,
    1_238..=1_238,
    1_248..=1_248,
    1_270..=1_270,
    2_048..=2_215,
    2_232..=2_247,
    2_304..=2_471,
    2_488..=2_503,
];

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: Server = Server::MySql { version: 90_704 };
    const MARIADB: Server = Server::MariaDb { version: 101_119 };
    const SERVERS: [Server; 3] = [MYSQL, MARIADB, Server::Unknown];
    const UTF8MB4: Option<u16> = Some(45);
    const LATIN1: Option<u16> = Some(8);

    fn at_login(
        user: &[u8],
        collation: Option<u16>,
        server: Server,
    ) -> Result<&[u8], UnreadableUser> {
        user_as_read(user, NamedIn::HandshakeResponse, collation, server)
    }

    #[test]
    fn one_pair_of_single_quotes_is_taken_off_at_the_login_and_nowhere_else() {
        let cases: [(&[u8], &[u8]); 8] = [
            (b"'gate'", b"gate"),
            (b"''gate''", b"'gate'"),
            (b"''", b""),
            (b"'", b"'"),
            (b"'gate", b"'gate"),
            (b"'gate' ", b"'gate' "),
            (b"\"gate\"", b"\"gate\""),
            (b"`gate`", b"`gate`"),
        ];
        for server in SERVERS {
            for (sent, read) in cases {
                assert_eq!(at_login(sent, UTF8MB4, server), Ok(read), "{}", sent.escape_ascii());
                let changed = user_as_read(sent, NamedIn::ChangeUser, UTF8MB4, server);
                assert_eq!(changed, Ok(sent), "{}", sent.escape_ascii());
            }
        }
    }

    #[test]
    fn what_a_server_cuts_is_not_read() {
        let long = [b'x'; 129];
        let len = |len: usize, server| at_login(&long[..len], UTF8MB4, server).map(<[u8]>::len);
        assert_eq!((len(96, MYSQL), len(97, MYSQL)), (Ok(96), Err(UnreadableUser::TooLong)));
        assert_eq!((len(128, MARIADB), len(129, MARIADB)), (Ok(128), Err(UnreadableUser::TooLong)));
        assert_eq!(len(97, Server::Unknown), Err(UnreadableUser::TooLong));
        let euros = "€".repeat(33);
        assert_eq!(at_login(euros.as_bytes(), UTF8MB4, MYSQL), Err(UnreadableUser::TooLong));
        assert!(at_login(euros.as_bytes(), UTF8MB4, MARIADB).is_ok());
    }

    #[test]
    fn bytes_that_are_no_utf8_are_not_read() {
        for server in SERVERS {
            for user in
                [&b"gate\xff"[..], b"g\xc3", b"\xed\xa0\x80", "😀".as_bytes(), b"\xc3\xb3\x7f"]
            {
                let read = at_login(user, UTF8MB4, server);
                assert_eq!(read, Err(UnreadableUser::NotUtf8), "{}", user.escape_ascii());
            }
            assert_eq!(at_login("bób".as_bytes(), UTF8MB4, server), Ok("bób".as_bytes()));
            assert_eq!(at_login(b"a\x7f", LATIN1, server), Err(UnreadableUser::NotUtf8));
        }
    }

    #[test]
    fn only_ascii_is_read_in_other_character_sets_and_in_unknown_ones() {
        for collation in [LATIN1, Some(28), Some(63), Some(0), Some(65_535), None] {
            for server in SERVERS {
                let read = |user| at_login(user, collation, server);
                assert_eq!(
                    read("bób".as_bytes()),
                    Err(UnreadableUser::OtherCharset),
                    "{collation:?}"
                );
                assert_eq!(read(b"bob-2_x.y"), Ok(&b"bob-2_x.y"[..]), "{collation:?}");
            }
        }
        for swe7 in [Some(10), Some(82), Some(1_034), Some(1_106), None] {
            for letter in b"@[\\]^`{|}~" {
                assert_eq!(at_login(&[*letter], swe7, MYSQL), Err(UnreadableUser::OtherCharset));
            }
        }
        assert_eq!(at_login(b"a@b", LATIN1, MYSQL), Ok(&b"a@b"[..]));
    }

    #[test]
    fn a_collation_that_only_one_server_knows_is_utf8_there_only() {
        let reads = |collation, server| at_login("ó".as_bytes(), Some(collation), server).is_ok();
        for (collation, by) in [(255, [true, false, false]), (2_304, [false, true, false])] {
            assert_eq!(SERVERS.map(|server| reads(collation, server)), by, "{collation}");
        }
    }
}
