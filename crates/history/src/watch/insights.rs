//! What insights have counted, beyond the process: kept as windows are over, and taken in by the next.

use std::collections::HashSet;
use std::sync::Arc;

use insights::{Kept, KeptName, KeptRow, Length, Mark, Past, Time};
use proxy::cluster::Cluster;

use crate::disk::{Disk, NAMES_AGAIN_S, Trouble};
use crate::record::{At, InsightsName, InsightsWindow};

/// Names that are remembered as written.
const TOLD_MAX: usize = 200_000;

/// Up to where the windows of each cluster are kept.
#[derive(Debug)]
pub(super) struct Keeper {
    run: i64,
    clusters: Vec<Keeping>,
    /// Since when names that were written are not written again.
    told_since: At,
}

#[derive(Debug)]
struct Keeping {
    cluster: Arc<Cluster>,
    mark: Mark,
    told: HashSet<u64>,
}

/// What is to be written of insights.
#[derive(Debug, Default)]
pub(super) struct ToKeep {
    pub(super) windows: Vec<InsightsWindow>,
    pub(super) names: Vec<InsightsName>,
}

impl Keeper {
    pub(super) fn new(clusters: &[Arc<Cluster>], run: i64, now: At) -> Self {
        let keeping = |cluster: &Arc<Cluster>| Keeping {
            cluster: cluster.clone(),
            mark: Mark::default(),
            told: HashSet::new(),
        };
        Self { run, clusters: clusters.iter().map(keeping).collect(), told_since: now }
    }

    /// What was counted until now is not to be kept.
    pub(super) fn forget(&mut self, now: At) {
        let now = Time(u64::try_from(now.0).unwrap_or_default());
        self.clusters.iter_mut().for_each(|keeping| keeping.mark = Mark::at(now));
    }

    /// The windows that are over and not kept, and those that have begun if the process ends.
    pub(super) fn gather(&mut self, now: At, ends: bool) -> ToKeep {
        let all = self.clusters.iter().map(|keeping| keeping.told.len()).sum::<usize>();
        let age_s = now.0.saturating_sub(self.told_since.0) / 1_000;
        if age_s >= NAMES_AGAIN_S || all > TOLD_MAX {
            self.told_since = now;
            self.clusters.iter_mut().for_each(|keeping| keeping.told.clear());
        }
        let mut to_keep = ToKeep::default();
        for Keeping { cluster, mark, told } in &mut self.clusters {
            let policy = ends.then(|| cluster.policy());
            let (kept, names) = cluster.insights.to_keep(self.run, (mark, told), policy.as_deref());
            let name = &*cluster.name;
            to_keep.windows.extend(kept.iter().map(|kept| window_of(name, kept)));
            to_keep.names.extend(names.iter().map(|(hash, told)| InsightsName {
                cluster: name.to_owned(),
                hash: *hash,
                at: now.0.div_euclid(1_000),
                name: serde_json::to_string(told).unwrap_or_default(),
            }));
        }
        to_keep
    }
}

fn window_of(cluster: &str, kept: &Kept) -> InsightsWindow {
    InsightsWindow {
        run: kept.run,
        at: i64::try_from(kept.begun.0 / 1_000).unwrap_or(i64::MAX),
        minutes: kept.length.minutes().into(),
        cluster: cluster.to_owned(),
        count: kept.rows.len(),
        rows: serde_json::to_string(&kept.rows).unwrap_or_default(),
    }
}

/// What other runs have kept, and is taken in here.
#[derive(Debug)]
pub(super) struct Others {
    run: i64,
    clusters: Vec<(Arc<Cluster>, Past)>,
}

impl Others {
    pub(super) fn new(clusters: &[Arc<Cluster>], run: i64) -> Self {
        let clusters = clusters.iter().map(|cluster| (cluster.clone(), Past::default()));
        Self { run, clusters: clusters.collect() }
    }

    /// Takes in what is new on disk.
    pub(super) fn take_in(&mut self, disk: &mut Disk, now: At) -> Result<(), Trouble> {
        for (cluster, past) in &mut self.clusters {
            let (windows, names) = disk.insights((&cluster.name, self.run), now)?;
            let kept: Vec<Kept> = windows.iter().filter_map(kept_of).collect();
            let unread = windows.len().saturating_sub(kept.len());
            let names = names.iter().filter_map(|(hash, name)| Some((*hash, name_of(name)?)));
            cluster.insights.take_in(past, &kept, names.collect());
            let (cluster, windows) = (&cluster.name, kept.len());
            if unread > 0 {
                tracing::warn!(%cluster, unread, "windows of insights that cannot be read");
            }
            tracing::debug!(%cluster, windows, "insights of before");
        }
        Ok(())
    }
}

fn kept_of(window: &InsightsWindow) -> Option<Kept> {
    let rows: Vec<KeptRow> = serde_json::from_str(&window.rows).ok()?;
    let begun = u64::try_from(window.at).ok()?.checked_mul(1_000)?;
    let length = Length::of_minutes(window.minutes)?;
    Some(Kept { run: window.run, length, begun: Time(begun), rows })
}

fn name_of(name: &str) -> Option<KeptName> {
    serde_json::from_str(name).ok()
}
