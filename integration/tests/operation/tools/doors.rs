//! Tools that write around Sluice and ask it first, by the snippets of docs/examples; and gh-ost,
//! which asks while what it writes comes through Sluice.
//!
//! Whatever they are told is Sluice's own answer. In between stands a relay, which only counts, and
//! has the app throttled behind so many checks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use integration::server::{Flavour, Server};
use integration::tools::{ToolProcess, program};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::ghost::Played;
use super::lab::{Lab, Tool, Traffic};

#[tokio::test]
async fn what_asks_first_waits_for_a_yes_and_goes_on() {
    let lab = Lab::start(Flavour::MySql).await;
    let door = Door::open(&lab).await;
    let traffic = Traffic::start(&lab).await;
    let primary = lab.servers.primary.addr().port();

    let source = format!("h=127.0.0.1,P={primary},u=etl,p=etl,D=test,t=t,m=SluiceArchiver");
    let mut command = Command::new(program("pt-archiver").unwrap());
    command.args([
        "--no-version-check",
        "--purge",
        "--where=id <= 4000",
        "--limit=600",
        "--bulk-delete",
    ]);
    command.args(["--source", &source]).env("PERL5LIB", examples());
    door.lets_pass(3);
    let mut archiver = ToolProcess::spawn(door.named(&mut command, "pt-archiver")).unwrap();
    door.opens_again(
        &lab,
        "pt-archiver",
        &mut archiver,
        "SELECT 4000 - COUNT(*) FROM t WHERE id <= 4000",
    )
    .await;
    assert_eq!(rows(&lab, "SELECT COUNT(*) FROM t WHERE id <= 4000").await, 0);

    let mut loop_in_shell = Command::new(examples().join("chunks.sh"));
    loop_in_shell.arg(program("mysql").unwrap()).args(["--no-defaults", "--host=127.0.0.1"]);
    loop_in_shell.args([&format!("--port={primary}"), "--user=etl", "--password=etl", "test"]);
    loop_in_shell.env(
        "STATEMENT",
        "DELETE FROM t WHERE id BETWEEN 4001 AND 8000 LIMIT 600; SELECT ROW_COUNT()",
    );
    door.lets_pass(3);
    let mut script = ToolProcess::spawn(door.named(&mut loop_in_shell, "cleanup")).unwrap();
    door.opens_again(
        &lab,
        "cleanup",
        &mut script,
        "SELECT 4000 - COUNT(*) FROM t WHERE id <= 8000",
    )
    .await;
    assert_eq!(rows(&lab, "SELECT COUNT(*) FROM t WHERE id <= 8000").await, 0);

    task_is_throttled(&lab, &door).await;

    door.lets_pass(8);
    let mut ghost =
        Played::asking(lab.sluice.listen_addr(), door.addr, "/throttler/check?app=gh-ost");
    door.opens_again(&lab, "gh-ost", &mut ghost, "SELECT COUNT(*) FROM _t_gho").await;
    lab.is_altered().await;
    let (transactions, slowest) = traffic.stop().await;
    assert!(transactions > 50, "{transactions} transactions, of at most {slowest:?}");
    lab.same_rows("t", "shadow", "id > 8000").await;
    lab.replica_agrees(&["t", "shadow"]).await;
}

/// What maintenance_tasks asks ahead of each element: the block that the task of docs/examples gives to
/// `throttle_on`, with a stand-in for the gem. True holds it back.
async fn task_is_throttled(lab: &Lab, door: &Door) {
    const STAND_IN: &str = "class Integer; def seconds = self; end
        module MaintenanceTasks
          class Task
            def self.throttle_on(backoff:, &condition)
              abort 'an odd backoff' unless backoff == 5
              define_singleton_method(:held_back?, &condition)
            end
          end
        end
        require ARGV.fetch(0)
        print Maintenance::BackfillTask.held_back?";
    let file = examples().join("throttle_on.rb");
    let ask = async || {
        let mut command = Command::new(program("ruby").unwrap());
        command.arg("-e").arg(STAND_IN).arg(&file);
        let mut task = ToolProcess::spawn(door.named(&mut command, "backfill")).unwrap();
        task.succeeded(LIMIT).await.unwrap()
    };
    door.lets_pass(1);
    assert_eq!(ask().await.trim(), "false");
    assert_eq!(ask().await.trim(), "true", "it is throttled");
    tell(lab.sluice.admin_addr(), "unthrottle-app?app=backfill").await;
    assert_eq!(ask().await.trim(), "false");
}

