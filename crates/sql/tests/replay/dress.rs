//! Values dressed as drivers dress them, and what there is to choose a mode from.

use sql::{Charset, LexMode, Server, Setting};

pub(crate) const CHARSETS: [Charset; 10] = [
    Charset::Plain,
    Charset::SingleByte,
    Charset::Latin,
    Charset::Dos,
    Charset::Swe7,
    Charset::Big5,
    Charset::Cp932,
    Charset::Gbk,
    Charset::Sjis,
    Charset::Gb18030,
];

pub(crate) const SERVERS: [Server; 4] = [
    Server::MySql { version: 90_704 },
    Server::MySql { version: 80_036 },
    Server::MariaDb { version: 101_119 },
    Server::Unknown,
];

/// `value` as a driver escapes it for `mode`, between `quote`s. Drivers step over characters, as
/// the server does.
pub(crate) fn escape(value: &[u8], quote: u8, mode: LexMode) -> Vec<u8> {
    let mut out = vec![quote];
    let mut rest = value;
    while let Some((&byte, tail)) = rest.split_first() {
        let len = wide(rest, mode.charset);
        if len > 1 {
            out.extend(rest.iter().take(len));
            rest = rest.get(len..).unwrap_or_default();
            continue;
        }
        if byte == quote {
            out.push(quote);
        } else if byte == b'\\' && mode.no_backslash_escapes == Setting::Off {
            out.push(b'\\');
        }
        out.push(byte);
        rest = tail;
    }
    out.push(quote);
    out
}

fn wide(rest: &[u8], charset: Charset) -> usize {
    let pair =
        |lead: std::ops::RangeInclusive<u8>, trails: &[std::ops::RangeInclusive<u8>]| match rest {
            [first, second, ..]
                if lead.contains(first) && trails.iter().any(|trail| trail.contains(second)) =>
            {
                2
            }
            _ => 1,
        };
    match charset {
        Charset::Plain
        | Charset::Euc
        | Charset::SingleByte
        | Charset::Latin
        | Charset::Armscii8
        | Charset::Dos
        | Charset::Swe7
        | Charset::Unknown => 1,
        Charset::Big5 => pair(0xA1..=0xF9, &[0x40..=0x7E, 0xA1..=0xFE]),
        Charset::Gbk => pair(0x81..=0xFE, &[0x40..=0x7E, 0x80..=0xFE]),
        Charset::Gb18030 => match rest {
            [0x81..=0xFE, 0x30..=0x39, 0x81..=0xFE, 0x30..=0x39, ..] => 4,
            _ => pair(0x81..=0xFE, &[0x40..=0x7E, 0x80..=0xFE]),
        },
        Charset::Cp932 | Charset::Sjis => pair(0x81..=0x9F, &[0x40..=0x7E, 0x80..=0xFC])
            .max(pair(0xE0..=0xFC, &[0x40..=0x7E, 0x80..=0xFC])),
    }
}

/// `value` without lead bytes that have no trail. Behind such a byte the closing backtick would be
/// the second half of a character, to the server as well.
pub(crate) fn whole(value: &[u8], charset: Charset) -> Vec<u8> {
    let single_byte = [
        Charset::Plain,
        Charset::Euc,
        Charset::SingleByte,
        Charset::Latin,
        Charset::Armscii8,
        Charset::Dos,
    ]
    .contains(&charset)
        || charset == Charset::Swe7;
    let mut out = Vec::new();
    let mut rest = value;
    while let Some(&byte) = rest.first() {
        let (character, tail) = rest.split_at(wide(rest, charset));
        if character.len() > 1 || byte < 0x80 || single_byte {
            out.extend_from_slice(character);
        }
        rest = tail;
    }
    out
}
