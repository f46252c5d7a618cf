//! LOCAL INFILE that does not go as it should: either side gives up in the middle.

use integration::raw::{Login, Packet, RawConn, framed};
use integration::scenario::wait_until;

use super::{Legs, SOON, both, plain, same};

#[tokio::test]
async fn a_client_that_has_no_file_says_so_by_an_empty_packet() {
    for servers in both().await {
        same(servers, &Login::new("app"), async |conn| {
            let mut packets = Vec::new();
            for sql in ["DROP TABLE IF EXISTS c_none", "CREATE TABLE c_none (n INT)"] {
                conn.query(sql).await.unwrap();
            }
            packets.extend(asked_for_a_file(conn, "c_none").await);
            conn.send_payload(2, &[]).await.unwrap();
            packets.push(conn.read_packet().await.unwrap());
            packets.extend(conn.query("SELECT COUNT(*) FROM c_none").await.unwrap().packets);
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn an_error_in_the_first_row_ends_an_upload_as_directly() {
    for servers in both().await {
        // A trigger takes a right that the others have not.
        same(servers, &Login::new("admin"), async |conn| {
            for sql in [
                "DROP TABLE IF EXISTS c_first",
                "CREATE TABLE c_first (n INT)",
                "CREATE TRIGGER c_first BEFORE INSERT ON c_first FOR EACH ROW \
                 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'",
            ] {
                assert_eq!(conn.query(sql).await.unwrap().err(), None);
            }
            conn.queue_infile("1\n".repeat(1 << 20).into_bytes());
            let loaded = conn.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE c_first").await.unwrap();
            assert_eq!(loaded.err().map(|(errno, _)| errno), Some(1644));
            let mut packets = loaded.packets;
            packets.extend(conn.query("SELECT COUNT(*) FROM c_first").await.unwrap().packets);
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_file_leaves_no_row() {
    for servers in both().await {
        let server = &servers.primary;
        let create = "CREATE TABLE c_left (n INT) ENGINE=InnoDB";
        server.run_sql(&[create]).await.unwrap();
        let sluice = plain(servers).await;
        for legs in Legs::ALL {
            let login = legs.through(&Login::new("app"));
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            asked_for_a_file(&mut conn, "c_left").await;
            let id = conn.connection_id();
            conn.send_bytes(&framed(2, "1\n".repeat(70_000).as_bytes())).await.unwrap();
            drop(conn);
            let session =
                format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
            let is_gone = || async {
                let sessions: Option<i64> = server.query_first(&session).await?;
                Ok(sessions == Some(0))
            };
            wait_until("the session ends at the server", SOON, is_gone).await.unwrap();
            let rows: Option<i64> =
                server.query_first("SELECT COUNT(*) FROM c_left").await.unwrap();
            assert_eq!(rows, Some(0), "{legs:?}");
        }
    }
}

/// Sends the statement and reads the request for the file.
async fn asked_for_a_file(conn: &mut RawConn, table: &str) -> Vec<Packet> {
    let sql = format!("LOAD DATA LOCAL INFILE 'some/file' INTO TABLE {table}");
    let payload = conn.query_payload(sql.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
    let request = conn.read_packet().await.unwrap();
    assert_eq!(request.payload, b"\xfbsome/file");
    vec![request]
}
