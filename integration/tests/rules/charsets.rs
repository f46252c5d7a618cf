//! Every byte in every character set that a client can have: where both servers and Sluice take a
//! text, they read the same.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::fmt::Write as _;

use integration::raw::{Login, RawConn};
use integration::server::Flavour;
use integration::topology::{Topology, TopologyOptions};
use sql::{Charset, Class, LexMode, Scratch, Server, Setting, Whole, describe, digest};

/// Texts around a byte that servers answer with a row of as many columns as they read. The first is
/// taken only if the byte separates.
const TEXTS: [[&[u8]; 2]; 14] = [
    [b"SELECT", b"1"],
    [b"SELECT 1", b",2"],
    [b"SELECT 1 AS a", b"c,2"],
    [b"SELECT 1 AS ", b",2"],
    [b"SELECT 1 AS a", b"FROM DUAL"],
    [b"SELECT 1 WHERE 1 IN", b"(1,2)"],
    [b"SELECT 1 --", b"+1\n,2"],
    [b"SELECT '", b"',2 -- '"],
    [b"SELECT '", b"\\',2 -- '"],
    [b"SELECT 1 AS `", b"`,2 AS `c`"],
    [b"SELECT 1 AS `", b"``,2 AS `,3 AS `c`"],
    [b"SELECT 1 /*", b"*/,2 /* */"],
    [b"SELECT @a", b"b,2"],
    [b"SELECT N", b"'a',2"],
];

/// What is prepared is converted, perhaps by these settings too.
const CONNECTIONS: [&str; 2] = ["", ", collation_connection = utf8mb4_general_ci"];

/// The columns with which the server answers. `None`: it does not take the text.
async fn columns(conn: &mut RawConn, text: &[u8]) -> Option<usize> {
    let answer = conn.query(text).await.unwrap();
    let columns = *answer.packets.first()?.payload.first()?;
    (columns != 0xff).then_some(usize::from(columns))
}

/// The columns that Sluice reads, by the commas of the digest. `None`: it knows that it cannot read
/// the text.
fn columns_read(text: &[u8], mode: LexMode) -> Option<(usize, Vec<u8>)> {
    if describe(text, mode, Whole::Yes, &mut Scratch::default()).class == Class::Unknown {
        return None;
    }
    let mut written = Vec::new();
    digest(text, mode, &mut written);
    let (mut depth, mut columns, mut in_name) = (0_usize, 1, false);
    for byte in &written {
        match byte {
            b'`' => in_name = !in_name,
            b'(' if !in_name => depth += 1,
            b')' if !in_name => depth = depth.saturating_sub(1),
            b',' if !in_name && depth == 0 => columns += 1,
            _ => {}
        }
    }
    Some((columns, written))
}

/// The text that the server prepares, by the literal of a PREPARE, as far as Sluice knows it.
fn prepared(text: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let mut scratch = Scratch::default();
    let statement = describe(text, mode, Whole::Yes, &mut scratch);
    let literal = statement.effects.prepare?.text.filter(sql::SqlText::is_prepared_as_it_stands)?;
    let mut inner = Vec::new();
    literal.unescape_into(&mut inner);
    Some(inner)
}

/// `text` in a literal.
fn quoted(text: &[u8]) -> Vec<u8> {
    let escaped = text.iter().flat_map(|byte| match byte {
        b'\'' | b'\\' => vec![b'\\', *byte],
        byte => vec![*byte],
    });
    escaped.collect()
}

/// A line for each text that both take and read differently.
async fn differences(conn: &mut RawConn, name: &str, mode: LexMode) -> String {
    let mut found = String::new();
    let mut compare = |text: &[u8], theirs: Option<usize>, ours: Option<(usize, Vec<u8>)>| {
        let (Some(theirs), Some((ours, written))) = (theirs, ours) else { return };
        let shown = (text.escape_ascii(), written.escape_ascii());
        // The byte is white space then, which a digest leaves out.
        let is_left_out = match text {
            [b'S', b'E', b'L', b'E', b'C', b'T', 0x80..=0xFF, b'1'] => written == b"SELECT ?",
            _ => true,
        };
        if theirs != ours || !is_left_out {
            writeln!(found, "{name}: {} has {theirs} columns, not {}", shown.0, shown.1).unwrap();
        }
    };
    for connection in CONNECTIONS {
        let set = format!("SET character_set_client = {name}{connection}");
        conn.query(set).await.unwrap().accepted().unwrap();
        for (byte, [head, tail]) in (0..=255_u8).flat_map(|byte| TEXTS.map(|text| (byte, text))) {
            let text = [head, &[byte], tail].concat();
            if connection.is_empty() {
                compare(&text, columns(conn, &text).await, columns_read(&text, mode));
            }
            // What is ASCII is prepared as it is anywhere.
            let prepare = [b"PREPARE p FROM '", quoted(&text).as_slice(), b"'"].concat();
            if byte >= 0x80
                && let Some(inner) = prepared(&prepare, mode)
                && conn.query(&prepare).await.unwrap().err().is_none()
            {
                compare(&prepare, columns(conn, b"EXECUTE p").await, columns_read(&inner, mode));
            }
        }
    }
    found
}

async fn read_alike(flavour: Flavour, server: Server) {
    let servers = Topology::start(TopologyOptions::new(flavour, 0)).await.unwrap();
    let mut conn = RawConn::open(servers.primary.addr(), &Login::new("admin")).await.unwrap();
    let names = "SELECT character_set_name FROM information_schema.character_sets";
    let (mut tried, mut found) = (0, String::new());
    for name in servers.primary.query::<String>(names).await.unwrap() {
        if conn.query(format!("SET NAMES {name}")).await.unwrap().err().is_some() {
            continue;
        }
        tried += 1;
        let charset = Charset::from_name(name.as_bytes());
        assert_ne!(charset, Charset::Unknown, "{name}");
        let (no_backslash_escapes, ansi_quotes) = (Setting::Off, Setting::Off);
        let mode = LexMode { no_backslash_escapes, ansi_quotes, charset, server };
        found += &differences(&mut conn, &name, mode).await;
    }
    assert!(found.is_empty(), "{found}");
    assert!(tried > 30, "{tried} character sets");
}

#[tokio::test]
async fn mysql_and_sluice_read_every_byte_alike() {
    read_alike(Flavour::MySql, Server::MySql { version: 90_704 }).await;
}

#[tokio::test]
async fn mariadb_and_sluice_read_every_byte_alike() {
    read_alike(Flavour::MariaDb, Server::MariaDb { version: 101_119 }).await;
}
