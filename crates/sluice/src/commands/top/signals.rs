//! Signals that end the process, told to whoever gives the terminal back first.

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::Sender;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::feed::Came;

/// Those that are taken from now on.
#[derive(Debug)]
pub(super) struct Signals {
    runtime: Runtime,
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let hangup = signal(SignalKind::hangup())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(entered);
        Ok(Self { runtime, hangup, interrupt, terminate })
    }

    /// Tells the first. A second one ends the process at once: a terminal that takes nothing any
    /// more cannot be given back.
    pub(super) fn tell(mut self, told: &Sender<Came>) {
        drop(told.send(Came::Signal(self.next())));
        std::process::exit(i32::from(STATUS_BASE.saturating_add(self.next())));
    }

    /// The next one's number.
    fn next(&mut self) -> u8 {
        let Self { runtime, hangup, interrupt, terminate } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => SIGHUP,
                _ = interrupt.recv() => SIGINT,
                _ = terminate.recv() => SIGTERM,
            }
        })
    }
}

/// The exit status of a process that a signal has ended, as shells tell it.
pub(super) fn status(signal: u8) -> ExitCode {
    ExitCode::from(STATUS_BASE.saturating_add(signal))
}

/// Shells add it to a signal's number.
const STATUS_BASE: u8 = 128;

const SIGHUP: u8 = 1;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;
