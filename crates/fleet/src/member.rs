//! One cluster: its ledger, and what connects that to the cluster and to the table on its primary.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use proxy::cluster::Cluster;
use proxy::rule_table::{Reading, RuleKeeper, WriteRow, Written};
use proxy::telemetry::Telemetry;
use tokio::sync::{Notify, watch};

use crate::body::RuleBody;
use crate::draft::{Lift, MakeError, RuleDraft, rule_name};
use crate::journal::Record;
use crate::ledger::{About, Changed, Ledger, Now};
use crate::receipt::{StandingRule, TableReceipt};

/// One cluster of this process.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) cluster: Arc<Cluster>,
    telemetry: Arc<Telemetry>,
    ledger: Mutex<Ledger>,
    /// Other rules stand than are in force.
    dirty: AtomicBool,
    /// Locked while what stands is put in force.
    applying: Mutex<()>,
    /// Another process writes the table for this one.
    retired: AtomicBool,
    /// Something waits to be written.
    outbox: Notify,
    /// Wakes the task that puts in force and keeps what others have made.
    worker: Arc<Notify>,
    /// Each attempt to write, with why the last one failed.
    attempts: watch::Sender<Attempt>,
}

/// The last attempt to write to the table.
#[derive(Debug, Clone, Default)]
struct Attempt {
    count: u64,
    trouble: Option<String>,
    /// Why the table cannot be read.
    unread: Option<String>,
}

/// A change of one rule.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) rule: StandingRule,
    number: u64,
}

impl Member {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        telemetry: Arc<Telemetry>,
        worker: Arc<Notify>,
    ) -> Arc<Self> {
        let attempts = watch::Sender::new(Attempt::default());
        let member = Arc::new(Self {
            cluster,
            telemetry,
            ledger: Mutex::default(),
            dirty: AtomicBool::new(false),
            applying: Mutex::new(()),
            outbox: Notify::new(),
            retired: AtomicBool::new(false),
            worker,
            attempts,
        });
        member.cluster.keep_rules(member.clone());
        member
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    pub(crate) fn now(&self) -> Now {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        let mono = self.cluster.now();
        self.cluster.follow_wall_clock_back(mono, unix_ms);
        Now { mono, unix_ms }
    }

    fn about(&self) -> About<'_> {
        About { cluster: &self.cluster.name, mode: self.cluster.policy().mode, now: self.now() }
    }

    pub(crate) fn standing(&self) -> Vec<StandingRule> {
        let about = self.about();
        self.ledger().standing(about)
    }

    /// Whether one more rule may stand.
    pub(crate) fn has_room_for(&self, draft: &RuleDraft) -> bool {
        let name = rule_name(draft.app.as_deref(), draft.user.as_deref());
        self.ledger().has_room_for(&name)
    }

    /// Makes a rule. Nothing is in force yet.
    pub(crate) fn make(
        &self,
        draft: &RuleDraft,
        author: &str,
        id: u64,
    ) -> Result<Change, MakeError> {
        let about = self.about();
        let body = RuleBody::new(draft, id, about.now.unix_ms);
        let mut ledger = self.ledger();
        let (name, number) = ledger.make(body, author, draft.lasts, about.now)?;
        // It was made a moment ago, and this lock has been held since.
        let rule = ledger.show(&name, about).ok_or(MakeError::Lasts(draft.lasts))?;
        drop(ledger);
        self.note_change();
        Ok(Change { rule, number })
    }

    /// Lifts the rules that are meant.
    pub(crate) fn lift(&self, what: &Lift, author: &str) -> Vec<Change> {
        let about = self.about();
        let lifted = self.ledger().lift(what, author, about);
        if !lifted.is_empty() {
            self.note_change();
        }
        lifted.into_iter().map(|(rule, number)| Change { rule, number }).collect()
    }

    /// The rule of a change, with the version that it has by now; a lifted one as it stood.
    pub(crate) fn as_it_stands(&self, change: Change) -> StandingRule {
        let about = self.about();
        let ledger = self.ledger();
        match ledger.show(&change.rule.name, about) {
            Some(rule) if ledger.is_last(&rule.name, change.number) => {
                StandingRule { version: rule.version, ..change.rule }
            }
            Some(_) | None => change.rule,
        }
    }

    /// Takes in what the journal holds of this cluster.
    pub(crate) fn restore(&self, record: &Record) {
        let now = self.now();
        if self.ledger().restore(record.kept(now.unix_ms), now) == Changed::Yes {
            self.dirty.store(true, Ordering::Release);
        }
    }

    /// What has changed since this was asked last, for the journal.
    pub(crate) fn changed_records(&self) -> Vec<Record> {
        let now = self.now();
        let kept = self.ledger().take_unsaved(now);
        kept.iter().map(|kept| Record::new(&self.cluster.name, kept, now.unix_ms)).collect()
    }

    /// Everything, for the journal.
    pub(crate) fn all_records(&self) -> Vec<Record> {
        let now = self.now();
        let kept = self.ledger().all(now);
        kept.iter().map(|kept| Record::new(&self.cluster.name, kept, now.unix_ms)).collect()
    }

    fn note_change(&self) {
        self.dirty.store(true, Ordering::Release);
        self.outbox.notify_one();
    }

    /// Takes out what has ended, and names the ends anew when the wall clock has jumped.
    pub(crate) fn pass_time(&self, now: Now) {
        if self.ledger().pass_time(now) == Changed::Yes {
            self.dirty.store(true, Ordering::Release);
        }
    }

    /// Has rules judged by the wall clock, once the ends that are in force are named by it.
    pub(crate) fn follow_wall_clock(&self, now: Now) {
        let applying = self.applying.lock();
        if !self.is_dirty() && !self.ledger().has_jumped(now) {
            self.cluster.follow_wall_clock(now.mono, now.unix_ms);
        }
        drop(applying);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Puts in force what stands otherwise than it is in force. It takes as long as that is much,
    /// however many rules stand.
    pub(crate) fn put_in_force(&self) {
        let applying = self.applying.lock();
        if self.dirty.swap(false, Ordering::AcqRel) {
            let changes = self.ledger().take_changes();
            self.cluster.apply_runtime_changes(changes.clone());
            self.telemetry.handle_runtime_changes(&self.cluster, &changes);
        }
        drop(applying);
    }

    /// From now on the process that has taken over writes.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Waits until a change is in the table, or cannot be written, or for so long.
    pub(crate) async fn written(&self, changes: &[Change], within: Duration) -> TableReceipt {
        let cluster = self.cluster.name.clone();
        if self.cluster.policy().probe.is_none() {
            let why = "the cluster has no `probe`: nobody writes to its primary";
            return TableReceipt { cluster, written: Err(why.to_owned()) };
        }
        let mut attempts = self.attempts.subscribe();
        let began = attempts.borrow_and_update().count;
        let waiting = async {
            loop {
                if let Some(version) = self.version_of(changes) {
                    return Ok(version);
                }
                let Attempt { count, trouble, .. } = attempts.borrow_and_update().clone();
                if let Some(why) = trouble.filter(|_| count > began) {
                    return Err(why);
                }
                if attempts.changed().await.is_err() {
                    return Err("is not asked any more".to_owned());
                }
            }
        };
        let written = tokio::time::timeout(within, waiting).await.unwrap_or_else(|_| {
            let Attempt { trouble, unread, .. } = self.attempts.borrow().clone();
            Err(unread.or(trouble).unwrap_or_else(|| "has not answered yet".to_owned()))
        });
        let later = |why| format!("the primary {why}; it is written as soon as it can be");
        let written = written.map_err(later);
        TableReceipt { cluster, written }
    }

    /// The highest version of these changes, once all of them have one.
    fn version_of(&self, changes: &[Change]) -> Option<u64> {
        let ledger = self.ledger();
        let versions = changes
            .iter()
            .map(|change| ledger.version_of(&change.rule.name, change.number))
            .collect::<Option<Vec<u64>>>()?;
        versions.into_iter().max()
    }
}

