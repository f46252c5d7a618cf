//! What may happen to the history's file, while traffic goes on: the disk full, killed in the middle of
//! a write, a file of a newer Sluice.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use integration::raw::RawConn;
use integration::scenario::{connect_as, wait_until};
use integration::sluice::{Config, Metrics, SluiceProcess, binary};
use integration::topology::Topology;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{SOON, StateDir, tell};

/// What the log has when the history cannot be written.
const NOT_KEPT: &str = "the history is not kept on disk";

/// How often the history was written to its file.
const WRITES: &str = "sluice_history_writes_total";

/// No statement of the traffic takes longer, whatever the disk does: far more than a busy machine makes
/// of it, and less than a try at the disk again.
const SLOWEST: Duration = Duration::from_secs(3);

pub(super) struct Scene {
    config: Config,
    yaml: String,
    state: StateDir,
}

impl Scene {
    pub(super) fn new(servers: &Topology, name: &str) -> Self {
        let config = Config::new(servers).unwrap();
        let state = StateDir::new(name);
        let yaml = format!("state_dir: {}\n{}", state.0.display(), config.render());
        Self { config, yaml, state }
    }

    fn file(&self) -> std::path::PathBuf {
        self.state.0.join("history.sqlite3")
    }

    async fn start(&self) -> SluiceProcess {
        self.start_as(&binary().unwrap()).await
    }

    async fn start_as(&self, program: &Path) -> SluiceProcess {
        let at = (self.config.listen, self.config.admin);
        let mut sluice = SluiceProcess::spawn_binary(program, &self.yaml, at, &[], &[]).unwrap();
        sluice.wait_until_ready().await.unwrap();
        sluice
    }

    async fn shows(&self, sluice: &SluiceProcess, part: &str) {
        wait_until("the status says so", SOON, || async {
            Ok(tell(&self.config, &["status"]).await.contains(part))
        })
        .await
        .unwrap();
        assert!(sluice.http_get("/readyz").await.unwrap().body.contains(part));
        let kept = sluice.metrics().await.unwrap().value("sluice_history_on_disk", &[]);
        assert_eq!(kept, Some(0.0));
    }
}

