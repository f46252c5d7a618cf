//! Packets of the connection phase, read and patched.
#![no_main]

#[path = "../../crates/wire/tests/replay/handshake.rs"]
mod handshake;

libfuzzer_sys::fuzz_target!(|data: &[u8]| handshake::check(data));
