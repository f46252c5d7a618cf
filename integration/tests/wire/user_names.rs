//! Which account a server takes a user's name for, and what Sluice reads: the servers are asked
//! directly, with names that a client library would not send, and an account without a name lets
//! everybody in.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use integration::raw::{Packet, RawConn, capability};
use integration::scenario::Shared;
use integration::server::Flavour;
use integration::topology::Topology;
use policy::identity::{NamedIn, user_as_read};
use sql::Server;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

const SERVERS: [(&Shared, Server); 2] =
    [(&MYSQL, Server::MySql { version: 90_704 }), (&MARIADB, Server::MariaDb { version: 101_119 })];

const UTF8MB4: u16 = 45;
const LATIN1: u16 = 8;
const GBK: u16 = 28;
const SWE7: u16 = 10;
const UTF8MB4_0900: u16 = 255;
const NOT_A_COLLATION: u16 = 252;

#[tokio::test]
async fn what_is_read_is_who_is_logged_in() {
    for (shared, kind) in SERVERS {
        let servers = with_accounts(shared).await;
        for collation in [UTF8MB4, LATIN1, GBK, SWE7, UTF8MB4_0900, NOT_A_COLLATION] {
            for sent in names() {
                compare(servers, kind, &sent, collation).await;
            }
        }
    }
}

async fn compare(servers: &Topology, kind: Server, sent: &[u8], collation: u16) {
    for named_in in [NamedIn::HandshakeResponse, NamedIn::ChangeUser] {
        // What is refused may be anybody's.
        let Ok(read) = user_as_read(sent, named_in, Some(collation), kind) else { continue };
        let (user, _) = logged_in(servers, sent, named_in, collation).await.unwrap();
        let what = format!("{kind:?} {named_in:?} {collation} {}", sent.escape_ascii());
        assert_eq!(user.escape_ascii().to_string(), read.escape_ascii().to_string(), "{what}");
    }
}

#[tokio::test]
async fn a_name_that_is_refused_may_be_that_of_an_account() {
    let mysql = with_accounts(&MYSQL).await;
    let euros = "€".repeat(32);
    let cut = format!("{euros}x");
    for (sent, account) in [(&b"gate\xff"[..], "gate"), (cut.as_bytes(), &euros)] {
        for named_in in [NamedIn::HandshakeResponse, NamedIn::ChangeUser] {
            let (_, current) = logged_in(mysql, sent, named_in, UTF8MB4).await.unwrap();
            // MySQL shows a byte less of an account whose name is as long as can be.
            let account: Vec<u8> = account.bytes().take(95).collect();
            assert_eq!(current, account, "{}", sent.escape_ascii());
            assert!(
                user_as_read(sent, named_in, Some(UTF8MB4), Server::MySql { version: 0 }).is_err()
            );
        }
    }
}

#[tokio::test]
async fn accounts_are_compared_with_the_name_byte_by_byte() {
    for (shared, kind) in SERVERS {
        let servers = with_accounts(shared).await;
        let cases: [(&[u8], &[u8]); 8] = [
            (b"gate", b"gate"),
            (b"'gate'", b"gate"),
            (b"GATE", b""),
            (b"gate ", b""),
            (b" gate", b""),
            ("gâte".as_bytes(), b""),
            (b"\"gate\"", b""),
            (b"`gate`", b""),
        ];
        for (sent, account) in cases {
            let login = logged_in(servers, sent, NamedIn::HandshakeResponse, UTF8MB4).await;
            let (_, current) = login.unwrap();
            assert_eq!(current, account, "{kind:?} {}", sent.escape_ascii());
        }
    }
}

