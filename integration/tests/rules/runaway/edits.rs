//! An edit of the file is for what runs already.

use std::time::{Duration, Instant};

use integration::raw::{Cursor, Execute};
use integration::scenario::{Refused, connect_as, wait_for_sum};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::task::JoinSet;

use super::uploads::LOAD;
use super::{ALONE, MANY_ROWS, MARIADB, MYSQL, configured};

/// Twenty seconds, and nine with rows of two kilobytes all along.
const LONG: &str = "SELECT SLEEP(20) FROM ran_away";
const ROWS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                    SELECT REPEAT('x', 2000), SLEEP(0.01) FROM n";
/// Longer than all of it takes that is to end.
const GOES_ON: &str = "SELECT SLEEP(4) FROM ran_away";

type Case = (&'static str, &'static str, &'static str, &'static str, bool);

/// By rule and app: the limits before, those after, the statement, and whether it is killed.
const CASES: [Case; 9] = [
    ("elapsed", "elapsed: 60s, action: kill", "elapsed: 1s, action: kill", LONG, true),
    ("rows", "rows_sent: 900, action: kill", "rows_sent: 20, action: kill", ROWS, true),
    ("bytes", "bytes_sent: 1GiB, action: kill", "bytes_sent: 9000, action: kill", ROWS, true),
    ("unlimited", "", "elapsed: 1s, action: kill", LONG, true),
    ("was_logged", "elapsed: 500ms", "elapsed: 500ms, action: kill", LONG, true),
    ("logged", "elapsed: 60s", "elapsed: 1s", GOES_ON, false),
    ("late", "elapsed: 60s, action: kill", LATE, GOES_ON, false),
    ("observed", "elapsed: 60s, action: kill", "elapsed: 1s, action: kill", GOES_ON, false),
    ("others", "elapsed: 60s, action: kill", "elapsed: 1s, action: kill", GOES_ON, false),
];
const LATE: &str = "elapsed: 1s, action: deprioritise, watch: { for: 1m }";

#[tokio::test]
async fn a_limit_that_an_edit_lowers_is_for_what_runs_and_only_for_what_it_is_about() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let config = configured(servers, &rules(|case| case.1)).await;
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut running = JoinSet::new();
        for (app, _, _, sql, _) in CASES {
            let mut conn = connect_as(&sluice, app).await.unwrap();
            running.spawn(async move {
                let answer = conn.query(sql).await.unwrap();
                (app, Instant::now(), answer.err().map(|(errno, _)| errno))
            });
        }
        wait_for_sum(&sluice, "sluice_runaway_total", &of("was_logged", "log"), 1.0).await.unwrap();
        tokio::time::sleep(Duration::from_millis(800)).await;
        let edited = rules(|case| case.2)
            .replace("app: others", "app: others, user: somebody")
            .replace("app: observed }", "app: observed }, mode: observe");
        sluice.write_config(&config.clone().rules(&edited).render()).unwrap();
        let edited_at = Instant::now();
        for (app, at, errno) in running.join_all().await {
            let is_killed = CASES.iter().any(|case| case.0 == app && case.4);
            assert_eq!(errno, is_killed.then_some(1317), "{app}");
            let took = at.saturating_duration_since(edited_at);
            // A second each for the file and the limit; the rest is what servers take for a KILL while many sleep,
            // and machines for everything.
            assert!(!is_killed || took < Duration::from_secs(6), "{app}: {took:?}");
        }
        for (app, action) in
            [("logged", "log"), ("observed", "log"), ("late", "deprioritise"), ("elapsed", "kill")]
        {
            wait_for_sum(&sluice, "sluice_runaway_total", &of(app, action), 1.0).await.unwrap();
        }
        let metrics = sluice.metrics().await.unwrap();
        assert_eq!(metrics.sum("sluice_runaway_total", &[("rule", "others")]), 0.0);
        assert_eq!(metrics.sum("sluice_runaway_total", &of("was_logged", "log")), 1.0, "told once");
        with_nobody_reading(servers).await;
        with_a_cursor(servers).await;
        with_a_file(servers).await;
    }
}

/// A rule for each case, with one of its limits.
fn rules(limits: impl Fn(&Case) -> &'static str) -> String {
    let rule = |case: &Case| {
        let (app, limits) = (case.0, limits(case));
        let runaway =
            if limits.is_empty() { String::new() } else { format!(", runaway: {{ {limits} }}") };
        format!(
            "- {{ name: {app}, match: {{ app: {app} }}, gate: none, permanent: true{runaway} }}\n"
        )
    };
    CASES.iter().map(rule).collect()
}

fn of(rule: &'static str, action: &'static str) -> [(&'static str, &'static str); 2] {
    [("rule", rule), ("action", action)]
}

const STALLS: &str = "- { name: stalls, match: { app: stalls }, gate: none, permanent: true, runaway: { elapsed: 60s, action: kill } }";

/// Its session waits for the client, and hears nothing meanwhile.
async fn with_nobody_reading(servers: &Topology) {
    let config = configured(servers, STALLS).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect_as(&sluice, "stalls").await.unwrap();
    let payload = conn.query_payload(MANY_ROWS.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    lower(&sluice, &config, &STALLS.replace("60s", "1s"));
    wait_for_sum(&sluice, "sluice_runaway_total", &of("stalls", "kill"), 1.0).await.unwrap();
}

const FETCHES: &str = "- { name: fetches, match: { app: fetches }, gate: none, permanent: true, runaway: { rows_sent: 900, action: kill } }";

async fn with_a_cursor(servers: &Topology) {
    let config = configured(servers, FETCHES).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect_as(&sluice, "fetches").await.unwrap();
    let statement = conn.prepare("SELECT n FROM ran_in").await.unwrap();
    let opens = Execute { id: statement.id, cursor: Cursor::ReadOnly, ..Execute::default() };
    conn.execute_as(&opens).await.unwrap().accepted().unwrap();
    conn.fetch(statement.id, 100).await.unwrap().accepted().unwrap();
    lower(&sluice, &config, &FETCHES.replace("900", "50"));
    let mut last = conn.fetch(statement.id, 1).await.unwrap();
    let edited_at = Instant::now();
    while last.err().is_none() && edited_at.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        last = conn.fetch(statement.id, 1).await.unwrap();
    }
    let refused = Refused::of(&last).unwrap();
    assert_eq!((refused.errno, refused.part("limit")), (1317, Some("rows_sent")));
}

const LOADS: &str = "- { name: loads, match: { app: loads }, gate: none, permanent: true, runaway: { elapsed: 60s, action: kill } }";

/// Its session waits for the server to take more of a file.
async fn with_a_file(servers: &Topology) {
    let config = configured(servers, LOADS).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect_as(&sluice, "loads").await.unwrap();
    conn.set_read_limit(Duration::from_secs(60));
    conn.queue_infile([&b"x".repeat(1_000)[..], b"\n"].concat().repeat(30_000));
    let loads = tokio::spawn(async move { conn.query(LOAD).await.unwrap().err() });
    tokio::time::sleep(Duration::from_secs(2)).await;
    lower(&sluice, &config, &LOADS.replace("60s", "1s"));
    let edited_at = Instant::now();
    assert_eq!(loads.await.unwrap().map(|(errno, _)| errno), Some(1317));
    assert!(edited_at.elapsed() < Duration::from_secs(8), "{:?}", edited_at.elapsed());
}

fn lower(sluice: &SluiceProcess, config: &Config, rules: &str) {
    sluice.write_config(&config.clone().rules(rules).render()).unwrap();
}
