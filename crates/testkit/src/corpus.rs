//! The corpora of the fuzz targets, replayed by the usual tests.
//!
//! `fuzz/corpus/TARGET.txt` holds one input for each path that a fuzzer has found through what the
//! target checks, and every input that once broke it: a line each, its name, a space, its bytes in
//! hexadecimal.

use std::fs;
use std::path::{Path, PathBuf};

/// Gives every input of a target's corpus to its check; what breaks it is named.
///
/// # Panics
/// When the check does, or there is no sound corpus.
pub fn replay(target: &str, check: impl Fn(&[u8])) {
    let path = path(target);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| fault(&path, &error.to_string()));
    let inputs =
        inputs(&text).unwrap_or_else(|line| fault(&path, &format!("not an input: {line}")));
    assert!(inputs.len() >= INPUTS_MIN, "{}: {} inputs", path.display(), inputs.len());
    for (name, input) in &inputs {
        let named = Named { target, name };
        check(input);
        std::mem::forget(named);
    }
}

fn path(target: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    folder.join(format!("{target}.txt"))
}

/// Names and bytes, or the line that has none.
fn inputs(text: &str) -> Result<Vec<(&str, Vec<u8>)>, &str> {
    text.lines()
        .map(|line| {
            let (name, hex) =
                line.split_once(' ').filter(|(name, _)| !name.is_empty()).ok_or(line)?;
            Ok((name, bytes(hex).ok_or(line)?))
        })
        .collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex.chars().map(digit).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn digit(digit: char) -> Option<u8> {
    digit.to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Says which input it was, when its check panics.
struct Named<'a> {
    target: &'a str,
    name: &'a str,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        eprintln!("the input: {} of {}", self.name, self.target);
    }
}

#[expect(clippy::panic, reason = "a corpus that cannot be read fails the test, with the path")]
fn fault<T>(path: &Path, error: &str) -> T {
    panic!("{}: {error}", path.display())
}

/// A file that was emptied by mistake proves nothing.
const INPUTS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_bytes() {
        let read = inputs("none \nsome-words 00ff7A\n").unwrap();
        assert_eq!(read, [("none", vec![]), ("some-words", vec![0x00, 0xff, 0x7a])]);
    }

    #[test]
    fn a_line_that_is_cut_or_no_input_is_a_fault() {
        for line in ["name", "name 0", "name 0g", " 00", "name 00 11", ""] {
            assert_eq!(inputs(&format!("{line}\n")), Err(line));
        }
    }
}
