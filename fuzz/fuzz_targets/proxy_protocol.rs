//! Headers of the PROXY protocol.
#![no_main]

#[path = "../../crates/wire/tests/replay/proxy_protocol.rs"]
mod proxy_protocol;

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxy_protocol::check(data));
