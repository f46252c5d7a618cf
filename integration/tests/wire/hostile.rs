//! Bytes that no MySQL client sends, before and after the login: no panic, no hang, no growth, and the
//! sessions of others do not notice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;
use std::time::Duration;

use integration::ports::loopback;
use integration::raw::{Login, MAX_PAYLOAD, RawConn, capability, framed};
use integration::scenario::{Chance, Neighbour, Shared, Siege};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn bytes_before_the_login_that_no_client_sends_harm_nobody() {
    let config = Config::new(MYSQL.get().await.unwrap()).unwrap();
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let siege = Siege::begin(&sluice).await.unwrap();
    let addr = sluice.listen_addr();
    let mut chance = Chance::new(1);
    let response = a_handshake_response(addr).await;
    for _round in 0..ROUNDS {
        // A response cut off anywhere, with any byte wrong, and with any sequence id.
        for cut in 0..response.len() {
            attack(addr, &[response.get(..cut).unwrap()], Then::Close).await;
        }
        for _ in 0..100 {
            let mut broken = response.clone();
            let at = chance.index(broken.len());
            broken.insert(at, chance.byte());
            let at = chance.index(broken.len());
            if let Some(byte) = broken.get_mut(at) {
                *byte = chance.byte();
            }
            attack(addr, &[&broken], Then::Wait).await;
        }
        for len in [0, 1, 3, 4, 5, 36, 100, 5_000, 400_000] {
            let bytes = chance.bytes(len);
            attack(addr, &[&bytes], Then::Close).await;
            attack(addr, &[&framed(1, &bytes)], Then::Wait).await;
            attack(addr, &[&framed(0, &bytes)], Then::Wait).await;
            attack(addr, &[&framed(chance.byte(), &bytes)], Then::Wait).await;
        }
        for text in
            [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\x16\x03\x01\x02\x00\x01", b"\0\0\0\0"]
        {
            attack(addr, &[text], Then::Wait).await;
        }
        // Commands before the login, and an announcement of 16 MiB that never comes.
        attack(addr, &[&framed(0, b"\x03SELECT 1")], Then::Wait).await;
        attack(addr, &[b"\xff\xff\xff\x01", &chance.bytes(100)], Then::Wait).await;
        attack(addr, &[&vec![0xff; 300_000]], Then::Wait).await;
    }
    undisturbed(siege.end(&mut sluice).await.unwrap());
}

#[tokio::test]
async fn who_answers_the_greeting_with_no_login_is_told_as_directly() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        // The last two are logins, but for their sequence id.
        let login = a_handshake_response(servers.primary.addr()).await;
        let login = login.get(HEADER_LEN..).unwrap();
        for (sequence, payload) in
            [(1, &[][..]), (1, &[0, 2, 0, 0, 0, 0, 0, 1, 45, 0]), (0, login), (2, login)]
        {
            let mut told = Vec::new();
            for addr in [servers.primary.addr(), sluice.listen_addr()] {
                let mut conn = RawConn::connect(addr).await.unwrap();
                conn.read_packet().await.unwrap();
                conn.send_bytes(&framed(sequence, payload)).await.unwrap();
                let answer = conn.read_packet().await.unwrap();
                let errno = answer.err().map(|(errno, _)| errno);
                told.push((answer.seq, errno, answer.payload.get(..22).map(<[u8]>::to_vec)));
            }
            assert_eq!(told[1], told[0], "{sequence} {payload:?}");
        }
    }
}

#[tokio::test]
async fn a_change_of_user_that_is_cut_short_is_answered_and_the_session_goes_on() {
    let config = Config::new(MYSQL.get().await.unwrap()).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("app")).await.unwrap();
    for payload in [&b"\x11"[..], b"\x11app"] {
        conn.send_bytes(&framed(0, payload)).await.unwrap();
        let answer = conn.read_packet().await.unwrap();
        assert_eq!((answer.seq, answer.err().map(|(errno, _)| errno)), (1, Some(1835)));
    }
    conn.send_bytes(&framed(0, b"\x0e")).await.unwrap();
    assert_eq!(conn.read_packet().await.unwrap().payload.first(), Some(&0));
}

#[tokio::test]
async fn bytes_after_the_login_that_no_client_sends_harm_nobody_on_mysql() {
    besiege_after_login(MYSQL.get().await.unwrap()).await;
}

#[tokio::test]
async fn bytes_after_the_login_that_no_client_sends_harm_nobody_on_mariadb() {
    besiege_after_login(MARIADB.get().await.unwrap()).await;
}

