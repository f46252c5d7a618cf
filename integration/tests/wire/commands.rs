//! Commands that the corpus of fidelity cannot say, and what lives as long as a connection: each on real servers,
//! direct and through Sluice, with the same packets back; in the clear, in TLS, compressed, and both at once.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;
use std::time::Duration;

use integration::raw::{
    COM_INIT_DB, COM_PING, COM_SET_OPTION, COM_STATISTICS, COM_STMT_CLOSE, COM_STMT_PREPARE,
    Execute, Login, Packet, Param, RawConn, Response, Shape, capability, framed, statement,
};
use integration::scenario::{Pending, Refused, Shared, wait_for_depth};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

mod bulk;
mod cursors;
mod dump;
mod infile;
mod legs;
mod replication;
mod semi_sync;
mod shutdown;

use legs::{AS_CLIENT, Legs};

static MYSQL: Shared = Shared::in_tls(Flavour::MySql);
static MARIADB: Shared = Shared::in_tls(Flavour::MariaDb);

#[tokio::test]
async fn multi_statements_go_on_and_off_by_command() {
    for servers in both().await {
        let login = Login::new("app").without(capability::MULTI_STATEMENTS);
        same_in_both_styles(servers, login, async |conn| {
            let mut packets = Vec::new();
            for option in [MULTI_STATEMENTS_ON, MULTI_STATEMENTS_OFF, 7] {
                let [low, high] = option.to_le_bytes();
                packets.extend(single(conn, &[COM_SET_OPTION, low, high]).await);
                packets.extend(conn.query("SELECT 1; SELECT 2").await.unwrap().packets);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_line_of_statistics_is_one_packet_whatever_it_begins_with() {
    for servers in both().await {
        let sluice = plain(servers).await;
        for (addr, login) in every_way(servers, &sluice, "app") {
            let mut conn = RawConn::open(addr, &login).await.unwrap();
            let line = single(&mut conn, &[COM_STATISTICS]).await;
            let text = String::from_utf8(line[0].payload.clone()).unwrap();
            assert!(text.starts_with("Uptime: ") && line[0].seq == 1, "{text}");
            let ok = single(&mut conn, &[COM_PING]).await;
            assert_eq!((ok[0].first(), ok[0].seq), (Some(0), 1), "what follows is the next answer");
        }
    }
}

#[tokio::test]
async fn commands_of_administrators_are_answered_as_directly() {
    for servers in both().await {
        same_in_both_styles(servers, Login::new("admin"), async |conn| {
            // COM_DEBUG, COM_REFRESH of the query cache (MariaDB), and commands that are gone.
            let mut packets = Vec::new();
            for payload in [&[0x0d][..], &[0x07, 0x01], &[0x05, b'x'], &[0x1d], &[COM_PING]] {
                packets.extend(single(conn, payload).await);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_list_of_processes_ends_where_it_ends() {
    for servers in both().await {
        let sluice = plain(servers).await;
        let mut packets = Vec::new();
        for (addr, login) in every_way(servers, &sluice, "app") {
            let mut conn = RawConn::open(addr, &login).await.unwrap();
            let list = conn.command(&[COM_PROCESS_INFO], Shape::Query).await.unwrap();
            // Gone from MySQL 9; the first packet says how many columns, or what is wrong.
            assert_eq!(list.err().is_some(), servers.primary.flavour() == Flavour::MySql);
            packets.push(list.packets[0].clone());
            assert_eq!(single(&mut conn, &[COM_PING]).await[0].first(), Some(0));
        }
        assert!(packets.iter().all(|packet| *packet == packets[0]), "{packets:?}");
    }
}

#[tokio::test]
async fn mariadbs_command_to_kill_ends_a_connection_and_a_wait() {
    let servers = MARIADB.get().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE c_kill (n INT)"]).await.unwrap();
    let sluice = SluiceProcess::start(&config(servers).rules(HELD)).await.unwrap();
    for legs in Legs::ALL {
        let login = legs.through(&Login::new("app"));
        let mut killer = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        // As the same account, for killing others takes a right that it has not.
        let mut idle = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        let kill = statement::id_payload(COM_PROCESS_KILL, idle.connection_id());
        assert_eq!(single(&mut killer, &kill).await[0].first(), Some(0));
        idle.read_to_end().await.unwrap();

        let login = login.attribute("sluice_app", "etl");
        let waiting = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        let kill = statement::id_payload(COM_PROCESS_KILL, waiting.connection_id());
        let waiting = Pending::query(waiting, "INSERT INTO c_kill VALUES (1)");
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        assert_eq!(single(&mut killer, &kill).await[0].first(), Some(0));
        let mut answered = waiting.answered(SOON).await.unwrap();
        assert_eq!(answered.response.err().map(|(errno, _)| errno), Some(ER_QUERY_INTERRUPTED));
        answered.conn.read_to_end().await.unwrap();
        wait_for_depth(&sluice, "held", 0).await.unwrap();
    }
    let rows: Option<i64> =
        servers.primary.query_first("SELECT COUNT(*) FROM c_kill").await.unwrap();
    assert_eq!(rows, Some(0));
}

#[tokio::test]
async fn a_change_to_a_user_who_is_refused_ends_or_goes_on_as_directly() {
    for servers in both().await {
        let wrong = Login { password: "wrong".into(), ..Login::new("etl") };
        same(servers, &Login::new("app"), async |conn| {
            conn.query("SET @kept = 1").await.unwrap();
            let mut packets = conn.change_user(&wrong).await.unwrap();
            assert_eq!(packets.last().and_then(Packet::err).map(|(errno, _)| errno), Some(1045));
            // One server closes, the other goes on with the user before.
            conn.set_read_limit(SOON);
            let asked = conn.query("SELECT CURRENT_USER(), DATABASE(), @kept").await;
            assert_eq!(asked.is_ok(), conn.server_version().contains("MariaDB"));
            packets.extend(asked.map(|response| response.packets).unwrap_or_default());
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn commands_sent_before_the_answers_are_answered_in_their_order() {
    for servers in both().await {
        same_in_both_styles(servers, Login::new("app"), async |conn| {
            let batch: Vec<(Vec<u8>, Shape)> = vec![
                (conn.query_payload(b"SELECT 1, 'x'", &[]), Shape::Query),
                (conn.query_payload(b"SELECT * FROM nowhere", &[]), Shape::Query),
                (vec![COM_PING], Shape::Single),
                (statement::id_payload(COM_STMT_CLOSE, 4711), Shape::Silent),
                ([&[COM_INIT_DB][..], b"test"].concat(), Shape::Single),
                (statement::long_data_payload(4711, 0, b"lost"), Shape::Silent),
                (conn.query_payload(b"SELECT 2; SELECT 3; SELEC", &[]), Shape::Query),
                ([&[COM_STMT_PREPARE][..], b"SELEC"].concat(), Shape::Prepare),
                (conn.query_payload(b"DO 1", &[]), Shape::Query),
            ];
            let payloads: Vec<&[u8]> = batch.iter().map(|(payload, _)| &payload[..]).collect();
            send_ahead(conn, &payloads).await;
            send_ahead_in_pieces(conn, &payloads).await;
            let mut packets = Vec::new();
            for (_, shape) in batch.iter().chain(&batch) {
                packets.extend(next_answer(conn, *shape).await.packets);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_command_behind_a_refused_one_is_answered_after_it() {
    for servers in both().await {
        let sluice = SluiceProcess::start(&config(servers).rules(DENIED)).await.unwrap();
        for legs in Legs::ALL {
            let login = legs.through(&Login::new("etl"));
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            let batch: Vec<u8> =
                [&b"\x03SELECT 1"[..], b"\x03INSERT INTO nowhere VALUES (1)", b"\x0e"]
                    .into_iter()
                    .flat_map(|payload| framed(0, payload))
                    .collect();
            conn.send_bytes(&batch).await.unwrap();
            assert_eq!(conn.read_response(Shape::Query).await.unwrap().first_text().unwrap(), "1");
            let refused = conn.read_response(Shape::Query).await.unwrap();
            assert_eq!(Refused::of(&refused).unwrap().reason(), Some("deny"), "{legs:?}");
            let ok = conn.read_response(Shape::Single).await.unwrap();
            assert_eq!(ok.packets[0].first(), Some(0));
        }
    }
}

#[tokio::test]
async fn a_statement_of_no_definitions_and_one_of_attributes_are_executed_as_directly() {
    let servers = MYSQL.get().await.unwrap();
    let with = capability::QUERY_ATTRIBUTES | capability::OPTIONAL_METADATA;
    same_in_both_styles(servers, Login::new("app").with(with), async |conn| {
        let mut packets = Vec::new();
        for metadata in ["FULL", "NONE", "FULL"] {
            let set = format!("SET resultset_metadata = {metadata}");
            packets.extend(conn.query(set).await.unwrap().packets);
            let rows = conn.query_with_attributes("SELECT 1, 2", &[("trace", "x")]).await;
            packets.extend(rows.unwrap().packets);
            let prepared = conn.prepare("SELECT ?, ?").await.unwrap();
            let params = [Param::int(1), Param::text("two")];
            let attributes = [("trace", "y"), ("span", "")];
            let id = prepared.id;
            let execute =
                Execute { id, params: &params, attributes: &attributes, ..Execute::default() };
            // All but the first packet, which names the statement.
            packets.extend(prepared.response.packets.into_iter().skip(1));
            packets.extend(conn.execute_as(&execute).await.unwrap().packets);
            conn.close_statement(id).await.unwrap();
        }
        packets
    })
    .await;
}

/// Does the same direct and through Sluice, on every kind of legs, and wants the same packets. The client
/// speaks to the server as it does to Sluice, so packets are compared as they are seen behind its decompression.
async fn same<F>(servers: &Topology, login: &Login, act: F)
where
    F: AsyncFn(&mut RawConn) -> Vec<Packet>,
{
    let sluice = plain(servers).await;
    for legs in Legs::ALL {
        let mut seen = Vec::new();
        for (addr, login) in legs.both_ways(servers, sluice.listen_addr(), login) {
            let mut conn = RawConn::open(addr, &login).await.unwrap();
            let mut packets = act(&mut conn).await;
            if legs.is_compressed() {
                // They follow the places at which a server happens to flush.
                packets.iter_mut().for_each(|packet| packet.seq = 0);
            }
            seen.push(packets);
        }
        let [expected, found] = &seen[..] else { panic!("two ways") };
        assert!(!expected.is_empty());
        for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
            assert_eq!(found, expected, "{legs:?}: packet {at}, through Sluice and directly");
        }
        assert_eq!(found.len(), expected.len(), "{legs:?}");
    }
}

/// Direct and through Sluice, on every kind of legs.
fn every_way(
    servers: &Topology,
    sluice: &SluiceProcess,
    user: &str,
) -> impl Iterator<Item = (SocketAddr, Login)> {
    let login = Login::new(user);
    Legs::ALL
        .into_iter()
        .flat_map(move |legs| legs.both_ways(servers, sluice.listen_addr(), &login))
}

/// The same of clients that end results with an OK, and of those that end them with an EOF.
async fn same_in_both_styles<F>(servers: &Topology, login: Login, act: F)
where
    F: AsyncFn(&mut RawConn) -> Vec<Packet>,
{
    same(servers, &login, &act).await;
    same(servers, &login.without(capability::DEPRECATE_EOF), &act).await;
}

/// Sends commands whose answers are not awaited: in one piece, and where the leg is compressed, each in a compressed
/// packet of its own. No library packs several into one, and servers misread what is behind the first.
async fn send_ahead(conn: &mut RawConn, payloads: &[&[u8]]) {
    if conn.compressed_packets().is_some() {
        for payload in payloads {
            conn.send_command(payload).await.unwrap();
        }
    } else {
        let bytes: Vec<u8> = payloads.iter().flat_map(|payload| framed(0, payload)).collect();
        conn.send_bytes(&bytes).await.unwrap();
    }
}

/// The same, so that headers fall apart; compressed ones stay whole, being written at once.
async fn send_ahead_in_pieces(conn: &mut RawConn, payloads: &[&[u8]]) {
    if conn.compressed_packets().is_some() {
        return send_ahead(conn, payloads).await;
    }
    let bytes: Vec<u8> = payloads.iter().flat_map(|payload| framed(0, payload)).collect();
    for piece in bytes.chunks(3) {
        conn.send_bytes(piece).await.unwrap();
    }
}

/// The next answer to what was sent by [`send_ahead`].
async fn next_answer(conn: &mut RawConn, shape: Shape) -> Response {
    if shape != Shape::Silent {
        conn.await_answer_of_one();
    }
    conn.read_response(shape).await.unwrap()
}

/// Sluice that lets everything through.
async fn plain(servers: &Topology) -> SluiceProcess {
    SluiceProcess::start(&config(servers)).await.unwrap()
}

/// A file whose legs are alike.
fn config(servers: &Topology) -> Config {
    Config::new(servers).unwrap().cluster(AS_CLIENT)
}

async fn single(conn: &mut RawConn, payload: &[u8]) -> Vec<Packet> {
    conn.command(payload, Shape::Single).await.unwrap().packets
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

const HELD: &str = "- { name: held, match: { app: etl }, hold: true, max_delay: 60s, permanent: true }\n\
                    - { name: everything, gate: none, permanent: true }";
const DENIED: &str = "- { name: denied, match: { app: etl }, deny: true, permanent: true }\n\
                      - { name: everything, gate: none, permanent: true }";
const SOON: Duration = Duration::from_secs(10);
const COM_PROCESS_INFO: u8 = 0x0a;
const COM_PROCESS_KILL: u8 = 0x0c;
const MULTI_STATEMENTS_ON: u16 = 0;
const MULTI_STATEMENTS_OFF: u16 = 1;
const ER_QUERY_INTERRUPTED: u16 = 1317;
