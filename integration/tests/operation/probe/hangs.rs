//! Questions that the server does not answer, which goes on with each all the same.

use integration::raw::{Login, RawConn};
use integration::scenario::{numbers, wait_for_signal};
use integration::server::Server;
use integration::sluice::{Metrics, SluiceProcess};
use integration::topology::Topology;

use super::{SOON, wait_for_line, wait_for_state};

/// Each second left one more session, until the server had none for anybody.
pub(super) async fn questions_that_hang_leave_few_sessions(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    let replica = servers.replicas.first().unwrap().server();
    wait_for_state(sluice, &replica.addr().to_string(), "counted").await;
    let asked = [(&servers.primary, "test.jobs"), (replica, "sluice.heartbeat")];
    let mut holders = Vec::new();
    for (server, table) in asked {
        let mut holder = RawConn::open(server.addr(), &Login::new("admin")).await.unwrap();
        let lock = format!("LOCK TABLES {table} WRITE");
        holder.query(lock).await.unwrap().accepted().unwrap();
        holders.push(holder);
    }
    let hang = |metrics: &Metrics| {
        let age = |of: &str| metrics.value("sluice_signal_age_seconds", &[("signal", of)]);
        assert!(age("connected") < Some(3.0), "what does not hang is measured: {metrics:?}");
        age("jobs") > Some(7.0)
    };
    sluice.wait_for_metrics("nobody answers", SOON, hang).await.unwrap();
    for (server, table) in asked {
        let asking = asking(server, table).await;
        assert!((1..=2).contains(&asking), "{asking} sessions ask for {table}");
    }
    wait_for_line(sluice, &["probe failed", "probe=\"query\"", "no answer in time"]).await;
    // Its server answers others.
    wait_for_state(sluice, &replica.addr().to_string(), "counted").await;
    for mut holder in holders {
        holder.query("UNLOCK TABLES").await.unwrap().accepted().unwrap();
    }
    wait_for_signal(sluice, "jobs", 1.0).await.unwrap();
    wait_for_state(sluice, &replica.addr().to_string(), "counted").await;
}

/// How many of Sluice's sessions are at a statement about this table.
async fn asking(server: &Server, table: &str) -> i64 {
    let (schema, table) = table.split_once('.').unwrap();
    let asking = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE USER = 'sluice' AND INFO LIKE 'SELECT%{schema}%{table}%'"
    );
    numbers(server, &asking).await.unwrap().into_iter().sum()
}
