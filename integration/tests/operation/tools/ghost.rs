//! gh-ost: played by a client of our own, and the real one where `SLUICE_GHOST` names it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use integration::error::Result;
use integration::ghost::{Migration, Progress};
use integration::server::Flavour;
use integration::sluice::SluiceProcess;
use integration::tools::{ToolProcess, real_ghost};
use tokio::task::JoinHandle;

use super::lab::{Lab, Shut, TOOL_LIMIT, Tool, Traffic};

#[tokio::test]
async fn gh_ost_on_the_master_waits_while_a_replica_is_stopped_and_swaps() {
    let mut lab = Lab::start(Flavour::MySql).await;
    migrate(&mut lab, From::Master, Shut::ByLag).await;
}

#[tokio::test]
async fn gh_ost_that_reads_a_replica_waits_for_a_hold_and_swaps() {
    let mut lab = Lab::start(Flavour::MySql).await;
    migrate(&mut lab, From::Replica, Shut::ByHold).await;
}

/// Where the binary log is read; writes go through Sluice in any case.
#[derive(Debug, Clone, Copy)]
enum From {
    /// `--host` and `--allow-on-master`: through Sluice as well.
    Master,
    /// `--host` is a replica, and Sluice is `--assume-master-host`.
    Replica,
}

async fn migrate(lab: &mut Lab, from: From, shut: Shut) {
    let traffic = Traffic::start(lab).await;
    let inspector = match from {
        From::Master => lab.sluice.listen_addr(),
        From::Replica => lab.servers.replicas.first().unwrap().addr(),
    };
    match real_ghost() {
        Some(ghost) => {
            let mut tool = real(&ghost, lab.sluice.listen_addr(), inspector);
            lab.run(&mut tool, "gh-ost", 10_000.0, shut).await;
        }
        None => {
            let mut played = Played::start(&lab.sluice, inspector);
            lab.run(&mut played, "gh-ost", 10_000.0, shut).await;
            played.was_not_kept_from_swapping();
        }
    }
    let (transactions, slowest) = traffic.stop().await;
    assert!(transactions > 50, "{transactions} transactions");
    // The cut-over's lock is held for one or two seconds, as without Sluice.
    assert!(slowest < Duration::from_secs(20), "the table was locked for {slowest:?}");
    lab.is_altered().await;
    lab.same_rows("t", "shadow", "TRUE").await;
    lab.replica_agrees(&["t", "shadow"]).await;
}

/// A migration in a task of its own.
pub(crate) struct Played {
    task: JoinHandle<Result<()>>,
    progress: Arc<Progress>,
}

impl Played {
    /// From when its cut-over has locked the table, gh-ost is throttled for good.
    fn start(sluice: &SluiceProcess, inspector: SocketAddr) -> Self {
        let shut = "/throttler/throttle-app?app=gh-ost&duration=1h".to_owned();
        let migration = Migration::on_master(sluice.listen_addr(), "ddl", 7001).reading(inspector);
        Self::run(Migration { when_locked: Some((sluice.admin_addr(), shut)), ..migration })
    }

    /// With the gate shut inside the lock, nothing that the swap waits for has waited for the gate:
    /// that it has come to an end is said already, and that the lock was held no longer than gh-ost
    /// allows, whatever it had to wait for on this machine.
    fn was_not_kept_from_swapping(&self) {
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let (locked_ms, tries) = (of(&self.progress.locked_ms), of(&self.progress.cut_overs));
        assert!(locked_ms < 6_000 * tries, "{:?}", self.progress);
    }

    /// Everything at one server, and asks there whether it may.
    pub(crate) fn asking(applier: SocketAddr, door: SocketAddr, path: &str) -> Self {
        let check = Some((door, path.to_owned()));
        Self::run(Migration { check, ..Migration::on_master(applier, "ddl", 7002) })
    }

    fn run(migration: Migration) -> Self {
        let progress = migration.progress.clone();
        let task = async move {
            let ended = migration.run().await;
            if let Err(error) = &ended {
                eprintln!("gh-ost's part ended: {error}");
            }
            ended
        };
        Self { task: tokio::spawn(task), progress }
    }
}

impl Tool for Played {
    fn has_ended(&mut self) -> bool {
        self.task.is_finished()
    }

    fn said(&self) -> String {
        format!("{:?}", self.progress)
    }

    async fn succeed(&mut self) -> String {
        let ended = tokio::time::timeout(TOOL_LIMIT, &mut self.task).await;
        let ended = ended.unwrap_or_else(|_| panic!("it goes on: {:?}", self.progress));
        ended.unwrap().unwrap_or_else(|error| panic!("{error}: {:?}", self.progress));
        self.said()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn real(ghost: &std::path::Path, applier: SocketAddr, inspector: SocketAddr) -> ToolProcess {
    let mut arguments =
        vec![format!("--host={}", inspector.ip()), format!("--port={}", inspector.port())];
    if applier == inspector {
        arguments.push("--allow-on-master".into());
    } else {
        arguments.push(format!("--assume-master-host={applier}"));
    }
    let rest = [
        "--user=ddl",
        "--password=ddl",
        "--database=test",
        "--table=t",
        "--alter=ADD COLUMN extra INT NOT NULL DEFAULT 0",
        "--skip-port-validation",
        "--assume-rbr",
        "--ok-to-drop-table",
        "--serve-socket-file=ghost.sock",
        "--replica-server-id=7001",
        "--execute",
    ];
    arguments.extend(rest.map(str::to_owned));
    ToolProcess::start(ghost, &arguments).unwrap()
}
