//! What `sluice history` and `sluice why` tell of a replica that fell behind, also after kill -9, and
//! with the file taken away.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

mod trouble;
mod why;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use integration::replica::Lag;
use integration::scenario::{Refused, Shared, connect_as, wait_for_signal, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess, binary};
use integration::topology::Topology;

const RULES: &str = "\
- { name: nightly-etl, match: { app: etl }, max_delay: 1s, permanent: true, reason: mornings }
- { name: hasty, match: { app: hasty }, on_refused_check: reject, permanent: true }
- { name: everything-else, gate: none, permanent: true }";

/// What has to come by itself, on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

static MYSQL: Shared = Shared::new(Flavour::MySql);

#[tokio::test]
async fn why_knows_guards_quarantine_budgets_and_who_waits() {
    let servers = MYSQL.get().await.unwrap();
    let statements = [
        "GRANT CONNECTION_ADMIN ON *.* TO 'sluice'@'%'",
        "CREATE TABLE IF NOT EXISTS test.t (n INT)",
        "INSERT INTO test.t VALUES (1)",
    ];
    servers.primary.run_sql(&statements).await.unwrap();
    why::of_guards_quarantine_and_budgets(servers).await;
}

#[tokio::test]
async fn whatever_happens_to_the_file_traffic_goes_on_and_nothing_is_corrupt() {
    let servers = MYSQL.get().await.unwrap();
    let scene = |name| trouble::Scene::new(servers, name);
    // Beside each other: they mostly wait for the disk to be tried again.
    tokio::join!(
        trouble::a_full_disk(scene("full")),
        trouble::kill_9_while_it_is_written(scene("killed")),
        trouble::a_file_of_a_newer_sluice(scene("newer")),
    );
}

#[tokio::test]
async fn who_was_held_by_which_replica_is_told_also_after_kill_9_and_without_the_file() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.t (n INT)"]).await.unwrap();
    let config = Config::new(&servers).unwrap().rules(RULES);
    let state = StateDir::new("lag");
    let yaml = format!("state_dir: {}\n{}", state.0.display(), config.render());
    let start = || SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    let mut sluice = start();
    sluice.wait_until_ready().await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();

    let replica = servers.replicas.first_mut().unwrap();
    let server = replica.addr().to_string();
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let mut etl = connect_as(&sluice, "etl").await.unwrap();
    let mut ddl = connect_as(&sluice, "online-ddl").await.unwrap();
    let refused = etl.query("INSERT INTO t VALUES (1)").await.unwrap();
    let refused = Refused::of(&refused).unwrap();
    let id = refused.part("id").unwrap().to_owned();
    let mut hasty = connect_as(&sluice, "hasty").await.unwrap();
    assert!(Refused::of(&hasty.query("INSERT INTO t VALUES (1)").await.unwrap()).is_some());
    it_is_told_to_who_asks(&sluice, &server).await;
    let rows = "INSERT INTO t SELECT 1 FROM information_schema.collations LIMIT 40";
    assert!(Refused::of(&ddl.query(rows).await.unwrap()).is_none());
    replica.lag_stop().await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    assert!(Refused::of(&etl.query("INSERT INTO t VALUES (2)").await.unwrap()).is_none());

    // At once, of the minute under way.
    the_refused_is_told(&config, &id, &server).await;
    assert!(tell(&config, &["why", "etl"]).await.contains(&format!("statement {id} of etl")));
    let told = history_of_etl(&config, &server, "1 was refused").await;
    assert!(told.contains("meanwhile online-ddl wrote 9"), "of 41 rows: {told}");
    history_of_hasty(&config, &server).await;

    // What is on disk by then is there after kill -9, and what was refused can be asked for.
    let edited = yaml.replace("reason: mornings", "reason: late mornings");
    sluice.write_config(&edited).unwrap();
    wait_until("it is written", SOON, || async {
        let metrics = sluice.metrics().await?;
        let told = tell(&config, &["history", "--since", "10m ago"]).await;
        Ok(told.contains("rule nightly-etl changed")
            && metrics.sum("sluice_history_writes_total", &[]) >= 3.0)
    })
    .await
    .unwrap();
    tokio::time::sleep(WRITTEN_EVERY).await;
    sluice.kill();
    let mut sluice = start();
    sluice.wait_until_ready().await.unwrap();
    history_of_etl(&config, &server, "1 was refused").await;
    why_tells_of(&config, &[&id, "etl"], &[&id, &server]).await;
    let answer = sluice.http_get("/api/v1/history?app=etl&since=10m").await.unwrap().body;
    assert!(answer.contains("\"on_disk\":true") && answer.contains("\"refused\":1"), "{answer}");

    // Without its file traffic goes on, and there is another one.
    // It is opened with the first write: one that is gone before is no news.
    wait_until_it_has_written(&sluice).await;
    let file = state.0.join("history.sqlite3");
    std::fs::remove_file(&file).unwrap();
    let mut etl = connect_as(&sluice, "etl").await.unwrap();
    assert!(Refused::of(&etl.query("INSERT INTO t VALUES (3)").await.unwrap()).is_none());
    wait_until("another file", SOON, || async { Ok(file.exists()) }).await.unwrap();
    wait_until("it is told", SOON, || async {
        Ok(sluice.log()?.contains("was removed or replaced"))
    })
    .await
    .unwrap();
    sluice.stop(SOON).await.unwrap();
}

