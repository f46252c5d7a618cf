//! What is in quarantine is the same in the next process, and what was freed is not there.

use std::fs::{create_dir, remove_dir, remove_dir_all, rename};

use integration::scenario::{Pending, wait_until};

use super::*;

#[tokio::test]
async fn what_is_freed_stays_free_in_the_next_process_and_the_others_keep_their_names() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: kept, match: { app: kept }, gate: none, permanent: true, runaway: { elapsed: 200ms, action: kill, watch: { by: text, for: 1m } } }";
    let config = configured(servers, rules).await;
    let state = std::env::temp_dir().join(format!("sluice-it-kept-{}", std::process::id()));
    let yaml = format!("state_dir: {}\n{}", state.display(), config.render());
    let start = async |yaml: &str| {
        let mut sluice = SluiceProcess::spawn(yaml, config.listen, config.admin, &[]).unwrap();
        sluice.wait_until_ready().await.unwrap();
        sluice
    };
    let mut sluice = start(&yaml).await;
    two_run_away(&sluice).await;
    let all = listed(&sluice).await;
    let ids: Vec<&str> = all.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    let freed = delete(&sluice, &format!("/api/v1/quarantine/{}", ids[0])).await;
    assert!(freed.starts_with("HTTP/1.1 200") && freed.contains(KEPT), "{freed}");
    // It is written every two seconds otherwise.
    sluice.kill();
    sluice = start(&yaml).await;
    let again = listed(&sluice).await;
    let again: Vec<&str> = again.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(again, ids[1..]);
    comes_last_as_its_rule_says_now(&sluice, &yaml).await;
    // What a start finds no rule for is off the disk too.
    sluice.kill();
    sluice = start(&yaml.replace("action: kill", "action: log")).await;
    assert_eq!(listed(&sluice).await, Vec::<serde_json::Value>::new());
    sluice.signal("TERM").unwrap();
    sluice.ended(Duration::from_secs(20)).await.unwrap();
    sluice = start(&yaml).await;
    assert_eq!(listed(&sluice).await, Vec::<serde_json::Value>::new());
    // What the disk does not take is told, and tried again up to the end.
    two_run_away(&sluice).await;
    let freed = delete(&sluice, &format!("/api/v1/quarantine/{}", ids[0])).await;
    assert!(freed.contains(KEPT), "{freed}");
    let [file, aside] = ["history.sqlite3", "aside"].map(|name| state.join(name));
    rename(&file, &aside).unwrap();
    create_dir(&file).unwrap();
    let freed = delete(&sluice, &format!("/api/v1/quarantine/{}", ids[1])).await;
    let not_kept = "\"kept\":{\"outlives_restart\":false,\"file\":false,\"file_error\":\"";
    assert!(freed.contains(not_kept), "{freed}");
    sluice.signal("TERM").unwrap();
    let drains = || async { Ok(sluice.log()?.contains("draining; ")) };
    wait_until("it drains", Duration::from_secs(20), drains).await.unwrap();
    // It has nothing else left to do.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(sluice.exited().is_none(), "it tries again");
    remove_dir(&file).unwrap();
    rename(&aside, &file).unwrap();
    sluice.ended(Duration::from_secs(20)).await.unwrap();
    sluice = start(&yaml).await;
    assert_eq!(listed(&sluice).await, Vec::<serde_json::Value>::new());
    drop(sluice);
    remove_dir_all(&state).unwrap();
}

/// What an answer says of what the file has.
const KEPT: &str = "\"kept\":{\"outlives_restart\":true,\"file\":true,\"file_error\":null}";

async fn two_run_away(sluice: &SluiceProcess) {
    for n in ["30", "1.5"] {
        let mut conn = connect_as(sluice, "kept").await.unwrap();
        let answer = conn.query(format!("SELECT SLEEP({n}) FROM ran_away")).await.unwrap();
        assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "{answer:?}");
    }
}

/// What was refused stands in a line, also beside eight budgets, and is refused again behind another
/// edit.
async fn comes_last_as_its_rule_says_now(sluice: &SluiceProcess, yaml: &str) {
    let budgets: String =
        (0..8).map(|n| format!("  - {{ name: n{n}, max_concurrency: 50 }}\n")).collect();
    let last = yaml.replace("action: kill", "action: deprioritise");
    sluice.write_config(&format!("{last}\nbudgets:\n{budgets}")).unwrap();
    is_listed_for(sluice, "deprioritise").await;
    let text = "SELECT SLEEP(1.5) FROM ran_away";
    let lane = |name| wait_for_sum(sluice, name, &[("budget", "(deprioritised)")], 1.0);
    let first = Pending::query(connect_as(sluice, "kept").await.unwrap(), text);
    lane("sluice_budget_in_use").await.unwrap();
    let second = Pending::query(connect_as(sluice, "kept").await.unwrap(), text);
    lane("sluice_budget_waiting").await.unwrap();
    for pending in [first, second] {
        let answered = pending.answered(Duration::from_secs(20)).await.unwrap();
        answered.response.accepted().unwrap();
    }
    sluice.write_config(yaml).unwrap();
    is_listed_for(sluice, "kill").await;
    let mut conn = connect_as(sluice, "kept").await.unwrap();
    let (errno, refused) = conn.query(text).await.unwrap().err().unwrap();
    assert!(errno == 1226 && refused.contains("reason=quarantined"), "{errno} {refused}");
}

async fn is_listed_for(sluice: &SluiceProcess, action: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while listed(sluice).await.first().is_none_or(|entry| entry["action"] != action) {
        assert!(Instant::now() < until, "it does not follow its rule");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
