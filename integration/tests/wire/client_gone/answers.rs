//! A client dies in the middle of an answer. The server works on for nobody only where a statement holds a place that
//! was admitted, and not for ever.

use std::time::{Duration, Instant};

use integration::error::Result;
use integration::footprint::Footprint;
use integration::raw::{COM_QUIT, Dump, RawConn};
use integration::scenario::{connect, is, numbers, wait_for_sum, wait_until};
use integration::server::{Flavour, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{Leaves, MARIADB, MYSQL, SOON, both};

/// 63 MB in rows of 300 kB, five a second: without Sluice a server notices at the next one that nobody reads.
const SLOW_RESULT: &str = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 210) \
                           SELECT REPEAT('x', 300000), SLEEP(0.2) FROM n";

/// 210 MB as fast as they are read.
const FAST_RESULT: &str = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 210) \
                           SELECT REPEAT('x', 1000000) FROM n";

/// What is under way when the client dies: the buffers of four sockets and of Sluice.
const UNDER_WAY: i64 = 60_000_000;

#[tokio::test]
async fn a_statement_that_was_not_asked_for_ends_when_its_client_dies_within_its_answer() {
    for servers in both().await {
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        let before = Footprint::of(&sluice).unwrap();
        for (leaves, statements) in [(Leaves::Closes, 1.0), (Leaves::Resets, 2.0)] {
            let mut web = reading(&sluice, SLOW_RESULT).await;
            // Its first row: the rest is slow to come.
            web.read_packet().await.unwrap();
            let id = web.connection_id();
            leaves.act(web).await;
            is_gone(&servers.primary, id).await;
            nothing_is_left(&sluice, before).await;
            counted(&sluice, statements).await;
        }
    }
}

#[tokio::test]
async fn a_long_result_is_not_read_for_a_client_that_has_died() {
    for servers in both().await {
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        let before = Footprint::of(&sluice).unwrap();
        for (leaves, statements) in [(Leaves::Closes, 1.0), (Leaves::Resets, 2.0)] {
            let sent = bytes_sent(&servers.primary).await;
            let web = reading(&sluice, FAST_RESULT).await;
            let id = web.connection_id();
            leaves.act(web).await;
            is_gone(&servers.primary, id).await;
            let sent = bytes_sent(&servers.primary).await - sent;
            assert!(sent < UNDER_WAY, "{leaves:?}: {sent} bytes");
            nothing_is_left(&sluice, before).await;
            counted(&sluice, statements).await;
        }
    }
}

#[tokio::test]
async fn the_answer_to_an_admitted_statement_is_awaited_for_half_a_minute_on_mysql() {
    is_awaited_for_half_a_minute(MYSQL.get().await.unwrap()).await;
}

#[tokio::test]
async fn the_answer_to_an_admitted_statement_is_awaited_for_half_a_minute_on_mariadb() {
    is_awaited_for_half_a_minute(MARIADB.get().await.unwrap()).await;
}

/// The first statement is gated and holds its place until the text is over; the second one is what takes time.
async fn is_awaited_for_half_a_minute(servers: &Topology) {
    let create = "CREATE TABLE g_abandoned (n INT PRIMARY KEY)";
    servers.primary.run_sql(&[create]).await.unwrap();
    let rules = "- { name: writes, statements: [write], permanent: true }\n\
                 - { name: everything, gate: none, permanent: true }";
    let config = Config::new(servers).unwrap().rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    let text = format!("INSERT INTO g_abandoned VALUES (1); {SLOW_RESULT}");
    let mut web = reading(&sluice, &text).await;
    web.read_packet().await.unwrap();
    let id = web.connection_id();
    Leaves::Resets.act(web).await;
    let left = Instant::now();
    let gone = || async { Ok(sessions(&servers.primary, id).await? == 0) };
    wait_until("the server has ended it", 3 * SOON, gone).await.unwrap();
    let took = left.elapsed();
    assert!(took > Duration::from_secs(20) && took < Duration::from_secs(40), "{took:?}");
    nothing_is_left(&sluice, before).await;
    counted(&sluice, 1.0).await;
}

