//! Bytes that no MySQL client or server sends, on both sides, before and after the login: no panic, no
//! hang, no growth, and the sessions of others do not notice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use integration::ports::loopback;
use integration::raw::{Login, MAX_PAYLOAD, Param, RawConn, capability, framed};
use integration::scenario::{Shared, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn bytes_before_the_login_that_no_client_sends_harm_nobody() {
    let mut besieged = Besieged::start(MYSQL.get().await.unwrap()).await;
    let addr = besieged.sluice.listen_addr();
    let mut chance = Chance(1);
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
    besieged.stands().await;
}

#[tokio::test]
async fn bytes_after_the_login_that_no_client_sends_harm_nobody_on_mysql() {
    besiege_after_login(MYSQL.get().await.unwrap()).await;
}

#[tokio::test]
async fn bytes_after_the_login_that_no_client_sends_harm_nobody_on_mariadb() {
    besiege_after_login(MARIADB.get().await.unwrap()).await;
}

#[tokio::test]
async fn a_server_that_speaks_nonsense_harms_only_its_own_clients() {
    let servers = MYSQL.get().await.unwrap();
    let greeting = a_greeting(servers.primary.addr()).await;
    let hostile = TcpListener::bind(loopback(0)).await.unwrap();
    let hostile_addr = hostile.local_addr().unwrap();
    let script = tokio::spawn(speak_nonsense(hostile, greeting));
    let mut besieged = Besieged::start_beside(servers, hostile_addr).await;
    let addr = besieged.other.unwrap();
    for _ in 0..HOSTILE_SERVERS * 4 {
        let meet = async {
            let mut conn = RawConn::connect(addr).await?;
            conn.set_read_limit(PATIENCE);
            conn.log_in(&Login::new("web")).await?;
            for _ in 0..3 {
                conn.query("SELECT 1").await?;
                let statement = conn.prepare("SELECT ?").await?;
                conn.execute(&statement, &[Param::int(1)]).await?;
            }
            Ok::<(), integration::error::HarnessError>(())
        };
        // Nothing that it may end in is wrong, but for not ending: that is what the limit is for.
        assert!(tokio::time::timeout(SOON, meet).await.is_ok(), "a client hangs");
    }
    besieged.stands().await;
    script.abort();
}

async fn besiege_after_login(servers: &Topology) {
    let mut besieged = Besieged::start(servers).await;
    let addr = besieged.sluice.listen_addr();
    let mut chance = Chance(2);
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
    besieged.stands().await;
}

/// Sluice under attack, and a neighbour whose every statement is watched.
struct Besieged {
    sluice: SluiceProcess,
    /// Where the cluster of the hostile server listens, if there is one.
    other: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    neighbour: tokio::task::JoinHandle<Neighbour>,
    rss_before_kib: u64,
}

struct Neighbour {
    statements: u64,
    slowest: Duration,
}

impl Besieged {
    async fn start(servers: &Topology) -> Self {
        let config = Config::new(servers).unwrap();
        Self::besiege(SluiceProcess::start(&config).await.unwrap(), None).await
    }

    /// With a second cluster whose primary is somebody else.
    async fn start_beside(servers: &Topology, hostile: SocketAddr) -> Self {
        let (main, other) = (Config::new(servers).unwrap(), Config::new(servers).unwrap());
        let cluster = format!(
            "  other:\n    listen: \"{}\"\n    primary: \"{hostile}\"\n    \
             probe: {{ user: sluice, password_env: SLUICE_PROBE_PASSWORD }}\nidentity:\n",
            other.listen
        );
        let yaml = main.render().replacen("identity:\n", &cluster, 1);
        let mut sluice = SluiceProcess::spawn(&yaml, main.listen, main.admin, &[]).unwrap();
        let started = Instant::now();
        while RawConn::open(main.listen, &Login::new("web")).await.is_err() {
            assert!(started.elapsed() < SOON && sluice.exited().is_none(), "it does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self::besiege(sluice, Some(other.listen)).await
    }

    async fn besiege(sluice: SluiceProcess, other: Option<SocketAddr>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let conn = RawConn::open(sluice.listen_addr(), &Login::new("web")).await.unwrap();
        let neighbour = tokio::spawn(live_on(conn, stop.clone()));
        // What one attack takes at its peak is not growth.
        for _ in 0..20 {
            attack(sluice.listen_addr(), &[&[0xff; 100]], Then::Close).await;
        }
        let rss_before_kib = rss_kib(&sluice);
        Self { sluice, other, stop, neighbour, rss_before_kib }
    }

    /// After the attack.
    async fn stands(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let neighbour = (&mut self.neighbour).await.unwrap();
        assert!(neighbour.statements > 50, "{}", neighbour.statements);
        assert!(neighbour.slowest < Duration::from_secs(3), "{:?}", neighbour.slowest);
        assert!(self.sluice.exited().is_none(), "it has ended");
        let log = self.sluice.log().unwrap();
        assert!(!log.contains("panicked"), "{log}");
        // Nobody is left behind: neither a connection nor its memory.
        let connections = "sluice_client_connections";
        wait_for_sum(&self.sluice, connections, &[], 0.0).await.unwrap();
        let grown_kib = rss_kib(&self.sluice).saturating_sub(self.rss_before_kib);
        assert!(grown_kib < GROWTH_KIB_MAX, "{grown_kib} KiB more than before");
        let mut conn = RawConn::open(self.sluice.listen_addr(), &Login::new("web")).await.unwrap();
        let alive = conn.query("SELECT 'alive'").await.unwrap();
        assert_eq!(alive.first_text().as_deref(), Some("alive"));
    }
}

async fn live_on(mut conn: RawConn, stop: Arc<AtomicBool>) -> Neighbour {
    let mut seen = Neighbour { statements: 0, slowest: Duration::ZERO };
    while !stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        let answer = conn.query(format!("SELECT {}", seen.statements)).await.unwrap();
        assert_eq!(answer.first_text(), Some(seen.statements.to_string()));
        seen.slowest = seen.slowest.max(sent.elapsed());
        seen.statements += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    seen
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

/// A server that does something else wrong with every connection.
async fn speak_nonsense(listener: TcpListener, greeting: Vec<u8>) {
    let mut chance = Chance(3);
    for turn in (0..HOSTILE_SERVERS).cycle() {
        let Ok((stream, _)) = listener.accept().await else { return };
        let seed = chance.next();
        let greeting = greeting.clone();
        tokio::spawn(async move {
            let act = misbehave(turn, stream, greeting, Chance(seed));
            drop(tokio::time::timeout(PATIENCE, act).await);
        });
    }
}

const HOSTILE_SERVERS: u32 = 16;

async fn misbehave(
    turn: u32,
    mut stream: TcpStream,
    greeting: Vec<u8>,
    mut chance: Chance,
) -> std::io::Result<()> {
    let ok = framed(2, &[0, 0, 0, 2, 0, 0, 0]);
    let half = greeting.len() / 2;
    match turn {
        0 => return Ok(()),
        1 => stream.write_all(&chance.bytes(500)).await?,
        2 => stream.write_all(greeting.get(..half).unwrap()).await?,
        3 => stream.write_all(&framed(0, &chance.bytes(80))).await?,
        4 => stream.write_all(&[0xff; 70_000]).await?,
        5 => stream.write_all(&[]).await?,
        6 => stream.write_all(&framed(0, b"\xff\x10\x04Too many connections")).await?,
        7 => {
            let mut broken = greeting.clone();
            for _ in 0..10 {
                let at = 5 + chance.index(broken.len() - 5);
                if let Some(byte) = broken.get_mut(at) {
                    *byte = chance.byte();
                }
            }
            stream.write_all(&broken).await?;
        }
        _ => {
            stream.write_all(&greeting).await?;
            let mut response = [0; 4_096];
            _ = stream.read(&mut response).await?;
            stream.write_all(&ok).await?;
            _ = stream.read(&mut response).await?;
            answer_wrongly(turn, &mut stream, &mut chance).await?;
        }
    }
    // Whatever comes is read, and nothing is said.
    let mut ignored = [0; 4_096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

async fn answer_wrongly(
    turn: u32,
    stream: &mut TcpStream,
    chance: &mut Chance,
) -> std::io::Result<()> {
    match turn {
        8 => stream.write_all(&framed(1, &chance.bytes(300))).await,
        9 => stream.write_all(&chance.bytes(3_000)).await,
        // A column count of 2^64 − 1, and one of a result that never ends.
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
        // Two answers for one question; a request for a file; a packet cut off by the end.
        14 => {
            let ok = framed(1, &[0, 0, 0, 2, 0, 0, 0]);
            stream.write_all(&[ok.clone(), ok, framed(9, b"\xfb/etc/passwd")].concat()).await
        }
        _ => stream.write_all(&[0xff, 0xff, 0xff, 1, 0x05]).await,
    }
}

fn rss_kib(sluice: &SluiceProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sluice.pid().unwrap()));
    let status = status.unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A small generator (SplitMix64): the same bytes in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn byte(&mut self) -> u8 {
        let [byte, ..] = self.next().to_le_bytes();
        byte
    }

    /// Below `limit`, which is not 0.
    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap() % limit
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

const ROUNDS: u32 = 1;
/// Long enough that an answer which comes at once is there.
const MOMENT: Duration = Duration::from_millis(15);
const PATIENCE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(15);
/// Allocators keep some of what a burst took; a leak of 3,000 attacks would be more.
const GROWTH_KIB_MAX: u64 = 48 * 1024;
