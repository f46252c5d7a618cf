//! A server that is not quite itself: one that sends its clients elsewhere, one whose greeting somebody on the
//! way has added to. Both are a real server, with a few bytes changed in front of it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;

use integration::error::HarnessError;
use integration::ports::loopback;
use integration::raw::{Login, Packet, RawConn, Tls, framed};
use integration::scenario::Shared;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

static MYSQL: Shared = Shared::new(Flavour::MySql);

/// What is changed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The OK of a login reports `redirect_url`, as MariaDB 11.3 does.
    RedirectUrl,
    /// The OK of a login says where to go, as Azure's gateway does.
    Location,
    /// An OK follows the greeting, as if the client were in.
    Injection,
}

#[tokio::test]
async fn a_server_that_sends_its_clients_elsewhere_does_not_take_them_away() {
    let real = MYSQL.get().await.unwrap().primary.addr();
    for change in [Change::RedirectUrl, Change::Location] {
        let server = changed(real, change).await;
        let direct = RawConn::open(server, &Login::new("app")).await.unwrap();
        assert!(names_another(direct.login_packets()), "{change:?}");
        for tls in [Tls::Never, Tls::Newest] {
            let sluice = sluice(server, "backend_tls: { mode: disabled }").await;
            let login = Login::new("app").tls(tls);
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            assert!(!names_another(conn.login_packets()), "{change:?}");
            let answer = conn.query("SELECT 7").await.unwrap().first_text();
            assert_eq!(answer.as_deref(), Some("7"));
        }
        let denying = sluice(server, "redirect: deny").await;
        let (errno, message) = refused(denying.listen_addr()).await;
        assert_eq!(errno, 1043);
        assert!(message.contains("[sluice]") && message.contains("redirect=deny"), "{message}");
    }
}

#[tokio::test]
async fn what_somebody_adds_to_a_greeting_is_never_taken_for_the_servers() {
    let real = MYSQL.get().await.unwrap().primary.addr();
    let server = changed(real, Change::Injection).await;
    let sluice = sluice(server, "backend_tls: { mode: required }").await;
    for tls in [Tls::Never, Tls::Newest] {
        let login = Login::new("app").tls(tls);
        match RawConn::open(sluice.listen_addr(), &login).await {
            // It came together with the greeting, or behind it.
            Err(HarnessError::Io { .. }) => {}
            Err(HarnessError::Refused { errno: 1043, message }) => {
                assert!(message.contains("[sluice]"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    let errors = sluice.metrics().await.unwrap().sum("sluice_backend_errors_total", &[]);
    assert!((errors - 2.0).abs() < 0.1, "{errors}");
}

fn names_another(packets: &[Packet]) -> bool {
    let ok = packets.last().unwrap();
    ok.payload.windows(ELSEWHERE.len()).any(|part| part == ELSEWHERE)
}

async fn refused(addr: SocketAddr) -> (u16, String) {
    match RawConn::open(addr, &Login::new("app")).await {
        Err(HarnessError::Refused { errno, message }) => (errno, message),
        other => panic!("{other:?}"),
    }
}

async fn sluice(server: SocketAddr, keys: &str) -> SluiceProcess {
    // Its probes would be sent elsewhere as well.
    let config = Config::in_front_of(server, Vec::new()).unwrap().cluster(keys).signals("");
    let yaml = config.render().replace("    probe: {", "    # probe: {");
    let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    sluice
}

/// A server on another port that is `real` but for what is changed.
async fn changed(real: SocketAddr, change: Change) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A side that closes ends it.
                relay(client, real, change).await.ok();
            });
        }
    });
    addr
}

async fn relay(mut client: TcpStream, real: SocketAddr, change: Change) -> std::io::Result<()> {
    let mut server = TcpStream::connect(real).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let upwards = tokio::io::copy(&mut from_client, &mut to_server);
    let downwards = async {
        let mut logged_in = false;
        let mut first = true;
        while !logged_in {
            let (sequence, payload) = packet(&mut from_server).await?;
            logged_in = !first && payload.first() == Some(&0);
            let payload = if logged_in { redirected(&payload, change) } else { payload };
            let mut bytes = framed(sequence, &payload);
            if std::mem::take(&mut first) && change == Change::Injection {
                bytes.extend(framed(2, &[0, 0, 0, 2, 0, 0, 0]));
            }
            to_client.write_all(&bytes).await?;
        }
        tokio::io::copy(&mut from_server, &mut to_client).await
    };
    tokio::try_join!(upwards, downwards).map(drop)
}

async fn packet(from: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    from.read_exact(&mut header).await?;
    let [a, b, c, sequence] = header;
    let len = usize::try_from(u32::from_le_bytes([a, b, c, 0])).map_err(std::io::Error::other)?;
    let mut payload = vec![0; len];
    from.read_exact(&mut payload).await?;
    Ok((sequence, payload))
}

/// The OK of a login under CLIENT_SESSION_TRACK, which says more than it did.
fn redirected(ok: &[u8], change: Change) -> Vec<u8> {
    let put = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.push(u8::try_from(bytes.len()).unwrap());
        out.extend(bytes);
    };
    let mut out = ok.get(..7).unwrap().to_vec();
    match change {
        Change::RedirectUrl => {
            out[4] |= SESSION_STATE_CHANGED;
            let mut variable = Vec::new();
            put(&mut variable, b"redirect_url");
            put(&mut variable, ELSEWHERE);
            let mut changes = vec![0];
            put(&mut changes, &variable);
            put(&mut out, b"");
            put(&mut out, &changes);
        }
        Change::Location => {
            out[4] &= !SESSION_STATE_CHANGED;
            put(&mut out, &[b"Location: ", ELSEWHERE].concat());
        }
        Change::Injection => return ok.to_vec(),
    }
    out
}

const ELSEWHERE: &[u8] = b"mysql://127.0.0.2:3306";
/// SERVER_SESSION_STATE_CHANGED, in the high byte of the status.
const SESSION_STATE_CHANGED: u8 = 0x40;
