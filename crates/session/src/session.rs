//! The session itself: its state, and the dispatch to the phase it is in.

use std::net::IpAddr;

use policy::ShapeScratch;
use policy::identity::{IdentityScratch, SessionIdentity};
use sql::{Charset, LexMode, Scratch, Server, Tool};
use wire::capability::Capabilities;
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::packet::{encode_err, encode_err_no_sqlstate};
use wire::response_tracker::ResponseTracker;

use crate::action::{Action, CloseReason, Input};
use crate::command::Asking;
use crate::forwarding::Forwarding;
use crate::judge::Memo;
use crate::login::{Compressions, Leg, Legs, Login, OF_EACH_LEG, PendingUser};
use crate::outcome::StatementOutcome;
use crate::prepared::Prepared;
use crate::refusal::{Answer, Refusing};
use crate::transaction::Transaction;

/// What the shell knows of a client before it has said anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientInfo {
    /// Its address; none for a Unix socket.
    pub address: Option<IpAddr>,
    /// What it came by.
    pub leg: Leg,
}

/// One client connection. The crate's documentation draws its phases.
#[derive(Debug)]
pub struct Session {
    pub(crate) phase: Phase,
    pub(crate) client: ClientInfo,
    /// What either leg runs over by now.
    pub(crate) legs: Legs,
    /// What either leg is compressed with when the login is over.
    pub(crate) compressions: Compressions,
    /// The nonce of the last authentication.
    pub(crate) nonce: Vec<u8>,
    pub(crate) connection_id: u32,
    /// What the server said it can; what it cannot is never read from the client's packets.
    pub(crate) server_capabilities: Capabilities,
    /// What both ends agreed on.
    pub(crate) capabilities: Capabilities,
    pub(crate) mode: LexMode,
    /// What the client's login chose; a reset goes back to it, and the server does not say so.
    pub(crate) login_charset: Charset,
    pub(crate) tracker: ResponseTracker,
    pub(crate) transaction: Transaction,
    pub(crate) prepared: Prepared,
    pub(crate) identity: SessionIdentity,
    pub(crate) pending_user: Option<PendingUser>,
    /// Counts whatever changes who the session is or which rules hold; a memo of another is void.
    pub(crate) generation: u64,
    pub(crate) memo: Memo,
    /// The app of the statement under way, or of the last one.
    pub(crate) app: Vec<u8>,
    /// The tool that the statement under way names and may name.
    pub(crate) tool_seen: Option<Tool>,
    pub(crate) claims_refused: u32,
    pub(crate) outbox: Vec<u8>,
    pub(crate) scratch: Scratch,
    pub(crate) identity_scratch: IdentityScratch,
    /// What the text under way is about, as far as anybody has asked.
    pub(crate) shape: ShapeScratch,
}

/// Where the session stands; each variant owns what is valid in it.
#[derive(Debug)]
pub(crate) enum Phase {
    Greeting,
    Login(Login),
    Idle,
    Asking(Asking),
    Admitted(Asking),
    Forwarding(Forwarding),
    Refusing(Refusing),
    /// The last answer has been handed over; nothing more is relayed.
    Closing(CloseReason),
    Closed,
}

impl Session {
    /// A session whose backend connection has just been made, over `backend`.
    pub fn new(client: ClientInfo, backend: Leg) -> Self {
        let capabilities = Capabilities::default();
        Self {
            phase: Phase::Greeting,
            client,
            legs: Legs { client: client.leg, backend },
            compressions: Compressions::default(),
            nonce: Vec::new(),
            connection_id: 0,
            server_capabilities: capabilities,
            capabilities,
            mode: LexMode::default(),
            login_charset: Charset::default(),
            tracker: ResponseTracker::new(capabilities),
            transaction: Transaction::default(),
            prepared: Prepared::default(),
            identity: SessionIdentity::default(),
            pending_user: None,
            generation: 0,
            memo: Memo::default(),
            app: Vec::new(),
            tool_seen: None,
            claims_refused: 0,
            outbox: Vec::new(),
            scratch: Scratch::default(),
            identity_scratch: IdentityScratch::default(),
            shape: ShapeScratch::default(),
        }
    }

    /// What to do next. Whatever it says is done by the shell before it calls again.
    pub fn next(&mut self, input: &Input<'_>) -> Action {
        if let Phase::Forwarding(forwarding) = &mut self.phase
            && let Some(action) = forwarding.advance(&mut self.tracker, input)
        {
            if let Action::Close(_) = action {
                self.phase = Phase::Closed;
            }
            return action;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        let (phase, action) = match phase {
            Phase::Idle => self.next_idle(input),
            Phase::Forwarding(forwarding) => self.finish_forwarding(forwarding),
            Phase::Asking(asking) => {
                let action = asking.action();
                (Phase::Asking(asking), action)
            }
            Phase::Admitted(asking) => {
                let (running, execution) = asking.into_parts();
                self.send_statement(running, execution, input)
            }
            Phase::Refusing(refusing) => self.next_refusing(refusing, input),
            Phase::Greeting => self.next_greeting(input),
            Phase::Login(login) => self.next_login(login, input),
            Phase::Closing(reason) => close(reason),
            Phase::Closed => close(CloseReason::Told),
        };
        self.phase = phase;
        action
    }

    /// The statement that was asked for may run.
    pub fn handle_admitted(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        self.phase = match phase {
            Phase::Asking(asking) => Phase::Admitted(asking),
            other => other,
        };
    }

    /// The statement that was asked for may not run: `answer` is what the client is told.
    pub fn handle_refused(&mut self, answer: Answer) {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed);
        self.phase = match phase {
            Phase::Asking(asking) => Phase::Refusing(self.refuse(asking, answer)),
            other => other,
        };
    }

