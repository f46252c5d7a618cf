//! Whether `state_dir` can be written, without a trace of having tried.

use std::path::Path;

use rustix::fs::{Access, access};

/// Why this user cannot write it, as a line.
pub(super) fn trouble(directory: &Path) -> Option<String> {
    // What is missing is made at the start.
    let there = directory.ancestors().find(|path| path.exists())?;
    let why = if there.is_dir() {
        access(there, Access::WRITE_OK | Access::EXEC_OK).err()?.to_string()
    } else {
        "it is no directory".to_owned()
    };
    Some(format!(
        "warning: state_dir {}: this user cannot write to {}: {why}",
        directory.display(),
        there.display()
    ))
}
