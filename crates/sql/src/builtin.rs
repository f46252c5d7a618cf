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
/// Where the words of each first letter begin.
const LETTERS: [usize; 27] = letters();

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
    let mut buffer = [0_u8; NAME_MAX];
    let upper = buffer.get_mut(..word.len())?;
    for (to, from) in upper.iter_mut().zip(word) {
        *to = from.to_ascii_uppercase();
    }
    let upper = &*upper;
    let letter = usize::from(upper.first()?.wrapping_sub(b'A'));
    let (start, end) = (LETTERS.get(letter)?, LETTERS.get(letter.wrapping_add(1))?);
    let mut lines = NAMES.as_bytes().get(*start..*end)?;
    while !lines.is_empty() {
        let (before, rest) = lines.split_at_checked(lines.len() / 2)?;
        let begin = memchr::memrchr(b'\n', before).map_or(0, |at| at.wrapping_add(1));
        let len = memchr::memchr(b'\n', rest)?;
        let end = before.len().wrapping_add(len);
        let line = lines.get(begin..end)?;
        let blank = memchr::memchr(b' ', line)?;
        let (name, marks) = line.split_at_checked(blank)?;
        match upper.cmp(name) {
            std::cmp::Ordering::Equal => return Some(marks),
            std::cmp::Ordering::Less => lines = lines.get(..begin)?,
            std::cmp::Ordering::Greater => lines = lines.get(end.wrapping_add(1)..)?,
        }
    }
    None
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn letters() -> [usize; 27] {
    let bytes = NAMES.as_bytes();
    let mut table = [bytes.len(); 27];
    let (mut at, mut entry, mut letter) = (0, 0, b'A');
    while at < bytes.len() {
        while (at == 0 || bytes[at - 1] == b'\n') && entry < 26 && letter <= bytes[at] {
            table[entry] = at;
            entry += 1;
            letter += 1;
        }
        at += 1;
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
