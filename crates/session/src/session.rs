//! The session itself: its owners, and the dispatch to the phase it is in.

use sql::{Charset, Server};
use wire::capability::Capabilities;
use wire::frame::FrameHeader;
use wire::handshake::parse_change_user;
use wire::response_tracker::ResponseTracker;

use crate::action::{Action, Ask, CloseReason, Input, Move, Side};
use crate::answer::Answer;
use crate::command::{Arrived, Running, Sending};
use crate::compression::Compression;
use crate::judge::Judge;
use crate::leg::{Leg, OF_EACH_LEG, Password};
use crate::negotiated::{ClientInfo, Negotiated};
use crate::outbox::Outbox;
use crate::outcome::{Finished, StatementOutcome};
use crate::phase::asking::Asking;
use crate::phase::forwarding::Forwarding;
use crate::phase::login::{Accepted, Applicant, Desk, FIRST_SEQUENCE, Login, OutOfTurn};
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
            Phase::Forwarding(forwarding) => self.step_forwarded(forwarding, input),
            Phase::Refusing(refusing) => self.step_refusing(refusing, input),
            Phase::Greeting => self.step_greeting(input),
            Phase::Login(login) => {
                let next = login.next(&mut self.desk(), input);
                self.after_login(next, input)
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

    fn step_sending(&mut self, mut sending: Sending, input: &Input<'_>) -> Step {
        if std::mem::take(&mut sending.running.changes_routines) {
            return (Phase::Sending(sending), Some(Action::ChangeRoutines));
        }
        let Self { negotiated, out, tracker, server, .. } = self;
        match Forwarding::begin(sending, tracker, (negotiated, server), out, input) {
            Ok(forwarding) => (Phase::Forwarding(forwarding), None),
            Err(unrepairable) => (Phase::Refusing(Refusing::command(unrepairable.answer())), None),
        }
    }

    /// All is said.
    fn step_forwarded(&mut self, forwarding: Forwarding, input: &Input<'_>) -> Step {
        let Self { negotiated, tracker, server, judge, .. } = self;
        let (running, response) = forwarding.into_parts();
        let Running { statement, .. } = running;
        let kill = response.as_ref().and_then(|response| {
            let who = &mut judge.bench.who;
            ending::end(running, response, tracker, (negotiated, server, input.facts), who)
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
                self.after_login(next, input)
            }
            Err(_) => close(CloseReason::ClientProtocol),
        }
    }

    /// What a login borrows.
    fn desk(&mut self) -> Desk<'_> {
        let Self { client, negotiated, out, judge, .. } = self;
        Desk { client: *client, negotiated, who: &mut judge.bench.who, out }
    }

    fn after_login(&mut self, next: login::Next, input: &Input<'_>) -> Step {
        match next {
            login::Next::Stay(login, action) => (Phase::Login(login), Some(action)),
            login::Next::Accepted(accepted, action) => {
                self.begin(accepted, input);
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
    fn begin(&mut self, accepted: Accepted, input: &Input<'_>) {
        let Self { negotiated, tracker, server, judge, .. } = self;
        let who = &mut judge.bench.who;
        server.schema_known = !matches!(accepted, Accepted::Unchanged);
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
    }
}

/// The shell's answers. One that is not waited for ends the connection: [`CloseReason::OutOfTurn`].
impl Session {
    /// The statement that was asked for may run.
    pub fn handle_admitted(&mut self, ask: Ask) {
        if let Some(asking) = self.take_asking(ask) {
            self.phase = Phase::Sending(asking.into_sending());
        }
    }

    /// The statement that was asked for may not run: `answer` is what the client is told.
    pub fn handle_refused(&mut self, ask: Ask, answer: Answer) {
        if let Some(asking) = self.take_asking(ask) {
            self.phase = Phase::Refusing(Refusing::statement(asking.into_sending(), answer));
        }
    }

    /// The rules have changed while the statement waited: it is looked at again under the new ones.
    pub fn handle_judge_again(&mut self, ask: Ask) {
        if self.take_asking(ask).is_some() {
            self.phase = Phase::Idle;
        }
    }

    fn take_asking(&mut self, ask: Ask) -> Option<Asking> {
        // Used up.
        drop(ask);
        match std::mem::replace(&mut self.phase, OUT_OF_TURN) {
            Phase::Asking(asking) => Some(asking),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => None,
        }
    }

    /// The rules have changed. Only while [`Session::is_idle`] or waiting to be judged again.
    pub fn handle_new_policy(&mut self) {
        match self.phase {
            Phase::Idle | Phase::Asking(_) => self.judge.bench.who.renew(),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => self.phase = OUT_OF_TURN,
        }
    }

    /// What the server says of itself is something else now. As [`Session::handle_new_policy`], and
    /// also during a login.
    pub fn handle_new_facts(&mut self) {
        match self.phase {
            Phase::Greeting | Phase::Login(_) | Phase::LoggedIn => {}
            Phase::Idle
            | Phase::Asking(_)
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => self.handle_new_policy(),
        }
    }

    /// The TLS handshake with this side is done: what comes now came through it.
    pub fn handle_encrypted(&mut self, side: Side) {
        let login = self.take_login();
        let legs = &mut self.negotiated.legs;
        let login = login.and_then(|login| login.handle_encrypted(side, legs));
        self.put_login(login);
    }

    /// The TLS handshake with the server has failed. `why` is for the client.
    pub fn handle_not_encrypted(&mut self, why: String) {
        let login = self.take_login();
        self.put_login(login.and_then(|login| login.handle_not_encrypted(why)));
    }

    /// Sluice's public key, for [`crate::Crypt::ShowKey`].
    pub fn handle_own_key(&mut self, pem: &[u8]) {
        self.in_login(|login| login.handle_own_key(pem));
    }

    /// The encrypted password, for [`crate::Crypt::Seal`]; none when it cannot be encrypted.
    pub fn handle_sealed(&mut self, sealed: Option<Vec<u8>>) {
        self.in_login(|login| login.handle_sealed(sealed));
    }

    /// The decrypted password, still masked, for [`crate::Crypt::Open`]; none when it cannot be
    /// decrypted.
    pub fn handle_opened(&mut self, masked: Option<Password>) {
        self.in_login(|login| login.handle_opened(masked));
    }

    fn in_login(&mut self, answer: impl FnOnce(&mut Login) -> Result<(), OutOfTurn>) {
        let login = self.take_login();
        self.put_login(login.and_then(|mut login| answer(&mut login).map(|()| login)));
    }

    fn take_login(&mut self) -> Result<Login, OutOfTurn> {
        match std::mem::replace(&mut self.phase, OUT_OF_TURN) {
            Phase::Login(login) => Ok(login),
            Phase::Greeting
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Asking(_)
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => Err(OutOfTurn),
        }
    }

    fn put_login(&mut self, login: Result<Login, OutOfTurn>) {
        self.phase = match login {
            Ok(login) => Phase::Login(login),
            Err(OutOfTurn) => OUT_OF_TURN,
        };
    }

    /// The session has to leave: makes the client's last answer, with the sequence id its state
    /// wants, into the outbox. False when no answer would be understood now (in the middle of a
    /// result, or of a TLS handshake).
    pub fn handle_told_to_leave(&mut self, client: &[u8], answer: &Answer) -> bool {
        let sequence = match &self.phase {
            // Nothing is under way: an answer to a command that may already have been sent.
            Phase::Idle | Phase::LoggedIn => Some(FIRST_SEQUENCE),
            Phase::Asking(_) | Phase::Sending(_) => {
                Some(FrameHeader::parse(client).map_or(1, |header| header.sequence.wrapping_add(1)))
            }
            Phase::Forwarding(forwarding) if !forwarding.answer_begun() => {
                Some(forwarding.answer_sequence())
            }
            Phase::Greeting => {
                self.out.put_first_err(answer);
                self.phase = Phase::Closing(CloseReason::Told);
                return true;
            }
            Phase::Login(login) => login.next_for_client(self.negotiated.legs, client),
            Phase::Forwarding(_) | Phase::Refusing(_) => None,
            Phase::Closing(_) | Phase::Closed => return false,
        };
        match sequence {
            Some(sequence) => {
                self.out.put_err(sequence, answer);
                self.phase = Phase::Closing(CloseReason::Told);
            }
            None => self.phase = Phase::Closed,
        }
        sequence.is_some()
    }
}

/// What the shell may know.
impl Session {
    /// Bytes the session made itself, for [`Move::Replace`].
    pub fn outbox(&self) -> &[u8] {
        self.out.bytes()
    }

    /// Whether nothing is under way, so that the policy may change.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// The statement that was sent on and whose response has not ended. It is counted by
    /// [`Action::Finished`], or by the shell when the connection ends before that.
    pub fn under_way(&self) -> Option<StatementOutcome> {
        self.forwarding().and_then(Forwarding::statement)
    }

    /// Whether the client's next packets are a file that the server has asked for.
    pub fn awaits_file(&self) -> bool {
        self.forwarding().is_some_and(Forwarding::awaits_file)
    }

    /// While a stream of the binary log's events goes to the client: the number that this server's
    /// replicas await of the compressed packet behind an event which they have to acknowledge.
    pub fn streams_events(&self) -> Option<u8> {
        let forwarding = self.forwarding()?;
        let number = match self.server.mode.server {
            Server::MySql { .. } | Server::Unknown => 0,
            Server::MariaDb { .. } => 1,
        };
        forwarding.streams_events().then_some(number)
    }

    fn forwarding(&self) -> Option<&Forwarding> {
        match &self.phase {
            Phase::Forwarding(forwarding) => Some(forwarding),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Asking(_)
            | Phase::Sending(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => None,
        }
    }

    /// Whether the server is to answer what Sluice itself has asked it during a login.
    pub fn awaits_key(&self) -> bool {
        matches!(&self.phase, Phase::Login(login) if login.awaits_key())
    }

    /// Whether the server has greeted. It may say an error in place of its greeting.
    pub fn is_greeted(&self) -> bool {
        self.negotiated.connection_id != 0
    }

    /// What this leg is compressed with from the login's end on.
    pub fn compression(&self, side: Side) -> Option<Compression> {
        match side {
            Side::Client => self.negotiated.compressions.client,
            Side::Backend => self.negotiated.compressions.backend,
        }
    }

    /// Whether a transaction is open, by the server's flags.
    pub fn in_transaction(&self) -> bool {
        self.server.transaction.is_open()
    }

    /// The backend's id of this connection.
    pub fn connection_id(&self) -> u32 {
        self.negotiated.connection_id
    }

    /// The app of the statement under way, or of the last one.
    pub fn app(&self) -> &[u8] {
        self.judge.bench.who.app()
    }

    /// The MySQL user.
    pub fn user(&self) -> &[u8] {
        self.judge.bench.who.identity().user()
    }

    /// What the server offers and Sluice does not relay.
    pub fn masked_capabilities(&self) -> Capabilities {
        let server = self.negotiated.server_capabilities;
        server.without(server.followable() | OF_EACH_LEG)
    }

    /// Gives back buffers that a large statement has grown.
    pub fn shrink(&mut self) {
        self.judge.shrink();
        self.out.shrink();
    }
}

/// Where a call that is not waited for leads.
const OUT_OF_TURN: Phase = Phase::Closing(CloseReason::OutOfTurn);

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
