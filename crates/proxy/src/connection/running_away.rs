//! A statement of this connection takes more than its rule lets it.

use std::sync::Arc;
use std::time::Duration;

use admission::{Reason, Refusal};
use policy::{
    ClusterPolicy, Likeness, Met, Quarantined, Rule, Runaway, RunawayAction, Running, WatchBy,
    WatchedNow, is_killable,
};
use session::{Answer, Finished, Move, Session, Side, StatementOutcome};
use sql::Class;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Connection, Peer, Shared};
use crate::board::Birth;
use crate::cluster::{Caught, Stop};
use crate::runaway::{Allowance, Excess, Killed, Leftover, NotKilled, OwnSession, SoFar, action};
use crate::statement_log::RanAway;
use crate::stream::Stream;

impl Connection {
    /// When the statement at the server has run for too long, whose answer is waited for since now.
    pub(super) fn runaway_due(&mut self, now: Instant) -> Option<Instant> {
        if !self.policy.rules.watches_runaways() && self.allowance.newer().is_none() {
            return None;
        }
        let statement = self.session.under_way()?;
        let rule = statement.watched.and_then(|index| self.policy.rule(index));
        let runaway = rule.and_then(|rule| rule.runaway);
        self.allowance.begin(runaway, now);
        self.allowance.due()
    }

    /// Counts what the server answers. What there is too much of. Of a client that takes its time
    /// the next part of the answer is always there: nobody waits for it, so it is told here that
    /// there has been enough of that.
    pub(super) fn answers_too_much(&mut self, moved: Move) -> Option<Excess> {
        match moved {
            Move::Forward { from: Side::Backend, len } => {
                let excess = self.allowance.take(len, self.session.answered_rows());
                excess.or_else(|| self.is_overdue().then_some(Excess::Elapsed))
            }
            Move::Forward { from: Side::Client, .. } | Move::Replace { .. } | Move::Drop { .. } => {
                None
            }
        }
    }

    /// The statement at the server has run for too long, if this is why the wait has ended.
    pub(super) async fn note_overdue(&mut self) {
        if self.is_overdue() {
            self.run_away(Excess::Elapsed).await;
        }
    }

    fn is_overdue(&self) -> bool {
        let due = self.allowance.due();
        due.is_some_and(|due| !self.alarm.is_ahead_of(due) && due <= Instant::now())
    }

    /// Does with a statement that is over its limits what its rule says.
    pub(super) async fn run_away(&mut self, excess: Excess) {
        self.as_under_way().run_away(excess).await;
    }

    /// The file may limit what is at the server otherwise by now.
    pub(super) async fn follow_edit(&mut self) {
        self.join_budgets();
        self.as_under_way().follow_edit().await;
    }

    fn as_under_way(&mut self) -> UnderWay<'_> {
        let Self { shared, policy, session, allowance, peer, backend, birth, timing, .. } = self;
        let worked = timing.backend;
        UnderWay { shared, policy, session, allowance, peer, backend, birth, worked }
    }

    /// A command is over: what a KILL has left must meet nothing else.
    pub(super) fn end_runaway(&mut self, finished: &Finished) {
        self.upload_twin = None;
        let error = finished.response.as_ref().and_then(|response| response.error.as_ref());
        match self.allowance.end(error.copied()) {
            Leftover::Nothing => {}
            Leftover::Stale => self.session.handle_stale_kill(),
            Leftover::Doubtful => self.kill_may_come = true,
        }
    }

    /// The error of a statement whose like is in quarantine, its line in the log, and what is kept
    /// for whoever asks why.
    pub(super) fn quarantined_answer(
        &self,
        entry: &Arc<Quarantined>,
        class: Option<Class>,
    ) -> Option<Answer> {
        let mut rules = self.policy.rules.iter();
        let rule = rules.find(|rule| rule.key == entry.key)?;
        let times = self.shared.cluster.times_of(entry);
        let refusal = Refusal {
            reason: Reason::Quarantined,
            cause: None,
            budget: None,
            limit: None,
            // It may have come to the quarantine while its statement waited.
            waited: self.admission.waited().unwrap_or_default(),
            retry_after: times.left,
        };
        let (id, answer) = self.answer_unasked(Some(rule), &refusal, Some(entry.id()));
        let stop = Stop::Quarantine(Arc::clone(entry), times);
        self.note_stopped((stop, class), Some(rule), id, &refusal);
        Some(answer)
    }
}

