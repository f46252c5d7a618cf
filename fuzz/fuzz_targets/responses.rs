//! Responses, any and written, at every cut.
#![no_main]

#[path = "../../crates/wire/tests/replay/responses.rs"]
mod responses;

libfuzzer_sys::fuzz_target!(|data: &[u8]| responses::check(data));