    /// The rules have changed while the statement waited: it is looked at again under the new ones.
    pub fn handle_judge_again(&mut self) {
        if matches!(self.phase, Phase::Asking(_)) {
            self.phase = Phase::Idle;
        }
    }

    /// The rules have changed. Only while [`Session::is_idle`] or waiting to be judged again.
    pub fn handle_new_policy(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The session has to leave: makes the client's last answer, with the sequence id its state wants, into
    /// the outbox. False when no answer would be understood now (in the middle of a result, or of a TLS handshake).
    pub fn handle_told_to_leave(&mut self, client: &[u8], answer: &Answer) -> bool {
        let sequence = match &self.phase {
            // Nothing is under way: an answer to a command that may already have been sent.
            Phase::Idle => Some(1),
            Phase::Asking(_) | Phase::Admitted(_) => {
                Some(FrameHeader::parse(client).map_or(1, |header| header.sequence.wrapping_add(1)))
            }
            Phase::Forwarding(forwarding) if !forwarding.answer_begun() => {
                Some(forwarding.answer_sequence())
            }
            Phase::Greeting => Some(0),
            Phase::Login(login) => self.next_for_client(login, client),
            Phase::Forwarding(_) | Phase::Refusing(_) => None,
            Phase::Closing(_) | Phase::Closed => return false,
        };
        let is_greeting = matches!(self.phase, Phase::Greeting);
        let Some(sequence) = sequence else {
            self.phase = Phase::Closed;
            return false;
        };
        self.phase = Phase::Closing(CloseReason::Told);
        self.wipe_outbox();
        let Answer { errno, sqlstate, message } = answer;
        if is_greeting {
            // In the form that a server's own first packet has.
            encode_err_no_sqlstate(&mut self.outbox, sequence, *errno, message);
        } else {
            encode_err(&mut self.outbox, sequence, *errno, sqlstate, message);
        }
        true
    }

    /// Bytes the session made itself, for [`Action::Replace`].
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// Whether nothing is under way, so that the policy may change.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// The statement that was sent on and whose answer has not ended. It is counted by [`Action::Finished`], or
    /// by the shell when the connection ends before that.
    pub fn under_way(&self) -> Option<StatementOutcome> {
        match &self.phase {
            Phase::Forwarding(forwarding) => forwarding.statement(),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::Idle
            | Phase::Asking(_)
            | Phase::Admitted(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => None,
        }
    }

    /// Whether the client's next packets are a file that the server has asked for.
    pub fn awaits_file(&self) -> bool {
        matches!(&self.phase, Phase::Forwarding(forwarding) if forwarding.awaits_file())
    }

    /// While a stream of the binary log's events goes to the client: the number that this server's replicas await of
    /// the compressed packet behind an event which they have to acknowledge.
    pub fn streams_events(&self) -> Option<u8> {
        let Phase::Forwarding(forwarding) = &self.phase else { return None };
        let number = match self.mode.server {
            Server::MySql { .. } | Server::Unknown => 0,
            Server::MariaDb { .. } => 1,
        };
        forwarding.streams_events().then_some(number)
    }

    /// Whether the server has greeted. It may say an error in place of its greeting. Connection ids count
    /// from one.
    pub fn is_greeted(&self) -> bool {
        self.connection_id != 0
    }

    /// Whether a transaction is open, by the server's flags.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// The backend's id of this connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The app of the statement under way, or of the last one.
    pub fn app(&self) -> &[u8] {
        &self.app
    }

    /// The MySQL user.
    pub fn user(&self) -> &[u8] {
        self.identity.user()
    }

    /// What the server offers and Sluice does not relay.
    pub fn masked_capabilities(&self) -> Capabilities {
        self.server_capabilities.without(self.server_capabilities.followable() | OF_EACH_LEG)
    }

    /// Gives back buffers that a large statement has grown.
    pub fn shrink(&mut self) {
        self.scratch.shrink();
        self.identity_scratch.shrink();
        self.shape.shrink();
        if self.outbox.capacity() > OUTBOX_KEPT_LEN {
            self.outbox = Vec::new();
        }
    }
}

/// The outbox carries greetings and errors; a spliced EXECUTE can make it large, and that is given back.
const OUTBOX_KEPT_LEN: usize = 1024;

pub(crate) fn close(reason: CloseReason) -> (Phase, Action) {
    (Phase::Closed, Action::Close(reason))
}

/// The length of a frame with its header.
pub(crate) fn frame_len(header: FrameHeader) -> usize {
    header.payload_len.saturating_add(HEADER_LEN)
}
