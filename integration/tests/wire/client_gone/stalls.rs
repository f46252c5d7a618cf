//! A client does not go on with a long command, or hardly.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::ports::loopback;
use integration::raw::statement::long_data_payload;
use integration::raw::{Login, RawConn, Tls, framed};
use integration::scenario::{connect_as, numbers, wait_for_sum};
use integration::server::Flavour;
use integration::topology::Topology;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

use super::ahead::{in_use, is_gone, start};
use super::{MYSQL, SOON, both};

/// Its place was taken for as long as it liked. The servers wait for a command as long as for the next
/// one, whatever they have of it.
#[tokio::test]
async fn who_stops_in_the_middle_of_a_long_statement_loses_its_place_and_nothing_runs() {
    let [one, other] = both().await;
    // Both take half a minute, of nothing but waiting.
    tokio::join!(stops_in_the_middle(one), stops_in_the_middle(other));
}

async fn stops_in_the_middle(servers: &Topology) {
    let sluice = start(servers).await;
    let create = "CREATE TABLE g_stalled (n INT PRIMARY KEY, pad LONGTEXT)";
    servers.primary.run_sql(&[create]).await.unwrap();
    let login = Login::new("app").attribute("sluice_app", "one");
    let mut direct = RawConn::open(servers.primary.addr(), &login).await.unwrap();
    let set = "SET SESSION net_read_timeout = 1, wait_timeout = 4";
    direct.query(set).await.unwrap().accepted().unwrap();
    let mut through = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let since = Instant::now();
    for conn in [&mut direct, &mut through] {
        let text = format!("INSERT INTO g_stalled VALUES (1, '{}')", "a".repeat(4_000_000));
        let whole = framed(0, &conn.query_payload(text.as_bytes(), &[]));
        conn.send_bytes(whole.get(..2_000_000).unwrap()).await.unwrap();
    }
    in_use(&sluice, 1.0).await;
    direct.read_to_end().await.ok();
    let took = since.elapsed();
    assert!(took > Duration::from_secs(3) && took < SOON, "wait_timeout: {took:?}");
    through.set_read_limit(2 * NET_READ_TIMEOUT);
    let told = through.read_packet().await.unwrap();
    let took = since.elapsed();
    assert_eq!(told.err().map(|(errno, _)| errno), Some(1159));
    assert!(took > NET_READ_TIMEOUT && took < NET_READ_TIMEOUT + SOON, "{took:?}");
    in_use(&sluice, 0.0).await;
    is_gone(&servers.primary, through.connection_id()).await;
    assert!(numbers(&servers.primary, "SELECT n FROM g_stalled").await.unwrap().is_empty());
    let stalled = [("reason", "stalled")];
    wait_for_sum(&sluice, "sluice_connections_refused_total", &stalled, 1.0).await.unwrap();
}

/// The servers' default.
const NET_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// It was closed without a word: COM_STMT_SEND_LONG_DATA has no answer. MySQL says this to the half of
/// any command; MariaDB closes, and may say nothing.
#[tokio::test]
async fn who_stops_in_the_middle_of_long_data_is_told_why_its_transaction_is_over() {
    let [one, other] = both().await;
    tokio::join!(stops_in_long_data(one), stops_in_long_data(other));
}

