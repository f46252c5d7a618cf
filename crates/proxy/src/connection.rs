//! One client connection: the task that does what its [`Session`] says.
//!
//! The task waits for one thing at a time. Idle, it listens to both sides and to the registry.
//! While the server works it listens to the server, and for the client hanging up where no
//! admission keeps the statement: an admitted one holds its place until the server has really
//! finished it (`departure`). While a statement is queued it listens for the queue's answer and
//! for either side hanging up, and reads nothing ahead.

mod arrival;
mod asking;
mod between;
mod budgeting;
mod counting;
mod cursors;
mod cutting_over;
mod delivery;
mod departure;
mod errors;
mod fetching;
mod finishing;
mod foreseeing;
mod guarding;
mod leaving;
mod moving;
mod pausing;
mod reading;
mod recording;
mod returning;
mod running_away;
mod securing;
mod serving;
mod stalling;
mod unwanted;

use std::pin::pin;
use std::sync::Arc;

use admission::MonoTime;
use policy::{ClusterPolicy, UnixTime};
use session::{Action, ClientInfo, CloseReason, Denial, Input, Reads, Session};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::board::Birth;
use crate::cluster::{BudgetGuard, Cluster, PermitGuard};
use crate::cut_overs::CutOverGuard;
use crate::facts::{Known, RoutineChange};
use crate::insights::InsightsTap;
use crate::latency::LatencyTap;
use crate::registry::Inbox;
use crate::runaway::Allowance;
use crate::socket::Peer;
use crate::stream::Stream;
use crate::telemetry::{BackendErrorKind, LabelCache, Telemetry};
use crate::texts;
use crate::workers::Affinity;

pub(crate) use self::arrival::Arrival;
use self::arrival::{Joined, LoginDeadlines};
use self::asking::{AdmissionRecord, Fault, Timing};
use self::budgeting::AskedAs;
use self::cursors::Cursors;
use self::departure::Departure;
use self::leaving::{Between, DrainState};
use self::pausing::Debt;
pub(crate) use self::serving::{Begun, resume, serve};
use self::stalling::Rest;

/// Everything a connection needs from outside.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// Why a connection is over. Nobody is told: the counters and the log were written where it
/// happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The session has closed it.
    BySession(CloseReason),
    /// The client closed.
    ByClient,
    /// The client's socket failed, or what came over it is not TLS or not compressed as agreed.
    ByClientFault,
    /// The backend closed, or its socket failed.
    ByBackend,
    /// It was told to leave, and so was its client.
    Told,
    /// It was told to leave, and its client sees the end only.
    Quietly,
    /// It is not: it goes on on that thread.
    Moves {
        /// By its number.
        to: usize,
    },
    /// Sluice has contradicted itself.
    BySluice(Fault),
}

struct Connection {
    shared: Shared,
    /// Which thread relays it.
    affinity: Affinity,
    policy: Arc<ClusterPolicy>,
    /// Since when it has a session at which primary. Boxed: it is hardly ever looked at.
    birth: Box<Birth>,
    /// What that says of itself.
    known: Arc<Known>,
    /// The statement under way may change routines.
    routine_change: Option<RoutineChange>,
    client: Stream,
    backend: Stream,
    session: Session,
    peer: Peer,
    permit: Option<PermitGuard>,
    /// What the statement under way has taken from its budgets.
    budget: Option<BudgetGuard>,
    /// As whom it asks for them.
    asked_as: AskedAs,
    /// Of prepared statements.
    cursors: Cursors,
    labels: LabelCache,
    latency: LatencyTap,
    insights: InsightsTap,
    timing: Timing,
    /// What happened at the admission point of the statement under way.
    admission: AdmissionRecord,
    /// What is owed to rules with `speed`.
    debt: Debt,
    /// While it holds the lock of a cut-over. Boxed: hardly any connection does.
    cut_over: Option<Box<CutOverGuard>>,
    /// Since when the client cannot be written to any more; what the server still says is dropped.
    client_gone: Option<Instant>,
    departure: Departure,
    /// While the rest of a statement is waited for that holds others up.
    rest: Option<Rest>,
    /// Both clocks when the statement under way began.
    now: (UnixTime, MonoTime),
    leaving: DrainState,
    /// During a COM_CHANGE_USER: the limits on silence in it.
    changing: Option<Box<LoginDeadlines>>,
    claim_logged: bool,
    guard_logged: bool,
    /// What the statement under way may still take.
    allowance: Allowance,
    /// The backend's socket once more, while a file comes for a statement that `elapsed` limits.
    upload_twin: Option<Box<Stream>>,
    /// Rings when the statement under way has run for too long, or an idle session has stayed.
    alarm: Alarm,
    /// A KILL that nobody knows of may still come: the session ends here.
    kill_may_come: bool,
}