/// pt-online-schema-change, which writes around Sluice. Version 3.2 asks only where it finds a
/// replica by SHOW SLAVE STATUS, which MySQL 9.7 has not.
pub(crate) async fn change_by_asking(lab: &Lab) {
    let door = Door::open(lab).await;
    let [primary, replica] =
        [&lab.servers.primary, lab.servers.replicas.first().unwrap().server()].map(Server::port);
    let mut command = Command::new(program("pt-online-schema-change").unwrap());
    command.args(["--no-version-check", "--execute", "--chunk-time=0", "--chunk-size=2000"]);
    command.arg("--recursion-method=none");
    command.arg(format!("--check-slave-lag=h=127.0.0.1,P={replica},u=admin,p=admin"));
    command.arg("--plugin").arg(examples().join("pt-online-schema-change-plugin.pl"));
    command.arg("--alter=ADD COLUMN more INT NOT NULL DEFAULT 0");
    command.arg(format!("h=127.0.0.1,P={primary},u=ddl,p=ddl,D=test,t=t"));
    door.lets_pass(6);
    let mut change =
        ToolProcess::spawn(door.named(&mut command, "pt-online-schema-change")).unwrap();
    door.opens_again(lab, "pt-online-schema-change", &mut change, "SELECT COUNT(*) FROM _t_new")
        .await;
}

/// What a tool asks: it says yes so often, and then no until it is opened.
struct Door {
    addr: SocketAddr,
    sluice: SocketAddr,
    left: Arc<AtomicI64>,
}

impl Door {
    async fn open(lab: &Lab) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let sluice = lab.sluice.admin_addr();
        let left = Arc::new(AtomicI64::new(0));
        let yes = left.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(stream, sluice, yes.clone()));
            }
        });
        Self { addr, sluice, left }
    }

    fn lets_pass(&self, checks: i64) {
        self.left.store(checks, Ordering::Relaxed);
    }

    /// Tells a tool whom to ask, and as whom.
    fn named<'c>(&self, command: &'c mut Command, app: &str) -> &'c mut Command {
        command.env("SLUICE_CHECK", format!("http://{}/throttler/check?app={app}", self.addr))
    }

    /// Waits until a tool has used up its checks and been told no; then it has done something, does
    /// no more, and does not give up. Told yes again, it ends well.
    async fn opens_again(&self, lab: &Lab, app: &str, tool: &mut impl Tool, progress: &str) {
        let started = Instant::now();
        while self.left.load(Ordering::Relaxed) > -REFUSED_CHECKS {
            let ended = tool.has_ended() || started.elapsed() > LIMIT;
            assert!(!ended, "nobody was told no: {}", tool.said());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let before = settled(lab, progress).await;
        tokio::time::sleep(SHUT_FOR).await;
        let there = rows(lab, progress).await;
        assert!(
            before > 0 && there < before + BY_TRAFFIC,
            "{before} and {there} rows: {}",
            tool.said()
        );
        assert!(!tool.has_ended(), "{}", tool.said());
        self.lets_pass(i64::MAX);
        tell(self.sluice, &format!("unthrottle-app?app={app}")).await;
        tool.succeed().await;
        let labels = [("app", app), ("dialect", "vitess"), ("reason", "ratio")];
        let metrics = lab.sluice.metrics().await.unwrap();
        let refused = metrics.sum("sluice_cooperative_checks_total", &labels);
        assert!(refused >= 2.0, "{refused} checks of {app} are counted as refused");
    }
}

/// What was allowed may still be under way.
async fn settled(lab: &Lab, progress: &str) -> i64 {
    let started = Instant::now();
    let mut before = i64::MIN / 2;
    loop {
        let now = rows(lab, progress).await;
        if now < before + BY_TRAFFIC || started.elapsed() > LIMIT {
            return now;
        }
        before = now;
        tokio::time::sleep(SETTLES_IN).await;
    }
}

async fn rows(lab: &Lab, question: &str) -> i64 {
    lab.servers.primary.query_first(question).await.unwrap().unwrap()
}

/// Passes a check on, and its answer back. Behind the last that may pass, its app is throttled.
async fn relay(stream: TcpStream, sluice: SocketAddr, left: Arc<AtomicI64>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !stream.read_line(&mut head).await.is_ok_and(|len| len > 0) {
            return;
        }
    }
    if left.fetch_sub(1, Ordering::Relaxed) == 0 {
        let app = head.split_once("app=").unwrap().1;
        let app = app.split(['&', ' ']).next().unwrap();
        tell(sluice, &format!("throttle-app?app={app}&duration=10m")).await;
    }
    let mut behind = TcpStream::connect(sluice).await.unwrap();
    let close = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    behind.write_all(close.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    behind.read_to_end(&mut answer).await.unwrap();
    stream.write_all(&answer).await.ok();
}

/// A command in Vitess' dialect.
async fn tell(sluice: SocketAddr, command: &str) {
    let mut stream = TcpStream::connect(sluice).await.unwrap();
    let request =
        format!("GET /throttler/{command} HTTP/1.1\r\nHost: {sluice}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{command}: {answer}");
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/examples")
}

/// Two at least, so that what was allowed is done.
const REFUSED_CHECKS: i64 = 2;
/// Rows that the traffic brings into a copy by triggers, which is less than a chunk.
const BY_TRAFFIC: i64 = 500;
const SETTLES_IN: Duration = Duration::from_millis(700);
const SHUT_FOR: Duration = Duration::from_millis(1500);
const LIMIT: Duration = Duration::from_secs(60);
