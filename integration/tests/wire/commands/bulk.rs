//! MariaDB: many rows in one execution, statements prepared and executed in one go, reports of progress.

use std::net::SocketAddr;
use std::path::PathBuf;

use integration::raw::{COM_STMT_PREPARE, Login, Packet, Param, RawConn, Shape, Types, capability};
use integration::scenario::{Refused, Switch};
use integration::sluice::SluiceProcess;
use tokio::task::JoinSet;

use super::{Execute, Legs, MARIADB, config, next_answer, plain, same_in_both_styles, send_ahead};

#[tokio::test]
async fn many_rows_in_one_execution_are_stored_as_directly() {
    let servers = MARIADB.get().await.unwrap();
    let create = "CREATE OR REPLACE TABLE c_bulk (id INT PRIMARY KEY, v VARCHAR(20))";
    let login = Login::new("app").with_mariadb(capability::MARIADB_BULK);
    same_in_both_styles(servers, login, async |conn| {
        assert_ne!(conn.mariadb_capabilities() & capability::MARIADB_BULK, 0);
        let mut packets = conn.query(create).await.unwrap().packets;
        let id = conn.prepare("INSERT INTO c_bulk VALUES (?, ?)").await.unwrap().id;
        for rows in [
            vec![(1, Some("one")), (2, None), (3, Some("three"))],
            // A row that is there already, behind one that is not.
            vec![(4, Some("four")), (1, Some("again")), (5, None)],
        ] {
            packets.extend(bulk(conn, id, &rows).await);
        }
        let rows: Vec<(i32, Option<&str>)> =
            (100..5_000).map(|id| (id, Some("many of them"))).collect();
        packets.extend(bulk(conn, id, &rows).await);
        packets.extend(bulk(conn, LAST_PREPARED, &[(50, Some("the last"))]).await);
        packets.extend(bulk(conn, id.wrapping_add(999), &[(51, None)]).await.into_iter().map(
            |mut packet| {
                // The error names a statement that does not exist, by its number.
                packet.payload.truncate(3);
                packet
            },
        ));
        let all = "SELECT COUNT(*), MIN(id), MAX(id), COUNT(v), SUM(LENGTH(v)) FROM c_bulk";
        packets.extend(conn.query(all).await.unwrap().packets);
        packets
    })
    .await;
}

#[tokio::test]
async fn many_rows_that_were_refused_are_stored_by_a_retry_that_sends_no_types() {
    let servers = MARIADB.get().await.unwrap();
    let create = "CREATE TABLE c_retry (id INT PRIMARY KEY, v VARCHAR(20))";
    servers.primary.run_sql(&[create]).await.unwrap();
    let switch = Switch::new(&servers.primary, "c_switch").await.unwrap();
    let rules = "- { name: refused, gate: [c_switch], on_refused_check: reject, permanent: true }";
    let config = config(servers).signals(&switch.signal()).rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let login = Login::new("app").with_mariadb(capability::MARIADB_BULK);
    for legs in Legs::ALL {
        let mut conn = RawConn::open(sluice.listen_addr(), &legs.through(&login)).await.unwrap();
        conn.query("TRUNCATE TABLE c_retry").await.unwrap().accepted().unwrap();
        let id = conn.prepare("INSERT INTO c_retry VALUES (?, ?)").await.unwrap().id;
        switch.shut(&sluice).await.unwrap();
        let rows = [(1, Some("one")), (2, None)];
        for types in [Types::Sent, Types::Remembered] {
            let refused = conn.command(&payload(id, &rows, types), Shape::Query).await.unwrap();
            assert_eq!(Refused::of(&refused).unwrap().reason(), Some("gate_closed"), "{legs:?}");
        }
        switch.open(&sluice).await.unwrap();
        let again = payload(id, &rows, Types::Remembered);
        let stored = conn.command(&again, Shape::Query).await.unwrap();
        assert_eq!((stored.err(), stored.affected_rows()), (None, Some(2)), "{legs:?}");
        let sql = "SELECT GROUP_CONCAT(id, ':', COALESCE(v, 'NULL') ORDER BY id) FROM c_retry";
        let found: Option<String> = servers.primary.query_first(sql).await.unwrap();
        assert_eq!(found.as_deref(), Some("1:one,2:NULL"), "{legs:?}");
    }
}

