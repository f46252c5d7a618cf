//! `sluice why` of what no rule's dice and gate have decided: guards, budgets, the quarantine; and of
//! what waits.

use std::time::Duration;

use integration::scenario::{
    Pending, Refused, connect_as, wait_for_depth, wait_for_sum, wait_until,
};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use serde_json::json;

use super::{SOON, tell};

const TOP: &str = "\
guards:
  - { name: where, match: { app: shop }, where_required: deny, reason: it took the shop down }
budgets:
  - { name: reports, match: { app: report }, max_concurrency: 1, on_exceeded: refuse }
  - { name: line, match: { app: patient }, max_concurrency: 1 }";

const RULES: &str = "\
- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 300ms, action: kill, watch: { by: digest, for: 10m } } }
- { name: tenth, match: { app: tenth }, gate: none, speed: 0.1, permanent: true }
- { name: late, match: { app: late }, hold: true, max_delay: 30s, permanent: true, reason: until noon }
- { name: luckless, match: { app: gambler }, gate: none, ratio: 1, on_refused_check: reject, permanent: true }
- { name: everything-else, gate: none, permanent: true }";

const TRACE: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";

pub(super) async fn of_guards_quarantine_and_budgets(servers: &Topology) {
    let mut config = Config::new(servers).unwrap().rules(RULES);
    config.top = TOP.to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    of_a_guard(&sluice, &config).await;
    of_the_quarantine(&sluice, &config).await;
    of_budgets(&sluice, &config).await;
    of_what_waits(&sluice, &config).await;
    of_a_pause(&sluice, &config).await;
    of_who_was_refused_before_a_thousand_others(&sluice, &config).await;
    the_history_names_what_decided(&config).await;
}

async fn of_a_guard(sluice: &SluiceProcess, config: &Config) {
    let mut shop = connect_as(sluice, "shop").await.unwrap();
    let text = format!("DELETE FROM t /*traceparent='00-{TRACE}-c532cb4098ac3dd2-01'*/");
    let refused = Refused::of(&shop.query(&text).await.unwrap()).unwrap();
    let id = refused.part("id").unwrap().to_owned();
    says(
        config,
        &id,
        &[
            &format!("statement {id} of shop was refused at once at "),
            "identity: shop, named by a connection attribute; user app at 127.0.0.1:",
            ", class write",
            "guard: where (it took the shop down), where_required at byte 0 of the text: this \
             DELETE has no WHERE",
            "rule: none was asked",
            "what would have let it through: a text that says what guard where asks for",
        ],
    )
    .await;
    // However often it tries, the log stays readable, and has the trace.
    for _ in 0..40 {
        assert!(Refused::of(&shop.query(&text).await.unwrap()).is_some());
    }
    wait_until("the rest is told in one line", SOON, || async {
        Ok(sluice.log()?.contains("more statements refused"))
    })
    .await
    .unwrap();
    let log = sluice.log().unwrap();
    let of_shop = || log.lines().filter(|line| line.contains("guard=\"where\""));
    let single = of_shop().filter(|line| line.contains("statement refused")).count();
    assert!((5..=15).contains(&single), "{single}: {log}");
    let first = of_shop().find(|line| line.contains(&id)).unwrap();
    for part in ["reason=\"guard\"", "check=\"where_required\"", "offset=0", TRACE] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let rest = of_shop().find(|line| line.contains("more statements refused")).unwrap();
    assert!(rest.contains("reasons=guard=") && rest.contains(TRACE), "{rest}");
}

async fn of_the_quarantine(sluice: &SluiceProcess, config: &Config) {
    let mut slow = connect_as(sluice, "slow").await.unwrap();
    let killed = slow.query("SELECT SLEEP(3) FROM t").await.unwrap();
    assert_eq!(killed.err().map(|(errno, _)| errno), Some(1317), "{killed:?}");
    let refused = Refused::of(&slow.query("SELECT SLEEP(2) FROM t").await.unwrap()).unwrap();
    let id = refused.part("id").unwrap();
    let log = sluice.log().unwrap();
    let line = log.lines().find(|line| line.contains(id)).unwrap();
    let (_, name) = line.split_once("quarantine=").unwrap();
    let name = name.split(' ').next().unwrap();
    assert!(line.contains("rule=\"slow\"") && name.len() == 12, "{line}");
    says(
        config,
        id,
        &[
            "was refused at once at ",
            ": quarantined",
            ", class read",
            &format!(
                "quarantine: main:{name} holds statements of rule slow with the same digest until "
            ),
            "for one of slow ran away at ",
            &format!("or sooner by `sluice quarantine --free main:{name}`; or another digest"),
        ],
    )
    .await;
}

async fn of_budgets(sluice: &SluiceProcess, config: &Config) {
    let running = Pending::query(connect_as(sluice, "report").await.unwrap(), "SELECT SLEEP(1)");
    in_use(sluice, "reports").await;
    let mut report = connect_as(sluice, "report").await.unwrap();
    let refused = Refused::of(&report.query("SELECT 1").await.unwrap()).unwrap();
    says(
        config,
        refused.part("id").unwrap(),
        &[
            "of report was refused at once at ",
            ": budget_concurrency",
            "budget reports decided",
            "a larger max_concurrency of budget reports; fewer statements of it at the server at once",
        ],
    )
    .await;
    running.answered(SOON).await.unwrap();
}

