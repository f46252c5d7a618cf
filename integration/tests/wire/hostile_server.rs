//! Bytes that no MySQL server sends, to clients and to probes: no panic, no hang, no growth, and the
//! sessions of others do not notice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::error::Result;
use integration::ports::loopback;
use integration::raw::{Login, Param, RawConn, framed};
use integration::scenario::{Chance, Shared, Siege, wait_for_signal};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

mod unasked;

static MYSQL: Shared = Shared::new(Flavour::MySql);

#[tokio::test]
async fn a_server_that_speaks_nonsense_harms_only_its_own_clients() {
    let servers = MYSQL.get().await.unwrap();
    let hostile = hostile_server(servers.primary.addr(), u32::MAX).await;
    let (main, other) = (Config::new(servers).unwrap(), Config::new(servers).unwrap());
    let cluster = format!(
        "  other:\n    listen: \"{}\"\n    primary: \"{hostile}\"\nidentity:\n",
        other.listen
    );
    let yaml = main.render().replacen("identity:\n", &cluster, 1);
    let mut sluice = SluiceProcess::spawn(&yaml, main.listen, main.admin, &[]).unwrap();
    serves(&mut sluice).await;
    let siege = Siege::begin(&sluice).await.unwrap();
    for _ in 0..3 {
        let meetings: Vec<_> = (0..MANNERS).map(|_| tokio::spawn(meet(other.listen))).collect();
        for meeting in meetings {
            // Nothing that it may end in is wrong, but for not ending.
            let ended = tokio::time::timeout(SOON, meeting).await;
            assert!(ended.is_ok(), "a client hangs");
        }
    }
    let neighbour = siege.end(&mut sluice).await.unwrap();
    assert!(neighbour.slowest < Duration::from_secs(3), "{neighbour:?}");
    assert!(neighbour.statements > 20, "{neighbour:?}");
}

#[tokio::test]
async fn probes_go_on_after_a_server_has_spoken_nonsense() {
    let servers = MYSQL.get().await.unwrap();
    servers
        .primary
        .run_sql(&["CREATE TABLE sluice.h (v INT)", "INSERT INTO sluice.h VALUES (1)"])
        .await
        .unwrap();
    // Among them the probes meet each manner twice; then the server is an ordinary one.
    let changing = hostile_server(servers.primary.addr(), 2 * MANNERS).await;
    let config = Config::in_front_of(changing, vec![changing])
        .unwrap()
        .signals("lag: { threshold: 1s }\nh: { query: \"SELECT v FROM sluice.h\", threshold: 50 }");
    let sluice = SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    let started = Instant::now();
    while wait_for_signal(&sluice, "h", 1.0).await.is_err() {
        assert!(started.elapsed() < PROBES_RETURN, "the probe of a query is gone");
    }
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
}

