//! Cursors: those that clients ask for, and those that stored functions and procedures open for themselves, which
//! show in the same status flag.

use integration::raw::{
    COM_PING, COM_STMT_EXECUTE, COM_STMT_FETCH, Login, Packet, RawConn, Response, capability,
    framed,
};
use integration::scenario::Refused;
use integration::server::Flavour;
use integration::sluice::SluiceProcess;
use integration::topology::Topology;

use super::{DENIED, Legs, both, config, plain};

#[tokio::test]
async fn a_cursor_of_a_stored_function_does_not_hide_the_rows_that_follow() {
    for servers in both().await {
        create_routines(servers, "c_text").await;
        same_in_the_clear(servers, async |conn| {
            let mut packets = Vec::new();
            for sql in texts("c_text") {
                let payload = conn.query_payload(sql.as_bytes(), &[]);
                packets.extend(answered(conn, &payload).await);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn executions_with_any_flags_end_as_directly() {
    for servers in both().await {
        create_routines(servers, "c_flags").await;
        same_in_the_clear(servers, async |conn| {
            let mut packets = Vec::new();
            for sql in texts("c_flags") {
                packets.extend(executed(conn, &sql, NO_CURSOR).await);
                packets.extend(executed(conn, &sql, CURSOR_TYPE_READ_ONLY).await);
                packets.extend(executed(conn, &sql, FOR_UPDATE_AND_SCROLLABLE).await);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_session_goes_on_behind_an_execution_without_the_cursor_of_before() {
    for servers in both().await {
        same_in_the_clear(servers, async |conn| {
            let mut packets = Vec::new();
            // What MySQL answers second has neither rows nor an EOF.
            let id = conn.prepare("SELECT 'row'").await.unwrap().id;
            for flags in [CURSOR_TYPE_READ_ONLY, NO_CURSOR, FOR_UPDATE_AND_SCROLLABLE, NO_CURSOR] {
                packets.extend(answered(conn, &execute_payload(id, flags)).await);
            }
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn rows_that_a_statement_writes_itself_follow_the_flag_of_a_functions_cursor() {
    let [servers, _] = both().await;
    assert_eq!(servers.primary.flavour(), Flavour::MySql);
    create_routines(servers, "c_explain").await;
    let sluice = plain(servers).await;
    for addr in [servers.primary.addr(), sluice.listen_addr()] {
        let mut conn = RawConn::open(addr, &ends_with_eof("app")).await.unwrap();
        let sql = "EXPLAIN ANALYZE SELECT c_explain_function()";
        let packets = executed(&mut conn, sql, CURSOR_TYPE_READ_ONLY).await;
        let first_bytes: Vec<u8> = packets.iter().filter_map(Packet::first).collect();
        // Columns, definition, EOF, row, EOF, and the answer to what was sent behind.
        assert_eq!(first_bytes, [0x01, 0x03, 0xfe, 0x00, 0xfe, 0x00], "{addr}: {packets:?}");
    }
}

#[tokio::test]
async fn what_is_sent_behind_a_row_that_begins_with_null_is_judged() {
    for servers in both().await {
        create_routines(servers, "c_behind").await;
        let sluice = SluiceProcess::start(&config(servers).rules(DENIED)).await.unwrap();
        let mut conn = RawConn::open(sluice.listen_addr(), &ends_with_eof("etl")).await.unwrap();
        // A text answer whose row, 0xfb, would be the request for a local file if it began an answer.
        let null = "SELECT * FROM (SELECT c_behind_function() x) y";
        let batch = [
            framed(0, &conn.query_payload(null.as_bytes(), &[])),
            framed(0, &conn.query_payload(b"SELECT 1", &[])),
            framed(0, &conn.query_payload(b"INSERT INTO c_behind VALUES (4)", &[])),
            framed(0, &[]),
            framed(0, &[COM_PING]),
        ];
        conn.send_bytes(&batch.concat()).await.unwrap();
        let packets = until_answer(&mut conn, 3).await;
        let refused = Refused::of(&Response { packets, ..Response::default() });
        assert_eq!(refused.unwrap().reason(), Some("deny"));
        let count = "SELECT COUNT(*) FROM test.c_behind";
        let rows: Option<i64> = servers.primary.query_first(count).await.unwrap();
        assert_eq!(rows, Some(3));
    }
}

#[tokio::test]
async fn an_error_with_the_number_of_a_progress_report_ends_an_answer() {
    for servers in both().await {
        let sluice = plain(servers).await;
        let progress = Login::new("app").with(CLIENT_PROGRESS_OBSOLETE);
        for addr in [servers.primary.addr(), sluice.listen_addr()] {
            let mut conn = RawConn::open(addr, &progress).await.unwrap();
            let signal = b"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 65535";
            let payload = conn.query_payload(signal, &[]);
            let packets = answered(&mut conn, &payload).await;
            assert_eq!((packets[0].first(), packets.len()), (Some(0xff), 2), "{addr}");
        }
    }
}

/// Statements with and without rows, which begin with NULL where they can.
fn texts(name: &str) -> [String; 8] {
    [
        format!("SELECT * FROM (SELECT {name}_function() x) y"),
        format!("SELECT {name}_function()"),
        format!("SELECT n, {name}_function() FROM {name} ORDER BY {name}_function(), n"),
        format!("SELECT NULL FROM {name}"),
        format!("CALL {name}_procedure()"),
        format!("SHOW TABLES LIKE '{name}'"),
        format!("SHOW CREATE TABLE {name}"),
        format!("SET @c = {name}_function()"),
    ]
}

async fn create_routines(servers: &Topology, name: &str) {
    let body = format!(
        "READS SQL DATA BEGIN DECLARE v INT; DECLARE c CURSOR FOR SELECT n FROM {name}; \
         OPEN c; FETCH c INTO v;"
    );
    let mut admin = RawConn::open(servers.primary.addr(), &Login::new("admin")).await.unwrap();
    for sql in [
        format!("CREATE TABLE {name} (n INT)"),
        format!("INSERT INTO {name} VALUES (1), (2), (3)"),
        format!("CREATE FUNCTION {name}_function() RETURNS INT {body} CLOSE c; RETURN NULL; END"),
        format!("CREATE PROCEDURE {name}_procedure() {body} SELECT NULL, {name}_function(); END"),
    ] {
        admin.query(sql).await.unwrap().accepted().unwrap();
    }
}

/// Does the same direct and through Sluice with a client that reads EOF packets, and wants the same packets.
async fn same_in_the_clear<F>(servers: &Topology, act: F)
where
    F: AsyncFn(&mut RawConn) -> Vec<Packet>,
{
    let sluice = plain(servers).await;
    let ways = Legs::CLEAR.both_ways(servers, sluice.listen_addr(), &ends_with_eof("app"));
    let mut seen = Vec::new();
    for (addr, login) in ways {
        let mut conn = RawConn::open(addr, &login).await.unwrap();
        seen.push(act(&mut conn).await);
    }
    let [directly, through] = &seen[..] else { panic!("two ways") };
    assert_eq!(through, directly, "through Sluice and directly");
}

fn ends_with_eof(user: &str) -> Login {
    Login::new(user).without(capability::DEPRECATE_EOF)
}

/// Prepares and executes a statement, and fetches its rows if it was given a cursor.
async fn executed(conn: &mut RawConn, sql: &str, flags: u8) -> Vec<Packet> {
    let prepared = conn.prepare(sql).await.unwrap();
    let id = prepared.id.to_le_bytes();
    let mut packets = answered(conn, &execute_payload(prepared.id, flags)).await;
    if flags == CURSOR_TYPE_READ_ONLY && prepared.columns > 0 {
        let fetch = [&[COM_STMT_FETCH][..], &id, &100_u32.to_le_bytes()].concat();
        packets.extend(answered(conn, &fetch).await);
    }
    // MariaDB's "The statement (44) has no open cursor" counts all connections' statements.
    for packet in packets.iter_mut().filter(|packet| packet.payload.starts_with(NO_OPEN_CURSOR)) {
        packet.payload.retain(|byte| !byte.is_ascii_digit());
    }
    packets
}

/// An execution of a statement without parameters.
fn execute_payload(id: u32, flags: u8) -> Vec<u8> {
    [&[COM_STMT_EXECUTE][..], &id.to_le_bytes(), &[flags], &1_u32.to_le_bytes()].concat()
}

/// The head of ER_STMT_HAS_NO_OPEN_CURSOR, 1421.
const NO_OPEN_CURSOR: &[u8] = b"\xff\x8d\x05";

/// Sends a command and a COM_PING behind it, and gives the answers to both.
async fn answered(conn: &mut RawConn, payload: &[u8]) -> Vec<Packet> {
    conn.send_bytes(&[framed(0, payload), framed(0, &[COM_PING])].concat()).await.unwrap();
    until_answer(conn, 2).await
}

/// Reads up to the first packet of the answer of this number. Goes by nothing that packets say of their
/// answer, only by the sequence ids, which begin anew with each.
async fn until_answer(conn: &mut RawConn, number: usize) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    while packets.iter().filter(|packet| packet.seq == 1).count() < number {
        packets.push(conn.read_packet().await.unwrap());
    }
    packets
}

const NO_CURSOR: u8 = 0x00;
const CURSOR_TYPE_READ_ONLY: u8 = 0x01;
const FOR_UPDATE_AND_SCROLLABLE: u8 = 0x06;
/// MariaDB's name; MySQL has no use for the bit.
const CLIENT_PROGRESS_OBSOLETE: u32 = 1 << 29;