async fn of_what_waits(sluice: &SluiceProcess, config: &Config) {
    let running = Pending::query(connect_as(sluice, "patient").await.unwrap(), "SELECT SLEEP(2)");
    in_use(sluice, "line").await;
    let waiting = Pending::query(connect_as(sluice, "patient").await.unwrap(), "SELECT 1");
    let budget = [("budget", "line")];
    wait_for_sum(sluice, "sluice_budget_waiting", &budget, 1.0).await.unwrap();
    says(
        config,
        "patient",
        &[
            "a statement of patient has waited for ",
            ": budget_concurrency",
            "identity: patient, named by a connection attribute; user app at 127.0.0.1:",
            ", class read",
            "budget line decided",
            "what lets it through: a larger max_concurrency of budget line",
        ],
    )
    .await;
    running.answered(SOON).await.unwrap();
    waiting.answered(SOON).await.unwrap();

    let mut other = connect_as(sluice, "other").await.unwrap();
    other.query("SELECT 1").await.unwrap().accepted().unwrap();
    let held = Pending::query(other, "INSERT INTO t VALUES (1) /* app=late */");
    wait_for_depth(sluice, "late", 1).await.unwrap();
    says(
        config,
        "late",
        &[
            "a statement of late has waited for ",
            "identity: late, named by a comment in the statement; user app at 127.0.0.1:",
            ", class write",
            "rule: late (hold): until noon",
            "what lets it through: the end of the hold, by an edit of rule late in the file",
        ],
    )
    .await;
    // Who leaves is not refused.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(held);
    let of_late = async || {
        let told = tell(config, &["why", "late"]).await;
        Ok(["of late waited for ", ", until its client left at ", "rule: late (hold): until noon"]
            .iter()
            .all(|part| told.contains(part)))
    };
    wait_until("it is told that its client left", SOON, of_late).await.unwrap();
}

/// Nobody stands in a queue for `speed`: it is listed with those who wait all the same, and who waited
/// for it finds that.
async fn of_a_pause(sluice: &SluiceProcess, config: &Config) {
    let mut tenth = connect_as(sluice, "tenth").await.unwrap();
    tenth.query("INSERT INTO t SELECT SLEEP(0.4)").await.unwrap().accepted().unwrap();
    let id = tenth.connection_id();
    let pausing = Pending::query(tenth, "INSERT INTO t VALUES (2)");
    let listed = listed_as_waiting(sluice, "tenth").await;
    for (key, expected) in [
        ("reason", json!("paced")),
        ("limit", json!("speed")),
        ("connection_id", json!(id)),
        ("rule", json!("tenth")),
    ] {
        assert_eq!(listed.get(key), Some(&expected), "{key}: {listed}");
    }
    says(
        config,
        "tenth",
        &[
            "a statement of tenth has waited for ",
            "pace: it pauses for the speed of rule tenth",
            "what lets it through: a greater speed, by an edit of rule tenth",
        ],
    )
    .await;
    let status = tell(config, &["status"]).await;
    assert!(status.contains("paced: speed of its rule"), "{status}");
    pausing.answered(SOON).await.unwrap();
    let waiting = sluice.http_get("/api/v1/waiting").await.unwrap();
    let waiting: serde_json::Value = serde_json::from_str(&waiting.body).unwrap();
    assert_eq!(waiting.get("waiting_total"), Some(&json!(0)), "{waiting}");
    says(
        config,
        "tenth",
        &[
            "of tenth was admitted at ",
            "speed: a session of it goes at 10 % of its own",
            "what would have let it through sooner: a greater speed, by an edit of rule tenth",
        ],
    )
    .await;
}

async fn of_who_was_refused_before_a_thousand_others(sluice: &SluiceProcess, config: &Config) {
    let mut gambler = connect_as(sluice, "gambler").await.unwrap();
    for _ in 0..1_100 {
        let refused = gambler.query("INSERT INTO t VALUES (3)").await.unwrap();
        assert!(Refused::of(&refused).is_some());
    }
    let never = "what would have let it through: a lower ratio than 1, by an edit of rule luckless";
    says(config, "gambler", &["dice: every check is lost (ratio 1)", never]).await;
    says(config, "report", &["of report was refused at once at ", "budget reports decided"]).await;
}

async fn the_history_names_what_decided(config: &Config) {
    let told = tell(config, &["history", "--since", "10m ago"]).await;
    for (app, cause) in [
        ("shop", ": guard where"),
        ("report", ": max_concurrency of budget reports was used up"),
        ("patient", ": max_concurrency of budget line was used up"),
        ("tenth", ": it goes at the speed of rule tenth"),
    ] {
        let of_app = |line: &&str| line.starts_with(app) && line.contains(cause);
        assert!(told.lines().any(|line| of_app(&line)), "{app}{cause}: {told}");
    }
}

/// What `/api/v1/waiting` has of the app, once it has something.
async fn listed_as_waiting(sluice: &SluiceProcess, app: &str) -> serde_json::Value {
    let until = tokio::time::Instant::now() + SOON;
    loop {
        let answer = sluice.http_get("/api/v1/waiting").await.unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        let mut listed = answer.get("waiting").and_then(|it| it.as_array()).unwrap().iter();
        if let Some(found) = listed.find(|it| it.get("app") == Some(&json!(app))) {
            return found.clone();
        }
        assert!(tokio::time::Instant::now() < until, "{answer}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn in_use(sluice: &SluiceProcess, budget: &str) {
    let metrics =
        sluice.wait_for_metrics("the budget is in use", Duration::from_secs(20), |metrics| {
            metrics.sum("sluice_budget_in_use", &[("budget", budget)]) >= 1.0
        });
    metrics.await.unwrap();
}

async fn says(config: &Config, asked: &str, parts: &[&str]) {
    let told = tell(config, &["why", asked]).await;
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
}