/// With a limit to what a file may be long, as of a disk that is full, and then without.
pub(super) async fn a_full_disk(scene: Scene) {
    fs::create_dir_all(&scene.state.0).unwrap();
    let program = scene.state.0.join("on-a-small-disk");
    // In blocks of 512 bytes. What would be longer is an error, and no signal.
    let script = format!(
        "#!/bin/sh\ntrap '' XFSZ\nulimit -S -f 120\nexec {} \"$@\"\n",
        binary().unwrap().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let mut sluice = scene.start_as(&program).await;
    let traffic = Traffic::start(&sluice, "crowd-").await;
    scene.shows(&sluice, "history.sqlite3").await;
    // It is tried again meanwhile, and nobody is told the same again.
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(sluice.log().unwrap().matches(NOT_KEPT).count(), 1, "{}", sluice.log().unwrap());
    let limit = format!("--pid={}", sluice.pid().unwrap());
    let freed = Command::new("prlimit").args([&limit, "--fsize=unlimited"]).status().unwrap();
    assert!(freed.success());
    wait_until("it is kept again", SOON, || async {
        Ok(sluice.log()?.contains("the history is kept on disk again"))
    })
    .await
    .unwrap();
    let (asked, slowest) = traffic.stop().await;
    assert!(slowest < SLOWEST, "{slowest:?}");
    // All of it, also what came while nothing could be written.
    let told = total(&sluice).await;
    assert!(told >= asked, "{told} of {asked}");
    let lost = sluice.metrics().await.unwrap().sum("sluice_history_rows_lost_total", &[]);
    assert!(lost.abs() < 0.5, "{lost}");
    sluice.stop(SOON).await.unwrap();
}

/// Whenever it dies, the file is sound, and has all but the last moments.
pub(super) async fn kill_9_while_it_is_written(scene: Scene) {
    let mut written = 0;
    for (round, after) in [50_u64, 400, 1_100].into_iter().enumerate() {
        let mut sluice = scene.start().await;
        let log = sluice.log().unwrap();
        assert!(!log.contains("damaged") && !log.contains(NOT_KEPT), "{log}");
        let told = total(&sluice).await;
        assert!(told >= written, "{told} of {written}, which were written");
        let traffic = Traffic::start(&sluice, &format!("round-{round}-")).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let asked = traffic.asked.load(Ordering::Relaxed);
        // The first of these may have begun before that.
        let writes = sluice.metrics().await.unwrap().sum(WRITES, &[]);
        let two_more = |metrics: &Metrics| metrics.sum(WRITES, &[]) >= writes + 2.0;
        sluice.wait_for_metrics("it is written twice", SOON, two_more).await.unwrap();
        tokio::time::sleep(Duration::from_millis(after)).await;
        sluice.kill();
        traffic.task.await.unwrap();
        written += asked;
    }
}

/// It is left alone, and said; nothing of it is changed.
pub(super) async fn a_file_of_a_newer_sluice(scene: Scene) {
    let mut first = scene.start().await;
    wait_until("it is written", SOON, || async { Ok(scene.file().exists()) }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    first.stop(SOON).await.unwrap();
    assert!(!scene.state.0.join("history.sqlite3-wal").exists(), "all of it is in the one file");
    // `user_version` of SQLite's header.
    let mut newer = fs::read(scene.file()).unwrap();
    newer.get_mut(60..64).unwrap().copy_from_slice(&7_u32.to_be_bytes());
    fs::write(scene.file(), &newer).unwrap();
    let mut sluice = scene.start().await;
    let traffic = Traffic::start(&sluice, "newer-").await;
    scene.shows(&sluice, "is of a newer Sluice (version 7; this one knows 1)").await;
    let (asked, slowest) = traffic.stop().await;
    assert!(asked > 0 && slowest < SLOWEST, "{asked} in {slowest:?}");
    // What happens is told all the same, from memory.
    assert!(total(&sluice).await >= asked);
    sluice.stop(SOON).await.unwrap();
    assert_eq!(fs::read(scene.file()).unwrap(), newer, "it is as it was");
}

/// Statements of many apps, one behind the other.
struct Traffic {
    /// How many were answered.
    asked: Arc<AtomicU64>,
    stop: oneshot::Sender<()>,
    /// The slowest of them.
    task: JoinHandle<Duration>,
}

impl Traffic {
    async fn start(sluice: &SluiceProcess, apps: &str) -> Self {
        let mut conn = connect_as(sluice, "traffic").await.unwrap();
        let (stop, mut stopped) = oneshot::channel();
        let apps = apps.to_owned();
        let asked = Arc::new(AtomicU64::new(0));
        let answered = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut slowest = Duration::ZERO;
            while stopped.try_recv().is_err() {
                let began = Instant::now();
                if !is_answered(&mut conn, &apps, answered.load(Ordering::Relaxed)).await {
                    break;
                }
                answered.fetch_add(1, Ordering::Relaxed);
                slowest = slowest.max(began.elapsed());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            slowest
        });
        Self { asked, stop, task }
    }

    async fn stop(self) -> (u64, Duration) {
        assert!(!self.task.is_finished(), "its connection has ended");
        self.stop.send(()).ok();
        let slowest = self.task.await.unwrap();
        (self.asked.load(Ordering::Relaxed), slowest)
    }
}

async fn is_answered(conn: &mut RawConn, apps: &str, n: u64) -> bool {
    // The letters keep the number from being one of a run.
    let sql = format!("SELECT 1 /*app='{apps}{}y'*/", n % 190);
    conn.query(sql).await.is_ok_and(|answer| answer.err().is_none())
}

/// How many statements the history has.
async fn total(sluice: &SluiceProcess) -> u64 {
    let answer = sluice.http_get("/api/v1/history?since=10m").await.unwrap().body;
    let (_, total) = answer.split_once("\"total\":{\"asked\":").unwrap();
    let digits = total.find(|c: char| !c.is_ascii_digit()).unwrap();
    total.get(..digits).unwrap().parse().unwrap()
}
