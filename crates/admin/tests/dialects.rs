//! The cooperative door over a socket, in the languages of Vitess' tablet throttler and of freno.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

#[path = "dialects/clients.rs"]
mod clients;
#[path = "dialects/door.rs"]
mod door;
#[path = "dialects/freno.rs"]
mod freno;
#[path = "dialects/hostile.rs"]
mod hostile;
#[path = "dialects/vitess.rs"]
mod vitess;
