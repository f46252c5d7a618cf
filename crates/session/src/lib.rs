//! One client connection as a state machine: bytes and decisions in, actions and events out.
//!
//! No sockets, no clock, no lock. The shell owns one buffer for each side and calls [`Session::next`] with
//! what is in them; the answer is one [`Action`]: forward so many bytes, read more, ask whether a
//! statement may run, hand over bytes the session made itself. The shell does it and calls again. Row data
//! is never copied through here: the session sees frame heads and answers "forward n bytes".
//!
//! ```text
//!  Greeting ─▶ Login ─▶ Idle ◀──────────────────────────────────────────────┐
//!                        │ command                                          │
//!                        ├──────────────▶ Forwarding (command, answer) ─────┤
//!                        │ admission point     ▲ admitted                   │
//!                        ├──▶ Asking ──────────┤                            │
//!                        │       │ refused     │ judge again: back to Idle  │
//!                        │       ▼                                          │
//!                        ├──▶ Refusing (repair, discard, ERR) ──────────────┤
//!                        ├──▶ Login (COM_CHANGE_USER) ──────────────────────┘
//!                        └──▶ Closed
//! ```
//!
//! Commands are taken in lock-step: one logical command is decided, forwarded and answered before the next
//! one is looked at, also when the client has sent several at once. That costs a pipelining client a round
//! trip on the backend's side and keeps every invariant simple: what a packet means never depends on
//! answers that are still under way.

#![deny(clippy::arithmetic_side_effects)]

mod action;
mod command;
mod forwarding;
mod judge;
mod login;
mod outcome;
mod prepared;
mod refusal;
mod session;
mod transaction;

pub use action::{Action, Ask, CloseReason, Crypt, Input, Reads, Sealing, Side};
pub use login::{Compression, Denial, Leg, Password};
pub use outcome::{Finished, StatementOutcome};
pub use refusal::Answer;
pub use session::{ClientInfo, Session};
