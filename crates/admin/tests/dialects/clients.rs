//! Clients as they are documented, asking as they do.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::door::{Door, Reply, reply};

/// A connection that stays, as HTTP libraries keep it.
struct Connection(TcpStream);

impl Connection {
    async fn to(door: &Door) -> Self {
        Self(TcpStream::connect(door.address).await.unwrap())
    }

    /// HEAD: an answer ends with its head.
    async fn head(&mut self, path: &str, agent: &str) -> Reply {
        let request =
            format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}\r\n\r\n");
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).await.unwrap();
            answer.extend_from_slice(&byte);
        }
        reply(&String::from_utf8(answer).unwrap())
    }
}

/// Schema change tools ask by HEAD each 100 ms on one connection, and go on for exactly 200.
#[tokio::test]
async fn a_tool_that_asks_by_head_each_100_ms_is_answered_on_one_connection() {
    let door = Door::open();
    let mut tool = Connection::to(&door).await;
    let urls = [
        // First, for it would give way to the others.
        "/throttler/check?app=online-ddl:gh-ost:d666bbfc_169e_11ef_b0b3_0a43f95f28a3&p=low",
        "/throttler/check?app=gh-ost",
        "/check/gh-ost/mysql/main",
    ];
    for url in urls {
        for lag in [0.25, 7.5, 0.5] {
            door.signal("lag", lag);
            let allowed = tool.head(url, "gh-ost/1.1.10").await.status == 200;
            assert_eq!(allowed, lag < 1.5, "{url} at {lag}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let metrics = door.metrics().await;
    assert!(metrics.contains(r#"app="online-ddl:gh-ost""#), "{metrics}");
}

/// freno's Ruby client, from its documentation: HEAD for a check, `p=low` for low priority, GET for
/// the replication delay; only 200 is a yes. Its throttler asks every store in turn, sleeps, and
/// gives up before a wait that would be too long.
struct RubyClient<'d> {
    door: &'d Door,
    app: &'static str,
    wait: Duration,
    max_wait: Duration,
}

#[derive(Debug, PartialEq)]
enum Throttled {
    Ran { waits: u32 },
    WaitedTooLong,
}

impl RubyClient<'_> {
    async fn check(&self, store: &str, low_priority: bool) -> bool {
        let priority = if low_priority { "?p=low" } else { "" };
        let path = format!("/check/{}/mysql/{store}{priority}", self.app);
        self.door.ask("HEAD", &path).await.status == 200
    }

    async fn check_read(&self, store: &str, threshold: f64) -> bool {
        let path = format!("/check-read/{}/mysql/{store}/{threshold:.3}", self.app);
        self.door.ask("HEAD", &path).await.status == 200
    }

    /// Whatever the status.
    async fn replication_delay(&self, store: &str) -> f64 {
        let body = self.door.get(&format!("/check/{}/mysql/{store}", self.app)).await.json();
        body["Value"].as_f64().unwrap()
    }

    async fn throttle(&self, stores: &[&str]) -> Throttled {
        let mut waited = Duration::ZERO;
        let mut waits = 0;
        loop {
            let mut all = true;
            for store in stores {
                all &= self.check(store, false).await;
            }
            if all {
                return Throttled::Ran { waits };
            }
            if waited + self.wait > self.max_wait {
                return Throttled::WaitedTooLong;
            }
            tokio::time::sleep(self.wait).await;
            waited += self.wait;
            waits += 1;
        }
    }
}

#[tokio::test]
async fn the_ruby_client_waits_while_it_must_and_reads_the_lag_under_any_status() {
    let door = Door::open();
    let client = |app| RubyClient {
        door: &door,
        app,
        wait: Duration::from_millis(20),
        max_wait: Duration::from_millis(400),
    };
    let gated = client("gated");
    assert!(gated.check("main", false).await && gated.check("main", true).await);
    assert_eq!(gated.throttle(&["main"]).await, Throttled::Ran { waits: 0 });
    door.signal("lag", 7.5);
    assert!(!gated.check("main", false).await);
    assert!(gated.check_read("main", 8.0).await && !gated.check_read("main", 1.0).await);
    for app in ["gated", "never", "held", "spared"] {
        let delay = client(app).replication_delay("main").await;
        assert!((delay - 7.5).abs() < 1e-9, "{app} reads {delay}");
    }
    let healed = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        door.signal("lag", 0.1);
    };
    let (waited, ()) = tokio::join!(gated.throttle(&["main"]), healed);
    assert!(matches!(waited, Throttled::Ran { waits: 1.. }), "{waited:?}");
    // A wrong name fails each job after its patience, not at once; so does a store without data.
    for stores in [&["main", "typo"][..], &["main", "second"]] {
        assert_eq!(gated.throttle(stores).await, Throttled::WaitedTooLong, "{stores:?}");
    }
}

/// pt-archiver's plugin: HEAD at most each 50 ms, any 2xx passes, else a quarter of a second.
#[tokio::test]
async fn the_archivers_plugin_passes_for_any_2xx_only() {
    let door = Door::open();
    let mut plugin = Connection::to(&door).await;
    let path = "/check/pt-archiver/mysql/main";
    assert_eq!(plugin.head(path, "libwww-perl/6.68").await.status / 100, 2);
    door.signal("lag", 7.5);
    assert_ne!(plugin.head(path, "libwww-perl/6.68").await.status / 100, 2);
}

/// Whoever asks from the query layer gives an answer a tenth of a second.
#[tokio::test]
async fn an_answer_is_there_within_the_tenth_of_a_second_that_a_client_gives_it() {
    let door = Door::open();
    let mut connection = Connection::to(&door).await;
    let mut late = 0;
    for _ in 0..100 {
        let asked = Instant::now();
        connection.head("/throttler/check-self?app=vtgate", "vtgate").await;
        late += u32::from(asked.elapsed() > Duration::from_millis(100));
    }
    // The machine of a test may be busy: a wait for the database or a probe would be in each.
    assert!(late < 50, "{late} of 100");
}
