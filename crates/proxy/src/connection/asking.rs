//! An admission point: the question to the controller, and the wait.

mod noting;
mod refusing;
mod telling;

use std::future::poll_fn;
use std::time::Duration;

use admission::{Mode, MonoTime, Reason, Refusal, Request, Terms};
use policy::{Action as RuleAction, app_key, identity_key};
use session::{Answer, Ask, Question};
use tokio::time::Instant;
use wire::frame::split_frame;
use wire::packet::ErrPacket;

use super::cutting_over::{CutOverWatch, next_cut_over};
use super::pausing::Place;
use super::{Connection, Ended, errors};
use crate::cluster::{Judgement, Settled};
use crate::registry::{Control, Inbox};
use crate::telemetry::StatementDecision;

/// How the statement under way was judged. Statements that nobody asks for are admitted for no
/// reason.
#[derive(Debug, Default)]
pub(crate) struct AdmissionRecord {
    pub(super) decision: StatementDecision,
    reason: Option<Reason>,
    /// When it first came to its admission point: its deadline counts from there.
    arrived: Option<MonoTime>,
    /// By what its place in line goes, if not by that: it was refused before, and came back as told.
    since: Option<MonoTime>,
    /// How long it was in the queue. None: it never was.
    queued: Option<Duration>,
    /// How long it was paused for its rule's `speed`; in mode `observe` it only would have been.
    paused: Option<Duration>,
    /// How many waited when it first came to the queue.
    ahead: Option<usize>,
    /// What guards say of it has been counted.
    guarded: bool,
}

impl AdmissionRecord {
    /// It stands in line as if it had done so since then.
    pub(super) fn note_place(&mut self, since: MonoTime) {
        self.since = Some(since);
    }

    /// It has come to its admission point, unless it had before.
    pub(super) fn note_arrived(&mut self, now: MonoTime) {
        self.arrived.get_or_insert(now);
    }

    /// By what its place in line goes, as far as it has come to one.
    pub(super) fn since(&self) -> Option<MonoTime> {
        self.since.or(self.arrived)
    }

    /// Whether it has come to the queue already.
    pub(super) fn has_been_asked_for(&self) -> bool {
        self.arrived.is_some()
    }

    /// Whether it has been paused already.
    pub(super) fn has_paused(&self) -> bool {
        self.paused.is_some_and(|paused| !paused.is_zero())
    }

    /// Whether what guards say of it has been counted.
    pub(super) fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Guards have something to say of it. Whether that has been counted.
    pub(super) fn note_guarded(&mut self) -> bool {
        std::mem::replace(&mut self.guarded, true)
    }

    /// It is refused.
    pub(super) fn note_refused(&mut self, reason: Reason) {
        self.decision = StatementDecision::Rejected;
        self.reason = Some(reason);
    }

    /// Its rule's `speed` wants a pause before it.
    pub(super) fn note_pause(&mut self) {
        self.paused.get_or_insert_default();
    }

    /// What became of it.
    pub(super) fn decision(&self) -> StatementDecision {
        self.decision
    }

    /// How long it was kept waiting. None: it never was.
    pub(super) fn waited(&self) -> Option<Duration> {
        let paused = self.paused.filter(|_| self.has_paused());
        let both = self.queued.unwrap_or_default().saturating_add(paused.unwrap_or_default());
        (self.queued.is_some() || paused.is_some()).then_some(both)
    }

    /// The mode that the decision was made in: a budget's, where one refused it.
    pub(super) fn mode(&self, of_rule: Mode) -> Mode {
        if self.reason.is_some_and(Reason::is_budget) { Mode::Enforce } else { of_rule }
    }

    /// Why it was kept waiting, or would have been; a pause only if there is no other reason.
    pub(super) fn why(&self) -> Option<Reason> {
        let paced = match self.decision {
            StatementDecision::Admitted => self.paused.map(|_| Reason::Paced),
            StatementDecision::Rejected | StatementDecision::ClientGone => None,
        };
        self.reason.or(paced)
    }
}

/// Where the time of the statement under way has gone.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// When its first byte was seen.
    pub(crate) started: Option<Instant>,
    /// Spent waiting for the server.
    pub(crate) backend: Duration,
    /// Rows changed, as the server has said.
    pub(crate) rows: u64,
}

/// How long after the server has closed a queued session a KILL may be heard of that was the
/// reason.
const KILL_GRACE: Duration = Duration::from_millis(100);

/// How Sluice has contradicted itself about a statement that asks: each is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The policy in force for the session has no rule of this index.
    NoSuchRule,
    /// It has, and the rule lets nobody wait.
    RuleDoesNotAsk,
    /// It has, and the rule denies nothing.
    RuleDoesNotDeny,
}

impl Fault {
    fn as_str(self) -> &'static str {
        match self {
            Self::NoSuchRule => "the rule is not in the policy",
            Self::RuleDoesNotAsk => "the rule does not ask",
            Self::RuleDoesNotDeny => "the rule does not deny",
        }
    }
}

