//! A job that is exempt holds the lag over its threshold, and another one is starved by it: both are named in the
//! metric, in the log and on the page.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::raw::RawConn;
use integration::replica::Lag;
use integration::scenario::{Pending, Refused, connect, connect_as, wait_for_signal, wait_until};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;

#[tokio::test]
async fn whoever_is_starved_by_an_exempt_job_is_named_with_it_and_no_longer_when_it_is_over() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let mut config = Config::new(&servers).unwrap().rules(RULES);
    config.top = "starvation: { share: 0.1, window: 10s }".into();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();

    // The replica applies 20 transactions a second, the exempt job alone commits more.
    let slow = Lag::SlowCommits(Duration::from_millis(50));
    servers.replicas.first_mut().unwrap().lag_start(slow).await.unwrap();
    let exempt = Writers::start(sluice.listen_addr(), "ddl", 4, INSERT).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let began = Instant::now();
    let waiting = Pending::query(connect(&sluice, "etl").await.unwrap(), INSERT);
    // One that waits, one that is refused each time and asks again.
    let refused = tokio::spawn(ask_in_vain(connect_as(&sluice, "hasty").await.unwrap()));
    let mut free = connect(&sluice, "web").await.unwrap();

    for app in ["etl", "hasty"] {
        let labels = [("cluster", "main"), ("app", app)];
        sluice
            .wait_for_metrics("somebody starved", SOON, |metrics| {
                metrics.value("sluice_starved", &labels) == Some(1.0)
            })
            .await
            .unwrap();
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "a tenth of the window");
    assert_eq!(free.query(INSERT).await.unwrap().err(), None);
    let metrics = sluice.metrics().await.unwrap();
    for app in ["ddl", "web"] {
        assert_eq!(metrics.value("sluice_starved", &[("app", app)]), None, "{app}");
    }
    let cause = [("app", "ddl"), ("passage", "exempt")];
    assert!(metrics.value("sluice_passed_while_starved", &cause).unwrap() >= 1.0);

    wait_for_line(&sluice, &["WARN", "identity is starved", "identity=etl"]).await;
    let line = wait_for_line(&sluice, &["identity is starved", "identity=hasty"]).await;
    assert!(line.contains("the likely cause is ddl, which is exempt"), "{line}");
    assert!(line.contains("ddl (exempt by rule let-ddl): "), "{line}");
    assert!(line.contains("rule=impatient"), "{line}");
    let page = sluice.http_get("/plain").await.unwrap().body;
    let starved = page.split("Who is starved, and by whom").nth(1).expect("the page says it");
    for part in ["<td>etl<td>patient<td>", "<td>blocked<td>ddl (exempt by rule let-ddl): "] {
        assert!(starved.contains(part), "{part}: {starved}");
    }
    assert!(starved.contains("web (no rule): 1"), "{starved}");

    drop(exempt);
    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    waiting.answered(CAUGHT_UP).await.unwrap();
    refused.abort();
    // A window later it is over.
    let over = wait_for_line(&sluice, &["identity is not starved any more", "identity=etl"]);
    tokio::time::timeout(CAUGHT_UP, over).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.value("sluice_starved", &[("app", "etl")]), None);
    assert_eq!(lines(&sluice, &["identity is starved", "identity=etl"]).len(), 1, "told once");
}

#[tokio::test]
async fn whoever_gets_a_trickle_beside_a_flood_is_below_its_share_and_the_flood_is_not() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let mut config = Config::new(&servers).unwrap().rules(FLOORS);
    config.top = "starvation: { share: 0.2, window: 10s }".into();
    // The gate stays open, and the pace has no room.
    config.signals = "lag: { threshold: 60s }".into();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let slow = Lag::SlowCommits(Duration::from_millis(50));
    servers.replicas.first_mut().unwrap().lag_start(slow).await.unwrap();
    // Both wait; by the floors of their rules one is admitted fifty times as often.
    let flood = Writers::start(sluice.listen_addr(), "ddl", 6, INSERT).await.unwrap();
    let trickle = Writers::start(sluice.listen_addr(), "etl", 2, INSERT).await.unwrap();
    let below = [("app", "etl"), ("kind", "below_share")];
    sluice
        .wait_for_metrics("somebody below its share", SOON, |metrics| {
            metrics.value("sluice_starved_kind", &below) == Some(1.0)
        })
        .await
        .unwrap();
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.value("sluice_starved", &[("app", "etl")]), Some(1.0));
    assert_eq!(metrics.value("sluice_starved", &[("app", "ddl")]), None);
    let received = |app| metrics.value("sluice_received_of_share", &[("app", app)]).unwrap();
    assert!(received("etl") < 0.5 && received("ddl") > 1.0);
    let line = wait_for_line(&sluice, &["identity is starved", "identity=etl"]).await;
    for part in ["an identity is starved: below its fair share", "kind=\"below_share\""] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let status = sluice.http_get("/api/v1/status").await.unwrap().body;
    for part in ["\"kind\":\"below_share\"", "\"received_of_share\":0."] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains(" % of its fair share<td>ddl (rule flood): "), "{page}");
    trickle.stop().await.unwrap();
    flood.stop().await.unwrap();
}

