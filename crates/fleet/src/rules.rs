//! The runtime rules of this process.

mod keeping;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use proxy::cluster::Cluster;
use proxy::telemetry::Telemetry;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::keeping::Trouble;
use crate::draft::{LASTS_MAX, LASTS_MIN, Lift, LiftError, MakeError, RuleDraft, author_name};
use crate::journal::Journal;
use crate::member::{Change, Member};
use crate::receipt::{Receipt, StandingRule, TableReceipt};

/// How long an answer waits for the table.
const TABLE_PATIENCE: Duration = Duration::from_millis(1_500);

/// How long an answer waits for the disk.
const DISK_PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether the journal is there.
const JOURNAL_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is looked whether a rule has ended, or the wall clock has jumped.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The runtime rules of all clusters of this process: a handle.
#[derive(Debug, Clone)]
pub struct RuntimeRules {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    members: Vec<Arc<Member>>,
    telemetry: Arc<Telemetry>,
    worker: Arc<Notify>,
    taken_over: AtomicBool,
    /// `None`: there is no `state_dir`.
    journal: Option<Journal>,
    /// Why the disk does not hold what stands.
    trouble: Mutex<Trouble>,
}

impl RuntimeRules {
    /// Keeps the rules of these clusters, in their tables only. To be called before their probes
    /// start.
    #[must_use]
    pub fn new(clusters: &[Arc<Cluster>], telemetry: &Arc<Telemetry>) -> Self {
        Self::kept_in(None, clusters, telemetry)
    }

    /// Keeps the rules of these clusters in the journal of a directory too, if one is given, and
    /// puts in force what it holds. Reads the disk: to be called before anybody is let in.
    #[must_use]
    pub fn kept_in(
        state_dir: Option<&Path>,
        clusters: &[Arc<Cluster>],
        telemetry: &Arc<Telemetry>,
    ) -> Self {
        let worker = Arc::new(Notify::new());
        let member = |cluster: &Arc<Cluster>| {
            Member::new(cluster.clone(), telemetry.clone(), worker.clone())
        };
        let mut inner = Inner {
            members: clusters.iter().map(member).collect(),
            telemetry: telemetry.clone(),
            worker,
            taken_over: AtomicBool::new(false),
            journal: None,
            trouble: Mutex::default(),
        };
        inner.journal = state_dir.map(|directory| inner.load(directory));
        for member in &inner.members {
            inner.telemetry.handle_runtime_changes(&member.cluster, &[]);
        }
        Self { inner: Arc::new(inner) }
    }