/// A statement that is not admitted at once.
pub(super) struct Unsettled {
    asked: Ask,
    open: Open,
}

/// Why it is not.
enum Open {
    Waits(Place),
    Refused(Refusal),
    Contradicted(Fault),
}

/// What ends a wait in the queue.
enum Woken {
    /// Boxed: the others are next to nothing.
    Settled(Box<Settled>),
    ClientLeft,
    BackendSpoke,
    Told(Control),
    /// A session of gh-ost's has locked its table: the statement may belong to that.
    CutOverBegun,
}

impl Connection {
    /// Asks the controller. `None`: it is admitted.
    pub(super) fn ask(&mut self, asked: Ask) -> Option<Unsettled> {
        if self.is_of_cut_over() {
            self.count_for_budgets(&asked);
            self.session.handle_passed(asked);
            return None;
        }
        match asked.question {
            // What was admitted before may be over: it is not in the way of its own session.
            Question::Rule if !self.session.is_admitted() => self.permit = None,
            Question::Rule => {}
            Question::Budgets => return self.ask_budgets(asked),
            Question::Count => {
                self.count_for_budgets(&asked);
                self.session.handle_admitted(asked);
                return None;
            }
        }
        if let Some(pause) = self.pause(&asked).or_else(|| self.pause_of_early(&asked)) {
            return Some(Unsettled { asked, open: Open::Waits(Place::Pausing(pause)) });
        }
        let request = match self.request(&asked) {
            Ok(request) => request,
            Err(fault) => return Some(Unsettled { asked, open: Open::Contradicted(fault) }),
        };
        let judgement = self.judge(asked.question, &request);
        self.handle_judgement(asked, judgement)
    }

    /// Asks for the budgets of a statement that nothing else holds back.
    fn ask_budgets(&mut self, asked: Ask) -> Option<Unsettled> {
        if self.take_budgets(&asked) {
            self.keep_long_pause(&asked);
            self.session.handle_admitted(asked);
            return None;
        }
        let request = self.budget_request(&asked);
        let judgement = self.judge(Question::Budgets, &request);
        self.handle_judgement(asked, judgement)
    }

    fn handle_judgement(&mut self, asked: Ask, judgement: Judgement) -> Option<Unsettled> {
        match judgement {
            Judgement::Admitted(permit) => {
                self.keep_long_pause(&asked);
                self.take_permit(permit);
                self.session.handle_admitted(asked);
                None
            }
            Judgement::Observed(permit, would_be) => {
                self.permit = Some(permit);
                if let Some(would_be) = would_be {
                    self.admission.decision = StatementDecision::Rejected;
                    self.admission.reason = Some(would_be.reason);
                }
                if !self.session.budgets().is_empty() {
                    return self.ask_budgets(asked);
                }
                self.session.handle_admitted(asked);
                None
            }
            Judgement::Refused(refused) => Some(Unsettled { asked, open: Open::Refused(refused) }),
            Judgement::Queued(waiter) => {
                self.admission.ahead.get_or_insert(waiter.ahead());
                waiter.introduce(self.introduction(&asked));
                Some(Unsettled { asked, open: Open::Waits(Place::InQueue(waiter)) })
            }
        }
    }

    /// Waits, or refuses. To be boxed: an idle connection has no room for what hardly any does.
    pub(super) async fn settle(
        &mut self,
        Unsettled { asked, open }: Unsettled,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        match open {
            Open::Waits(place) => self.wait_for_answer(asked, place, control).await,
            Open::Refused(refused) => self.refuse(asked, &refused).await,
            Open::Contradicted(fault) => Err(self.contradicted(&asked, fault).await),
        }
    }

    fn request(&mut self, asked: &Ask) -> Result<Request, Fault> {
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let rule = rule.ok_or(Fault::NoSuchRule)?;
        let RuleAction::Throttle { terms, gate, .. } = &rule.action else {
            return Err(Fault::RuleDoesNotAsk);
        };
        self.debt.note_asked(rule);
        let arrived = *self.admission.arrived.get_or_insert_with(|| self.shared.cluster.now());
        Ok(Request {
            rule: rule.key,
            identity: identity_key(rule, self.session.app()),
            app: app_key(rule, self.session.app()),
            digest: asked.digest,
            written: asked.written,
            gate: self.policy.gate_of(rule, *gate, self.session.app()),
            terms: Terms { ratio: asked.priority.scale(terms.ratio), ..*terms },
            arrived,
            since: self.admission.since.unwrap_or(arrived),
        })
    }

    /// When the statement under way came to its admission point.
    pub(super) fn arrived(&mut self) -> MonoTime {
        *self.admission.arrived.get_or_insert_with(|| self.shared.cluster.now())
    }

