//! Commands, any and written.
#![no_main]

#[path = "../../crates/wire/tests/replay/commands.rs"]
mod commands;

libfuzzer_sys::fuzz_target!(|data: &[u8]| commands::check(data));
