//! What tests of several crates share: byte streams cut in every way a network can cut them, the
//! inputs and corpora of the fuzz targets, and the test of the layering (`tests/layering.rs`).

mod corpus;
mod cuts;
mod input;

pub use corpus::replay;
pub use cuts::{Cut, cuts};
pub use input::Input;
