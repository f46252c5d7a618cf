//! What is counted of each digest, app and schema.

/// What is counted of each digest, app and schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insights {
    /// Whether anything is.
    pub enabled: bool,
    /// Combinations of digest, app, schema and user with rows of their own in a minute.
    pub max_digests: u32,
    /// Whether one statement of each digest is kept as it came, values included.
    pub sample_text: bool,
}