/// The statement at the server, for whoever does with it what its rule says. Nothing of the session
/// goes on meanwhile.
pub(super) struct UnderWay<'c> {
    pub(super) shared: &'c Shared,
    pub(super) policy: &'c Arc<ClusterPolicy>,
    pub(super) session: &'c Session,
    pub(super) allowance: &'c mut Allowance,
    pub(super) peer: &'c Peer,
    pub(super) backend: &'c Stream,
    pub(super) birth: &'c Birth,
    /// For how long the server was waited for.
    pub(super) worked: Duration,
}

impl UnderWay<'_> {
    /// When something is to be done with it: it has run for too long.
    pub(super) fn due(&self) -> Option<Instant> {
        self.allowance.due().filter(|_| !self.is_killed())
    }

    /// See [`upload_limit`].
    pub(super) fn upload_limit(&self) -> Option<Duration> {
        upload_limit(self.policy, self.session, self.allowance)
    }

    /// Tells from now on when the file may limit it otherwise ([`Self::follow_edit`]), for who does not
    /// hear what the session is told. What was told just before is looked at here.
    pub(super) async fn edits(&mut self) -> watch::Receiver<()> {
        let edits = self.shared.cluster.rule_changes();
        self.follow_edit().await;
        edits
    }

    /// It has been over its limit before.
    pub(super) fn has_run_away(&self) -> bool {
        self.allowance.has_begun()
    }

    /// The server has taken no more of a file for so long in all, and has worked on it therefore.
    pub(super) async fn work_on_file(&mut self, limit: Duration, worked: Duration) {
        if self.allowance.overworks(limit, worked, Instant::now()) || self.due().is_some() {
            self.run_away(Excess::Elapsed).await;
        }
    }

    /// The server has taken a KILL of it.
    pub(super) fn is_killed(&self) -> bool {
        self.allowance.is_killed()
    }

    /// The file may limit it otherwise by now. What it is over by the new one is done at once, or as
    /// soon as it is due.
    pub(super) async fn follow_edit(&mut self) {
        self.allowance.take_edit();
        let Some(statement) = self.session.under_way() else { return };
        let Some(policy) = self.shared.cluster.newer_policy(self.policy) else { return };
        // What nobody can say goes on as it was judged.
        let WatchedNow::Certain(rule) = self.watched_now(&policy, &statement) else { return };
        let limits = |rule: &Rule| {
            let runaway = rule.runaway?;
            Some(Runaway { action: action(rule, runaway), ..runaway })
        };
        let is_watched = self.policy.rules.watches_runaways();
        let worked = if is_watched { Duration::ZERO } else { self.worked };
        let worked = (!self.session.awaits_file()).then_some(worked);
        let so_far = SoFar { rows: self.session.answered_rows(), worked };
        if let Some(excess) = self.allowance.follow(rule.and_then(limits), so_far) {
            self.run_away(excess).await;
        }
    }

    /// The rule that watches it by a newer file than the one that it was judged by.
    fn watched_now<'p>(
        &self,
        policy: &'p ClusterPolicy,
        statement: &StatementOutcome,
    ) -> WatchedNow<'p> {
        let now = self.shared.cluster.rule_time();
        running(self.policy, self.session, statement).watched_by(policy, now)
    }

    /// Does with a statement that is over its limits what its rule says by now: whoever edits the rule,
    /// or exempts the app, to save what runs has saved it.
    pub(super) async fn run_away(&mut self, excess: Excess) {
        let Some(statement) = self.session.under_way() else {
            self.allowance.exceed(excess);
            return;
        };
        let newer = self.shared.cluster.newer_policy(self.policy);
        let now = newer.as_deref().map(|newer| self.watched_now(newer, &statement));
        let judged_by = self.policy;
        let (rule, is_edited) = match now {
            Some(WatchedNow::Certain(rule)) => (rule, true),
            // Of what nobody can say it goes on as it began: a KILL cannot be taken back.
            Some(WatchedNow::Uncertain) | None => {
                (statement.watched.and_then(|index| judged_by.rule(index)), false)
            }
        };
        let is = rule.and_then(|rule| rule.runaway);
        let so_far = (excess, self.session.answered_rows());
        if is_edited && self.allowance.is_spared(so_far, is) {
            return;
        }
        let excess = self.allowance.exceed(excess);
        let (Some(rule), Some(runaway)) = (rule, is) else { return };
        let action = action(rule, runaway);
        self.allowance.note_done(action);
        match action {
            RunawayAction::Log => self.note_runaway(rule, excess, "log"),
            RunawayAction::Deprioritise => self.deprioritise(rule, &statement, excess),
            RunawayAction::Kill if !is_killable(statement.class) => {
                self.note_runaway(rule, excess, "left");
            }
            RunawayAction::Kill => self.kill_runaway(rule, &statement, excess).await,
        }
    }

    async fn kill_runaway(&mut self, rule: &Rule, statement: &StatementOutcome, excess: Excess) {
        let (cluster, id) = (&self.shared.cluster, self.session.connection_id());
        let own = OwnSession { backend: self.backend, connection_id: id, birth: self.birth };
        let chase = self.allowance.chase();
        // By the probe's account of now: a file that brings kills may have brought that.
        let policy = cluster.policy();
        let killed = cluster.killer.kill_statement(&policy, own, statement.class, chase);
        match killed.await {
            Ok(Killed::Ended) => {
                self.allowance.look_again(Instant::now());
                if excess.is_in_answer() && !self.allowance.note_not_killed() {
                    self.note_runaway(rule, excess, "over");
                    self.quarantine(rule, RunawayAction::Kill);
                }
            }
            Ok(Killed::Commits) => {
                if !self.allowance.leave_alone(Instant::now()) {
                    self.note_runaway(rule, excess, "left");
                }
            }
            Ok(Killed::Yes) => {
                if !self.allowance.note_killed(Instant::now()) {
                    self.note_runaway(rule, excess, "kill");
                    self.quarantine(rule, RunawayAction::Kill);
                }
            }
            Err(error) => self.note_failed(rule, excess, &error),
        }
    }

    /// It was not killed. What is like it has no more room at the server than it has.
    fn note_failed(&mut self, rule: &Rule, excess: Excess, error: &NotKilled) {
        if error.may_come {
            self.allowance.note_doubtful();
        } else {
            self.allowance.retry(Instant::now());
        }
        let cluster = &self.shared.cluster;
        let is_new = self.allowance.note_reason(&error.to_string());
        let told = is_new.then(|| cluster.turned_away.not_killed.lock().again(cluster.now()));
        if let Some(untold) = told.flatten() {
            tracing::warn!(
                cluster = %cluster.name,
                peer = %self.peer,
                connection = self.session.connection_id(),
                rule = %rule.name,
                %error,
                untold,
                advice = error.advice(),
                "a statement that runs away was not killed"
            );
        }
        if !self.allowance.note_not_killed() {
            self.note_runaway(rule, excess, "failed");
            self.quarantine(rule, RunawayAction::Kill);
        }
    }

    fn note_runaway(&self, rule: &Rule, excess: Excess, action: &'static str) {
        let digest = self.digest();
        let elapsed = self.allowance.elapsed();
        tell(self.shared, self.session, self.peer, &Told { rule, digest, excess, elapsed, action });
    }

    /// It goes on: nothing makes a server slower for one session. What is like it comes last.
    fn deprioritise(&self, rule: &Rule, statement: &StatementOutcome, excess: Excess) {
        let is_done = statement.class.is_gateable()
            && self.quarantine(rule, RunawayAction::Deprioritise).is_some();
        self.note_runaway(rule, excess, if is_done { "deprioritise" } else { "left" });
    }

    /// Refuses what is like the statement under way from now on, or has it come last. `None`: nobody
    /// watches for it, or nobody can say what is like it.
    fn quarantine(&self, rule: &Rule, action: RunawayAction) -> Option<()> {
        let by = rule.runaway?.watch?.by;
        let likeness = self.session.likeness().filter(|likeness| likeness.by == by);
        let likeness = likeness.or_else(|| match by {
            // Nobody watched for it when it began: it has the digest that it is counted by.
            WatchBy::Digest => self.digest().map(|hash| Likeness { by, hash }),
            WatchBy::Text => None,
        });
        quarantine(self.shared, rule, likeness?, (action, self.session.app()))
    }

    /// Its digest as insights have it.
    fn digest(&self) -> Option<u64> {
        self.session.about().digest.filter(|_| self.policy.insights.enabled)
    }
}

