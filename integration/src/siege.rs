//! Attacks on what Sluice promises: that a statement which a rule denies is never run.
//!
//! A [`Target`] is a server with a Sluice in front of it and nobody else around. A [`grammar`] makes
//! [`Sequence`]s of bytes from a seed; a [`player`] sends one as a client whose writes are denied; and
//! the server itself says whether anything has moved ([`oracle`]): its executed GTIDs, its tables, and
//! what kinds of statements it has run. Nothing here asks Sluice, and nothing reads Sluice's code.
//!
//! What has moved something is played again on restored tables and made as short as still does it
//! ([`minimise`]); its lines are what a regression is kept as.

pub mod grammar;
pub mod login;
pub mod minimise;
pub mod mutation;
pub mod oracle;
pub mod player;
pub mod reads;
pub mod schema;
pub mod sequence;
pub mod suite;
pub mod target;
pub mod worker;

pub use oracle::Moved;
pub use sequence::{Act, Entry, Sequence, Step};
pub use target::Target;
pub use worker::{Finding, Report, Siege};
