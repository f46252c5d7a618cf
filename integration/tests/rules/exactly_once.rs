//! Sixteen clients insert numbered rows through ratios, holds, full queues, denials, disconnects and
//! reloads. Afterwards every acknowledged row is there once, and every refused one is absent.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use integration::error::HarnessError;
use integration::raw::{Login, Param, RawConn, Response};
use integration::scenario::{Chance, Refused, numbers, wait_until};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

#[tokio::test]
async fn every_acknowledged_row_is_there_once_and_every_refused_one_is_absent_on_mysql() {
    rows_are_there_exactly_once(Topology::mysql(0).await.unwrap()).await;
}

#[tokio::test]
async fn every_acknowledged_row_is_there_once_and_every_refused_one_is_absent_on_mariadb() {
    rows_are_there_exactly_once(Topology::mariadb(0).await.unwrap()).await;
}

async fn rows_are_there_exactly_once(servers: Topology) {
    // No key is unique: a row that was written twice is there twice.
    servers.primary.run_sql(&["CREATE TABLE t (n BIGINT NOT NULL, KEY (n))"]).await.unwrap();
    let config = Config::new(&servers).unwrap().cluster("check_interval: 5ms").rules(PHASES[0]);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let until = Instant::now() + RUN;
    let clients: Vec<_> =
        (0..CLIENTS).map(|id| tokio::spawn(Client::new(id, &sluice).run(until))).collect();
    let mut phases = 0_usize;
    for rules in PHASES.iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        sluice.write_config(&config.clone().rules(rules).render()).unwrap();
        phases += 1;
        tokio::time::sleep(PHASE).await;
    }
    sluice.write_config(&config.render()).unwrap();
    let mut fates = HashMap::new();
    for client in clients {
        fates.extend(client.await.unwrap());
    }
    // What vanished clients left at the server has ended when their connections have.
    let running = "SELECT COUNT(*) FROM information_schema.processlist WHERE user IN ('etl', 'ddl', 'web', 'app')";
    let idle = || async { Ok(numbers(&servers.primary, running).await? == [0]) };
    wait_until("the server is idle", SOON, idle).await.unwrap();

    let mut there: HashMap<i64, u32> = HashMap::new();
    for n in numbers(&servers.primary, "SELECT n FROM t").await.unwrap() {
        *there.entry(n).or_default() += 1;
    }
    let mut counted = HashMap::new();
    for (n, fate) in &fates {
        let times = there.remove(n).unwrap_or_default();
        *counted.entry(*fate).or_insert(0_usize) += 1;
        match fate {
            Fate::Acknowledged => assert_eq!(times, 1, "row {n} was acknowledged"),
            Fate::Refused => assert_eq!(times, 0, "row {n} was refused"),
            Fate::Unknown => assert!(times <= 1, "row {n} is there {times} times"),
        }
    }
    assert!(there.is_empty(), "rows that nobody sent: {there:?}");
    // The test has seen all of it, often.
    for fate in [Fate::Acknowledged, Fate::Refused, Fate::Unknown] {
        let count = counted.get(&fate).copied().unwrap_or_default();
        assert!(count >= 50, "{count} rows are {fate:?}; {phases} phases");
    }
}

/// What the client knows of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Acknowledged,
    Refused,
    /// The client left before it was told.
    Unknown,
}

struct Client {
    addr: std::net::SocketAddr,
    user: &'static str,
    chance: Chance,
    next: i64,
    fates: HashMap<i64, Fate>,
}

impl Client {
    fn new(id: u32, sluice: &SluiceProcess) -> Self {
        let users = ["etl", "ddl", "web", "app"];
        let user = users.iter().cycle().nth(usize::try_from(id).unwrap()).unwrap();
        Self {
            addr: sluice.listen_addr(),
            user,
            chance: Chance::new(u64::from(id)),
            next: i64::from(id) * 1_000_000,
            fates: HashMap::new(),
        }
    }

