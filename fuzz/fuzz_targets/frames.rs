//! Frames against a reader that has all bytes at once.
#![no_main]

#[path = "../../crates/wire/tests/replay/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::check(data));
