//! The session itself: its owners, and the dispatch to the phase it is in.

mod answered;
mod shown;

use sql::Charset;
use wire::capability::Capabilities;
use wire::handshake::parse_change_user;
use wire::response_tracker::ResponseTracker;

use crate::action::{Action, CloseReason, Input, Move, Side};
use crate::command::{Arrived, Running, Sending};
use crate::judge::Judge;
use crate::leg::Leg;
use crate::negotiated::{ClientInfo, Negotiated};
use crate::outbox::Outbox;
use crate::outcome::{Finished, StatementOutcome};
use crate::phase::asking::Asking;
use crate::phase::forwarding::Forwarding;
use crate::phase::login::{Accepted, Applicant, Desk, Login};
use crate::phase::refusing::{self, Refusing};
use crate::phase::{ending, greeting, idle, login};
use crate::plan::Plan;
use crate::server::ServerSide;

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
    Asking(Asking),
    /// To be sent on.
    Sending(Sending),
    Forwarding(Forwarding),
    Refusing(Refusing),
    /// The last that the client is told has been handed over; nothing more is relayed.
    Closing(CloseReason),
    Closed,
}

/// Where a phase leads, and what is to be done on the way. Without an action the next phase says.
type Step = (Phase, Option<Action>);

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
            let phase = std::mem::replace(&mut self.phase, Phase::Closed);
            let (phase, action) = self.step(phase, input);
            self.phase = phase;
            if let Some(action) = action {
                return action;
            }
        }
    }

    fn step(&mut self, phase: Phase, input: &Input<'_>) -> Step {
        match phase {
            Phase::Idle => self.step_idle(input),
            Phase::Sending(sending) => self.step_sending(sending, input),
            Phase::Forwarding(forwarding) => self.step_forwarded(forwarding),
            Phase::Refusing(refusing) => self.step_refusing(refusing, input),
            Phase::Greeting => self.step_greeting(input),
            Phase::Login(login) => {
                let next = login.next(&mut self.desk(), input);
                self.after_login(next)
            }
            Phase::LoggedIn => (Phase::Idle, Some(Action::LoggedIn)),
            // The shell has an answer to give, and asks for one.
            Phase::Asking(_) => close(CloseReason::OutOfTurn),
            Phase::Closing(reason) => close(reason),
            Phase::Closed => close(CloseReason::Told),
        }
    }

    fn step_idle(&mut self, input: &Input<'_>) -> Step {
        let Self { negotiated, server, judge, .. } = self;
        match idle::next(negotiated.capabilities, server, judge, input) {
            idle::Next::Stay(action) => (Phase::Idle, Some(action)),
            idle::Next::Statement(plan) => ask(plan),
            idle::Next::Send(sending) => (Phase::Sending(sending), None),
            idle::Next::Refuse(refusing) => (Phase::Refusing(refusing), None),
            idle::Next::ChangeUser => self.change_user(input),
            idle::Next::Quit(len) => (
                Phase::Closing(CloseReason::Quit),
                Some(Move::Forward { from: Side::Client, len }.into()),
            ),
            idle::Next::Close(reason) => close(reason),
        }
    }

    fn step_sending(&mut self, sending: Sending, input: &Input<'_>) -> Step {
        let Self { negotiated, out, tracker, server, .. } = self;
        match Forwarding::begin(sending, tracker, (negotiated, server), out, input) {
            Ok(forwarding) => (Phase::Forwarding(forwarding), None),
            Err(unrepairable) => (Phase::Refusing(Refusing::command(unrepairable.answer())), None),
        }
    }

    /// All is said.
    fn step_forwarded(&mut self, forwarding: Forwarding) -> Step {
        let Self { negotiated, tracker, server, judge, .. } = self;
        let (running, response) = forwarding.into_parts();
        let Running { statement, .. } = running;
        let kill = response.as_ref().and_then(|response| {
            ending::end(running, response, tracker, (negotiated, server), &mut judge.bench.who)
        });
        self.finish(Finished { response, kill, ..finished(statement) })
    }

    fn step_refusing(&mut self, refusing: Refusing, input: &Input<'_>) -> Step {
        let Self { negotiated, out, tracker, server, .. } = self;
        let borrowed = (&mut server.prepared, out);
        match refusing.next(negotiated.capabilities, tracker, borrowed, input) {
            refusing::Next::Stay(refusing, action) => (Phase::Refusing(refusing), Some(action)),
            refusing::Next::Done(statement) => self.finish(finished(statement)),
            refusing::Next::Close(reason) => close(reason),
        }
    }

    fn finish(&mut self, finished: Finished) -> Step {
        let finished = Finished {
            admission_over: !self.server.transaction.is_admitted(),
            claims_refused: self.judge.bench.who.take_refused_claims(),
            ..finished
        };
        (Phase::Idle, Some(Action::Finished(finished)))
    }

    fn step_greeting(&mut self, input: &Input<'_>) -> Step {
        match greeting::next(&mut self.negotiated, &mut self.server, &mut self.out, input) {
            greeting::Next::Stay(action) => (Phase::Greeting, Some(action)),
            greeting::Next::Greeted(login, action) => (Phase::Login(login), Some(action)),
            greeting::Next::Refused(action) => {
                (Phase::Closing(CloseReason::LoginRefused), Some(action))
            }
            greeting::Next::Close(reason) => close(reason),
        }
    }

    fn change_user(&mut self, input: &Input<'_>) -> Step {
        let Some(Arrived { header, payload, .. }) = Arrived::of(input.client) else {
            return close(CloseReason::ClientProtocol);
        };
        match parse_change_user(payload, self.negotiated.capabilities) {
            Ok(change) => {
                let next = Login::again(&change, payload, header.sequence, &mut self.desk());
                self.after_login(next)
            }
            Err(_) => close(CloseReason::ClientProtocol),
        }
    }

    /// What a login borrows.
    fn desk(&mut self) -> Desk<'_> {
        let Self { client, negotiated, out, judge, .. } = self;
        Desk { client: *client, negotiated, who: &mut judge.bench.who, out }
    }

    fn after_login(&mut self, next: login::Next) -> Step {
        match next {
            login::Next::Stay(login, action) => (Phase::Login(login), Some(action)),
            login::Next::Accepted(accepted, action) => {
                self.begin(accepted);
                (Phase::LoggedIn, Some(action))
            }
            login::Next::Refused(action) => {
                (Phase::Closing(CloseReason::LoginRefused), Some(action))
            }
            login::Next::Denied(denial, action) => {
                (Phase::Closing(CloseReason::LoginDenied(denial)), Some(action))
            }
            login::Next::Close(reason) => close(reason),
        }
    }

    /// The server has let somebody in.
    fn begin(&mut self, accepted: Accepted) {
        let Self { negotiated, tracker, server, judge, .. } = self;
        let who = &mut judge.bench.who;
        match accepted {
            Accepted::First(flags) => {
                *tracker = ResponseTracker::new(negotiated.capabilities);
                who.renew();
                server.start(negotiated.charset, Some(flags));
            }
            Accepted::Changed(Applicant { identity, charset }, flags) => {
                negotiated.charset = charset;
                who.become_user(identity);
                server.start(charset, Some(flags));
            }
            Accepted::Unchanged => {
                who.forget();
                server.start(Charset::Unknown, None);
            }
        }
    }
}

fn close(reason: CloseReason) -> Step {
    (Phase::Closed, Some(Action::Close(reason)))
}

/// A statement is sent on, or the shell is asked for it.
fn ask(plan: Plan) -> Step {
    match Asking::begin(plan) {
        Ok((asking, action)) => (Phase::Asking(asking), Some(action)),
        Err(sending) => (Phase::Sending(sending), None),
    }
}

/// A command is over, of which only this is known.
fn finished(statement: Option<StatementOutcome>) -> Finished {
    Finished { statement, response: None, admission_over: false, kill: None, claims_refused: 0 }
}
