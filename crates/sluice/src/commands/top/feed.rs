//! What comes to the screen: looks at Sluice, what became of changes, and keys. Each comes from a
//! thread of its own, so that a Sluice that does not answer does not hold up the keys.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use admin::status::Status;
use ratatui::crossterm::event::{self, Event};

use super::change::Change;
use super::signals::Signals;
use crate::cli::{Asked, Token};
use crate::commands::http::Door;
use crate::commands::rules;
use crate::commands::status::look;

/// Something that came.
pub(super) enum Came {
    Looked(Result<Status, String>),
    /// A change was made, or refused; in words.
    Done(String),
    Terminal(Event),
    /// This signal is to end the process.
    Signal(u8),
    /// There will be no more keys.
    TerminalGone,
}

/// Whom to ask.
pub(super) struct Source {
    pub(super) door: Door,
    pub(super) asked: Asked,
    pub(super) token: Token,
    pub(super) every: Duration,
}

/// Starts looking and listening. What is sent is made, and looked at at once.
pub(super) fn start(source: Source, signals: Signals) -> (Sender<Change>, Receiver<Came>) {
    let (changes, made) = channel();
    let (told, came) = channel();
    let (keys, ends) = (told.clone(), told.clone());
    // They end with the process: one sleeps or asks, the others wait for a key and a signal.
    drop(thread::spawn(move || source.ask(&made, &told)));
    drop(thread::spawn(move || listen(&keys)));
    drop(thread::spawn(move || signals.tell(&ends)));
    (changes, came)
}

impl Source {
    fn ask(&self, changes: &Receiver<Change>, told: &Sender<Came>) {
        loop {
            let began = Instant::now();
            let answer = look(&self.door, 0).map(|(_, status)| status);
            if told.send(Came::Looked(answer)).is_err() {
                return;
            }
            match changes.recv_timeout(self.every.saturating_sub(began.elapsed())) {
                Ok(change) => {
                    let (method, path, body) = change.request();
                    let done = rules::made(&self.asked, &self.token, (method, &path, &body));
                    let done = done.unwrap_or_else(|failure| failure.message);
                    if told.send(Came::Done(done)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

fn listen(told: &Sender<Came>) {
    while let Ok(event) = event::read() {
        if told.send(Came::Terminal(event)).is_err() {
            return;
        }
    }
    drop(told.send(Came::TerminalGone));
}