/// Names that are read otherwise than they are sent, and their like.
fn names() -> Vec<Vec<u8>> {
    let ascii = |range: std::ops::Range<u8>| range.filter(|byte| *byte != b'@').collect();
    let mut names: Vec<Vec<u8>> = vec![ascii(1..64), ascii(65..127)];
    for name in [
        "gate",
        "'gate'",
        "''gate''",
        "''",
        "'",
        "'gate",
        "gate'",
        "'gate' ",
        "' gate '",
        "\"gate\"",
        "`gate`",
        "gate ",
        " gate",
        "GATE",
        "gâte",
        "'gâte'",
        "€",
        "😀",
        "a\\'",
        "gate\u{7f}",
    ] {
        names.push(name.into());
    }
    for name in
        [&b"gate\xff"[..], b"g\xe2te", b"gate\xc3", b"'gate\xe0'", b"\xed\xa0\x80", b"\x81'"]
    {
        names.push(name.into());
    }
    for len in [31, 32, 33, 96, 97, 127, 128, 129, 200, 384, 385] {
        names.push(vec![b'x'; len]);
        names.push("ó".repeat(len).into());
        names.push("€".repeat(len).into());
        names.push([b"'", vec![b'x'; len].as_slice(), b"'"].concat());
    }
    names
}

/// Servers on which everybody may log in: with the account of the name, or with that without a
/// name.
async fn with_accounts(shared: &Shared) -> &Topology {
    let servers = shared.get().await.unwrap();
    let euros = format!("CREATE USER IF NOT EXISTS '{}'@'%'", "€".repeat(32));
    let accounts =
        ["CREATE USER IF NOT EXISTS ''@'%'", "CREATE USER IF NOT EXISTS gate@'%'", &euros];
    servers.primary.run_sql(&accounts).await.unwrap();
    servers
}

/// `USER()` and `CURRENT_USER()`, without their hosts, of a login without a password.
async fn logged_in(
    servers: &Topology,
    user: &[u8],
    named_in: NamedIn,
    collation: u16,
) -> Result<(Vec<u8>, Vec<u8>), Packet> {
    let mut conn = RawConn::connect(servers.primary.addr()).await.unwrap();
    conn.read_packet().await.unwrap();
    let plugin: &[u8] = match servers.primary.flavour() {
        Flavour::MySql => b"caching_sha2_password\0",
        Flavour::MariaDb => b"mysql_native_password\0",
    };
    let login = |user: &[u8], collation: u16| {
        let capabilities = capability::LONG_PASSWORD
            | capability::PROTOCOL_41
            | capability::SECURE_CONNECTION
            | capability::PLUGIN_AUTH;
        let [collation, _] = collation.to_le_bytes();
        let head = [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, collation], &[0; 23]].concat();
        [&head, user, b"\0\0", plugin].concat()
    };
    match named_in {
        NamedIn::HandshakeResponse => {
            conn.send_payload(1, &login(user, collation)).await.unwrap();
        }
        NamedIn::ChangeUser => {
            conn.send_payload(1, &login(b"gate", UTF8MB4)).await.unwrap();
            finish(&mut conn).await?;
            let change = [&[0x11], user, b"\0\0\0", &collation.to_le_bytes(), plugin].concat();
            conn.send_command(&change).await.unwrap();
        }
    }
    finish(&mut conn).await?;
    let answer = conn.query("SELECT HEX(USER()), HEX(CURRENT_USER())").await.unwrap();
    let rows = answer.text_rows().unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let names: Vec<Vec<u8>> = row.iter().flatten().map(|name| without_host(&unhex(name))).collect();
    let [user, current] = <[Vec<u8>; 2]>::try_from(names).unwrap();
    Ok((user, current))
}

/// Goes through an exchange in which nothing is asked for but an empty password.
async fn finish(conn: &mut RawConn) -> Result<(), Packet> {
    loop {
        let packet = conn.read_packet().await.unwrap();
        match packet.first() {
            Some(0) => return Ok(()),
            Some(0xfe) => conn.send_payload(packet.seq.wrapping_add(1), &[]).await.unwrap(),
            Some(0x01) => {}
            _ => return Err(packet),
        }
    }
}

fn unhex(digits: &[u8]) -> Vec<u8> {
    let digit =
        |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok()).unwrap();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | digit(d))).collect()
}

fn without_host(account: &[u8]) -> Vec<u8> {
    let at = account.iter().rposition(|byte| *byte == b'@').unwrap();
    account.iter().take(at).copied().collect()
}
