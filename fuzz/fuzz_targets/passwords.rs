//! Passwords between legs that are safe and legs that are not.
#![no_main]

#[allow(dead_code, reason = "the crate's own tests need more of it")]
#[path = "../../crates/session/tests/session/driver.rs"]
mod driver;
#[allow(dead_code, reason = "the crate's own tests need more of it")]
#[path = "../../crates/session/tests/session/passwords.rs"]
mod passwords;

libfuzzer_sys::fuzz_target!(|data: &[u8]| passwords::check(data));
