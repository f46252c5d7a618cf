//! Statements that run away, what is in quarantine, and budgets, under clients that do everything a
//! protocol lets them: compressed, in TLS, ahead of answers, over cursors, in uploads, and gone
//! without a word. First nobody else kills: then a KILL that meets anything but what ran away is
//! Sluice's, and what was committed is there. Then everybody kills everybody. Behind both nothing
//! is left: no place in a budget, nobody in a line, no session, no statement at the server.
//!
//! `CHAOS_SEED` and `CHAOS_SECONDS` make it another one, and longer.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::certificates::Certificates;
use integration::raw::{Compress, Login, RawConn, Tls, capability};
use integration::scenario::{Chance, wait_for_sum, wait_until};
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use serde_json::Value;
use tokio::task::JoinSet;

use self::doing::{Doing, Others};

mod bulk;
mod doing;
mod gauntlet;
mod killing;

#[tokio::test]
async fn mysql_keeps_nothing_behind_chaos_and_no_kill_meets_another_statement() {
    chaos(Flavour::MySql).await;
}

#[tokio::test]
async fn mariadb_keeps_nothing_behind_chaos_and_no_kill_meets_another_statement() {
    chaos(Flavour::MariaDb).await;
}

async fn chaos(flavour: Flavour) {
    let lab = Lab::start(flavour).await;
    lab.gauntlet().await;
    let committed = lab.storm(Others::Wait).await;
    let there = "SELECT COUNT(*) FROM test.committed WHERE who <> 4";
    assert_eq!(lab.server.query::<u64>(there).await.unwrap(), [committed]);
    lab.nothing_is_left().await;
    lab.storm(Others::Kill).await;
    lab.nothing_is_left().await;
}

/// A server that nobody else uses, and Sluice in front of it.
struct Lab {
    server: Server,
    sluice: SluiceProcess,
    seed: u64,
}

impl Lab {
    async fn start(flavour: Flavour) -> Self {
        let mut options = ServerOptions::new(flavour);
        // Read when the server starts, and of no use after that.
        let certificates = Certificates::new().unwrap();
        options.extra_args = certificates.server_args().unwrap();
        let server = Server::start(options).await.unwrap();
        let right = match flavour {
            Flavour::MySql => "GRANT CONNECTION_ADMIN ON *.* TO 'sluice'@'%'",
            Flavour::MariaDb => "GRANT CONNECTION ADMIN ON *.* TO 'sluice'@'%'",
        };
        server.run_sql(&[right]).await.unwrap();
        server.run_sql(SCHEMA).await.unwrap();
        let config = Config::in_front_of(server.addr(), Vec::new()).unwrap().rules(RULES);
        let config = config.cluster("backend_compression: as_client");
        let config = Config { top: BUDGETS.to_owned(), ..config };
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
        Self { server, sluice, seed: seed.unwrap_or(1) }
    }

    fn is_mariadb(&self) -> bool {
        self.server.flavour() == Flavour::MariaDb
    }

    /// A leg for `number`: in the clear, in TLS, compressed, or both.
    fn login(&self, number: u64, app: &str) -> Login {
        let packed = if self.is_mariadb() { Compress::Zlib } else { Compress::Zstd(3) };
        let login = Login::new("quick").password("").attribute("sluice_app", app);
        let login = login.with_mariadb(capability::MARIADB_BULK);
        match number % 5 {
            0 | 1 => login,
            2 => login.compress(Compress::Zlib),
            3 => login.compress(packed),
            _ => login.tls(Tls::Newest).compress(packed),
        }
    }

    /// All clients, for as long as it takes; how many rows they know to be committed.
    async fn storm(&self, others: Others) -> u64 {
        let seconds = std::env::var("CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
        let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let mut doing = Doing {
                addr: self.sluice.listen_addr(),
                logins: APPS.map(|app| self.login(number, app)),
                chance: Chance::new(self.seed.wrapping_mul(CLIENTS).wrapping_add(number)),
                mariadb: self.is_mariadb(),
                others,
                committed: 0,
            };
            clients.spawn(async move {
                doing.until(until).await;
                doing.committed
            });
        }
        if others == Others::Kill {
            self.kill_until(until).await;
        }
        clients.join_all().await.into_iter().sum()
    }