    /// Why the disk does not hold what stands, though there is a `state_dir`; for people.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.inner.trouble.lock().told()
    }

    /// The rules that stand, by cluster in the order of the file, then by name.
    #[must_use]
    pub fn standing(&self) -> Vec<StandingRule> {
        self.inner.members.iter().flat_map(|member| member.standing()).collect()
    }

    /// Makes a rule, in place of the one for the same app and user. When this returns it is in
    /// force here; the receipt says where it is kept. It waits for the disk and the primary for a
    /// second or two.
    ///
    /// # Errors
    /// What is wrong with the rule; nothing has changed then.
    ///
    /// # Cancellation
    /// The rule may be made all the same.
    pub async fn make(&self, draft: RuleDraft, author: &str) -> Result<Receipt, MakeError> {
        if self.is_taken_over() {
            return Err(MakeError::TakenOver);
        }
        if draft.lasts < LASTS_MIN || draft.lasts > LASTS_MAX {
            return Err(MakeError::Lasts(draft.lasts));
        }
        let members = self
            .members(draft.cluster.as_deref())
            .ok_or_else(|| MakeError::NoCluster(draft.cluster.clone().unwrap_or_default()))?;
        if let Some(full) = members.iter().find(|member| !member.has_room_for(&draft)) {
            return Err(MakeError::TooMany(full.cluster.name.to_string()));
        }
        let id = rand::random();
        let mut changes = Vec::new();
        for member in members {
            // The same draft is wrong everywhere or nowhere: none is made when one is refused.
            changes.push((member.clone(), vec![member.make(&draft, author, id)?]));
        }
        log("a runtime rule is made", author, &changes);
        self.note("made", author, &changes);
        Ok(self.settle(changes).await)
    }

    /// Lifts rules. When this returns they are out of force here.
    ///
    /// # Errors
    /// That there is no such rule; nothing has changed then.
    ///
    /// # Cancellation
    /// The rules may be lifted all the same.
    pub async fn lift(&self, what: &Lift, author: &str) -> Result<Receipt, LiftError> {
        if self.is_taken_over() {
            return Err(LiftError::TakenOver);
        }
        if matches!(what, Lift::Of { app: None, user: None, .. }) {
            return Err(LiftError::NamesNobody);
        }
        let members = self
            .members(what.cluster())
            .ok_or_else(|| LiftError::NoCluster(what.cluster().unwrap_or_default().to_owned()))?;
        let mut changes = Vec::new();
        for member in members {
            let lifted = member.lift(what, author);
            if !lifted.is_empty() {
                changes.push((member.clone(), lifted));
            }
        }
        if changes.is_empty() {
            return Err(LiftError::NotThere);
        }
        log("a runtime rule is lifted", author, &changes);
        self.note("lifted", author, &changes);
        Ok(self.settle(changes).await)
    }

    /// Tells whoever keeps the history.
    fn note(&self, what: &'static str, author: &str, changes: &[(Arc<Member>, Vec<Change>)]) {
        let author = author_name(author);
        for change in changes.iter().flat_map(|(_, changes)| changes) {
            let StandingRule { name, cluster, .. } = &change.rule;
            self.inner.telemetry.edits.note_runtime(cluster, name, &author, what);
        }
    }

    /// Lets rules end, puts in force what other Sluices have made, and keeps it. Runs until it is
    /// dropped.
    pub async fn keep(self) {
        let mut looked = Instant::now();
        loop {
            for member in &self.inner.members {
                member.pass_time(member.now());
            }
            self.put_in_force().await;
            for member in &self.inner.members {
                member.follow_wall_clock(member.now());
            }
            let is_due = !self.is_taken_over() && looked.elapsed() >= JOURNAL_INTERVAL;
            if self.inner.journal.is_some() && (is_due || self.is_unsaved()) {
                looked = Instant::now();
                // Whoever made a rule has been told, and the log has it.
                drop(self.save().await);
            }
            tokio::select! {
                () = self.inner.worker.notified() => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    /// Another process has taken over: from now on it makes, lifts and writes. What stands here
    /// goes on for the clients that are left, and other Sluices' changes are still followed.
    pub fn retire(&self) {
        self.inner.taken_over.store(true, Ordering::Release);
        if self.inner.journal.is_none() {
            // The process that took over does not know what is not written yet.
            return;
        }
        for member in &self.inner.members {
            member.retire();
        }
        let inner = self.inner.clone();
        // A disk that hangs keeps it; then the lock goes with the process.
        tokio::task::spawn_blocking(move || inner.journal.as_ref().map(Journal::let_go));
    }

    fn is_unsaved(&self) -> bool {
        let members = &self.inner.members;
        if self.is_taken_over() {
            return false;
        }
        let trouble = self.inner.trouble.lock();
        match trouble.is_some() {
            true => trouble.is_due(),
            false => {
                self.inner.journal.as_ref().is_some_and(Journal::is_others)
                    || members.iter().any(|member| member.ledger().is_unsaved())
            }
        }
    }

    fn is_taken_over(&self) -> bool {
        self.inner.taken_over.load(Ordering::Acquire)
    }

    fn members(&self, cluster: Option<&str>) -> Option<Vec<&Arc<Member>>> {
        let is_meant =
            |member: &&Arc<Member>| cluster.is_none_or(|name| *member.cluster.name == *name);
        let members: Vec<_> = self.inner.members.iter().filter(is_meant).collect();
        (!members.is_empty()).then_some(members)
    }

    /// Has a change in force here, on disk and in the table, as far as that can be.
    async fn settle(&self, changes: Vec<(Arc<Member>, Vec<Change>)>) -> Receipt {
        self.put_in_force().await;
        let journal = self.save().await;
        let table = written(&changes).await;
        let rules = changes.into_iter().flat_map(|(member, changes)| {
            changes.into_iter().map(move |change| member.as_it_stands(change))
        });
        Receipt { rules: rules.collect(), journal, table }
    }

    async fn put_in_force(&self) {
        if !self.inner.members.iter().any(|member| member.is_dirty()) {
            return;
        }
        let inner = self.inner.clone();
        let applied = tokio::task::spawn_blocking(move || {
            for member in &inner.members {
                member.put_in_force();
            }
        });
        if let Err(error) = applied.await {
            tracing::error!(%error, "runtime rules could not be put in force");
        }
    }
}

/// A line for each rule, with who has changed it.
fn log(what: &str, author: &str, changes: &[(Arc<Member>, Vec<Change>)]) {
    let author = author_name(author);
    for change in changes.iter().flat_map(|(_, changes)| changes) {
        let StandingRule { name, cluster, effect, mode, reason, ends_at, .. } = &change.rule;
        let effect = effect.as_str();
        tracing::info!(%cluster, rule = %name, effect, ?mode, %author, ?reason, %ends_at, "{what}");
    }
}

/// Waits for all tables at once.
async fn written(changes: &[(Arc<Member>, Vec<Change>)]) -> Vec<TableReceipt> {
    let mut waiting = JoinSet::new();
    for (place, (member, changes)) in changes.iter().enumerate() {
        let (member, changes) = (member.clone(), changes.clone());
        waiting.spawn(async move { (place, member.written(&changes, TABLE_PATIENCE).await) });
    }
    let mut receipts: Vec<(usize, TableReceipt)> = waiting.join_all().await.into_iter().collect();
    receipts.sort_by_key(|(place, _)| *place);
    receipts.into_iter().map(|(_, receipt)| receipt).collect()
}

#[cfg(test)]
mod tests;