impl RuleKeeper for Member {
    fn outbox(&self, rows_max: usize) -> Vec<WriteRow> {
        if self.retired.load(Ordering::Acquire) {
            return Vec::new();
        }
        let now = self.now();
        self.ledger().outbox(rows_max, now)
    }

    fn read_to(&self) -> u64 {
        self.ledger().position().0
    }

    fn highest(&self) -> u64 {
        self.ledger().position().1
    }

    fn handle_written(&self, rows: Vec<Written>) {
        self.ledger().note_written(&rows);
        self.attempts.send_modify(|attempt| {
            attempt.count = attempt.count.saturating_add(1);
            attempt.trouble = None;
        });
        self.worker.notify_one();
    }

    fn handle_unwritten(&self, why: &str) {
        self.attempts.send_modify(|attempt| {
            attempt.count = attempt.count.saturating_add(1);
            attempt.trouble = Some(why.to_owned());
        });
    }

    fn handle_reading(&self, reading: Reading) {
        let now = self.now();
        let changed = self.ledger().merge(reading, now);
        self.telemetry.rules_synced(&self.cluster.name, true);
        self.attempts.send_if_modified(|attempt| {
            attempt.unread = None;
            false
        });
        if changed == Changed::Yes {
            self.dirty.store(true, Ordering::Release);
            self.worker.notify_one();
        }
    }

    fn handle_unread(&self, why: &str) {
        self.telemetry.rules_synced(&self.cluster.name, false);
        self.attempts.send_if_modified(|attempt| {
            attempt.unread = Some(why.to_owned());
            false
        });
    }

    fn work<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.outbox.notified())
    }
}
