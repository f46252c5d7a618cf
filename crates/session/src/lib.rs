//! One client connection as a state machine: bytes and decisions in, actions and events out.
//!
//! No sockets, no clock, no lock. The shell owns one buffer for each side and calls
//! [`Session::next`] with what is in them; the answer is one [`Action`]: move so many bytes, read
//! more, ask whether a statement may run. The shell does it and calls again. Row data is never
//! copied through here: the session sees frame heads and answers "forward n bytes".
//!
//! # A statement's way
//!
//! Each name is a file of `src/`. Left are the phases, each a type that owns what is valid in it;
//! right what they borrow, each owner with a file of its own.
//!
//! ```text
//!  phase/greeting ─▶ phase/login ─▶ logged in                   borrows
//!                     ▲                 │                       ───────────────────────────────
//!                     │ COM_CHANGE_USER ▼                       negotiated  capabilities, legs,
//!                     └───────────── phase/idle ◀────────────┐              nonce, id
//!                                       │ a command          │  judge       who asks, what the
//!                                       │                    │              rules say; judge/memo
//!                          plan: a statement ─ policy::decide│  server      what is known of the
//!                                       │                    │              server's side:
//!                  nothing holds it ┌───┴────┐ a rule does   │              server/transaction,
//!                                   │        ▼               │              server/prepared
//!                                   │  phase/asking          │  tracker     where a response ends
//!                                   │   │ admitted │ refused │              (wire)
//!                                   ▼   ▼          ▼         │  outbox      bytes of Sluice's own
//!                          phase/forwarding   phase/refusing │
//!                          (phase/execution   drop, repair,  │
//!                          repairs first)     one ERR        │
//!                                   │              │         │
//!                            consequences          │         │
//!                                   └──────┬───────┘         │
//!                                       outcome ─────────────┘
//! ```
//!
//! `session` is the dispatch: it alone knows all phases; `session/answered` is what the shell
//! answers, `session/shown` what it may know. The words they share are `action`, `answer`,
//! `command`, `compression`, `consequences`, `cut_over`, `denial`, `facts` (what the primary says of itself),
//! `leg` and `outcome`, which import no phase.
//!
//! Commands are taken in lock-step: one logical command is decided, forwarded and answered before
//! the next one is looked at, also when the client has sent several at once. That costs a
//! pipelining client a round trip on the backend's side and keeps every invariant simple: what a
//! packet means never depends on responses that are still under way.
//!
//! A call that the phase does not wait for is a fault of the shell's and ends the connection
//! ([`CloseReason::OutOfTurn`]): nothing is passed over.

#![deny(clippy::arithmetic_side_effects)]

mod action;
mod answer;
mod command;
mod compression;
mod consequences;
mod cut_over;
mod denial;
mod facts;
mod judge;
mod leg;
mod negotiated;
mod outbox;
mod outcome;
mod phase;
mod plan;
mod server;
mod session;

pub use action::{
    Action, Ask, ByGuards, CloseReason, Crypt, Input, Move, Question, Reads, Sealing, Side,
};
pub use answer::Answer;
pub use compression::Compression;
pub use cut_over::{CutOver, MigrationWork};
pub use denial::Denial;
pub use facts::ServerFacts;
pub use judge::known::KnownTexts;
pub use judge::subject::{About, News};
pub use leg::{Leg, Password};
pub use negotiated::ClientInfo;
pub use outcome::{CursorUse, Finished, StatementOutcome};
pub use session::Session;
pub use session::guarded::GuardedText;
