//! The tools that people run on databases, as they are, through Sluice with the rules that the
//! repository ships: on a table of 100,000 rows with writers on it, and with the gate shut for a
//! while in mid-run. They finish, what they have made is right, each was known as itself, and
//! nothing of it was refused.
//!
//! `scripts/install-tools` brings them; docs/TOOLS.md says what each can bear.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

mod doors;
mod dumps;
mod ghost;
mod lab;
mod percona;