async fn stops_in_long_data(servers: &Topology) {
    let sluice = start(servers).await;
    let create = "CREATE TABLE g_long_data (n INT PRIMARY KEY, pad LONGTEXT)";
    let rows = "INSERT INTO g_long_data VALUES (1, ''), (2, '')";
    servers.primary.run_sql(&[create, rows]).await.unwrap();
    let mut direct = RawConn::open(servers.primary.addr(), &Login::new("app")).await.unwrap();
    let set = "SET SESSION net_read_timeout = 1, wait_timeout = 4";
    direct.query(set).await.unwrap().accepted().unwrap();
    let mut through = connect_as(&sluice, "writes").await.unwrap();
    for (conn, n) in [(&mut direct, 1), (&mut through, 2)] {
        let update = format!("UPDATE g_long_data SET pad = 'a' WHERE n = {n}");
        for sql in ["BEGIN", &*update] {
            conn.query(sql).await.unwrap().accepted().unwrap();
        }
        let statement = conn.prepare("INSERT INTO g_long_data VALUES (3, ?)").await.unwrap();
        let whole = framed(0, &long_data_payload(statement.id, 0, &[b'a'; 4_000_000]));
        conn.send_bytes(whole.get(..2_000_000).unwrap()).await.unwrap();
    }
    let since = Instant::now();
    let by_server = direct.read_packet().await;
    if servers.primary.flavour() == Flavour::MySql {
        let said = by_server.unwrap();
        assert_eq!((said.seq, said.err().map(|(errno, _)| errno)), (1, Some(1159)));
    }
    through.set_read_limit(2 * NET_READ_TIMEOUT);
    let told = through.read_packet().await.unwrap();
    assert_eq!((told.seq, told.err().map(|(errno, _)| errno)), (1, Some(1159)));
    assert!(since.elapsed() > NET_READ_TIMEOUT - SOON, "{:?}", since.elapsed());
    is_gone(&servers.primary, through.connection_id()).await;
    let kept = "SELECT n FROM g_long_data WHERE pad = '' ORDER BY n";
    assert_eq!(numbers(&servers.primary, kept).await.unwrap(), [1, 2], "all of it is rolled back");
    let mut next = connect_as(&sluice, "writes").await.unwrap();
    next.query("DELETE FROM g_long_data").await.unwrap().accepted().unwrap();
}

/// A record of TLS is nothing until all of it is there: who sent one for longer than half a minute was
/// ended, however steadily it came.
#[tokio::test]
async fn who_sends_a_long_statement_over_a_slow_line_in_tls_is_served() {
    let sluice = start(MYSQL.get().await.unwrap()).await;
    let line = slow_line(sluice.listen_addr()).await;
    let login = Login::new("app").attribute("sluice_app", "one").tls(Tls::Newest);
    let mut conn = RawConn::open(line, &login).await.unwrap();
    conn.set_read_limit(2 * NET_READ_TIMEOUT);
    let since = Instant::now();
    let answer = conn.query(format!("DO LENGTH('{}')", "a".repeat(2_000_000))).await.unwrap();
    answer.accepted().unwrap();
    assert!(since.elapsed() > NET_READ_TIMEOUT, "{:?}", since.elapsed());
    in_use(&sluice, 0.0).await;
}

/// A line to `to`, for one client in TLS: 10 KiB a half minute for most of one record behind the first
/// 1.4 MB.
async fn slow_line(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let (mut client_says, mut client_hears) = client.into_split();
        let server = TcpStream::connect(to).await.unwrap();
        let (mut server_says, mut server_hears) = server.into_split();
        tokio::spawn(async move { copy(&mut server_says, &mut client_hears).await });
        // Its request for TLS.
        let mut request = [0; 36];
        client_says.read_exact(&mut request).await.unwrap();
        server_hears.write_all(&request).await.unwrap();
        let mut sent = 0;
        loop {
            let mut head = [0; 5];
            client_says.read_exact(&mut head).await.unwrap();
            let [_, _, _, high, low] = head;
            let mut payload = vec![0; usize::from(u16::from_be_bytes([high, low]))];
            client_says.read_exact(&mut payload).await.unwrap();
            let record = [&head[..], &payload].concat();
            sent += record.len();
            if sent > 1_400_000 && record.len() > 12 * 1024 {
                let (slowly, rest) = record.split_at(12 * 1024);
                for piece in slowly.chunks(1024) {
                    server_hears.write_all(piece).await.unwrap();
                    tokio::time::sleep(Duration::from_secs(3)).await;
                }
                server_hears.write_all(rest).await.unwrap();
                break;
            }
            server_hears.write_all(&record).await.unwrap();
        }
        drop(copy(&mut client_says, &mut server_hears).await);
    });
    addr
}