    /// The controller has its answer.
    async fn end_wait(&mut self, asked: Ask, settled: Settled) -> Result<(), Ended> {
        match settled {
            Settled::Admitted(permit) => {
                self.admission.reason = permit.reason();
                self.keep_long_wait(&asked, permit.waited(), permit.reason());
                self.take_permit(permit);
                self.session.handle_admitted(asked);
                Ok(())
            }
            Settled::Refused(refused) => self.refuse(asked, &refused).await,
            Settled::JudgeAgain => {
                // A rule may have expired meanwhile, without a new policy.
                let now = self.shared.cluster.now();
                self.now = (self.shared.cluster.rule_time_at(now), now);
                self.take_newer_policy();
                self.take_newer_facts();
                self.session.handle_judge_again(asked);
                Ok(())
            }
        }
    }

    async fn wait_for_answer(
        &mut self,
        asked: Ask,
        mut place: Place,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        let paused_before = self.admission.paused;
        let mut cut_overs = self.watch_cut_overs();
        loop {
            if cut_overs.is_some() && self.is_of_cut_over() {
                // Leaves the queue.
                drop(place);
                self.count_for_budgets(&asked);
                self.session.handle_passed(asked);
                return Ok(());
            }
            let woken = self.wait(&mut place, control, &mut cut_overs).await;
            self.note_wait(&place, paused_before);
            match woken {
                Woken::Settled(settled) => return self.end_wait(asked, *settled).await,
                Woken::ClientLeft => {
                    self.keep_left(&asked, &place);
                    drop(place);
                    self.admission.decision = StatementDecision::ClientGone;
                    self.count_asked(&asked);
                    return Err(Ended::ByClient);
                }
                Woken::BackendSpoke => {
                    drop(place);
                    self.admission.decision = StatementDecision::ClientGone;
                    self.count_asked(&asked);
                    let answer = self.last_words(control).await;
                    return self.leave(&answer).await;
                }
                Woken::Told(Control::KillQuery { sent }) => {
                    if self.timing.started.is_some_and(|started| started > sent) {
                        continue;
                    }
                    self.admission.decision = StatementDecision::ClientGone;
                    self.session.handle_refused(asked, errors::interrupted());
                    return Ok(());
                }
                Woken::Told(Control::Kill) => {
                    drop(place);
                    self.admission.decision = StatementDecision::ClientGone;
                    self.count_asked(&asked);
                    return self.leave(&errors::interrupted()).await;
                }
                Woken::Told(Control::Close) => {
                    drop(place);
                    return self.refuse_and_leave(&asked).await;
                }
                Woken::CutOverBegun => {}
                Woken::Told(Control::Drain) => self.leaving.want(),
                // It may have been admitted under the rules of before.
                Woken::Told(Control::NewLimits) => self.allowance.note_edit(),
                // The controller ends the waits in its queue, and refuses whoever asks it again.
                Woken::Told(Control::Refuse) => {
                    self.leaving.refuse();
                    self.end_pause(&mut place);
                }
            }
        }
    }

    /// How long it has waited by now, and for what.
    fn note_wait(&mut self, place: &Place, paused_before: Option<Duration>) {
        let Self { admission, shared, .. } = self;
        match place {
            Place::InQueue(_) => {
                let arrived = admission.arrived;
                admission.queued =
                    arrived.map(|arrived| shared.cluster.now().saturating_since(arrived));
            }
            Place::Pausing(pause) => {
                let before = paused_before.unwrap_or_default();
                admission.paused = Some(before.saturating_add(pause.since.elapsed()));
            }
        }
    }

    async fn wait(
        &mut self,
        place: &mut Place,
        control: &mut Inbox,
        cut_overs: &mut Option<CutOverWatch>,
    ) -> Woken {
        let Self { client, backend, .. } = self;
        tokio::select! {
            () = next_cut_over(cut_overs) => Woken::CutOverBegun,
            settled = place.settled() => Woken::Settled(Box::new(settled)),
            () = client.hung_up() => Woken::ClientLeft,
            _ = poll_fn(|cx| backend.poll_fill(cx)) => Woken::BackendSpoke,
            told = control.told() => Woken::Told(told),
        }
    }

    /// What the server said when it ended the session, or that it ended it. Of a KILL that came
    /// through Sluice as well, the server's closing may be seen before the killer's OK.
    async fn last_words(&self, control: &mut Inbox) -> Answer {
        let mut answer = errors::server_left();
        if let Some((_, payload, _)) = split_frame(self.backend.bytes())
            && let Ok(error) = ErrPacket::parse(payload)
        {
            answer.errno = error.code;
            answer.message = error.message.to_vec();
            if let Some(sqlstate) = error.sqlstate.and_then(|state| state.try_into().ok()) {
                answer.sqlstate = sqlstate;
            }
            return answer;
        }
        match tokio::time::timeout(KILL_GRACE, control.told()).await {
            Ok(Control::Kill | Control::KillQuery { .. }) => errors::interrupted(),
            Ok(Control::NewLimits | Control::Drain | Control::Refuse | Control::Close) | Err(_) => {
                answer
            }
        }
    }
}
