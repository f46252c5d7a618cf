//! The session itself: its owners, and the dispatch to the phase it is in.

mod answered;
pub(crate) mod guarded;
mod shown;

use policy::GuardReport;
use sql::Charset;
use wire::capability::Capabilities;
use wire::handshake::parse_change_user;
use wire::response_tracker::ResponseTracker;

use crate::action::{Action, Ask, CloseReason, Input, Move, Side};
use crate::command::{Arrived, Sending};
use crate::judge::Judge;
use crate::leg::Leg;
use crate::negotiated::{ClientInfo, Negotiated};
use crate::outbox::Outbox;
use crate::outcome::{Finished, StatementOutcome};
use crate::phase::asking::Asking;
use crate::phase::clearing::{self, Clearing};
use crate::phase::forwarding::Forwarding;
use crate::phase::guarding::{Behind, Guarding};
use crate::phase::login::{Accepted, Applicant, Desk, Login};
use crate::phase::refusing::{self, Refusing};
use crate::phase::{ending, execution, greeting, idle, login};
use crate::plan::{Hold, Plan};
use crate::server::{SchemaKnown, ServerSide};

/// One client connection. The crate's documentation draws its phases.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    client: ClientInfo,
    negotiated: Negotiated,
    out: Outbox,
    tracker: ResponseTracker,
    server: ServerSide,
    judge: Judge,
}

/// Where the session stands; each variant owns what is valid in it.
#[derive(Debug)]
enum Phase {
    Greeting,
    Login(Login),
    /// The server's OK has been forwarded, or an ERR after which the session goes on as who it was.
    LoggedIn,
    Idle,
    /// What is left of a KILL must not meet the next statement.
    Clearing(Clearing),
    /// Guards have something to say.
    Guarding(Guarding),
    /// They let it pass.
    Planned(Box<Plan>),
    Asking(Asking),
    /// To be sent on.
    Sending(Sending),
    Forwarding(Forwarding),
    Refusing(Refusing),
    /// The last that the client is told has been handed over; nothing more is relayed.
    Closing(CloseReason),
    Closed,
}

impl Session {
    /// A session whose backend connection has just been made, over `backend`.
    pub fn new(client: ClientInfo, backend: Leg) -> Self {
        Self {
            phase: Phase::Greeting,
            client,
            negotiated: Negotiated::new(client, backend),
            out: Outbox::default(),
            tracker: ResponseTracker::new(Capabilities::default()),
            server: ServerSide::default(),
            judge: Judge::default(),
        }
    }

    /// What to do next. Whatever it says is done by the shell before it calls again.
    pub fn next(&mut self, input: &Input<'_>) -> Action {
        loop {
            // Where it stands: it is large, and most of what a session does is this.
            if let Phase::Forwarding(forwarding) = &mut self.phase
                && let Some(action) = forwarding.advance(&mut self.tracker, input)
            {
                if let Action::Close(_) = action {
                    self.phase = Phase::Closed;
                }
                return action;
            }
            if let Some(action) = self.step(input) {
                return action;
            }
        }
    }

