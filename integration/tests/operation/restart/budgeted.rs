//! What budgets know of the processes before.

use integration::scenario::{Pending, wait_for_sum};

use super::waiting::wait_until_it_drains;
use super::*;

fn budgeted(servers: &Topology, dir: &Dir, limits: &str) -> Config {
    let mut config = takeover_config(servers, dir);
    let budget = format!("- {{ name: few, match: {{ app: etl }}, {limits} }}");
    config.top = format!("{}\nbudgets:\n  {budget}", config.top);
    config
}

async fn in_use(sluice: &SluiceProcess, places: f64) {
    let shown = || wait_for_sum(sluice, "sluice_budget_in_use", &[("budget", "few")], places);
    // The process before may have accepted who asks, and close.
    if shown().await.is_err() {
        shown().await.unwrap();
    }
}

async fn asks(sluice: &SluiceProcess, sql: impl AsRef<[u8]>) -> Pending {
    Pending::query(connect(sluice, "etl").await.unwrap(), sql)
}

/// A third process let two more through, while the first still had its two.
#[tokio::test]
async fn over_takeovers_a_budget_counts_what_the_processes_before_have_at_the_server() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("budgeted");
    let config = budgeted(servers, &dir, "max_concurrency: 2");
    let mut first = start(&config, &[]).await;
    let mut before = Vec::new();
    for seconds in [6, 7] {
        before.push(asks(&first, format!("SELECT SLEEP({seconds}) /* few */")).await);
    }
    in_use(&first, 2.0).await;
    let mut second = start(&config, &["--takeover"]).await;
    wait_until_it_drains(&first).await;
    in_use(&second, 2.0).await;
    let third = start(&config, &["--takeover"]).await;
    wait_until_it_drains(&second).await;
    in_use(&third, 2.0).await;
    let mut behind = Vec::new();
    for _ in 0..4 {
        behind.push(asks(&third, "SELECT SLEEP(0.3) /* few */").await);
    }
    let there = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                 WHERE INFO LIKE '%SLEEP(%/* few */'";
    let mut most = 0;
    while behind.iter().any(|one| !one.is_answered()) {
        // A server shows a statement for a moment behind its answer, but not in two looks.
        let looks: u32 = servers.primary.query_first(there).await.unwrap().unwrap();
        let again: u32 = servers.primary.query_first(there).await.unwrap().unwrap();
        most = most.max(looks.min(again));
    }
    assert_eq!(most, 2, "of all processes");
    for pending in before.into_iter().chain(behind) {
        pending.answered(SOON).await.unwrap().response.accepted().unwrap();
    }
    for old in [&mut first, &mut second] {
        assert!(old.ended(SOON).await.unwrap().success());
    }
    in_use(&third, 0.0).await;
}

/// The place of a statement whose session was gone went with the process.
#[tokio::test]
async fn over_a_takeover_a_place_is_kept_for_what_the_server_does_without_a_session() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("left");
    let mut config = budgeted(servers, &dir, "max_concurrency: 1, max_delay: 110s");
    // However slow the machine is.
    config.top = format!("drain_timeout: 110s\n{}", config.top);
    let mut old = start(&config, &[]).await;
    let etl = connect(&old, "etl").await.unwrap();
    let id = etl.connection_id();
    // For seconds it does not look whether anybody wants that.
    let busy = ", SHA2(REPEAT('x', 15000000), 512)".repeat(100);
    let killed = Pending::query(etl, format!("SELECT 1{busy}"));
    in_use(&old, 1.0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    servers.primary.run_sql(&[&format!("KILL {id}")]).await.unwrap();
    wait_for_sum(&old, "sluice_budget_left_behind", &[], 1.0).await.unwrap();
    let next = start(&config, &["--takeover"]).await;
    wait_until_it_drains(&old).await;
    in_use(&next, 1.0).await;
    let behind = asks(&next, "SELECT 7").await;
    let shown = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
    loop {
        let is_answered = behind.is_answered();
        if servers.primary.query_first(&shown).await.unwrap() == Some(0) {
            break;
        }
        assert!(!is_answered, "two at the server");
    }
    behind.answered(SOON).await.unwrap().response.accepted().unwrap();
    drop(killed);
    assert!(old.ended(SOON).await.unwrap().success());
}

/// What was under way cost nothing, and whatever was refused for what it costs ran once more.
#[tokio::test]
async fn over_a_takeover_what_was_under_way_is_owed_and_what_digests_cost_is_known() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("owed");
    let mut config = budgeted(servers, &dir, "share: 0.1, burst: 1s, on_exceeded: refuse");
    config.top.push_str("\n  - { name: dear, match: { app: web }, max_query_cost: 300ms }");
    let mut old = start(&config, &[]).await;
    let mut under_way = Vec::new();
    for seconds in [3, 4] {
        under_way.push(asks(&old, format!("SELECT SLEEP({seconds})")).await);
    }
    in_use(&old, 2.0).await;
    let mut web = connect(&old, "web").await.unwrap();
    web.query("SELECT SLEEP(0.5) AS dear").await.unwrap().accepted().unwrap();
    let next = start(&config, &["--takeover"]).await;
    wait_until_it_drains(&old).await;
    in_use(&next, 2.0).await;
    for pending in under_way {
        pending.answered(SOON).await.unwrap().response.accepted().unwrap();
    }
    drop(web);
    assert!(old.ended(SOON).await.unwrap().success());
    in_use(&next, 0.0).await;
    let asked = [
        ("etl", "SELECT SLEEP(0.1)", "budget_share"),
        ("web", "SELECT SLEEP(0.5) AS dear", "budget_query"),
    ];
    for (user, sql, reason) in asked {
        let mut conn = connect(&next, user).await.unwrap();
        let (_, message) = conn.query(sql).await.unwrap().err().unwrap();
        assert!(message.contains(&format!("reason={reason}")), "{message}");
    }
}
