//! A session between two peers that say anything.
#![no_main]

#[allow(dead_code, reason = "the crate's own tests need more of it")]
#[path = "../../crates/session/tests/session/driver.rs"]
mod driver;
#[path = "../../crates/session/tests/session/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::check(data));
