//! Compressed legs.
#![no_main]

#[path = "../../crates/wire/tests/replay/compression.rs"]
mod compression;

libfuzzer_sys::fuzz_target!(|data: &[u8]| compression::check(data));