    async fn run(mut self, until: Instant) -> HashMap<i64, Fate> {
        while Instant::now() < until {
            let mut conn = RawConn::open(self.addr, &Login::new(self.user)).await.unwrap();
            let insert = conn.prepare("INSERT INTO t VALUES (?)").await.unwrap();
            loop {
                match self.chance.below(20) {
                    0 => {
                        self.leave(conn).await;
                        break;
                    }
                    1..=9 => self.text(&mut conn).await,
                    10..=14 => {
                        let n = self.number();
                        let response = conn.execute(&insert, &[Param::int(n)]).await.unwrap();
                        self.note(&[n], &response);
                    }
                    _ => self.transaction(&mut conn).await,
                }
                if Instant::now() >= until {
                    conn.quit().await.unwrap();
                    break;
                }
            }
        }
        self.fates
    }

    async fn text(&mut self, conn: &mut RawConn) {
        let (n, m) = (self.number(), self.number());
        let response = conn.query(format!("INSERT INTO t VALUES ({n}), ({m})")).await.unwrap();
        self.note(&[n, m], &response);
    }

    /// Its rows count as acknowledged when its COMMIT is; a refused one is not part of it.
    async fn transaction(&mut self, conn: &mut RawConn) {
        accepted(&conn.query("BEGIN").await.unwrap());
        let mut written = Vec::new();
        for _ in 0..3 {
            let n = self.number();
            let response = conn.query(format!("INSERT INTO t VALUES ({n})")).await.unwrap();
            if was_refused(&response) {
                self.fates.insert(n, Fate::Refused);
            } else {
                written.push(n);
            }
        }
        let (end, fate) = match self.chance.below(4) {
            0 => ("ROLLBACK", Fate::Refused),
            _ => ("COMMIT", Fate::Acknowledged),
        };
        accepted(&conn.query(end).await.unwrap());
        self.fates.extend(written.into_iter().map(|n| (n, fate)));
    }

    /// Sends a write and vanishes, perhaps while it is queued, perhaps while it runs.
    async fn leave(&mut self, mut conn: RawConn) {
        let n = self.number();
        let insert = conn.query_payload(format!("INSERT INTO t VALUES ({n})").as_bytes(), &[]);
        conn.send_command(&insert).await.unwrap();
        tokio::time::sleep(Duration::from_millis(self.chance.below(30))).await;
        if self.chance.below(2) == 0 {
            conn.stream().set_zero_linger().unwrap();
        }
        self.fates.insert(n, Fate::Unknown);
    }

    fn note(&mut self, rows: &[i64], response: &Response) {
        let fate = if was_refused(response) { Fate::Refused } else { Fate::Acknowledged };
        self.fates.extend(rows.iter().map(|n| (*n, fate)));
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }
}

/// Refusals of Sluice; nothing else may go wrong.
fn was_refused(response: &Response) -> bool {
    let Some(refused) = Refused::of(response) else { return false };
    assert_eq!(refused.part("executed"), Some("no"), "{refused:?}");
    assert!([1205, 1226].contains(&refused.errno), "{refused:?}");
    true
}

fn accepted(response: &Response) {
    let ended = response.clone().accepted();
    assert!(ended.is_ok(), "{:?}", ended.err().map(|error: HarnessError| error.to_string()));
}

/// Each is in force for a moment, one after the other.
const PHASES: [&str; 7] = [
    "- { name: half, ratio: 0.5, max_delay: 50ms, permanent: true }",
    "- { name: held, match: { app: [etl, ddl] }, hold: true, max_delay: 200ms, permanent: true }",
    "- { name: narrow, ratio: 0.8, max_delay: 1s, max_queue: 3, permanent: true }",
    "- { name: denied, match: { app: web }, deny: true, permanent: true }\n\
     - { name: refused, ratio: 0.3, on_refused_check: reject, permanent: true }",
    "- { name: broken, ratio: many }",
    "- { name: all-held, hold: true, max_delay: 10s, permanent: true }",
    "- { name: free, gate: none, permanent: true }",
];

const CLIENTS: u32 = 16;
const PHASE: Duration = Duration::from_millis(350);
const RUN: Duration = Duration::from_secs(14);
const SOON: Duration = Duration::from_secs(20);
