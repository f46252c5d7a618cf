//! The line in which stands what comes last.

use integration::scenario::Pending;

use super::*;

/// Those that came then went ahead, and who stood in the line stayed there.
#[tokio::test]
async fn who_stands_in_a_line_waits_no_longer_than_that_is_there() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: late, match: { app: late }, gate: none, permanent: true, runaway: { elapsed: 200ms, action: deprioritise, watch: { for: 3s } } }";
    let sluice = started(servers, rules).await;
    let mut caught = connect_as(&sluice, "late").await.unwrap();
    let first = connect_as(&sluice, "late").await.unwrap();
    let second = connect_as(&sluice, "late").await.unwrap();
    let text = |seconds: &str| format!("SELECT SLEEP({seconds}) FROM ran_away");
    caught.query(text("0.3")).await.unwrap().accepted().unwrap();
    let lane = [("budget", "(deprioritised)")];
    let _first = Pending::query(first, text("60"));
    wait_for_sum(&sluice, "sluice_budget_in_use", &lane, 1.0).await.unwrap();
    let second = Pending::query(second, text("0"));
    let second = second.answered(Duration::from_secs(20)).await.unwrap();
    second.response.accepted().unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.sum("sluice_budget_exceeded_total", &lane), 1.0, "it stood there");
    assert_eq!(metrics.sum("sluice_budget_in_use", &lane), 1.0, "the first goes on");
}
