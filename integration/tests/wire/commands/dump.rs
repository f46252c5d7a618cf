//! What a client says during a stream of events: acknowledgements pass, a command waits until the stream has ended and
//! is judged like any other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use integration::ports::loopback;
use integration::raw::{Dump, Login, Packet, RawConn, Shape, framed};
use integration::scenario::{Refused, numbers, wait_for_sum, wait_until};
use integration::server::Server;
use integration::sluice::{Config, SluiceProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{DENIED, Legs, SOON, both, config, send_ahead};

#[tokio::test]
async fn a_write_behind_a_stream_that_ends_is_judged_when_it_has_ended() {
    for (servers, first_id) in both().await.into_iter().zip([600, 700]) {
        let primary = &servers.primary;
        primary.run_sql(&["CREATE TABLE IF NOT EXISTS c_dump (n INT)"]).await.unwrap();
        let sluice = SluiceProcess::start(&config(servers).rules(DENIED)).await.unwrap();
        let mut refused = 0.0;
        for (legs, server_id) in Legs::ALL.into_iter().zip(first_id..) {
            let dump = Dump::of_newest(primary, server_id, true).await.unwrap();
            let mut conn =
                RawConn::open(sluice.listen_addr(), &legs.through(&dumper())).await.unwrap();
            conn.prepare_dump().await.unwrap();
            send_ahead(&mut conn, &[&dump.payload(), WRITE]).await;
            conn.await_answer_of_one();
            let (events, end) = read_to_end_of_stream(&mut conn).await;
            assert!(events > 1 && end.first() == Some(0xfe), "{legs:?}: {events} events, {end:?}");
            // The server closes behind a stream: a write that comes later than that has no answer.
            conn.await_answer_of_one();
            match conn.read_response(Shape::Query).await {
                Ok(answer) => {
                    assert_eq!(Refused::of(&answer).unwrap().reason(), Some("deny"), "{legs:?}");
                    refused += 1.0;
                }
                Err(error) => assert!(legs.is_compressed(), "{legs:?}: {error}"),
            }
        }
        let rejected = [("decision", "rejected")];
        wait_for_sum(&sluice, "sluice_statements_total", &rejected, refused).await.unwrap();
        let rows = numbers(primary, "SELECT COUNT(*) FROM c_dump").await.unwrap();
        assert_eq!(rows, [0]);
    }
}

#[tokio::test]
async fn a_write_within_a_stream_never_reaches_the_server_and_acknowledgements_do() {
    for (servers, server_id) in both().await.into_iter().zip([610, 710]) {
        let primary = &servers.primary;
        primary.run_sql(&["CREATE TABLE IF NOT EXISTS c_dump (n INT)"]).await.unwrap();
        let tap = Tap::new(primary.addr()).await;
        let config = Config::in_front_of(tap.addr, Vec::new()).unwrap().rules(DENIED);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut conn = streaming(&sluice, primary, server_id).await;
        // Each is sent in two pieces, and read with what is behind it.
        let acknowledged = [acknowledgement(1), acknowledgement(2)].concat();
        for half in acknowledged.chunks(acknowledged.len() / 2 + 3) {
            conn.send_bytes(half).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tap.wait_for(&acknowledged).await;
        // A command hides behind one, and another one behind the command.
        let third = acknowledgement(3);
        let hidden = [third.clone(), framed(0, WRITE), acknowledgement(4)].concat();
        conn.send_bytes(&hidden).await.unwrap();
        tap.wait_for(&third).await;
        for _ in 0..2 {
            conn.read_to_heartbeat().await.unwrap();
        }
        assert!(!tap.has_seen(WRITE) && !tap.has_seen(&acknowledgement(4)));
        // The stream ends by the server's doing: if the command is answered, then by its rule.
        primary.run_sql(&[&format!("KILL {}", conn.connection_id())]).await.unwrap();
        conn.set_read_limit(SOON);
        conn.read_to_end().await.unwrap();
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        assert!(!tap.has_seen(WRITE) && !tap.has_seen(&acknowledgement(4)));
        let rows = numbers(primary, "SELECT COUNT(*) FROM c_dump").await.unwrap();
        assert_eq!(rows, [0]);
    }
}

/// Neither is one: too long, and with another first byte.
#[tokio::test]
async fn what_only_resembles_an_acknowledgement_does_not_reach_the_server() {
    for (servers, server_id) in both().await.into_iter().zip([620, 720]) {
        let primary = &servers.primary;
        let tap = Tap::new(primary.addr()).await;
        let config = Config::in_front_of(tap.addr, Vec::new()).unwrap();
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let long = [&[0xef][..], &[b'l'; 100_000]].concat();
        for (unlike, id) in [(&long[..], 0), (b"\xeeposition-and-file", 1)] {
            let mut conn = streaming(&sluice, primary, server_id + id).await;
            conn.send_bytes(&framed(0, unlike)).await.unwrap();
            conn.read_to_heartbeat().await.unwrap();
            conn.read_to_heartbeat().await.unwrap();
            assert!(!tap.has_seen(unlike.get(1..17).unwrap()));
        }
    }
}

/// How many events came, and the packet that was none.
async fn read_to_end_of_stream(conn: &mut RawConn) -> (u32, Packet) {
    for events in 0.. {
        let packet = conn.read_event().await.unwrap();
        if packet.event_type().is_none() {
            return (events, packet);
        }
    }
    panic!("a stream without an end");
}

/// An idle stream.
async fn streaming(sluice: &SluiceProcess, primary: &Server, server_id: u32) -> RawConn {
    let dump = Dump::of_newest(primary, server_id, false).await.unwrap();
    let mut conn = RawConn::open(sluice.listen_addr(), &dumper()).await.unwrap();
    conn.prepare_dump().await.unwrap();
    conn.send_command(&dump.payload()).await.unwrap();
    conn.read_to_heartbeat().await.unwrap();
    conn
}

/// Somebody who may both read the log and write, and whom a rule denies the latter.
fn dumper() -> Login {
    Login::new("ddl").attribute("sluice_app", "etl")
}

/// As a replica sends it: a position and a file.
fn acknowledgement(position: u64) -> Vec<u8> {
    framed(0, &[&[0xef][..], &position.to_le_bytes(), b"binlog.000001"].concat())
}

const WRITE: &[u8] = b"\x03INSERT INTO test.c_dump VALUES (1)";

/// A relay in front of a server that keeps what clients have sent, each for itself: Sluice's own looks come
/// through it as well.
struct Tap {
    addr: SocketAddr,
    sent: watch::Receiver<Vec<Vec<u8>>>,
}

impl Tap {
    async fn new(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(loopback(0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (kept, sent) = watch::channel(Vec::new());
        let kept = Arc::new(kept);
        tokio::spawn(async move {
            for place in 0.. {
                let Ok((client, _)) = listener.accept().await else { return };
                kept.send_modify(|kept| kept.push(Vec::new()));
                tokio::spawn(relay(client, server, (Arc::clone(&kept), place)));
            }
        });
        Self { addr, sent }
    }

    fn has_seen(&self, bytes: &[u8]) -> bool {
        let has = |sent: &Vec<u8>| sent.windows(bytes.len()).any(|window| window == bytes);
        self.sent.borrow().iter().any(has)
    }

    async fn wait_for(&self, bytes: &[u8]) {
        wait_until("it is sent", SOON, || async { Ok(self.has_seen(bytes)) }).await.unwrap();
    }
}

async fn relay(
    client: TcpStream,
    server: SocketAddr,
    (kept, place): (Arc<watch::Sender<Vec<Vec<u8>>>>, usize),
) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let down = tokio::spawn(async move {
        drop(tokio::io::copy(&mut from_server, &mut to_client).await);
    });
    let mut piece = vec![0; 10_000];
    while let Ok(len @ 1..) = from_client.read(&mut piece).await {
        let sent = piece.get(..len).unwrap_or_default();
        kept.send_modify(|kept| {
            if let Some(kept) = kept.get_mut(place) {
                kept.extend_from_slice(sent);
            }
        });
        if to_server.write_all(sent).await.is_err() {
            break;
        }
    }
    drop(to_server);
    down.abort();
}
