//! Memory of a proxy per idle client connection.

use std::time::Duration;

use benches::Result;
use benches::process::resident_kib;
use integration::client;
use mysql_async::prelude::Queryable;

use crate::setup::Target;

/// Connections at once. The proxy holds two sockets for each: raise `ulimit -n` above twice this.
pub(crate) const CONNECTIONS: u32 = 2_000;

/// What a proxy grew by.
pub(crate) struct Idle {
    pub(crate) name: &'static str,
    pub(crate) kib_per_connection: f64,
}

/// Every proxy in turn. To be called before any load, while nothing has been allocated yet.
pub(crate) async fn per_connection(targets: &[Target]) -> Result<Vec<Idle>> {
    let mut all = Vec::new();
    for target in targets {
        if let Some(pid) = target.pid {
            eprintln!("peers: {CONNECTIONS} idle connections through {}", target.name);
            let kib_per_connection = grown_kib(target, pid).await? / f64::from(CONNECTIONS);
            all.push(Idle { name: target.name, kib_per_connection });
        }
    }
    Ok(all)
}

async fn grown_kib(target: &Target, pid: u32) -> Result<f64> {
    // One before counting: what the first connection allocates once is not per connection.
    used(target).await?.disconnect().await?;
    let before = resident_kib(pid)?;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(used(target).await?);
    }
    tokio::time::sleep(SETTLE).await;
    let after = resident_kib(pid)?;
    drop(open);
    tokio::time::sleep(SETTLE).await;
    Ok(after - before)
}

/// A connection that has run something: idle is not the same as never used.
async fn used(target: &Target) -> Result<mysql_async::Conn> {
    let mut conn = client::connect(target.addr, "app").await?;
    conn.query_drop("SELECT REPEAT('x', 10000)").await?;
    Ok(conn)
}

/// Time for buffers to be given back.
const SETTLE: Duration = Duration::from_secs(3);
