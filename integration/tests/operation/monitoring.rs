//! What people and programs watch Sluice with: its log, `sluice top`, Prometheus with alerts and
//! dashboards.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

mod log;
mod prometheus;
mod top;

use integration::topology::Topology;
use tokio::sync::OnceCell;

static SERVERS: OnceCell<Topology> = OnceCell::const_new();

/// A primary and two replicas, for all tests of this file.
async fn servers() -> &'static Topology {
    SERVERS.get_or_try_init(|| Topology::mysql(2)).await.unwrap()
}
