//! What an edit does not change: keys that need a restart. And what it says of itself: a line for each
//! rule, and series that are there before anything is counted in them.

use std::time::Duration;

use integration::ports::{free_port, loopback};
use integration::raw::{Login, RawConn};
use integration::scenario::{Refused, connect, is, wait_for_sum, wait_until};
use integration::sluice::{Config, SluiceProcess};
use tokio::net::TcpListener;

use super::{MYSQL, SOON, SUCCESSFUL, accepted};

const PENDING: &str = "sluice_config_restart_pending";
/// What the server itself says: the statement has reached it.
const NO_SUCH_TABLE: u16 = 1146;
const DENIED: &str = "- { name: denied, match: { app: etl }, deny: true, permanent: true }";

#[tokio::test]
async fn another_primary_moves_nothing_until_a_restart_and_the_rest_of_its_save_applies() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_sum(&sluice, PENDING, &[], 0.0).await.unwrap();
    let known = sluice.metrics().await.unwrap();
    for (cluster, key) in
        [("main", "primary"), ("main", "listen"), ("", "admin.listen"), ("", "takeover_socket")]
    {
        let labels = [("cluster", cluster), ("key", key)];
        assert_eq!(known.value(PENDING, &labels), Some(0.0), "{key}");
    }
    let mut before = connect(&sluice, "web").await.unwrap();

    // Whoever were to go there would be seen.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut edited = config.clone().rules(DENIED);
    edited.primary = other.local_addr().unwrap();
    edited.replicas = vec![config.primary];
    edited.listen = loopback(free_port().unwrap());
    edited.top = "takeover_socket: /tmp/sluice-nowhere.sock".into();
    sluice.write_config(&edited.render()).unwrap();
    wait_for_sum(&sluice, PENDING, &[], 4.0).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    for key in ["primary", "replicas", "listen", "takeover_socket"] {
        assert!(is(metrics.sum(PENDING, &[("key", key)]), 1.0), "{key}");
    }
    assert!(is(metrics.sum(SUCCESSFUL, &[]), 1.0), "the file is good");

    // New clients go where the old ones are, under the rules of the same save.
    let mut etl = RawConn::open(config.listen, &Login::new("etl")).await.unwrap();
    let refused = etl.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
    assert_eq!(Refused::of(&refused).unwrap().reason(), Some("deny"));
    accepted(&etl.query("SELECT 1").await.unwrap());
    accepted(&before.query("SELECT 1").await.unwrap());
    assert!(RawConn::connect(edited.listen).await.is_err(), "nobody listens there");
    // Longer than any probe waits between two attempts.
    let moved = tokio::time::timeout(Duration::from_secs(3), other.accept()).await;
    assert!(moved.is_err(), "somebody went to the other primary: {moved:?}");

    let log = sluice.log().unwrap();
    let values = format!(
        "clusters.main.primary ({} runs, the file says {})",
        config.primary, edited.primary
    );
    assert!(log.contains(&format!("{values} cannot change without a restart")), "{log}");
    assert!(log.contains("these keys wait for a restart"), "{log}");
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.body);
    for shown in [ready.body, sluice.http_get("/plain").await.unwrap().body] {
        assert!(shown.contains(&format!("waits for a restart: {values}")), "{shown}");
    }

    // Saved again it still waits, and taken back it does not.
    sluice.write_config(&(edited.render() + "# once more\n")).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    wait_for_sum(&sluice, PENDING, &[], 4.0).await.unwrap();
    sluice.write_config(&config.render()).unwrap();
    wait_for_sum(&sluice, PENDING, &[], 0.0).await.unwrap();
    let allowed = etl.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
    assert_eq!(allowed.err().map(|(errno, _)| errno), Some(NO_SUCH_TABLE), "{allowed:?}");
    let none_waits = || async { Ok(sluice.log()?.contains("no key waits for a restart any more")) };
    wait_until("the log says so", SOON, none_waits).await.unwrap();
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(!page.contains("waits for a restart"), "{page}");
}

#[tokio::test]
async fn a_password_that_is_not_there_has_the_whole_edit_wait() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let edited = config.clone().rules(DENIED).render();
    sluice.write_config(&edited.replace("SLUICE_PROBE_PASSWORD", "SLUICE_UNSET")).unwrap();
    wait_for_sum(&sluice, SUCCESSFUL, &[], 0.0).await.unwrap();
    let log = sluice.log().unwrap();
    assert!(log.contains("SLUICE_UNSET") && log.contains("nothing is changed"), "{log}");
    let mut etl = connect(&sluice, "etl").await.unwrap();
    let answer = etl.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
    assert_eq!(answer.err().map(|(errno, _)| errno), Some(NO_SUCH_TABLE), "{answer:?}");
    sluice.write_config(&edited).unwrap();
    wait_for_sum(&sluice, SUCCESSFUL, &[], 1.0).await.unwrap();
    let answer = etl.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
    assert_eq!(Refused::of(&answer).unwrap().reason(), Some("deny"));
}

#[tokio::test]
async fn every_rule_counts_from_zero_and_each_that_changes_has_one_line_also_when_it_observes() {
    let servers = MYSQL.get().await.unwrap();
    let first = "\
- { name: held, match: { app: etl }, hold: true, max_delay: 100ms, permanent: true }
- { name: observed, match: { app: web }, mode: observe, ratio: 0.5, permanent: true }
- { name: same, match: { app: ddl }, permanent: true }";
    let config = Config::new(servers).unwrap().cluster("mode: observe").rules(first);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let zero = async |rule: &str| {
        let metrics = sluice.metrics().await.unwrap();
        metrics.value("sluice_rule_hits_total", &[("rule", rule)]) == Some(0.0)
    };
    for rule in ["held", "observed", "same"] {
        assert!(zero(rule).await, "{rule}");
    }
    let metrics = sluice.metrics().await.unwrap();
    let refused = [("rule", "held"), ("app", "etl"), ("class", "write"), ("reason", "hold")];
    assert_eq!(metrics.value("sluice_statements_total", &refused), Some(0.0));
    for (name, label) in [
        ("sluice_backend_errors_total", ("kind", "connect")),
        ("sluice_connections_refused_total", ("reason", "max_connections")),
        ("sluice_internal_faults_total", ("cluster", "main")),
    ] {
        assert_eq!(metrics.value(name, &[("cluster", "main"), label]), Some(0.0), "{name}");
    }

    let second = first.replace("100ms", "50ms").replace("0.5", "0.6")
        + "\n- { name: added, match: { app: app }, deny: true, permanent: true }";
    sluice.write_config(&config.clone().rules(&second).render()).unwrap();
    let applied = || async { Ok(sluice.log()?.contains("rule added added")) };
    wait_until("the edit in the log", SOON, applied).await.unwrap();
    assert!(zero("added").await);
    let log = sluice.log().unwrap();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    let changed = ["rule held changed", "rule observed changed", "rule same changed"].map(lines);
    assert_eq!(changed, [1, 1, 0], "{log}");

    // The first refusal raises a series that was there.
    let mut etl = connect(&sluice, "etl").await.unwrap();
    etl.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
    wait_for_sum(&sluice, "sluice_statements_total", &refused, 1.0).await.unwrap();
    wait_for_sum(&sluice, "sluice_rule_hits_total", &[("rule", "held")], 1.0).await.unwrap();
}
