//! What insights have counted, beyond the process: kept as windows are over, and taken in by the next.

use std::collections::HashSet;
use std::sync::Arc;

use insights::{Kept, KeptMinute, KeptName, KeptRow, KeptSeconds, Length, Mark, Past, Time};
use proxy::cluster::Cluster;
use proxy::insights::ToKeep as Told;

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
            let marks = (mark, told);
            let Told { kept, at_once, names } =
                cluster.insights.to_keep(self.run, marks, policy.as_deref());
            let name = &*cluster.name;
            to_keep.windows.extend(kept.iter().map(|kept| window_of(name, kept)));
            to_keep.windows.extend(at_once.iter().map(|minute| minute_of(name, minute)));
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

/// In place of the length of a window: what apps did in the seconds of a minute.
const AT_ONCE: i64 = 0;

fn minute_of(cluster: &str, minute: &KeptMinute) -> InsightsWindow {
    InsightsWindow {
        run: minute.run,
        at: seconds_of(minute.begun),
        minutes: AT_ONCE,
        cluster: cluster.to_owned(),
        count: minute.apps.len(),
        rows: serde_json::to_string(&minute.apps).unwrap_or_default(),
    }
}

fn seconds_of(time: Time) -> i64 {
    i64::try_from(time.0 / 1_000).unwrap_or(i64::MAX)
}

fn window_of(cluster: &str, kept: &Kept) -> InsightsWindow {
    InsightsWindow {
        run: kept.run,
        at: seconds_of(kept.begun),
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
            let (minutes, windows): (Vec<_>, Vec<_>) =
                windows.iter().partition(|window| window.minutes == AT_ONCE);
            let kept: Vec<Kept> = windows.iter().filter_map(|window| kept_of(window)).collect();
            let at_once: Vec<_> = minutes.iter().filter_map(|window| kept_minute(window)).collect();
            let all = windows.len().saturating_add(minutes.len());
            let unread = all.saturating_sub(kept.len()).saturating_sub(at_once.len());
            let names = names.iter().filter_map(|(hash, name)| Some((*hash, name_of(name)?)));
            let (windows, names) = (kept.len(), names.collect());
            cluster.insights.take_in(past, Told { kept, at_once, names });
            let cluster = &cluster.name;
            if unread > 0 {
                tracing::warn!(%cluster, unread, "windows of insights that cannot be read");
            }
            tracing::debug!(%cluster, windows, "insights of before");
        }
        Ok(())
    }
}

fn begun(window: &InsightsWindow) -> Option<Time> {
    u64::try_from(window.at).ok()?.checked_mul(1_000).map(Time)
}

fn kept_minute(window: &InsightsWindow) -> Option<KeptMinute> {
    let apps: Vec<KeptSeconds> = serde_json::from_str(&window.rows).ok()?;
    Some(KeptMinute { run: window.run, begun: begun(window)?, apps })
}

fn kept_of(window: &InsightsWindow) -> Option<Kept> {
    let rows: Vec<KeptRow> = serde_json::from_str(&window.rows).ok()?;
    let begun = begun(window)?;
    let length = Length::of_minutes(window.minutes)?;
    Some(Kept { run: window.run, length, begun, rows })
}

fn name_of(name: &str) -> Option<KeptName> {
    serde_json::from_str(name).ok()
}
