//! Classes: whatever stands around it, what writes is never read as something that may pass.

use sql::{
    Class, Completeness, LexMode, Scratch, Server, Statement, TableRef, Whole, describe, tables,
};
use testkit::Input;

use crate::dress::SERVERS;
use crate::mode::mode;

/// Describes any text, alone and around a statement that writes.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let mode = mode(&mut input);
    let at = usize::from(input.u8());
    let text = input.rest();
    alone(text, mode);
    cut(text.get(..at).unwrap_or(text), mode);
    unknown_server(text, mode);
    unknown_settings(text, mode);
    around_a_write(text, mode);
    find_tables(text, mode);
}

fn alone(text: &[u8], mode: LexMode) {
    let mut scratch = Scratch::default();
    let statement = describe(text, mode, WHOLE, &mut scratch);
    assert_eq!(statement.classes.strictest(), Some(statement.class));
    if statement.exemption.is_some() {
        assert!(!statement.classes.contains(Class::Unknown), "what is not known is not exempt");
    }
    if statement.statement_count == 0 {
        assert_eq!(statement.class, Class::Unknown);
    }
}

/// The front of a long text is gated as a write, whatever it begins with.
fn cut(front: &[u8], mode: LexMode) {
    let mut scratch = Scratch::default();
    let statement = describe(front, mode, Whole::Truncated, &mut scratch);
    assert!(statement.class.is_covered_by_write());
    assert_eq!(statement.exemption, None);
}

/// Without knowing the server, a text is at least as strict as each server would have it.
fn unknown_server(text: &[u8], mode: LexMode) {
    let mut scratch = Scratch::default();
    let unknown = describe(text, LexMode { server: Server::Unknown, ..mode }, WHOLE, &mut scratch);
    let unknown = strictness(unknown.class);
    for server in SERVERS {
        let known = describe(text, LexMode { server, ..mode }, WHOLE, &mut scratch);
        // Where the server reads nothing, it does nothing. What cannot be read is unknown, and of a server
        // that is known the neighbouring releases are tried too, so more may be that.
        if known.statement_count > 0 && known.class != Class::Unknown {
            assert!(strictness(known.class) <= unknown, "{:?} to {server:?}", known.class);
        }
    }
}

/// Without knowing the session's settings, a text is at least as strict as with them.
fn unknown_settings(text: &[u8], mode: LexMode) {
    let (mut scratch, mut other_scratch) = (Scratch::default(), Scratch::default());
    let unknown = describe(text, LexMode::unknown(mode.server), WHOLE, &mut scratch);
    let known = describe(text, mode, WHOLE, &mut other_scratch);
    if known.statement_count == 0 {
        return;
    }
    assert!(
        strictness(unknown.class) >= strictness(known.class),
        "{:?} {:?}",
        unknown.class,
        known.class
    );
    assert!(unknown.exemption.is_none() || unknown.exemption == known.exemption);
    assert!(unknown.effects.plain.unread || !known.effects.plain.unread);
    let first = |statement: &Statement<'_>| statement.tags().next().map(|tag| tag.value.to_vec());
    assert!(first(&unknown).is_none() || first(&unknown) == first(&known));
}

/// What a rule for `write` covers is all the same to it, and so is what no rule holds back.
fn strictness(class: Class) -> Class {
    if class.is_covered_by_write() { Class::Unknown } else { class.max(Class::Admin) }
}

/// A statement that writes, ahead of the text and behind it.
fn around_a_write(text: &[u8], mode: LexMode) {
    let mut scratch = Scratch::default();
    for head in [&b"UPDATE t SET a = 1 "[..], b"DELETE FROM t WHERE a = 1;", b"INSERT INTO t "] {
        let before = [head, text].concat();
        let statement = describe(&before, mode, WHOLE, &mut scratch);
        assert!(statement.class.is_covered_by_write(), "{:?}", statement.class);
        assert_eq!(statement.exemption, None);
    }
    let behind = [text, b"\n; DELETE FROM t"].concat();
    let statement = describe(&behind, mode, WHOLE, &mut scratch);
    // The body of a stored program holds semicolons, and is the program's.
    let in_a_body = statement.classes.contains(Class::Ddl) && says(text, b"BEGIN");
    assert!(statement.class.is_covered_by_write() || in_a_body, "{:?}", statement.class);
}

/// What is found is in the text, and found again.
fn find_tables(text: &[u8], mode: LexMode) {
    let mut found: Vec<TableRef<'_>> = Vec::new();
    let completeness: Completeness = tables(text, mode, |table| found.push(table));
    for table in &found {
        for name in [Some(table.name), table.schema].into_iter().flatten() {
            assert!(text.as_ptr_range().contains(&name.as_ptr()) || name.is_empty());
        }
    }
    let mut again = Vec::new();
    let once_more = tables(text, mode, |table| again.push(table));
    assert_eq!((once_more, again), (completeness, found));
}

fn says(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

const WHOLE: Whole = Whole::Yes;