#[tokio::test]
async fn a_stream_of_events_ends_when_its_replica_dies() {
    for (servers, server_id) in both().await.into_iter().zip([501, 502]) {
        // A place that is not given back would keep the next one out.
        let config = Config::new(servers).unwrap().cluster("max_connections: 1");
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let before = Footprint::of(&sluice).unwrap();
        let dump = Dump::of_newest(&servers.primary, server_id, false).await.unwrap();
        let mut payloads = vec![dump.payload()];
        if servers.primary.flavour() == Flavour::MySql {
            payloads.push(dump.gtid_payload());
        }
        for payload in payloads {
            for (leaves, last_word) in WAYS {
                let mut replica = connect(&sluice, "ddl").await.unwrap();
                replica.prepare_dump().await.unwrap();
                replica.send_command(&payload).await.unwrap();
                replica.read_to_heartbeat().await.unwrap();
                let id = replica.connection_id();
                assert_eq!(sessions(&servers.primary, id).await.unwrap(), 1);
                leave(replica, leaves, last_word).await;
                nothing_is_left(&sluice, before).await;
                is_gone(&servers.primary, id).await;
            }
        }
    }
}

/// With and without a library's last word, which nobody reads during a stream.
const WAYS: [(Leaves, Option<u8>); 4] = [
    (Leaves::Closes, None),
    (Leaves::Closes, Some(COM_QUIT)),
    (Leaves::Resets, None),
    (Leaves::Resets, Some(COM_QUIT)),
];

async fn leave(mut replica: RawConn, leaves: Leaves, last_word: Option<u8>) {
    if let Some(command) = last_word {
        replica.send_command(&[command]).await.unwrap();
    }
    leaves.act(replica).await;
}

/// Without heartbeats a stream may say nothing for hours.
#[tokio::test]
async fn a_silent_stream_of_events_ends_when_its_replica_dies() {
    for (servers, server_id) in both().await.into_iter().zip([503, 504]) {
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        let before = Footprint::of(&sluice).unwrap();
        let dump = Dump::of_newest(&servers.primary, server_id, false).await.unwrap();
        for (leaves, last_word) in WAYS {
            let mut replica = connect(&sluice, "ddl").await.unwrap();
            replica.prepare_dump().await.unwrap();
            let silent = "SET @master_heartbeat_period = 0, @source_heartbeat_period = 0";
            replica.query(silent).await.unwrap().accepted().unwrap();
            replica.send_command(&dump.payload()).await.unwrap();
            assert!(replica.read_packet().await.unwrap().event_type().is_some());
            leave(replica, leaves, last_word).await;
            nothing_is_left(&sluice, before).await;
        }
    }
}

/// A client that has sent a statement and read the beginning of its answer.
async fn reading(sluice: &SluiceProcess, sql: &str) -> RawConn {
    let mut web = connect(sluice, "web").await.unwrap();
    let payload = web.query_payload(sql.as_bytes(), &[]);
    web.send_command(&payload).await.unwrap();
    let first = web.read_packet().await.unwrap();
    assert_eq!(first.err(), None);
    web
}

/// Within seconds: the server looks at its client when it sends.
async fn is_gone(server: &Server, id: u32) {
    let gone = || async { Ok(sessions(server, id).await? == 0) };
    wait_until("the server has ended it", SOON, gone).await.unwrap();
}

async fn sessions(server: &Server, id: u32) -> Result<i64> {
    let count = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    Ok(numbers(server, &count).await?.into_iter().sum())
}

/// What the server has sent to all of its clients.
async fn bytes_sent(server: &Server) -> i64 {
    let row: Option<(String, i64)> =
        server.query_first("SHOW GLOBAL STATUS LIKE 'Bytes_sent'").await.unwrap();
    row.map_or(0, |(_, sent)| sent)
}

/// No client, and no descriptor more than before.
async fn nothing_is_left(sluice: &SluiceProcess, before: Footprint) {
    wait_for_sum(sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    before.wait_for_descriptors(sluice, SOON).await.unwrap();
    assert!(!sluice.log().unwrap().contains("panicked"));
}

/// So many statements by now, and no more than that: a connection is over when this is asked.
async fn counted(sluice: &SluiceProcess, statements: f64) {
    let metrics = sluice.metrics().await.unwrap();
    let counted = metrics.sum("sluice_statements_total", &[]);
    assert!(is(counted, statements), "{counted} statements, not {statements}");
}