    /// No place in a budget, nobody in a line, no session, and nothing at the server; and as many
    /// as a budget says find room at once.
    async fn nothing_is_left(&self) {
        for name in [
            "sluice_budget_left_behind",
            "sluice_budget_in_use",
            "sluice_budget_waiting",
            "sluice_client_connections",
            "sluice_queue_depth",
        ] {
            let nothing = wait_for_sum(&self.sluice, name, &[], 0.0).await;
            assert!(nothing.is_ok(), "{nothing:?}\n{}", self.sluice.log().unwrap());
        }
        // What is owed is paid by the time that passes.
        let is_empty = |budget: &Value| {
            let fill = budget.get("fill").and_then(Value::as_f64);
            fill.is_none_or(|fill| fill < 0.01)
        };
        let paid = || async {
            let status = self.sluice.http_get("/api/v1/status").await?.body;
            let status: Value = serde_json::from_str(&status).unwrap();
            let budgets = status.pointer("/clusters/0/budgets").and_then(Value::as_array).unwrap();
            Ok(budgets.len() >= 3 && budgets.iter().all(is_empty))
        };
        wait_until("all budgets are empty", Duration::from_secs(20), paid).await.unwrap();
        let text = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'quick'";
        let quiet = || async { Ok(self.server.query::<i64>(text).await? == [0]) };
        wait_until("no session is left", Duration::from_secs(10), quiet).await.unwrap();
        let mut three = JoinSet::new();
        let began = Instant::now();
        for app in 0..3_u64 {
            let login = self.login(app, "calm-in-chaos");
            let addr = self.sluice.listen_addr();
            three.spawn(async move {
                let mut conn = RawConn::open(addr, &login).await.unwrap();
                conn.query("SELECT SLEEP(0.5)").await.unwrap().accepted().unwrap();
            });
        }
        three.join_all().await;
        assert!(began.elapsed() < Duration::from_millis(1_400), "{:?}", began.elapsed());
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &[], 0.0).await.unwrap();
    }
}

const CLIENTS: u64 = 10;
const SECONDS: u64 = 4;

/// Who a client may be. Nothing looks at whoever is `calm`: on a busy machine it may take as long
/// as any limit.
const APPS: [&str; 3] = ["hunted", "watched", "late"];

const RULES: &str = "\
- { name: hunted, match: { app: hunted }, gate: none, permanent: true, runaway: { elapsed: 120ms, action: kill } }
- { name: watched, match: { app: watched }, gate: none, permanent: true, runaway: { elapsed: 150ms, rows_sent: 3000, action: kill, watch: { by: digest, for: 1s } } }
- { name: late, match: { app: late }, gate: none, permanent: true, runaway: { elapsed: 100ms, action: deprioritise, watch: { by: text, for: 1s } } }
- { name: barred, match: { app: barred }, gate: none, permanent: true, runaway: { elapsed: 200ms, action: kill, watch: { by: digest, for: 10m } } }";
const BUDGETS: &str = "\
budgets:
  - { name: chaos, match: { app: [hunted, watched, late, calm-in-chaos] }, max_concurrency: 3 }
  - { name: each, match: { app: [hunted, watched] }, per: digest, max_concurrency: 2 }
  - { name: owed, match: { app: late }, share: 2, burst: 10s }";

const SCHEMA: &[&str] = &[
    "CREATE USER quick@'%'",
    "GRANT ALL ON test.* TO quick@'%'",
    "CREATE TABLE test.one (n INT)",
    "INSERT INTO test.one VALUES (1)",
    "CREATE TABLE test.committed (id INT PRIMARY KEY AUTO_INCREMENT, who INT)",
    "INSERT INTO test.committed VALUES (1000000000, 4)",
    "CREATE TABLE test.loaded (n INT)",
    "CREATE TABLE test.many (n INT PRIMARY KEY, t VARCHAR(100))",
    "INSERT INTO test.many WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE \
     i < 99) SELECT n.i * 100 + m.i, REPEAT('x', 100) FROM n, n m",
    "CREATE PROCEDURE test.several() BEGIN SELECT 1; SELECT SLEEP(20) FROM test.one; SELECT 2; END",
];