    /// Goes from a phase into the next one. Without an action that one says what to do.
    #[inline(never)]
    fn step(&mut self, input: &Input<'_>) -> Option<Action> {
        // Every statement leaves these two, so they are not moved out of their place for it.
        if let Phase::Idle = self.phase {
            return self.step_idle(input);
        }
        if let Phase::Forwarding(_) = self.phase {
            return self.step_forwarded(input);
        }
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            phase @ (Phase::Idle | Phase::Forwarding(_)) => {
                self.phase = phase;
                None
            }
            Phase::Sending(sending) => self.send(sending, input),
            Phase::Refusing(refusing) => self.step_refusing(refusing, input),
            Phase::Greeting => self.step_greeting(input),
            Phase::Login(login) => {
                let next = login.next(&mut self.desk(), input);
                self.after_login(next, input)
            }
            Phase::LoggedIn => {
                // Few sessions need it again.
                self.out.give_back();
                self.enter(Phase::Idle, Action::LoggedIn)
            }
            // The shell has an answer to give, and asks for one.
            Phase::Asking(_) | Phase::Guarding(_) => self.close(CloseReason::OutOfTurn),
            Phase::Planned(plan) => self.plan(*plan, input),
            Phase::Clearing(clearing) => self.step_clearing(clearing, input),
            Phase::Closing(reason) => self.close(reason),
            Phase::Closed => self.close(CloseReason::Told),
        }
    }

    fn enter(&mut self, phase: Phase, action: Action) -> Option<Action> {
        self.phase = phase;
        Some(action)
    }

    fn close(&mut self, reason: CloseReason) -> Option<Action> {
        self.enter(Phase::Closed, Action::Close(reason))
    }

    fn refuse(&mut self, refusing: Refusing) -> Option<Action> {
        self.phase = Phase::Refusing(refusing);
        None
    }

    fn step_idle(&mut self, input: &Input<'_>) -> Option<Action> {
        let Self { negotiated, server, judge, .. } = self;
        match idle::next(negotiated.capabilities, server, judge, input) {
            idle::Next::Stay(action) => Some(action),
            idle::Next::Statement(plan) => match plan {
                Plan { sending, hold: Hold::Nothing, work: None, guarded: None } => {
                    self.send(sending, input)
                }
                plan => self.step_planned(plan, input),
            },
            idle::Next::Guard(report, sending) => self.guard(report, Behind::Command(sending)),
            idle::Next::Send(sending) => self.send(sending, input),
            idle::Next::Refuse(refusing) => self.refuse(refusing),
            idle::Next::ChangeUser => self.change_user(input),
            idle::Next::Quit(len) => self.enter(
                Phase::Closing(CloseReason::Quit),
                Move::Forward { from: Side::Client, len }.into(),
            ),
            idle::Next::Close(reason) => self.close(reason),
        }
    }

    /// Guards have something to say of a statement, or it may be held.
    #[inline(never)]
    fn step_planned(&mut self, mut plan: Plan, input: &Input<'_>) -> Option<Action> {
        match plan.guarded.take() {
            None => self.plan(plan, input),
            Some(report) => self.guard(report, Behind::Statement(Box::new(plan))),
        }
    }

    /// A statement is sent on, or the shell is asked for it.
    fn plan(&mut self, plan: Plan, input: &Input<'_>) -> Option<Action> {
        let Plan { sending, hold, work, guarded: _ } = plan;
        let action = match hold {
            Hold::Nothing => return self.send(sending, input),
            Hold::Ask(held) => Action::Ask(Ask::of(held)),
            Hold::Deny(held) => Action::Deny(Ask::of(held)),
        };
        self.enter(Phase::Asking(Asking::new(sending, work)), action)
    }

    #[cold]
    fn guard(&mut self, report: Box<GuardReport>, behind: Behind) -> Option<Action> {
        let (guarding, action) = Guarding::begin(report, behind);
        self.enter(Phase::Guarding(guarding), action)
    }

    #[inline]
    fn send(&mut self, mut sending: Sending, input: &Input<'_>) -> Option<Action> {
        if std::mem::take(&mut sending.running.changes_routines) {
            return self.enter(Phase::Sending(sending), Action::ChangeRoutines);
        }
        let replaced = match sending.execution {
            Some(id) => {
                let Self { negotiated, out, server, .. } = self;
                let capabilities = negotiated.capabilities;
                execution::repair(id, input.client, capabilities, &mut server.prepared, out)
            }
            None => Ok(None),
        };
        match replaced {
            Ok(replaced) => {
                self.phase =
                    Phase::Forwarding(Forwarding::begin(sending, replaced, &mut self.tracker));
                None
            }
            Err(unrepairable) => self.refuse(Refusing::command(unrepairable.answer())),
        }
    }

    /// All is said.
    fn step_forwarded(&mut self, input: &Input<'_>) -> Option<Action> {
        let Self { phase, negotiated, tracker, server, judge, .. } = self;
        let Phase::Forwarding(forwarding) = phase else { return None };
        let (running, response) = forwarding.parts();
        let (statement, cursor) = (running.statement, running.cursor);
        let likeness = running.likeness;
        let kill = response.as_ref().and_then(|response| {
            let who = &mut judge.bench.who;
            ending::end(running, response, tracker, (negotiated, server, input.facts), who)
        });
        let response = *response;
        self.finish(Finished { response, kill, cursor, likeness, ..finished(statement) })
    }

    fn step_clearing(&mut self, clearing: Clearing, input: &Input<'_>) -> Option<Action> {
        match clearing.next(&mut self.tracker, &mut self.out, input) {
            clearing::Next::Stay(clearing, action) => self.enter(Phase::Clearing(clearing), action),
            clearing::Next::Done(action) => self.enter(Phase::Idle, action),
            clearing::Next::Close(reason) => self.close(reason),
        }
    }

    fn step_refusing(&mut self, refusing: Refusing, input: &Input<'_>) -> Option<Action> {
        let Self { negotiated, out, tracker, server, .. } = self;
        let borrowed = (&mut server.prepared, out);
        match refusing.next(negotiated.capabilities, tracker, borrowed, input) {
            refusing::Next::Stay(refusing, action) => self.enter(Phase::Refusing(refusing), action),
            refusing::Next::Done(statement) => self.finish(finished(statement)),
            refusing::Next::Close(reason) => self.close(reason),
        }
    }

    fn finish(&mut self, finished: Finished) -> Option<Action> {
        let finished = Finished {
            admission_over: !self.server.transaction.is_admitted(),
            claims_refused: self.judge.bench.who.take_refused_claims(),
            ..finished
        };
        self.enter(Phase::Idle, Action::Finished(finished))
    }

    fn step_greeting(&mut self, input: &Input<'_>) -> Option<Action> {
        match greeting::next(&mut self.negotiated, &mut self.server, &mut self.out, input) {
            greeting::Next::Stay(action) => self.enter(Phase::Greeting, action),
            greeting::Next::Greeted(login, action) => self.enter(Phase::Login(login), action),
            greeting::Next::Refused(action) => {
                self.enter(Phase::Closing(CloseReason::LoginRefused), action)
            }
            greeting::Next::Close(reason) => self.close(reason),
        }
    }

    fn change_user(&mut self, input: &Input<'_>) -> Option<Action> {
        let Some(Arrived { header, payload, .. }) = Arrived::of(input.client) else {
            return self.close(CloseReason::ClientProtocol);
        };
        match parse_change_user(payload, self.negotiated.capabilities) {
            Ok(change) => {
                let next = Login::again(&change, payload, header.sequence, &mut self.desk());
                self.after_login(next, input)
            }
            Err(_) => self.refuse(idle::malformed()),
        }
    }

    /// What a login borrows.
    fn desk(&mut self) -> Desk<'_> {
        let Self { client, negotiated, out, judge, .. } = self;
        Desk { client: *client, negotiated, who: &mut judge.bench.who, out }
    }

    fn after_login(&mut self, next: login::Next, input: &Input<'_>) -> Option<Action> {
        match next {
            login::Next::Stay(login, action) => self.enter(Phase::Login(login), action),
            login::Next::Accepted(accepted, action) => {
                self.begin(accepted, input);
                self.enter(Phase::LoggedIn, action)
            }
            login::Next::Refused(action) => {
                self.enter(Phase::Closing(CloseReason::LoginRefused), action)
            }
            login::Next::Denied(denial, action) => {
                self.enter(Phase::Closing(CloseReason::LoginDenied(denial)), action)
            }
            login::Next::Close(reason) => self.close(reason),
        }
    }

    /// The server has let somebody in.
    fn begin(&mut self, accepted: Accepted, input: &Input<'_>) {
        let Self { negotiated, tracker, server, judge, .. } = self;
        let who = &mut judge.bench.who;
        server.schema = match accepted {
            Accepted::First(_) | Accepted::Changed(..) => SchemaKnown::Certain,
            Accepted::Unchanged => SchemaKnown::No,
        };
        match accepted {
            Accepted::First(flags) => {
                *tracker = ResponseTracker::new(negotiated.capabilities);
                who.renew();
                server.start(negotiated.charset, Some(flags), input.facts);
            }
            Accepted::Changed(Applicant { identity, charset }, flags) => {
                negotiated.charset = charset;
                who.become_user(identity);
                server.start(charset, Some(flags), input.facts);
            }
            Accepted::Unchanged => {
                who.forget();
                server.start(Charset::Unknown, None, input.facts);
            }
        }
        if who.identity().doubts_schema() {
            server.schema = SchemaKnown::No;
        }
    }
}

/// A command is over, of which only this is known.
fn finished(statement: Option<StatementOutcome>) -> Finished {
    Finished {
        statement,
        response: None,
        admission_over: false,
        kill: None,
        cursor: None,
        likeness: None,
        claims_refused: 0,
    }
}