#[tokio::test]
async fn a_statement_is_prepared_executed_and_closed_in_one_go() {
    let servers = MARIADB.get().await.unwrap();
    same_in_both_styles(servers, Login::new("app"), async |conn| {
        let mut packets = Vec::new();
        for (sql, params) in [
            ("SELECT ?, 'x'", &[Param::int(5)][..]),
            ("SELECT * FROM nowhere", &[]),
            ("DO ?", &[Param::text("5")]),
        ] {
            let execute = Execute { id: LAST_PREPARED, params, ..Execute::default() };
            let execute = execute.payload(conn.capabilities());
            let prepare = [&[COM_STMT_PREPARE], sql.as_bytes()].concat();
            let close = [0x19, 0xff, 0xff, 0xff, 0xff];
            send_ahead(conn, &[&prepare, &execute, &close]).await;
            let prepared = next_answer(conn, Shape::Prepare).await;
            // All but the statement's number, which counts for the whole server.
            packets.extend(prepared.packets.into_iter().map(|mut packet| {
                packet.payload.drain(..packet.payload.len().min(5));
                packet
            }));
            packets.extend(next_answer(conn, Shape::Query).await.packets);
        }
        packets.extend(conn.query("SELECT 'and on'").await.unwrap().packets);
        packets
    })
    .await;
}

#[tokio::test]
async fn reports_of_progress_reach_the_client_and_are_not_the_end() {
    let servers = MARIADB.get().await.unwrap();
    let file = servers.primary.dir().join("progress.txt");
    std::fs::write(&file, "1\n".repeat(26)).unwrap();
    let login = Login::new("admin").with_mariadb(capability::MARIADB_PROGRESS);
    let sluice = plain(servers).await;
    // It takes seconds, so all at once.
    let mut loading = JoinSet::new();
    for (number, legs) in Legs::ALL.into_iter().enumerate() {
        let ways = legs.both_ways(servers, sluice.listen_addr(), &login);
        for ((addr, login), way) in ways.into_iter().zip(["direct", "through"]) {
            let table = format!("c_progress_{number}_{way}");
            loading.spawn(reports_progress(addr, login, table, file.clone()));
        }
    }
    while let Some(loaded) = loading.join_next().await {
        loaded.unwrap();
    }
}

async fn reports_progress(addr: SocketAddr, login: Login, table: String, file: PathBuf) {
    let mut conn = RawConn::open(addr, &login).await.unwrap();
    let create = format!("CREATE TABLE {table} (n INT, s INT)");
    for sql in [create.as_str(), "SET progress_report_time = 1"] {
        assert_eq!(conn.query(sql).await.unwrap().err(), None);
    }
    let load =
        format!("LOAD DATA INFILE '{}' INTO TABLE {table} (n) SET s = SLEEP(0.1)", file.display());
    let loaded = conn.query(load).await.unwrap();
    let (end, reports) = loaded.packets.split_last().unwrap();
    assert_eq!(end.first(), Some(0), "{table}: {end:?}");
    assert!(!reports.is_empty(), "{table}: {loaded:?}");
    assert!(reports.iter().all(|report| report.payload.starts_with(b"\xff\xff\xff")));
    let rows = conn.query(format!("SELECT COUNT(*) FROM {table}")).await.unwrap();
    assert_eq!(rows.first_text().as_deref(), Some("26"), "{table}");
}

async fn bulk(conn: &mut RawConn, id: u32, rows: &[(i32, Option<&str>)]) -> Vec<Packet> {
    conn.command(&payload(id, rows, Types::Sent), Shape::Query).await.unwrap().packets
}

/// COM_STMT_BULK_EXECUTE of an INT and a VARCHAR; an indicator stands before each value.
fn payload(id: u32, rows: &[(i32, Option<&str>)], types: Types) -> Vec<u8> {
    let mut payload = vec![COM_STMT_BULK_EXECUTE];
    payload.extend_from_slice(&id.to_le_bytes());
    match types {
        Types::Sent => {
            payload.extend_from_slice(&SEND_TYPES_TO_SERVER.to_le_bytes());
            payload.extend_from_slice(&[0x03, 0, 0xfd, 0]);
        }
        Types::Remembered => payload.extend_from_slice(&[0, 0]),
    }
    for (number, text) in rows {
        payload.push(INDICATOR_NONE);
        payload.extend_from_slice(&number.to_le_bytes());
        match text {
            None => payload.push(INDICATOR_NULL),
            Some(text) => {
                payload.push(INDICATOR_NONE);
                payload.push(u8::try_from(text.len()).unwrap());
                payload.extend_from_slice(text.as_bytes());
            }
        }
    }
    payload
}

const COM_STMT_BULK_EXECUTE: u8 = 0xfa;
const SEND_TYPES_TO_SERVER: u16 = 128;
const INDICATOR_NONE: u8 = 0;
const INDICATOR_NULL: u8 = 1;
const LAST_PREPARED: u32 = u32::MAX;
