//! What the operator may send.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP, from the very beginning: it would end the process by default, and with a status that
/// `Restart=on-failure` of systemd takes for a clean one.
#[derive(Debug)]
pub(super) struct Hangups(Signal);

/// All of them. Until these are taken SIGTERM and SIGINT end the process on the spot, whatever it
/// waits for.
pub(super) struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Reload,
    End,
}

impl Hangups {
    pub(super) fn take(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        signal(SignalKind::hangup()).map(Self)
    }
}

impl Signals {
    pub(super) fn new(hangups: Hangups) -> io::Result<Self> {
        Ok(Self {
            hangup: hangups.0,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.hangup.recv() => Told::Reload,
            _ = self.interrupt.recv() => Told::End,
            _ = self.terminate.recv() => Told::End,
        }
    }
}