/// What is known of the statement under way, which was judged by this policy.
pub(super) fn running<'r>(
    policy: &'r ClusterPolicy,
    session: &'r Session,
    statement: &StatementOutcome,
) -> Running<'r> {
    let rules = &policy.rules;
    let is_of_file = |index: u32| rules.at(index).is_some_and(|rule| rule.author.is_none());
    let met = match (statement.watched, statement.rule) {
        (Some(index), _) => Met::Rule(index),
        (None, Some(index)) if is_of_file(index) => Met::Rule(index),
        (None, Some(_)) => Met::Unknown,
        (None, None) => Met::Nothing,
    };
    Running { session: session.identity(), app: session.app(), class: statement.class, rules, met }
}

/// For how long the server may work on what has come of a file. `None`: nothing limits that.
pub(super) fn upload_limit(
    policy: &ClusterPolicy,
    session: &Session,
    allowance: &Allowance,
) -> Option<Duration> {
    if let Some(newer) = allowance.newer() {
        return newer?.elapsed;
    }
    if !policy.rules.watches_runaways() {
        return None;
    }
    policy.rule(session.under_way()?.watched?)?.runaway?.elapsed
}

/// Refuses what is like a statement of this rule from now on, or has it come last. `None`: the rule does
/// not watch for it.
pub(super) fn quarantine(
    shared: &Shared,
    rule: &Rule,
    likeness: Likeness,
    (action, app): (RunawayAction, &[u8]),
) -> Option<()> {
    let watch = rule.runaway?.watch?;
    let caught = Caught { likeness, action, app, lasts: watch.lasts };
    let cluster = &shared.cluster;
    let Some(entry) = cluster.quarantine(rule, &caught) else { return Some(()) };
    let told = cluster.turned_away.quarantined.lock().again(cluster.now());
    let Some(untold) = told else { return Some(()) };
    tracing::warn!(
        cluster = %cluster.name,
        id = %entry.id(),
        rule = %rule.name,
        action = action.as_str(),
        by = likeness.by.as_str(),
        hash = format_args!("{:016x}", likeness.hash),
        until = %cluster.times_of(&entry).until,
        untold,
        "statements like it are in quarantine"
    );
    Some(())
}

/// What is told of a statement that runs away.
pub(super) struct Told<'t> {
    pub(super) rule: &'t Rule,
    pub(super) digest: Option<u64>,
    pub(super) excess: Excess,
    pub(super) elapsed: Duration,
    /// What is done with it.
    pub(super) action: &'static str,
}

/// Counts a statement that runs away, and says so in the log.
pub(super) fn tell(shared: &Shared, session: &Session, peer: &Peer, told: &Told<'_>) {
    let &Told { rule, digest, excess, elapsed, action } = told;
    shared.telemetry.runaway(&rule.name, action);
    let of = RanAway {
        cluster: &shared.cluster.name,
        rule: &rule.name,
        app: session.app(),
        user: session.user(),
        client: *peer,
        connection: session.connection_id(),
        digest,
        limit: excess.as_str(),
        elapsed,
        action,
    };
    shared.telemetry.statement_log.ran_away(shared.cluster.now(), &of);
}