/// At their `max_connections`, and to the address of a proxy that they have blocked, servers say an error in
/// place of their greeting.
#[tokio::test]
async fn what_a_server_says_in_place_of_its_greeting_is_in_the_log() {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let config = Config::in_front_of(listener.local_addr().unwrap(), Vec::new()).unwrap();
    let sluice = SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    let said = framed(0, b"\xff\x69\x04Host '10.0.0.9' is blocked\nbecause");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(&said).await);
        }
    });
    let logged = r#"error="error 1129: Host \'10.0.0.9\' is blocked\nbecause""#;
    let started = Instant::now();
    while !sluice.log().unwrap().contains(logged) {
        assert!(started.elapsed() < SOON, "{}", sluice.log().unwrap());
        drop(RawConn::open(config.listen, &Login::new("web")).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(sluice.log().unwrap().contains(r#"kind="greeting""#));
}

/// A client of the hostile server.
async fn meet(addr: SocketAddr) -> Result<()> {
    let mut conn = RawConn::connect(addr).await?;
    conn.set_read_limit(PATIENCE);
    conn.log_in(&Login::new("web")).await?;
    for _ in 0..3 {
        conn.query("SELECT 1").await?;
        let statement = conn.prepare("SELECT ?").await?;
        conn.execute(&statement, &[Param::int(1)]).await?;
    }
    Ok(())
}

/// Waits until a neighbour could log in: such a file is never ready as a whole.
async fn serves(sluice: &mut SluiceProcess) {
    let started = Instant::now();
    while RawConn::open(sluice.listen_addr(), &Login::new("web")).await.is_err() {
        assert!(started.elapsed() < SOON && sluice.exited().is_none(), "it does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A server that does something else wrong with each of so many connections, and then passes them on to a
/// real one.
async fn hostile_server(real: SocketAddr, wrong: u32) -> SocketAddr {
    let greeting = RawConn::connect(real).await.unwrap().read_packet().await.unwrap();
    let greeting = framed(greeting.seq, &greeting.payload);
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut chance = Chance::new(3);
        for turn in 0.. {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let (greeting, chance) = (greeting.clone(), Chance::new(chance.bits()));
            tokio::spawn(async move {
                if turn < wrong {
                    let act = misbehave(turn % MANNERS, stream, greeting, chance);
                    drop(tokio::time::timeout(PATIENCE, act).await);
                } else if let Ok(mut server) = TcpStream::connect(real).await {
                    drop(tokio::io::copy_bidirectional(&mut stream, &mut server).await);
                }
            });
        }
    });
    addr
}

async fn misbehave(
    manner: u32,
    mut stream: TcpStream,
    greeting: Vec<u8>,
    mut chance: Chance,
) -> std::io::Result<()> {
    let half = greeting.len() / 2;
    match manner {
        0 => return Ok(()),
        1 => stream.write_all(&chance.bytes(500)).await?,
        2 => stream.write_all(greeting.get(..half).unwrap()).await?,
        3 => stream.write_all(&framed(0, &chance.bytes(80))).await?,
        4 => stream.write_all(&[0xff; 70_000]).await?,
        5 => {}
        6 => stream.write_all(&framed(0, b"\xff\x10\x04Too many connections")).await?,
        7 => stream.write_all(&broken(greeting, &mut chance)).await?,
        _ => {
            stream.write_all(&greeting).await?;
            let mut response = [0; 4_096];
            _ = stream.read(&mut response).await?;
            stream.write_all(&framed(2, OK)).await?;
            while stream.read(&mut response).await? > 0 {
                answer_wrongly(manner, &mut stream, &mut chance).await?;
            }
            return Ok(());
        }
    }
    // Whatever comes is read, and nothing is said.
    let mut ignored = [0; 4_096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

fn broken(mut greeting: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
    for _ in 0..10 {
        let at = 5 + chance.index(greeting.len() - 5);
        if let Some(byte) = greeting.get_mut(at) {
            *byte = chance.byte();
        }
    }
    greeting
}

async fn answer_wrongly(
    manner: u32,
    stream: &mut TcpStream,
    chance: &mut Chance,
) -> std::io::Result<()> {
    match manner {
        8 => stream.write_all(&framed(1, &chance.bytes(300))).await,
        9 => stream.write_all(&chance.bytes(3_000)).await,
        // A column count of 2^64 − 1, and one column of a result that goes on with anything.
        10 => stream.write_all(&framed(1, &[0xfe; 9])).await,
        11 => {
            stream.write_all(&framed(1, &[1])).await?;
            for sequence in 0..=u8::MAX {
                stream.write_all(&framed(sequence, &chance.bytes(200))).await?;
            }
            Ok(())
        }
        12 => stream.write_all(&framed(1, &[])).await,
        // An OK that says there is more, and more, and more.
        13 => {
            for _ in 0..500 {
                stream.write_all(&framed(1, &[0, 0, 0, 0x0a, 0, 0, 0])).await?;
            }
            Ok(())
        }
        // Two answers for one question, and a request for a file.
        14 => {
            let file = framed(9, b"\xfb/etc/passwd");
            stream.write_all(&[framed(1, OK), framed(1, OK), file].concat()).await
        }
        // A packet of 16 MiB that is cut off.
        _ => stream.write_all(&[0xff, 0xff, 0xff, 1, 0x05]).await,
    }
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
/// In how many ways it is wrong.
const MANNERS: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);
const PROBES_RETURN: Duration = Duration::from_secs(60);
