//! Classes: never read for what writes.
#![no_main]

#[allow(dead_code, reason = "each target needs some of it")]
#[path = "../../crates/sql/tests/replay/dress.rs"]
mod dress;
#[path = "../../crates/sql/tests/replay/lexer.rs"]
mod lexer;
#[path = "../../crates/sql/tests/replay/mode.rs"]
mod mode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| lexer::check(data));
