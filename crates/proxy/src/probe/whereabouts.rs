//! Which server the primary's name leads to.
//!
//! Sluice's own connections stay open. Behind a planned switchover the name (in DNS, of a virtual address, of a proxy
//! in front) leads clients to another server, while the one of before goes on answering: heartbeats, signals and
//! runtime rules would stay there, and tell nothing of the server that is written to. So a new connection is made every
//! few seconds, and asked who it has come to.

use std::time::Duration;

use tokio::sync::watch;

use super::ProbeTarget;
use super::answer::text;
use crate::board::ProbeError;

/// How often it is looked: a login, a question and a goodbye.
const INTERVAL: Duration = Duration::from_secs(5);

/// What tells servers apart. Every account may read these; a MySQL server has the first, which no other has.
const QUESTION: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                        ('server_uuid', 'server_id', 'hostname', 'port', 'datadir')";

/// Who a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity(String);

/// Runs until it is dropped. Tells `moved` when the primary is another server than before: all that is connected to it
/// begins again.
pub(super) async fn watch(target: ProbeTarget, moved: watch::Sender<()>) {
    let mut known: Option<Identity> = None;
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Whoever does not answer here does not answer the other probes, which say so.
        let Ok(Some(found)) = ask(&target).await else { continue };
        let Some(before) = known.as_ref().filter(|known| **known != found) else {
            known = Some(found);
            continue;
        };
        // A name that leads to one of several in turn moves nothing.
        if !matches!(ask(&target).await, Ok(Some(again)) if again == found) {
            continue;
        }
        tracing::warn!(
            cluster = %target.site.cluster.name, server = %target.server, before = before.0,
            now = found.0, "the primary's name leads to another server now: probes, heartbeats and \
            runtime rules go there"
        );
        known = Some(found);
        let cluster = &target.site.cluster;
        cluster.probes.primary_moved();
        cluster.explainer.primary_moved();
        moved.send_replace(());
    }
}

/// Who a new connection comes to; none if that cannot be told.
async fn ask(target: &ProbeTarget) -> Result<Option<Identity>, ProbeError> {
    let mut link = target.link(super::PROBE_TIMEOUT);
    let rows = link.rows(QUESTION).await;
    link.close().await;
    let mut uuid = None;
    let mut others = Vec::new();
    for row in rows? {
        let (Some(name), Some(value)) =
            (row.as_ref(0).and_then(text), row.as_ref(1).and_then(text))
        else {
            return Ok(None);
        };
        if name.eq_ignore_ascii_case("server_uuid") {
            uuid = Some(value);
        } else {
            others.push(format!("{name}={value}"));
        }
    }
    others.sort_unstable();
    let known = uuid.or_else(|| (!others.is_empty()).then(|| others.join(" ")));
    Ok(known.map(Identity))
}
