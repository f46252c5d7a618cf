//! Peers that die, stall, dawdle or come in crowds: nothing leaks, memory stays flat, and every client gets
//! an answer or a closed socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::error::Result;
use integration::footprint::Footprint;
use integration::raw::{COM_QUERY, Login, RawConn};
use integration::scenario::{Shared, connect, numbers, wait_for_sum, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crowd::Crowd;

mod crowd;
mod idle;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

const SOON: Duration = Duration::from_secs(15);

/// What a process may grow by while megabytes stand still in front of it: two buffers at their largest,
/// what an allocator keeps, and what is noted of statements beside them (insights, history).
const GROWTH_KIB_MAX: u64 = 4 * 1024;

/// What an idle client may cost, whatever it has done.
const CLIENT_KIB: u64 = 10;

/// Rows of a million bytes: 200 MiB.
const ROWS: usize = 210;
const BIG_RESULT: &str = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 210) \
                          SELECT REPEAT('x', 1000000) FROM n";

#[tokio::test]
async fn a_reader_of_one_byte_a_second_costs_no_memory_and_gets_all_of_its_result() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        let mut web = connect(&sluice, "web").await.unwrap();
        web.query("SELECT 1").await.unwrap().accepted().unwrap();
        let before = Footprint::of(&sluice).unwrap();
        let query = web.query_payload(BIG_RESULT.as_bytes(), &[]);
        web.send_command(&query).await.unwrap();
        let mut first = Vec::new();
        for _ in 0..5 {
            first.push(web.stream().read_u8().await.unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
            is_flat(&sluice, before);
        }
        assert_eq!(first, [1, 0, 0, 1, 1], "one column");
        let mut rows = 0;
        while rows < ROWS {
            let packet = web.read_packet().await.unwrap();
            rows += usize::from(packet.payload.len() > 1_000_000);
        }
        web.read_packet().await.unwrap();
        is_flat(&sluice, before);
        web.query("SELECT 1").await.unwrap().accepted().unwrap();
    }
}

#[tokio::test]
async fn an_upload_to_a_server_that_stands_still_costs_no_memory_and_arrives() {
    let servers = Topology::mariadb(0).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    web.query("SELECT 1").await.unwrap().accepted().unwrap();
    let before = Footprint::of(&sluice).unwrap();
    servers.primary.freeze().unwrap();
    let upload = tokio::spawn(async move {
        let sql = format!("SELECT LENGTH('{}')", "x".repeat(UPLOAD_LEN));
        web.query(sql).await.unwrap().accepted().unwrap().first_text()
    });
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        is_flat(&sluice, before);
    }
    assert!(!upload.is_finished(), "nobody has read it");
    servers.primary.thaw().unwrap();
    assert_eq!(upload.await.unwrap(), Some(UPLOAD_LEN.to_string()));
    is_flat(&sluice, before);
}

/// Three packets of 16 MiB, below the server's max_allowed_packet.
const UPLOAD_LEN: usize = 48_000_000;

#[tokio::test]
async fn a_server_killed_in_the_middle_of_a_result_ends_its_clients_and_leaves_nothing() {
    let mut servers = Topology::mariadb(0).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut web = connect(&sluice, "web").await.unwrap();
        let query = web.query_payload(BIG_RESULT.as_bytes(), &[]);
        web.send_command(&query).await.unwrap();
        web.read_packet().await.unwrap();
        clients.push(web);
    }
    servers.primary.crash();
    for mut web in clients {
        let rest = tokio::time::timeout(SOON, web.read_to_end()).await;
        assert!(rest.is_ok(), "a client hangs");
    }
    nothing_is_left(&sluice, before).await;
    // Who comes now is told; who comes when the server is back is served.
    let mut late = RawConn::connect(sluice.listen_addr()).await.unwrap();
    let (errno, message) = late.read_packet().await.unwrap().err().unwrap();
    assert!(errno == 1053 && message.contains("[sluice] cannot connect"), "{errno} {message}");
    servers.primary.revive().await.unwrap();
    connect(&sluice, "web").await.unwrap().query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn a_client_killed_in_the_middle_of_an_upload_leaves_nothing() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    for resets in [false, true] {
        let mut web = connect(&sluice, "web").await.unwrap();
        // The head of a packet of 8 MB, and half of it.
        let mut packet = vec![0x00, 0x00, 0x80, 0x00, COM_QUERY];
        packet.extend_from_slice(b"SELECT '");
        packet.resize(4_000_000, b'x');
        web.send_bytes(&packet).await.unwrap();
        if resets {
            web.stream().set_zero_linger().unwrap();
        }
    }
    nothing_is_left(&sluice, before).await;
    let open = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'web'";
    let gone = || async { Ok(numbers(&servers.primary, open).await? == [0]) };
    wait_until("the server has let them go", SOON, gone).await.unwrap();
}