async fn besiege_after_login(servers: &Topology) {
    let mut sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let siege = Siege::begin(&sluice).await.unwrap();
    let addr = sluice.listen_addr();
    let mut chance = Chance::new(2);
    for command in 0..=u8::MAX {
        for len in [0, 40] {
            let mut payload = vec![command];
            payload.extend_from_slice(&chance.bytes(len));
            after_login(addr, 0, &[&framed(0, &payload)]).await;
        }
    }
    let attributes = capability::QUERY_ATTRIBUTES | capability::OPTIONAL_METADATA;
    for capabilities in [0, attributes] {
        for len in [1, 3, 10, 1_000, 70_000] {
            let bytes = chance.bytes(len);
            after_login(addr, capabilities, &[&bytes]).await;
            let execute = [&[0x17, 1, 0, 0, 0, 0xff, 1, 0, 0, 0], bytes.as_slice()].concat();
            after_login(addr, capabilities, &[&framed(0, &execute)]).await;
            let query = [&[0x03, 0xfe], bytes.as_slice()].concat();
            after_login(addr, capabilities, &[&framed(0, &query)]).await;
            let change_user = [&[0x11], bytes.as_slice()].concat();
            after_login(addr, capabilities, &[&framed(0, &change_user)]).await;
            let bulk = [&[0xfa, 1, 0, 0, 0], bytes.as_slice()].concat();
            after_login(addr, capabilities, &[&framed(0, &bulk)]).await;
        }
    }
    // Packets out of order, and cut off in the middle of their header, of their bytes, of their sequel.
    let query = framed(0, b"\x03SELECT 1");
    for sequence in [1, 2, 77, 255] {
        after_login(addr, 0, &[&framed(sequence, b"\x03SELECT 1"), &query]).await;
    }
    for cut in 0..query.len() {
        after_login(addr, 0, &[query.get(..cut).unwrap()]).await;
    }
    let long = vec![b' '; MAX_PAYLOAD];
    let header = [0xff, 0xff, 0xff];
    for sequel in [&[][..], &[0, 0], &[9, 0, 0, 5, b'x'], &[0xff, 0xff, 0xff, 0]] {
        after_login(addr, 0, &[&header, &[0, 0x03], long.get(1..).unwrap(), sequel]).await;
    }
    // Many statements at once, and nobody who reads their answers.
    let many: Vec<u8> = (0..20_000).flat_map(|_| query.clone()).collect();
    after_login(addr, 0, &[&many]).await;
    // Texts that end in the middle of something.
    for text in [
        "SELECT '",
        "SELECT \"",
        "/*",
        "/*!",
        "/*!99999 ",
        "SELECT 1 /*",
        "SELECT `",
        "--",
        "(",
        "BEGIN; (",
    ] {
        after_login(addr, 0, &[&framed(0, format!("\x03{text}").as_bytes())]).await;
    }
    let deep = format!("\x03{}1", "(".repeat(1 << 20));
    after_login(addr, 0, &[&framed(0, deep.as_bytes())]).await;
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..5)
            .flat_map(|_| {
                let len = chance.index(60);
                framed(0, &[&[chance.byte() % 0x21], chance.bytes(len).as_slice()].concat())
            })
            .collect();
        after_login(addr, 0, &[&bytes]).await;
    }
    undisturbed(siege.end(&mut sluice).await.unwrap());
}

fn undisturbed(neighbour: Neighbour) {
    assert!(neighbour.slowest < Duration::from_secs(3), "{neighbour:?}");
    assert!(neighbour.statements > 20, "{neighbour:?}");
}

/// What an attacker does behind its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Close,
    /// Reads what comes, for a moment.
    Wait,
}

/// Connects, sends, leaves.
async fn attack(addr: SocketAddr, parts: &[&[u8]], then: Then) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let exchange = async {
        if then == Then::Wait {
            let mut greeting = [0; 1_000];
            _ = stream.read(&mut greeting).await?;
        }
        for part in parts {
            stream.write_all(part).await?;
        }
        if then == Then::Wait {
            let mut answer = vec![0; 10_000];
            tokio::time::timeout(MOMENT, stream.read(&mut answer)).await.ok();
        }
        Ok::<(), std::io::Error>(())
    };
    // It may be closed at any point. Only it must not hang.
    let ended = tokio::time::timeout(SOON, exchange).await;
    assert!(ended.is_ok(), "an attacker hangs: {parts:?}");
}

/// Logs in, sends, reads for a moment and leaves.
async fn after_login(addr: SocketAddr, capabilities: u32, parts: &[&[u8]]) {
    let login = Login::new("app").with(capabilities);
    let mut conn = RawConn::open(addr, &login).await.unwrap();
    let exchange = async {
        for part in parts {
            conn.stream().write_all(part).await?;
        }
        let mut answer = vec![0; 10_000];
        tokio::time::timeout(MOMENT, conn.stream().read(&mut answer)).await.ok();
        Ok::<(), std::io::Error>(())
    };
    // A server that does not read may make an attacker wait, for as long as it stays.
    tokio::time::timeout(PATIENCE, exchange).await.ok();
}

/// The bytes of a good handshake response, as sent to somebody who will not like its scramble.
async fn a_handshake_response(addr: SocketAddr) -> Vec<u8> {
    let greeting = a_greeting(addr).await;
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let to = listener.local_addr().unwrap();
    let client = tokio::spawn(async move {
        let login = Login::new("app").attribute("program_name", "attacker");
        drop(RawConn::open(to, &login).await);
    });
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(&greeting).await.unwrap();
    let mut response = vec![0; 4_096];
    let len = stream.read(&mut response).await.unwrap();
    response.truncate(len);
    drop(stream);
    client.await.unwrap();
    response
}

/// The bytes of a server's greeting.
async fn a_greeting(addr: SocketAddr) -> Vec<u8> {
    let mut conn = RawConn::connect(addr).await.unwrap();
    let packet = conn.read_packet().await.unwrap();
    framed(packet.seq, &packet.payload)
}

/// What a packet has in front of its payload.
const HEADER_LEN: usize = 4;
const ROUNDS: u32 = 3;
/// Long enough that an answer which comes at once is there.
const MOMENT: Duration = Duration::from_millis(15);
const PATIENCE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(15);
