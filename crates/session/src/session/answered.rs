//! What the shell answers when it has been asked.

use wire::frame::FrameHeader;

use super::{Phase, Session};
use crate::action::{Ask, ByGuards, CloseReason, Side};
use crate::answer::Answer;
use crate::leg::Password;
use crate::phase::asking::Asking;
use crate::phase::clearing::Clearing;
use crate::phase::guarding::Behind;
use crate::phase::login::{FIRST_SEQUENCE, Login, OutOfTurn};
use crate::phase::refusing::Refusing;
use crate::server::transaction::Admitted;

/// The shell's answers. One that is not waited for ends the connection: [`CloseReason::OutOfTurn`].
impl Session {
    /// The statement that was asked for may run.
    pub fn handle_admitted(&mut self, ask: Ask) {
        if let Some(asking) = self.take_asking(ask) {
            self.phase = Phase::Sending(asking.into_sending());
        }
    }

    /// The statement that was asked for may run, for what another session holds: nobody was asked
    /// for it, and nothing behind it in its transaction passes for its sake.
    pub fn handle_passed(&mut self, ask: Ask) {
        if let Some(asking) = self.take_asking(ask) {
            let mut sending = asking.into_sending();
            sending.running.admits = Admitted::No;
            self.phase = Phase::Sending(sending);
        }
    }

    /// The statement that was asked for may not run: `answer` is what the client is told.
    pub fn handle_refused(&mut self, ask: Ask, answer: Answer) {
        if let Some(asking) = self.take_asking(ask) {
            self.phase = Phase::Refusing(Refusing::statement(asking.into_sending(), answer));
        }
    }

    /// What guards say of the command has been counted: it passes them, or `answer` is what the
    /// client is told.
    pub fn handle_guarded(&mut self, by_guards: ByGuards, answer: Option<Answer>) {
        // Used up.
        drop(by_guards);
        let guarding = match std::mem::replace(&mut self.phase, OUT_OF_TURN) {
            Phase::Guarding(guarding) => guarding,
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Clearing(_)
            | Phase::Planned(_)
            | Phase::Asking(_)
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => return,
        };
        self.phase = match answer {
            Some(answer) => Phase::Refusing(guarding.refuse(answer, &mut self.server.prepared)),
            None => match guarding.into_behind() {
                Behind::Statement(plan) => Phase::Planned(plan),
                Behind::Command(sending) => Phase::Sending(sending),
            },
        };
    }

    /// The rules have changed while the statement waited: it is looked at again under the new ones.
    pub fn handle_judge_again(&mut self, ask: Ask) {
        if self.take_asking(ask).is_some() {
            self.phase = Phase::Idle;
        }
    }

    /// A KILL QUERY for the statement that has just ended may still stand at the server. Only while
    /// [`Session::is_idle`]: it is cleared away ahead of the next command.
    pub fn handle_stale_kill(&mut self) {
        self.phase = match self.phase {
            Phase::Idle => Phase::Clearing(Clearing::Asks),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
            | Phase::Asking(_)
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => OUT_OF_TURN,
        };
    }

    /// More has been fetched from the cursor of this prepared statement than may be: whoever fetches
    /// on is told `answer`, until the statement is executed again, reset or closed. The server is not
    /// asked, for neither ends a COM_STMT_FETCH by a KILL.
    pub fn handle_cursor_ended(&mut self, statement_id: u32, answer: Answer) {
        if let Some(statement) = self.server.prepared.get_mut(statement_id) {
            statement.ended_cursor = Some(Box::new(answer));
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
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
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
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
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
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
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
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
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
            Phase::Guarding(_) | Phase::Planned(_) | Phase::Asking(_) | Phase::Sending(_) => {
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
            Phase::Clearing(_) | Phase::Forwarding(_) | Phase::Refusing(_) => None,
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

/// Where a call that is not waited for leads.
const OUT_OF_TURN: Phase = Phase::Closing(CloseReason::OutOfTurn);
