//! Tags: what may be one, and where none can stand.

use sql::{Class, Scratch, Setting, Statement, Whole, describe};
use testkit::Input;

use crate::dress::{escape, whole};
use crate::mode::mode;

/// Reads the tags of any text, of values that look like comments, and of comments that were written.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, mode) = (input.u8(), mode(&mut input));
    let value = input.rest();
    let mut scratch = Scratch::default();
    let statement = describe(value, mode, Whole::Yes, &mut scratch);
    let found = tags(&statement);
    assert!(found.len() <= 64);
    for (key, value) in &found {
        assert!((1..=255).contains(&key.len()) && (1..=255).contains(&value.len()));
        assert!(key.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte)));
        assert!(!value.iter().any(u8::is_ascii_control));
    }
    // A scratch that has read something else gives the same, and so does one that has read the same.
    for again in ["SELECT 1 /* app=other */", ""] {
        if !again.is_empty() {
            let other = describe(again.as_bytes(), mode, Whole::Yes, &mut scratch);
            assert_eq!(tags(&other), [pair(b"app", b"other")]);
        }
        assert_eq!(tags(&describe(value, mode, Whole::Yes, &mut scratch)), found);
    }
    let quote = if kind & 1 != 0 && mode.ansi_quotes == Setting::Off { b'"' } else { b'\'' };
    let name = sql::LexMode { no_backslash_escapes: Setting::On, ..mode };
    let texts = [
        [b"SELECT ", &escape(value, quote, mode)[..], b" /* app=real */"].concat(),
        [b"/*app='real'*/ SELECT a AS ", &escape(&whole(value, mode.charset), b'`', name)[..]]
            .concat(),
    ];
    for text in texts {
        let statement = describe(&text, mode, Whole::Yes, &mut scratch);
        assert_eq!(tags(&statement), [pair(b"app", b"real")], "{}", text.escape_ascii());
        assert_eq!((statement.class, statement.statement_count), (Class::Read, 1));
        assert_eq!(statement.exemption, None);
    }
    written(value);
}

/// What sqlcommenter writes is read as it was, whatever the value.
fn written(value: &[u8]) {
    let good = (1..=255).contains(&value.len()) && !value.iter().any(u8::is_ascii_control);
    let encoded: String = value.iter().map(|byte| format!("%{byte:02X}")).collect();
    let text = format!("SELECT 1 /*app='{encoded}',x='1'*/");
    let mut scratch = Scratch::default();
    let mode = sql::LexMode::default();
    let found = tags(&describe(text.as_bytes(), mode, Whole::Yes, &mut scratch));
    if good {
        assert_eq!(found, [pair(b"app", value), pair(b"x", b"1")]);
    } else {
        assert!(found.iter().all(|(key, _)| key == b"x"), "a bad value is no tag");
    }
}

fn tags(statement: &Statement<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    statement.tags().map(|tag| pair(tag.key, tag.value)).collect()
}

fn pair(key: &[u8], value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}