impl Connection {
    fn new(
        shared: Shared,
        affinity: Affinity,
        policy: Arc<ClusterPolicy>,
        joined: Joined,
    ) -> (Self, LoginDeadlines) {
        let Joined { client, backend, peer, deadlines, connected } = joined;
        let connection = Self {
            birth: Box::new(Birth {
                address: policy.primary.clone(),
                connected,
                answered: connected,
            }),
            known: shared.cluster.facts.nothing(),
            routine_change: None,
            policy,
            session: Session::new(
                ClientInfo { address: peer.ip(), leg: client.leg() },
                backend.leg(),
            ),
            client: Stream::new(client),
            backend: Stream::new(backend),
            peer,
            permit: None,
            budget: None,
            cursors: Cursors::default(),
            labels: LabelCache::default(),
            insights: InsightsTap::default(),
            latency: LatencyTap::new(&shared.cluster.latencies, affinity.index()),
            timing: Timing::default(),
            admission: AdmissionRecord::default(),
            debt: Debt::default(),
            cut_over: None,
            now: (UnixTime(0), MonoTime::ZERO),
            client_gone: None,
            departure: Departure::default(),
            rest: None,
            leaving: DrainState::default(),
            changing: None,
            claim_logged: false,
            guard_logged: false,
            allowance: Allowance::default(),
            upload_twin: None,
            alarm: Alarm::default(),
            asked_as: AskedAs::default(),
            kill_may_come: false,
            affinity,
            shared,
        };
        (connection, deadlines)
    }

    /// What is to be done when it is over. To be boxed.
    async fn end(&mut self, ended: Ended) {
        self.cut_over = None;
        if ended == Ended::ByClient && self.session.is_idle() {
            // It may have closed its sending half only: what the server says to that is for it.
            self.backend.end_sending();
            self.flush_backend().await;
        }
        if ended == Ended::ByBackend {
            self.flush_backend().await;
        }
        if let Some(kind) = self.backend_error(&ended) {
            let cluster = &self.shared.cluster;
            self.shared.telemetry.backend_error(&cluster.name, kind);
            let kind = kind.as_str();
            if let Some(untold) = cluster.turned_away.backend.again(kind, cluster.now()) {
                let cluster = &cluster.name;
                tracing::warn!(%cluster, peer = %self.peer, kind, untold, "backend error");
            }
        }
        self.note_denied_login(&ended);
        if ended == Ended::BySession(CloseReason::OutOfTurn) {
            let cluster = &self.shared.cluster.name;
            self.shared.telemetry.internal_fault(cluster);
            tracing::error!(
                %cluster, peer = %self.peer,
                "a fault of Sluice's: the session was called out of turn, and its connection ends"
            );
        }
        if let Some(statement) = self.session.under_way() {
            self.count(&statement);
        }
        self.leave_behind();
        if self.session.owes_login() {
            Box::pin(self.answer_greeting()).await;
        }
        tracing::debug!(peer = %self.peer, ?ended, "connection over");
        self.close().await;
        if ended == Ended::Told {
            self.hear_out().await;
        }
    }

    /// What the server did wrong, if it was its doing and has not been noted. Closing an idle
    /// session is its right.
    fn backend_error(&self, ended: &Ended) -> Option<BackendErrorKind> {
        match ended {
            Ended::BySession(CloseReason::BackendProtocol) => Some(BackendErrorKind::Protocol),
            Ended::BySession(CloseReason::LoginDenied(Denial::ServerWithoutTls)) => {
                Some(BackendErrorKind::Tls)
            }
            Ended::ByBackend if !self.session.is_idle() => Some(BackendErrorKind::Lost),
            Ended::BySession(_)
            | Ended::ByBackend
            | Ended::ByClient
            | Ended::ByClientFault
            | Ended::Told
            | Ended::Quietly
            | Ended::Moves { .. }
            | Ended::BySluice(_) => None,
        }
    }

    /// Relays commands and answers.
    async fn converse(&mut self, control: &mut Inbox) -> Ended {
        loop {
            if let Err(ended) = self.step(control).await {
                return ended;
            }
        }
    }

    /// Relays the connection phase.
    async fn login(
        &mut self,
        mut deadlines: LoginDeadlines,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        loop {
            self.take_newer_facts();
            match self.next_action() {
                Action::LoggedIn => {
                    self.start_compression();
                    self.shared.cluster.note_masked(self.session.masked_capabilities());
                    return Ok(());
                }
                Action::Read(reads) => {
                    self.read_for_login(reads, &mut deadlines, control).await?;
                }
                Action::Move(moved) => {
                    deadlines.note(moved);
                    self.note_word(moved);
                    self.move_bytes(moved).await?;
                }
                // Boxed: an idle connection does not pay for what only a login needs.
                Action::StartTls { side, drop } => Box::pin(self.start_tls(side, drop)).await?,
                Action::Crypt(crypt) => Box::pin(self.crypt(crypt)).await?,
                Action::Close(reason) => return Err(Ended::BySession(reason)),
                Action::Ask(_)
                | Action::Deny(_)
                | Action::Guard(_)
                | Action::Finished(_)
                | Action::ChangeRoutines => {
                    return Err(Ended::BySession(CloseReason::OutOfTurn));
                }
            }
        }
    }

