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
    let few = [("budget", "few")];
    wait_for_sum(sluice, "sluice_budget_in_use", &few, places).await.unwrap();
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
    let config = budgeted(servers, &dir, "max_concurrency: 1");
    let mut old = start(&config, &[]).await;
    let etl = connect(&old, "etl").await.unwrap();
    let id = etl.connection_id();
    // For seconds it does not look whether anybody wants that.
    let busy = ", SHA2(REPEAT('x', 15000000), 512)".repeat(150);
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
    assert!(old.ended(SOON).await.unwrap().success());
    drop(killed);
}