#[tokio::test]
async fn a_client_that_shuts_one_half_while_idle_is_closed() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    let mut direct = RawConn::open(servers.primary.addr(), &Login::new("web")).await.unwrap();
    web.stream().shutdown().await.unwrap();
    direct.stream().shutdown().await.unwrap();
    // MySQL says that it cannot read any more.
    let said = direct.read_to_end().await.unwrap();
    assert_eq!(web.read_to_end().await.unwrap(), said);
    // And one that shuts it before it has logged in.
    let mut new = RawConn::connect(sluice.listen_addr()).await.unwrap();
    new.read_packet().await.unwrap();
    new.stream().shutdown().await.unwrap();
    new.read_to_end().await.unwrap();
    nothing_is_left(&sluice, before).await;
}

#[tokio::test]
async fn clients_that_leave_a_server_that_stands_still_are_forgotten_when_it_goes_on() {
    let servers = Topology::mariadb(0).await.unwrap();
    let config = Config::new(&servers).unwrap().cluster("connect_timeout: 1s");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    let mut running = connect(&sluice, "web").await.unwrap();
    let idle = connect(&sluice, "web").await.unwrap();
    servers.primary.freeze().unwrap();
    let query = running.query_payload(b"DO 1", &[]);
    running.send_command(&query).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop((running, idle));
    // Who comes meanwhile is told in time.
    let mut new = RawConn::connect(sluice.listen_addr()).await.unwrap();
    let (errno, message) = new.read_packet().await.unwrap().err().unwrap();
    assert!(errno == 1053 && message.contains("no answer within 1s"), "{errno} {message}");
    // The statement may still run, so its place is kept.
    wait_for_sum(&sluice, "sluice_client_connections", &[], 1.0).await.unwrap();
    servers.primary.thaw().unwrap();
    nothing_is_left(&sluice, before).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_ended_by_the_user_timeout() {
    let servers = MARIADB.get().await.unwrap();
    let config = Config::new(servers).unwrap().cluster("keepalive: { user_timeout: 2s }");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    let query = web.query_payload(BIG_RESULT.as_bytes(), &[]);
    web.send_command(&query).await.unwrap();
    nothing_is_left(&sluice, before).await;
    drop(web);
}

#[tokio::test]
async fn a_minute_of_two_hundred_clients_a_second_leaves_nothing() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap().rules(crowd::RULES);
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let fresh = Footprint::of(&sluice).unwrap();
    let early = Crowd::visit(&sluice, PER_SECOND, 3).await;
    nothing_is_left(&sluice, fresh).await;
    let before = Footprint::of(&sluice).unwrap();
    let crowd = Crowd::visit(&sluice, PER_SECOND, 60).await;
    assert_eq!([early.failures, crowd.failures].concat(), Vec::<String>::new());
    nothing_is_left(&sluice, before).await;
    let after = Footprint::of(&sluice).unwrap();
    let at_once = u64::try_from(crowd.descriptors_max - before.descriptors).unwrap() / 2;
    let grown_kib = after.rss_kib.saturating_sub(before.rss_kib);
    eprintln!("grown by {grown_kib} KiB, {at_once} clients at once");
    // An allocator may keep what the most clients at once have needed.
    assert!(grown_kib < GROWTH_KIB_MAX + at_once * CLIENT_KIB, "grown by {grown_kib} KiB");

    // Every statement was counted once, and nobody is left who would be waited for at the end.
    let statements = "sluice_statements_total";
    let passed = f64::from(early.served + crowd.served + early.refused + crowd.refused);
    wait_for_sum(&sluice, statements, &[("decision", "admitted")], passed).await.unwrap();
    let refused = f64::from(early.refused + crowd.refused);
    wait_for_sum(&sluice, statements, &[("decision", "rejected")], refused).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    let gone = metrics.sum(statements, &[("decision", "client_gone")]);
    let left = f64::from(early.left_waiting + crowd.left_waiting);
    assert!(gone > left / 2.0 && gone <= left, "{gone} of {left} had waited");
    let ends = Instant::now();
    assert!(sluice.stop(SOON).await.unwrap().success());
    assert!(ends.elapsed() < Duration::from_secs(5), "it waited for somebody");
    let open = "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('ddl', 'etl')";
    let gone = || async { Ok(numbers(&servers.primary, open).await? == [0]) };
    wait_until("the server has let them go", SOON, gone).await.unwrap();
}

const PER_SECOND: u32 = 200;

async fn once(sluice: &SluiceProcess) -> Result<()> {
    let mut conn = connect(sluice, "web").await?;
    conn.query("SELECT 1").await?.accepted()?;
    conn.quit().await
}

fn is_flat(sluice: &SluiceProcess, before: Footprint) {
    let grown_kib = Footprint::of(sluice).unwrap().rss_kib.saturating_sub(before.rss_kib);
    assert!(grown_kib < GROWTH_KIB_MAX, "grown by {grown_kib} KiB");
}

/// No client, nobody waiting, and no descriptor more than before.
async fn nothing_is_left(sluice: &SluiceProcess, before: Footprint) {
    wait_for_sum(sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    wait_for_sum(sluice, "sluice_queue_depth", &[], 0.0).await.unwrap();
    before.wait_for_descriptors(sluice, SOON).await.unwrap();
    assert!(!sluice.log().unwrap().contains("panicked"));
}
