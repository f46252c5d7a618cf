//! Tags in comments, and nowhere else.
#![no_main]

#[path = "../../crates/sql/tests/replay/comments.rs"]
mod comments;
#[allow(dead_code, reason = "each target needs some of it")]
#[path = "../../crates/sql/tests/replay/dress.rs"]
mod dress;
#[path = "../../crates/sql/tests/replay/mode.rs"]
mod mode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| comments::check(data));
