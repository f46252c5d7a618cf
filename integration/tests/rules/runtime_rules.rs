//! Rules made at runtime, with two Sluices before one primary: the real binary, and one whose parts run in this
//! process, so that it can be asked to make rules.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleet::{Lift, Receipt, RuleDraft, RuntimeEffect, RuntimeRules};
use integration::client::PROBE_PASSWORD;
use integration::scenario::{Refused, connect, connect_as, numbers, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::probe::ClusterProbes;
use proxy::telemetry::{Telemetry, TelemetryConfig};

#[tokio::test]
async fn a_rule_made_at_one_sluice_of_mysql_holds_at_the_other_within_a_second() {
    a_rule_made_at_one_holds_at_the_other(Flavour::MySql).await;
}

#[tokio::test]
async fn a_rule_made_at_one_sluice_of_mariadb_holds_at_the_other_within_a_second() {
    a_rule_made_at_one_holds_at_the_other(Flavour::MariaDb).await;
}

async fn a_rule_made_at_one_holds_at_the_other(flavour: Flavour) {
    let servers = Topology::start(TopologyOptions::new(flavour, 0)).await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.t (n INT PRIMARY KEY)"]).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let other = SluiceProcess::start(&config).await.unwrap();
    let here = Member::start(&config);
    let mut etl = connect_as(&other, "etl").await.unwrap();
    assert!(Refused::of(&etl.query("INSERT INTO t VALUES (1)").await.unwrap()).is_none());

    let made = here.make(deny("etl")).await;
    assert_eq!((made.rules.first().unwrap().left.as_secs(), made.journal.is_ok()), (3_600, false));
    let version = made.table.first().unwrap().written.clone().unwrap();
    assert_eq!(made.rules.first().unwrap().version, Some(version));
    wait_until("the rule is there", Duration::from_secs(1), || stands(&other, "runtime:etl", true))
        .await
        .unwrap();
    let refused = Refused::of(&etl.query("INSERT INTO t VALUES (2)").await.unwrap()).unwrap();
    assert_eq!((refused.errno, refused.part("rule")), (1226, Some("runtime:etl")), "{refused:?}");
    assert!(Refused::of(&etl.query("SELECT * FROM t").await.unwrap()).is_none());

    // Another one for the same app replaces it, everywhere.
    let ratio = RuntimeEffect::Throttle { ratio: 0.5 };
    let replaced = here.make(RuleDraft::of_app("etl", ratio)).await;
    assert!(replaced.table.first().unwrap().written.clone().unwrap() > version);
    wait_until("it is replaced", Duration::from_secs(1), || says(&other, "ratio 0.5"))
        .await
        .unwrap();

    let lifted = here.rules.lift(&Lift::of_app("etl"), "ann").await.unwrap();
    assert!(lifted.table.first().unwrap().written.is_ok(), "{lifted:?}");
    wait_until("it is lifted", Duration::from_secs(1), || stands(&other, "runtime:etl", false))
        .await
        .unwrap();
    assert!(Refused::of(&etl.query("INSERT INTO t VALUES (3)").await.unwrap()).is_none());

    // Texts of every kind come through the table as they are.
    let odd = "it's \\ \"odd\" 日本 😀 -- ; %";
    let draft = RuleDraft { reason: odd.to_owned(), ..RuleDraft::of_app(odd, RuntimeEffect::Hold) };
    assert!(here.rules.make(draft, odd).await.unwrap().table.first().unwrap().written.is_ok());
    wait_until("it is there", Duration::from_secs(1), || says(&other, "日本 😀 -- ; %"))
        .await
        .unwrap();

    // A primary that takes no writes says so, and has the rule as soon as it does.
    servers.primary.run_sql(&["SET GLOBAL read_only = 1"]).await.unwrap();
    let kept = here.make(deny("night")).await;
    let why = kept.table.first().unwrap().written.clone().unwrap_err();
    assert!(why.contains("1290") && why.contains("written as soon as it can be"), "{why}");
    assert_eq!(here.standing("runtime:night"), Some(None), "in force here all the same");
    servers.primary.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
    wait_until("it is written", SOON, || stands(&other, "runtime:night", true)).await.unwrap();
    let rows = numbers(&servers.primary, "SELECT COUNT(*) FROM sluice.rules WHERE name <> ''");
    assert_eq!(rows.await.unwrap(), [3]);

    // A primary that has lost them, as one that was behind when it took over, gets them again.
    servers.primary.run_sql(&["DELETE FROM sluice.rules"]).await.unwrap();
    wait_until("they are written again", SOON, || async {
        let sql = "SELECT COUNT(*) FROM sluice.rules WHERE name <> '' AND version > 5";
        Ok(numbers(&servers.primary, sql).await? == [3])
    })
    .await
    .unwrap();
    assert!(stands(&other, "runtime:night", true).await.unwrap());

    // Somebody has written the last version that there is: what is made next is said to have no order.
    let last = "UPDATE sluice.rules SET version = 9223372036854775807 WHERE name = 'runtime:night'";
    servers.primary.run_sql(&[last]).await.unwrap();
    wait_until("it is read", SOON, || async {
        Ok(here.standing("runtime:night") == Some(Some(9_223_372_036_854_775_807)))
    })
    .await
    .unwrap();
    let kept = here.make(deny("last")).await;
    let why = kept.table.first().unwrap().written.clone().unwrap_err();
    assert!(why.contains("have come to their end") && why.contains("drop the table"), "{why}");
    assert_eq!(here.standing("runtime:last"), Some(None), "in force here all the same");
}

#[tokio::test]
async fn a_rule_made_without_the_primary_reaches_the_others_later_and_outlives_kill_9() {
    let mut servers = Topology::mysql(0).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let state = StateDir::new();
    let yaml = format!("state_dir: {}\n{}", state.0.display(), config.render());
    let start = || SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    let mut other = start();
    other.wait_until_ready().await.unwrap();
    let here = Member::start(&config);
    assert!(here.make(deny("early")).await.table.first().unwrap().written.is_ok());

    servers.primary.crash();
    let made = here.make(deny("late")).await;
    assert!(made.table.first().unwrap().written.is_err(), "{made:?}");
    assert_eq!(here.standing("runtime:late"), Some(None));
    servers.primary.revive().await.unwrap();
    wait_until("it is there", SOON, || stands(&other, "runtime:late", true)).await.unwrap();
    assert!(matches!(here.standing("runtime:late"), Some(Some(_))));

    // The other one has both on its own disk: it needs neither its maker nor the primary.
    other.kill();
    drop(here);
    servers.primary.crash();
    let mut other = start();
    wait_until("it stands again", SOON, || async {
        Ok(stands(&other, "runtime:late", true).await.unwrap_or(false))
    })
    .await
    .unwrap();
    assert!(stands(&other, "runtime:early", true).await.unwrap());
    servers.primary.revive().await.unwrap();
    other.wait_until_ready().await.unwrap();
    wait_until("the table is read", SOON, || async {
        let synced = other.metrics().await?.sum("sluice_fleet_rules_synced", &[]);
        Ok(synced > 0.5)
    })
    .await
    .unwrap();
    let mut conn = connect(&other, "app").await.unwrap();
    conn.query("SET @x = 1").await.unwrap();
    let mut late = connect_as(&other, "late").await.unwrap();
    let refused = late.query("CREATE TABLE t (n INT)").await.unwrap();
    assert_eq!(Refused::of(&refused).unwrap().part("rule"), Some("runtime:late"));
}

/// What has to come by itself, on a loaded machine.
const SOON: Duration = Duration::from_secs(15);

fn deny(app: &str) -> RuleDraft {
    RuleDraft::of_app(app, RuntimeEffect::Deny)
}

/// Whether the status of a Sluice has a rule of this name.
async fn stands(
    sluice: &SluiceProcess,
    name: &str,
    wanted: bool,
) -> integration::error::Result<bool> {
    Ok(says(sluice, &format!("\"rule\":\"{name}\",\"action\"")).await? == wanted)
}

async fn says(sluice: &SluiceProcess, what: &str) -> integration::error::Result<bool> {
    Ok(sluice.http_get("/api/v1/status").await?.body.contains(what))
}

/// A Sluice in this process: clusters, probes, runtime rules, and no listener.
struct Member {
    rules: RuntimeRules,
    _probes: ClusterProbes,
    keeping: tokio::task::JoinHandle<()>,
    _secret: StateDir,
}

impl Member {
    fn start(config: &Config) -> Self {
        let secret = StateDir::new();
        let file = secret.0.join("password");
        std::fs::create_dir_all(&secret.0).unwrap();
        std::fs::write(&file, PROBE_PASSWORD).unwrap();
        let by_file = format!("password_file: {}", file.display());
        let yaml = config.render().replace("password_env: SLUICE_PROBE_PASSWORD", &by_file);
        let file = policy::load(&yaml).unwrap();
        let clock = Clock::start();
        let clusters: Vec<Arc<Cluster>> =
            file.clusters.iter().map(|policy| Cluster::new(policy.clone(), clock, 7)).collect();
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
        let rules = RuntimeRules::new(&clusters, &telemetry);
        let probes = ClusterProbes::start(&clusters).unwrap();
        let keeping = tokio::spawn(rules.clone().keep());
        Self { rules, _probes: probes, keeping, _secret: secret }
    }

    async fn make(&self, draft: RuleDraft) -> Receipt {
        self.rules.make(draft, "ann").await.unwrap()
    }

    /// The version of a rule that stands here, if it is written.
    fn standing(&self, name: &str) -> Option<Option<u64>> {
        let standing = self.rules.standing();
        standing.into_iter().find(|rule| *rule.name == *name).map(|rule| rule.version)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

/// A folder that goes with the test.
struct StateDir(PathBuf);

impl StateDir {
    fn new() -> Self {
        let name = format!("sluice-it-state-{:032x}", unique());
        Self(std::env::temp_dir().join(name))
    }
}

fn unique() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() ^ (u128::from(std::process::id()) << 64)
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // A test that has failed has more to say than this.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
