//! What statements cost that cost too much for a budget, over a restart.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::{DigestCost, DigestKey};
use proxy::cluster::Cluster;

use crate::disk;
use crate::record::{At, CostKey, CostRow, Writes};

/// What is told of the same digest is written again when it is believed for so much longer, in
/// milliseconds: a digest that runs all the time is not to be written all the time. So it is when the
/// wall clock was set.
const OTHER_MS: u64 = 30_000;

/// What of each cluster is on disk: until when it is believed.
#[derive(Debug)]
pub(super) struct CostKeeper {
    clusters: Vec<(Arc<Cluster>, HashMap<DigestKey, At>)>,
}

impl CostKeeper {
    /// `restored` is on disk, whatever of it is known in the meantime.
    pub(super) fn new(clusters: &[Arc<Cluster>], restored: &[CostRow]) -> Self {
        let kept = |cluster: &Arc<Cluster>| {
            let own = restored.iter().filter(|row| *row.key.cluster == *cluster.name);
            own.map(|row| (DigestKey(row.key.digest), row.until)).collect()
        };
        Self { clusters: clusters.iter().map(|one| (one.clone(), kept(one))).collect() }
    }

    /// Adds what has changed since the last call. Another process that still drains has rows of its
    /// own there: those are let stand.
    pub(super) fn add_changes(&mut self, writes: &mut Writes, now: At) {
        for (cluster, kept) in &mut self.clusters {
            let key_of =
                |digest: DigestKey| CostKey { cluster: cluster.name.to_string(), digest: digest.0 };
            let known: HashMap<DigestKey, DigestCost> = cluster.too_costly().into_iter().collect();
            kept.retain(|digest, until| {
                let is_known = known.contains_key(digest);
                if !is_known && *until > now {
                    writes.cheaper.push(key_of(*digest));
                }
                is_known
            });
            for (digest, DigestCost { seconds, rows, believed_for }) in known {
                let ms = i64::try_from(believed_for.as_millis()).unwrap_or(i64::MAX);
                let until = At(now.0.saturating_add(ms));
                let is_news = |kept: &At| until.0.abs_diff(kept.0) >= OTHER_MS;
                if kept.get(&digest).is_none_or(is_news) {
                    kept.insert(digest, until);
                    writes.costs.push(CostRow { key: key_of(digest), seconds, rows, until });
                }
            }
        }
    }
}

/// Has all clusters know what statements cost in the process before. A disk that does not tell lets
/// each run once more, and says so.
pub(super) fn restore(directory: &Path, clusters: &[Arc<Cluster>], now: At) -> Vec<CostRow> {
    let rows = match disk::known_costs(directory, now) {
        Ok(rows) => rows,
        Err(error) => {
            tracing::warn!(
                %error,
                "what statements cost before cannot be read: what is too costly for a budget runs \
                 once more"
            );
            return Vec::new();
        }
    };
    for cluster in clusters {
        let own = rows.iter().filter(|row| *row.key.cluster == *cluster.name);
        let costs: Vec<(DigestKey, DigestCost)> = own.map(|row| cost_of(row, now)).collect();
        if !costs.is_empty() {
            let (cluster_name, digests) = (&cluster.name, costs.len());
            tracing::info!(cluster = %cluster_name, digests, "too costly for a budget as before");
            cluster.learn_costs(costs);
        }
    }
    rows
}

/// By the wall clock, which is all that goes on between two processes; nothing is believed for longer
/// than what ran just now.
fn cost_of(row: &CostRow, now: At) -> (DigestKey, DigestCost) {
    let left = u64::try_from(row.until.0.saturating_sub(now.0)).unwrap_or_default();
    let believed_for = Duration::from_millis(left);
    let (seconds, rows) = (row.seconds, row.rows);
    (DigestKey(row.key.digest), DigestCost { seconds, rows, believed_for })
}
