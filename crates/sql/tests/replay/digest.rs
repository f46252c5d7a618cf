//! Digests: no value, no comment, and the same text for the same statement.

use sql::digest;
use testkit::Input;

use crate::dress::escape;
use crate::mode::mode;

/// Normalises any text, and any value in a text.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let mode = mode(&mut input);
    let text = input.rest();
    let (mut out, mut again) = (b"of the statement before".to_vec(), Vec::new());
    let hash = digest(text, mode, &mut out);
    assert_eq!(digest(text, mode, &mut again), hash);
    assert_eq!(again, out);
    assert!(out.len() <= 3 * text.len() + 8, "{} of {}", out.len(), text.len());
    // White space and a comment in front are not the statement's.
    let dressed = [b" /* app=x */\n\t", text].concat();
    assert_eq!(digest(&dressed, mode, &mut again), hash, "{}", again.escape_ascii());
    let literal = escape(text, b'\'', mode);
    digest(&[b"SELECT a FROM t WHERE b = ", &literal[..]].concat(), mode, &mut out);
    assert_eq!(out, b"SELECT a FROM t WHERE b = ?");
    let list = [b"SELECT a FROM t WHERE b IN (1, ", &literal[..], b", NULL)"].concat();
    digest(&list, mode, &mut out);
    assert_eq!(out, b"SELECT a FROM t WHERE b IN (...)");
}
