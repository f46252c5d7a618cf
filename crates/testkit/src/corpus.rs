//! The corpora of the fuzz targets, replayed by the usual tests.
//!
//! `fuzz/corpus/TARGET` holds one input for each path that a fuzzer has found through what the target checks,
//! and every input that once broke it.

use std::fs;
use std::path::{Path, PathBuf};

/// Gives every input of a target's corpus to its check; what breaks it is named.
///
/// # Panics
/// When the check does, or there is no corpus.
pub fn replay(target: &str, check: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs: Vec<PathBuf> = fs::read_dir(&corpus)
        .unwrap_or_else(|error| panic_at(&corpus, &error))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= INPUTS_MIN, "{}: {} inputs", corpus.display(), inputs.len());
    for path in &inputs {
        let named = Named(path);
        check(&fs::read(path).unwrap_or_else(|error| panic_at(path, &error)));
        std::mem::forget(named);
    }
}

/// Says which input it was, when its check panics.
struct Named<'a>(&'a Path);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        eprintln!("the input: {}", self.0.display());
    }
}

#[expect(clippy::panic, reason = "a corpus that cannot be read fails the test, with the path")]
fn panic_at<T>(path: &Path, error: &std::io::Error) -> T {
    panic!("{}: {error}", path.display())
}

/// A folder that was emptied by mistake proves nothing.
const INPUTS_MIN: usize = 5;
