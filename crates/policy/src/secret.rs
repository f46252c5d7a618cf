//! Passwords, and other words that are not to be read.

use std::path::PathBuf;

/// Where a secret comes from. The secret itself is never in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// This environment variable.
    Env(String),
    /// This file, without the line end that closes it.
    File(PathBuf),
}