/// The door said how high the lag was, and nothing of a reason that does not end by itself.
async fn it_is_told_to_who_asks(sluice: &SluiceProcess, server: &str) {
    let stopped = "the applier (SQL thread) is stopped, without an error: somebody stopped it";
    for path in ["/check/etl/mysql/main", "/throttler/check?app=etl"] {
        let answer = sluice.http_get(path).await.unwrap();
        assert!(answer.status != 200, "{path}: {}", answer.body);
        assert!(answer.body.contains(&format!("({stopped})\"")), "{path}: {}", answer.body);
    }
    let ready = sluice.http_get("/readyz").await.unwrap();
    let line = format!("cluster main: replica {server}: {stopped}");
    assert!(ready.status == 200 && ready.body.lines().any(|it| it == line), "{}", ready.body);
}

/// Who, by which rule, and what kept the gate shut.
async fn the_refused_is_told(config: &Config, id: &str, server: &str) {
    let why = tell(config, &["why", id]).await;
    for part in [
        &format!("statement {id} of etl was refused at "),
        "identity: etl, named by a connection attribute; user app at 127.0.0.1:",
        "rule: nightly-etl (throttle): mornings",
        &format!(
            " at {server} (the applier (SQL thread) is stopped, without an error: somebody \
             stopped it), threshold 1 s: shut"
        ),
        &format!(
            "what would have let it through: lag below 1 s, once that is mended at {server} (on \
             that server: START REPLICA"
        ),
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

async fn wait_until_it_has_written(sluice: &SluiceProcess) {
    wait_until("it has written", SOON, || async {
        Ok(sluice.metrics().await?.sum("sluice_history_writes_total", &[]) >= 1.0)
    })
    .await
    .unwrap();
}

/// As often as Sluice writes.
const WRITTEN_EVERY: Duration = Duration::from_secs(2);

async fn history_of_etl(config: &Config, server: &str, refused: &str) -> String {
    let told = tell(config, &["history", "etl", "--since", "10m ago"]).await;
    let sentence = told.lines().find(|line| line.starts_with("etl "));
    let sentence = sentence.unwrap_or_default();
    for part in ["held ", ": lag ", &format!("at replica {server} (over 1 s for "), refused] {
        assert!(sentence.contains(part), "{part}: {told}");
    }
    assert!(told.lines().any(|line| line.contains("asked") && line.contains("wait max")), "{told}");
    told
}

/// Of what was refused at once the signal is told as well.
async fn history_of_hasty(config: &Config, server: &str) {
    let told = tell(config, &["history", "hasty", "--since", "10m ago"]).await;
    let sentence = told.lines().find(|line| line.starts_with("hasty "));
    assert!(sentence.is_some_and(|line| line.contains(&format!("at replica {server}"))), "{told}");
}

async fn why_tells_of(config: &Config, asked: &[&str], parts: &[&str]) {
    for asked in asked {
        let why = tell(config, &["why", asked]).await;
        assert!(parts.iter().all(|part| why.contains(part)), "{asked}: {why}");
    }
}

/// What a command prints.
async fn tell(config: &Config, arguments: &[&str]) -> String {
    let mut command = Command::new(binary().unwrap());
    command.args(arguments).arg("--admin").arg(format!("http://{}", config.admin));
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = run.await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A folder that goes with the test.
struct StateDir(PathBuf);

impl StateDir {
    fn new(name: &str) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let name = format!("sluice-it-history-{name}-{}-{}", std::process::id(), since.as_nanos());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // A test that has failed has more to say than this.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