    /// One action of the command phase.
    async fn step(&mut self, control: &mut Inbox) -> Result<(), Ended> {
        if self.session.is_idle() {
            match self.between_statements()? {
                Between::Stays => {}
                Between::Leaves => return Box::pin(self.leave_quietly()).await,
                Between::IsTold => return Box::pin(self.leave(&errors::idle_shutdown())).await,
            }
        }
        let action = self.next_action();
        self.give_up_cut_over();
        match action {
            Action::Read(reads) if self.session.is_logging_in() => {
                Box::pin(self.read_for_change(reads, control)).await
            }
            Action::Read(reads) => self.read_for_statement(reads, control).await,
            Action::Ask(ask) => {
                // Nobody waits for itself.
                self.cursors.give_back();
                match self.ask(ask) {
                    None => Ok(()),
                    Some(unsettled) => Box::pin(self.settle(unsettled, control)).await,
                }
            }
            Action::Deny(ask) => Box::pin(self.deny(ask, control)).await,
            Action::Guard(mut by_guards) => {
                if !by_guards.report.estimates.is_empty() {
                    Box::pin(self.foresee(&mut by_guards.report)).await;
                }
                self.guard(by_guards);
                Ok(())
            }
            Action::Finished(finished) => {
                self.finish(&finished);
                Ok(())
            }
            Action::LoggedIn => {
                // COM_CHANGE_USER: the server has rolled back.
                self.permit = None;
                self.cursors.clear();
                self.changing = None;
                self.departure = Departure::default();
                Ok(())
            }
            Action::Move(moved) => {
                if let Some(deadlines) = &mut self.changing {
                    deadlines.note(moved);
                }
                self.give_back_answered();
                self.move_bytes(moved).await?;
                if let Some(excess) = self.answers_too_much(moved) {
                    Box::pin(self.run_away(excess)).await;
                }
                Ok(())
            }
            Action::ChangeRoutines => {
                self.routine_change = Some(self.shared.cluster.facts.begin_change());
                Ok(())
            }
            Action::StartTls { side, drop } => Box::pin(self.start_tls(side, drop)).await,
            Action::Crypt(crypt) => Box::pin(self.crypt(crypt)).await,
            Action::Close(reason) => Err(Ended::BySession(reason)),
        }
    }

    async fn read_for_statement(&mut self, reads: Reads, control: &mut Inbox) -> Result<(), Ended> {
        if let Some(to) = self.moves_to() {
            return Err(Ended::Moves { to });
        }
        let waits_for_server = reads == Reads::Backend;
        if waits_for_server {
            if self.allowance.is_edited() {
                Box::pin(self.follow_edit()).await;
            }
            self.resume_cursor();
            if self.latency.is_awaited() {
                self.note_begun();
            }
        }
        let since = waits_for_server.then(Instant::now);
        let rest_due = self.rest_due(reads);
        let until = match (self.waits_until(), since) {
            (None, Some(since)) => {
                self.runaway_due(since).into_iter().chain(self.budget_due(since)).min()
            }
            (None, None) => rest_due,
            (until, _) => until,
        };
        let told = match until {
            None => self.read(reads, control).await?,
            Some(until) => {
                let mut alarm = std::mem::take(&mut self.alarm);
                let read = alarm.within(until, pin!(self.read(reads, control))).await;
                self.alarm = alarm;
                match read {
                    Some(told) => told?,
                    None if self.client_gone.is_some() => return Err(Ended::ByClient),
                    None if self.rest.is_some() => return Box::pin(self.end_stalled()).await,
                    None => {
                        self.cursors.give_back_idle(Instant::now());
                        Box::pin(self.note_overdue()).await;
                        None
                    }
                }
            }
        };
        self.note_rest();
        if let Some(since) = since {
            let cluster = &self.shared.cluster;
            let since = cluster.clock().at(since);
            let waited = cluster.probes.standstills.waited(since, cluster.now());
            self.timing.backend = self.timing.backend.saturating_add(waited);
            self.note_used_so_far();
        }
        match told {
            Some(told) => self.handle_control(told).await,
            None => Ok(()),
        }
    }

    fn next_action(&mut self) -> Action {
        let Self { session, client, backend, policy, known, shared, .. } = self;
        let texts = texts::of_thread();
        session.next(&Input {
            client: client.bytes(),
            backend: backend.bytes(),
            policy,
            facts: &known.facts,
            digests: policy.insights.enabled.then(|| shared.cluster.insights.memo()),
            texts: &texts,
            now: self.now.0,
            mono: self.now.1,
        })
    }
}

#[cfg(test)]
mod tests;
