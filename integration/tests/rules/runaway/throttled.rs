//! Who slows an app down while Sluice runs frees nothing of what ran away from it.

use std::process::Command;

use integration::raw::RawConn;
use integration::scenario::{Refused, connect_as, wait_for_sum};
use integration::sluice::{SluiceProcess, binary};
use tokio::task::JoinSet;

use super::{ALONE, MARIADB, MYSQL, configured, started};

const RULES: &str = "\
- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 400ms, action: kill, watch: { by: digest, for: 1m } } }";

#[tokio::test]
async fn an_app_that_is_throttled_at_runtime_is_watched_by_the_rule_of_the_file() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, RULES).await;
        let mut conn = connect_as(&sluice, "slow").await.unwrap();
        assert_eq!(errno(&mut conn, "UPDATE ran_away SET n = n + SLEEP(30)").await, Some(1317));
        made(&sluice, &["throttle", "slow", "--ratio", "0.01"]).await;

        let alike = conn.query("UPDATE ran_away SET n = n + SLEEP(20)").await.unwrap();
        let refused = Refused::of(&alike).unwrap();
        assert_eq!((refused.reason(), refused.part("rule")), (Some("quarantined"), Some("slow")));
        let another = "UPDATE ran_away SET n = SLEEP(30) + n";
        assert_eq!(errno(&mut conn, another).await, Some(1317), "it is killed as well");
        assert_eq!(errno(&mut conn, another).await, Some(1226), "and its like in quarantine");
        let kills = [("rule", "slow"), ("action", "kill")];
        wait_for_sum(&sluice, "sluice_runaway_total", &kills, 2.0).await.unwrap();
        let decided = [("rule", "runtime:slow"), ("decision", "admitted")];
        wait_for_sum(&sluice, "sluice_statements_total", &decided, 1.0).await.unwrap();

        made(&sluice, &["exempt", "slow"]).await;
        let short = "UPDATE ran_away SET n = n + SLEEP(0.6)";
        assert_eq!(errno(&mut conn, short).await, None, "who is exempted is free of both");
        made(&sluice, &["unthrottle", "slow"]).await;
        assert_eq!(errno(&mut conn, short).await, Some(1226));
    }
}

/// Whoever saw that the one statement that must not be killed was about to be, and took the rule away
/// in time, had it killed all the same.
#[tokio::test]
async fn what_runs_is_spared_by_an_edit_and_by_an_exemption_that_come_in_time() {
    let _alone = ALONE.lock().await;
    let servers = MYSQL.get().await.unwrap();
    let rule = |name: &str, runaway: &str| {
        format!(
            "- {{ name: {name}, match: {{ app: {name} }}, gate: none, permanent: true{runaway} }}\n"
        )
    };
    let kill = ", runaway: { elapsed: 1s, action: kill }";
    let names = ["kept", "gone", "logged", "exempted"];
    let wide = ", runaway: { bytes_sent: 600000, action: kill }";
    let rules = names.map(|name| rule(name, kill)).concat()
        + &["wide", "wider"].map(|name| rule(name, wide)).concat();
    let config = configured(servers, &rules).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut running = JoinSet::new();
    for name in names {
        let mut conn = connect_as(&sluice, name).await.unwrap();
        running.spawn(
            async move { (name, errno(&mut conn, "SELECT SLEEP(1.5) FROM ran_away").await) },
        );
    }
    for name in ["wide", "wider"] {
        let mut conn = connect_as(&sluice, name).await.unwrap();
        running.spawn(async move { (name, errno(&mut conn, TWO_MEGABYTES).await) });
    }
    let edited = [
        rule("kept", kill),
        rule("gone", ""),
        rule("logged", ", runaway: { elapsed: 1s, action: log }"),
        rule("exempted", kill),
        rule("wide", wide),
        rule("wider", &wide.replace("600000", "1GiB")),
    ];
    sluice.write_config(&config.rules(&edited.concat()).render()).unwrap();
    made(&sluice, &["exempt", "exempted"]).await;
    let mut ended = running.join_all().await;
    ended.sort_unstable();
    let killed = |name| matches!(name, "kept" | "wide").then_some(1317);
    let expected = ["exempted", "gone", "kept", "logged", "wide", "wider"];
    assert_eq!(ended, expected.map(|name| (name, killed(name))));
}

/// In three seconds, evenly.
const TWO_MEGABYTES: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) \
                             SELECT REPEAT('x', 3333), SLEEP(0.005) FROM n";

async fn errno(conn: &mut RawConn, sql: &str) -> Option<u16> {
    conn.query(sql).await.unwrap().err().map(|(errno, _)| errno)
}

/// Changes what is in force by the command line.
async fn made(sluice: &SluiceProcess, arguments: &[&str]) {
    let admin = format!("http://{}", sluice.admin_addr());
    let mut command = Command::new(binary().unwrap());
    command.args(arguments).args(["--admin", &admin]).env_remove("SLUICE_ADMIN_TOKEN");
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(done.status.success(), "{done:?}");
}
