//! `speed`: a session at a part of its own speed, against the same session without.

use std::time::{Duration, Instant};

use integration::raw::RawConn;
use integration::scenario::{Refused, connect_as, is, wait_for_sum};
use integration::sluice::{Config, SluiceProcess};

use super::{MYSQL, made};

const RULES: &str = "\
- { name: half, match: { app: half }, speed: 0.5, gate: none, permanent: true }
- { name: rest, gate: none, permanent: true }";

/// Takes the server 20 ms and what an INSERT takes.
const WORK: &str = "INSERT INTO k_speed SELECT SLEEP(0.02)";

const RUN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_session_with_half_its_speed_does_about_half() {
    let servers = MYSQL.get().await.unwrap();
    made(servers, "k_speed").await;
    let config = Config::new(servers).unwrap().rules(RULES);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let (half, full) = tokio::join!(work(&sluice, "half"), work(&sluice, "full"));
    let share = half / full;
    assert!((0.35..0.65).contains(&share), "{half} of {full}");
    let all = [("rule", "half"), ("class", "write")];
    wait_for_sum(&sluice, "sluice_statements_total", &all, half).await.unwrap();
    let so_far = paced(&sluice).await;
    // Not the first, and none for which a timer that was late has paid.
    assert!(so_far > half / 3.0 && so_far < half, "{so_far} of {half} were paused");

    // A transaction is not paused inside, but what follows it is.
    let mut conn = connect_as(&sluice, "half").await.unwrap();
    for sql in ["BEGIN", WORK, WORK, WORK, "COMMIT", WORK] {
        assert_eq!(Refused::of(&conn.query(sql).await.unwrap()), None);
    }
    wait_for_sum(&sluice, "sluice_statements_total", &all, half + 4.0).await.unwrap();
    assert!(is(paced(&sluice).await, so_far + 1.0), "{} of {so_far}", paced(&sluice).await);
}

/// How many statements were paused.
async fn paced(sluice: &SluiceProcess) -> f64 {
    let labels = [("rule", "half"), ("decision", "admitted"), ("reason", "paced")];
    sluice.metrics().await.unwrap().sum("sluice_statements_total", &labels)
}

/// How many statements a session gets done.
async fn work(sluice: &SluiceProcess, app: &str) -> f64 {
    let mut conn: RawConn = connect_as(sluice, app).await.unwrap();
    let since = Instant::now();
    let mut done = 0.0;
    while since.elapsed() < RUN {
        assert_eq!(Refused::of(&conn.query(WORK).await.unwrap()), None);
        done += 1.0;
    }
    done
}
