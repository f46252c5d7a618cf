//! The log of refusals and long waits.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use integration::raw::{Login, RawConn, Response, capability};
use integration::scenario::{Pending, Refused, Switch, connect_as, wait_for_depth, wait_until};
use integration::sluice::{Config, SluiceProcess};
use serde_json::Value;

use super::servers;

const RULES: &str = "\
- { name: closed, match: { app: spinner }, deny: true, permanent: true }
- { name: gated, match: { app: job }, gate: [m_log], max_delay: 20s, permanent: true }";

const CLOSED: &str = "- { name: closed, match: { app: spinner }, deny: true, permanent: true }";

const PASSED: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";
const DENIED: &str = "0af7651916cd43dd8448eb211c80319c";

const SPINS: u64 = 500;

#[tokio::test]
async fn a_client_that_spins_leaves_a_few_lines_and_one_with_their_number() {
    let servers = servers().await;
    let switch = Switch::new(&servers.primary, "m_log").await.unwrap();
    let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(RULES);
    let (yaml, addresses) = (config.render(), (config.listen, config.admin));
    let arguments = ["--log-format", "json"];
    let mut sluice = SluiceProcess::spawn_with(&yaml, addresses, &[], &arguments).unwrap();
    sluice.wait_until_ready().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.m_log (n INT)"]).await.unwrap();

    let mut spinner = connect_as(&sluice, "spinner").await.unwrap();
    let denied =
        format!("/*traceparent='00-{DENIED}-b7ad6b7169203331-01'*/ DELETE FROM test.m_log");
    let mut first = String::new();
    for _ in 0..SPINS {
        let response = spinner.query(&denied).await.unwrap();
        let refused = Refused::of(&response).unwrap();
        if first.is_empty() {
            first = refused.part("id").unwrap().to_owned();
        }
    }
    waits_for_long(&sluice, &switch).await;

    let refused = || async { Ok(!events(&sluice, "more statements refused").is_empty()) };
    wait_until("the sum of the refusals", Duration::from_secs(10), refused).await.unwrap();
    let own = events(&sluice, "statement refused");
    assert!((5..=10).contains(&own.len()), "{own:?}");
    assert_eq!((&own[0]["id"], &own[0]["rule"]), (&Value::from(first), &Value::from("closed")));
    assert_eq!((&own[0]["app"], &own[0]["reason"]), (&"spinner".into(), &"deny".into()));
    assert!(own.iter().all(|line| line["trace_id"] == DENIED && line["waited_ms"] == 0), "{own:?}");
    // Those of a further second, if it took that long, are told when the process ends.
    assert!(sluice.stop(Duration::from_secs(10)).await.unwrap().success());
    let sums = events(&sluice, "more statements refused");
    let untold: u64 = sums.iter().map(|sum| sum["untold"].as_u64().unwrap()).sum();
    assert_eq!(untold + u64::try_from(own.len()).unwrap(), SPINS, "{sums:?}");
    assert_eq!((&sums[0]["app"], &sums[0]["trace_id"]), (&"spinner".into(), &DENIED.into()));
    assert!(sums[0]["reasons"].as_str().unwrap().starts_with("deny="), "{sums:?}");

    let [waited] = &*events(&sluice, "statement waited") else { panic!("one has waited") };
    assert_eq!((&waited["decision"], &waited["trace_id"]), (&"admitted".into(), &PASSED.into()));
    assert!(waited["waited_ms"].as_u64().unwrap() >= 1_000, "{waited:?}");
}

/// Whoever wrote to such a log panicked or hung: refusals, live edits, probes and the drain were lost.
#[tokio::test]
async fn a_log_that_cannot_be_written_or_that_nobody_reads_costs_only_its_lines() {
    let servers = servers().await;
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (_, closed) = std::io::pipe().unwrap();
    let (_unread, stuck) = std::io::pipe().unwrap();
    let mut filling = stuck.try_clone().unwrap();
    std::thread::spawn(move || while filling.write_all(&[b'\n'; 4_096]).is_ok() {});
    let logs = [(Stdio::from(full), true), (closed.into(), true), (stuck.into(), false)];
    for (log, fails) in logs {
        let config = Config::new(servers).unwrap().rules(CLOSED);
        let mut sluice = SluiceProcess::start_logging_to(&config, log).await.unwrap();
        let mut spinner = connect_as(&sluice, "spinner").await.unwrap();
        for _ in 0..10 {
            let response = spinner.query("DELETE FROM test.m_log").await.unwrap();
            assert_eq!(Refused::of(&response).unwrap().part("rule"), Some("closed"));
        }
        sluice.write_config(&config.rules(&CLOSED.replace("closed", "edited")).render()).unwrap();
        let limit = Duration::from_secs(10);
        let is_edited =
            || async { Ok(sluice.http_get("/metrics").await?.body.contains("rule=\"edited\"")) };
        wait_until("the edit in force", limit, is_edited).await.unwrap();
        let dropped = sluice.metrics().await.unwrap().sum("sluice_log_lines_dropped_total", &[]);
        assert_eq!(dropped > 0.0, fails, "{dropped}");
        drop(spinner);
        assert!(sluice.stop(limit).await.unwrap().success());
    }
}

/// One statement waits for more than a second and is admitted then; its trace is a query attribute.
async fn waits_for_long(sluice: &SluiceProcess, switch: &Switch<'_>) {
    switch.shut(sluice).await.unwrap();
    let login = Login::new("app").attribute("sluice_app", "job").with(capability::QUERY_ATTRIBUTES);
    let conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let traceparent = format!("00-{PASSED}-c532cb4098ac3dd2-01");
    let attributes = [("traceparent", &*traceparent)];
    let payload = conn.query_payload(b"INSERT INTO test.m_log VALUES (1)", &attributes);
    let pending = Pending::command(conn, payload);
    wait_for_depth(sluice, "gated", 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    switch.open(sluice).await.unwrap();
    let answered = pending.answered(Duration::from_secs(10)).await.unwrap();
    let response: &Response = &answered.response;
    assert!(response.clone().accepted().is_ok(), "{response:?}");
}

/// The lines of the log with this message; all lines are JSON.
fn events(sluice: &SluiceProcess, message: &str) -> Vec<Value> {
    let log = sluice.log().unwrap();
    let read = |line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}"));
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(read).filter(|event| event["message"] == message).collect()
}
