//! Who goes to work in the demo.

use std::net::SocketAddr;
use std::time::Duration;

use integration::client::connect;
use integration::error::Result;
use integration::topology::Topology;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::task::JoinHandle;

/// Sessions of each kind; few, so that the demo leaves the machine usable.
const SESSIONS: usize = 6;

/// What a session rests between two statements.
const THINK_TIME: Duration = Duration::from_millis(15);

/// One kind of client: who it says it is, and what it does.
struct Client {
    user: &'static str,
    statements: &'static [&'static str],
}

/// Its identity is in a comment, as a nightly job's framework would put it.
const ETL: Client = Client {
    user: "etl",
    statements: &["INSERT INTO demo_events (body) VALUES (REPEAT('e', 200)) /*app='nightly-etl'*/"],
};

/// A Vitess style identity: this job, its flow, its category.
const SCHEMA_CHANGE: Client = Client {
    user: "ddl",
    statements: &["INSERT INTO demo_copy (body) SELECT body FROM demo_source LIMIT 20 \
         /* app=d666bbfc_169e_11ef_b0b3_0a43f95f28a3:vcopier:vreplication:online-ddl */"],
};

/// Rails query log tags; reads and small writes.
const WEB: Client = Client {
    user: "web",
    statements: &[
        "SELECT body FROM demo_source WHERE id = 7 /*application:Shop,controller:orders*/",
        "SELECT COUNT(*) FROM demo_source WHERE id < 50 /*application:Shop,controller:start*/",
        "UPDATE demo_source SET hits = hits + 1 WHERE id = 7 /*application:Shop,controller:orders*/",
    ],
};

/// Creates the demo's tables, and waits until the replicas have them.
pub(super) async fn prepare(topology: &Topology) -> Result<()> {
    let columns = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, body VARCHAR(255), hits INT DEFAULT 0)";
    for table in ["demo_events", "demo_copy", "demo_source"] {
        topology.primary.run_sql(&[&format!("CREATE TABLE test.{table} {columns}")]).await?;
    }
    let rows = vec!["(REPEAT('s', 100))"; 200].join(",");
    let fill = format!("INSERT INTO test.demo_source (body) VALUES {rows}");
    topology.primary.run_sql(&[&fill]).await?;
    topology.wait_in_sync(Duration::from_secs(30)).await
}

/// The sessions while they run.
pub(super) struct Workload {
    sessions: Vec<JoinHandle<()>>,
}

impl Workload {
    pub(super) fn start(addr: SocketAddr) -> Self {
        let sessions = [&ETL, &SCHEMA_CHANGE, &WEB]
            .into_iter()
            .flat_map(|client| (0..SESSIONS).map(move |_| client))
            .map(|client| tokio::spawn(session(addr, client)))
            .collect();
        Self { sessions }
    }

    /// Ends every session where it stands.
    pub(super) async fn stop(self) {
        for session in self.sessions {
            session.abort();
            // The task was aborted; there is nothing to learn from how it ended.
            drop(session.await);
        }
    }
}

/// Works until it is stopped: a refused statement is tried again, as a client would.
async fn session(addr: SocketAddr, client: &'static Client) {
    loop {
        if let Ok(mut conn) = connect(addr, client.user).await {
            while work(&mut conn, client).await {}
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// One round. False when the connection is gone.
async fn work(conn: &mut Conn, client: &Client) -> bool {
    for statement in client.statements {
        match conn.query_drop(*statement).await {
            Ok(()) | Err(mysql_async::Error::Server(_)) => {}
            Err(_) => return false,
        }
        tokio::time::sleep(THINK_TIME).await;
    }
    true
}
