//! The words that may stand before a bracket without calling a stored function.
//!
//! `builtin/names.txt` has a line for each, sorted: the word, and in whose grammar it is one, `y`
//! for MySQL, `a` for MariaDB; a capital letter if it is one only where the bracket follows at
//! once, or with IGNORE_SPACE. They were found by asking: of every word in the servers' binaries,
//! keyword tables and help tables, `SELECT word()` was sent to MySQL 9.7.4 and MariaDB 10.11.19,
//! with none to three arguments, and the words that are not here are those for which one of these
//! looked for a stored function (errors 1305 and 1630). Functions that are loaded, also those that
//! MySQL loads at its start, are not here. Other releases are read by the same list.

use crate::mode::Server;

const NAMES: &str = include_str!("builtin/names.txt");

/// Longest word of the list.
const NAME_MAX: usize = 40;
/// Places of the table: a power of two, and three for each line.
const PLACES: usize = 4096;
/// Where the lines begin, each at the first free place from the one that its word gives. A line
/// that begins the text is at 1, like all others one further than it is: 0 is a free place.
static LINES: [u16; PLACES] = places();

/// How a bracket stands behind a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    /// At once.
    Adjacent,
    /// Behind white space or a comment.
    Apart,
}

/// Whether the unquoted, unqualified `word` before a bracket means no stored function to `server`.
/// For an unknown server both must have it so.
pub(crate) fn is_builtin(word: &[u8], bracket: Bracket, server: Server) -> bool {
    let Some(marks) = marks_of(word) else { return false };
    let has = |mark: u8| {
        marks.contains(&mark)
            || (bracket == Bracket::Adjacent && marks.contains(&mark.to_ascii_uppercase()))
    };
    match server {
        Server::MySql { .. } => has(b'y'),
        Server::MariaDb { .. } => has(b'a'),
        Server::Unknown => has(b'y') && has(b'a'),
    }
}

/// What stands behind `word` in its line.
fn marks_of(word: &[u8]) -> Option<&'static [u8]> {
    if word.len() > NAME_MAX {
        return None;
    }
    let mut place = place_of(word, 0, word.len());
    loop {
        let start = usize::from(*LINES.get(place)?).checked_sub(1)?;
        let line = NAMES.as_bytes().get(start..)?;
        let (name, rest) = line.split_at_checked(word.len())?;
        if name.eq_ignore_ascii_case(word) && rest.first() == Some(&b' ') {
            let len = memchr::memchr(b'\n', rest)?;
            return rest.get(1..len);
        }
        place = place.wrapping_add(1) % PLACES;
    }
}

/// The place that the bytes from `start` to `end` give, in any case.
#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "const, and the caller's bounds are those of the text"
)]
const fn place_of(text: &[u8], start: usize, end: usize) -> usize {
    let mut hash = 0_usize;
    let mut at = start;
    while at < end {
        hash = hash.wrapping_mul(31).wrapping_add((text[at] & 0xDF) as usize);
        at = at.wrapping_add(1);
    }
    (hash ^ (hash >> 12)) % PLACES
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn places() -> [u16; PLACES] {
    let bytes = NAMES.as_bytes();
    assert!(bytes.len() < u16::MAX as usize);
    let mut table = [0; PLACES];
    let mut start = 0;
    while start < bytes.len() {
        let mut end = start;
        while bytes[end] != b' ' {
            end += 1;
        }
        let mut place = place_of(bytes, start, end);
        while table[place] != 0 {
            place = (place + 1) % PLACES;
        }
        table[place] = start as u16 + 1;
        while bytes[end] != b'\n' {
            end += 1;
        }
        start = end + 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: Server = Server::MySql { version: 90_704 };
    const MARIADB: Server = Server::MariaDb { version: 101_119 };

    #[test]
    fn every_line_is_found_in_any_case_and_nothing_else_is() {
        let mut before = "";
        for line in NAMES.lines() {
            let (name, marks) = line.split_once(' ').expect("a word and its marks");
            assert!(before < name, "{name} is not in order");
            before = name;
            assert!(marks.bytes().all(|mark| b"yaYA".contains(&mark)), "{line}");
            assert_eq!(marks_of(name.as_bytes()).map(<[u8]>::trim_ascii), Some(marks.as_bytes()));
            assert!(marks_of(name.to_ascii_lowercase().as_bytes()).is_some(), "{name}");
            assert!(marks_of(format!("{name}_X0").as_bytes()).is_none(), "{name}");
        }
        for name in ["", "f", "A", "Z", "_x", "ZZZ", "\u{e9}", "1", "COUN", "COUNT Y", "{", "~"] {
            assert!(marks_of(name.as_bytes()).is_none(), "{name}");
        }
        assert!(marks_of(&[b'A'; 100]).is_none());
    }

    #[test]
    fn the_servers_differ_where_they_were_found_to() {
        for (word, bracket, mysql, mariadb) in [
            ("concat", Bracket::Apart, true, true),
            ("count", Bracket::Adjacent, true, true),
            ("count", Bracket::Apart, false, false),
            ("rank", Bracket::Apart, true, false),
            ("nextval", Bracket::Adjacent, false, true),
            ("json_table", Bracket::Adjacent, true, false),
            ("in", Bracket::Apart, true, true),
            ("asynchronous_connection_failover_add_source", Bracket::Adjacent, false, false),
            ("my_function", Bracket::Adjacent, false, false),
        ] {
            assert_eq!(is_builtin(word.as_bytes(), bracket, MYSQL), mysql, "{word}");
            assert_eq!(is_builtin(word.as_bytes(), bracket, MARIADB), mariadb, "{word}");
            let both = is_builtin(word.as_bytes(), bracket, Server::Unknown);
            assert_eq!(both, mysql && mariadb, "{word}");
        }
    }
}
