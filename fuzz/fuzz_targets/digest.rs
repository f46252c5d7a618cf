//! Normalised texts.
#![no_main]

#[path = "../../crates/sql/tests/replay/digest.rs"]
mod digest;
#[allow(dead_code, reason = "each target needs some of it")]
#[path = "../../crates/sql/tests/replay/dress.rs"]
mod dress;
#[path = "../../crates/sql/tests/replay/mode.rs"]
mod mode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| digest::check(data));
