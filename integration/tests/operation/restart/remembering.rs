//! What one process has seen, and the next one knows.

use serde_json::Value;

use super::waiting::wait_until_it_drains;
use super::*;

fn state_config(servers: &Topology, dir: &Dir) -> Config {
    let mut config = takeover_config(servers, dir);
    config.top = format!("{}\nstate_dir: {}", config.top, dir.0.join("state").display());
    config
}

async fn ask(sluice: &SluiceProcess, path: &str) -> Value {
    let answer = sluice.http_get(path).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// Executions of one digest, once there are so many.
async fn counted(sluice: &SluiceProcess, window: &str, wanted: u64) {
    let path = format!("/api/v1/insights?by=digest&app=etl&window={window}");
    let started = Instant::now();
    loop {
        let answer = ask(sluice, &path).await;
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["digest_text"] == "SELECT ? + ?");
        let count = row.map_or(0, |row| row["count"].as_u64().unwrap());
        if count == wanted {
            assert_eq!(row.map(|row| &row["classes"]), Some(&Value::Null), "{answer}");
            assert_eq!(row.unwrap()["class"], "read");
            return;
        }
        assert!(started.elapsed() < SOON, "{count} for {wanted}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn select(sluice: &SluiceProcess, times: u64) {
    let mut etl = connect(sluice, "etl").await.unwrap();
    for n in 0..times {
        etl.query(format!("SELECT {n} + 1")).await.unwrap().accepted().unwrap();
    }
}

async fn end(sluice: &mut SluiceProcess) {
    sluice.signal("TERM").unwrap();
    assert!(sluice.ended(SOON).await.unwrap().success());
}

#[tokio::test]
async fn what_insights_have_counted_is_there_after_a_restart_and_a_takeover() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("remembered");
    let config = state_config(servers, &dir);
    let mut first = start(&config, &[]).await;
    select(&first, 5).await;
    counted(&first, "1h", 5).await;
    end(&mut first).await;
    let mut second = start(&config, &[]).await;
    counted(&second, "1h", 5).await;
    counted(&second, "24h", 5).await;
    let apps = ask(&second, "/api/v1/insights?window=1h").await["apps"].clone();
    let mut etl = apps.as_array().unwrap().iter().filter(|app| app["app"] == "etl");
    assert!(etl.next().is_some_and(|app| app["concurrency_max"] == 1.0), "at once: {apps}");
    select(&second, 3).await;
    let mut open = connect(&second, "web").await.unwrap();
    open.query("BEGIN").await.unwrap().accepted().unwrap();
    let mut third = start(&config, &["--takeover"]).await;
    // Until then it may be the one that accepts.
    wait_until_it_drains(&second).await;
    select(&third, 2).await;
    counted(&third, "1h", 7).await;
    open.query("COMMIT").await.unwrap().accepted().unwrap();
    assert!(second.ended(SOON).await.unwrap().success());
    counted(&third, "1h", 10).await;
    counted(&third, "24h", 10).await;
    end(&mut third).await;
    let mut fourth = start(&config, &[]).await;
    counted(&fourth, "24h", 10).await;
    end(&mut fourth).await;
}

#[tokio::test]
async fn what_is_in_quarantine_or_too_costly_is_so_over_a_restart_and_a_crash() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("quarantined");
    let mut config = state_config(servers, &dir).rules(
        "- { name: slow, match: { app: etl }, gate: none, permanent: true, \
         runaway: { elapsed: 500ms, action: kill, watch: { by: digest, for: 10m } } }",
    );
    config
        .top
        .push_str("\nbudgets:\n  - { name: dear, match: { app: web }, max_query_cost: 300ms }");
    let mut running = start(&config, &[]).await;
    let mut etl = connect(&running, "etl").await.unwrap();
    etl.query("SELECT SLEEP(7)").await.unwrap();
    let before = ask(&running, "/api/v1/quarantine").await["quarantine"].clone();
    assert_eq!(before.as_array().unwrap().len(), 1, "{before}");
    let mut web = connect(&running, "web").await.unwrap();
    web.query("SELECT SLEEP(0.5) AS dear").await.unwrap().accepted().unwrap();
    web.query("SELECT SLEEP(0.1) AS cheap").await.unwrap().accepted().unwrap();
    // As long as a crash may lose it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for signal in ["KILL", "TERM"] {
        running.signal(signal).unwrap();
        running.ended(SOON).await.unwrap();
        running = start(&config, &[]).await;
        let now = ask(&running, "/api/v1/quarantine").await["quarantine"].clone();
        for field in ["id", "rule", "by", "hash", "action", "app"] {
            assert_eq!(now[0][field], before[0][field], "{signal}: {now} behind {before}");
        }
        let left = |shown: &Value| shown[0]["left_s"].as_i64().unwrap();
        assert!((540..=left(&before)).contains(&left(&now)), "{now} behind {before}");
        let mut etl = connect(&running, "etl").await.unwrap();
        let (errno, message) = etl.query("SELECT SLEEP(8)").await.unwrap().err().unwrap();
        assert!(errno == 1226 && message.contains("reason=quarantined"), "{errno} {message}");
        let mut web = connect(&running, "web").await.unwrap();
        web.query("SELECT SLEEP(0.1) AS cheap").await.unwrap().accepted().unwrap();
        let (errno, message) = web.query("SELECT SLEEP(0.5) AS dear").await.unwrap().err().unwrap();
        assert!(errno == 1226 && message.contains("reason=budget_query"), "{errno} {message}");
    }
    end(&mut running).await;
}
