//! A server works on a file while that comes.

use std::time::{Duration, Instant};

use integration::raw::{COM_QUERY, Shape, framed};
use integration::scenario::{connect_as, wait_for_sum};

use super::{ALONE, MARIADB, MYSQL, started};

const RULES: &str = "- { name: loads, match: { app: loads }, gate: none, permanent: true, runaway: { elapsed: 500ms, action: kill } }";
pub(crate) const LOAD: &str =
    "LOAD DATA LOCAL INFILE 'f' INTO TABLE ran_to (@a) SET n = SLEEP(0.001)";

/// Nothing was looked at until the file was through. And the time for which the server had waited for the
/// client counted: whoever took longer than that over its file was killed.
#[tokio::test]
async fn an_upload_that_keeps_the_server_busy_runs_away_before_its_end() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, RULES).await;
        let mut conn = connect_as(&sluice, "loads").await.unwrap();
        conn.set_read_limit(Duration::from_secs(60));
        // Half a minute of work and more, and some times what lies between client and server.
        let line = [&b"x".repeat(1_000)[..], b"\n"].concat();
        conn.queue_infile(line.repeat(30_000));
        let began = Instant::now();
        let answer = conn.query(LOAD).await.unwrap();
        let took = began.elapsed();
        assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "{took:?}: {answer:?}");
        assert!(took < Duration::from_secs(20), "{took:?}");
        let counted = [("rule", "loads"), ("action", "kill")];
        wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();
        let load = [&[COM_QUERY], LOAD.as_bytes()].concat();
        conn.send_command(&load).await.unwrap();
        assert_eq!(conn.read_packet().await.unwrap().first(), Some(0xfb));
        tokio::time::sleep(Duration::from_millis(700)).await;
        conn.send_bytes(&[framed(2, &b"x\n".repeat(100)), framed(3, b"")].concat()).await.unwrap();
        conn.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    }
}