#[tokio::test]
async fn a_share_of_zero_watches_for_nothing_and_a_stopped_replica_is_the_cause_not_a_bystander() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let mut config = Config::new(&servers).unwrap().rules(RULES);
    config.top = "starvation: { share: 0, window: 10s }".into();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_start(Lag::StoppedApplier).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let waiting = Pending::query(connect(&sluice, "etl").await.unwrap(), INSERT);
    let held = Pending::query(connect_as(&sluice, "reports").await.unwrap(), INSERT);
    // A bystander: exempt, and without it nothing would be otherwise.
    let exempt = Writers::start(sluice.listen_addr(), "ddl", 1, INSERT).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!waiting.is_answered());
    assert_eq!(sluice.metrics().await.unwrap().matching("sluice_starved", &[]).count(), 0);
    // Live: what is switched on watches from then on.
    config.top = "starvation: { share: 0.1, window: 10s }".into();
    sluice.write_config(&config.render()).unwrap();
    sluice
        .wait_for_metrics("somebody starved", SOON, |metrics| {
            metrics.value("sluice_starved", &[("app", "etl")]) == Some(1.0)
        })
        .await
        .unwrap();
    let line = wait_for_line(&sluice, &["identity is starved", "identity=etl"]).await;
    let stopped = format!("replica {}: the applier", servers.replicas.first().unwrap().addr());
    assert!(line.contains(&format!("the likely cause is {stopped}")), "{line}");
    assert!(line.contains("ddl (exempt by rule let-ddl)"), "who passed is still named: {line}");
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains(&format!("the likely cause is {stopped}")), "{page}");
    // Whom its own rule holds nobody else does.
    let line = wait_for_line(&sluice, &["identity is starved", "identity=reports"]).await;
    let own = "the likely cause is its own rule held, which lets nothing through";
    assert!(line.contains(own), "{line}");
    assert!(page.contains(own) && !held.is_answered(), "{page}");
    drop(exempt);
}

/// Asks every tenth of a second, and is refused each time.
async fn ask_in_vain(mut conn: RawConn) {
    loop {
        let response = conn.query(INSERT).await.unwrap();
        if let Some(refused) = Refused::of(&response) {
            assert_eq!(refused.errno, 1205);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The lines of the log with all of these parts.
fn lines(sluice: &SluiceProcess, parts: &[&str]) -> Vec<String> {
    let log = sluice.log().unwrap();
    let plain: String = without_colours(&log);
    let wanted = |line: &&str| parts.iter().all(|part| line.contains(part));
    plain.lines().filter(wanted).map(str::to_owned).collect()
}

async fn wait_for_line(sluice: &SluiceProcess, parts: &[&str]) -> String {
    wait_until("the line in the log", CAUGHT_UP, || async { Ok(!lines(sluice, parts).is_empty()) })
        .await
        .unwrap();
    lines(sluice, parts).remove(0)
}

fn without_colours(log: &str) -> String {
    let mut rest = log.split('\u{1b}');
    let mut plain = rest.next().unwrap_or_default().to_owned();
    for part in rest {
        plain.push_str(part.split_once('m').map_or(part, |(_, text)| text));
    }
    plain
}

const TABLE: &str = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)";
const INSERT: &str = "INSERT INTO test.t (n) VALUES (1)";
const RULES: &str = "\
- { name: let-ddl, match: { app: ddl }, exempt: true, expires_at: 2099-01-01T00:00:00Z }
- { name: patient, match: { app: etl }, max_delay: 10m, permanent: true }
- { name: held, match: { app: reports }, hold: true, max_delay: 10m, permanent: true }
- { name: impatient, match: { app: hasty }, on_refused_check: reject, permanent: true }";
const FLOORS: &str = "\
- { name: flood, match: { app: ddl }, min_rate: 150, max_delay: 10m, permanent: true }
- { name: trickle, match: { app: etl }, min_rate: 3, max_delay: 10m, permanent: true }";
const SOON: Duration = Duration::from_secs(15);
const CAUGHT_UP: Duration = Duration::from_secs(60);
