//! What tests of several crates share: byte streams cut in every way a network can cut them, and the test
//! of the layering (`tests/layering.rs`).

mod cuts;

pub use cuts::{Cut, cuts};
